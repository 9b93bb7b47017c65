//! Bringing the operands of a structured operation to the shape of its loops.

use super::structured::{Index, Structured};
use super::unsupported;
use crate::error::{PassError, PassResult};
use crate::ir::reshape::groups_without;
use crate::ir::value::defined_by;
use crate::ir::{Builder, DYNAMIC, TensorType, Val, attribute};
use axe_dialect::Typed;
use axe_dialect::ops::{BroadcastOp, FillOp, TransposeOp};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// An operand as the body of a map sees it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand<'c> {
    /// One element of a tensor of the space's shape.
    Tensor(Val<'c>),
    /// The same value everywhere.
    Scalar(Val<'c>),
}

/// The points at which a body is evaluated: loops in some order, with their extents.
#[derive(Clone, Debug)]
pub(super) struct Space<'c> {
    /// The loops, outermost first.
    pub(super) order: Vec<usize>,
    /// Their extents.
    pub(super) shape: Vec<i64>,
    /// For each of them, a tensor and its dimension that has the extent.
    sources: Vec<(Val<'c>, usize)>,
}

impl<'c> Space<'c> {
    /// The loops of `order`, with extents from the operands of `op`.
    ///
    /// # Errors
    /// When no operand has one of the loops.
    pub(super) fn new(op: &Structured<'c>, order: Vec<usize>) -> PassResult<'c, Self> {
        let mut space = Self {
            order: Vec::new(),
            shape: Vec::new(),
            sources: Vec::new(),
        };
        for at in order {
            let Some((extent, source)) = extent_of(op, at) else {
                return Err(unsupported(op.op, &format!("no operand has its loop {at}")));
            };
            space.order.push(at);
            space.shape.push(extent);
            space.sources.push(source);
        }
        Ok(space)
    }

    /// The position of a loop in the order.
    pub(super) fn position(&self, at: usize) -> Option<usize> {
        self.order.iter().position(|have| *have == at)
    }

    /// The dynamic extents at the given positions, as index values.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn sizes(
        &self,
        builder: &Builder<'c>,
        positions: &[usize],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let dynamic = |at: &&usize| self.shape.get(**at) == Some(&DYNAMIC);
        let source = |at: &usize| self.sources.get(*at).copied();
        positions
            .iter()
            .filter(dynamic)
            .filter_map(source)
            .map(|(tensor, dim)| builder.extent(tensor, dim))
            .collect()
    }
}

/// The extent of a loop, static when any operand says so, and the tensor and dimension to ask for it.
/// Initial values are asked first: those that only give a shape outlive nothing but this pass.
pub(super) fn extent_of<'c>(op: &Structured<'c>, at: usize) -> Option<(i64, (Val<'c>, usize))> {
    let having = (0..op.maps.len()).rev().filter_map(|number| {
        let (value, map) = op.operand(number)?;
        let dim = map.iter().position(|index| *index == Index::Loop(at))?;
        Some((*TensorType::of_value(value)?.shape.get(dim)?, (value, dim)))
    });
    let having: Vec<_> = having.collect();
    having
        .iter()
        .find(|(extent, _)| *extent != DYNAMIC)
        .or(having.first())
        .copied()
}

/// An operand with the shape of the space: unit dimensions dropped, transposed, then broadcast.
///
/// # Errors
/// When a dimension that is not 1 is indexed with 0, or building fails.
pub(super) fn align<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    (value, map): (Val<'c>, &[Index]),
) -> PassResult<'c, Operand<'c>> {
    if TensorType::of_value(value).is_none() {
        return Ok(Operand::Scalar(value));
    }
    if let Some(scalar) = uniform(builder, value)? {
        return Ok(Operand::Scalar(scalar));
    }
    spread(builder, space, (value, map)).map(Operand::Tensor)
}

/// As [`align`], always a tensor.
///
/// # Errors
/// As for [`align`].
pub(super) fn spread<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    (value, map): (Val<'c>, &[Index]),
) -> PassResult<'c, Val<'c>> {
    let value = drop_zeros(builder, value, map)?;
    let positions: Option<Vec<usize>> = map
        .iter()
        .filter_map(|index| match index {
            Index::Loop(at) => Some(space.position(*at)),
            Index::Zero => None,
        })
        .collect();
    let Some(positions) = positions else {
        return Err(PassError::new(
            builder.location,
            "an operand has a loop that the result lacks",
        ));
    };
    let value = to_ascending(builder, value, &positions)?;
    let value = broadcast(builder, space, value, &positions)?;
    let element = builder.tensor_of(value)?.element;
    builder.with_type(value, builder.tensor(&space.shape, element)?)
}

/// Drops the dimensions that are indexed with 0.
///
/// # Errors
/// When one of them is not 1.
pub(super) fn drop_zeros<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    map: &[Index],
) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(value)?.shape;
    let zeros: Vec<bool> = map.iter().map(|index| *index == Index::Zero).collect();
    check_zeros(builder, &shape, &zeros)?;
    builder.collapse(value, &groups_without(&zeros))
}

