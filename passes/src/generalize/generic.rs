//! Building a `linalg.generic` over a tensor, element by element.

use crate::error::PassResult;
use crate::ir::value::results;
use crate::ir::{Builder, DYNAMIC, Int, Predicate, TensorType, Val, attribute};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// The tensor whose element at an index is what `body` gives for it. `sizes` has each dynamic extent.
///
/// # Errors
/// When building fails, or those of `body`.
pub(crate) fn elementwise<'c>(
    builder: &Builder<'c>,
    tensor: &TensorType<'c>,
    sizes: &[Val<'c>],
    body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let rank = tensor.shape.len();
    let r#type = builder.tensor(&tensor.shape, tensor.element)?;
    let empty = builder.value("tensor.empty", sizes, r#type, &[])?;
    let (region, _, inner) = builder.region(&[tensor.element]);
    let index = builder.index_type();
    let at = (0i64..)
        .take(rank)
        .map(|dim| {
            let dim = [("dim", i64_of(builder, dim))];
            inner.value("linalg.index", &[], index, &dim)
        })
        .collect::<PassResult<'c, Vec<_>>>()?;
    let value = body(&inner, &at)?;
    inner.operation("linalg.yield", &[value], &[], &[], Vec::new())?;
    let dims: Vec<_> = (0..rank).map(|dim| format!("d{dim}")).collect();
    let dims = dims.join(", ");
    let map = builder.parsed(&format!("[affine_map<({dims}) -> ({dims})>]"))?;
    let parallel = vec!["#linalg.iterator_type<parallel>"; rank].join(", ");
    let attributes = [
        ("indexing_maps", map),
        ("iterator_types", builder.parsed(&format!("[{parallel}]"))?),
        (
            "operandSegmentSizes",
            builder.attribute(|context| attribute::i32s(context, &[0, 1])),
        ),
    ];
    let op = builder.operation(
        "linalg.generic",
        &[empty],
        &[r#type],
        &attributes,
        vec![region],
    )?;
    Ok(results(op).first().copied().unwrap_or(empty))
}

fn i64_of<'c>(builder: &Builder<'c>, value: i64) -> melior::ir::Attribute<'c> {
    builder.attribute(|context| {
        IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into()
    })
}

/// The element of a tensor at an index.
pub(crate) fn extract<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    at: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let element = builder.tensor_of(tensor)?.element;
    let operands: Vec<_> = std::iter::once(tensor).chain(at.iter().copied()).collect();
    builder.value("tensor.extract", &operands, element, &[])
}

/// The dynamic extents of a tensor, in order.
pub(crate) fn sizes_of<'c>(builder: &Builder<'c>, tensor: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
    let shape = builder.tensor_of(tensor)?.shape;
    let dynamic = (0..).zip(&shape).filter(|(_, extent)| **extent == DYNAMIC);
    dynamic
        .map(|(dim, _)| builder.extent(tensor, dim))
        .collect()
}

/// A comparison of two indices.
pub(crate) fn compare<'c>(
    builder: &Builder<'c>,
    predicate: Predicate,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    builder
        .ints()
        .compare(predicate, Int::Value(a), Int::Value(b))
}

/// Whether all conditions hold; `None` where there is none.
pub(crate) fn all<'c>(
    builder: &Builder<'c>,
    conditions: &[Val<'c>],
) -> PassResult<'c, Option<Val<'c>>> {
    let Some((first, rest)) = conditions.split_first() else {
        return Ok(None);
    };
    let both = |a: Val<'c>, b: &Val<'c>| builder.value("arith.andi", &[a, *b], bit(builder), &[]);
    rest.iter().try_fold(*first, both).map(Some)
}

fn bit<'c>(builder: &Builder<'c>) -> Type<'c> {
    builder.r#type(|context| IntegerType::new(context, 1).into())
}

/// A value of the same type as both operands.
pub(crate) fn apply<'c>(
    builder: &Builder<'c>,
    name: &str,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    builder.value(name, &[a, b], a.r#type(), &[])
}
