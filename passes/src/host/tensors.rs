//! Operators whose operands and results are tensors: each becomes one tensor, element by element.

use super::ops::{both, extents, extract, fold, generate, sharpen};
use super::scalar::{combine, convert, identity_of, wide};
use super::walked;
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::{parts, replace_all_uses};
use crate::ir::{Builder, Op, TensorType, Val, walk};
use crate::speculation;
use axe_dialect::Typed;
use axe_dialect::ops::{
    BroadcastOp, CastOp, ExtractSliceOp, FillOp, IndexOp, MapOp, MaskOp, ReduceOp, TransposeOp,
    YieldOp,
};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The result's type, taken apart.
fn result<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, (Type<'c>, TensorType<'c>)> {
    let value = builder.result_of(op)?;
    Ok((value.r#type(), builder.tensor_of(value)?))
}

/// Dimensions as places in a shape, which the verifier made them.
fn places(dims: &[i64]) -> Vec<usize> {
    dims.iter()
        .filter_map(|dim| usize::try_from(*dim).ok())
        .collect()
}

/// `axe.cast`.
pub(super) fn cast<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let CastOp { source, .. } = parts(op)?;
    let sizes = sharpen(extents(builder, source)?, &tensor.shape);
    generate(builder, r#type, &sizes, |inner, at| {
        convert(inner, extract(inner, source, at)?, tensor.element)
    })
}

/// `axe.fill` of a tensor.
pub(super) fn fill<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let FillOp { value, sizes, .. } = parts(op)?;
    let mut sizes = sizes.into_iter().map(Int::Value);
    let sizes: Vec<_> = tensor
        .shape
        .iter()
        .map(|extent| match *extent {
            crate::ir::DYNAMIC => sizes.next().unwrap_or(Int::ZERO),
            fixed => Int::Known(fixed),
        })
        .collect();
    generate(builder, r#type, &sizes, |_, _| Ok(value))
}

/// `axe.map`: its body becomes the body of the tensor's elements.
pub(super) fn map<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let MapOp { inputs, .. } = parts(op)?;
    let Some(first) = inputs.first() else {
        return Err(PassError::new(op.location(), "a map without an input"));
    };
    let sizes = sharpen(extents(builder, *first)?, &tensor.shape);
    let Some(block) = walk::blocks(op).first().copied() else {
        return Err(PassError::new(op.location(), "a map without a body"));
    };
    let indices: Vec<_> = walk::nested(op, &|_| true)
        .into_iter()
        .filter_map(|op| Some((op, IndexOp::of(op)?)))
        .collect();
    let mut body = walk::operations(block);
    body.retain(|op| IndexOp::of(*op).is_none());
    let Some((last, scalars)) = body.split_last() else {
        return Err(PassError::new(op.location(), "a map with an empty body"));
    };
    generate(builder, r#type, &sizes, |inner, at| {
        for (number, input) in inputs.iter().enumerate() {
            let element = extract(inner, *input, at)?;
            if let Some(argument) = walked::argument(block, number) {
                replace_all_uses(argument, element);
            }
        }
        for (op, index) in indices {
            let at = usize::try_from(index.dim).ok().and_then(|dim| at.get(dim));
            let at = at.ok_or_else(|| PassError::new(op.location(), "expected a dimension"))?;
            replace_all_uses(index.result, inner.ints().value(*at)?);
            walk::erase(op);
        }
        for scalar in scalars {
            inner.take(*scalar);
            for op in walk::nested(*scalar, &|_| true)
                .into_iter()
                .chain([*scalar])
            {
                speculation::define_branch(op)?;
            }
        }
        let YieldOp { values, .. } = parts(*last)?;
        let value = values.first().copied();
        value.ok_or_else(|| PassError::new(op.location(), "a map that yields nothing"))
    })
}

/// `axe.broadcast`.
pub(super) fn broadcast<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let BroadcastOp {
        source,
        dims,
        sizes,
        ..
    } = parts(op)?;
    let new = places(&dims);
    let mut kept = extents(builder, source)?.into_iter();
    let mut sizes = sizes.into_iter();
    let mut all = Vec::new();
    for (dim, extent) in tensor.shape.iter().enumerate() {
        all.push(match (*extent, new.contains(&dim)) {
            (crate::ir::DYNAMIC, true) => sizes.next().map_or(Int::ZERO, Int::Value),
            (fixed, true) => Int::Known(fixed),
            (_, false) => kept.next().unwrap_or(Int::ZERO),
        });
    }
    let all = sharpen(all, &tensor.shape);
    generate(builder, r#type, &all, |inner, at| {
        let old: Vec<_> = at
            .iter()
            .enumerate()
            .filter(|(dim, _)| !new.contains(dim))
            .map(|(_, index)| *index)
            .collect();
        extract(inner, source, &old)
    })
}

