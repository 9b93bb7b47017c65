//! Loads, stores and atomics of threads, with their checks.

mod check;
mod place;
mod whole;

pub(super) use check::{describe_entity, report_race};
pub(super) use place::{SharedBytes, shared_place};
pub(super) use whole::{matrix, read_bytes, store_word, write_bytes};

use super::step::{Ctx, LaneFault, Step, generic_space, lanes_of};
use super::warp::Warp;
use crate::decode::{Access, Atom, AtomOp, RANK_SHIFT};
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::units::reduce::reduce_bytes;
use check::{acquire, check, release};
use place::{Target, aligned, read, step_target, target, write};

/// Address by lane of an access, for counters.
fn record(ctx: &mut Ctx<'_, '_>, space: Space, addrs: &[u64; 32], bytes: u64, store: bool) {
    if !ctx.launch.options.counters {
        return;
    }
    let mut shared = [None; 32];
    let mut global = [None; 32];
    let (mut any_shared, mut any_global) = (false, false);
    for lane in lanes_of(ctx.mask) {
        let (space, addr) = if space == Space::Generic {
            generic_space(addrs[lane])
        } else {
            (space, addrs[lane])
        };
        match space {
            Space::Shared => {
                shared[lane] = Some(addr & ((1 << RANK_SHIFT) - 1));
                any_shared = true;
            }
            Space::Global => {
                global[lane] = Some(addr);
                any_global = true;
            }
            _ => {}
        }
    }
    if any_shared {
        ctx.cluster.counters.shared_access(&shared, bytes);
    }
    if any_global {
        ctx.cluster.counters.global_access(&global, bytes, store);
    }
}

pub(super) fn load(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, access: &Access) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, access.addr)
        .map(|a| a.wrapping_add_signed(access.offset));
    let (each, n) = (u64::from(access.bytes), access.regs.len() as u64);
    record(ctx, access.space, &addrs, each * n, false);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let place = target(ctx, access.space, addrs[lane], each * n).map_err(fail)?;
        for (i, &reg) in access.regs.iter().enumerate() {
            let mut value =
                read(ctx, warp, lane, step_target(place, i as u64 * each), each).map_err(fail)?;
            if let Some(to) = access.sign_extend {
                let shift = 64 - 8 * each;
                value = ((value << shift) as i64 >> shift) as u64
                    & (u64::MAX >> (64 - 8 * u64::from(to)));
            }
            warp.regs[ctx.base + reg as usize][lane] = value;
        }
        if ctx.checking() && !matches!(place, Target::Local(_) | Target::Param(_)) {
            check(ctx, warp, lane, place, each * n, false, access.order);
            acquire(ctx, warp, lane, place, access.order);
        }
    }
    Ok(())
}

pub(super) fn store(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, access: &Access) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, access.addr)
        .map(|a| a.wrapping_add_signed(access.offset));
    let (each, n) = (u64::from(access.bytes), access.regs.len() as u64);
    record(ctx, access.space, &addrs, each * n, true);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let place = target(ctx, access.space, addrs[lane], each * n).map_err(fail)?;
        if access.space == Space::Const {
            return Err(fail(Fault::Invalid("store to constant memory".into())));
        }
        if ctx.checking() && !matches!(place, Target::Local(_) | Target::Param(_)) {
            check(ctx, warp, lane, place, each * n, true, access.order);
            release(ctx, warp, lane, place, access.order);
        }
        for (i, &reg) in access.regs.iter().enumerate() {
            let value = warp.regs[ctx.base + reg as usize][lane];
            write(
                ctx,
                warp,
                lane,
                step_target(place, i as u64 * each),
                each,
                value,
            )
            .map_err(fail)?;
        }
    }
    Ok(())
}

fn combine(atom: &Atom, old: u64, b: u64, c: u64) -> Result<u64, Fault> {
    match atom.op {
        AtomOp::Exch => Ok(b),
        AtomOp::Cas => {
            let low = u64::MAX >> (64 - 8 * u32::from(atom.bytes));
            Ok(if old == b & low { c } else { old })
        }
        AtomOp::Reduce(op) => {
            let n = usize::from(atom.bytes);
            let mut bytes = old.to_le_bytes();
            reduce_bytes(op, atom.kind, &mut bytes[..n], &b.to_le_bytes()[..n])?;
            Ok(u64::from_le_bytes(bytes))
        }
    }
}

pub(super) fn atomic(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, atom: &Atom) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, atom.addr)
        .map(|a| a.wrapping_add_signed(atom.offset));
    let each = u64::from(atom.bytes);
    let n = atom.b.len() as u64;
    record(ctx, atom.space, &addrs, each * n, true);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let base = target(ctx, atom.space, addrs[lane], each * n).map_err(fail)?;
        if matches!(base, Target::Local(_) | Target::Param(_)) {
            return Err(fail(Fault::Invalid(
                "an atomic works on global or shared memory".into(),
            )));
        }
        if ctx.checking() {
            check(ctx, warp, lane, base, each * n, false, atom.order);
            acquire(ctx, warp, lane, base, atom.order);
            check(ctx, warp, lane, base, each * n, true, atom.order);
            release(ctx, warp, lane, base, atom.order);
        }
        for (i, &operand) in atom.b.iter().enumerate() {
            let place = step_target(base, i as u64 * each);
            let (b, c) = (
                warp.reg(ctx.base, operand)[lane],
                warp.reg(ctx.base, atom.c)[lane],
            );
            let launch = ctx.launch;
            let old = launch.locks.with(addrs[lane], || -> Result<u64, Fault> {
                let old = read(ctx, warp, lane, place, each)?;
                let new = combine(atom, old, b, c)?;
                write(ctx, warp, lane, place, each, new)?;
                Ok(old)
            });
            let old = old.map_err(fail)?;
            if let Some(&d) = atom.dst.get(i) {
                warp.regs[ctx.base + d as usize][lane] = old;
            }
        }
    }
    if let Some((bar, offset)) = atom.mbar {
        super::async_ops::complete_bytes(ctx, warp, bar, offset, each * n)?;
    }
    Ok(())
}
