//! An operator of a kernel as a schedule reads it.

use super::cursor::Cursor;
use super::form::{Form, Held, Storage};
use super::kernel::Kernel;
use super::places::KernelPlaces;
use super::threads::ThreadGroup;
use crate::facts::chip::Chip;
use crate::fragment::Fragment;
use crate::plan::Decline;
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{DYNAMIC, Op, attribute};
use melior::ir::ValueLike;
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::operation::OperationLike;
use std::rc::Rc;

/// An operator of a kernel, the threads that execute it, and what of shared memory is taken before it.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a, 'c> {
    /// The kernel.
    pub kernel: &'a Kernel<'c>,
    /// The thread group.
    pub group: &'a ThreadGroup,
    /// What is taken of shared memory.
    pub cursor: &'a Cursor,
    /// The places of the kernel's storage.
    pub places: &'a KernelPlaces<'c>,
    /// The operator.
    pub op: Op<'c>,
}

impl<'a, 'c> Site<'a, 'c> {
    /// The chip.
    pub(crate) fn chip(&self) -> &'static Chip {
        self.kernel.chip
    }

    /// Threads of the group.
    pub(crate) fn threads(&self) -> i64 {
        self.group.threads()
    }

    /// What an operand is.
    pub(crate) fn operand(&self, at: usize) -> Result<&'a Form<'c>, Decline> {
        let operand = operands(self.op).get(at).copied();
        operand
            .and_then(|operand| self.kernel.form(operand))
            .ok_or_else(|| Decline::new(format!("operand {at} is not there")))
    }

    /// An operand in memory: a box of a known shape.
    pub(crate) fn memory(&self, at: usize) -> Result<&'a Storage<'c>, Decline> {
        let Form::Memory(storage) = self.operand(at)? else {
            return Err(Decline::new(format!("operand {at} is not in memory")));
        };
        if storage.shape.contains(&DYNAMIC) {
            return Err(Decline::new(format!(
                "operand {at} has a dynamic extent: expected a box of a known shape, as axe.slice makes"
            )));
        }
        Ok(storage)
    }

    /// An operand in registers.
    pub(crate) fn registers(&self, at: usize) -> Result<&'a Held<'c>, Decline> {
        match self.operand(at)? {
            Form::Registers(held) => Ok(held),
            _ => Err(Decline::new(format!("operand {at} is not in registers"))),
        }
    }

    /// The fragment of the result.
    pub(crate) fn result(&self) -> Result<Rc<Fragment>, Decline> {
        let result = only_result(self.op).ok_or_else(|| Decline::new("there is no result"))?;
        self.kernel.fragment(result.r#type(), self.threads())
    }

    /// The number of operands.
    pub(crate) fn operand_count(&self) -> usize {
        operands(self.op).len()
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.op.attribute(name).is_ok()
    }

    /// How many operands the segment `at` has; 0 for an operator without segments.
    pub(crate) fn segment(&self, at: usize) -> usize {
        segment(self.op, at)
    }
}

/// An integer array attribute, such as `dims`.
pub(crate) fn dims(op: Op<'_>, name: &str) -> Vec<usize> {
    let values = op.attribute(name).ok().and_then(attribute::read_i64s);
    let values = values.unwrap_or_default().into_iter();
    values.filter_map(|dim| usize::try_from(dim).ok()).collect()
}

/// Groups of asynchronous operations that may still be under way after an `axe.wait`.
pub(crate) fn pending(wait: Op<'_>) -> i64 {
    let pending = wait.attribute("pending").ok().and_then(attribute::integer);
    pending.unwrap_or(0)
}

/// How many operands the segment `at` of an operator has; 0 when the operator has no segments.
pub(crate) fn segment(op: Op<'_>, at: usize) -> usize {
    let sizes = op
        .attribute("operandSegmentSizes")
        .ok()
        .and_then(|sizes| DenseI32ArrayAttribute::try_from(sizes).ok());
    let size = sizes.and_then(|sizes| sizes.element(at).ok());
    size.and_then(|size| usize::try_from(size).ok())
        .unwrap_or(0)
}
