//! Scopes: which threads execute operators, who of them issues, where they meet.

use super::emitter::Emitter;
use super::progress::StorePipeline;
use crate::state::rings::rings_below;
use crate::state::threads::{NamedBarrier, Selection, ThreadGroup, WARP_THREADS};
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::walk::blocks;
use axe_passes::ir::{Int, Ints, Predicate};
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

/// Barriers of a CTA (PTX ISA 9.7.13.1, `barrier`); number 0 is the CTA's own.
const BARRIERS: i64 = 16;

impl<'c> Emitter<'c> {
    /// `axe.scope`.
    pub(crate) fn scope(&mut self, op: Op<'c>) -> PassResult<'c> {
        let selection = Selection::of(op).ok_or_else(|| {
            self.error("a scope of threads has no operators on this target: expected warps or more")
        })?;
        let Some(body) = blocks(op).first().copied() else {
            return Err(self.error("expected the body of a scope"));
        };
        let keys = rings_below(op);
        let before = self.cursor_values(&keys)?;
        let condition = self.selects(&selection)?;
        let inner = self.group.select(&selection);
        let registers = op.attribute("registers").ok().and_then(attribute::integer);
        let role = |emitter: &mut Self| {
            let outside = emitter.enter(&selection, inner)?;
            if let Some(registers) = registers {
                emitter.budget(registers)?;
            }
            emitter.begin_orders(op)?;
            emitter.block(body)?;
            emitter.wait_until_empty(op)?;
            emitter.end_orders(op)?;
            emitter.drain()?;
            emitter.leave(outside);
            emitter.cursor_values(&keys)
        };
        let after = match condition {
            None => role(self)?,
            Some(condition) => {
                // Threads outside have not waited for what those inside have.
                let start = self.start;
                let after = self.when(condition, &before, role)?;
                self.start = start;
                after
            }
        };
        self.set_cursors(&keys, &after);
        Ok(())
    }

    /// The roles that a kernel ends with: what one of them does not select goes on with the others. Where every role came
    /// together with the others again before the next one, ptxas took threads for divergent behind the producer's loops, and
    /// kept the descriptors of products in registers of threads: seven to twelve instructions more for each `wgmma`.
    pub(crate) fn roles(&mut self, scopes: &[Op<'c>]) -> PassResult<'c> {
        let (Some(&first), Some(others)) = (scopes.first(), scopes.get(1..)) else {
            return Ok(());
        };
        self.builder.location = first.location();
        let condition = match Selection::of(first) {
            Some(selection) if !others.is_empty() => self.selects(&selection)?,
            _ => None,
        };
        let Some(condition) = condition else {
            self.scope(first)?;
            return self.roles(others);
        };
        let (cursors, start) = (self.cursors.clone(), self.start);
        let mut regions = Vec::new();
        for role in [&scopes[..1], others] {
            let (region, _, inner) = self.builder.region(&[]);
            let outside = std::mem::replace(&mut self.builder, inner);
            self.roles(role)?;
            let ended = std::mem::replace(&mut self.builder, outside);
            ended.operation("scf.yield", &[], &[], &[], Vec::new())?;
            self.cursors.clone_from(&cursors);
            self.start = start;
            regions.push(region);
        }
        self.builder
            .operation("scf.if", &[condition], &[], &[], regions)?;
        Ok(())
    }

    /// Whether this thread is in the selected range of its thread group; `None` when every thread is.
    fn selects(&self, selection: &Selection) -> PassResult<'c, Option<Val<'c>>> {
        let Some((begin, end)) = selection.range.filter(|_| selection.unit > 0) else {
            return Ok(None);
        };
        let (begin, end) = (begin * selection.unit, end * selection.unit);
        let (ints, warp) = (self.ints(), self.warp_in_group()?);
        let mut condition = None;
        if begin > 0 {
            let after = ints.less(Int::Known(begin - 1), warp)?;
            condition = Some(self.both(condition, after)?);
        }
        if end < self.group.warps {
            let before = ints.less(warp, Int::Known(end))?;
            condition = Some(self.both(condition, before)?);
        }
        Ok(condition)
    }

    /// Makes a part of the thread group the one that executes; gives what [`Self::leave`] restores.
    fn enter(&mut self, selection: &Selection, inner: ThreadGroup) -> PassResult<'c, Outside<'c>> {
        let outside = Outside {
            group: self.group.clone(),
            thread: self.thread,
            threads: self.threads,
            leader: self.leader,
            store_pipeline: std::mem::replace(
                &mut self.store_pipeline,
                StorePipeline::new(self.loops > 0),
            ),
        };
        let ints = self.ints();
        let thread = Int::Value(self.thread);
        let thread = match selection.range {
            Some((begin, _)) => {
                ints.sub(thread, Int::Known(begin * selection.unit * WARP_THREADS))?
            }
            None if inner.warps < self.group.warps => ints.rem(thread, inner.threads())?,
            None => thread,
        };
        self.thread = ints.value(thread)?;
        self.threads = inner.threads();
        self.group = inner;
        self.leader = None;
        self.leader = Some(self.leads()?);
        Ok(outside)
    }

    fn leave(&mut self, outside: Outside<'c>) {
        self.group = outside.group;
        self.thread = outside.thread;
        self.threads = outside.threads;
        self.leader = outside.leader;
        self.store_pipeline = outside.store_pipeline;
    }

    /// Finds the number of this thread's warp, in a form that ptxas knows to be uniform, and the leader.
    pub(crate) fn find_warp(&mut self) -> PassResult<'c> {
        let ints = self.ints();
        let i32 = types::integer(self.builder, 32);
        let own = ints.div(Int::Value(self.thread), WARP_THREADS)?;
        let operands = [
            ints.value(Int::Known(-1))?,
            ints.value(own)?,
            ints.value(Int::ZERO)?,
            ints.value(Int::Known(31))?,
        ];
        let kind = self.builder.parsed("#nvvm<shfl_kind idx>")?;
        let warp = self
            .builder
            .value("nvvm.shfl.sync", &operands, i32, &[("kind", kind)])?;
        self.warp = Some(warp);
        self.leader = Some(self.leads()?);
        Ok(())
    }

    /// The number of this thread's warp in the CTA, known to be the same in all its lanes.
    fn warp(&self) -> PassResult<'c, Int<'c>> {
        match self.warp {
            Some(warp) => Ok(Int::Value(warp)),
            None => Err(self.error("a kernel without roles has no warp number")),
        }
    }

    /// The number of this thread's warp in its thread group, known to be uniform.
    pub(crate) fn warp_in_group(&self) -> PassResult<'c, Int<'c>> {
        let (ints, warp) = (self.ints(), self.warp()?);
        let first = self.group.firsts.first().copied().unwrap_or(0);
        let within = ints.sub(warp, Int::Known(first))?;
        match self.group.firsts.len() {
            0 | 1 => Ok(within),
            _ => ints.rem(within, self.group.spacing()),
        }
    }

    /// The number of this thread's thread group among those that run side by side.
    pub(crate) fn group_number(&self) -> PassResult<'c, Int<'c>> {
        if self.group.count() == 1 {
            return Ok(Int::ZERO);
        }
        let ints = self.ints();
        let first = self.group.firsts.first().copied().unwrap_or(0);
        let within = ints.sub(self.warp()?, Int::Known(first))?;
        ints.div(within, self.group.spacing())
    }

    /// Whether this thread is the one of its thread group that issues what one thread issues.
    pub(crate) fn leads(&mut self) -> PassResult<'c, Val<'c>> {
        if let Some(leader) = self.leader {
            return Ok(leader);
        }
        let elected = self.elect()?;
        if self.group.warps == 1 {
            return Ok(elected);
        }
        let first = self
            .ints()
            .compare(Predicate::Equal, self.warp_in_group()?, Int::ZERO)?;
        self.both(Some(first), elected)
    }

    /// Whether this thread is the one of its warp that issues (PTX ISA 9.7.13.17, `elect.sync`: sm_90 and up).
    pub(crate) fn elect(&self) -> PassResult<'c, Val<'c>> {
        if self.chip.has_tma {
            let bool = types::integer(self.builder, 1);
            return self.builder.value("nvvm.elect.sync", &[], bool, &[]);
        }
        let ints = self.ints();
        let lane = ints.rem(Int::Value(self.thread), WARP_THREADS)?;
        ints.compare(Predicate::Equal, lane, Int::ZERO)
    }

    /// `setmaxnreg`: gives registers back to the multiprocessor, or takes more (PTX ISA 9.7.20.5).
    fn budget(&self, registers: i64) -> PassResult<'c> {
        let at_launch = crate::facts::chip::MULTIPROCESSOR_REGISTERS / self.kernel.threads / 8 * 8;
        let action = match registers > at_launch {
            true => "increase",
            false => "decrease",
        };
        let i32 = types::integer(self.builder, 32);
        let attributes = [
            ("regCount", IntegerAttribute::new(i32, registers).into()),
            (
                "action",
                self.builder.parsed(&format!("#nvvm<action {action}>"))?,
            ),
        ];
        self.builder
            .operation("nvvm.setmaxregister", &[], &[], &attributes, Vec::new())?;
        Ok(())
    }

    /// Orders the memory accesses of the thread group's threads.
    pub(crate) fn barrier(&mut self) -> PassResult<'c> {
        if self.group.threads() == self.kernel.threads {
            self.builder
                .operation("nvvm.barrier0", &[], &[], &[], Vec::new())?;
            return Ok(());
        }
        if self.group.warps == 1 {
            return self.warp_barrier();
        }
        let group = self.group.clone();
        if let [first] = group.firsts[..] {
            return self.named_barrier(first, group.warps);
        }
        // A number that is known at run time would reserve all barriers (PTX ISA, `barrier`).
        for (at, &first) in (0..).zip(&group.firsts) {
            let number = self.group_number()?;
            let own = self
                .ints()
                .compare(Predicate::Equal, number, Int::Known(at))?;
            self.when(own, &[], |emitter| {
                emitter.named_barrier(first, group.warps)?;
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }

    /// `bar.warp.sync`.
    pub(crate) fn warp_barrier(&self) -> PassResult<'c> {
        let mask = Ints::new(self.builder, 32).value(Int::Known(-1))?;
        self.builder
            .operation("nvvm.bar.warp.sync", &[mask], &[], &[], Vec::new())?;
        Ok(())
    }

    /// The barrier of these warps, whose number is known when compiling.
    pub(crate) fn named_barrier(&mut self, first: i64, warps: i64) -> PassResult<'c> {
        self.meet(NamedBarrier::Group { first, warps }, warps)
    }

    /// The number of a named barrier.
    pub(crate) fn barrier_of(&mut self, barrier: NamedBarrier) -> PassResult<'c, i64> {
        let next = i64::try_from(self.barriers.len()).unwrap_or(BARRIERS) + 1;
        let number = *self.barriers.entry(barrier).or_insert(next);
        match number < BARRIERS {
            true => Ok(number),
            false => Err(self.error(format!(
                "the kernel's scopes need more than the {BARRIERS} barriers of a CTA"
            ))),
        }
    }

