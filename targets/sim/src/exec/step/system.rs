//! Functions that the CUDA runtime provides: `vprintf`, `__assertfail`, `malloc` and `free` (CUDA C++ Programming
//! Guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation"; their declarations are those of `crt/device_functions.h`).

use super::call::{peek_local, poke_local};
use super::print::{Argument, format};
use super::{Ctx, Flow, LaneFault, Step, generic_space, lanes_of};
use crate::decode::Passed;
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::ptx::ast::Space;
use std::sync::PoisonError;

/// Characters of a string that are read before it is taken to have no end.
const MAX_STRING: u64 = 64 * 1024;

/// A byte of the thread's memory by its generic address.
fn byte(ctx: &Ctx<'_, '_>, warp: &Warp, lane: usize, addr: u64) -> Result<u8, Fault> {
    let (space, at) = generic_space(addr);
    match space {
        Space::Local => Ok(peek_local(warp, lane, at, 1) as u8),
        Space::Shared => {
            let (rank, offset) = crate::exec::access::shared_place(ctx.cluster, at, 1)?;
            Ok(ctx.cluster.ctas[rank].shared[offset as usize])
        }
        _ => {
            let memory = ctx.launch.memory;
            let index = memory.find(addr, 1)?;
            let a = memory.get(index);
            Ok(a.map_or(0, |a| a.load_element(addr - a.base, 1) as u8))
        }
    }
}

fn string(ctx: &Ctx<'_, '_>, warp: &Warp, lane: usize, addr: u64) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    for i in 0..MAX_STRING {
        match byte(ctx, warp, lane, addr.wrapping_add(i))? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            b => bytes.push(b),
        }
    }
    Err(Fault::Invalid(format!(
        "the string at {addr:#x} has no end"
    )))
}

/// The value of argument `i` of a call.
fn argument(ctx: &Ctx<'_, '_>, warp: &Warp, lane: usize, args: &[Passed], i: usize) -> u64 {
    let local = warp.frames[warp.fragments[ctx.at].frame as usize].local;
    match args.get(i) {
        Some(Passed::Local(offset, bytes)) => peek_local(warp, lane, local + offset, *bytes),
        Some(Passed::Slot(slot)) => warp.reg(ctx.base, *slot)[lane],
        None => 0,
    }
}

/// The text of a `vprintf`, whose arguments lie one behind the other, aligned to their size.
fn text(ctx: &Ctx<'_, '_>, warp: &Warp, lane: usize, args: &[Passed]) -> Result<String, Fault> {
    let pattern = string(ctx, warp, lane, argument(ctx, warp, lane, args, 0))?;
    let mut at = argument(ctx, warp, lane, args, 1);
    let mut next = |bytes: u64| -> Result<u64, Fault> {
        at = at.next_multiple_of(bytes);
        let mut value = 0;
        for i in (0..bytes).rev() {
            value = value << 8 | u64::from(byte(ctx, warp, lane, at + i)?);
        }
        at += bytes;
        Ok(value)
    };
    format(&pattern, |argument| match argument {
        Argument::Number(bytes) => Ok((next(bytes)?, String::new())),
        Argument::Text => {
            let addr = next(8)?;
            Ok((addr, string(ctx, warp, lane, addr)?))
        }
    })
}

fn print(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    args: &[Passed],
    results: &[Passed],
) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let text = text(ctx, warp, lane, args).map_err(|fault| LaneFault(lane as u32, fault))?;
        let mut output = (ctx.launch.output.lock()).unwrap_or_else(PoisonError::into_inner);
        output.push_str(&text);
        drop(output);
        give(ctx, warp, lane, results, text.len() as u64);
    }
    Ok(Flow::Next)
}

/// Sets the result of a call.
fn give(ctx: &Ctx<'_, '_>, warp: &mut Warp, lane: usize, results: &[Passed], value: u64) {
    let local = warp.frames[warp.fragments[ctx.at].frame as usize].local;
    match results.first() {
        Some(Passed::Local(offset, bytes)) => {
            poke_local(warp, lane, local + offset, *bytes, value);
        }
        Some(Passed::Slot(slot)) => warp.regs[ctx.base + *slot as usize][lane] = value,
        None => {}
    }
}

/// `malloc(bytes)`: null when the heap is full, as in CUDA.
fn allocate(ctx: &Ctx<'_, '_>, warp: &mut Warp, args: &[Passed], results: &[Passed]) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let bytes = argument(ctx, warp, lane, args, 0);
        let heap = ctx.launch.memory.heap();
        let at = heap.and_then(|(a, heap)| Some(a.base + heap.take(bytes)?));
        give(ctx, warp, lane, results, at.unwrap_or(0));
    }
    Ok(Flow::Next)
}

/// `free(address)`: of null it does nothing.
fn free(ctx: &Ctx<'_, '_>, warp: &Warp, args: &[Passed]) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let addr = argument(ctx, warp, lane, args, 0);
        if let (1.., Some((a, heap))) = (addr, ctx.launch.memory.heap()) {
            let freed = heap.give(addr.wrapping_sub(a.base));
            freed.map_err(|fault| LaneFault(lane as u32, fault))?;
        }
    }
    Ok(Flow::Next)
}

/// `__assertfail(message, file, line, function, size of a character)`.
fn assertion(ctx: &Ctx<'_, '_>, warp: &Warp, args: &[Passed]) -> LaneFault {
    let lane = ctx.mask.trailing_zeros().min(31) as usize;
    let get = |i| argument(ctx, warp, lane, args, i);
    let text = |i| string(ctx, warp, lane, get(i)).unwrap_or_else(|_| "?".into());
    let (message, file, line, function) = (text(0), text(1), get(2) as u32, text(3));
    let message = format!("assertion `{message}` failed at {file}:{line} in {function}");
    LaneFault(lane as u32, Fault::Invalid(message))
}

/// Calls a function that the module only declares.
pub(super) fn call(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    name: &str,
    args: &[Passed],
    results: &[Passed],
) -> Step<Flow> {
    match name {
        "vprintf" => print(ctx, warp, args, results),
        "__assertfail" => Err(assertion(ctx, warp, args)),
        "malloc" => allocate(ctx, warp, args, results),
        "free" => free(ctx, warp, args),
        _ => Err(Fault::Unsupported(format!(
            "call of `{name}`, which the module does not define"
        ))
        .into()),
    }
}
