//! The same elements in another shape, and the extents that shapes have at run time.

use super::space::{Kind, Size};
use crate::ir::value::{defining, name, operands, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, types};
use crate::{PassError, PassResult};
use axe_dialect::ops::{self, Trait};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The shape of a value of a kind in the space of `total` elements and `columns` columns; with a batch, its
/// number of products leads.
pub fn shape_in(total: Size, columns: i64, batch: Option<[i64; 2]>, kind: Kind) -> Vec<i64> {
    let rows = match batch {
        Some(batch) => batch.to_vec(),
        None if total.dynamic => vec![DYNAMIC],
        None => vec![total.known / columns.max(1)],
    };
    match kind {
        Kind::Full => [rows, vec![columns]].concat(),
        Kind::Row => rows,
        Kind::Column => vec![columns],
        Kind::Blocks(of) => [rows, vec![columns / of.max(1)]].concat(),
        Kind::Pairs(_) => [rows, vec![columns / 2]].concat(),
    }
}

/// Groups of the dimensions `fine` whose products are `coarse`; `None` when there are none.
fn groups(fine: &[i64], coarse: &[i64]) -> Option<Vec<Vec<i64>>> {
    if coarse.is_empty() {
        return fine.iter().all(|extent| *extent == 1).then(Vec::new);
    }
    let mut groups = vec![Vec::new(); coarse.len()];
    let mut next = fine.len();
    for (at, &extent) in coarse.iter().enumerate().rev() {
        let group = groups.get_mut(at)?;
        let mut have = 1i64;
        loop {
            let done = have == extent && !group.is_empty() && at > 0;
            if done || next == 0 {
                break;
            }
            next -= 1;
            have = match *fine.get(next)? {
                DYNAMIC => DYNAMIC,
                _ if have == DYNAMIC => DYNAMIC,
                size => have.checked_mul(size)?,
            };
            group.insert(0, i64::try_from(next).ok()?);
        }
        if have != extent || group.is_empty() {
            return None;
        }
    }
    (next == 0).then_some(groups)
}

/// The same elements in another shape; `leading` is its dynamic extent.
///
/// # Errors
/// When an operation cannot be built.
pub fn reshape<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    shape: &[i64],
    leading: Option<Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let have = builder.tensor_of(tensor)?.shape;
    if have == shape {
        return Ok(tensor);
    }
    if let Some(groups) = groups(&have, shape).filter(|_| shape.len() < have.len()) {
        return builder.collapse(tensor, &groups);
    }
    let sizes: Vec<_> = leading.into_iter().collect();
    if let Some(groups) = groups(shape, &have).filter(|_| shape.len() > have.len()) {
        return builder.expand(tensor, shape, &groups, &sizes);
    }
    let all = |rank: usize| vec![(0i64..).take(rank).collect::<Vec<_>>()];
    let flat = builder.collapse(tensor, &all(have.len()))?;
    builder.expand(flat, shape, &all(shape.len()), &sizes)
}

/// The dynamic leading extent that `value` has in another shape.
///
/// # Errors
/// As for [`leading`].
pub fn leading_of<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Val<'c>> {
    let known: i64 = shape.iter().skip(1).product();
    let own = leading(builder, value)?;
    let size = Size::of(value).map_or(1, |size| size.known);
    scaled(builder, own, size, known)
}

/// `value * by / per`.
fn scaled<'c>(builder: &Builder<'c>, value: Val<'c>, by: i64, per: i64) -> PassResult<'c, Val<'c>> {
    let index = builder.index_type();
    if per > 0 && by % per == 0 {
        return match by / per {
            1 => Ok(value),
            factor => builder.value("arith.muli", &[value, builder.index(factor)?], index, &[]),
        };
    }
    let product = builder.value("arith.muli", &[value, builder.index(by)?], index, &[])?;
    builder.value("arith.divui", &[product, builder.index(per)?], index, &[])
}

