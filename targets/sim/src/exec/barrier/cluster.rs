//! The cluster barrier.

use super::join;
use crate::exec::cluster::Cluster;
use crate::exec::step::{Ctx, Flow, lanes_of};
use crate::exec::warp::{Wait, Warp};
use crate::report::FindingKind;

fn live_threads(cluster: &Cluster, current: &Warp, cta: usize) -> u32 {
    let mut all = 0;
    for (c, block) in cluster.ctas.iter().enumerate() {
        for (w, warp) in block.warps.iter().enumerate() {
            let live = if c == cta && w == current.index {
                current.live
            } else {
                warp.live
            };
            all += live.count_ones();
        }
    }
    all
}

pub(super) fn cluster_arrive(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, release: bool) -> Flow {
    if release && let Some(clocks) = &mut warp.clocks {
        let view = clocks.release(ctx.mask);
        join(&mut ctx.cluster.arrive_view, &view);
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
    let live = live_threads(ctx.cluster, warp, ctx.cta);
    let cluster = &mut *ctx.cluster;
    if cluster.arrived > 0 && cluster.arrived >= live {
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
