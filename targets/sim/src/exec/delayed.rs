//! Relaxed stores that other threads see late.
//!
//! Nothing orders a relaxed or volatile store with the thread's other stores but a fence, a release or a
//! barrier (PTX ISA 8.8). Schedules other than the first keep some back, so that code which relies on the
//! order of its stores shows what it may read instead.

use super::cluster::Cluster;
use super::launch::LaunchState;
use super::step::Ctx;
use super::warp::Warp;
use crate::decode::{Op, Order};

/// A store that is not yet visible.
#[derive(Debug, Clone)]
pub(crate) struct Delayed {
    /// CTA's rank, warp and lane.
    thread: (usize, usize, usize),
    addr: u64,
    /// Bytes and value of each element.
    bytes: u64,
    values: Vec<u64>,
    due: u64,
}

impl Delayed {
    fn overlaps(&self, addr: u64, bytes: u64) -> bool {
        let own = self.bytes * self.values.len() as u64;
        addr < self.addr + own && self.addr < addr + bytes
    }

    fn perform(&self, launch: &LaunchState<'_>) {
        let memory = launch.memory;
        let all = self.bytes * self.values.len() as u64;
        // Its bounds were checked when it was issued.
        let Some(a) = (memory.find(self.addr, all).ok()).and_then(|i| memory.get(i)) else {
            return;
        };
        let offset = self.addr - a.base;
        for (value, i) in self.values.iter().zip(0..) {
            a.store_element(offset + i * self.bytes, self.bytes, *value);
        }
        a.mark_written(offset, all);
    }
}

/// Keeps a store back if the schedule says so.
pub(super) fn keep_back(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (addr, bytes): (u64, u64),
    regs: &[u32],
) -> bool {
    if ctx.launch.options.seed == 0 {
        return false;
    }
    let r = ctx.cluster.random();
    if r & 1 == 0 {
        return false;
    }
    let values = regs.iter().map(|&reg| warp.reg(ctx.base, reg)[lane]);
    let delayed = Delayed {
        thread: (ctx.cta, warp.index, lane),
        addr,
        bytes,
        values: values.collect(),
        due: ctx.cluster.tick + (r >> 8) % 200,
    };
    ctx.cluster.delayed.push_back(delayed);
    true
}

/// A thread sees its own stores: those that it is about to access are performed.
pub(super) fn catch_up(ctx: &mut Ctx<'_, '_>, warp: &Warp, lane: usize, addr: u64, bytes: u64) {
    let thread = (ctx.cta, warp.index, lane);
    let own = |d: &Delayed| d.thread == thread;
    let mut delayed = ctx.cluster.delayed.iter();
    if delayed.any(|d| own(d) && d.overlaps(addr, bytes)) {
        ctx.cluster.perform_delayed(ctx.launch, own);
    }
}

/// Whether an operation orders the stores before it.
fn orders(op: &Op) -> bool {
    match op {
        Op::Ld(access) => access.order.acquires(),
        Op::St(access) => access.order.releases(),
        Op::Atom(atom) => atom.order != Order::Relaxed,
        Op::Barrier { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Fence { .. }
        | Op::ProxyFence
        | Op::WarpSync { .. }
        | Op::Mbar { .. }
        | Op::CpAsync(_)
        | Op::Bulk(_)
        | Op::Tensor(_)
        | Op::StAsync(..) => true,
        _ => false,
    }
}

/// Performs what the threads that execute `ctx.inst` have kept back, if it orders memory.
pub(super) fn before(ctx: &mut Ctx<'_, '_>, warp: &Warp) {
    if ctx.cluster.delayed.is_empty() || !orders(&ctx.inst.op) {
        return;
    }
    let (cta, index, mask) = (ctx.cta, warp.index, ctx.mask);
    let own =
        move |d: &Delayed| (d.thread.0, d.thread.1) == (cta, index) && mask >> d.thread.2 & 1 == 1;
    ctx.cluster.perform_delayed(ctx.launch, own);
}

impl Cluster {
    fn perform_delayed(&mut self, launch: &LaunchState<'_>, which: impl Fn(&Delayed) -> bool) {
        self.delayed.retain(|d| {
            let now = which(d);
            if now {
                d.perform(launch);
            }
            !now
        });
    }

    /// Performs the stores whose time has come.
    pub(super) fn perform_due(&mut self, launch: &LaunchState<'_>) {
        let tick = self.tick;
        self.perform_delayed(launch, |d| d.due <= tick);
    }
}
