//! The 16 barriers of a CTA (PTX ISA 9.7.13.1).

use super::join;
use crate::check::clock::View;
use crate::decode::{PredSrc, Slot};
use crate::exec::cluster::Cluster;
use crate::exec::step::{Ctx, Flow, Step};
use crate::exec::warp::{Wait, Warp};
use crate::fault::Fault;
use crate::report::FindingKind;

/// One of the 16 barriers of a CTA.
#[derive(Debug, Clone, Default)]
pub(crate) struct CtaBarrier {
    generation: u64,
    /// Threads awaited, where an instruction named a number.
    pub(super) expected: Option<u32>,
    /// Warp and lanes of each arrival of this generation.
    pub(super) arrivals: Vec<(usize, u32)>,
    view: Option<View>,
    done: Option<View>,
    /// popc, and, or of the predicates of `barrier.red`.
    red: (u32, bool, bool),
    red_done: (u32, bool, bool),
}

/// Threads that have arrived: a warp whose live lanes have all arrived counts 32
/// (PTX ISA `barrier`: "the count is in multiples of the warp size").
fn arrived(cluster: &Cluster, cta: usize, id: usize, current: &Warp) -> u32 {
    let warps = &cluster.ctas[cta].warps;
    let live = |w: usize| {
        if w == current.index {
            current.live
        } else {
            warps.get(w).map_or(0, |w| w.live)
        }
    };
    let arrivals = &cluster.ctas[cta].barriers[id].arrivals;
    arrivals
        .iter()
        .map(|&(w, mask)| {
            if mask & live(w) == live(w) {
                32
            } else {
                mask.count_ones()
            }
        })
        .sum()
}

fn all_threads(cluster: &Cluster, cta: usize, current: &Warp) -> u32 {
    let warps = &cluster.ctas[cta].warps;
    let live = |w: usize| {
        if w == current.index {
            current.live
        } else {
            warps[w].live
        }
    };
    (0..warps.len()).filter(|&w| live(w) != 0).count() as u32 * 32
}

/// Operands of `barrier.red`: mode, register, predicate, source.
type Reduction = (u8, Slot, u32, PredSrc);

pub(super) fn barrier(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    (id, count): (Slot, Option<Slot>),
    arrive: bool,
    aligned: bool,
    red: Option<Reduction>,
) -> Step<Flow> {
    if let Some(Wait::Barrier { id, generation }) = warp.fragments[ctx.at].wait {
        return Ok(resume(ctx, warp, id, generation, red));
    }
    let lane = ctx.mask.trailing_zeros() as usize;
    let number = warp.reg(ctx.base, id)[lane];
    let expected = count.map(|slot| warp.reg(ctx.base, slot)[lane] as u32);
    let generation = check_counts(ctx, number, expected)?;
    if aligned && ctx.mask != warp.live {
        let message = format!(
            "lanes {:#010x} of warp {} reach the barrier without lanes {:#010x}",
            ctx.mask,
            warp.index,
            warp.live & !ctx.mask
        );
        let kind = FindingKind::BarrierDivergence;
        ctx.find(warp, kind, lane as u32, message, None);
    }
    let number = number as usize;
    join_arrivals(ctx, warp, number, expected, red);
    ctx.cluster.wake_all();
    if let Some(over) = expected.filter(|&n| arrived(ctx.cluster, ctx.cta, number, warp) > n) {
        return Err(Fault::Invalid(format!(
            "more threads arrive at mbarrier or barrier {number} than the {over} it counts"
        ))
        .into());
    }
    try_complete(ctx, warp, number);
    if arrive {
        return Ok(Flow::Next);
    }
    Ok(resume(ctx, warp, number as u32, generation, red))
}

/// Goes on if the barrier's generation is over, with what the others did and the reduction's result.
fn resume(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    id: u32,
    generation: u64,
    red: Option<Reduction>,
) -> Flow {
    try_complete(ctx, warp, id as usize);
    let barrier = &ctx.cluster.ctas[ctx.cta].barriers[id as usize];
    if barrier.generation == generation {
        return Flow::Block(Wait::Barrier { id, generation });
    }
    let (done, value) = (barrier.done.clone(), barrier.red_done);
    if let (Some(clocks), Some(view)) = (&mut warp.clocks, &done) {
        clocks.acquire(ctx.mask, view);
    }
    if let Some((mode, d, p, _)) = red {
        let hit = if mode == 1 { value.1 } else { value.2 };
        warp.write_pred(ctx.preds, p, if hit { u32::MAX } else { 0 }, ctx.mask);
        if mode == 0 {
            warp.write(ctx.base, d, &[u64::from(value.0); 32], ctx.mask);
        }
    }
    Flow::Next
}

/// Checks the barrier's number and count; returns its generation.
fn check_counts(ctx: &Ctx<'_, '_>, number: u64, expected: Option<u32>) -> Result<u64, Fault> {
    let Some(barrier) = ctx.cluster.ctas[ctx.cta].barriers.get(number as usize) else {
        return Err(Fault::Invalid(format!("barrier {number} of 16")));
    };
    let Some(n) = expected else {
        return Ok(barrier.generation);
    };
    if n == 0 || n % 32 != 0 {
        return Err(Fault::Invalid(format!(
            "barrier {number} with {n} threads, which is no multiple of 32"
        )));
    }
    if !barrier.arrivals.is_empty() && barrier.expected != Some(n) {
        return Err(Fault::Invalid(format!(
            "mbarrier or barrier {number} is used with {n} threads while others wait for {:?}",
            barrier.expected
        )));
    }
    Ok(barrier.generation)
}

/// Adds the lanes to the barrier's arrivals, with what they know and their predicates.
fn join_arrivals(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    number: usize,
    expected: Option<u32>,
    red: Option<Reduction>,
) {
    let barrier = &mut ctx.cluster.ctas[ctx.cta].barriers[number];
    if barrier.arrivals.is_empty() {
        barrier.red = (0, true, false);
        barrier.expected = expected;
    }
    let (own, lanes) = (warp.index, ctx.mask);
    let known = |a: &&mut (usize, u32)| a.0 == own && a.1 & lanes == 0;
    match barrier.arrivals.iter_mut().find(known) {
        Some((_, mask)) => *mask |= lanes,
        None => barrier.arrivals.push((own, lanes)),
    }
    if let Some((.., p)) = red {
        let value = warp.pred(ctx.preds, p) & lanes;
        barrier.red.0 += value.count_ones();
        barrier.red.1 &= value == lanes;
        barrier.red.2 |= value != 0;
    }
    if let Some(clocks) = &mut warp.clocks {
        let view = clocks.release(lanes);
        join(&mut barrier.view, &view);
    }
}

fn try_complete(ctx: &mut Ctx<'_, '_>, warp: &Warp, id: usize) {
    let barrier = &ctx.cluster.ctas[ctx.cta].barriers[id];
    if barrier.arrivals.is_empty() {
        return;
    }
    let needed = barrier
        .expected
        .unwrap_or_else(|| all_threads(ctx.cluster, ctx.cta, warp));
    if arrived(ctx.cluster, ctx.cta, id, warp) < needed {
        return;
    }
    let barrier = &mut ctx.cluster.ctas[ctx.cta].barriers[id];
    barrier.generation += 1;
    barrier.arrivals.clear();
    barrier.done = barrier.view.take();
    barrier.red_done = barrier.red;
}
