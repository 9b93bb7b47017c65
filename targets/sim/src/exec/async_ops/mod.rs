//! Asynchronous work: `cp.async`, bulk and tensor copies, and wgmma.
//!
//! Work is queued at issue and done later, at a time that the schedule's seed chooses, so that a
//! missing wait shows in the results as well as in the checks.

mod bulk;
mod complete;
mod copies;
mod groups;
mod memory;
mod product;
mod tcgen05;
mod wgmma;

pub(super) use copies::{complete_bytes, store_async};
pub(crate) use groups::LaneGroups;
pub(crate) use tcgen05::TensorCta;
pub(super) use tcgen05::{TENSOR_AGENTS, check_exit};
pub(crate) use wgmma::WgmmaEntry;
pub(super) use wgmma::watch_registers;

use super::cluster::{COPY_AGENTS, RING_AGENTS, WGMMA_AGENTS};
use super::step::{Ctx, Flow, Step, lanes_of};
use super::warp::Warp;
use crate::check::clock::View;
use crate::check::shadow::ASYNC;
use crate::decode::{Bulk, Op, Tensor, TensorDirection};
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::tensor_map::TensorMap;

/// Turns by which late work is late; bounded, since a thread may poll for it.
const LATE: u64 = 200;

/// A place in shared memory: the CTA's rank and the offset.
type Place = (usize, u64);

/// Who does asynchronous work, and from which instruction.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    cta: usize,
    thread: u32,
    func: usize,
    pc: u32,
    line: u32,
    entity: u32,
    clock: u32,
    flags: u32,
    view: View,
}

#[derive(Debug, Clone)]
enum Work {
    /// Rank and offset of the destination, source, bytes, bytes that are really read; one an active lane.
    Copies(Vec<(usize, u64, u64, u64, u64)>),
    CopyArrive {
        place: Place,
        lanes: u32,
    },
    Bulk(BulkWork),
    Tensor(TensorWork),
}

#[derive(Debug, Clone)]
struct BulkWork {
    form: Box<Bulk>,
    dst: u64,
    src: u64,
    size: u64,
    mbar: Option<Place>,
    ranks: u32,
}

#[derive(Debug, Clone)]
struct TensorWork {
    form: Box<Tensor>,
    map: Box<TensorMap>,
    coords: Vec<i32>,
    offsets: Vec<u16>,
    shared: u64,
    mbar: Option<Place>,
    ranks: u32,
}

impl Work {
    fn reduces(&self) -> bool {
        match self {
            Self::Bulk(work) => work.form.reduce.is_some(),
            Self::Tensor(work) => matches!(work.form.direction, TensorDirection::Reduce(_)),
            Self::Copies(_) | Self::CopyArrive { .. } => false,
        }
    }
}

/// Work that is under way.
#[derive(Debug, Clone)]
pub(crate) struct AsyncOp {
    ready: u64,
    seq: u64,
    agent: Agent,
    work: Work,
    /// Threads and groups that it belongs to.
    groups: Vec<(u32, bool, u64)>,
}

impl Ctx<'_, '_> {
    fn agent(&mut self, warp: &mut Warp, mask: u32, local: u32, flags: u32) -> Agent {
        let lane = mask.trailing_zeros().min(31);
        let thread = warp.index as u32 * 32 + lane;
        let mut agent = Agent {
            cta: self.cta,
            thread,
            func: self.func,
            pc: self.pc,
            line: self.inst.line,
            entity: 0,
            clock: 0,
            flags,
            view: View::default(),
        };
        if let Some(clocks) = &mut warp.clocks {
            let cta = &mut self.cluster.ctas[self.cta];
            let clock = &mut cta.agent_clocks[local as usize];
            *clock += 1;
            agent.clock = *clock;
            let base = self.cta * self.launch.entities_per_cta();
            agent.entity = base as u32 + self.launch.padded_threads() + local;
            agent.view = clocks.release(mask);
        }
        agent
    }