/// `axe.transpose`.
pub(super) fn transpose<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let TransposeOp {
        source,
        permutation,
        ..
    } = parts(op)?;
    let permutation = places(&permutation);
    let have = extents(builder, source)?;
    let permuted = permutation.iter().filter_map(|dim| have.get(*dim).copied());
    let sizes = sharpen(permuted.collect(), &tensor.shape);
    generate(builder, r#type, &sizes, |inner, at| {
        let mut from = vec![Int::ZERO; at.len()];
        for (dim, index) in permutation.iter().zip(at) {
            if let Some(place) = from.get_mut(*dim) {
                *place = *index;
            }
        }
        extract(inner, source, &from)
    })
}

/// `axe.extract_slice`.
pub(super) fn extract_slice<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let ExtractSliceOp { source, origin, .. } = parts(op)?;
    let sizes: Vec<_> = tensor.shape.iter().copied().map(Int::Known).collect();
    generate(builder, r#type, &sizes, |inner, at| {
        let moved = at.iter().zip(&origin);
        let from = moved
            .map(|(at, first)| inner.ints().add(Int::Known(*first), *at))
            .collect::<PassResult<'c, Vec<_>>>()?;
        extract(inner, source, &from)
    })
}

/// `axe.mask`.
pub(super) fn mask<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let mask: MaskOp = parts(op)?;
    let sizes = extents(builder, mask.source)?;
    generate(builder, r#type, &sizes, |inner, at| {
        let element = extract(inner, mask.source, at)?;
        let mut inside = None;
        for ((index, origin), limit) in at.iter().zip(&mask.origin).zip(&mask.limit) {
            let place = inner.ints().add(Int::of(*origin), *index)?;
            let place = inner.ints().value(place)?;
            let below = super::ops::compare(inner, super::ops::SLT, place, *limit)?;
            inside = both(inner, inside, Some(below))?;
        }
        match inside {
            None => Ok(element),
            Some(inside) => inner.value(
                "arith.select",
                &[inside, element, mask.value],
                tensor.element,
                &[],
            ),
        }
    })
}

/// `axe.reduce`: loops over the dimensions in order; sums and products of floats in f64.
pub(super) fn reduce<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let (r#type, tensor) = result(builder, op)?;
    let ReduceOp {
        source,
        dims,
        combiner,
        ..
    } = parts(op)?;
    let gone = places(&dims);
    let all = extents(builder, source)?;
    let gone = &gone;
    let split = |wanted: bool| {
        let dims = all.iter().enumerate();
        dims.filter(move |(dim, _)| gone.contains(dim) == wanted)
            .map(|(dim, extent)| (dim, *extent))
            .collect::<Vec<_>>()
    };
    let (kept, reduced) = (split(false), split(true));
    let sizes = sharpen(
        kept.iter().map(|(_, extent)| *extent).collect(),
        &tensor.shape,
    );
    generate(builder, r#type, &sizes, |inner, at| {
        let mut index = vec![Int::ZERO; all.len()];
        for ((dim, _), here) in kept.iter().zip(at) {
            if let Some(place) = index.get_mut(*dim) {
                *place = *here;
            }
        }
        let accumulator = wide(inner, tensor.element);
        let start = identity_of(inner, combiner, accumulator)?;
        let total = over(
            inner,
            &reduced,
            &mut index,
            start,
            &mut |inner, index, sum| {
                let element = convert(inner, extract(inner, source, index)?, accumulator)?;
                combine(inner, combiner, sum, element)
            },
        )?;
        convert(inner, total, tensor.element)
    })
}

/// The next value of a fold, at an index.
type Step<'a, 'c> = dyn FnMut(&Builder<'c>, &[Int<'c>], Val<'c>) -> PassResult<'c, Val<'c>> + 'a;

/// Folds over a box of dimensions, outermost first.
fn over<'c>(
    builder: &Builder<'c>,
    dims: &[(usize, Int<'c>)],
    index: &mut Vec<Int<'c>>,
    start: Val<'c>,
    step: &mut Step<'_, 'c>,
) -> PassResult<'c, Val<'c>> {
    let Some(((dim, extent), rest)) = dims.split_first() else {
        return step(builder, index, start);
    };
    let folded = fold(builder, *extent, &[start], |inner, at, carried| {
        if let Some(place) = index.get_mut(*dim) {
            *place = Int::Value(at);
        }
        let carried = carried.first().copied().unwrap_or(start);
        over(inner, rest, index, carried, step).map(|value| vec![value])
    })?;
    folded
        .first()
        .copied()
        .ok_or_else(|| PassError::new(builder.location, "a loop without a result"))
}
