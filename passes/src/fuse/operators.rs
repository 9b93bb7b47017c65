//! Operators of a function, by what a kernel can do with them.

use super::space::{Place, place_of, source};
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{Op, TensorType, Val, attribute, types, walk};
use axe_dialect::ops::{self, GemmOp, Trait};
use axe_dialect::{Combiner, Typed};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, ValueLike};
use std::collections::HashSet;

/// Whether an operation has a trait of the dialect's.
#[must_use]
pub fn has(op: Op<'_>, r#trait: Trait) -> bool {
    ops::has(&name(op), r#trait)
}

/// Whether this is an operator that becomes part of a kernel.
#[must_use]
pub fn is_operator(op: Op<'_>) -> bool {
    has(op, Trait::Logical)
}

/// Whether an operator is a matrix product.
#[must_use]
pub fn is_product(op: Op<'_>) -> bool {
    has(op, Trait::Product)
}

/// What a product adds to, where it has that.
#[must_use]
pub fn start_of(op: Op<'_>) -> Option<Val<'_>> {
    GemmOp::of(op)?.acc
}

/// The matrix that an operand repeats for all products of a batch, where it does.
#[must_use]
pub fn shared_operand(product: Op<'_>, number: usize) -> Option<Val<'_>> {
    let operand = operands(product).get(number).copied()?;
    let [_, .., rows, columns] = TensorType::of_value(operand)?.shape[..] else {
        return None;
    };
    let whole = reshaped(operand);
    let repeat = defining(whole).filter(|op| name(*op) == ops::BROADCAST)?;
    let from = source(repeat).filter(|_| name(product) == ops::GEMM && number < 2)?;
    let is_static = TensorType::of_value(whole)?
        .shape
        .iter()
        .all(|extent| *extent > 0);
    let is_matrix = place_of(repeat, whole) == Place::Outer(rows.checked_mul(columns)?);
    (is_static && is_matrix).then_some(from)
}

/// Whether an operation gives the same elements in the same order.
#[must_use]
pub fn is_reshape(op: Op<'_>) -> bool {
    [
        "tensor.expand_shape",
        "tensor.collapse_shape",
        "tensor.cast",
    ]
    .contains(&name(op).as_str())
}

/// The scalar attribute of a tensor constant whose elements are all equal.
#[must_use]
pub fn splat(op: Op<'_>) -> Option<melior::ir::Attribute<'_>> {
    if name(op) != "arith.constant" {
        return None;
    }
    op.attribute("value").ok().and_then(attribute::splat)
}

/// The value that reshapes are of.
pub(super) fn reshaped<'c>(value: Val<'c>) -> Val<'c> {
    let reshape = defining(value).filter(|op| is_reshape(*op));
    let from = reshape.and_then(|op| operands(op).first().copied());
    from.map_or(value, reshaped)
}

/// Whether an operator computes each element of those at its place, or only gives them another shape.
pub(super) fn is_by_element(op: Op<'_>) -> bool {
    [ops::MAP, ops::CAST].contains(&name(op).as_str()) || is_reshape(op)
}

/// Whether an operator is formed again by each of its readers.
pub(super) fn is_lazy(op: Op<'_>) -> bool {
    is_reshape(op) || has(op, Trait::Lazy) || splat(op).is_some()
}

/// Whether a conversion loses nothing and reads less than it gives.
pub(super) fn is_widening(op: Op<'_>) -> bool {
    let bits = |value: Option<&Val<'_>>| {
        value
            .and_then(|value| TensorType::of_value(*value))
            .and_then(|tensor| types::bits(tensor.element))
    };
    name(op) == ops::CAST && bits(operands(op).first()) <= bits(results(op).first())
}

/// The dimensions that a broadcast adds or a reduction drops.
pub(super) fn dims_of(op: Op<'_>) -> Option<Vec<i64>> {
    op.attribute("dims").ok().and_then(attribute::read_i64s)
}

/// The dimensions along which an operator reduces by a combiner.
pub(super) fn reduces(op: Op<'_>, wanted: Combiner) -> Option<Vec<i64>> {
    let combiner = op.attribute("combiner").ok().and_then(Combiner::cast);
    dims_of(op).filter(|_| name(op) == ops::REDUCE && combiner == Some(wanted))
}

/// The values that a value is formed from through operators that are formed again.
pub(super) fn bases<'c>(value: Val<'c>) -> Vec<Val<'c>> {
    match defining(value) {
        Some(op) if name(op) == ops::FILL || splat(op).is_some() => Vec::new(),
        Some(op) if is_lazy(op) => source(op).map(bases).unwrap_or_default(),
        _ => vec![value],
    }
}

/// The scalars that a body, or a fill, reads from above.
#[must_use]
pub fn captured<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    let scalar = |value: &Val<'c>| TensorType::of_value(*value).is_none();
    if name(op) == ops::FILL {
        return operands(op).into_iter().take(1).filter(scalar).collect();
    }
    let inner = walk::nested(op, &|_| true);
    let mut inside: HashSet<usize> = inner
        .iter()
        .flat_map(|op| results(*op))
        .map(identity)
        .collect();
    for block in std::iter::once(&op)
        .chain(&inner)
        .flat_map(|op| walk::blocks(*op))
    {
        let arguments = (0..block.argument_count()).filter_map(|at| block.argument(at).ok());
        inside.extend(arguments.map(|argument| argument.to_raw().ptr as usize));
    }
    let mut found = Vec::new();
    for operand in inner.into_iter().flat_map(operands) {
        if scalar(&operand) && !inside.contains(&identity(operand)) && !found.contains(&operand) {
            found.push(operand);
        }
    }
    found
}
