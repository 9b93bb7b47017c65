//! The interpreter: runs one fragment of a warp until it blocks, ends, or has had its turn.

mod call;
mod control;
mod print;
mod registers;
mod stack;
mod system;

pub(super) use registers::alu;

use super::cluster::Cluster;
use super::converge::{self, Meeting};
use super::launch::LaunchState;
use super::warp::{Wait, Warp};
use crate::decode::{AtomOp, Inst, LOCAL_WINDOW, Op, PARAM_WINDOW, PredSrc, SHARED_WINDOW};
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::report::{Finding, FindingKind};

/// What to do after an instruction.
pub(super) enum Flow {
    /// Go on with the next one.
    Next,
    /// The fragment's place has changed: look it up again.
    Moved,
    /// The fragment is gone.
    Gone,
    /// The same instruction is tried again later.
    Block(Wait),
    /// Go on, but let others run first.
    Yield,
}

/// A fault and the lane that caused it.
pub(super) struct LaneFault(pub(super) u32, pub(super) Fault);

impl From<Fault> for LaneFault {
    fn from(fault: Fault) -> Self {
        Self(u32::MAX, fault)
    }
}

pub(super) type Step<T> = Result<T, LaneFault>;

/// What an instruction sees besides its warp.
pub(super) struct Ctx<'a, 'b> {
    pub(super) launch: &'a LaunchState<'b>,
    pub(super) cluster: &'a mut Cluster,
    pub(super) cta: usize,
    /// Index of the fragment.
    pub(super) at: usize,
    /// Lanes that execute.
    pub(super) mask: u32,
    pub(super) base: usize,
    pub(super) preds: usize,
    pub(super) pc: u32,
    pub(super) func: usize,
    pub(super) inst: &'a Inst,
}

impl Ctx<'_, '_> {
    pub(super) fn rank(&self) -> u32 {
        self.cta as u32
    }

    pub(super) fn checking(&self) -> bool {
        self.launch.checks.is_some()
    }

    /// Records a finding at this instruction.
    pub(super) fn find(
        &self,
        warp: &Warp,
        kind: FindingKind,
        lane: u32,
        message: String,
        other_line: Option<u32>,
    ) {
        let place = self.place(warp, lane);
        self.launch.record(Finding {
            other_line,
            ..Finding::new(kind, place, message)
        });
    }

    pub(super) fn place(&self, warp: &Warp, lane: u32) -> crate::report::Place {
        let lane = if lane < 32 {
            lane
        } else {
            self.mask.trailing_zeros().min(31)
        };
        self.launch.place_at(
            self.func,
            self.inst,
            self.cluster.ctas[self.cta].ctaid,
            warp.index as u32 * 32 + lane,
        )
    }
}

pub(super) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| mask >> i & 1 == 1)
}

fn fault_kind(fault: &Fault) -> FindingKind {
    match fault {
        Fault::OutOfBounds { .. } => FindingKind::OutOfBounds,
        Fault::Misaligned { .. } => FindingKind::Misaligned,
        Fault::Unwritten { .. } => FindingKind::Unwritten,
        Fault::Unsupported(_) => FindingKind::Unsupported,
        Fault::Invalid(message) if message.contains("mbarrier") => FindingKind::BarrierMisuse,
        Fault::Invalid(_) => FindingKind::Invalid,
    }
}

/// Runs fragment `at` for up to `budget` instructions; returns whether any instruction completed.
pub(super) fn run_fragment(
    launch: &LaunchState<'_>,
    cluster: &mut Cluster,
    cta: usize,
    warp: &mut Warp,
    at: usize,
    budget: u64,
) -> Result<bool, Box<Finding>> {
    let mut turn = Turn {
        launch,
        cluster,
        cta,
        at,
        left: budget,
        ran: false,
    };
    while turn.left > 0 && turn.pass_join(warp) && turn.run_block(warp)? {}
    Ok(turn.ran)
}

