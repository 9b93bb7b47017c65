//! Control flow: branches and the end of threads.

use super::{Ctx, Flow, LaneFault, Step, lanes_of};
use crate::exec::warp::{Fragment, Warp};
use crate::fault::Fault;
use crate::report::FindingKind;

pub(super) fn branch(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lanes: u32,
    target: u32,
    reconverge: Option<u32>,
) -> Flow {
    let taken = ctx.mask;
    if taken == 0 {
        return Flow::Next;
    }
    if taken == lanes {
        warp.fragments[ctx.at].pc = target;
    } else {
        warp.diverge(ctx.at, taken, target, reconverge);
    }
    Flow::Moved
}

pub(super) fn brx(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lanes: u32,
    index: u32,
    targets: &[u32],
    reconverge: Option<u32>,
) -> Step<Flow> {
    let chosen = *warp.reg(ctx.base, index);
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for lane in lanes_of(ctx.mask) {
        let Some(&target) = targets.get(chosen[lane] as u32 as usize) else {
            return Err(LaneFault(
                lane as u32,
                Fault::Invalid(format!(
                    "brx.idx {} of {} targets",
                    chosen[lane],
                    targets.len()
                )),
            ));
        };
        match groups.iter_mut().find(|(t, _)| *t == target) {
            Some((_, mask)) => *mask |= 1 << lane,
            None => groups.push((target, 1 << lane)),
        }
    }
    if lanes & !ctx.mask != 0 {
        groups.push((ctx.pc + 1, lanes & !ctx.mask));
    }
    let fragment = warp.fragments[ctx.at].clone();
    let join = if groups.len() > 1 {
        warp.join_for(fragment.frame, lanes, fragment.join, reconverge)
    } else {
        fragment.join
    };
    for (i, (target, mask)) in groups.into_iter().enumerate() {
        let part = Fragment {
            pc: target,
            mask,
            join,
            wait: None,
            alone: false,
            frame: fragment.frame,
        };
        if i == 0 {
            warp.fragments[ctx.at] = part;
        } else {
            warp.fragments.push(part);
        }
    }
    Ok(Flow::Moved)
}

/// A CTA's shared memory lasts until its threads have exited: accesses by other CTAs must be ordered
/// before that (CUDA C++ Programming Guide, "Distributed Shared Memory").
fn check_remote(ctx: &mut Ctx<'_, '_>, warp: &mut Warp) {
    let Some(clocks) = &mut warp.clocks else {
        return;
    };
    let view = clocks.release(ctx.mask);
    let cta = &mut ctx.cluster.ctas[ctx.cta];
    match &mut cta.exit_view {
        Some(all) => all.join(&view),
        none => *none = Some(view),
    }
    let over = warp.live == 0
        && (cta.warps.iter().enumerate()).all(|(w, other)| w == warp.index || other.live == 0);
    let Some(view) = cta.exit_view.as_ref().filter(|_| over) else {
        return;
    };
    let unordered = cta
        .remote
        .iter()
        .filter(|(entity, (clock, _))| view.all.get(**entity) < *clock);
    if let Some((_, (_, line))) = unordered.min_by_key(|(entity, _)| **entity) {
        let line = *line;
        let message = format!(
            "the CTA exits while another CTA may access its shared memory at PTX line {line}"
        );
        ctx.find(warp, FindingKind::Race, 32, message, Some(line));
    }
}

pub(super) fn exit(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lanes: u32) -> Flow {
    let mask = ctx.mask;
    if mask == 0 {
        return Flow::Next;
    }
    crate::exec::async_ops::check_outstanding(ctx, warp);
    warp.live &= !mask;
    check_remote(ctx, warp);
    crate::exec::async_ops::check_exit(ctx, warp);
    ctx.cluster.wake_all();
    let fragment = warp.fragments[ctx.at].clone();
    if mask == lanes {
        warp.fragments.swap_remove(ctx.at);
    } else {
        warp.fragments[ctx.at].mask = lanes & !mask;
        warp.fragments[ctx.at].pc = ctx.pc + 1;
    }
    warp.leave_joins(fragment.join, mask);
    if mask == lanes {
        Flow::Gone
    } else {
        Flow::Moved
    }
}
