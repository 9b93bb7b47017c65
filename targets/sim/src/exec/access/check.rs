//! Checks of a thread's access: initialisation, races, and what strong accesses order.

use super::place::{Target, peek, step_target};
use crate::check::clock::View;
use crate::check::shadow::{Actor, Conflict, Epoch, STRONG};
use crate::decode::{Order, Slot};
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::exec::step::Ctx;
use crate::exec::warp::Warp;
use crate::report::{Finding, FindingKind, Severity};

fn flags(order: Order) -> u32 {
    if order == Order::Weak { 0 } else { STRONG }
}

/// An access in which a race was found.
pub(in crate::exec) struct Racing<'a> {
    /// What is accessed, in words.
    pub(in crate::exec) what: String,
    /// Whether it is written.
    pub(in crate::exec) wrote: bool,
    /// Whether what is written is there already.
    pub(in crate::exec) same: bool,
    pub(in crate::exec) actor: &'a Actor<'a>,
}

/// Reports a race that the shadow found. Threads that write what is there already leave one result in
/// any order: that is a note, as racecheck has it.
pub(in crate::exec) fn report_race(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: u32,
    conflict: Conflict,
    racing: &Racing<'_>,
) {
    let (kind, severity, message) = race_message(ctx.launch, ctx.cluster, conflict, racing);
    ctx.launch.record(Finding {
        other_line: Some(conflict.before.line()),
        severity,
        ..Finding::new(kind, ctx.place(warp, lane), message)
    });
}

