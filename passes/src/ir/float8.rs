//! 8-bit floats (OCP 8-bit Floating Point Specification, revision 1.0) in arithmetic that every target has.
//!
//! Both formats are f16 with fewer bits: e5m2 its upper byte, e4m3 (no infinities, exponent bias 7 where f16 has 15)
//! the byte below its sign, scaled by 2^8. So a shift of bits widens them, and one rounding in f32 narrows.

use super::{Builder, Val};
use crate::error::PassResult;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike};
use mlir_sys as sys;

/// An 8-bit float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float8 {
    /// `f8E4M3FN`.
    E4M3,
    /// `f8E5M2`.
    E5M2,
}

impl Float8 {
    /// The format of a type; `None` for another type.
    #[must_use]
    pub fn of(r#type: Type<'_>) -> Option<Self> {
        // SAFETY: the type is valid.
        unsafe {
            if sys::mlirTypeIsAFloat8E4M3FN(r#type.to_raw()) {
                Some(Self::E4M3)
            } else if sys::mlirTypeIsAFloat8E5M2(r#type.to_raw()) {
                Some(Self::E5M2)
            } else {
                None
            }
        }
    }

    /// How far its bits without the sign lie below those of f16.
    fn shift(self) -> i64 {
        match self {
            Self::E4M3 => 7,
            Self::E5M2 => 8,
        }
    }

    /// What f16 with its bits is to be multiplied by.
    fn scale(self) -> f64 {
        match self {
            Self::E4M3 => 256.0,
            Self::E5M2 => 1.0,
        }
    }

    /// The largest finite number.
    fn largest(self) -> f64 {
        match self {
            Self::E4M3 => 448.0,
            Self::E5M2 => 57_344.0,
        }
    }

    /// The smallest normal number, and the distance of neighbours as a part of a power of two.
    fn precision(self) -> (f64, f64) {
        match self {
            Self::E4M3 => (1.0 / 64.0, 1.0 / 8.0),
            Self::E5M2 => (1.0 / 16_384.0, 1.0 / 4.0),
        }
    }
}

/// An 8-bit float's bits without the sign; all of them set is e4m3's NaN.
const MAGNITUDE: i64 = 0x7F;
/// Its sign.
const SIGN: i64 = 0x80;
/// `arith.cmpi`'s predicates "equal" and "greater, unsigned".
const EQUAL: i64 = 0;
const ABOVE: i64 = 8;

/// Integer steps of one width.
struct Bits<'a, 'c>(&'a Builder<'c>, u32);

impl<'c> Bits<'_, 'c> {
    fn r#type(&self) -> Type<'c> {
        integer(self.0, self.1)
    }

    fn constant(&self, value: i64) -> PassResult<'c, Val<'c>> {
        let value = IntegerAttribute::new(self.r#type(), value).into();
        self.0.constant(value)
    }

    fn step(&self, name: &str, value: Val<'c>, by: i64) -> PassResult<'c, Val<'c>> {
        let by = self.constant(by)?;
        self.0.value(name, &[value, by], self.r#type(), &[])
    }

    fn or(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.0.value("arith.ori", &[a, b], self.r#type(), &[])
    }

    fn compare(&self, predicate: i64, a: Val<'c>, b: i64) -> PassResult<'c, Val<'c>> {
        let b = self.constant(b)?;
        let predicate = IntegerAttribute::new(integer(self.0, 64), predicate).into();
        let attributes = [("predicate", predicate)];
        self.0
            .value("arith.cmpi", &[a, b], integer(self.0, 1), &attributes)
    }
}

fn integer<'c>(builder: &Builder<'c>, bits: u32) -> Type<'c> {
    builder.r#type(|context| IntegerType::new(context, bits).into())
}

fn f32<'c>(builder: &Builder<'c>) -> Type<'c> {
    builder.r#type(|context| Type::float32(context))
}