/// The turn of a fragment.
struct Turn<'a, 'b> {
    launch: &'a LaunchState<'b>,
    cluster: &'a mut Cluster,
    cta: usize,
    /// Index of the fragment.
    at: usize,
    /// Instructions that it may still run.
    left: u64,
    /// Whether an instruction has completed.
    ran: bool,
}

impl Turn<'_, '_> {
    /// At a join, which absorbs the fragment or gives it more lanes; returns whether it may go on.
    fn pass_join(&mut self, warp: &mut Warp) -> bool {
        let Some(fragment) = warp.fragments.get(self.at) else {
            return false;
        };
        let (frame, pc, before) = (fragment.frame, fragment.pc, fragment.mask);
        let func = self
            .launch
            .program
            .functions
            .get(warp.frames[frame as usize].func);
        let inst = func.and_then(|func| func.insts.get(pc as usize));
        if !inst.is_some_and(|inst| inst.join) {
            return true;
        }
        let goes_on = warp.arrive(self.at);
        // A fragment that only waits here has made no progress.
        self.ran |= !goes_on || warp.fragments[self.at].mask != before;
        goes_on
    }

    /// Runs up to the next join, jump or wait; returns whether the fragment may go on.
    fn run_block(&mut self, warp: &mut Warp) -> Result<bool, Box<Finding>> {
        let (launch, at) = (self.launch, self.at);
        let fragment = &warp.fragments[at];
        let (lanes, start) = (fragment.mask, fragment.pc);
        let frame = &warp.frames[fragment.frame as usize];
        let (func_index, base, preds) = (frame.func, frame.regs, frame.preds);
        let Some(func) = launch.program.functions.get(func_index) else {
            return Ok(false);
        };
        let mut pc = start;
        while self.left > 0 {
            let Some(inst) = func.insts.get(pc as usize) else {
                return Ok(false);
            };
            if inst.join && pc != start {
                break;
            }
            let mask = match inst.guard {
                PredSrc(0, _) => lanes,
                guard => lanes & warp.pred(preds, guard),
            };
            self.left -= 1;
            let watched = (func.has_wgmma && mask != 0) || warp.undefined.is_some();
            if !watched && registers::simple(warp, inst, base, preds, mask) {
                count(self.cluster, func_index, pc, mask);
                if !self.ran {
                    warp.fragments[at].wait = None;
                }
                pc += 1;
                self.ran = true;
                continue;
            }
            warp.fragments[at].pc = pc;
            let mut ctx = Ctx {
                launch,
                cluster: &mut *self.cluster,
                cta: self.cta,
                at,
                mask,
                base,
                preds,
                pc,
                func: func_index,
                inst,
            };
            match run_one(&mut ctx, warp, lanes, watched, &mut self.ran)? {
                Flow::Next => pc += 1,
                Flow::Moved => return Ok(true),
                _ => return Ok(false),
            }
        }
        warp.fragments[at].pc = pc;
        Ok(true)
    }
}

/// Runs one instruction and settles the fragment's wait; only `Next` and `Moved` let it go on.
fn run_one(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lanes: u32,
    watched: bool,
    ran: &mut bool,
) -> Result<Flow, Box<Finding>> {
    if ctx.inst.aligned && ctx.mask != 0 {
        match converge::gather(ctx, warp) {
            Meeting::Ready => warp.fragments[ctx.at].alone = false,
            Meeting::Wait => {
                warp.fragments[ctx.at].wait = Some(Wait::Converge);
                return Ok(Flow::Block(Wait::Converge));
            }
            Meeting::Absorbed => {
                *ran = true;
                return Ok(Flow::Gone);
            }
        }
    }
    if warp.undefined.is_some() {
        super::undefined::watch(ctx, warp);
    }
    let asynchronous = ctx.launch.program.functions[ctx.func].has_wgmma && ctx.mask != 0;
    let flow = if asynchronous && super::async_ops::watch_registers(ctx, warp) {
        Flow::Block(Wait::Async("wgmma results that it copies"))
    } else if watched && registers::simple(warp, ctx.inst, ctx.base, ctx.preds, ctx.mask) {
        Flow::Next
    } else {
        execute(ctx, warp, lanes).map_err(|fault| fatal(ctx, warp, fault))?
    };
    if !matches!(flow, Flow::Block(_)) {
        count(ctx.cluster, ctx.func, ctx.pc, ctx.mask);
        *ran = true;
    }
    let Some(fragment) = warp.fragments.get_mut(ctx.at) else {
        return Ok(flow);
    };
    match &flow {
        Flow::Gone => {}
        Flow::Block(wait) => fragment.wait = Some(wait.clone()),
        Flow::Next | Flow::Moved => fragment.wait = None,
        Flow::Yield => {
            fragment.pc = ctx.pc + 1;
            fragment.wait = None;
        }
    }
    Ok(flow)
}

