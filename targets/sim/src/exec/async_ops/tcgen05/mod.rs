//! Blackwell's tensor memory and its operations (PTX ISA 9.7.16).
//!
//! A CTA has one pipe: products and copies of all its threads are done in the order of their issue,
//! which the ISA promises for the pairs that it calls pipelined. Loads and stores of tensor memory are
//! done at issue, by agents of their warp that `tcgen05.wait` retires, so that a missing wait or
//! commit is a race even where the value is right.

mod access;
mod complete;
mod issue;

pub(super) use access::report_early_use;

use super::memory::record;
use super::{Agent, Place};
use crate::check::shadow::{Actor, Conflict, Epoch, Shadow};
use crate::decode::{Op, Tcgen05};
use crate::exec::access::describe_entity;
use crate::exec::cluster::{AGENTS, Cluster};
use crate::exec::launch::LaunchState;
use crate::exec::step::{Ctx, Flow, Step, lanes_of};
use crate::exec::warp::{Wait, Warp};
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::tcgen05::{Instruction, Operands, Touch};
use crate::units::tensor_memory::{COLUMNS, CopyShape, LANES, TensorMemory};
use std::collections::VecDeque;
use std::ops::Range;

/// Agents beyond [`AGENTS`]: the pipe, and each warp's loads and stores.
pub(in crate::exec) const TENSOR_AGENTS: u32 = 65;
const PIPE: u32 = AGENTS;

fn load_agent(warp: &Warp) -> u32 {
    AGENTS + 1 + warp.index as u32 % 32
}

fn store_agent(warp: &Warp) -> u32 {
    AGENTS + 33 + warp.index as u32 % 32
}

/// Tensor memory of a CTA, and its pipe.
#[derive(Debug)]
pub(crate) struct TensorCta {
    /// `None` only while an operation has it.
    memory: Option<Box<TensorMemory>>,
    shadow: Shadow,
    pub(in crate::exec) queue: VecDeque<TensorOp>,
    /// Clock of the pipe's last product or copy.
    last_work: u32,
}

impl TensorCta {
    pub(in crate::exec) fn new(checked: bool) -> Self {
        let bytes = if checked { LANES * COLUMNS * 4 } else { 0 };
        Self {
            memory: Some(Box::default()),
            shadow: Shadow::new(bytes),
            queue: VecDeque::new(),
            last_work: 0,
        }
    }
}

/// An operation in the pipe.
#[derive(Debug, Clone)]
pub(crate) struct TensorOp {
    pub(super) ready: u64,
    agent: Agent,
    work: TensorWork,
}

#[derive(Debug, Clone)]
enum TensorWork {
    Mma {
        ranks: Vec<usize>,
        instruction: Instruction,
        operands: Operands,
    },
    Copy {
        ranks: Vec<usize>,
        shape: CopyShape,
        address: u32,
        descriptor: u64,
    },
    Commit(Vec<Place>),
}

fn no_memory() -> Fault {
    Fault::Invalid("this CTA has no tensor memory".into())
}

fn memory(cluster: &mut Cluster, rank: usize) -> Result<&mut TensorMemory, Fault> {
    let tensor = cluster.ctas.get_mut(rank).and_then(|c| c.tensor.as_mut());
    tensor
        .and_then(|t| t.memory.as_deref_mut())
        .ok_or_else(no_memory)
}

/// Reports an instruction that all lanes of a warp must execute together.
fn check_aligned(ctx: &Ctx<'_, '_>, warp: &Warp) {
    if ctx.mask != warp.live {
        let message = format!("only lanes {:#010x} of the warp execute it", ctx.mask);
        ctx.find(warp, FindingKind::BarrierDivergence, 32, message, None);
    }
}

/// An operand that must be the same in all lanes.
fn uniform(ctx: &Ctx<'_, '_>, warp: &Warp, (slot, offset): (u32, i64)) -> Result<u32, Fault> {
    let values = warp.reg(ctx.base, slot);
    let first = values[ctx.mask.trailing_zeros().min(31) as usize] as u32;
    if lanes_of(ctx.mask).any(|lane| values[lane] as u32 != first) {
        return Err(Fault::Invalid(
            "the lanes of the warp name different operands of a tcgen05 instruction".into(),
        ));
    }
    Ok(first.wrapping_add_signed(offset as i32))
}

pub(super) fn execute(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, op: &Tcgen05) -> Step<Flow> {
    match op {
        Tcgen05::Alloc { dst, columns } => {
            check_aligned(ctx, warp);
            let columns = uniform(ctx, warp, (*columns, 0))?;
            let Some(address) = memory(ctx.cluster, ctx.cta)?.allocate(columns)? else {
                return Ok(Flow::Block(Wait::Async("free columns of tensor memory")));
            };
            forget(ctx, address, columns);
            let lane = ctx.mask.trailing_zeros().min(31) as usize;
            crate::exec::access::store_word(ctx, warp, lane, *dst, address)?;
        }
        Tcgen05::Dealloc { address, columns } => {
            check_aligned(ctx, warp);
            let address = uniform(ctx, warp, (*address, 0))?;
            let columns = uniform(ctx, warp, (*columns, 0))?;
            deallocate(ctx, warp, address, columns)?;
        }
        Tcgen05::Relinquish => {
            check_aligned(ctx, warp);
            memory(ctx.cluster, ctx.cta)?.relinquish();
        }
        Tcgen05::Mma { pair, form } => issue::mma(ctx, warp, *pair, form)?,
        Tcgen05::Copy {
            pair,
            shape,
            address,
            descriptor,
        } => issue::copy(ctx, warp, *pair, *shape, *address, *descriptor)?,
        Tcgen05::Commit { mbar, multicast } => issue::commit(ctx, warp, *mbar, *multicast)?,
        Tcgen05::Load(form) => access::load(ctx, warp, form)?,
        Tcgen05::Store(form) => access::store(ctx, warp, form)?,
        Tcgen05::Wait { store } => {
            check_aligned(ctx, warp);
            access::wait(ctx, warp, *store);
        }
        Tcgen05::Fence => {}
    }
    Ok(Flow::Next)
}

