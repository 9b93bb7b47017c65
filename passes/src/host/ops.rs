//! Loops, conditions and tensors built element by element.

use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::results;
use crate::ir::{Builder, DYNAMIC, Val, types};
use axe_dialect::memref_type;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// `arith.cmpi`'s predicate "signed less than".
pub(super) const SLT: i64 = 2;

/// An integer type of `width` bits.
pub(super) fn integer<'c>(builder: &Builder<'c>, width: u32) -> Type<'c> {
    builder.r#type(|context| IntegerType::new(context, width).into())
}

/// The type f64.
pub(super) fn f64<'c>(builder: &Builder<'c>) -> Type<'c> {
    builder.r#type(|context| Type::float64(context))
}

/// The type f32.
pub(super) fn f32<'c>(builder: &Builder<'c>) -> Type<'c> {
    builder.r#type(|context| Type::float32(context))
}

/// A number as a constant of a float or integer type.
///
/// # Errors
/// When the type is neither.
pub(super) fn number<'c>(
    builder: &Builder<'c>,
    r#type: Type<'c>,
    value: f64,
) -> PassResult<'c, Val<'c>> {
    if types::is_float(r#type) {
        // SAFETY: the type is a float's.
        return builder.constant(unsafe {
            let context = sys::mlirTypeGetContext(r#type.to_raw());
            Attribute::from_raw(sys::mlirFloatAttrDoubleGet(context, r#type.to_raw(), value))
        });
    }
    if types::is_integer(r#type) || r#type == builder.index_type() {
        return builder.constant(IntegerAttribute::new(r#type, value as i64).into());
    }
    Err(PassError::new(
        builder.location,
        format!("expected float or integer elements, got {type}"),
    ))
}

/// `arith.cmpi` of two indices or integers.
pub(super) fn compare<'c>(
    builder: &Builder<'c>,
    predicate: i64,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    compared(builder, "arith.cmpi", predicate, [a, b])
}

/// `arith.cmpf` of two floats.
pub(super) fn compare_floats<'c>(
    builder: &Builder<'c>,
    predicate: i64,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    compared(builder, "arith.cmpf", predicate, [a, b])
}

fn compared<'c>(
    builder: &Builder<'c>,
    op: &str,
    predicate: i64,
    values: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let predicate = IntegerAttribute::new(integer(builder, 64), predicate).into();
    let predicate = [("predicate", predicate)];
    builder.value(op, &values, integer(builder, 1), &predicate)
}

/// Whether both hold; `None` holds always.
pub(super) fn both<'c>(
    builder: &Builder<'c>,
    a: Option<Val<'c>>,
    b: Option<Val<'c>>,
) -> PassResult<'c, Option<Val<'c>>> {
    match (a, b) {
        (Some(a), Some(b)) => builder
            .value("arith.andi", &[a, b], integer(builder, 1), &[])
            .map(Some),
        (one, other) => Ok(one.or(other)),
    }
}

/// `scf.for` from 0 to `count` that carries values; `body` gives the next ones.
///
/// # Errors
/// When building fails.
pub(super) fn fold<'c>(
    builder: &Builder<'c>,
    count: Int<'c>,
    start: &[Val<'c>],
    body: impl FnOnce(&Builder<'c>, Val<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let bounds = [
        builder.index(0)?,
        builder.ints().value(count)?,
        builder.index(1)?,
    ];
    let carried: Vec<Type<'c>> = start.iter().map(|value| value.r#type()).collect();
    let arguments: Vec<_> = std::iter::once(builder.index_type())
        .chain(carried.iter().copied())
        .collect();
    let (region, values, inner) = builder.region(&arguments);
    let Some((at, values)) = values.split_first() else {
        return Err(PassError::new(builder.location, "a loop without an index"));
    };
    let next = body(&inner, *at, values)?;
    inner.operation("scf.yield", &next, &[], &[], Vec::new())?;
    let operands: Vec<_> = bounds.into_iter().chain(start.iter().copied()).collect();
    builder
        .operation("scf.for", &operands, &carried, &[], vec![region])
        .map(results)
}

/// A nest of loops over a box, outermost first.
///
/// # Errors
/// When building fails.
pub(super) fn nest<'c>(
    builder: &Builder<'c>,
    extents: &[Int<'c>],
    body: &mut dyn FnMut(&Builder<'c>, &[Int<'c>]) -> PassResult<'c>,
) -> PassResult<'c> {
    nest_from(builder, extents, &mut Vec::new(), body)
}

