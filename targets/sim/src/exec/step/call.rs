//! Calls: arguments, frames and returns.

use super::control::exit;
use super::{Ctx, Flow, Step, lanes_of};
use crate::decode::{Callee, Op, Passed};
use crate::exec::cluster::{ThreadPlace, fill_frame};
use crate::exec::warp::{Fragment, Frame, NONE, Warp};
use crate::fault::Fault;

/// Depth of calls that a thread may reach.
const MAX_FRAMES: usize = 4096;

fn local_copy(warp: &mut Warp, lane: usize, from: u64, to: u64, bytes: u64) {
    let local = &mut warp.local[lane];
    let end = (from.max(to) + bytes) as usize;
    if local.len() < end {
        local.resize(end, 0);
    }
    local.copy_within(from as usize..(from + bytes) as usize, to as usize);
    warp.local_written[lane].grow_and_set(to as usize, bytes as usize);
}

/// The function that the lanes call, and the lanes that call it: an indirect call may name several.
fn callee_index(ctx: &Ctx<'_, '_>, warp: &Warp, callee: Callee) -> Result<(usize, u32), Fault> {
    let slot = match callee {
        Callee::Direct(index) => return Ok((index, ctx.mask)),
        Callee::Indirect(slot) => slot,
    };
    let values = warp.reg(ctx.base, slot);
    let first = values[ctx.mask.trailing_zeros() as usize];
    let same = lanes_of(ctx.mask).filter(|&lane| values[lane] == first);
    let lanes = same.fold(0, |mask, lane| mask | 1 << lane);
    let index = (first as usize).checked_sub(1);
    let index = index.ok_or_else(|| Fault::Invalid("call of a null function".into()))?;
    Ok((index, lanes))
}

/// The lanes of `part` make the call first; the others come back to it.
fn split_call(ctx: &Ctx<'_, '_>, warp: &mut Warp, part: u32) -> Flow {
    let Fragment {
        mask, frame, join, ..
    } = warp.fragments[ctx.at];
    let join = warp.join_for(frame, mask, join, Some(ctx.pc + 1));
    let first = &mut warp.fragments[ctx.at];
    (first.mask, first.join) = (part, join);
    let rest = Fragment {
        mask: mask & !part,
        ..first.clone()
    };
    warp.fragments.push(rest);
    Flow::Moved
}

/// A frame of function `index` above the fragment's, its constants filled.
fn enter_frame(ctx: &Ctx<'_, '_>, warp: &mut Warp, caller: u32, index: usize) -> u32 {
    let functions = &ctx.launch.program.functions;
    let below = &warp.frames[caller as usize];
    let frame = Frame {
        func: index,
        regs: 0,
        preds: 0,
        local: (below.top(functions[below.func].frame_bytes, ctx.mask)).next_multiple_of(16),
        return_pc: ctx.pc + 1,
        caller,
        lanes: ctx.mask,
        dynamic: Vec::new(),
    };
    let id = warp.new_frame(index, &functions[index], frame);
    let cta = &ctx.cluster.ctas[ctx.cta];
    let place = ThreadPlace {
        w: warp.index,
        rank: ctx.rank(),
        ctaid: cta.ctaid,
        clusterid: std::array::from_fn(|i| cta.ctaid[i] / ctx.launch.cluster[i].max(1)),
        local: std::array::from_fn(|i| cta.ctaid[i] % ctx.launch.cluster[i].max(1)),
    };
    fill_frame(ctx.launch, warp, id, &place);
    let (at, bytes) = (warp.frames[id as usize].local, functions[index].frame_bytes);
    for lane in lanes_of(ctx.mask) {
        warp.local_written[lane].clear(at as usize, bytes as usize);
    }
    id
}

pub(super) fn call(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    callee: Callee,
    args: &[Passed],
    results: &[Passed],
) -> Step<Flow> {
    let mask = ctx.mask;
    if mask == 0 {
        return Ok(Flow::Next);
    }
    let (index, calling) = callee_index(ctx, warp, callee)?;
    if calling != mask {
        return Ok(split_call(ctx, warp, calling));
    }
    let Some(function) = ctx.launch.program.functions.get(index) else {
        return Err(Fault::Invalid(format!("call of {index}, which is no function")).into());
    };
    if function.insts.is_empty() {
        return super::system::call(ctx, warp, &function.name, args, results);
    }
    if warp.frames.len() - warp.free_frames.len() > MAX_FRAMES {
        return Err(Fault::Invalid("calls are nested too deeply".into()).into());
    }
    let Fragment {
        frame: caller,
        mask: lanes,
        ..
    } = warp.fragments[ctx.at];
    if mask != lanes {
        // The lanes that do not call wait after it.
        warp.diverge(ctx.at, mask, ctx.pc, Some(ctx.pc + 1));
        let last = warp.fragments.len() - 1;
        warp.fragments.swap(ctx.at, last);
    }
    let outer = warp.fragments[ctx.at].join;
    let join = warp.join_for(caller, mask, outer, Some(ctx.pc + 1));
    let caller_local = warp.frames[caller as usize].local;
    let id = enter_frame(ctx, warp, caller, index);
    let Frame {
        regs: callee_base,
        local,
        ..
    } = warp.frames[id as usize];
    for (arg, param) in args.iter().zip(&ctx.launch.program.functions[index].params) {
        pass(
            warp,
            mask,
            (*arg, caller_local, ctx.base),
            (param, local, callee_base),
        );
    }
    let here = &mut warp.fragments[ctx.at];
    (here.pc, here.frame, here.join) = (0, id, join);
    Ok(Flow::Moved)
}

