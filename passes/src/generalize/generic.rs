//! Building `linalg.generic`s: of loops that are given, and over a tensor, element by element.

use crate::error::PassResult;
use crate::ir::value::results;
use crate::ir::{Builder, DYNAMIC, Int, Op, Predicate, TensorType, Val};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Region, Type, ValueLike};

/// The loops: what each operand is indexed with, the result's last, and `parallel` or `reduction` for each of them.
pub(crate) struct Loops<'a> {
    pub maps: Vec<String>,
    pub kinds: Vec<&'a str>,
}

/// A `linalg.generic` of inputs and an initial value, of a body that is built.
///
/// # Errors
/// When building fails.
pub(crate) fn generic<'c>(
    builder: &Builder<'c>,
    loops: &Loops<'_>,
    (inputs, init): (&[Val<'c>], Val<'c>),
    (r#type, region): (Type<'c>, Region<'c>),
) -> PassResult<'c, Op<'c>> {
    let kind = |kind: &&str| format!("#linalg.iterator_type<{kind}>");
    let kinds: Vec<_> = loops.kinds.iter().map(kind).collect();
    let number = i32::try_from(inputs.len()).unwrap_or(i32::MAX);
    let attributes = [
        (
            "indexing_maps",
            builder.parsed(&format!("[{}]", loops.maps.join(", ")))?,
        ),
        (
            "iterator_types",
            builder.parsed(&format!("[{}]", kinds.join(", ")))?,
        ),
        builder.segments(&[number, 1]),
    ];
    let all: Vec<_> = inputs.iter().copied().chain([init]).collect();
    builder.operation("linalg.generic", &all, &[r#type], &attributes, vec![region])
}

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
    let loops = Loops {
        maps: vec![format!("affine_map<({dims}) -> ({dims})>")],
        kinds: vec!["parallel"; rank],
    };
    let op = generic(builder, &loops, (&[], empty), (r#type, region))?;
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
