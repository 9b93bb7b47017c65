//! Copies and fills between memrefs: loops over slices, which carry their source's bounds, so that the last tile of
//! a dimension that no tile divides reads and writes what exists.

use super::Options;
use super::part::{Along, Part, along, copy_of, extents, nest};
use crate::boxes;
use crate::error::{PassError, PassResult};
use crate::ir::value::operands;
use crate::ir::{Builder, DYNAMIC, Op, Val, types, walk};
use axe_dialect::Typed;
use axe_dialect::ops::{CopyOp, FillOp, SliceOp};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Tiles a copy or a fill of storage; false where it is no larger than a tile.
pub(super) fn tile<'c>(op: Op<'c>, options: &Options) -> PassResult<'c, bool> {
    let copy = CopyOp::of(op);
    let filled = || FillOp::of(op)?.dest;
    let Some(target) = copy.as_ref().and_then(|copy| copy.dest).or_else(filled) else {
        return Ok(false);
    };
    let shape = shape_of(op, target);
    if !options.splits(&shape) {
        return Ok(false);
    }
    if copy.is_some_and(|copy| copy.signal.is_some() || copy.multicast) {
        return Err(fail(
            op,
            "a copy that completes a pipeline's stage, or that a cluster shares, stays whole",
        ));
    }
    let builder = Builder::before(op);
    let dims = bounded(&builder, target, &shape, options)?;
    nest(&builder, &dims, &[], &mut |builder, parts, _| {
        let boxed = |operand: Val<'c>| match types::is_memref(operand.r#type()) {
            true => slice(builder, operand, parts),
            false => Ok(operand),
        };
        let tiles = operands(op)
            .into_iter()
            .map(boxed)
            .collect::<PassResult<'c, Vec<_>>>()?;
        copy_of(builder, op, &tiles, None);
        Ok(Vec::new())
    })?;
    walk::erase(op);
    Ok(true)
}

/// The shape of what is written: a static extent on either side is the extent of both.
fn shape_of(op: Op<'_>, target: Val<'_>) -> Vec<i64> {
    let mut shape = types::shape(target.r#type()).unwrap_or_default();
    for other in operands(op) {
        let other = types::shape(other.r#type()).unwrap_or_default();
        for (extent, other) in shape.iter_mut().zip(other) {
            if *extent == DYNAMIC {
                *extent = other;
            }
        }
    }
    shape
}

/// The dimensions of storage: tiles of one extent, for slices are static.
fn bounded<'c>(
    builder: &Builder<'c>,
    memref: Val<'c>,
    shape: &[i64],
    options: &Options,
) -> PassResult<'c, Vec<Along<'c>>> {
    if let Some((dim, _)) = (0..)
        .zip(shape)
        .find(|(dim, extent)| **extent == DYNAMIC && options.size(*dim) == 0)
    {
        return Err(PassError::new(
            builder.location,
            format!(
                "dimension {dim} is dynamic: expected a size for it, for a slice has a static shape"
            ),
        ));
    }
    along(shape, options, true, |dim| {
        let dim = builder.index(i64::try_from(dim).unwrap_or(i64::MAX))?;
        builder.value("memref.dim", &[memref, dim], builder.index_type(), &[])
    })
}

/// The tile of storage.
///
/// # Errors
/// Why no layout describes it.
pub(super) fn slice<'c>(
    builder: &Builder<'c>,
    memref: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    if parts.iter().all(|part| part.at.is_none()) {
        return Ok(memref);
    }
    let facts: Vec<_> = parts.iter().map(|part| part.fact).collect();
    let r#type = boxes::box_type(builder, memref.r#type(), &facts, &extents(parts), 0)
        .map_err(|why| PassError::new(builder.location, why))?;
    let origin = parts.iter().map(|part| part.begin(builder));
    let origin = origin.collect::<PassResult<'c, Vec<_>>>()?;
    builder.operator_value(&SliceOp::operands(memref, &origin), r#type, &[])
}

/// The location of an operation's failure.
pub(super) fn fail<'c>(op: Op<'c>, why: impl Into<String>) -> PassError<'c> {
    PassError::new(op.location(), why)
}