    /// Waits at a named barrier for so many warps.
    pub(crate) fn meet(&mut self, barrier: NamedBarrier, warps: i64) -> PassResult<'c> {
        let number = self.barrier_of(barrier)?;
        let ints = self.ints();
        let operands = [
            ints.value(Int::Known(number))?,
            ints.value(Int::Known(warps * WARP_THREADS))?,
        ];
        let segments = self.builder.segments(&[1, 1, 0]);
        self.builder
            .operation("nvvm.barrier", &operands, &[], &[segments], Vec::new())?;
        Ok(())
    }

    /// Waits for the bulk stores that the thread group's leader issued: shared memory must outlive them.
    pub(crate) fn drain(&mut self) -> PassResult<'c> {
        if !std::mem::take(&mut self.bulk_stores) {
            return Ok(());
        }
        self.bulk_wait(0, true)
    }

    /// `cp.async.bulk.wait_group`, of this thread's groups.
    pub(crate) fn bulk_wait(&self, pending: i64, read: bool) -> PassResult<'c> {
        let i32 = types::integer(self.builder, 32);
        let mut attributes = vec![("group", IntegerAttribute::new(i32, pending).into())];
        if read {
            attributes.push(("read", self.builder.unit()));
        }
        self.builder.operation(
            "nvvm.cp.async.bulk.wait_group",
            &[],
            &[],
            &attributes,
            Vec::new(),
        )?;
        Ok(())
    }
}

/// What a scope hides while its body is emitted.
pub(crate) struct Outside<'c> {
    group: ThreadGroup,
    thread: Val<'c>,
    threads: i64,
    leader: Option<Val<'c>>,
    store_pipeline: StorePipeline<'c>,
}
