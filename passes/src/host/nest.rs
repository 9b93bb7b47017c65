//! Loops that the whole grid of a kernel executes: a block of it has no meaning here.

use crate::error::{PassError, PassResult};
use crate::fuse::nest::INITIAL;
use crate::ir::value::name;
use crate::ir::{Op, walk};
use melior::ir::operation::OperationLike;

/// Refuses a kernel of loops.
///
/// # Errors
/// At the loops.
pub(super) fn refuse<'c>(function: Op<'c>) -> PassResult<'c> {
    let all = walk::nested(function, &|op| !name(op).starts_with("linalg."));
    let loops = |op: &Op<'c>| name(*op) == "linalg.generic" && op.attribute(INITIAL).is_ok();
    match all.into_iter().find(loops) {
        None => Ok(()),
        Some(op) => Err(PassError::new(
            op.location(),
            "loops that a whole grid executes have no meaning on the CPU target, which runs one block after the other",
        )
        .note("give it the module before --axe-plan-kernels, or run the kernel in the simulator (axe sim)")),
    }
}