/// The finding of a fault, which ends the run.
fn fatal(ctx: &Ctx<'_, '_>, warp: &Warp, LaneFault(lane, fault): LaneFault) -> Box<Finding> {
    let asserted = matches!(&fault, Fault::Invalid(m) if m.starts_with("assertion"));
    let kind = if asserted || matches!(ctx.inst.op, Op::Trap) {
        FindingKind::Trap
    } else {
        fault_kind(&fault)
    };
    Box::new(Finding::new(kind, ctx.place(warp, lane), fault.to_string()))
}

fn count(cluster: &mut Cluster, func: usize, pc: u32, mask: u32) {
    cluster.steps += 1;
    if let Some(n) = cluster
        .executed
        .get_mut(func)
        .and_then(|f| f.get_mut(pc as usize))
    {
        n.warps += 1;
        n.threads += u64::from(mask.count_ones());
    }
}

/// The space that a generic address lies in, and the address within it.
pub(super) fn generic_space(addr: u64) -> (Space, u64) {
    const SPAN: u64 = 1 << 32;
    for (window, space) in [
        (SHARED_WINDOW, Space::Shared),
        (LOCAL_WINDOW, Space::Local),
        (PARAM_WINDOW, Space::Param),
    ] {
        if addr.wrapping_sub(window) < SPAN {
            return (space, addr - window);
        }
    }
    (Space::Global, addr)
}