/// The f16 with the value of an 8-bit float; exact.
///
/// # Errors
/// When building fails.
pub fn widen<'c>(builder: &Builder<'c>, value: Val<'c>, format: Float8) -> PassResult<'c, Val<'c>> {
    let one = |name: &str, value, to| builder.value(name, &[value], to, &[]);
    let half = builder.r#type(|context| Type::float16(context));
    let bits = Bits(builder, 16);
    let byte = one("arith.bitcast", value, integer(builder, 8))?;
    let byte = one("arith.extui", byte, bits.r#type())?;
    if format == Float8::E5M2 {
        let shifted = bits.step("arith.shli", byte, format.shift())?;
        return one("arith.bitcast", shifted, half);
    }
    let magnitude = bits.step("arith.andi", byte, MAGNITUDE)?;
    let sign = bits.step("arith.andi", byte, SIGN)?;
    let low = bits.step("arith.shli", magnitude, format.shift())?;
    let high = bits.step("arith.shli", sign, 8)?;
    let unscaled = one("arith.bitcast", bits.or(low, high)?, half)?;
    let scale = builder.constant(builder.float(half, format.scale()))?;
    let finite = builder.value("arith.mulf", &[unscaled, scale], half, &[])?;
    // The one code that is no number is not f16's.
    let none = bits.compare(EQUAL, magnitude, MAGNITUDE)?;
    let nan = builder.constant(builder.float(half, f64::NAN))?;
    builder.value("arith.select", &[none, nan, finite], half, &[])
}

/// The 8-bit float nearest to an f32, ties to even; beyond the largest it is the largest, as the hardware's saturating
/// conversions give it (PTX ISA, "cvt", `.satfinite`). A NaN stays one.
///
/// # Errors
/// When building fails.
pub fn narrow<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    to: Type<'c>,
    format: Float8,
) -> PassResult<'c, Val<'c>> {
    let one = |name: &str, value, to| builder.value(name, &[value], to, &[]);
    let two = |name: &str, a, b| builder.value(name, &[a, b], f32(builder), &[]);
    let bits = Bits(builder, 32);
    let raw = one("arith.bitcast", value, integer(builder, 32))?;
    let sign = bits.step("arith.shrui", raw, 24)?;
    let sign = bits.step("arith.andi", sign, SIGN)?;
    let magnitude = bits.step("arith.andi", raw, 0x7FFF_FFFF)?;
    let is_nan = bits.compare(ABOVE, magnitude, 0x7F80_0000)?;
    let positive = one("arith.bitcast", magnitude, f32(builder))?;
    let number = |value| builder.constant(builder.float(f32(builder), value));
    let largest = number(format.largest())?;
    let positive = two("arith.minimumf", positive, largest)?;
    // The power of two below, by the exponent's bits alone.
    let capped = one("arith.bitcast", positive, integer(builder, 32))?;
    let power = bits.step("arith.andi", capped, 0x7F80_0000)?;
    let power = one("arith.bitcast", power, f32(builder))?;
    let (smallest, step) = format.precision();
    let power = two("arith.maximumf", power, number(smallest)?)?;
    let distance = two("arith.mulf", power, number(step)?)?;
    let count = two("arith.divf", positive, distance)?;
    // Less than 2^5 steps, to the nearest even: sums with 2^23 have no fraction.
    let whole = number(f64::from(1 << 23))?;
    let count = two("arith.addf", count, whole)?;
    let count = two("arith.subf", count, whole)?;
    let rounded = two("arith.mulf", count, distance)?;
    let rounded = two("arith.minimumf", rounded, largest)?;
    let scale = number(1.0 / format.scale())?;
    let scaled = two("arith.mulf", rounded, scale)?;
    let half = builder.r#type(|context| Type::float16(context));
    let half = one("arith.truncf", scaled, half)?;
    let half = one("arith.bitcast", half, integer(builder, 16))?;
    let half = one("arith.extui", half, integer(builder, 32))?;
    let code = bits.step("arith.shrui", half, format.shift())?;
    let nan = bits.constant(MAGNITUDE)?;
    let code = builder.value(
        "arith.select",
        &[is_nan, nan, code],
        integer(builder, 32),
        &[],
    )?;
    let byte = one("arith.trunci", bits.or(sign, code)?, integer(builder, 8))?;
    one("arith.bitcast", byte, to)
}
