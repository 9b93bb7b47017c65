//! CTA and cluster barriers, fences, and mbarriers.

use super::access::{SharedBytes, shared_place};
use super::cluster::Cluster;
use super::launch::LaunchState;
use super::step::{Ctx, Flow, Step, generic_space, lanes_of};
use super::warp::{Wait, Warp};
use crate::check::clock::View;
use crate::check::shadow::{Actor, Epoch, STRONG};
use crate::decode::{MbarOp, Op, PredSrc, RANK_SHIFT, Slot};
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::mbarrier::{Mbarrier, pending_count};

/// One of the 16 barriers of a CTA.
#[derive(Debug, Clone, Default)]
pub(crate) struct CtaBarrier {
    generation: u64,
    /// Threads awaited, where an instruction named a number.
    expected: Option<u32>,
    /// Warp and lanes of each arrival of this generation.
    arrivals: Vec<(usize, u32)>,
    view: Option<View>,
    done: Option<View>,
    /// popc, and, or of the predicates of `barrier.red`.
    red: (u32, bool, bool),
    red_done: (u32, bool, bool),
}

/// Clocks of an mbarrier.
#[derive(Debug, Clone, Default)]
pub(crate) struct MbarClocks {
    pending: Option<View>,
    done: Option<View>,
}

fn join(into: &mut Option<View>, view: &View) {
    match into {
        Some(v) => v.join(view),
        none => *none = Some(view.clone()),
    }
}