/// Kind, weight and words of a race.
pub(in crate::exec) fn race_message(
    launch: &LaunchState<'_>,
    cluster: &Cluster,
    conflict: Conflict,
    racing: &Racing<'_>,
) -> (FindingKind, Severity, String) {
    let before = conflict.before;
    let Racing { what, wrote, .. } = racing;
    let verb = |w: bool| if w { "write" } else { "read" };
    let mut severity = Severity::Error;
    let mut kind = FindingKind::Race;
    let mut reason = "is not ordered after it";
    if conflict.before_wrote && racing.actor.lacks_only_proxy_fence(before) {
        kind = FindingKind::MissingProxyFence;
        reason = "is ordered after it, but no proxy fence makes it visible to the async proxy";
    } else if conflict.before_wrote && *wrote && racing.same {
        severity = Severity::Note;
        reason = "is not ordered after it, and both write the same value";
    }
    let message = format!(
        "{} of {what} {reason}: {} by {} at PTX line {}",
        verb(*wrote),
        verb(conflict.before_wrote),
        describe_entity(launch, cluster, before),
        before.line()
    );
    (kind, severity, message)
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

/// What a lane does with the memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doing<'a> {
    Read,
    /// Reads registers of the thread alone: [`unwritten`] tells what of it nothing wrote.
    Load,
    /// With the registers that are written, an element each, where they are.
    Write(&'a [Slot]),
    /// With the bytes that are written.
    WriteBytes(&'a [u8]),
}

/// Checks of one lane's access: initialisation and races.
#[inline]
pub(super) fn check(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (place, bytes): (Target, u64),
    doing: Doing<'_>,
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
    let view = clocks.view(lane);
    let actor = Actor { epoch, view };
    match place {
        Target::Shared { rank, offset } => {
            check_shared(ctx, warp, lane, (rank, offset, bytes), doing, &actor);
        }
        Target::Global(addr) => check_global(ctx, warp, lane, (addr, bytes), doing, &actor),
        Target::Local(_) | Target::Param(_) => {}
    }
}

/// Whether the lane's registers hold what memory holds already.
fn same_value(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (place, bytes): (Target, u64),
    doing: Doing<'_>,
) -> bool {
    let regs = match doing {
        Doing::Read | Doing::Load => return false,
        Doing::Write(regs) => regs,
        Doing::WriteBytes(data) => {
            return data
                .iter()
                .zip(0..)
                .all(|(&byte, i)| peek(ctx, step_target(place, i), 1) == Some(byte.into()));
        }
    };
    let Some(each) = bytes.checked_div(regs.len() as u64) else {
        return false;
    };
    let low = u64::MAX >> (64 - 8 * each.clamp(1, 8));
    (regs.iter().zip(0..)).all(|(&reg, i)| {
        let there = peek(ctx, step_target(place, i * each), each);
        there == Some(warp.reg(ctx.base, reg)[lane] & low)
    })
}

/// What a read takes from global or shared memory that nothing wrote, in words.
pub(super) fn unwritten(ctx: &Ctx<'_, '_>, place: Target, bytes: u64) -> Option<String> {
    let what = match place {
        Target::Shared { rank, offset } => {
            let written = &ctx.cluster.ctas[rank].written;
            let at = written.first_unwritten(offset as usize, bytes as usize)?;
            ctx.launch.describe_shared(at as u64) + " in shared memory"
        }
        Target::Global(addr) => {
            let memory = ctx.launch.memory;
            let a = memory.get(memory.find(addr, bytes).ok()?)?;
            let at = a.first_unwritten(addr - a.base, bytes)?;
            memory.describe(a.base + at)
        }
        Target::Local(_) | Target::Param(_) => return None,
    };
    Some(format!("read of {what}, which nothing has written"))
}

fn check_shared(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (rank, offset, bytes): (usize, u64, u64),
    doing: Doing<'_>,
    actor: &Actor<'_>,
) {
    let write = !matches!(doing, Doing::Read | Doing::Load);
    let cta = &mut ctx.cluster.ctas[rank];
    if write {
        cta.written.set(offset as usize, bytes as usize);
    } else if matches!(doing, Doing::Read)
        && let Some(message) = unwritten(ctx, Target::Shared { rank, offset }, bytes)
    {
        ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
    }
    if ctx.cta != rank {
        check_remote(ctx, warp, lane, rank, actor);
    }
    let shadow = &mut ctx.cluster.ctas[rank].shadow;
    if let Some(conflict) = shadow.access(offset, bytes, write, actor) {
        let place = Target::Shared { rank, offset };
        let racing = Racing {
            what: ctx.launch.describe_shared(conflict.at) + " in shared memory",
            wrote: write,
            same: same_value(ctx, warp, lane, (place, bytes), doing),
            actor,
        };
        report_race(ctx, warp, lane as u32, conflict, &racing);
    }
}

/// An access of another CTA's shared memory, which lasts until that CTA's threads have exited.
fn check_remote(ctx: &mut Ctx<'_, '_>, warp: &Warp, lane: usize, rank: usize, actor: &Actor<'_>) {
    let cta = &mut ctx.cluster.ctas[rank];
    let last = (actor.epoch.clock, ctx.inst.line);
    cta.remote.insert(actor.epoch.entity, last);
    if cta.warps.iter().all(|w| w.live == 0) {
        let message = format!("shared memory of CTA rank {rank}, which has exited");
        ctx.find(warp, FindingKind::Race, lane as u32, message, None);
    }
}

fn check_global(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (addr, bytes): (u64, u64),
    doing: Doing<'_>,
    actor: &Actor<'_>,
) {
    let memory = ctx.launch.memory;
    let write = !matches!(doing, Doing::Read | Doing::Load);
    let Ok(index) = memory.find(addr, bytes) else {
        return;
    };
    let (Some(allocation), Some(checks)) = (memory.get(index), &ctx.launch.checks) else {
        return;
    };
    let offset = addr - allocation.base;
    if matches!(doing, Doing::Read)
        && let Some(message) = unwritten(ctx, Target::Global(addr), bytes)
    {
        ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
    }
    if let Some(conflict) = checks.access(index, offset, bytes, write, actor) {
        let racing = Racing {
            what: memory.describe(allocation.base + conflict.at),
            wrote: write,
            same: same_value(ctx, warp, lane, (Target::Global(addr), bytes), doing),
            actor,
        };
        report_race(ctx, warp, lane as u32, conflict, &racing);
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
