//! Kernels from logical operators: `--axe-plan-kernels`.

use crate::facts::chip::Chip;
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

/// Plans the kernels of a module.
///
/// # Errors
/// At the operator that cannot be planned.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &Chip,
    _pass: &mut PassContext,
) -> PassResult<'c> {
    Err(PassError::new(
        module.location(),
        format!("no planner for {}", chip.name),
    ))
}
