//! Slices of tensors, and insertions into them.

use super::generic::{all, apply, compare, elementwise, extract as element, sizes_of};
use super::mixed::{Mixed, read, segments};
use crate::error::{PassError, PassResult};
use crate::ir::value::operands;
use crate::ir::{Builder, DYNAMIC, Op, Predicate, Val};
use melior::ir::operation::OperationLike;

/// Where a box of a tensor lies.
struct Slice<'c> {
    offsets: Vec<Mixed<'c>>,
    sizes: Vec<Mixed<'c>>,
    strides: Vec<Mixed<'c>>,
    /// For each dimension, the one of the box; `None` for those of one element that the box leaves out.
    kept: Vec<Option<usize>>,
}

impl<'c> Slice<'c> {
    /// The box of an operation whose last three segments say where it is; `shape` is that of the box.
    fn of(op: Op<'c>, shape: &[i64]) -> PassResult<'c, Self> {
        let all = segments(op);
        let [.., offsets, sizes, strides] = all.as_slice() else {
            return Err(PassError::new(
                op.location(),
                "a slice without offsets, sizes and strides",
            ));
        };
        let sizes = read(op, "static_sizes", sizes)?;
        Ok(Self {
            offsets: read(op, "static_offsets", offsets)?,
            strides: read(op, "static_strides", strides)?,
            kept: kept(&sizes, shape).ok_or_else(|| {
                PassError::new(op.location(), "the slice's sizes do not fit its type")
            })?,
            sizes,
        })
    }
}

/// The dimension of a box of this shape that each size is of.
fn kept(sizes: &[Mixed<'_>], shape: &[i64]) -> Option<Vec<Option<usize>>> {
    let mut next = 0;
    let mut kept = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let size = match size {
            Mixed::Known(known) => *known,
            Mixed::Value(_) => DYNAMIC,
        };
        // Of several dimensions of one element it does not matter which ones are left out.
        let left = sizes.len() - at;
        let fits = shape
            .get(next)
            .is_some_and(|extent| *extent == size || *extent == DYNAMIC || size == DYNAMIC);
        if fits && (size != 1 || shape.get(next) == Some(&1)) || shape.len() - next == left {
            kept.push(Some(next));
            next += 1;
        } else if size == 1 {
            kept.push(None);
        } else {
            return None;
        }
    }
    (next == shape.len()).then_some(kept)
}

/// `tensor.extract_slice`.
pub(super) fn extract<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let slice = Slice::of(op, &result.shape)?;
    let source = op
        .operand(0)
        .map_err(|_| PassError::new(op.location(), "expected a source"))?;
    let mut sizes = Vec::new();
    for (kept, size) in slice.kept.iter().zip(&slice.sizes) {
        if kept.and_then(|dim| result.shape.get(dim)) == Some(&DYNAMIC) {
            sizes.push(size.value(builder)?);
        }
    }
    elementwise(builder, &result, &sizes, |inner, at| {
        let mut index = Vec::new();
        for (dim, offset) in slice.offsets.iter().enumerate() {
            let own = slice
                .kept
                .get(dim)
                .copied()
                .flatten()
                .and_then(|dim| at.get(dim));
            index.push(match (own, slice.strides.get(dim)) {
                (Some(at), Some(stride)) => offset.added_to(inner, stride.times(inner, *at)?)?,
                _ => offset.value(inner)?,
            });
        }
        element(inner, source, &index)
    })
}

/// `tensor.insert_slice`.
pub(super) fn insert<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let &[source, into, ..] = operands(op).as_slice() else {
        return Err(PassError::new(
            op.location(),
            "expected a source and a destination",
        ));
    };
    let slice = Slice::of(op, &builder.tensor_of(source)?.shape)?;
    let sizes = sizes_of(builder, into)?;
    elementwise(builder, &result, &sizes, |inner, at| {
        let (mut inside, mut index) = (Vec::new(), Vec::new());
        for (dim, &at) in at.iter().enumerate() {
            let (Some(offset), Some(size), Some(stride), Some(kept)) = (
                slice.offsets.get(dim),
                slice.sizes.get(dim),
                slice.strides.get(dim),
                slice.kept.get(dim),
            ) else {
                return Err(PassError::new(
                    op.location(),
                    "expected an offset a dimension",
                ));
            };
            let whole = match (offset, size, stride, result.shape.get(dim)) {
                (Mixed::Known(0), Mixed::Known(size), Mixed::Known(1), Some(extent)) => {
                    size == extent
                }
                _ => false,
            };
            let place = match whole {
                true => at,
                false => within(inner, (at, *offset, *size, *stride), &mut inside)?,
            };
            if kept.is_some() {
                index.push(place);
            }
        }
        match all(inner, &inside)? {
            None => element(inner, source, &index),
            Some(inside) => inner.choose(
                inside,
                |inner| element(inner, source, &index),
                |inner| element(inner, into, at),
            ),
        }
    })
}

/// The place in a box along a dimension, and the conditions for there to be one.
fn within<'c>(
    builder: &Builder<'c>,
    (at, offset, size, stride): (Val<'c>, Mixed<'c>, Mixed<'c>, Mixed<'c>),
    inside: &mut Vec<Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let from = offset.taken_from(builder, at)?;
    inside.push(compare(
        builder,
        Predicate::AtLeast,
        from,
        builder.index(0)?,
    )?);
    let place = match stride {
        Mixed::Known(1) => from,
        _ => {
            let stride = stride.value(builder)?;
            let rest = apply(builder, "arith.remsi", from, stride)?;
            inside.push(compare(builder, Predicate::Equal, rest, builder.index(0)?)?);
            apply(builder, "arith.divsi", from, stride)?
        }
    };
    inside.push(compare(
        builder,
        Predicate::Less,
        place,
        size.value(builder)?,
    )?);
    Ok(place)
}

/// `tensor.insert`: one element.
pub(super) fn insert_element<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let all_operands = operands(op);
    let [value, into, place @ ..] = all_operands.as_slice() else {
        return Err(PassError::new(
            op.location(),
            "expected a value and a destination",
        ));
    };
    let sizes = sizes_of(builder, *into)?;
    elementwise(builder, &result, &sizes, |inner, at| {
        let same =
            |(at, place): (&Val<'c>, &Val<'c>)| compare(inner, Predicate::Equal, *at, *place);
        let same = at
            .iter()
            .zip(place)
            .map(same)
            .collect::<PassResult<'c, Vec<_>>>()?;
        match all(inner, &same)? {
            None => Ok(*value),
            Some(here) => inner.choose(here, |_| Ok(*value), |inner| element(inner, *into, at)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_one_element_are_left_out() {
        let sizes = |sizes: &[i64]| {
            sizes
                .iter()
                .map(|size| Mixed::Known(*size))
                .collect::<Vec<_>>()
        };
        let kept = |own: &[i64], shape: &[i64]| kept(&sizes(own), shape);
        assert_eq!(kept(&[2, 3], &[2, 3]), Some(vec![Some(0), Some(1)]));
        assert_eq!(kept(&[1, 4, 1], &[4]), Some(vec![None, Some(0), None]));
        assert_eq!(
            kept(&[1, 1, 4], &[1, 4]),
            Some(vec![Some(0), None, Some(1)])
        );
        assert_eq!(kept(&[1, 1], &[]), Some(vec![None, None]));
        assert_eq!(kept(&[1, 4], &[1, 4]), Some(vec![Some(0), Some(1)]));
        assert_eq!(kept(&[2, 3], &[3]), None);
        assert_eq!(kept(&[1], &[1, 1]), None);
    }
}