/// Checks that the dimensions indexed with 0 have the extent 1.
///
/// # Errors
/// When one has another extent.
pub(super) fn check_zeros<'c>(
    builder: &Builder<'c>,
    shape: &[i64],
    zeros: &[bool],
) -> PassResult<'c> {
    match zeros
        .iter()
        .zip(shape)
        .find(|(zero, extent)| **zero && **extent != 1)
    {
        Some((_, extent)) => {
            let extent = if *extent == DYNAMIC {
                "?".to_owned()
            } else {
                extent.to_string()
            };
            let message = format!(
                "not supported: a dimension of extent {extent} is indexed with 0; expected extent 1"
            );
            Err(PassError::new(builder.location, message))
        }
        None => Ok(()),
    }
}

/// Permutes the dimensions of `value` so that their positions ascend.
fn to_ascending<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    positions: &[usize],
) -> PassResult<'c, Val<'c>> {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by_key(|dim| positions.get(*dim));
    transpose(builder, value, &order)
}

/// `axe.transpose`: dimension `i` of the result is dimension `permutation[i]` of `value`.
///
/// # Errors
/// When the permutation does not fit.
pub(super) fn transpose<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    permutation: &[usize],
) -> PassResult<'c, Val<'c>> {
    if permutation.iter().enumerate().all(|(at, dim)| at == *dim) {
        return Ok(value);
    }
    let source = builder.tensor_of(value)?;
    let shape: Option<Vec<_>> = permutation
        .iter()
        .map(|dim| source.shape.get(*dim).copied())
        .collect();
    let Some(shape) = shape else {
        return Err(PassError::new(
            builder.location,
            "the permutation does not fit the tensor's rank",
        ));
    };
    if let Some(value) = without_units(builder, value, permutation, &shape)? {
        return Ok(value);
    }
    let permutation: Vec<i64> = permutation
        .iter()
        .filter_map(|dim| i64::try_from(*dim).ok())
        .collect();
    let attributes = [("permutation", builder.i64s(&permutation))];
    let result = builder.tensor(&shape, source.element)?;
    builder.operator_value(&TransposeOp::operands(value), result, &attributes)
}

/// A transpose to this shape as one of the dimensions that are not 1, between reshapes: what an einsum is written with moves such dimensions along.
/// None where all are wide.
fn without_units<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    permutation: &[usize],
    shape: &[i64],
) -> PassResult<'c, Option<Val<'c>>> {
    let source = builder.tensor_of(value)?.shape;
    let are_units =
        |shape: &[i64]| -> Vec<bool> { shape.iter().map(|extent| *extent == 1).collect() };
    let (from, to) = (are_units(&source), are_units(shape));
    if shape.contains(&DYNAMIC) || !from.contains(&true) || !from.contains(&false) {
        return Ok(None);
    }
    let wide: Vec<usize> = (0..source.len())
        .filter(|dim| from.get(*dim) == Some(&false))
        .collect();
    let place = |dim: &usize| wide.iter().position(|own| own == dim);
    let order: Vec<usize> = permutation.iter().filter_map(place).collect();
    let value = squeezed(builder, value, &from)?;
    let value = transpose(builder, value, &order)?;
    builder
        .expand(value, shape, &groups_without(&to), &[])
        .map(Some)
}

