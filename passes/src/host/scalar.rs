//! Arithmetic on one element: conversions as `axe.cast` defines them (to 8-bit floats saturating), and the wide types that sums are taken in.

use super::ops::{f32, f64, integer, number};
use crate::error::{PassError, PassResult};
use crate::ir::float8::{Float8, narrow, widen};
use crate::ir::{Builder, Val, types};
use axe_dialect::Combiner;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Type, TypeLike, ValueLike};
use mlir_sys as sys;

// `arith.cmpf`'s predicates "at least", "less than" and "one is a NaN".
const OGE: i64 = 3;
const OLT: i64 = 4;
const UNO: i64 = 14;

/// Whether the host's arithmetic has the type: f16, bf16, f32, f64 and integers.
fn is_arithmetic(r#type: Type<'_>) -> bool {
    let raw = r#type.to_raw();
    // SAFETY: the type is valid.
    unsafe {
        sys::mlirTypeIsAF16(raw)
            || sys::mlirTypeIsABF16(raw)
            || sys::mlirTypeIsAF32(raw)
            || sys::mlirTypeIsAF64(raw)
            || types::is_integer(r#type)
    }
}

/// The bits of an element type that the host computes with.
///
/// # Errors
/// When it does not.
fn width<'c>(builder: &Builder<'c>, r#type: Type<'c>) -> PassResult<'c, u32> {
    match types::bits(r#type).filter(|_| is_arithmetic(r#type)) {
        Some(bits) => Ok(bits),
        None => Err(PassError::new(
            builder.location,
            format!(
                "the CPU target does not compute with {type}: expected f16, bf16, f32, f64 or an integer"
            ),
        )),
    }
}

/// The type that sums of `element` are taken in: f64 for floats, the result's own for integers.
pub(super) fn wide<'c>(builder: &Builder<'c>, element: Type<'c>) -> Type<'c> {
    if types::is_float(element) {
        f64(builder)
    } else {
        element
    }
}

/// `value` as `to`: floats round to nearest even, float to integer rounds towards zero and saturates (NaN gives 0),
/// integers are signed.
///
/// # Errors
/// When the host does not compute with one of the types.
pub(crate) fn convert<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    to: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let from = value.r#type();
    if from == to {
        return Ok(value);
    }
    if let Some(format) = Float8::of(from) {
        return convert(builder, widen(builder, value, format)?, to);
    }
    if let Some(format) = Float8::of(to) {
        // What is wider than f32 is rounded to it first.
        return narrow(builder, convert(builder, value, f32(builder))?, to, format);
    }
    let (have, want) = (width(builder, from)?, width(builder, to)?);
    let one = |name: &str, value, to| builder.value(name, &[value], to, &[]);
    match (types::is_float(from), types::is_float(to)) {
        (true, true) if have < want => one("arith.extf", value, to),
        (true, true) if have > want => one("arith.truncf", value, to),
        (true, true) => one("arith.truncf", one("arith.extf", value, f32(builder))?, to),
        (false, true) if want < 32 => {
            let exact = one("arith.sitofp", value, f64(builder))?;
            one("arith.truncf", exact, to)
        }
        (false, true) => one("arith.sitofp", value, to),
        (true, false) => {
            let exact = match have < 32 {
                true => one("arith.extf", value, f32(builder))?,
                false => value,
            };
            saturate(builder, exact, to, want)
        }
        (false, false) if have < want => one("arith.extsi", value, to),
        (false, false) => one("arith.trunci", value, to),
    }
}

/// A float rounded towards zero to an integer of `bits` bits; the nearest one where it has none, and 0 for a NaN.
fn saturate<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    to: Type<'c>,
    bits: u32,
) -> PassResult<'c, Val<'c>> {
    let float = value.r#type();
    let bit = integer(builder, 1);
    let compared = |predicate: i64, bound: Val<'c>| {
        let predicate = IntegerAttribute::new(integer(builder, 64), predicate).into();
        builder.value(
            "arith.cmpf",
            &[value, bound],
            bit,
            &[("predicate", predicate)],
        )
    };
    let select = |condition, a: Val<'c>, b| {
        builder.value("arith.select", &[condition, a, b], a.r#type(), &[])
    };
    // Powers of two are exact in every float type.
    let limit = 2f64.powi(i32::try_from(bits).unwrap_or(64) - 1);
    let above = compared(OGE, number(builder, float, limit)?)?;
    let below = compared(OLT, number(builder, float, -limit)?)?;
    let nan = compared(UNO, value)?;
    let outside = builder.value("arith.ori", &[above, below], bit, &[])?;
    let outside = builder.value("arith.ori", &[outside, nan], bit, &[])?;
    let inside = select(outside, number(builder, float, 0.0)?, value)?;
    let converted = builder.value("arith.fptosi", &[inside], to, &[])?;
    let highest = identity_of(builder, Combiner::Min, to)?;
    let lowest = identity_of(builder, Combiner::Max, to)?;
    let converted = select(above, highest, converted)?;
    select(below, lowest, converted)
}

/// The value that a combiner leaves others as they are with.
///
/// # Errors
/// When the element type has none.
pub(crate) fn identity_of<'c>(
    builder: &Builder<'c>,
    combiner: Combiner,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let bits = width(builder, element)?;
    if types::is_float(element) {
        let value = match combiner {
            Combiner::Mul => 1.0,
            Combiner::Max => f64::NEG_INFINITY,
            Combiner::Min => f64::INFINITY,
            _ => 0.0,
        };
        return number(builder, element, value);
    }
    let lowest = i64::MIN >> (64 - bits.clamp(1, 64));
    let value = match combiner {
        Combiner::Add | Combiner::Or | Combiner::Xor | Combiner::MaxUI => 0,
        Combiner::Mul => 1,
        Combiner::Max => lowest,
        Combiner::Min => !lowest,
        Combiner::And | Combiner::MinUI => -1,
    };
    builder.constant(IntegerAttribute::new(element, value).into())
}

/// Two values combined.
///
/// # Errors
/// When building fails.
pub(crate) fn combine<'c>(
    builder: &Builder<'c>,
    combiner: Combiner,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let name = crate::ir::combiner::operation(combiner, a.r#type());
    builder.value(name, &[a, b], a.r#type(), &[])
}

/// The pattern of memory that nothing wrote: all bits set, a NaN for floats.
///
/// # Errors
/// When building fails.
pub(super) fn poison<'c>(builder: &Builder<'c>, element: Type<'c>) -> PassResult<'c, Val<'c>> {
    let Some(bits) = types::bits(element) else {
        return number(builder, element, -1.0);
    };
    let ones = builder.constant(IntegerAttribute::new(integer(builder, bits), -1).into())?;
    if types::is_integer(element) {
        return Ok(ones);
    }
    builder.value("arith.bitcast", &[ones], element, &[])
}
