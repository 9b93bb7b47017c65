//! Where the threads of a scope are in the slots of shared memory through which register tensors leave.
//!
//! With several slots a subtile is written while those before it are stored. All copies of a scope go around together: which
//! slot is next is a number that every thread has, and that loops and branches carry, so that the copies of one tile, and
//! those of the next, go on where the last one stopped.

use super::emitter::Emitter;
use crate::state::cursor::Taken;
use crate::state::slots::Slots;
use crate::state::types;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::Int;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Whether an operator may store a register tensor by way of subtiles.
fn stores_registers(op: &Op<'_>) -> bool {
    let first = || operands(*op).first().map(|source| source.r#type());
    name(*op) == ops::COPY
        && results(*op).is_empty()
        && first().is_some_and(|source| types::tensor_shape(source).is_some())
}

impl<'c> Emitter<'c> {
    /// The slot of a ring that the next subtile goes to, in bytes from the ring's start.
    pub(crate) fn next_subtile(&self, slots: Slots) -> PassResult<'c, Int<'c>> {
        match slots.count {
            1 => Ok(Int::ZERO),
            _ => self.ints().mul(self.store_pipeline.next, slots.bytes),
        }
    }

    /// Goes on to the next slot.
    pub(crate) fn pass_subtile(&mut self, slots: Slots) -> PassResult<'c> {
        let (ints, next) = (self.ints(), self.store_pipeline.next);
        self.store_pipeline.next = match slots.count {
            1 => next,
            2 => ints.xor(next, Int::Known(1))?,
            count => ints.rem(ints.add(next, Int::Known(1))?, count)?,
        };
        Ok(())
    }

    /// Waits, all of the thread group together, until the stores of its subtiles have read them.
    pub(crate) fn settle(&mut self) -> PassResult<'c> {
        self.bulk_wait(0, true)?;
        self.barrier()
    }

    /// Whether some copies of the kernel leave stores under way from slots that come next: sums wait before they write, and not behind it.
    pub(crate) fn leaves_slots_full(&self) -> bool {
        let all = nested(self.kernel.op, &|_| true);
        let adds = |op: &Op<'_>| stores_registers(op) && op.attribute("accumulate").is_ok();
        all.iter().any(adds)
    }

    /// Settles what an earlier turn of the scope has left, before the scope's first subtile.
    pub(crate) fn settle_earlier(&mut self) -> PassResult<'c> {
        match std::mem::take(&mut self.store_pipeline.stale) {
            true => self.settle(),
            false => Ok(()),
        }
    }

    /// Whether the body of a loop, or a branch, may go around the scope's rings of subtiles. What an earlier turn of the
    /// scope has left is settled before it.
    pub(crate) fn carries_subtiles(&mut self, op: Op<'c>) -> PassResult<'c, bool> {
        let inside = |op: Op<'c>| name(op) != ops::SCOPE;
        let through_slots = |op: &Op<'c>| {
            let plan = self.plan_of(*op);
            plan.is_ok_and(|plan| matches!(plan.taken(), Taken::Slots(_)))
        };
        let carries = self.warp.is_some()
            && self.chip.has_tma
            && nested(op, &inside).iter().any(through_slots);
        if carries {
            self.settle_earlier()?;
        }
        Ok(carries)
    }

    /// The slot of the next subtile, where a loop or a branch carries it.
    pub(crate) fn subtile_values(&self, carried: bool) -> PassResult<'c, Vec<Val<'c>>> {
        let next = carried.then(|| self.ints().value(self.store_pipeline.next));
        next.into_iter().collect()
    }

    /// Sets the slot of the next subtile, where a loop or a branch carries it.
    pub(crate) fn set_subtiles(&mut self, values: &[Val<'c>]) {
        if let &[next] = values {
            self.store_pipeline.next = Int::Value(next);
        }
    }
}
