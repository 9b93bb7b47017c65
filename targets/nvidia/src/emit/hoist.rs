//! Addresses of what branches load, in front of them.

use axe_passes::ir::value::{defining, name, operands};
use axe_passes::ir::walk::{blocks, operations};
use axe_passes::ir::{Op, Val};
use axe_passes::precision::constant_integer;
use melior::ir::operation::OperationLike;
use mlir_sys as sys;

/// What addresses are formed of: defined on all operands, and a few instructions.
const ADDRESSES: [&str; 9] = [
    "arith.addi",
    "arith.constant",
    "arith.extsi",
    "arith.extui",
    "arith.index_cast",
    "arith.muli",
    "arith.subi",
    "arith.trunci",
    "llvm.getelementptr",
];

/// The same where the divisor is a constant above zero.
const QUOTIENTS: [&str; 2] = ["arith.divui", "arith.remui"];

/// Moves what a branch's sides form addresses of in front of it. Neighbours that are loaded in a branch each, since each may be outside of its
/// tensor, have most of their addresses in common. LLVM finds that in one block: GVNHoist, which is off, takes what all sides of a branch form.
pub(super) fn hoist_addresses(branch: Op<'_>) {
    let is_outside = |value: &Val<'_>| {
        let own = defining(*value).and_then(|op| op.parent_operation());
        own != Some(branch)
    };
    for block in blocks(branch) {
        for op in operations(block) {
            if is_address(op) && operands(op).iter().all(is_outside) {
                // SAFETY: both operations are live, and the operands stand in front of the branch.
                unsafe { sys::mlirOperationMoveBefore(op.to_raw(), branch.to_raw()) };
            }
        }
    }
}

/// Whether an operation forms addresses, and may stand where its side is not taken.
fn is_address(op: Op<'_>) -> bool {
    let own = name(op);
    let divisor = operands(op).get(1).copied().and_then(constant_integer);
    ADDRESSES.contains(&own.as_str())
        || QUOTIENTS.contains(&own.as_str()) && divisor.is_some_and(|divisor| divisor > 0)
}