impl MbarClocks {
    /// An arrival, or completed bytes, with what happened before.
    pub(super) fn arrive(&mut self, view: &View, completed: bool) {
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

fn barrier(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    (id, count): (Slot, Option<Slot>),
    arrive: bool,
    aligned: bool,
    red: Option<(u8, Slot, u32, PredSrc)>,
) -> Step<Flow> {
    let lane = ctx.mask.trailing_zeros() as usize;
    if let Some(Wait::Barrier { id, generation }) = warp.fragments[ctx.at].wait.clone() {
        let waiting = id as usize;
        try_complete(ctx, warp, waiting);
        let barrier = &ctx.cluster.ctas[ctx.cta].barriers[waiting];
        if barrier.generation == generation {
            return Ok(Flow::Block(Wait::Barrier { id, generation }));
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
        return Ok(Flow::Next);
    }
    let number = warp.reg(ctx.base, id)[lane];
    let Some(barrier) = ctx.cluster.ctas[ctx.cta].barriers.get_mut(number as usize) else {
        return Err(Fault::Invalid(format!("barrier {number} of 16")).into());
    };
    let generation = barrier.generation;
    let expected = count.map(|slot| warp.reg(ctx.base, slot)[lane] as u32);
    if let Some(n) = expected {
        if n == 0 || n % 32 != 0 {
            return Err(Fault::Invalid(format!(
                "barrier {number} with {n} threads, which is no multiple of 32"
            ))
            .into());
        }
        if !barrier.arrivals.is_empty() && barrier.expected != Some(n) {
            let message = format!(
                "barrier {number} is used with {n} threads while others wait for {:?}",
                barrier.expected
            );
            return Err(Fault::Invalid(message.replace("barrier", "mbarrier or barrier")).into());
        }
    }
    if aligned && ctx.mask != warp.live {
        let message = format!(
            "lanes {:#010x} of warp {} reach the barrier without lanes {:#010x}",
            ctx.mask,
            warp.index,
            warp.live & !ctx.mask
        );
        ctx.find(
            warp,
            FindingKind::BarrierDivergence,
            lane as u32,
            message,
            None,
        );
    }
    let barrier = &mut ctx.cluster.ctas[ctx.cta].barriers[number as usize];
    if barrier.arrivals.is_empty() {
        barrier.red = (0, true, false);
        barrier.expected = expected;
    }
    let own = warp.index;
    match barrier
        .arrivals
        .iter_mut()
        .find(|(w, mask)| *w == own && mask & ctx.mask == 0)
    {
        Some((_, mask)) => *mask |= ctx.mask,
        None => barrier.arrivals.push((own, ctx.mask)),
    }
    if let Some((.., p)) = red {
        let value = warp.pred(ctx.preds, p) & ctx.mask;
        barrier.red.0 += value.count_ones();
        barrier.red.1 &= value == ctx.mask;
        barrier.red.2 |= value != 0;
    }
    if let Some(clocks) = &mut warp.clocks {
        let view = clocks.release(ctx.mask);
        join(&mut barrier.view, &view);
    }
    ctx.cluster.wake_all();
    if let Some(over) =
        expected.filter(|&n| arrived(ctx.cluster, ctx.cta, number as usize, warp) > n)
    {
        return Err(Fault::Invalid(format!(
            "more threads arrive at mbarrier or barrier {number} than the {over} it counts"
        ))
        .into());
    }
    try_complete(ctx, warp, number as usize);
    if arrive {
        return Ok(Flow::Next);
    }
    warp.fragments[ctx.at].wait = Some(Wait::Barrier {
        id: number as u32,
        generation,
    });
    if ctx.cluster.ctas[ctx.cta].barriers[number as usize].generation != generation {
        return self::barrier(ctx, warp, (id, count), false, aligned, red);
    }
    Ok(Flow::Block(Wait::Barrier {
        id: number as u32,
        generation,
    }))
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

fn cluster_arrive(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, release: bool) -> Flow {
    if release && let Some(clocks) = &mut warp.clocks {
        let view = clocks.release(ctx.mask);
        join(&mut ctx.cluster.arrive_view, &view);
    }
    ctx.cluster.arrived += ctx.mask.count_ones();
    warp.cluster_generation = ctx.cluster.generation + 1;
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

fn cluster_wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp) -> Flow {
    cluster_complete(ctx, warp);
    if warp.cluster_generation == 0 {
        ctx.find(
            warp,
            FindingKind::BarrierMisuse,
            32,
            "barrier.cluster.wait without an arrive".into(),
            None,
        );
    }
    if ctx.cluster.generation < warp.cluster_generation {
        return Flow::Block(Wait::Cluster {
            generation: warp.cluster_generation,
        });
    }
    if let (Some(clocks), Some(view)) = (&mut warp.clocks, &ctx.cluster.done_view) {
        clocks.acquire(ctx.mask, view);
    }
    Flow::Next
}

/// Shared address of an mbarrier as rank and offset.
pub(super) fn place_of(ctx: &Ctx<'_, '_>, addr: u64) -> Result<(usize, u64), Fault> {
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
pub(super) fn with_mbarrier<T>(
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
        super::access::report_race(
            ctx,
            warp,
            lane as u32,
            "an mbarrier",
            conflict,
            init,
            &actor,
        );
    }
}

pub(super) fn mbarrier(
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
        let fail = |fault| super::step::LaneFault(lane as u32, fault);
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
            let at = place.1 as usize;
            ctx.cluster.ctas[place.0].shared[at..at + 8].fill(0);
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
        MbarOp::Arrive {
            count,
            expect,
            drop,
            no_complete,
            release,
            state,
        } => {
            let count = count.map_or(1, |slot| value(slot, warp));
            let expect = expect.map(|slot| value(slot, warp));
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
        }
        MbarOp::Wait { .. } | MbarOp::PendingCount(..) => {}
    }
    Ok(())
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
    let mut done = 0u32;
    let mut waiting = None;
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| super::step::LaneFault(lane as u32, fault);
        let place = place_of(ctx, addrs[lane]).map_err(fail)?;
        if warp.fragments[ctx.at].wait.is_none() {
            touch(ctx, warp, lane, place, false);
        }
        let addr = (place.0 as u64) << RANK_SHIFT | place.1;
        let object = Mbarrier::load(&mut SharedBytes(ctx.cluster), addr).map_err(fail)?;
        let token = phases[lane];
        let ready = if *parity {
            object.done_parity(token as u32)
        } else {
            object.done_token(token)
        };
        if ready {
            done |= 1 << lane;
        } else {
            waiting.get_or_insert((place, parity.then_some(token as u32)));
        }
    }
    if let (Some(((rank, offset), parity)), true) = (waiting, *blocking) {
        let timed = matches!(
            &warp.fragments[ctx.at].wait,
            Some(Wait::Mbarrier {
                timed_out: true,
                ..
            })
        );
        // The suspension of try_wait ends at the latest when the system's time limit expires.
        if !timed {
            return Ok(Flow::Block(Wait::Mbarrier {
                rank: rank as u32,
                offset,
                parity,
                timed_out: false,
            }));
        }
    }
    if let (Some(clocks), true) = (&mut warp.clocks, *acquire) {
        for lane in lanes_of(done) {
            let Ok((rank, offset)) = shared_place(ctx.cluster, generic_space(addrs[lane]).1, 8)
            else {
                continue;
            };
            if let Some(view) = ctx.cluster.ctas[rank]
                .mbar_clocks
                .get(&offset)
                .and_then(|c| c.done.as_ref())
            {
                clocks.acquire(1 << lane, view);
            }
        }
    }
    warp.write_pred(ctx.preds, *d, done, ctx.mask);
    if done != ctx.mask {
        return Ok(Flow::Yield);
    }
    Ok(Flow::Next)
}

impl Cluster {
    /// What a wait is for, in words.
    pub(super) fn describe_wait(&self, cta: usize, wait: Option<&Wait>) -> String {
        match wait {
            None => "runs (it may be polling)".into(),
            Some(Wait::Barrier { id, .. }) => {
                let barrier = &self.ctas[cta].barriers[*id as usize];
                let arrived: Vec<usize> = barrier.arrivals.iter().map(|(w, _)| *w).collect();
                let expected = barrier
                    .expected
                    .map_or("all threads".into(), |n| format!("{n} threads"));
                format!("waits at barrier {id} for {expected}; warps {arrived:?} have arrived")
            }
            Some(Wait::Cluster { .. }) => {
                format!(
                    "waits at the cluster barrier; {} threads have arrived",
                    self.arrived
                )
            }
            Some(Wait::Lanes { mask }) => format!("waits for lanes {mask:#010x} of its warp"),
            Some(Wait::Mbarrier {
                rank,
                offset,
                parity,
                ..
            }) => {
                let bits = self
                    .ctas
                    .get(*rank as usize)
                    .and_then(|c| c.shared.get(*offset as usize..*offset as usize + 8));
                let object = bits
                    .and_then(|b| b.try_into().ok())
                    .map(u64::from_le_bytes)
                    .map(Mbarrier::decode);
                let state = match object {
                    Some(Ok(m)) => format!(
                        "its phase {} waits for {} of {} arrivals and {} bytes",
                        u32::from(m.phase),
                        m.pending,
                        m.expected,
                        m.tx
                    ),
                    _ => "which is not initialised".into(),
                };
                let wanted = parity.map_or(String::new(), |p| format!(" phase parity {p} of"));
                format!(
                    "waits for{wanted} the mbarrier at shared address {offset} of CTA rank {rank}; {state}"
                )
            }
            Some(Wait::Registers { wanted }) => format!(
                "waits for {wanted} registers; the CTA's pool has {}",
                self.ctas[cta].free_registers
            ),
            Some(Wait::Async(what)) => format!("waits for {what}"),
        }
    }
}

impl LaunchState<'_> {
    pub(crate) fn padded_threads(&self) -> u32 {
        self.block.iter().product::<u32>().div_ceil(32) * 32
    }

    pub(crate) fn entities_per_cta(&self) -> usize {
        (self.padded_threads() + self.agents()) as usize
    }

    /// Agents of a CTA.
    pub(crate) fn agents(&self) -> u32 {
        let tensor = if self.program.tensor_memory {
            super::async_ops::TENSOR_AGENTS
        } else {
            0
        };
        super::cluster::AGENTS + tensor
    }
}
