//! Memory of instructions of the whole warp: `ldmatrix`, `wmma`, and single words.

use super::check::{Doing, check};
use super::place::{
    SharedBytes, Target, aligned, little, read, shared_place, step_target, target, write,
};
use super::record;
use crate::decode::{Ldmatrix, Order, RANK_SHIFT};
use crate::exec::step::{Ctx, LaneFault, Step, generic_space};
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::report::FindingKind;
use crate::units::Bytes;

fn doing(write: bool) -> Doing<'static> {
    if write {
        Doing::Write(&[])
    } else {
        Doing::Read
    }
}

/// One lane's store of a word to shared memory by an instruction of another kind.
pub(in crate::exec) fn store_word(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    (slot, offset): (u32, i64),
    value: u32,
) -> Result<(), Fault> {
    let addr = warp.reg(ctx.base, slot)[lane].wrapping_add_signed(offset);
    let (space, addr) = if addr >> 32 == 0 {
        (Space::Shared, addr)
    } else {
        (Space::Generic, addr)
    };
    aligned(addr, 4)?;
    let place = target(ctx, space, addr, 4)?;
    check(ctx, warp, lane, (place, 4), Doing::Write(&[]), Order::Weak);
    write(ctx, warp, lane, place, 4, value.into())
}

/// Memory of 32 lanes, `size` bytes each, for an instruction of the whole warp.
pub(in crate::exec) fn read_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    space: Space,
    addrs: &[u64; 32],
    size: usize,
    out: &mut [u8],
) -> Step<()> {
    record(ctx, space, addrs, size as u64, false);
    for (lane, piece) in out.chunks_mut(size).enumerate() {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place =
            piece_place(ctx, warp, lane, space, (addrs[lane], size), false).map_err(fail)?;
        for (i, word) in piece.chunks_mut(4).enumerate() {
            let at = step_target(place, 4 * i as u64);
            let value = read(ctx, warp, lane, at, word.len() as u64).map_err(fail)?;
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
    Ok(())
}

/// As [`read_bytes`], the other way.
pub(in crate::exec) fn write_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    space: Space,
    addrs: &[u64; 32],
    size: usize,
    bytes: &[u8],
) -> Step<()> {
    record(ctx, space, addrs, size as u64, true);
    for (lane, piece) in bytes.chunks(size).enumerate() {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place = piece_place(ctx, warp, lane, space, (addrs[lane], size), true).map_err(fail)?;
        for (i, word) in piece.chunks(4).enumerate() {
            let at = step_target(place, 4 * i as u64);
            write(ctx, warp, lane, at, word.len() as u64, little(word)).map_err(fail)?;
        }
    }
    Ok(())
}

/// Alignment, bounds and checks of a lane's piece; vector accesses have at most 16 bytes.
fn piece_place(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    space: Space,
    (addr, size): (u64, usize),
    write: bool,
) -> Result<Target, Fault> {
    let bytes = size as u64;
    aligned(addr, bytes.min(16))?;
    let place = target(ctx, space, addr, bytes)?;
    if ctx.checking() {
        check(ctx, warp, lane, (place, bytes), doing(write), Order::Weak);
    }
    Ok(place)
}

/// `ldmatrix` and `stmatrix`: the row that a lane names is accessed by that lane.
pub(in crate::exec) fn matrix(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    form: &Ldmatrix,
    store: bool,
) -> Step<()> {
    if ctx.mask.count_ones() != 32 {
        ctx.find(
            warp,
            FindingKind::BarrierDivergence,
            32,
            "a matrix instruction needs all 32 lanes".into(),
            None,
        );
    }
    let addrs = warp
        .reg(ctx.base, form.addr)
        .map(|a| a.wrapping_add_signed(form.offset));
    let addrs = addrs.map(|a| generic_space(a).1);
    let used = form.unit.addresses_used().min(32);
    if ctx.launch.options.counters {
        for group in 0..used.div_ceil(8) {
            let mut rows = [None; 32];
            for (i, row) in rows.iter_mut().enumerate().take(8) {
                *row = Some(addrs[group * 8 + i] & ((1 << RANK_SHIFT) - 1));
            }
            ctx.cluster.counters.shared_access(&rows, 16);
        }
    }
    for (lane, &addr) in addrs.iter().enumerate().take(used) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addr, 16).map_err(fail)?;
        let (rank, offset) = shared_place(ctx.cluster, addr, 16).map_err(fail)?;
        if !store && ctx.checking() {
            let place = Target::Shared { rank, offset };
            check(ctx, warp, lane, (place, 16), Doing::Read, Order::Weak);
        }
    }
    if store {
        return store_rows(ctx, warp, form, &addrs);
    }
    let out = form.unit.load(&mut SharedBytes(ctx.cluster), &addrs)?;
    for (&reg, value) in form.regs.iter().zip(&out) {
        warp.write(ctx.base, reg, &value.map(u64::from), ctx.mask);
    }
    Ok(())
}

/// The rows that a `stmatrix` writes, in order of their lanes.
#[derive(Default)]
struct Rows(Vec<(u64, Vec<u8>)>);

impl Bytes for Rows {
    fn read(&mut self, _: u64, out: &mut [u8]) -> Result<(), Fault> {
        out.fill(0);
        Ok(())
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.0.push((addr, data.to_vec()));
        Ok(())
    }
}

/// `stmatrix`, row by row: small tiles of Triton's are in several lanes, which all write them.
fn store_rows(ctx: &mut Ctx<'_, '_>, warp: &Warp, form: &Ldmatrix, addrs: &[u64; 32]) -> Step<()> {
    let words = |&r: &u32| warp.reg(ctx.base, r).map(|v| v as u32);
    let regs: Vec<[u32; 32]> = form.regs.iter().map(words).collect();
    let mut rows = Rows::default();
    form.unit.store(&mut rows, addrs, &regs)?;
    for (lane, (addr, row)) in rows.0.iter().enumerate() {
        let fail = |fault| LaneFault(lane as u32, fault);
        let bytes = row.len() as u64;
        if ctx.checking() {
            let (rank, offset) = shared_place(ctx.cluster, *addr, bytes).map_err(fail)?;
            let place = Target::Shared { rank, offset };
            let written = Doing::WriteBytes(row);
            check(ctx, warp, lane, (place, bytes), written, Order::Weak);
        }
        SharedBytes(ctx.cluster).write(*addr, row).map_err(fail)?;
    }
    Ok(())
}
