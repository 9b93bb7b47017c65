//! `--axe-simplify-powers`: powers with constant exponents become products, quotients and roots.
//!
//! What enters: `math.powf` and `math.fpowi` on scalars, in bodies or beside them. What remains: those whose exponents are other
//! numbers, or none that is known.
//!
//! | exponent | becomes | error, units in the last place |
//! | --- | --- | --- |
//! | 0, 1 | 1, x | none |
//! | 2, -1 | x x, 1 / x | 1/2 |
//! | 3, 4 | `math.fpowi` | 3/2 |
//! | -2 | (1 / x)^2: 1 / x^2 would be 0 where x^2 is infinite | 3/2 |
//! | 1/2, -1/2 | `math.sqrt`, `math.rsqrt` | theirs |
//! | 3/2, -3/2 | x sqrt(x), (1 / x) rsqrt(x) | 3/2, 2 |
//!
//! 16-bit floats are widened where there is more than one rounding. Special cases stay C's (C17, F.10.4.4): a power of -0.0 that is no
//! whole number is that of 0.0, and one of minus infinity is infinity or zero, which no root is.

use crate::error::PassResult;
use crate::ir::value::{defined_by, name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, Op, Val, types, walk};
use crate::precision::{constant, constant_integer, is_not_negative};
use crate::registry::PassContext;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Type, ValueLike};

/// `arith.cmpf`'s predicate "equal, and neither a NaN".
const OEQ: i64 = 1;

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    let mut simplified = 0;
    for op in walk::nested(module, &|_| true) {
        let (Some(result), Some(power)) = (only_result(op), Power::of(op)) else {
            continue;
        };
        if let Some(value) = power.value()? {
            replace_all_uses(result, value);
            walk::erase(op);
            simplified += 1;
        }
    }
    pass.count("num-simplified", simplified);
    Ok(())
}

/// A power of a scalar.
struct Power<'c> {
    builder: Builder<'c>,
    base: Val<'c>,
    exponent: f64,
    /// Whether it is a `math.powf`.
    real: bool,
    r#type: Type<'c>,
    /// The operation's flags of fast math.
    flags: Vec<(&'static str, Attribute<'c>)>,
}

