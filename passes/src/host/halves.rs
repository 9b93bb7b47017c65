//! Arithmetic on f16 and bf16 in f32, rounded after each operation.
//!
//! Hosts compute with neither. The upstream pass that emulates them lets LLVM fuse the roundings away (`contract`);
//! here each operation gives the nearest value of its type, so that a result does not depend on what is optimised.

use super::ops::{f32, set_type};
use crate::error::PassResult;
use crate::ir::value::{defining, name, operands, replace_all_uses, results};
use crate::ir::{Builder, Op, walk};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// Whether the type is f16 or bf16.
fn is_half(r#type: Type<'_>) -> bool {
    // SAFETY: the type is valid.
    unsafe { sys::mlirTypeIsAF16(r#type.to_raw()) || sys::mlirTypeIsABF16(r#type.to_raw()) }
}

/// Whether an operation computes, and does not merely move or convert bits.
fn computes(name: &str) -> bool {
    const EXACT: &[&str] = &[
        "arith.bitcast",
        "arith.constant",
        "arith.extf",
        "arith.select",
        "arith.truncf",
    ];
    (name.starts_with("arith.") || name.starts_with("math.")) && !EXACT.contains(&name)
}

/// Widens the arithmetic below an operation.
///
/// # Errors
/// When building fails.
pub(super) fn widen<'c>(module: Op<'c>) -> PassResult<'c> {
    for op in walk::nested(module, &|_| true) {
        if computes(&name(op)) {
            widen_one(op)?;
        }
    }
    Ok(())
}

fn widen_one<'c>(op: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    // SAFETY: the operation is live, and no other reference to it is used while this one is.
    let mut changed = unsafe { OperationRefMut::from_raw(op.to_raw()) };
    for (at, value) in operands(op).into_iter().enumerate() {
        if is_half(value.r#type()) {
            let wide = builder.value("arith.extf", &[value], f32(&builder), &[])?;
            changed.set_operand(at, wide);
        }
    }
    let Some(next) = op.next_in_block() else {
        return Ok(());
    };
    let mut behind = Builder::before(next);
    behind.location = op.location();
    for result in results(op) {
        let half = result.r#type();
        if !is_half(half) {
            continue;
        }
        set_type(result, f32(&builder));
        let rounded = behind.value("arith.truncf", &[result], half, &[])?;
        replace_all_uses(result, rounded);
        // The rounding itself reads what is not rounded.
        if let Some(rounding) = defining(rounded) {
            // SAFETY: as above.
            unsafe { OperationRefMut::from_raw(rounding.to_raw()) }.set_operand(0, result);
        }
    }
    Ok(())
}
