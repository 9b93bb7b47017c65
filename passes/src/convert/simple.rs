//! Named operations whose meaning is one axe operator: fill, transpose, broadcast, copy.

use super::operands::{Space, check_zeros, fill_of, transpose};
use super::structured::Structured;
use super::unsupported;
use crate::error::PassResult;
use crate::ir::value::{name, operands};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute};
use axe_dialect::ops::BroadcastOp;
use melior::ir::operation::OperationLike;

/// Converts the operation when it is one of these; `None` when it is not.
///
/// # Errors
/// When it is on memrefs, or its attributes do not fit.
pub(super) fn convert<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Option<Val<'c>>> {
    let name = name(op);
    if ![
        "linalg.fill",
        "linalg.transpose",
        "linalg.broadcast",
        "linalg.copy",
    ]
    .contains(&name.as_str())
    {
        return Ok(None);
    }
    let values = operands(op);
    let (&[source, init], 1) = (values.as_slice(), op.result_count()) else {
        return Err(unsupported(
            op,
            "it is not on tensors; bufferize after this pass",
        ));
    };
    let plain = |value| TensorType::of_value(value).is_none_or(|tensor| !tensor.encoded);
    if !plain(source) || !plain(init) {
        return Err(unsupported(
            op,
            "a logical operand has no layout yet, but one of its tensors has an encoding",
        ));
    }
    let element = |value| TensorType::of_value(value).map(|tensor| tensor.element);
    if name == "linalg.copy" && element(source) != element(init) {
        return Ok(None);
    }
    let dims = |key| op.attribute(key).ok().and_then(attribute::read_i64s);
    let value = match name.as_str() {
        "linalg.fill" => fill(builder, op, source, init),
        "linalg.transpose" => match dims("permutation").map(positions) {
            Some(Some(permutation)) => transpose(builder, source, &permutation),
            _ => Err(unsupported(op, "its permutation cannot be read")),
        },
        "linalg.broadcast" => match dims("dimensions") {
            Some(dims) => broadcast(builder, source, init, dims),
            None => Err(unsupported(op, "its dimensions cannot be read")),
        },
        _ => Ok(source),
    };
    value.map(Some)
}

fn positions(dims: Vec<i64>) -> Option<Vec<usize>> {
    dims.into_iter()
        .map(|dim| usize::try_from(dim).ok())
        .collect()
}

/// The sizes of the dynamic dimensions of `tensor` that `wanted` selects.
fn sizes<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    wanted: impl Fn(i64) -> bool,
) -> PassResult<'c, Vec<Val<'c>>> {
    let shape = builder.tensor_of(tensor)?.shape;
    let dynamic = (0i64..)
        .zip(&shape)
        .filter(|(dim, extent)| **extent == DYNAMIC && wanted(*dim));
    dynamic
        .filter_map(|(dim, _)| usize::try_from(dim).ok())
        .map(|dim| builder.extent(tensor, dim))
        .collect()
}

fn fill<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    value: Val<'c>,
    init: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    use melior::ir::ValueLike;
    let tensor = builder.tensor_of(init)?;
    if value.r#type() != tensor.element {
        return Err(unsupported(
            op,
            &format!("it converts {} to {}", value.r#type(), tensor.element),
        ));
    }
    fill_of(
        builder,
        value,
        &tensor.shape,
        &sizes(builder, init, |_| true)?,
    )
}

fn broadcast<'c>(
    builder: &Builder<'c>,
    source: Val<'c>,
    init: Val<'c>,
    mut dims: Vec<i64>,
) -> PassResult<'c, Val<'c>> {
    dims.sort_unstable();
    let (from, to) = (builder.tensor_of(source)?, builder.tensor_of(init)?);
    let mut kept = from.shape.iter();
    let shape: Vec<i64> = (0i64..)
        .zip(&to.shape)
        .map(|(dim, extent)| {
            if dims.contains(&dim) {
                *extent
            } else {
                kept.next().copied().unwrap_or(*extent)
            }
        })
        .collect();
    let sizes = sizes(builder, init, |dim| dims.contains(&dim))?;
    let operands = BroadcastOp::operands(source, &sizes);
    let attributes = [("dims", builder.i64s(&dims))];
    let result = builder.tensor(&shape, to.element)?;
    builder.operator_value(&operands, result, &attributes)
}

/// A result given back the unit dimensions that its map indexes with 0.
///
/// # Errors
/// When one of them is not 1, or building fails.
pub(super) fn restore_units<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    number: usize,
    space: &Space<'c>,
    value: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    use super::structured::Index;
    let map = op.result_map(number);
    let units: Vec<bool> = map.iter().map(|index| *index == Index::Zero).collect();
    if !units.contains(&true) {
        return Ok(value);
    }
    let Some(init) = op.inits.get(number) else {
        return Err(unsupported(op.op, "it has no initial value for a result"));
    };
    check_zeros(builder, &builder.tensor_of(*init)?.shape, &units)?;
    let mut kept = builder.tensor_of(value)?.shape.into_iter();
    let shape: Vec<i64> = units
        .iter()
        .map(|unit| if *unit { 1 } else { kept.next().unwrap_or(1) })
        .collect();
    let all: Vec<usize> = (0..space.shape.len()).collect();
    let sizes = space.sizes(builder, &all)?;
    builder.expand(
        value,
        &shape,
        &crate::ir::reshape::groups_without(&units),
        &sizes,
    )
}
