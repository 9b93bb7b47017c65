//! Elementary functions without a device library: from what the hardware has (`ex2`, `lg2`, `sqrt`, `div`),
//! in f32; f16 and bf16 are widened.
//!
//! | function | form | error in f32 |
//! | --- | --- | --- |
//! | exp | `ex2(t) (1 + r)`, `x = t ln 2 + r` ([`super::approximate`]) | 2^-21 relative (ex2.approx: 2^-22) |
//! | exp2 | `ex2.approx` | 2^-22 relative |
//! | log | `lg2(x) ln 2` | 2^-21 absolute |
//! | log1p | `k ln 2` and a polynomial ([`super::approximate`]) | 1.5 units in the last place |
//! | tanh | odd series below 0.3, else `1 - 2 / (exp(2x) + 1)` | 2^-21 relative |
//! | erf | series below 0.5, else Abramowitz and Stegun 7.1.26 | 2e-7 absolute |
//! | remf | the remainder of quotients of 50 bits, in f64 | none |
//!
//! Results that are rounded to f16 or bf16 wherever they are used, and those that `fastmath<afn>` allows it for, come from the
//! chip's approximations instead: [`super::approximate`].

use super::approximate::{exp_of_f32, log1p_of_f32};
use super::emitter::Emitter;
use crate::math;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::fuse::peaks::reaches_one;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{operands, results};
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

use super::schedules::convert;
use super::value::Bound;

/// `sqrt.rn.f32`.
const SQRT: &str = "llvm.nvvm.sqrt.rn.f";
/// `ex2.approx.f32` (PTX ISA 9.7.3.20).
pub(super) const EX2: &str = "llvm.nvvm.ex2.approx.f32";
/// `lg2.approx.f32` (PTX ISA 9.7.3.18).
pub(super) const LG2: &str = "llvm.nvvm.lg2.approx.f";

/// Functions that are one instruction.
const INTRINSICS: [(&str, &str); 8] = [
    ("math.sqrt", SQRT),
    ("math.exp2", EX2),
    ("math.log2", LG2),
    ("math.absf", "llvm.fabs.f32"),
    ("math.ceil", "llvm.ceil.f32"),
    ("math.floor", "llvm.floor.f32"),
    ("math.trunc", "llvm.trunc.f32"),
    ("math.roundeven", "llvm.roundeven.f32"),
];

/// The largest power that is a product.
const MOST_POWER: i64 = 64;

