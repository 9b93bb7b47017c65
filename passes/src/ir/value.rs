//! Values, their definitions and their uses.

use super::{Op, Val};
use crate::error::{PassError, PassResult};
use axe_dialect::Typed;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Value, ValueLike};
use mlir_sys as sys;

/// The name of an operation: `linalg.matmul`.
#[must_use]
pub fn name(op: Op<'_>) -> String {
    op.name()
        .as_string_ref()
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The parts of an operation of axe.
///
/// # Errors
/// When it is another operation.
pub fn parts<'c, T: Typed<'c>>(op: Op<'c>) -> PassResult<'c, T> {
    T::of(op).ok_or_else(|| {
        let message = format!("expected '{}', got '{}'", T::NAME, name(op));
        PassError::new(op.location(), message)
    })
}

/// The operands of an operation.
#[must_use]
pub fn operands<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    op.operands().collect()
}

/// The results of an operation.
#[must_use]
pub fn results<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    // SAFETY: each result is a value of a live operation.
    op.results()
        .map(|result| unsafe { Value::from_raw(result.to_raw()) })
        .collect()
}

/// The only result of an operation; `None` when it has none or several.
#[must_use]
pub fn only_result<'c>(op: Op<'c>) -> Option<Val<'c>> {
    match results(op).as_slice() {
        [result] => Some(*result),
        _ => None,
    }
}

/// The operation that defines a value; `None` for the argument of a block.
#[must_use]
pub fn defining<'c>(value: Val<'c>) -> Option<Op<'c>> {
    // SAFETY: the owner is read only of the result of an operation.
    value
        .is_operation_result()
        .then(|| unsafe { OperationRef::from_raw(sys::mlirOpResultGetOwner(value.to_raw())) })
}

/// The operation of this name that defines a value.
#[must_use]
pub fn defined_by<'c>(value: Val<'c>, wanted: &str) -> Option<Op<'c>> {
    defining(value).filter(|op| name(*op) == wanted)
}

/// The position of a value among the arguments of its block; `None` for a result.
#[must_use]
pub fn argument_number(value: Val<'_>) -> Option<usize> {
    // SAFETY: the position is read only of the argument of a block.
    let number = value
        .is_block_argument()
        .then(|| unsafe { sys::mlirBlockArgumentGetArgNumber(value.to_raw()) })?;
    usize::try_from(number).ok()
}

/// The operation whose block has this argument; `None` for a result.
#[must_use]
pub fn parent<'c>(argument: Val<'c>) -> Option<Op<'c>> {
    // SAFETY: the owner is read only of the argument of a block, and a missing parent is null, which is checked.
    unsafe {
        argument.is_block_argument().then_some(())?;
        let block = sys::mlirBlockArgumentGetOwner(argument.to_raw());
        OperationRef::from_option_raw(sys::mlirBlockGetParentOperation(block))
    }
}

/// What tells values apart, for sets and maps.
#[must_use]
pub fn identity(value: Val<'_>) -> usize {
    value.to_raw().ptr as usize
}

/// The operations that use a value, once a use.
#[must_use]
pub fn users<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    // SAFETY: the uses of a live value form a list that ends with a null use.
    unsafe {
        let mut operand = sys::mlirValueGetFirstUse(value.to_raw());
        while !sys::mlirOpOperandIsNull(operand) {
            found.push(OperationRef::from_raw(sys::mlirOpOperandGetOwner(operand)));
            operand = sys::mlirOpOperandGetNextUse(operand);
        }
    }
    found
}

/// Whether a value has a use.
#[must_use]
pub fn is_used(value: Val<'_>) -> bool {
    // SAFETY: the value is live; a value without uses gives the null use.
    unsafe { !sys::mlirOpOperandIsNull(sys::mlirValueGetFirstUse(value.to_raw())) }
}

/// Puts `with` in the place of every use of `of`.
pub fn replace_all_uses<'c>(of: Val<'c>, with: Val<'c>) {
    // SAFETY: both values are live.
    unsafe { sys::mlirValueReplaceAllUsesOfWith(of.to_raw(), with.to_raw()) };
}