fn execute(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lanes: u32) -> Step<Flow> {
    let inst = ctx.inst;
    super::delayed::before(ctx, warp);
    match &inst.op {
        Op::Bra { target, reconverge } => {
            Ok(control::branch(ctx, warp, lanes, *target, *reconverge))
        }
        Op::Brx {
            index,
            targets,
            reconverge,
        } => control::brx(ctx, warp, lanes, *index, targets, *reconverge),
        Op::Call {
            callee,
            args,
            results,
        } => call::call(ctx, warp, *callee, args, results),
        Op::Ret => call::ret(ctx, warp, lanes),
        Op::Exit => Ok(control::exit(ctx, warp, lanes)),
        Op::Trap if ctx.mask != 0 => {
            Err(Fault::Invalid("the kernel executed a trap".into()).into())
        }
        Op::Unsupported(why) if ctx.mask != 0 => Err(Fault::Unsupported(why.to_string()).into()),
        _ if ctx.mask == 0 => Ok(Flow::Next),
        Op::MapReplace {
            space,
            addr,
            offset,
            field,
            value,
        } => super::access::replace_map(ctx, warp, (*space, *addr, *offset), *field, *value)
            .map(|()| Flow::Next),
        Op::MapCopy { dst, src } => {
            super::access::copy_map(ctx, warp, *dst, *src).map(|()| Flow::Next)
        }
        Op::Sleep => {
            warp.polls += 1;
            Ok(Flow::Yield)
        }
        Op::Clock { d, shift, bits } => {
            let now = ctx.cluster.steps >> shift;
            let keep = if *bits == 64 { u64::MAX } else { 0xffff_ffff };
            warp.write(ctx.base, *d, &[now & keep; 32], ctx.mask);
            Ok(Flow::Next)
        }
        Op::MapFence { addr, offset } => {
            for lane in lanes_of(ctx.mask) {
                let at = warp.reg(ctx.base, *addr)[lane].wrapping_add_signed(*offset);
                ctx.cluster.new_maps.remove(&at);
            }
            Ok(Flow::Next)
        }
        Op::Alloca { d, bytes, align } => {
            stack::allocate(ctx, warp, (*d, *bytes, *align)).map(|()| Flow::Next)
        }
        Op::StackSave { d } => {
            stack::save(ctx, warp, *d);
            Ok(Flow::Next)
        }
        Op::StackRestore { a } => {
            stack::restore(ctx, warp, *a);
            Ok(Flow::Next)
        }
        Op::Ld(access) => super::access::load(ctx, warp, access).map(|()| Flow::Next),
        Op::St(access) => super::access::store(ctx, warp, access).map(|()| Flow::Next),
        Op::Atom(atom) => {
            super::access::atomic(ctx, warp, atom)?;
            let yields = interrupted(ctx, &atom.op);
            Ok(if yields { Flow::Yield } else { Flow::Next })
        }
        Op::StAsync(access, bar, offset) => {
            super::async_ops::store_async(ctx, warp, access, *bar, *offset)
        }
        Op::Shfl { .. }
        | Op::Vote { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Elect { .. }
        | Op::ActiveMask { .. }
        | Op::WarpSync { .. }
        | Op::Movmatrix { .. }
        | Op::Mma(_) => super::warpwide::execute(ctx, warp, lanes),
        Op::WmmaLoad(form) => super::wmma::load(ctx, warp, form).map(|()| Flow::Next),
        Op::WmmaStore(form) => super::wmma::store(ctx, warp, form).map(|()| Flow::Next),
        Op::Wmma(form) => Ok(super::wmma::mma(ctx, warp, form).map(|()| Flow::Next)?),
        Op::Ldmatrix(form) => super::access::matrix(ctx, warp, form, false).map(|()| Flow::Next),
        Op::Stmatrix(form) => super::access::matrix(ctx, warp, form, true).map(|()| Flow::Next),
        Op::Barrier { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Fence { .. }
        | Op::ProxyFence => super::barrier::execute(ctx, warp),
        Op::Mbar {
            op, addr, offset, ..
        } => super::barrier::mbarrier(ctx, warp, op, *addr, *offset),
        Op::SetMaxNReg { count, increase } => Ok(set_max_registers(ctx, warp, *count, *increase)),
        _ => super::async_ops::execute(ctx, warp),
    }
}

/// Whether the schedule lets others run right after an atomic that may have taken a lock, so that they find
/// it taken.
fn interrupted(ctx: &mut Ctx<'_, '_>, op: &AtomOp) -> bool {
    let locks = matches!(op, AtomOp::Cas | AtomOp::Exch);
    locks && ctx.launch.options.seed != 0 && ctx.cluster.random() & 1 == 0
}

/// `setmaxnreg`: a warp gives registers to its CTA's pool, or waits until the pool has what it asks
/// for (PTX ISA 9.7.19.5).
fn set_max_registers(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, count: u32, increase: bool) -> Flow {
    let begun = matches!(warp.fragments[ctx.at].wait, Some(Wait::Registers { .. }));
    if ctx.mask != warp.live && !begun {
        let message = format!("only lanes {:#010x} of the warp execute it", ctx.mask);
        ctx.find(warp, FindingKind::BarrierDivergence, 32, message, None);
    }
    let now = warp.max_regs;
    let known = std::mem::replace(&mut warp.max_regs_known, true);
    // Without .maxnreg the warp may have begun with fewer than there was room for.
    let surplus = increase && now > count && !known;
    if (increase && now > count && known) || (!increase && now < count) {
        let message = format!("{} to {count} from {now} registers a thread", ctx.inst.name);
        ctx.find(warp, FindingKind::Invalid, 32, message, None);
        return Flow::Next;
    }
    let pool = &mut ctx.cluster.ctas[ctx.cta].free_registers;
    let change = 32 * now.abs_diff(count);
    if !increase || surplus {
        *pool += change;
        ctx.cluster.wake_all();
    } else if *pool >= change {
        *pool -= change;
    } else {
        return Flow::Block(Wait::Registers { wanted: change });
    }
    warp.max_regs = count;
    Flow::Next
}
