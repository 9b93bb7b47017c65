//! mbarriers in shared memory (PTX ISA 9.7.13.15).

use super::join;
use crate::check::clock::View;
use crate::check::shadow::{Actor, Epoch, STRONG};
use crate::decode::{MbarOp, RANK_SHIFT, Slot};
use crate::exec::access::{Racing, SharedBytes, report_race, shared_place};
use crate::exec::cluster::Cluster;
use crate::exec::step::{Ctx, Flow, LaneFault, Step, generic_space, lanes_of};
use crate::exec::warp::{Wait, Warp};
use crate::fault::Fault;
use crate::units::mbarrier::{Mbarrier, pending_count};

/// Clocks of an mbarrier.
#[derive(Debug, Clone, Default)]
pub(crate) struct MbarClocks {
    pending: Option<View>,
    done: Option<View>,
}

impl MbarClocks {
    /// An arrival, or completed bytes, with what happened before.
    pub(in crate::exec) fn arrive(&mut self, view: &View, completed: bool) {
        join(&mut self.pending, view);
        if completed {
            self.complete();
        }
    }

    fn complete(&mut self) {
        if let Some(view) = self.pending.take() {
            join(&mut self.done, &view);
        }
    }
}

/// Shared address of an mbarrier as rank and offset.
pub(in crate::exec) fn place_of(ctx: &Ctx<'_, '_>, addr: u64) -> Result<(usize, u64), Fault> {
    let addr = if addr >> 32 == 0 {
        addr
    } else {
        generic_space(addr).1
    };
    if !addr.is_multiple_of(8) {
        return Err(Fault::Misaligned { addr, align: 8 });
    }
    shared_place(ctx.cluster, addr, 8)
}

/// Loads, changes and stores the mbarrier; the closure says whether a phase completed.
pub(in crate::exec) fn with_mbarrier<T>(
    cluster: &mut Cluster,
    (rank, offset): (usize, u64),
    f: impl FnOnce(&mut Mbarrier) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let addr = (rank as u64) << RANK_SHIFT | offset;
    let mut memory = SharedBytes(cluster);
    let mut object = Mbarrier::load(&mut memory, addr)?;
    let out = f(&mut object)?;
    object.store(&mut memory, addr)?;
    cluster.wake_all();
    Ok(out)
}

/// An mbarrier operation is a strong access of the object: only its initialisation must be ordered before.
fn touch(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (rank, offset): (usize, u64),
    init: bool,
) {
    let Some(clocks) = &warp.clocks else { return };
    let flags = if init { 0 } else { STRONG };
    let epoch = Epoch::new(
        ctx.cluster.index,
        clocks.entity(lane),
        clocks.own(lane),
        ctx.inst.line,
        flags,
    );
    let view = clocks.view(lane).clone();
    let actor = Actor { epoch, view: &view };
    let cta = &mut ctx.cluster.ctas[rank];
    if init {
        cta.written.set(offset as usize, 8);
    }
    if let Some(conflict) = ctx.cluster.ctas[rank]
        .shadow
        .access(offset, 8, init, &actor)
    {
        let what = ctx.launch.describe_shared(offset);
        let racing = Racing {
            what: format!("the mbarrier {what}"),
            wrote: init,
            same: false,
            actor: &actor,
        };
        report_race(ctx, warp, lane as u32, conflict, &racing);
    }
}

pub(in crate::exec) fn mbarrier(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    op: &MbarOp,
    addr: Slot,
    offset: i64,
) -> Step<Flow> {
    if let MbarOp::PendingCount(d, a) = op {
        let out = warp
            .reg(ctx.base, *a)
            .map(|token| u64::from(pending_count(token)));
        warp.write(ctx.base, *d, &out, ctx.mask);
        return Ok(Flow::Next);
    }
    let addrs = warp
        .reg(ctx.base, addr)
        .map(|a| a.wrapping_add_signed(offset));
    if let MbarOp::Wait { .. } = op {
        return wait(ctx, warp, op, &addrs);
    }
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place = place_of(ctx, addrs[lane]).map_err(fail)?;
        one(ctx, warp, op, lane, place).map_err(fail)?;
    }
    Ok(Flow::Next)
}