impl<'c> Emitter<'c> {
    /// Emits an operation of the math dialect, or one of arith that would become a call of a device library; false for
    /// others.
    pub(crate) fn math(&mut self, op: Op<'c>, name: &str) -> PassResult<'c, bool> {
        if self.by_need(op, name)? {
            return Ok(true);
        }
        let own = ["arith.maxnumf", "arith.minnumf", "arith.remf"].contains(&name);
        if !own && !name.starts_with("math.") {
            return Ok(false);
        }
        if self.function(op, name)? {
            return Ok(true);
        }
        let (Some(&result), operands) = (results(op).first(), operands(op)) else {
            return Ok(false);
        };
        let Some(&operand) = operands.first() else {
            return Ok(false);
        };
        let narrow = result.r#type();
        if !is_float(narrow) || bits(narrow) > Some(32) {
            return Err(self.error(format!(
                "'{name}' of {narrow} has no form on this target: expected f16, bf16 or f32"
            )));
        }
        let f32 = Floats::new(self);
        let x = convert(self, self.scalar(operand)?, f32.r#type)?;
        let value = match name {
            "math.exp" => exp_of_f32(&f32, x, reaches_one(op))?,
            "math.log" => f32.log(x)?,
            "math.log1p" => log1p_of_f32(&f32, x)?,
            "math.tanh" => f32.tanh(x)?,
            "math.erf" => f32.erf(x)?,
            "math.fpowi" => f32.power(x, self.exponent(&operands)?)?,
            "math.rsqrt" => {
                let root = f32.intrinsic(SQRT, &[x])?;
                f32.apply("arith.divf", &[f32.number(1.0)?, root])?
            }
            "math.fma" => f32.intrinsic("llvm.fma.f32", &self.wide(&operands, f32.r#type)?)?,
            // `max` and `min` give the operand that is a number (PTX ISA 9.7.3.12).
            "arith.maxnumf" => {
                f32.intrinsic("llvm.maxnum.f32", &self.wide(&operands, f32.r#type)?)?
            }
            "arith.minnumf" => {
                f32.intrinsic("llvm.minnum.f32", &self.wide(&operands, f32.r#type)?)?
            }
            "arith.remf" => match self.wide(&operands, f32.r#type)?.as_slice() {
                &[x, y] => f32.remainder(x, y)?,
                _ => return Err(self.error("expected two operands")),
            },
            _ => {
                let found = INTRINSICS.iter().find(|(operation, _)| *operation == name);
                let (_, intrinsic) = found
                    .ok_or_else(|| self.error(format!("'{name}' has no form on this target")))?;
                f32.intrinsic(intrinsic, &[x])?
            }
        };
        let value = convert(self, value, narrow)?;
        self.bind(result, Bound::Scalar(value));
        Ok(true)
    }

    /// Operands in a wider type.
    pub(super) fn wide(
        &self,
        operands: &[Val<'c>],
        r#type: Type<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let wide = |operand: &Val<'c>| convert(self, self.scalar(*operand)?, r#type);
        operands.iter().map(wide).collect()
    }

    /// The constant exponent of `math.fpowi`.
    fn exponent(&self, operands: &[Val<'c>]) -> PassResult<'c, i64> {
        let constant = operands
            .get(1)
            .and_then(|exponent| axe_passes::ir::value::defined_by(*exponent, "arith.constant"));
        let value = constant
            .and_then(|constant| constant.attribute("value").ok())
            .and_then(attribute::integer);
        value
            .filter(|power| power.abs() <= MOST_POWER)
            .ok_or_else(|| {
                self.error(format!(
                    "expected a constant exponent between -{MOST_POWER} and {MOST_POWER}"
                ))
            })
    }
}

/// Arithmetic in f32.
pub(super) struct Floats<'a, 'c> {
    pub(super) emitter: &'a Emitter<'c>,
    pub(super) r#type: Type<'c>,
}

impl<'a, 'c> Floats<'a, 'c> {
    pub(super) fn new(emitter: &'a Emitter<'c>) -> Self {
        let r#type = emitter.builder.r#type(|context| Type::float32(context));
        Self { emitter, r#type }
    }

    pub(super) fn number(&self, value: f64) -> PassResult<'c, Val<'c>> {
        let builder = self.emitter.builder;
        builder.constant(builder.float(self.r#type, value))
    }

    pub(super) fn apply(&self, name: &str, operands: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        self.emitter.builder.value(name, operands, self.r#type, &[])
    }

    /// A call of LLVM's intrinsic: the conversion of `gpu` to `nvvm` would turn the operations of the same
    /// names into calls of a device library.
    pub(super) fn intrinsic(&self, name: &str, operands: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        self.flagged(name, operands, "none")
    }

    /// The same, with LLVM's flags of fast math.
    pub(super) fn flagged(
        &self,
        name: &str,
        operands: &[Val<'c>],
        flags: &str,
    ) -> PassResult<'c, Val<'c>> {
        math::intrinsic(self.emitter.builder, name, operands, self.r#type, flags)
    }

    fn times(&self, a: Val<'c>, b: f64) -> PassResult<'c, Val<'c>> {
        self.apply("arith.mulf", &[a, self.number(b)?])
    }

    /// `a b + c`.
    pub(super) fn fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.apply("llvm.intr.fma", &[a, b, c])
    }

    /// A polynomial by Horner's rule, highest coefficient first.
    fn polynomial(&self, x: Val<'c>, coefficients: &[f64]) -> PassResult<'c, Val<'c>> {
        let Some((&first, rest)) = coefficients.split_first() else {
            return self.number(0.0);
        };
        let first = self.number(first)?;
        rest.iter().try_fold(first, |sum, coefficient| {
            self.fma(sum, x, self.number(*coefficient)?)
        })
    }

    pub(super) fn less(&self, a: Val<'c>, b: f64) -> PassResult<'c, Val<'c>> {
        // `arith.cmpf olt`.
        self.compare(4, a, b)
    }

    fn compare(&self, predicate: i64, a: Val<'c>, b: f64) -> PassResult<'c, Val<'c>> {
        let builder = self.emitter.builder;
        let (i1, i64) = (types::integer(builder, 1), types::integer(builder, 64));
        let predicate = IntegerAttribute::new(i64, predicate).into();
        builder.value(
            "arith.cmpf",
            &[a, self.number(b)?],
            i1,
            &[("predicate", predicate)],
        )
    }

    fn log(&self, x: Val<'c>) -> PassResult<'c, Val<'c>> {
        let logarithm = self.intrinsic(LG2, &[x])?;
        self.times(logarithm, std::f64::consts::LN_2)
    }

    fn tanh(&self, x: Val<'c>) -> PassResult<'c, Val<'c>> {
        let square = self.apply("arith.mulf", &[x, x])?;
        let series = [62.0 / 2835.0, -17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0];
        let small = self.apply("arith.mulf", &[x, self.polynomial(square, &series)?])?;
        let power = exp_of_f32(self, self.times(x, 2.0)?, true)?;
        let below = self.apply("arith.addf", &[power, self.number(1.0)?])?;
        let quotient = self.apply("arith.divf", &[self.number(-2.0)?, below])?;
        let large = self.apply("arith.addf", &[quotient, self.number(1.0)?])?;
        self.choose(self.less(square, 0.09)?, small, large)
    }

    fn erf(&self, x: Val<'c>) -> PassResult<'c, Val<'c>> {
        let square = self.apply("arith.mulf", &[x, x])?;
        let two_over_root_pi = std::f64::consts::FRAC_2_SQRT_PI;
        let series = [
            -1.0 / 1320.0,
            1.0 / 216.0,
            -1.0 / 42.0,
            1.0 / 10.0,
            -1.0 / 3.0,
            1.0,
        ];
        let series = series.map(|coefficient| coefficient * two_over_root_pi);
        let small = self.apply("arith.mulf", &[x, self.polynomial(square, &series)?])?;
        let magnitude = self.intrinsic("llvm.fabs.f32", &[x])?;
        let below = self.fma(magnitude, self.number(0.327_591_1)?, self.number(1.0)?)?;
        let t = self.apply("arith.divf", &[self.number(1.0)?, below])?;
        let tail = [
            1.061_405_429,
            -1.453_152_027,
            1.421_413_741,
            -0.284_496_736,
            0.254_829_592,
            0.0,
        ];
        let tail = self.polynomial(t, &tail)?;
        let decay = exp_of_f32(self, self.times(square, -1.0)?, true)?;
        let product = self.apply("arith.mulf", &[tail, decay])?;
        let large = self.apply("arith.subf", &[self.number(1.0)?, product])?;
        let large = self.intrinsic("llvm.copysign.f32", &[large, x])?;
        self.choose(self.less(square, 0.25)?, small, large)
    }

    pub(super) fn choose(
        &self,
        condition: Val<'c>,
        yes: Val<'c>,
        no: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        self.apply("arith.select", &[condition, yes, no])
    }

    /// `x - trunc(x / y) y` of f32, exactly, with the sign of `x`: the quotient's at most 277 bits in f64, 50 at a
    /// time, each of which may come out one too large. What is left is a multiple of an operand's last place, and
    /// below `y` and its power of two: f64 holds it.
    fn remainder(&self, x: Val<'c>, y: Val<'c>) -> PassResult<'c, Val<'c>> {
        let builder = self.emitter.builder;
        let wide = Self {
            emitter: self.emitter,
            r#type: builder.r#type(|context| Type::float64(context)),
        };
        let magnitude = |value| {
            let value = convert(self.emitter, value, wide.r#type)?;
            wide.intrinsic("llvm.fabs.f64", &[value])
        };
        let (whole, by) = (magnitude(x)?, magnitude(y)?);
        let mut left = whole;
        for step in (0..6).rev() {
            let by = wide.times(by, 2f64.powi(50 * step))?;
            let quotient = wide.apply("arith.divf", &[left, by])?;
            let quotient = wide.intrinsic("llvm.trunc.f64", &[quotient])?;
            left = wide.fma(wide.times(quotient, -1.0)?, by, left)?;
            let more = wide.apply("arith.addf", &[left, by])?;
            left = wide.choose(wide.less(left, 0.0)?, more, left)?;
        }
        // `arith.cmpf oeq`: what is finite is less than an infinity, and an infinity has no remainder.
        let infinite = wide.compare(1, by, f64::INFINITY)?;
        let whole = wide.fma(whole, wide.number(0.0)?, whole)?;
        let left = convert(
            self.emitter,
            wide.choose(infinite, whole, left)?,
            self.r#type,
        )?;
        self.intrinsic("llvm.copysign.f32", &[left, x])
    }

    /// An integer power by squaring.
    fn power(&self, x: Val<'c>, exponent: i64) -> PassResult<'c, Val<'c>> {
        let (mut left, mut square, mut product) = (exponent.unsigned_abs(), x, None);
        while left > 0 {
            if left % 2 == 1 {
                product = Some(match product {
                    None => square,
                    Some(product) => self.apply("arith.mulf", &[product, square])?,
                });
            }
            left /= 2;
            if left > 0 {
                square = self.apply("arith.mulf", &[square, square])?;
            }
        }
        let one = self.number(1.0)?;
        match (product, exponent < 0) {
            (None, _) => Ok(one),
            (Some(product), false) => Ok(product),
            (Some(product), true) => self.apply("arith.divf", &[one, product]),
        }
    }
}
