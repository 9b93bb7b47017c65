//! What the bits of a float say: its class and its sign. No libm and no device library is needed for it.

use super::{Builder, Val, types};
use crate::error::PassResult;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike, ValueLike};

// `arith.cmpi`'s predicates.
const EQUAL: i64 = 0;
const BELOW: i64 = 6;
const ABOVE: i64 = 8;

/// An IEEE 754 float, or bfloat16, as an integer.
struct Pattern<'a, 'c> {
    builder: &'a Builder<'c>,
    r#type: Type<'c>,
    bits: u32,
    value: Val<'c>,
}

impl<'a, 'c> Pattern<'a, 'c> {
    fn of(builder: &'a Builder<'c>, float: Val<'c>) -> PassResult<'c, Self> {
        let bits = types::bits(float.r#type()).unwrap_or(64).clamp(16, 64);
        let r#type = builder.r#type(|context| IntegerType::new(context, bits).into());
        Ok(Self {
            builder,
            r#type,
            bits,
            value: builder.value("arith.bitcast", &[float], r#type, &[])?,
        })
    }

    fn number(&self, value: i64) -> PassResult<'c, Val<'c>> {
        let value = IntegerAttribute::new(self.r#type, value).into();
        self.builder.constant(value)
    }

    fn binary(&self, name: &str, a: Val<'c>, b: i64) -> PassResult<'c, Val<'c>> {
        let b = self.number(b)?;
        self.builder.value(name, &[a, b], self.r#type, &[])
    }

    fn magnitude(&self) -> PassResult<'c, Val<'c>> {
        self.binary("arith.andi", self.value, i64::MAX >> (64 - self.bits))
    }

    fn sign(&self) -> PassResult<'c, Val<'c>> {
        self.binary("arith.andi", self.value, i64::MIN >> (64 - self.bits))
    }

    fn compare(&self, predicate: i64, a: Val<'c>, b: i64) -> PassResult<'c, Val<'c>> {
        let of = |bits| {
            self.builder
                .r#type(|context| IntegerType::new(context, bits).into())
        };
        let predicate = IntegerAttribute::new(of(64), predicate).into();
        let operands = [a, self.number(b)?];
        self.builder
            .value("arith.cmpi", &operands, of(1), &[("predicate", predicate)])
    }
}

/// Bits of the mantissa of a float of this type.
fn mantissa(r#type: Type<'_>, bits: u32) -> u32 {
    // SAFETY: the type is valid.
    let bf16 = unsafe { mlir_sys::mlirTypeIsABF16(r#type.to_raw()) };
    match bits {
        64 => 52,
        32 => 23,
        _ if bf16 => 7,
        _ => 10,
    }
}

/// `math.isnan`, `isinf`, `isfinite` or `isnormal` of a float; `None` for another name. The exponent of an infinity and of a
/// NaN has all bits set, that of zero and of subnormals none.
///
/// # Errors
/// When an operation cannot be built.
pub fn class<'c>(
    builder: &Builder<'c>,
    name: &str,
    float: Val<'c>,
) -> PassResult<'c, Option<Val<'c>>> {
    if !["math.isnan", "math.isinf", "math.isfinite", "math.isnormal"].contains(&name) {
        return Ok(None);
    }
    let pattern = Pattern::of(builder, float)?;
    let mantissa = mantissa(float.r#type(), pattern.bits);
    let infinity = ((1i64 << (pattern.bits - 1 - mantissa)) - 1) << mantissa;
    let magnitude = pattern.magnitude()?;
    match name {
        "math.isnan" => pattern.compare(ABOVE, magnitude, infinity),
        "math.isinf" => pattern.compare(EQUAL, magnitude, infinity),
        "math.isfinite" => pattern.compare(BELOW, magnitude, infinity),
        _ => {
            let least = 1i64 << mantissa;
            let above = pattern.binary("arith.subi", magnitude, least)?;
            pattern.compare(BELOW, above, infinity - least)
        }
    }
    .map(Some)
}

/// The magnitude of one float with the sign of another of its type.
///
/// # Errors
/// When an operation cannot be built.
pub fn copysign<'c>(
    builder: &Builder<'c>,
    float: Val<'c>,
    sign: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let (own, sign) = (Pattern::of(builder, float)?, Pattern::of(builder, sign)?);
    let both = [own.magnitude()?, sign.sign()?];
    let bits = builder.value("arith.ori", &both, own.r#type, &[])?;
    builder.value("arith.bitcast", &[bits], float.r#type(), &[])
}