fn one(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    op: &MbarOp,
    lane: usize,
    place: (usize, u64),
) -> Result<(), Fault> {
    let value = |slot: Slot, warp: &Warp| warp.reg(ctx.base, slot)[lane] as u32;
    match op {
        MbarOp::Init(count) => {
            let count = value(*count, warp);
            touch(ctx, warp, lane, place, true);
            let object = Mbarrier::init(count)?;
            let addr = (place.0 as u64) << RANK_SHIFT | place.1;
            object.store(&mut SharedBytes(ctx.cluster), addr)?;
            ctx.cluster.ctas[place.0].mbar_clocks.remove(&place.1);
        }
        MbarOp::Inval => {
            with_mbarrier(ctx.cluster, place, |_| Ok(()))?;
            let cta = &mut ctx.cluster.ctas[place.0];
            // The memory is free for any use, also by the async proxy, which knows mbarriers.
            cta.shadow.forget(place.1, 8);
            cta.shared[place.1 as usize..][..8].fill(0);
        }
        MbarOp::ExpectTx(bytes) => {
            let bytes = value(*bytes, warp);
            touch(ctx, warp, lane, place, false);
            with_mbarrier(ctx.cluster, place, |m| m.expect_tx(bytes))?;
        }
        MbarOp::CompleteTx(bytes) => {
            let bytes = value(*bytes, warp);
            touch(ctx, warp, lane, place, false);
            let completed = with_mbarrier(ctx.cluster, place, |m| m.complete_tx(bytes))?;
            if completed {
                ctx.cluster.ctas[place.0]
                    .mbar_clocks
                    .entry(place.1)
                    .or_default()
                    .complete();
            }
        }
        MbarOp::Arrive { .. } => arrive(ctx, warp, op, lane, place)?,
        MbarOp::Wait { .. } | MbarOp::PendingCount(..) => {}
    }
    Ok(())
}

/// `mbarrier.arrive` of one lane, with what it expects and the state that it gives.
fn arrive(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    op: &MbarOp,
    lane: usize,
    place: (usize, u64),
) -> Result<(), Fault> {
    let MbarOp::Arrive {
        count,
        expect,
        drop,
        no_complete,
        release,
        state,
    } = op
    else {
        return Ok(());
    };
    let value = |slot: Slot| warp.reg(ctx.base, slot)[lane] as u32;
    let count = count.map_or(1, &value);
    let expect = expect.map(&value);
    touch(ctx, warp, lane, place, false);
    let outcome = with_mbarrier(ctx.cluster, place, |m| {
        if *no_complete && count >= m.pending && m.tx == 0 {
            return Err(Fault::Invalid(
                "mbarrier.arrive.noComplete completes the phase".into(),
            ));
        }
        if let Some(bytes) = expect {
            m.expect_tx(bytes)?;
        }
        m.arrive(count, *drop)
    })?;
    if let Some(clocks) = &mut warp.clocks {
        let entry = ctx.cluster.ctas[place.0]
            .mbar_clocks
            .entry(place.1)
            .or_default();
        if *release {
            let view = clocks.release(1 << lane);
            entry.arrive(&view, outcome.completed);
        } else if outcome.completed {
            entry.complete();
        }
    }
    if let Some(d) = state {
        warp.regs[ctx.base + *d as usize][lane] = outcome.token;
    }
    Ok(())
}

/// Whether this attempt of `try_wait` ends without waiting, as when its time limit expires at once. In every
/// second schedule that is the first one of each lane, so that code which does not try again shows it.
fn gives_up(ctx: &Ctx<'_, '_>, warp: &Warp) -> bool {
    let (seed, line) = (ctx.launch.options.seed, ctx.inst.line);
    let chosen = seed != 0 && (seed + u64::from(line)).is_multiple_of(2);
    let begun = warp.fragments[ctx.at].wait.is_some();
    let again = |&(at, lanes): &(u32, u32)| at == line && lanes & ctx.mask != 0;
    chosen && !begun && !warp.expired.iter().any(again)
}

