//! Kernels bound to hardware schedules: `--axe-dispatch-schedules`.

use crate::facts::chip::Chip;
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

/// Dispatches the kernels of a module.
///
/// # Errors
/// At the operator that no schedule takes.
pub(crate) fn dispatch<'c>(
    module: OperationRef<'c, 'c>,
    chip: &Chip,
    _pass: &mut PassContext,
) -> PassResult<'c> {
    Err(PassError::new(
        module.location(),
        format!("no schedules for {}", chip.name),
    ))
}

/// Checks the plans of the kernels of a module.
///
/// # Errors
/// At the operator whose plan does not do what its layouts say.
pub(crate) fn verify<'c>(
    module: OperationRef<'c, 'c>,
    chip: &Chip,
    _pass: &mut PassContext,
) -> PassResult<'c> {
    Err(PassError::new(
        module.location(),
        format!("no schedules for {}", chip.name),
    ))
}
