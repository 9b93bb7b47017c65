//! Building `linalg.generic`s: of loops that are given, and over a tensor, element by element.

use crate::error::PassResult;
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

/// Loops that read tensors, and what they make: the first ones are those of the result's dimensions, any others combine.
pub(crate) struct Nest<'a, 'c> {
    pub loops: usize,
    /// What is read, and the loops that index it.
    pub read: &'a [(Val<'c>, Vec<usize>)],
    /// What the result begins with, and what it is where loops combine nothing.
    pub init: Val<'c>,
}

impl<'c> Nest<'_, 'c> {
    /// A `linalg.generic`: `body` has an element of each tensor and of the result so far.
    ///
    /// # Errors
    /// When building fails, or those of `body`.
    pub(crate) fn build(
        &self,
        builder: &Builder<'c>,
        body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let rank = builder.tensor_of(self.init)?.shape.len();
        let (read, dims): (Vec<_>, Vec<_>) = self.read.iter().cloned().unzip();
        let of = |own: &Val<'c>| builder.tensor_of(*own).map(|own| own.element);
        let types = read.iter().chain([&self.init]).map(of);
        let (region, arguments, inner) =
            builder.region(&types.collect::<PassResult<'c, Vec<_>>>()?);
        let value = body(&inner, &arguments)?;
        inner.operation("linalg.yield", &[value], &[], &[], Vec::new())?;
        let list = |all: &[usize]| {
            let all: Vec<_> = all.iter().map(|dim| format!("d{dim}")).collect();
            all.join(", ")
        };
        let every = list(&(0..self.loops).collect::<Vec<_>>());
        let dims = dims.into_iter().chain([(0..rank).collect()]);
        let map = |of: Vec<usize>| format!("affine_map<({every}) -> ({})>", list(&of));
        let kinds = (0..self.loops).map(|own| if own < rank { "parallel" } else { "reduction" });
        let loops = Loops {
            maps: dims.map(map).collect(),
            kinds: kinds.collect(),
        };
        let made = (self.init.r#type(), region);
        builder.result_of(generic(builder, &loops, (&read, self.init), made)?)
    }
}

/// The index of a loop, in the body of a `linalg.generic`.
pub(crate) fn index_of<'c>(builder: &Builder<'c>, dim: usize) -> PassResult<'c, Val<'c>> {
    let dim = i64_of(builder, i64::try_from(dim).unwrap_or(i64::MAX));
    builder.value("linalg.index", &[], builder.index_type(), &[("dim", dim)])
}

/// A tensor of elements that are not known yet. `sizes` has each dynamic extent.
///
/// # Errors
/// When building fails.
pub(crate) fn empty<'c>(
    builder: &Builder<'c>,
    (shape, element): (&[i64], Type<'c>),
    sizes: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    builder.value("tensor.empty", sizes, builder.tensor(shape, element)?, &[])
}

/// A tensor like this one, all of whose elements are this scalar.
///
/// # Errors
/// When building fails.
pub(crate) fn filled<'c>(
    builder: &Builder<'c>,
    like: Val<'c>,
    scalar: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let (region, arguments, inner) = builder.region(&[scalar.r#type(); 2]);
    let yielded: Vec<_> = arguments.into_iter().take(1).collect();
    inner.operation("linalg.yield", &yielded, &[], &[], Vec::new())?;
    let segments = [builder.segments(&[1, 1])];
    let (all, of) = ([scalar, like], [like.r#type()]);
    let op = builder.operation("linalg.fill", &all, &of, &segments, vec![region])?;
    builder.result_of(op)
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
    let nest = Nest {
        loops: rank,
        read: &[],
        init: empty(builder, (&tensor.shape, tensor.element), sizes)?,
    };
    nest.build(builder, |inner, _| {
        let at: PassResult<'c, Vec<_>> = (0..rank).map(|dim| index_of(inner, dim)).collect();
        body(inner, &at?)
    })
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