fn nest_from<'c>(
    builder: &Builder<'c>,
    extents: &[Int<'c>],
    at: &mut Vec<Int<'c>>,
    body: &mut dyn FnMut(&Builder<'c>, &[Int<'c>]) -> PassResult<'c>,
) -> PassResult<'c> {
    let Some(extent) = extents.get(at.len()) else {
        return body(builder, at);
    };
    fold(builder, *extent, &[], |inner, index, _| {
        at.push(Int::Value(index));
        nest_from(inner, extents, at, body)?;
        at.pop();
        Ok(Vec::new())
    })
    .map(drop)
}

/// `scf.if` without results.
///
/// # Errors
/// When building fails.
pub(super) fn when<'c>(
    builder: &Builder<'c>,
    condition: Val<'c>,
    then: impl FnOnce(&Builder<'c>) -> PassResult<'c>,
) -> PassResult<'c> {
    let (region, _, inner) = builder.region(&[]);
    then(&inner)?;
    inner.operation("scf.yield", &[], &[], &[], Vec::new())?;
    let otherwise = melior::ir::Region::new();
    builder
        .operation("scf.if", &[condition], &[], &[], vec![region, otherwise])
        .map(drop)
}

/// The element of a tensor at an index.
///
/// # Errors
/// When the value is not a tensor.
pub(super) fn extract<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    at: &[Int<'c>],
) -> PassResult<'c, Val<'c>> {
    let element = builder.tensor_of(tensor)?.element;
    let mut operands = vec![tensor];
    for index in at {
        operands.push(builder.ints().value(*index)?);
    }
    builder.value("tensor.extract", &operands, element, &[])
}

/// The tensor whose element at an index is what `body` gives for it; `extents` are those of the result.
///
/// # Errors
/// When building fails.
pub(super) fn generate<'c>(
    builder: &Builder<'c>,
    result: Type<'c>,
    extents: &[Int<'c>],
    body: impl FnOnce(&Builder<'c>, &[Int<'c>]) -> PassResult<'c, Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    if extents.is_empty() {
        let value = body(builder, &[])?;
        return builder.value("tensor.from_elements", &[value], result, &[]);
    }
    let sizes = dynamic_sizes(builder, result, extents)?;
    let (region, indices, inner) = builder.region(&vec![builder.index_type(); extents.len()]);
    let at: Vec<_> = indices.into_iter().map(Int::Value).collect();
    let value = body(&inner, &at)?;
    inner.operation("tensor.yield", &[value], &[], &[], Vec::new())?;
    let op = builder.operation("tensor.generate", &sizes, &[result], &[], vec![region])?;
    builder.result_of(op)
}

/// The extents that a shaped type leaves dynamic, as values.
///
/// # Errors
/// When building fails.
pub(super) fn dynamic_sizes<'c>(
    builder: &Builder<'c>,
    r#type: Type<'c>,
    extents: &[Int<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let shape = types::shape(r#type).unwrap_or_default();
    let dynamic = shape.iter().zip(extents);
    dynamic
        .filter(|(extent, _)| **extent == DYNAMIC)
        .map(|(_, size)| builder.ints().value(*size))
        .collect()
}

/// The extents of a tensor: numbers where its type has them.
///
/// # Errors
/// When the value is not a tensor.
pub(super) fn extents<'c>(builder: &Builder<'c>, tensor: Val<'c>) -> PassResult<'c, Vec<Int<'c>>> {
    let shape = builder.tensor_of(tensor)?.shape;
    let extent = |(dim, extent): (usize, &i64)| match *extent {
        DYNAMIC => builder.extent(tensor, dim).map(Int::Value),
        fixed => Ok(Int::Known(fixed)),
    };
    shape.iter().enumerate().map(extent).collect()
}

/// `extents`, where `shape` does not say them.
pub(super) fn sharpen<'c>(extents: Vec<Int<'c>>, shape: &[i64]) -> Vec<Int<'c>> {
    let known = |(extent, shape): (Int<'c>, &i64)| match *shape {
        DYNAMIC => extent,
        fixed => Int::Known(fixed),
    };
    extents.into_iter().zip(shape).map(known).collect()
}

/// `memref<shape x element>`, dense and row-major, in the default memory space.
///
/// # Errors
/// When no memref has such elements.
pub(super) fn memref<'c>(
    builder: &Builder<'c>,
    shape: &[i64],
    element: Type<'c>,
) -> PassResult<'c, Type<'c>> {
    memref_type(builder.location, shape, element, None, None).ok_or_else(|| {
        PassError::new(
            builder.location,
            format!("no memref has elements of type {element}"),
        )
    })
}

/// Gives a value another type; its users must agree with it.
pub(super) fn set_type<'c>(value: Val<'c>, r#type: Type<'c>) {
    // SAFETY: value and type are valid and of one context.
    unsafe { sys::mlirValueSetType(value.to_raw(), r#type.to_raw()) };
}