/// The leading extent of a value of the logical function, from values that no operator makes.
///
/// # Errors
/// When the value is not a tensor, or its producer does not determine the extent.
pub fn leading<'c>(builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(value)?.shape;
    match shape.first() {
        Some(&DYNAMIC) => {}
        Some(extent) => return builder.index(*extent),
        None => return builder.index(1),
    }
    let Some(op) = defining(value) else {
        return builder.extent(value, 0);
    };
    let values = operands(op);
    let dims = op
        .attribute("dims")
        .ok()
        .and_then(attribute::read_i64s)
        .unwrap_or_default();
    let from = |at: usize| match values.get(at) {
        Some(value) => Ok(*value),
        None => Err(PassError::new(
            op.location(),
            "its leading extent is not known",
        )),
    };
    match name(op).as_str() {
        ops::MAP | ops::CAST | ops::REDUCE | ops::TRANSPOSE | ops::TOP_K | "tensor.cast" => {
            leading(builder, from(0)?)
        }
        ops::BROADCAST if dims.contains(&0) => from(1),
        ops::BROADCAST => leading(builder, from(0)?),
        ops::FILL => from(1),
        "tensor.empty" => from(0),
        "linalg.generic" => extent_of(builder, value, 0),
        product if ops::has(product, Trait::Product) => {
            let (a, b) = (from(0)?, from(1)?);
            let (of_a, of_b) = (builder.tensor_of(a)?.shape, builder.tensor_of(b)?.shape);
            // Groups of B are no dimension of the result.
            let is_batch = of_a.len() > 2 && of_a.len() == of_b.len() && of_a[0] != DYNAMIC;
            leading(builder, if is_batch { b } else { a })
        }
        "tensor.expand_shape" | "tensor.collapse_shape" => {
            let source = from(0)?;
            let own = leading(builder, source)?;
            let known = |value| Size::of(value).map_or(1, |size: Size| size.known);
            scaled(builder, own, known(source), known(value))
        }
        _ => builder.extent(value, 0),
    }
}

/// The extent of a dimension of a value of the logical function, from values that no operator makes.
///
/// # Errors
/// As for [`leading`], or when the value has no such dimension.
pub fn extent_of<'c>(builder: &Builder<'c>, value: Val<'c>, dim: usize) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(value)?.shape;
    let Some(op) = defining(value).filter(|_| shape.get(dim) == Some(&DYNAMIC)) else {
        return builder.extent(value, dim);
    };
    let values = operands(op);
    match name(op).as_str() {
        "linalg.generic" => {
            let number = results(op).iter().position(|result| *result == value);
            let first = values.len().saturating_sub(results(op).len());
            match number.and_then(|number| values.get(first + number)) {
                Some(init) => extent_of(builder, *init, dim),
                None => builder.extent(value, dim),
            }
        }
        "tensor.cast" | ops::MAP | ops::CAST => match values.first() {
            Some(from) => extent_of(builder, *from, dim),
            None => builder.extent(value, dim),
        },
        "tensor.expand_shape" => {
            let before = shape.iter().take(dim).filter(|extent| **extent == DYNAMIC);
            match values.get(1 + before.count()) {
                Some(size) => Ok(*size),
                None => builder.extent(value, dim),
            }
        }
        "tensor.collapse_shape" => {
            let groups = op.attribute("reassociation").ok();
            let groups = groups.and_then(attribute::read_groups).unwrap_or_default();
            let mut product = builder.index(1)?;
            for from in groups.get(dim).into_iter().flatten() {
                let from = usize::try_from(*from).unwrap_or(0);
                let own = extent_of(builder, values.first().copied().unwrap_or(value), from)?;
                product =
                    builder.value("arith.muli", &[product, own], builder.index_type(), &[])?;
            }
            Ok(product)
        }
        _ if dim == 0 => leading(builder, value),
        _ => builder.extent(value, dim),
    }
}

/// Bytes of an element.
pub fn element_bytes(element: Type<'_>) -> i64 {
    types::bits(element).map_or(4, |bits| i64::from(bits.div_ceil(8)))
}

/// Checks that no extent of an operation's tensors but the leading one is dynamic, that none is zero, and
/// that none has a layout yet.
///
/// # Errors
/// At the operation.
pub fn check_tensors<'c>(op: Op<'c>) -> PassResult<'c> {
    for value in operands(op).into_iter().chain(results(op)) {
        let Some(tensor) = TensorType::of_value(value) else {
            continue;
        };
        let error = |what: &str| {
            let r#type = value.r#type();
            Err(PassError::new(op.location(), format!("{what}, got {type}")))
        };
        if tensor.encoded {
            return error("expected logical tensors without layouts");
        }
        if tensor.shape.iter().skip(1).any(|extent| *extent == DYNAMIC) {
            return error("expected every extent but the leading one to be static");
        }
        if tensor.shape.contains(&0) {
            return error("expected a tensor with elements");
        }
        if Size::of(value).is_none() {
            return error("expected a tensor of fewer than 2^63 elements");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_grouped_by_their_products() {
        assert_eq!(
            groups(&[2, 4, 64], &[8, 64]),
            Some(vec![vec![0, 1], vec![2]])
        );
        assert_eq!(
            groups(&[DYNAMIC, 4, 8], &[DYNAMIC, 8]),
            Some(vec![vec![0, 1], vec![2]])
        );
        assert_eq!(groups(&[128, 1], &[128]), Some(vec![vec![0, 1]]));
        assert_eq!(groups(&[1, 128], &[128]), Some(vec![vec![0, 1]]));
        assert_eq!(groups(&[6, 4], &[4, 6]), None);
        assert_eq!(groups(&[], &[]), Some(vec![]));
        assert_eq!(groups(&[1, 1], &[]), Some(vec![]));
    }
}
