//! Reductions of dimensions that others follow, whose rows no suitable number of parts divides. Such an operator is two kernels: one
//! reduces parts of the rows, of which the last may be shorter, the other what came of them.

use crate::ir::{Builder, Op};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};

/// The attribute of such reductions.
const IN_PARTS: &str = "axe.row_parts";

/// Marks such a reduction.
pub fn mark(op: Op<'_>) {
    let unit = Builder::before(op).unit();
    // SAFETY: the operation is live, and nothing else refers to its attributes.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute(IN_PARTS, unit);
}

/// Whether a reduction was marked.
#[must_use]
pub fn is_marked(op: Op<'_>) -> bool {
    op.attribute(IN_PARTS).is_ok()
}
