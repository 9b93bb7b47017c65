//! Tensors put together of others, and of single elements.

use super::generic::{all, compare, elementwise, extract};
use super::mixed::{Mixed, read, segments};
use crate::error::{PassError, PassResult};
use crate::ir::value::operands;
use crate::ir::{Builder, DYNAMIC, Op, Predicate, TensorType, Val, attribute, inline, walk};
use melior::ir::operation::OperationLike;

/// Elements of a `tensor.from_elements` up to which it becomes a choice among them.
const MOST_ELEMENTS: usize = 64;

/// `tensor.pad`.
pub(super) fn pad<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let all_segments = segments(op);
    let ([source], [low, high]) = (
        all_segments.first().map_or(&[][..], Vec::as_slice),
        all_segments.get(1..).unwrap_or_default(),
    ) else {
        return Err(PassError::new(
            op.location(),
            "expected a source and two widths a dimension",
        ));
    };
    let low = read(op, "static_low", low)?;
    let high = read(op, "static_high", high)?;
    let mut sizes = Vec::new();
    for (dim, (low, high)) in low.iter().zip(&high).enumerate() {
        if result.shape.get(dim) == Some(&DYNAMIC) {
            let own = low.added_to(builder, builder.extent(*source, dim)?)?;
            sizes.push(high.added_to(builder, own)?);
        }
    }
    elementwise(builder, &result, &sizes, |inner, at| {
        let (mut inside, mut index) = (Vec::new(), Vec::new());
        for (dim, (&at, low)) in at.iter().zip(&low).enumerate() {
            let place = low.taken_from(inner, at)?;
            let extent = || builder.extent(*source, dim);
            if !matches!(low, Mixed::Known(0)) {
                inside.push(compare(inner, Predicate::AtLeast, place, inner.index(0)?)?);
            }
            if !matches!(high.get(dim), Some(Mixed::Known(0))) {
                inside.push(compare(inner, Predicate::Less, place, extent()?)?);
            }
            index.push(place);
        }
        let Some(inside) = all(inner, &inside)? else {
            return extract(inner, *source, &index);
        };
        inner.choose(
            inside,
            |inner| extract(inner, *source, &index),
            |inner| body(inner, op, at),
        )
    })
}

/// What the only block of an operation yields for its arguments.
fn body<'c>(builder: &Builder<'c>, op: Op<'c>, arguments: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
    let block = walk::blocks(op).first().copied();
    let yielded = block.map(|block| inline::copy(builder, block, arguments));
    let value = yielded.and_then(|yielded| yielded.first().copied());
    value.ok_or_else(|| PassError::new(op.location(), "expected a body that yields an element"))
}

/// `tensor.generate`.
pub(super) fn generate<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    elementwise(builder, &result, &operands(op), |inner, at| {
        body(inner, op, at)
    })
}

/// `tensor.splat`.
pub(super) fn splat<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let all = operands(op);
    let Some((value, sizes)) = all.split_first() else {
        return Err(PassError::new(op.location(), "expected a value"));
    };
    elementwise(builder, &result, sizes, |_, _| Ok(*value))
}

/// `tensor.from_elements`: a choice among its elements; `None` where they are too many.
pub(super) fn from_elements<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
) -> PassResult<'c, Option<Val<'c>>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let elements = operands(op);
    if elements.len() > MOST_ELEMENTS {
        return Ok(None);
    }
    let value = elementwise(builder, &result, &[], |inner, at| {
        let mut place = inner.index(0)?;
        for (at, extent) in at.iter().zip(&result.shape) {
            place = Mixed::Known(*extent).times(inner, place)?;
            place = Mixed::Value(place).added_to(inner, *at)?;
        }
        chosen(inner, &result, place, &elements)
    });
    value.map(Some)
}

fn chosen<'c>(
    builder: &Builder<'c>,
    tensor: &TensorType<'c>,
    place: Val<'c>,
    elements: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let Some((&(mut value), rest)) = elements.split_first() else {
        let error = "expected elements, got a tensor without any";
        return Err(PassError::new(builder.location, error));
    };
    for (number, element) in (1i64..).zip(rest) {
        let here = compare(builder, Predicate::Equal, place, builder.index(number)?)?;
        value = builder.value(
            "arith.select",
            &[here, *element, value],
            tensor.element,
            &[],
        )?;
    }
    Ok(value)
}

/// `tensor.concat`.
pub(super) fn concat<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let result = builder.tensor_of(builder.result_of(op)?)?;
    let dim = op.attribute("dim").ok().and_then(attribute::integer);
    let dim = dim.and_then(|dim| usize::try_from(dim).ok()).unwrap_or(0);
    let inputs = operands(op);
    let Some(&first) = inputs.first() else {
        return Err(PassError::new(op.location(), "expected inputs"));
    };
    // Where each input ends along the dimension.
    let mut ends = Vec::new();
    let mut end = Mixed::Known(0);
    for input in &inputs {
        let own = match builder.tensor_of(*input)?.shape.get(dim) {
            Some(&extent) if extent != DYNAMIC => Mixed::Known(extent),
            _ => Mixed::Value(builder.extent(*input, dim)?),
        };
        end = sum(builder, end, own)?;
        ends.push(end);
    }
    let mut sizes = Vec::new();
    for (at, extent) in result.shape.iter().enumerate() {
        if *extent == DYNAMIC {
            sizes.push(match at == dim {
                true => end.value(builder)?,
                false => builder.extent(first, at)?,
            });
        }
    }
    elementwise(builder, &result, &sizes, |inner, at| {
        piece(inner, (dim, at), &inputs, &ends, Mixed::Known(0))
    })
}

fn sum<'c>(builder: &Builder<'c>, a: Mixed<'c>, b: Mixed<'c>) -> PassResult<'c, Mixed<'c>> {
    match (a, b) {
        (Mixed::Known(a), Mixed::Known(b)) => a.checked_add(b).map(Mixed::Known).ok_or_else(|| {
            PassError::new(builder.location, "the extent of a concatenation overflows")
        }),
        (a, b) => a.added_to(builder, b.value(builder)?).map(Mixed::Value),
    }
}

/// The element of the input that an index falls into; the first of them begins at `start`.
fn piece<'c>(
    builder: &Builder<'c>,
    (dim, at): (usize, &[Val<'c>]),
    inputs: &[Val<'c>],
    ends: &[Mixed<'c>],
    start: Mixed<'c>,
) -> PassResult<'c, Val<'c>> {
    let (Some((&input, inputs)), Some((&end, ends))) = (inputs.split_first(), ends.split_first())
    else {
        return Err(PassError::new(builder.location, "expected inputs"));
    };
    let own = |inner: &Builder<'c>| {
        let mut index = at.to_vec();
        if let Some(place) = index.get_mut(dim) {
            *place = start.taken_from(inner, *place)?;
        }
        extract(inner, input, &index)
    };
    let Some(&along) = at.get(dim).filter(|_| !inputs.is_empty()) else {
        return own(builder);
    };
    let before = compare(builder, Predicate::Less, along, end.value(builder)?)?;
    builder.choose(before, own, |inner| {
        piece(inner, (dim, at), inputs, ends, end)
    })
}
