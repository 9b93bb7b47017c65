//! Checks of a thread's access: initialisation, races, and what strong accesses order.

use super::place::Target;
use crate::check::clock::View;
use crate::check::shadow::{Actor, Conflict, Epoch, STRONG};
use crate::decode::Order;
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::exec::step::Ctx;
use crate::exec::warp::Warp;
use crate::report::FindingKind;

fn flags(order: Order) -> u32 {
    if order == Order::Weak { 0 } else { STRONG }
}

/// Reports a race that the shadow found.
pub(in crate::exec) fn report_race(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: u32,
    what: &str,
    conflict: Conflict,
    wrote: bool,
    actor: &Actor<'_>,
) {
    let before = conflict.before;
    let verb = |w: bool| if w { "write" } else { "read" };
    let who = describe_entity(ctx.launch, ctx.cluster, before);
    let (kind, reason) = if conflict.before_wrote && actor.lacks_only_proxy_fence(before) {
        (
            FindingKind::MissingProxyFence,
            "is ordered after it, but no proxy fence makes it visible to the async proxy",
        )
    } else {
        (FindingKind::Race, "is not ordered after it")
    };
    let message = format!(
        "{} of {what} {reason}: {} by {who} at PTX line {}",
        verb(wrote),
        verb(conflict.before_wrote),
        before.line()
    );
    ctx.find(warp, kind, lane, message, Some(before.line()));
}

pub(in crate::exec) fn describe_entity(
    launch: &LaunchState<'_>,
    cluster: &Cluster,
    epoch: Epoch,
) -> String {
    let per_cta = launch.entities_per_cta() as u32;
    let (rank, id) = (epoch.entity / per_cta, epoch.entity % per_cta);
    let who = if epoch.is_async() || id >= launch.padded_threads() {
        "an asynchronous operation".to_string()
    } else {
        format!("thread {id}")
    };
    if epoch.cluster != cluster.index {
        format!("{who} of CTA rank {rank} of cluster {}", epoch.cluster)
    } else {
        match cluster.ctas.get(rank as usize) {
            Some(cta) => format!("{who} of CTA {:?}", cta.ctaid),
            None => who,
        }
    }
}

/// Checks of one lane's access: initialisation and races.
pub(super) fn check(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    place: Target,
    bytes: u64,
    write: bool,
    order: Order,
) {
    let Some(clocks) = &warp.clocks else { return };
    let epoch = Epoch::new(
        ctx.cluster.index,
        clocks.entity(lane),
        clocks.own(lane),
        ctx.inst.line,
        flags(order),
    );
    let view = clocks.view(lane).clone();
    let actor = Actor { epoch, view: &view };
    match place {
        Target::Shared { rank, offset } => {
            check_shared(ctx, warp, lane, (rank, offset, bytes), write, &actor);
        }
        Target::Global(addr) => check_global(ctx, warp, lane, (addr, bytes), write, &actor),
        Target::Local(_) | Target::Param(_) => {}
    }
}

fn check_shared(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (rank, offset, bytes): (usize, u64, u64),
    write: bool,
    actor: &Actor<'_>,
) {
    let own = ctx.cta == rank;
    let cta = &mut ctx.cluster.ctas[rank];
    if !own {
        let last = (actor.epoch.clock, ctx.inst.line);
        cta.remote.insert(actor.epoch.entity, last);
    }
    let exited = !own && cta.warps.iter().all(|w| w.live == 0);
    if write {
        cta.written.set(offset as usize, bytes as usize);
    } else if let Some(at) = cta.written.first_unwritten(offset as usize, bytes as usize) {
        let message = format!("read of shared byte {at}, which nothing has written");
        ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
    }
    if exited {
        let message = format!("shared memory of CTA rank {rank}, which has exited");
        ctx.find(warp, FindingKind::Race, lane as u32, message, None);
    }
    let shadow = &mut ctx.cluster.ctas[rank].shadow;
    if let Some(conflict) = shadow.access(offset, bytes, write, actor) {
        let what = format!("shared byte {}", conflict.at);
        report_race(ctx, warp, lane as u32, &what, conflict, write, actor);
    }
}

fn check_global(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (addr, bytes): (u64, u64),
    write: bool,
    actor: &Actor<'_>,
) {
    let memory = ctx.launch.memory;
    let Ok(index) = memory.find(addr, bytes) else {
        return;
    };
    let (Some(allocation), Some(checks)) = (memory.get(index), &ctx.launch.checks) else {
        return;
    };
    let offset = addr - allocation.base;
    if !write && let Some(at) = allocation.first_unwritten(offset, bytes) {
        let what = memory.describe(allocation.base + at);
        let message = format!("read of {what}, which nothing has written");
        ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
    }
    if let Some(conflict) = checks.access(index, offset, bytes, write, actor) {
        let what = memory.describe(allocation.base + conflict.at);
        report_race(ctx, warp, lane as u32, &what, conflict, write, actor);
    }
}

/// A strong read learns what the last releases to this address published.
pub(super) fn acquire(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
    order: Order,
) {
    if order == Order::Weak {
        return;
    }
    let view = match place {
        Target::Shared { rank, offset } => ctx.cluster.ctas[rank].sync_clocks.get(&offset).cloned(),
        Target::Global(addr) => {
            let Some(foreign) = ctx.launch.checks.as_ref().and_then(|c| c.published(addr)) else {
                return;
            };
            let mut all = (*View::new(0).all).clone();
            all.import(ctx.cluster.index, &foreign);
            let all = std::sync::Arc::new(all);
            Some(View {
                all,
                proxy: View::new(0).proxy,
            })
        }
        _ => None,
    };
    let (Some(view), Some(clocks)) = (view, &mut warp.clocks) else {
        return;
    };
    if order.acquires() {
        clocks.acquire(1 << lane, &view);
    } else {
        clocks.see(lane, &view);
    }
}

/// A strong write publishes what the thread released: all it did, or what its last fence covered.
pub(super) fn release(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
    order: Order,
) {
    if order == Order::Weak {
        return;
    }
    let Some(clocks) = &mut warp.clocks else {
        return;
    };
    let view = if order.releases() {
        Some(clocks.release(1 << lane))
    } else {
        clocks.fenced(lane).cloned()
    };
    let Some(view) = view else { return };
    match place {
        Target::Shared { rank, offset } => {
            let sync = &mut ctx.cluster.ctas[rank].sync_clocks;
            sync.entry(offset)
                .or_insert_with(|| View::new(0))
                .join(&view);
        }
        Target::Global(addr) => {
            if let Some(checks) = &ctx.launch.checks {
                checks.publish(addr, &view.all.export(ctx.cluster.index));
            }
        }
        _ => {}
    }
}