/// A tensor without these dimensions of extent 1: what they were put into, where that is known.
///
/// # Errors
/// When building fails.
pub(super) fn squeezed<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    units: &[bool],
) -> PassResult<'c, Val<'c>> {
    let tensor = builder.tensor_of(value)?;
    let wide = tensor.shape.iter().zip(units).filter(|(_, unit)| !**unit);
    let wide: Vec<i64> = wide.map(|(extent, _)| *extent).collect();
    let from = defined_by(value, "tensor.expand_shape").and_then(|op| op.operand(0).ok());
    let has_shape =
        |from: &Val<'c>| TensorType::of_value(*from).is_some_and(|own| own.shape == wide);
    if let Some(from) = from.filter(has_shape) {
        return Ok(from);
    }
    let groups = groups_without(units);
    // What was collapsed before is collapsed at once: what is in front of it is looked for below one reshape.
    let before = defined_by(value, "tensor.collapse_shape").and_then(|op| {
        let own = op.attribute("reassociation").ok();
        Some((op.operand(0).ok()?, own.and_then(attribute::read_groups)?))
    });
    let Some((from, own)) = before else {
        return builder.collapse(value, &groups);
    };
    let dims = |dim: &i64| usize::try_from(*dim).ok().and_then(|dim| own.get(dim));
    let both = |group: &Vec<i64>| group.iter().filter_map(dims).flatten().copied().collect();
    let groups: Vec<Vec<i64>> = groups.iter().map(both).collect();
    builder.collapse(from, &groups)
}

/// `axe.broadcast` of a tensor whose dimensions lie at `positions` of the space, ascending.
fn broadcast<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    value: Val<'c>,
    positions: &[usize],
) -> PassResult<'c, Val<'c>> {
    let new: Vec<usize> = (0..space.shape.len())
        .filter(|at| !positions.contains(at))
        .collect();
    if new.is_empty() {
        return Ok(value);
    }
    let source = builder.tensor_of(value)?;
    let mut kept = source.shape.iter();
    let extent = |(at, extent): (usize, &i64)| match new.contains(&at) {
        true => *extent,
        false => kept.next().copied().unwrap_or(*extent),
    };
    let shape: Vec<i64> = space.shape.iter().enumerate().map(extent).collect();
    let operands = BroadcastOp::operands(value, &space.sizes(builder, &new)?);
    let dims: Vec<i64> = new
        .iter()
        .filter_map(|at| i64::try_from(*at).ok())
        .collect();
    let attributes = [("dims", builder.i64s(&dims))];
    let result = builder.tensor(&shape, source.element)?;
    builder.operator_value(&operands, result, &attributes)
}

/// The value that all elements of a tensor have, when its producer says so: a fill or a splat constant.
///
/// # Errors
/// When building fails.
pub(super) fn uniform<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
) -> PassResult<'c, Option<Val<'c>>> {
    if let Some(fill) = FillOp::defining(value) {
        return Ok(Some(fill.value));
    }
    let constant = defined_by(value, "arith.constant").and_then(|op| op.attribute("value").ok());
    match constant.and_then(attribute::splat) {
        Some(element) => builder.constant(element).map(Some),
        None => Ok(None),
    }
}

/// `axe.fill` of the space's shape.
///
/// # Errors
/// When building fails.
pub(super) fn fill<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    value: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let all: Vec<usize> = (0..space.shape.len()).collect();
    let sizes = space.sizes(builder, &all)?;
    fill_of(builder, value, &space.shape, &sizes)
}

/// `axe.fill` of a shape whose dynamic extents are `sizes`.
///
/// # Errors
/// When building fails.
pub(super) fn fill_of<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
    sizes: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor(shape, value.r#type())?;
    builder.operator_value(&FillOp::operands(value, None, sizes), result, &[])
}

/// The order that undoes another.
pub(super) fn inverse(order: &[usize]) -> Vec<usize> {
    (0..order.len())
        .filter_map(|dim| order.iter().position(|own| *own == dim))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_undone() {
        for order in [vec![0, 1], vec![1, 0], vec![0, 2, 3, 1]] {
            let undone: Vec<_> = inverse(&order).into_iter().map(|at| order[at]).collect();
            assert_eq!(undone, (0..order.len()).collect::<Vec<_>>());
        }
    }
}
