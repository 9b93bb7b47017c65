//! Loads, stores and atomics of threads, with their checks.

mod check;
mod local;
mod maps;
mod place;
mod whole;

pub(super) use check::{Racing, describe_entity, race_message, report_race};
pub(super) use local::MAX_LOCAL;
pub(super) use maps::{copy_map, replace_map};
pub(super) use place::{SharedBytes, shared_place};
pub(super) use whole::{matrix, read_bytes, store_word, write_bytes};

use super::delayed::{catch_up, keep_back};
use super::step::{Ctx, LaneFault, Step, generic_space, lanes_of};
use super::undefined;
use super::warp::Warp;
use crate::decode::{Access, Atom, AtomOp, Order, RANK_SHIFT};
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::units::reduce::reduce_bytes;
use check::{Doing, acquire, check, release, unwritten};
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

/// A strong read by the warp: it may be polling.
fn poll(ctx: &Ctx<'_, '_>, warp: &mut Warp, space: Space, addrs: &[u64; 32]) {
    let first = addrs[ctx.mask.trailing_zeros().min(31) as usize];
    let (space, addr) = if space == Space::Generic {
        generic_space(first)
    } else {
        (space, first)
    };
    warp.poll(space == Space::Shared, addr);
}

pub(super) fn load(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, access: &Access) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, access.addr)
        .map(|a| a.wrapping_add_signed(access.offset));
    let (each, n) = (u64::from(access.bytes), access.regs.len() as u64);
    record(ctx, access.space, &addrs, each * n, false);
    if access.order != Order::Weak {
        poll(ctx, warp, access.space, &addrs);
    }
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], access.align).map_err(fail)?;
        let place = target(ctx, access.space, addrs[lane], each * n).map_err(fail)?;
        see_own(ctx, warp, lane, place, each * n);
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
            check(
                ctx,
                warp,
                lane,
                (place, each * n),
                Doing::Load,
                access.order,
            );
            if unwritten(ctx, place, each * n).is_some() {
                mark_unwritten(ctx, warp, lane, place, access);
            }
            acquire(ctx, warp, lane, place, access.order);
        }
    }
    Ok(())
}

/// Marks the registers whose elements nothing wrote.
fn mark_unwritten(ctx: &Ctx<'_, '_>, warp: &mut Warp, lane: usize, place: Target, access: &Access) {
    let each = u64::from(access.bytes);
    for (&reg, i) in access.regs.iter().zip(0..) {
        let at = |byte| step_target(place, i * each + byte);
        if let Some(message) = unwritten(ctx, at(0), each) {
            let missing = (0..each).filter(|&byte| unwritten(ctx, at(byte), 1).is_some());
            let bits = missing.fold(0, |bits, byte| bits | 0xff << (8 * byte));
            let whole = access.sign_extend.is_some() || bits == u64::MAX >> (64 - 8 * each);
            let bits = if whole { u64::MAX } else { bits };
            undefined::mark(ctx, warp, (lane, ctx.base + reg as usize, bits), message);
        }
    }
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
            let written = Doing::Write(&access.regs);
            check(ctx, warp, lane, (place, each * n), written, access.order);
            release(ctx, warp, lane, place, access.order);
        }
        see_own(ctx, warp, lane, place, each * n);
        if let (Order::Relaxed, Target::Global(addr)) = (access.order, place)
            && ctx.launch.memory.find(addr, each * n).is_ok()
            && keep_back(ctx, warp, lane, (addr, each), &access.regs)
        {
            continue;
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

fn see_own(ctx: &mut Ctx<'_, '_>, warp: &Warp, lane: usize, place: Target, bytes: u64) {
    if let Target::Global(addr) = place
        && !ctx.cluster.delayed.is_empty()
    {
        catch_up(ctx, warp, lane, addr, bytes);
    }
}

/// Reads, combines and writes a lane's elements; returns what was there.
fn combine(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    base: Target,
    atom: &Atom,
) -> Result<Vec<u64>, Fault> {
    let each = u64::from(atom.bytes);
    let low = u64::MAX >> (64 - 8 * each);
    let value = |warp: &Warp, slot: u32| warp.reg(ctx.base, slot)[lane];
    let mut old = Vec::with_capacity(atom.b.len());
    for i in 0..atom.b.len() as u64 {
        old.push(read(ctx, warp, lane, step_target(base, i * each), each)?);
    }
    let operands = atom.b.iter().map(|&b| value(warp, b));
    let new: Vec<u64> = match atom.op {
        AtomOp::Exch => operands.collect(),
        AtomOp::Cas => {
            let equal = operands.zip(&old).all(|(b, old)| b & low == *old);
            if !equal {
                return Ok(old);
            }
            atom.c.iter().map(|&c| value(warp, c)).collect()
        }
        AtomOp::Reduce(op) => {
            let n = usize::from(atom.bytes);
            let reduced = operands.zip(&old).map(|(b, old)| {
                let mut bytes = old.to_le_bytes();
                reduce_bytes(op, atom.kind, &mut bytes[..n], &b.to_le_bytes()[..n])?;
                Ok(u64::from_le_bytes(bytes))
            });
            reduced.collect::<Result<_, Fault>>()?
        }
    };
    for (value, i) in new.into_iter().zip(0..) {
        write(ctx, warp, lane, step_target(base, i * each), each, value)?;
    }
    Ok(old)
}

pub(super) fn atomic(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, atom: &Atom) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, atom.addr)
        .map(|a| a.wrapping_add_signed(atom.offset));
    let each = u64::from(atom.bytes);
    let n = atom.b.len() as u64;
    record(ctx, atom.space, &addrs, each * n, true);
    poll(ctx, warp, atom.space, &addrs);
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
            check(ctx, warp, lane, (base, each * n), Doing::Read, atom.order);
            acquire(ctx, warp, lane, base, atom.order);
            check(
                ctx,
                warp,
                lane,
                (base, each * n),
                Doing::Write(&[]),
                atom.order,
            );
            release(ctx, warp, lane, base, atom.order);
        }
        see_own(ctx, warp, lane, base, each * n);
        let launch = ctx.launch;
        let old = launch
            .locks
            .with(addrs[lane], || combine(ctx, warp, lane, base, atom))
            .map_err(fail)?;
        for (&d, value) in atom.dst.iter().zip(old) {
            warp.regs[ctx.base + d as usize][lane] = value;
        }
    }
    if let Some((bar, offset)) = atom.mbar {
        super::async_ops::complete_bytes(ctx, warp, bar, offset, each * n)?;
    }
    Ok(())
}