/// Copies an argument from the caller to the callee's parameter.
fn pass(
    warp: &mut Warp,
    mask: u32,
    (arg, caller_local, caller_base): (Passed, u64, usize),
    (param, local, base): (&crate::decode::Param, u64, usize),
) {
    for lane in lanes_of(mask) {
        match (arg, param.slot) {
            (Passed::Local(offset, bytes), None) => {
                local_copy(
                    warp,
                    lane,
                    caller_local + offset,
                    local + param.offset,
                    bytes.min(param.bytes),
                );
            }
            (Passed::Local(offset, bytes), Some(slot)) => {
                warp.regs[base + slot as usize][lane] =
                    peek_local(warp, lane, caller_local + offset, bytes);
            }
            (Passed::Slot(from), Some(slot)) => {
                warp.regs[base + slot as usize][lane] =
                    warp.regs[caller_base + from as usize][lane];
            }
            (Passed::Slot(from), None) => {
                let value = warp.regs[caller_base + from as usize][lane];
                poke_local(warp, lane, local + param.offset, param.bytes, value);
            }
        }
    }
}

pub(super) fn peek_local(warp: &Warp, lane: usize, at: u64, bytes: u64) -> u64 {
    (0..bytes.min(8)).fold(0, |v, i| {
        v | u64::from(
            warp.local[lane]
                .get((at + i) as usize)
                .copied()
                .unwrap_or(0),
        ) << (8 * i)
    })
}

pub(super) fn poke_local(warp: &mut Warp, lane: usize, at: u64, bytes: u64, value: u64) {
    let local = &mut warp.local[lane];
    let end = (at + bytes) as usize;
    if local.len() < end {
        local.resize(end, 0);
    }
    for i in 0..bytes.min(8) {
        local[(at + i) as usize] = (value >> (8 * i)) as u8;
    }
    warp.local_written[lane].grow_and_set(at as usize, bytes as usize);
}

pub(super) fn ret(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lanes: u32) -> Step<Flow> {
    let fragment = warp.fragments[ctx.at].clone();
    let frame = warp.frames[fragment.frame as usize].clone();
    if frame.caller == NONE {
        return Ok(exit(ctx, warp, lanes));
    }
    let mask = ctx.mask;
    if mask == 0 {
        return Ok(Flow::Next);
    }
    if mask != lanes {
        // Some lanes return now: the others go on in the callee.
        warp.fragments[ctx.at].mask = lanes & !mask;
        warp.fragments[ctx.at].pc = ctx.pc + 1;
        let mut part = fragment.clone();
        part.mask = mask;
        warp.fragments.push(part);
        let last = warp.fragments.len() - 1;
        warp.fragments.swap(ctx.at, last);
    }
    return_values(ctx, warp, &frame);
    let join = leave_joins_of(warp, &fragment, mask);
    let here = &mut warp.fragments[ctx.at];
    (here.pc, here.frame, here.join, here.mask) = (frame.return_pc, frame.caller, join, mask);
    let live = &mut warp.frames[fragment.frame as usize].lanes;
    *live &= !mask;
    if *live == 0 {
        warp.free_frames.push(fragment.frame);
    }
    Ok(Flow::Moved)
}

/// Copies the results of the function of `frame` to where its caller wants them.
fn return_values(ctx: &Ctx<'_, '_>, warp: &mut Warp, frame: &Frame) {
    let functions = &ctx.launch.program.functions;
    let caller = warp.frames[frame.caller as usize].clone();
    let call = functions[caller.func]
        .insts
        .get(frame.return_pc as usize - 1);
    let Some(Op::Call { results, .. }) = call.map(|i| &i.op) else {
        return;
    };
    for (result, param) in results.iter().zip(&functions[frame.func].returns) {
        for lane in lanes_of(ctx.mask) {
            let from = frame.local + param.offset;
            let value = match param.slot {
                Some(slot) => warp.regs[frame.regs + slot as usize][lane],
                None => peek_local(warp, lane, from, param.bytes),
            };
            match (*result, param.slot) {
                (Passed::Local(offset, bytes), None) => {
                    let to = caller.local + offset;
                    local_copy(warp, lane, from, to, bytes.min(param.bytes));
                }
                (Passed::Local(offset, bytes), Some(_)) => {
                    poke_local(warp, lane, caller.local + offset, bytes, value)
                }
                (Passed::Slot(slot), _) => warp.regs[caller.regs + slot as usize][lane] = value,
            }
        }
    }
}

/// Joins inside the callee no longer wait for the lanes that return; gives the caller's join.
fn leave_joins_of(warp: &mut Warp, fragment: &Fragment, mask: u32) -> u32 {
    let mut join = fragment.join;
    while let Some(node) = warp
        .joins
        .get(join as usize)
        .filter(|j| join != NONE && j.frame == fragment.frame)
    {
        let parent = node.parent;
        let (expected, arrived, pc) = (node.expected & !mask, node.arrived, node.pc);
        warp.joins[join as usize].expected = expected;
        if expected == 0 {
            warp.free_joins.push(join);
        } else if expected == arrived {
            warp.free_joins.push(join);
            warp.fragments.push(Fragment {
                pc,
                mask: arrived,
                frame: fragment.frame,
                join: parent,
                wait: None,
                alone: false,
            });
        }
        join = parent;
    }
    join
}