    fn ring_agent(&mut self, warp: &mut Warp, mask: u32) -> Agent {
        let cta = &mut self.cluster.ctas[self.cta];
        let local = WGMMA_AGENTS + COPY_AGENTS + cta.next_agent;
        cta.next_agent = (cta.next_agent + 1) % RING_AGENTS;
        self.agent(warp, mask, local, ASYNC)
    }

    fn delay(&mut self) -> u64 {
        let tick = self.cluster.tick;
        match self.launch.options.seed {
            0 => tick + 2,
            _ => {
                let r = self.cluster.random();
                tick + if r.is_multiple_of(4) {
                    LATE
                } else {
                    r >> 8 & 31
                }
            }
        }
    }

    fn queue(&mut self, agent: Agent, work: Work, groups: Vec<(u32, bool, u64)>) {
        let ready = self.delay();
        self.cluster.seq += 1;
        let seq = self.cluster.seq;
        self.cluster.pending.push(AsyncOp {
            ready,
            seq,
            agent,
            work,
            groups,
        });
    }

    /// The groups of a thread of the CTA: of bulk copies, or of `cp.async`.
    fn groups(&mut self, thread: u32, bulk: bool) -> &mut LaneGroups {
        &mut self.cluster.ctas[self.cta].groups[usize::from(bulk)][thread as usize]
    }
}

pub(super) fn execute(ctx: &mut Ctx<'_, '_>, warp: &mut Warp) -> Step<Flow> {
    match &ctx.inst.op {
        Op::CpAsync(form) => copies::cp_async(ctx, warp, form),
        Op::CpCommit => Ok(groups::commit(ctx, warp, false)),
        Op::BulkCommit => Ok(groups::commit(ctx, warp, true)),
        Op::CpWait { pending } => groups::wait(ctx, warp, *pending as usize, false),
        Op::BulkWait { pending, .. } => groups::wait(ctx, warp, *pending as usize, true),
        Op::CpArrive {
            addr,
            offset,
            no_inc,
        } => copies::arrive(ctx, warp, *addr, *offset, *no_inc),
        Op::Bulk(form) => bulk::bulk(ctx, warp, form),
        Op::Tensor(form) => bulk::tensor(ctx, warp, form),
        Op::Wgmma(form) => wgmma::issue(ctx, warp, form),
        Op::Tcgen05(op) => tcgen05::execute(ctx, warp, op),
        Op::WgmmaFence => {
            warp.unfenced.fill(false);
            (warp.fence_open, warp.fenced) = (true, true);
            Ok(Flow::Next)
        }
        Op::WgmmaCommit => {
            ctx.cluster.ctas[ctx.cta].wgmma[warp.index].push_back(WgmmaEntry::Commit);
            let open = std::mem::take(&mut warp.wgmma_open);
            warp.wgmma_groups.push_back(open);
            Ok(Flow::Next)
        }
        Op::WgmmaWait { pending } => wgmma::wait(ctx, warp, *pending as usize),
        _ => Err(Fault::Unsupported(format!("`{}`", ctx.inst.name)).into()),
    }
}

pub(super) fn check_outstanding(ctx: &Ctx<'_, '_>, warp: &mut Warp) {
    if !ctx.checking() {
        return;
    }
    tcgen05::report_early_use(ctx, warp);
    let first = warp.index * 32;
    for lane in lanes_of(ctx.mask) {
        for (bulk, what) in [(true, "bulk copies"), (false, "cp.async copies")] {
            let groups = &ctx.cluster.ctas[ctx.cta].groups[usize::from(bulk)];
            if groups[first + lane].busy() {
                let message = format!("the thread exits while {what} are under way");
                ctx.find(
                    warp,
                    FindingKind::OutstandingAsync,
                    lane as u32,
                    message,
                    None,
                );
            }
        }
    }
    if !warp.wgmma_groups.is_empty() || !warp.wgmma_open.is_empty() {
        ctx.find(
            warp,
            FindingKind::OutstandingAsync,
            32,
            "the warp exits without waiting for its wgmma".into(),
            None,
        );
    }
}
