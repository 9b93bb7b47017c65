//! CTA and cluster barriers, fences, and mbarriers.

mod cluster;
mod cta;
mod mbarrier;
mod waits;

pub(crate) use cta::CtaBarrier;
pub(crate) use mbarrier::MbarClocks;
pub(super) use mbarrier::{mbarrier, place_of, with_mbarrier};

use super::step::{Ctx, Flow, Step};
use super::warp::Warp;
use crate::check::clock::View;
use crate::decode::Op;
use cluster::{cluster_arrive, cluster_wait};
use cta::barrier;

fn join(into: &mut Option<View>, view: &View) {
    match into {
        Some(v) => v.join(view),
        none => *none = Some(view.clone()),
    }
}

pub(super) fn execute(ctx: &mut Ctx<'_, '_>, warp: &mut Warp) -> Step<Flow> {
    match &ctx.inst.op {
        Op::Barrier {
            id,
            count,
            arrive,
            aligned,
            red,
        } => barrier(ctx, warp, (*id, *count), *arrive, *aligned, *red),
        Op::ClusterArrive { release } => Ok(cluster_arrive(ctx, warp, *release)),
        Op::ClusterWait => Ok(cluster_wait(ctx, warp)),
        Op::Fence { order } => {
            if let Some(clocks) = &mut warp.clocks {
                clocks.fence(ctx.mask, order.acquires(), order.releases());
            }
            Ok(Flow::Next)
        }
        _ => {
            if let Some(clocks) = &mut warp.clocks {
                clocks.proxy_fence(ctx.mask);
            }
            Ok(Flow::Next)
        }
    }
}