impl<'c> Power<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let real = name(op) == "math.powf";
        if !real && name(op) != "math.fpowi" {
            return None;
        }
        let [base, exponent] = operands(op)[..] else {
            return None;
        };
        let flags = op.attribute("fastmath").into_iter();
        types::is_float(base.r#type()).then_some(Self {
            builder: Builder::before(op),
            base,
            exponent: number(exponent)?,
            real,
            r#type: base.r#type(),
            flags: flags.map(|flags| ("fastmath", flags)).collect(),
        })
    }

    /// What it becomes; `None` for one that stays.
    fn value(&self) -> PassResult<'c, Option<Val<'c>>> {
        // All that become something are halves of whole numbers.
        let halves = (-4..=8).find(|halves| f64::from(*halves) == 2.0 * self.exponent);
        match halves {
            Some(0) => self.number(self.r#type, 1.0),
            Some(2) => Ok(self.base),
            Some(4) => self.apply("arith.mulf", &[self.base, self.base]),
            Some(-2) => self.inverse(self.base),
            Some(-4) => self.widely(|base| self.inverse_square(base)),
            Some(1 | -1) => self.root(),
            Some(3 | -3) => self.widely(|base| self.root_and_product(base)),
            Some(whole @ (6 | 8)) if self.real => {
                self.widely(|base| self.whole(base, i64::from(whole / 2)))
            }
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn number(&self, r#type: Type<'c>, value: f64) -> PassResult<'c, Val<'c>> {
        self.builder.constant(self.builder.float(r#type, value))
    }

    fn apply(&self, name: &str, operands: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let r#type = operands.first().map_or(self.r#type, ValueLike::r#type);
        self.builder.value(name, operands, r#type, &self.flags)
    }

    /// A power that is computed with more than one rounding, of the base in f32 where it has fewer bits.
    fn widely(
        &self,
        power: impl FnOnce(Val<'c>) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        if types::bits(self.r#type) >= Some(32) {
            return power(self.base);
        }
        let f32 = self.builder.r#type(|context| Type::float32(context));
        let wide = self.builder.value("arith.extf", &[self.base], f32, &[])?;
        let value = power(wide)?;
        self.builder
            .value("arith.truncf", &[value], self.r#type, &[])
    }

    fn inverse(&self, base: Val<'c>) -> PassResult<'c, Val<'c>> {
        let one = self.number(base.r#type(), 1.0)?;
        self.apply("arith.divf", &[one, base])
    }

    fn inverse_square(&self, base: Val<'c>) -> PassResult<'c, Val<'c>> {
        let inverse = self.inverse(base)?;
        self.apply("arith.mulf", &[inverse, inverse])
    }

    /// `sqrt(x)` or `1 / sqrt(x)`.
    fn root(&self) -> PassResult<'c, Val<'c>> {
        let (base, known) = self.without_sign_of_zero(self.base)?;
        let root = self.apply(self.root_function(), &[base])?;
        self.with_infinity(base, known, root)
    }

    /// `x sqrt(x)` or `(1 / x) (1 / sqrt(x))`.
    fn root_and_product(&self, base: Val<'c>) -> PassResult<'c, Val<'c>> {
        let (base, known) = self.without_sign_of_zero(base)?;
        let root = self.apply(self.root_function(), &[base])?;
        let factor = match self.exponent > 0.0 {
            true => base,
            false => self.inverse(base)?,
        };
        let product = self.apply("arith.mulf", &[factor, root])?;
        self.with_infinity(base, known, product)
    }

    fn root_function(&self) -> &'static str {
        match self.exponent > 0.0 {
            true => "math.sqrt",
            false => "math.rsqrt",
        }
    }

    /// `x + 0.0`, which is 0.0 of -0.0, and whether no element is below zero.
    fn without_sign_of_zero(&self, base: Val<'c>) -> PassResult<'c, (Val<'c>, bool)> {
        let zero = self.number(base.r#type(), 0.0)?;
        let sum = self.apply("arith.addf", &[base, zero])?;
        Ok((sum, is_not_negative(self.base)))
    }

    /// The power, and that of minus infinity, which the root in it made a NaN.
    fn with_infinity(
        &self,
        base: Val<'c>,
        not_negative: bool,
        power: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if not_negative {
            return Ok(power);
        }
        let integer = |bits| {
            self.builder
                .r#type(|context| IntegerType::new(context, bits).into())
        };
        let least = self.number(base.r#type(), f64::NEG_INFINITY)?;
        let predicate = IntegerAttribute::new(integer(64), OEQ).into();
        let is_least = self.builder.value(
            "arith.cmpf",
            &[base, least],
            integer(1),
            &[("predicate", predicate)],
        )?;
        let end = if self.exponent > 0.0 {
            f64::INFINITY
        } else {
            0.0
        };
        let end = self.number(base.r#type(), end)?;
        let operands = [is_least, end, power];
        self.builder
            .value("arith.select", &operands, base.r#type(), &[])
    }

    fn whole(&self, base: Val<'c>, exponent: i64) -> PassResult<'c, Val<'c>> {
        let i32 = self
            .builder
            .r#type(|context| IntegerType::new(context, 32).into());
        let exponent = self
            .builder
            .constant(IntegerAttribute::new(i32, exponent).into())?;
        self.apply("math.fpowi", &[base, exponent])
    }
}

/// The number that a constant is, through conversions.
fn number(value: Val<'_>) -> Option<f64> {
    let converted = ["arith.truncf", "arith.extf", "arith.sitofp"];
    if let Some(op) = converted.iter().find_map(|own| defined_by(value, own)) {
        // Of the exponents that become something all conversions are exact.
        return operands(op).first().copied().and_then(number);
    }
    constant(value).or_else(|| constant_integer(value).map(|number| number as f64))
}
