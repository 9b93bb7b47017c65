//! Rows in order, of which more elements are taken than kernels of `axe.top_k` keep.

use super::order::Rows;
use crate::error::PassResult;
use crate::generalize::generic::{elementwise, extract, sizes_of};
use crate::ir::{Builder, Int, Ints, Predicate, TensorType, Val, types};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// `arith.cmpf`'s predicate of two numbers neither of which is a NaN (ArithBase.td).
const ORDERED: i64 = 7;
/// Its predicate of two numbers of which the first is less, or one is a NaN.
const LESS_OR_NAN: i64 = 11;

/// The first `k` elements of rows in order, and their numbers in this type: the greatest first or the smallest, of equal ones those in front, and
/// NaN greater than all others, as `axe.top_k` has them.
///
/// # Errors
/// When building fails.
pub(super) fn sorted<'c>(
    builder: &Builder<'c>,
    values: Val<'c>,
    (k, index): (i64, Type<'c>),
    is_ascending: bool,
) -> PassResult<'c, [Val<'c>; 2]> {
    let TensorType {
        shape,
        element,
        encoded,
    } = builder.tensor_of(values)?;
    let sizes = sizes_of(builder, values)?;
    let rows = Rows {
        builder,
        shape: &shape,
        sizes: &sizes,
    };
    let numbers = rows.order(values, k, &|inner, one, other| {
        let (one, other) = if is_ascending {
            (one, other)
        } else {
            (other, one)
        };
        is_less(inner, one, other)
    })?;
    let mut shape = shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = k;
    }
    let tensor = |element| TensorType {
        shape: shape.clone(),
        element,
        encoded,
    };
    let of_numbers = elementwise(builder, &tensor(index), &sizes, |inner, at| {
        let number = extract(inner, numbers, at)?;
        let ints = Ints::new(*inner, types::bits(index).unwrap_or(64));
        ints.value(ints.cast(Int::Value(number))?)
    })?;
    let of_values = elementwise(builder, &tensor(element), &sizes, |inner, at| {
        let ints = inner.ints();
        let number = extract(inner, numbers, at)?;
        let number = ints.value(ints.cast(Int::Value(number))?)?;
        let batch = at.split_last().map_or(&[][..], |(_, batch)| batch);
        extract(inner, values, &[batch, &[number]].concat())
    })?;
    Ok([of_values, of_numbers])
}

/// Whether a number is less than another one; all are less than NaN.
fn is_less<'c>(builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
    if !types::is_float(a.r#type()) {
        let bits = types::bits(a.r#type()).unwrap_or(64);
        let ints = Ints::new(*builder, bits);
        return ints.compare(Predicate::Less, Int::Value(a), Int::Value(b));
    }
    let less = floats(builder, LESS_OR_NAN, a, b)?;
    let number = floats(builder, ORDERED, a, a)?;
    builder.value("arith.andi", &[less, number], less.r#type(), &[])
}

fn floats<'c>(
    builder: &Builder<'c>,
    predicate: i64,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let of = |bits| builder.r#type(|context| IntegerType::new(context, bits).into());
    let predicate = IntegerAttribute::new(of(64), predicate).into();
    builder.value("arith.cmpf", &[a, b], of(1), &[("predicate", predicate)])
}