/// New columns have no past.
fn forget(ctx: &mut Ctx<'_, '_>, address: u32, columns: u32) {
    if let Some(tensor) = &mut ctx.cluster.ctas[ctx.cta].tensor {
        for lane in 0..LANES {
            let at = 4 * (lane * COLUMNS + address as usize) as u64;
            tensor.shadow.forget(at, 4 * u64::from(columns));
        }
    }
}

/// All accesses must be ordered before the columns are freed.
fn deallocate(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    address: u32,
    columns: u32,
) -> Result<(), Fault> {
    memory(ctx.cluster, ctx.cta)?.deallocate(address, columns)?;
    let agent = ctx.agent(warp, ctx.mask, store_agent(warp), super::ASYNC);
    let first = address as usize;
    let freed = first..first + columns as usize;
    touch(
        ctx.cluster,
        ctx.launch,
        &agent,
        ctx.cta,
        (0..LANES, freed, Touch::Write),
    );
    ctx.cluster.wake_all();
    Ok(())
}

/// Checks an access of a rectangle of tensor memory: initialisation and races. Call it before the access.
fn touch(
    cluster: &mut Cluster,
    launch: &LaunchState<'_>,
    agent: &Agent,
    rank: usize,
    (lanes, columns, touch): (Range<usize>, Range<usize>, Touch),
) {
    // Outside the memory, the access itself fails.
    if launch.checks.is_none() || lanes.end > LANES || columns.end > COLUMNS {
        return;
    }
    if touch != Touch::Write
        && let Ok(memory) = memory(cluster, rank)
        && let Some((lane, column)) = memory.first_unwritten(lanes.clone(), columns.clone())
    {
        let message =
            format!("read of tensor memory lane {lane} column {column}, which nothing has written");
        record(
            launch,
            cluster,
            agent,
            FindingKind::Unwritten,
            message,
            None,
        );
    }
    let epoch = Epoch::new(
        cluster.index,
        agent.entity,
        agent.clock,
        agent.line,
        agent.flags,
    );
    let actor = Actor {
        epoch,
        view: &agent.view,
    };
    let Some(tensor) = &mut cluster.ctas[rank].tensor else {
        return;
    };
    let bytes = 4 * columns.len() as u64;
    let mut found = None;
    for lane in lanes {
        let at = 4 * (lane * COLUMNS + columns.start) as u64;
        let conflict = tensor
            .shadow
            .access(at, bytes, touch != Touch::Read, &actor);
        found = found.or(conflict);
    }
    if let Some(conflict) = found {
        report(cluster, launch, agent, touch, &conflict);
    }
}

fn report(
    cluster: &Cluster,
    launch: &LaunchState<'_>,
    agent: &Agent,
    touch: Touch,
    conflict: &Conflict,
) {
    let verb = |w: bool| if w { "write" } else { "read" };
    let cell = conflict.at as usize / 4;
    let line = conflict.before.line();
    let message = format!(
        "{} of tensor memory lane {} column {} is not ordered after it: {} by {} at PTX line {line}",
        verb(touch != Touch::Read),
        cell / COLUMNS,
        cell % COLUMNS,
        verb(conflict.before_wrote),
        describe_entity(launch, cluster, conflict.before),
    );
    record(
        launch,
        cluster,
        agent,
        FindingKind::Race,
        message,
        Some(line),
    );
}

/// Checks at the exit of a CTA's last thread: columns are freed, and somebody waited for the pipe.
pub(in crate::exec) fn check_exit(ctx: &mut Ctx<'_, '_>, warp: &Warp) {
    if !ctx.launch.program.tensor_memory || warp.live != 0 {
        return;
    }
    let over = |cta: &crate::exec::cluster::Cta| cta.warps.iter().all(|w| w.live == 0);
    // The exiting warp is not in its CTA's list now.
    if !over(&ctx.cluster.ctas[ctx.cta]) {
        return;
    }
    let allocated = memory(ctx.cluster, ctx.cta).map_or(0, |m| m.allocated());
    if allocated > 0 {
        let message = format!("the CTA exits with {allocated} columns of tensor memory allocated");
        ctx.find(warp, FindingKind::OutstandingAsync, 32, message, None);
    }
    if warp.clocks.is_none() || !ctx.cluster.ctas.iter().all(over) {
        return;
    }
    let views: Vec<_> = (ctx.cluster.ctas.iter())
        .filter_map(|cta| cta.exit_view.clone())
        .collect();
    for (rank, cta) in ctx.cluster.ctas.iter().enumerate() {
        let base = (rank * ctx.launch.entities_per_cta()) as u32;
        let entity = base + ctx.launch.padded_threads() + PIPE;
        let last = cta.tensor.as_ref().map_or(0, |t| t.last_work);
        if views.iter().all(|view| view.all.get(entity) < last) {
            let message =
                "the CTA's last product or copy in tensor memory is waited for by no thread";
            ctx.find(
                warp,
                FindingKind::OutstandingAsync,
                32,
                message.into(),
                None,
            );
        }
    }
}

/// Whether an instruction loads tensor memory into registers.
pub(super) fn loads(op: &Op) -> bool {
    matches!(op, Op::Tcgen05(op) if matches!(**op, Tcgen05::Load(_)))
}
