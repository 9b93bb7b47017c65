//! Scalar computations: the bodies of structured operations, taken apart and copied.

use super::Counts;
use super::operands::{Operand, Space, fill};
use super::structured::Structured;
use super::unsupported;
use crate::error::PassResult;
use crate::ir::value::{defined_by, identity, name, operands, results};
use crate::ir::{Builder, Op, Val, types};
use axe_dialect::ops::{self, CastOp};
use melior::ir::ValueLike;
use melior::ir::operation::{OperationLike, OperationMutLike};
use std::collections::HashMap;

/// What stands for a value in the copy of a body.
type Copies<'c> = HashMap<usize, Val<'c>>;

/// Copies the operations of a body, and the scalar constants that it captures, to the builder's place.
/// Other captured values are used as they are. Returns the copy of `root`.
///
/// # Errors
/// When building fails.
pub(super) fn copy<'c>(
    builder: &Builder<'c>,
    slice: &[Op<'c>],
    root: Val<'c>,
    copies: &mut Copies<'c>,
) -> PassResult<'c, Val<'c>> {
    for op in slice {
        let wanted: Vec<_> = operands(*op)
            .into_iter()
            .map(|value| copy_of(builder, copies, value))
            .collect();
        let raw = builder.clone_of(*op);
        // SAFETY: the copy is live, and no other reference to it is used while this one is.
        let mut copied = unsafe { melior::ir::operation::OperationRefMut::from_raw(raw.to_raw()) };
        for (at, value) in wanted.into_iter().enumerate() {
            copied.set_operand(at, value);
        }
        copies.extend(results(*op).into_iter().map(identity).zip(results(raw)));
    }
    Ok(copy_of(builder, copies, root))
}

fn copy_of<'c>(builder: &Builder<'c>, copies: &mut Copies<'c>, value: Val<'c>) -> Val<'c> {
    if let Some(copied) = copies.get(&identity(value)) {
        return *copied;
    }
    let constant = defined_by(value, "arith.constant")
        .and_then(|op| results(builder.clone_of(op)).first().copied());
    let stands = constant.unwrap_or(value);
    copies.insert(identity(value), stands);
    stands
}

/// The arguments of the body that `root` depends on, ascending.
pub(super) fn arguments<'c>(
    op: &Structured<'c>,
    slice: &[Op<'c>],
    root: Val<'c>,
) -> Vec<(usize, Val<'c>)> {
    let values = slice
        .iter()
        .flat_map(|inner| operands(*inner))
        .chain([root]);
    let mut found: Vec<_> = values
        .filter_map(|value| Some((op.argument(value)?, value)))
        .collect();
    found.sort_by_key(|(number, _)| *number);
    found.dedup_by_key(|(number, _)| *number);
    found
}

/// The tensor of the values of `root` at each point of the space, its arguments being `of`: an operand
/// itself, `axe.cast`, `axe.map`, or `axe.fill` when it depends on no tensor.
///
/// # Errors
/// At an operation that has no place in a map, or when building fails.
pub(super) fn evaluate<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    space: &Space<'c>,
    root: Val<'c>,
    of: &[(Val<'c>, Operand<'c>)],
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let slice = op.slice(root)?;
    let mut tensors: Vec<Val<'c>> = Vec::new();
    for (_, operand) in of {
        if let Operand::Tensor(tensor) = operand
            && !tensors.contains(tensor)
        {
            tensors.push(*tensor);
        }
    }
    if let [tensor] = tensors.as_slice()
        && let Some(value) = directly(builder, op, &slice, root, of, *tensor)?
    {
        return Ok(value);
    }
    let scalars = of.iter().filter_map(|(argument, operand)| match operand {
        Operand::Scalar(value) => Some((*argument, *value)),
        Operand::Tensor(_) => None,
    });
    if tensors.is_empty() {
        let mut copies = scalars
            .map(|(argument, value)| (identity(argument), value))
            .collect();
        let value = copy(builder, &slice, root, &mut copies)?;
        return fill(builder, space, value);
    }
    let elements: Vec<_> = tensors
        .iter()
        .map(|tensor| builder.tensor_of(*tensor).map(|tensor| tensor.element))
        .collect::<Result<_, _>>()?;
    let (region, arguments, inner) = builder.region(&elements);
    let mut copies = Copies::new();
    for (argument, value) in scalars {
        let value = copy_of(&inner, &mut copies, value);
        copies.insert(identity(argument), value);
    }
    for (argument, operand) in of {
        if let Operand::Tensor(tensor) = operand
            && let Some(at) = tensors.iter().position(|have| have == tensor)
            && let Some(value) = arguments.get(at)
        {
            copies.insert(identity(*argument), *value);
        }
    }
    let value = copy(&inner, &slice, root, &mut copies)?;
    inner.operation(ops::YIELD, &[value], &[], &[], Vec::new())?;
    let result = builder.tensor(&space.shape, root.r#type())?;
    counts.maps += 1;
    let map = builder.operation(ops::MAP, &tensors, &[result], &[], vec![region])?;
    builder.result_of(map)
}

/// The value without a map: the operand itself, or its `axe.cast`.
fn directly<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    slice: &[Op<'c>],
    root: Val<'c>,
    of: &[(Val<'c>, Operand<'c>)],
    tensor: Val<'c>,
) -> PassResult<'c, Option<Val<'c>>> {
    let stands = |value: Val<'c>| of.iter().any(|(argument, _)| *argument == value);
    match slice {
        [] if stands(root) => Ok(Some(tensor)),
        [inner] if of.len() == 1 && is_cast(*inner) && op.inner(root) == Some(*inner) => {
            let shape = builder.tensor_of(tensor)?.shape;
            let result = builder.tensor(&shape, root.r#type())?;
            builder
                .operator_value(&CastOp::operands(tensor), result, &[])
                .map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether an operation converts as `axe.cast` does: to the nearest float, and integers as signed. An i1
/// is left to a map: read as signed it is 0 or -1, and what a reader of a cast would expect is 0 or 1.
fn is_cast(op: Op<'_>) -> bool {
    let bit = operands(op)
        .into_iter()
        .chain(results(op))
        .any(|value| types::bits(value.r#type()) == Some(1));
    let rounded = op
        .attribute("roundingmode")
        .is_ok_and(|mode| !mode.to_string().starts_with("0 "));
    let known = [
        "arith.extf",
        "arith.truncf",
        "arith.sitofp",
        "arith.fptosi",
        "arith.extsi",
    ];
    !bit && !rounded && known.contains(&name(op).as_str())
}

/// The error for a body in which `value` is not what was expected.
pub(super) fn unexpected<'c>(
    op: &Structured<'c>,
    expected: &str,
    value: Option<Val<'c>>,
) -> crate::PassError<'c> {
    let got = value.and_then(|value| op.inner(value)).map_or_else(
        || "another value".to_owned(),
        |op| format!("'{}'", name(op)),
    );
    unsupported(op.op, &format!("expected {expected}, got {got}"))
}
