//! The cluster barrier.

use super::join;
use crate::exec::cluster::Cluster;
use crate::exec::step::{Ctx, Flow, lanes_of};
use crate::exec::warp::{Wait, Warp};
use crate::report::FindingKind;

/// Whether every thread that has not ended has arrived for the generation that is under way: those that arrived and ended do not count,
/// PTX ISA 9.7.13.2 (`barrier.cluster`).
fn all_arrived(cluster: &Cluster, current: &Warp, cta: usize) -> bool {
    let next = cluster.generation + 1;
    let mut blocks = cluster.ctas.iter().enumerate();
    blocks.all(|(c, block)| {
        block.warps.iter().enumerate().all(|(w, warp)| {
            let warp = match c == cta && w == current.index {
                true => current,
                false => warp,
            };
            lanes_of(warp.live).all(|lane| warp.cluster_generation[lane] == next)
        })
    })
}

pub(super) fn cluster_arrive(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, release: bool) -> Flow {
    if let Some(clocks) = &mut warp.clocks {
        match release {
            true => join(&mut ctx.cluster.arrive_view, &clocks.release(ctx.mask)),
            // What a fence before it released, as `fence.mbarrier_init` does of barriers (PTX ISA 9.7.13.4).
            false => {
                let fenced = lanes_of(ctx.mask).filter_map(|lane| clocks.fenced(lane));
                fenced.for_each(|view| join(&mut ctx.cluster.arrive_view, view));
            }
        }
    }
    ctx.cluster.arrived += ctx.mask.count_ones();
    for lane in lanes_of(ctx.mask) {
        warp.cluster_generation[lane] = ctx.cluster.generation + 1;
    }
    ctx.cluster.wake_all();
    cluster_complete(ctx, warp);
    Flow::Next
}

fn cluster_complete(ctx: &mut Ctx<'_, '_>, warp: &Warp) {
    let complete = all_arrived(ctx.cluster, warp, ctx.cta);
    let cluster = &mut *ctx.cluster;
    if cluster.arrived > 0 && complete {
        cluster.arrived = 0;
        cluster.generation += 1;
        cluster.done_view = cluster.arrive_view.take();
    }
}

pub(super) fn cluster_wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp) -> Flow {
    cluster_complete(ctx, warp);
    let awaited = lanes_of(ctx.mask).map(|lane| warp.cluster_generation[lane]);
    let generation = awaited.max().unwrap_or(0);
    if generation == 0 && ctx.mask != 0 {
        ctx.find(
            warp,
            FindingKind::BarrierMisuse,
            32,
            "barrier.cluster.wait without an arrive".into(),
            None,
        );
    }
    if ctx.cluster.generation < generation {
        return Flow::Block(Wait::Cluster { generation });
    }
    if let (Some(clocks), Some(view)) = (&mut warp.clocks, &ctx.cluster.done_view) {
        clocks.acquire(ctx.mask, view);
    }
    Flow::Next
}
