//! `--axe-generalize`: what moves elements of tensors becomes `linalg.generic`.
//!
//! Slices, insertions, concatenations and paddings are no operators of axe: which element goes where is arithmetic on
//! indices. Each becomes a `linalg.generic` over its result, whose body computes the index and takes the element by
//! `tensor.extract`; kernels of loops ([`crate::fuse::nest`]) execute those. Reshapes and what is on tensors with an
//! encoding stay.

mod assemble;
pub(crate) mod generic;
mod mixed;
mod slice;

use crate::error::PassResult;
use crate::ir::value::{name, operands, replace_all_uses, results};
use crate::ir::{Builder, Op, TensorType, Val, walk};
use crate::registry::PassContext;
use melior::ir::ValueLike;

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    let mut changed = 0;
    for op in walk::nested(module, &entered) {
        let (true, &[result]) = (is_logical(op), &results(op)[..]) else {
            continue;
        };
        let builder = Builder::before(op);
        if let Some(value) = generalize(&builder, op)? {
            replace_all_uses(result, builder.with_type(value, result.r#type())?);
            walk::erase(op);
            changed += 1;
        }
    }
    pass.count("num-generalized", changed);
    Ok(())
}

/// The value of an operation as a `linalg.generic`; `None` for an operation that stays.
fn generalize<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Option<Val<'c>>> {
    match name(op).as_str() {
        "tensor.extract_slice" => slice::extract(builder, op).map(Some),
        "tensor.insert_slice" => slice::insert(builder, op).map(Some),
        "tensor.pad" => assemble::pad(builder, op).map(Some),
        "tensor.concat" => assemble::concat(builder, op).map(Some),
        "tensor.generate" => assemble::generate(builder, op).map(Some),
        "tensor.from_elements" => assemble::from_elements(builder, op),
        "tensor.splat" => assemble::splat(builder, op).map(Some),
        "tensor.insert" => slice::insert_element(builder, op).map(Some),
        _ => Ok(None),
    }
}

/// Whether the pass looks below an operation: not into bodies, nor into kernels.
fn entered(op: Op<'_>) -> bool {
    let name = name(op);
    let whole = ["linalg.", "axe.", "tensor."];
    !whole.iter().any(|dialect| name.starts_with(dialect))
}

/// Whether no tensor of an operation has an encoding.
fn is_logical(op: Op<'_>) -> bool {
    let encoded = |value: Val<'_>| TensorType::of_value(value).is_some_and(|tensor| tensor.encoded);
    !operands(op).into_iter().chain(results(op)).any(encoded)
}
