//! Named operations that upstream takes apart: softmax, pack and unpack, and those that generalize to loops and zeros.

use super::structured::has_loops;
use crate::ir::value::name;
use crate::ir::{Op, walk};

unsafe extern "C" {
    fn axeExpandNamed(operation: mlir_sys::MlirOperation) -> bool;
}

/// Replaces the operations below a module that have no form of their own and that upstream has one for.
pub(super) fn expand<'c>(module: Op<'c>, entered: &impl Fn(Op<'c>) -> bool) {
    for op in walk::nested(module, entered) {
        if name(op).starts_with("linalg.") && op_has_results(op) && !has_loops(op) {
            // SAFETY: the operation is live; where it is replaced, nothing refers to it afterwards.
            unsafe { axeExpandNamed(op.to_raw()) };
        }
    }
}

fn op_has_results(op: Op<'_>) -> bool {
    use melior::ir::operation::OperationLike;
    op.result_count() > 0
}
