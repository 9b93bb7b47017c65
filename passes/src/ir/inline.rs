//! Copies of blocks whose arguments are known.

use super::value::{identity, operands, results};
use super::walk::{self, block_arguments};
use super::{Builder, Op, Val};
use crate::{PassError, PassResult};
use melior::ir::BlockRef;
use melior::ir::operation::{OperationMutLike, OperationRefMut};
use mlir_sys as sys;
use std::collections::HashMap;

/// What stands for values, by their identity.
pub type Values<'c> = HashMap<usize, Val<'c>>;

/// Copies a block's operations to the builder's place, with these values for its arguments; what its terminator has.
pub fn copy<'c>(
    builder: &Builder<'c>,
    block: BlockRef<'c, 'c>,
    arguments: &[Val<'c>],
) -> Vec<Val<'c>> {
    let own = block_arguments(block).into_iter().map(identity);
    let mut values: Values<'c> = own.zip(arguments.iter().copied()).collect();
    let mut operations = walk::operations(block);
    let terminator = operations.pop();
    for op in operations {
        copy_operation(builder, op, &mut values);
    }
    let yielded = terminator.map(operands).unwrap_or_default().into_iter();
    yielded.map(|value| value_of(&values, value)).collect()
}

/// Adds the operations of the function that a text is, with these values for its arguments, at the builder's place and location.
///
/// # Errors
/// For a text that MLIR does not parse.
pub fn copy_text<'c>(builder: &Builder<'c>, text: &str, arguments: &[Val<'c>]) -> PassResult<'c> {
    let unreadable = || PassError::new(builder.location, format!("cannot parse '{text}'"));
    let module = builder.parsed_module(text).ok_or_else(unreadable)?;
    // SAFETY: the module is live until the copy is made, and nothing refers to it afterwards.
    let root = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    for op in walk::nested(root, &|_| true) {
        // SAFETY: the operation is live.
        unsafe { sys::mlirOperationSetLocation(op.to_raw(), builder.location.to_raw()) };
    }
    let function = walk::blocks(root)
        .first()
        .and_then(|body| walk::operations(*body).first().copied());
    let body = function.and_then(|function| walk::blocks(function).first().copied());
    copy(builder, body.ok_or_else(unreadable)?, arguments);
    Ok(())
}

/// Copies an operation to the builder's place, on what stands for its operands, also below it; its results are added.
pub fn copy_operation<'c>(builder: &Builder<'c>, op: Op<'c>, values: &mut Values<'c>) -> Op<'c> {
    let made = builder.clone_of(op);
    replace(made, values);
    for (from, to) in results(op).into_iter().zip(results(made)) {
        values.insert(identity(from), to);
    }
    made
}

/// Puts what stands for values in their place, in an operation and below it.
pub fn replace<'c>(op: Op<'c>, values: &Values<'c>) {
    let all = walk::nested(op, &|_| true).into_iter();
    for inner in std::iter::once(op).chain(all) {
        for (at, value) in operands(inner).into_iter().enumerate() {
            let new = value_of(values, value);
            if new != value {
                // SAFETY: the operation is live, and no other reference to it is used while this one is.
                unsafe { OperationRefMut::from_raw(inner.to_raw()) }.set_operand(at, new);
            }
        }
    }
}

fn value_of<'c>(values: &Values<'c>, value: Val<'c>) -> Val<'c> {
    values.get(&identity(value)).copied().unwrap_or(value)
}
