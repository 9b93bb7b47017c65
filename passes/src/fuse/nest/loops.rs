//! The loops of a structured operation: which are shared out, and how far they run.

use crate::ir::{DYNAMIC, Op, Val, attribute};
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, ValueLike};

/// The loops that are no reductions: those of the first result in its order, then others.
#[must_use]
pub fn parallel(op: Op<'_>, reductions: &[bool]) -> Vec<usize> {
    let segments = op.attribute("operandSegmentSizes").ok();
    let segments = segments.and_then(|sizes| DenseI32ArrayAttribute::try_from(sizes).ok());
    let inputs = segments
        .and_then(|sizes| sizes.element(0).ok())
        .and_then(|size| usize::try_from(size).ok());
    let maps = maps(op).unwrap_or_default();
    let mut order = Vec::new();
    if let Some(map) = inputs.and_then(|inputs| maps.get(inputs)) {
        for at in 0..map.result_count() {
            if let Ok(index) = map.result(at)
                && index.is_dim()
                && !order.contains(&index.dim_position())
            {
                order.push(index.dim_position());
            }
        }
    }
    for at in 0..reductions.len() {
        if !order.contains(&at) {
            order.push(at);
        }
    }
    order.retain(|at| reductions.get(*at) == Some(&false));
    order
}

/// The indexing maps.
#[must_use]
pub fn maps<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    let maps = attribute::elements(op.attribute("indexing_maps").ok()?)?;
    let maps = maps
        .into_iter()
        .map(attribute::affine_map)
        .collect::<Option<Vec<_>>>()?;
    maps.iter()
        .all(|map| map.symbol_count() == 0)
        .then_some(maps)
}

/// For each loop, whether it is a reduction.
#[must_use]
pub fn reductions(op: Op<'_>) -> Vec<bool> {
    let kinds = op
        .attribute("iterator_types")
        .ok()
        .and_then(attribute::elements);
    let kinds = kinds.unwrap_or_default().into_iter();
    kinds
        .map(|kind| !kind.to_string().contains("parallel"))
        .collect()
}

/// The extent of a loop, static where an operand says so, and the operand and dimension to ask for it.
pub(super) fn loop_extent<'c>(
    all: &[Val<'c>],
    maps: &[AffineMap<'c>],
    at: usize,
) -> Option<(i64, (Val<'c>, usize))> {
    let mut found = None;
    for (value, map) in all.iter().zip(maps).rev() {
        let Some(tensor) = crate::ir::types::shape(value.r#type()) else {
            continue;
        };
        for (dim, extent) in tensor.into_iter().enumerate() {
            let index = map.result(dim).ok()?;
            if index.is_dim() && index.dim_position() == at {
                if extent != DYNAMIC {
                    return Some((extent, (*value, dim)));
                }
                found = found.or(Some((extent, (*value, dim))));
            }
        }
    }
    found
}