/// The lanes have waited at this line to the end: they may give up again.
fn forget(warp: &mut Warp, line: u32, lanes: u32) {
    for (at, expired) in &mut warp.expired {
        *expired &= if *at == line { !lanes } else { u32::MAX };
    }
    warp.expired.retain(|(_, expired)| *expired != 0);
}

/// What those knew who completed the last phase.
fn completed<'c>(ctx: &'c Ctx<'_, '_>, (rank, offset): (usize, u64)) -> Option<&'c View> {
    let clocks = ctx.cluster.ctas.get(rank)?.mbar_clocks.get(&offset)?;
    clocks.done.as_ref()
}

/// Whether a lane needs no wait to know that the last phase is complete: another thread has told it. Else a
/// phase that is complete might as well not be so yet.
fn knows(ctx: &Ctx<'_, '_>, warp: &Warp, lane: usize, place: (usize, u64)) -> bool {
    match (&warp.clocks, completed(ctx, place)) {
        (Some(clocks), Some(done)) => clocks.view(lane).covers(done),
        _ => true,
    }
}

/// Whether a lane's phase is complete.
fn ready(
    ctx: &mut Ctx<'_, '_>,
    place: (usize, u64),
    token: u64,
    parity: bool,
) -> Result<bool, Fault> {
    let addr = (place.0 as u64) << RANK_SHIFT | place.1;
    let object = Mbarrier::load(&mut SharedBytes(ctx.cluster), addr)?;
    Ok(if parity {
        object.done_parity(token as u32)
    } else {
        object.done_token(token)
    })
}

fn wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, op: &MbarOp, addrs: &[u64; 32]) -> Step<Flow> {
    let MbarOp::Wait {
        d,
        phase,
        parity,
        blocking,
        acquire,
    } = op
    else {
        return Ok(Flow::Next);
    };
    let phases = *warp.reg(ctx.base, *phase);
    let early = *blocking && gives_up(ctx, warp);
    let mut done = 0u32;
    let mut waiting = None;
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place = place_of(ctx, addrs[lane]).map_err(fail)?;
        if warp.fragments[ctx.at].wait.is_none() {
            touch(ctx, warp, lane, place, false);
        }
        let complete = ready(ctx, place, phases[lane], *parity).map_err(fail)?;
        if complete && (!early || knows(ctx, warp, lane, place)) {
            done |= 1 << lane;
        } else {
            waiting.get_or_insert((place, parity.then_some(phases[lane] as u32)));
        }
    }
    if let (Some(((rank, offset), parity)), true) = (waiting, *blocking) {
        let begun = &warp.fragments[ctx.at].wait;
        let timed = matches!(begun, Some(Wait::Mbarrier { timed_out, .. }) if *timed_out);
        if early {
            warp.expired.push((ctx.inst.line, ctx.mask));
        } else if !timed {
            return Ok(Flow::Block(Wait::Mbarrier {
                rank: rank as u32,
                offset,
                parity,
                timed_out: false,
            }));
        }
    }
    if *acquire {
        learn(ctx, warp, done, addrs);
    }
    warp.write_pred(ctx.preds, *d, done, ctx.mask);
    if done == ctx.mask {
        forget(warp, ctx.inst.line, ctx.mask);
        return Ok(Flow::Next);
    }
    let at = addrs[ctx.mask.trailing_zeros().min(31) as usize];
    warp.poll(true, at & ((1 << RANK_SHIFT) - 1));
    Ok(Flow::Yield)
}

/// The lanes of `done` learn what those knew who completed their phases.
fn learn(ctx: &Ctx<'_, '_>, warp: &mut Warp, done: u32, addrs: &[u64; 32]) {
    let Some(clocks) = &mut warp.clocks else {
        return;
    };
    for lane in lanes_of(done) {
        let place = shared_place(ctx.cluster, generic_space(addrs[lane]).1, 8);
        if let Some(view) = place.ok().and_then(|place| completed(ctx, place)) {
            clocks.acquire(1 << lane, view);
        }
    }
}
