//! Elementary functions for results that are rounded to f16 or bf16, from the chip's approximations in f32.
//!
//! Each is at most 1 ulp of the 16-bit type from the correctly rounded result, for every input of the type. The formulas are
//! written once, over what [`Arithmetic`] gives: operations for the GPU, or numbers on the host, where they are compared with
//! f64 at all inputs, with every instruction as wrong as the PTX ISA allows (`tests`).
//!
//! | instruction | bound (PTX ISA 9.7.3) |
//! | --- | --- |
//! | `ex2.approx.f32` | 2^-22 relative |
//! | `lg2.approx.f32` | 2^-22 absolute between 0.5 and 2, relative elsewhere |
//! | `rcp.approx.ftz.f32` | 1 ulp |
//! | `rsqrt.approx.f32` | 2^-22.9 relative |
//! | `sqrt.approx.f32` | 2^-23 relative |
//! | `div.full.f32` | 2 ulp |
//! | `tanh.approx.f32` | 2^-11 relative |

mod full;
#[cfg(test)]
mod tests;

pub(super) use full::has_reciprocal;
use std::f64::consts::{FRAC_1_PI, FRAC_2_SQRT_PI, LN_2, LOG2_E};

/// An instruction that approximates a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// `ex2.approx.f32`.
    Ex2,
    /// `lg2.approx.f32`.
    Lg2,
    /// `rcp.approx.f32`: with `.ftz` only.
    Rcp,
    /// `rsqrt.approx.f32`.
    Rsqrt,
    /// `sqrt.approx.f32`.
    Sqrt,
    /// `tanh.approx.f32`.
    Tanh,
}

/// What formulas are written in: f32, and f64 where one says so.
pub(super) trait Arithmetic {
    /// A number of f32.
    type Value: Copy;
    /// A condition.
    type Bit: Copy;
    /// Why there is no value.
    type Error;

    fn number(&self, value: f64) -> Result<Self::Value, Self::Error>;
    fn add(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    fn mul(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a b + c`, rounded once.
    fn fma(
        &self,
        a: Self::Value,
        b: Self::Value,
        c: Self::Value,
    ) -> Result<Self::Value, Self::Error>;
    /// `1 / x`, rounded to the nearest.
    fn reciprocal(&self, x: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `div.full.f32`.
    fn quotient(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// An approximation; with `flush` numbers below 2^-126, operands and results, are zero.
    fn approximate(
        &self,
        instruction: Instruction,
        x: Self::Value,
        flush: bool,
    ) -> Result<Self::Value, Self::Error>;
    /// `k` and `2^(2 - k)` of a number `2^k m` with `m` from 3/4 to 3/2, by its bits.
    fn taken_apart(&self, x: Self::Value) -> Result<[Self::Value; 2], Self::Error>;
    fn abs(&self, x: Self::Value) -> Result<Self::Value, Self::Error>;
    /// A number between two ends; NaN stays.
    fn clamp(&self, x: Self::Value, ends: [f64; 2]) -> Result<Self::Value, Self::Error>;
    /// A number with the other sign where the last bit of `sum` is set.
    fn signed(&self, x: Self::Value, sum: Self::Value) -> Result<Self::Value, Self::Error>;
    fn less(&self, a: Self::Value, b: f64) -> Result<Self::Bit, Self::Error>;
    fn choose(
        &self,
        condition: Self::Bit,
        yes: Self::Value,
        no: Self::Value,
    ) -> Result<Self::Value, Self::Error>;
}

/// The bits of 3/4, and of 4.
pub(super) const TAKEN_APART: [u32; 2] = [0x3f40_0000, 0x4080_0000];
/// The bits of f32's sign and exponent, and how many are below them.
pub(super) const EXPONENT: (u32, u32) = (0xff80_0000, 23);

type Formed<A> = Result<<A as Arithmetic>::Value, <A as Arithmetic>::Error>;

/// What is asked of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    /// It is rounded to a type that has no numbers below 2^-126.
    pub flush: bool,
    /// Its operand is such a number too.
    pub flush_operand: bool,
    /// 2^-11 of it may be wrong: it is rounded to bf16, or to f16 at once and used as it is.
    pub coarse: bool,
    /// Only sums with numbers of magnitude 1/4 and more see it: 2^-20 may be wrong of 1.
    pub absolute: bool,
    /// Its operand is at most zero.
    pub at_most_zero: bool,
}

/// A function with an approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Exp2,
    Log,
    Log2,
    /// `log(1 + x)`.
    Log1p,
    Sqrt,
    Rsqrt,
    Tanh,
    /// `1 + tanh(x)`.
    OnePlusTanh,
    Erf,
    /// `1 + erf(x)`.
    OnePlusErf,
    /// Up to [`MOST_OF_SINE`].
    Sin,
    /// Up to [`MOST_OF_SINE`].
    Cos,
}

impl Function {
    /// The function that an operation computes; `biased` as [`axe_passes::precision::Precision::is_biased`] has it.
    pub(super) fn of(name: &str, biased: bool) -> Option<Self> {
        Some(match (name, biased) {
            ("math.exp", _) => Self::Exp,
            ("math.exp2", _) => Self::Exp2,
            ("math.log", false) => Self::Log,
            ("math.log", true) | ("math.log1p", _) => Self::Log1p,
            ("math.log2", _) => Self::Log2,
            ("math.sqrt", _) => Self::Sqrt,
            ("math.rsqrt", _) => Self::Rsqrt,
            ("math.tanh", false) => Self::Tanh,
            ("math.tanh", true) => Self::OnePlusTanh,
            ("math.erf", false) => Self::Erf,
            ("math.erf", true) => Self::OnePlusErf,
            ("math.sin", _) => Self::Sin,
            ("math.cos", _) => Self::Cos,
            _ => return None,
        })
    }

    /// The function's value.
    pub(super) fn at<A: Arithmetic>(self, a: &A, x: A::Value, goal: Goal) -> Formed<A> {
        match self {
            Self::Exp if goal.at_most_zero && goal.coarse && !goal.flush => exp_below_one(a, x),
            Self::Exp => a.approximate(Instruction::Ex2, scaled(a, x, LOG2_E)?, goal.flush),
            Self::Exp2 => a.approximate(Instruction::Ex2, x, goal.flush),
            Self::Log => {
                let log = a.approximate(Instruction::Lg2, x, goal.flush_operand)?;
                scaled(a, log, LN_2)
            }
            Self::Log2 => a.approximate(Instruction::Lg2, x, goal.flush_operand),
            Self::Log1p => log1p(a, x),
            Self::Sqrt => a.approximate(Instruction::Sqrt, x, goal.flush),
            Self::Rsqrt => a.approximate(Instruction::Rsqrt, x, goal.flush),
            Self::Tanh if goal.coarse => a.approximate(Instruction::Tanh, x, false),
            Self::Tanh => tanh(a, x, goal),
            Self::OnePlusTanh => one_plus_tanh(a, x),
            Self::Erf => erf(a, x, goal),
            Self::OnePlusErf => one_plus_erf_of(a, (x, 1.0), goal),
            Self::Sin => sine(a, x, false),
            Self::Cos => sine(a, x, true),
        }
    }
}

/// The power of two by which exponentials are larger while they are formed: the smallest numbers of bf16, 2^-133, are none that `ex2.approx.ftz` flushes then.
const ABOVE: f64 = 32.0;

/// `e^x` of `x <= 0`, 2^-17 of it wrong at most, with numbers below 2^-126: ptxas takes three instructions more for an `ex2.approx` that has them, this is one.
fn exp_below_one<A: Arithmetic>(a: &A, x: A::Value) -> Formed<A> {
    let turns = a.fma(x, a.number(LOG2_E)?, a.number(ABOVE)?)?;
    let above = a.approximate(Instruction::Ex2, turns, true)?;
    scaled(a, above, (-ABOVE).exp2())
}

/// `e^x`, 2^-21 of it wrong at most; with `flush` what is below 2^-126 may be zero.
pub(super) fn exp_of_f32<A: Arithmetic>(a: &A, x: A::Value, flush: bool) -> Formed<A> {
    full::exp(a, x, flush)
}

/// `log(1 + x)`, 1.5 units in the last place of f32 wrong at most.
pub(super) fn log1p_of_f32<A: Arithmetic>(a: &A, x: A::Value) -> Formed<A> {
    full::log1p(a, x)
}

/// `a / b` as f32 has it, where many quotients have the divisor.
pub(super) fn quotient_of_f32<A: Arithmetic>(a: &A, over: A::Value, under: A::Value) -> Formed<A> {
    full::quotient(a, over, under)
}

/// `a / b` of numbers of f64, of a constant that [`has_reciprocal`] holds of.
pub(super) fn quotient_by_constant<A: Arithmetic>(a: &A, over: A::Value, by: f64) -> Formed<A> {
    full::by_constant(a, over, by)
}

fn scaled<A: Arithmetic>(a: &A, x: A::Value, by: f64) -> Formed<A> {
    a.mul(x, a.number(by)?)
}

/// A polynomial by Horner's rule, highest coefficient first.
fn polynomial<A: Arithmetic>(a: &A, x: A::Value, coefficients: &[f64]) -> Formed<A> {
    let Some((&first, rest)) = coefficients.split_first() else {
        return a.number(0.0);
    };
    let first = a.number(first)?;
    rest.iter()
        .try_fold(first, |sum, next| a.fma(sum, x, a.number(*next)?))
}

/// Below 2^-5 three terms of the series, relative error 2^-17; else the logarithm, which is 2^-22 wrong.
fn log1p<A: Arithmetic>(a: &A, x: A::Value) -> Formed<A> {
    let sum = a.add(x, a.number(1.0)?)?;
    // What is added to one is no subnormal number, and what is left of one is none.
    let log = a.approximate(Instruction::Lg2, sum, true)?;
    let log = scaled(a, log, LN_2)?;
    let series = a.mul(x, polynomial(a, x, &[1.0 / 3.0, -0.5, 1.0])?)?;
    a.choose(a.less(a.abs(x)?, 1.0 / 32.0)?, series, log)
}

/// `1 - 2 / (e^2x + 1)`: 2^-21 wrong; where that is much of the result, three terms of the series, relative error 2^-18.
fn tanh<A: Arithmetic>(a: &A, x: A::Value, goal: Goal) -> Formed<A> {
    let power = a.approximate(Instruction::Ex2, scaled(a, x, 2.0 * LOG2_E)?, true)?;
    let part = a.approximate(Instruction::Rcp, a.add(power, a.number(1.0)?)?, true)?;
    let large = a.fma(part, a.number(-2.0)?, a.number(1.0)?)?;
    if goal.absolute {
        return Ok(large);
    }
    let square = a.mul(x, x)?;
    let small = a.mul(x, polynomial(a, square, &[2.0 / 15.0, -1.0 / 3.0, 1.0])?)?;
    a.choose(a.less(square, 1.0 / 64.0)?, small, large)
}

/// `2 / (1 + e^-2x)`: nothing cancels, relative error 2^-18.
fn one_plus_tanh<A: Arithmetic>(a: &A, x: A::Value) -> Formed<A> {
    let power = a.approximate(Instruction::Ex2, scaled(a, x, -2.0 * LOG2_E)?, true)?;
    let part = a.approximate(Instruction::Rcp, a.add(power, a.number(1.0)?)?, true)?;
    scaled(a, part, 2.0)
}

/// `log2(erfc(x)) / x` to 4.2, beyond which erfc is nothing beside f16's numbers: relative error of erfc 2^-17.
const LOG_ERFC: [f64; 7] = [
    -2.027002119575627e-05,
    0.00048551600775681436,
    -0.005220968741923571,
    0.033904362469911575,
    -0.15242327749729156,
    -0.917084813117981,
    -1.6280627250671387,
];
/// The same to 9.6, for bf16: 2^-16 to 4.2, 2^-13 beyond.
const LOG_ERFC_LONG: [f64; 9] = [
    -4.911334627877295e-08,
    2.4867749743862078e-06,
    -5.5249234719667584e-05,
    0.0007138740038499236,
    -0.006018773186951876,
    0.03544069081544876,
    -0.15398460626602173,
    -0.9163552522659302,
    -1.6281708478927612,
];

/// The same where only sums see it: erfc is 2^-20 wrong of 1, for any x.
const LOG_ERFC_SHORT: [f64; 5] = [
    -0.002943917876109481,
    0.02958924137055874,
    -0.14866475760936737,
    -0.9185097217559814,
    -1.6278889179229736,
];

/// `1 + erf(k x)` of a positive number k. It is formed as twice its half: of GELU's factor of 1/2 no instruction is left.
pub(super) fn one_plus_erf_of<A: Arithmetic>(
    a: &A,
    (x, k): (A::Value, f64),
    goal: Goal,
) -> Formed<A> {
    let goal = Goal {
        absolute: false,
        ..goal
    };
    let rest = erfc_of_magnitude(a, (x, k), goal, -1.0)?;
    let above = a.fma(rest, a.number(-1.0)?, a.number(1.0)?)?;
    scaled(a, a.choose(a.less(x, 0.0)?, rest, above)?, 2.0)
}

/// `2^n erfc(|k x|) = 2^(n + |k x| p(|k x|))`, after the form of CUDA's erff. The polynomials fall without bound.
fn erfc_of_magnitude<A: Arithmetic>(
    a: &A,
    (x, k): (A::Value, f64),
    goal: Goal,
    n: f64,
) -> Formed<A> {
    let magnitude = a.abs(x)?;
    let terms: &[f64] = match goal {
        Goal { absolute: true, .. } => &LOG_ERFC_SHORT,
        Goal { flush: true, .. } => &LOG_ERFC,
        Goal { flush: false, .. } => &LOG_ERFC_LONG,
    };
    let powers = (1..=terms.len()).rev().zip(terms);
    let terms: Vec<_> = powers
        .map(|(power, term)| term * k.powf(power as f64))
        .collect();
    let slope = polynomial(a, magnitude, &terms)?;
    let power = a.fma(magnitude, slope, a.number(n)?)?;
    a.approximate(Instruction::Ex2, power, goal.flush)
}

/// `1 - erfc(|x|)` with the sign of x; below 1/2, where that loses digits, four terms of the series, relative error 2^-15.
fn erf<A: Arithmetic>(a: &A, x: A::Value, goal: Goal) -> Formed<A> {
    let rest = erfc_of_magnitude(a, (x, 1.0), goal, 0.0)?;
    let above = a.fma(rest, a.number(-1.0)?, a.number(1.0)?)?;
    let below = a.add(rest, a.number(-1.0)?)?;
    let large = a.choose(a.less(x, 0.0)?, below, above)?;
    if goal.absolute {
        return Ok(large);
    }
    let square = a.mul(x, x)?;
    let series = [-1.0 / 42.0, 0.1, -1.0 / 3.0, 1.0].map(|term| term * FRAC_2_SQRT_PI);
    let small = a.mul(x, polynomial(a, square, &series)?)?;
    a.choose(a.less(square, 0.25)?, small, large)
}

/// (sin(r) / r - 1) / r^2 in r^2, up to pi/2: through its values at Chebyshev's points, relative error of the sine 2^-17.7.
const SIN: [f64; 3] = [
    -0.00018846576858777553,
    0.008324194699525833,
    -0.16666541993618011,
];
/// pi in three parts, each below what they are of: with positive ones a negative zero stays one. The last bit of the first is 2^-22, so that
/// what whole and half turns by it leave of a number is exact.
const PI_PARTS: [f64; 3] = [
    3.141_592_502_593_994,
    1.509_957_883_172_319_3e-7,
    1.078_060_590_694_847_7e-14,
];
/// A number whose sum with a whole one below 2^21 has that in its last bits.
const WHOLE: f64 = 12_582_912.0;
/// The magnitude up to which [`sine`] is exact enough.
pub(super) const MOST_OF_SINE: f64 = 1_048_576.0;

/// The sine of a number up to [`MOST_OF_SINE`], or its cosine, for a result that is rounded to f16 or bf16.
pub(super) fn sine<A: Arithmetic>(a: &A, x: A::Value, is_cosine: bool) -> Formed<A> {
    let turns = a.mul(x, a.number(FRAC_1_PI)?)?;
    let turns = if is_cosine {
        a.add(turns, a.number(0.5)?)?
    } else {
        turns
    };
    let sum = a.add(turns, a.number(WHOLE)?)?;
    let whole = a.add(sum, a.number(-WHOLE)?)?;
    let count = if is_cosine {
        a.add(whole, a.number(-0.5)?)?
    } else {
        whole
    };
    let mut rest = x;
    for part in PI_PARTS {
        rest = a.fma(count, a.number(-part)?, rest)?;
    }
    let square = a.mul(rest, rest)?;
    let part = a.fma(square, polynomial(a, square, &SIN)?, a.number(1.0)?)?;
    a.signed(a.mul(rest, part)?, sum)
}

/// What is known of a quotient's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Divisor {
    /// Operands or a result of f16: `a (1 / b)` leaves f32 where the quotient leaves f16.
    Small,
    /// Many quotients have it: what depends on it alone is formed once.
    Shared,
    /// Any number.
    Any,
}

/// A quotient.
pub(super) fn quotient<A: Arithmetic>(
    a: &A,
    (over, under): (A::Value, A::Value),
    divisor: Divisor,
) -> Formed<A> {
    match divisor {
        Divisor::Small => a.mul(over, a.approximate(Instruction::Rcp, under, true)?),
        Divisor::Any => a.quotient(over, under),
        Divisor::Shared => {
            // Scaled so that neither the divisor nor its reciprocal is a number below 2^-126, which `.ftz` is zero for.
            let magnitude = a.abs(under)?;
            let (large, small) = (a.number(2f64.powi(-32))?, a.number(2f64.powi(32))?);
            let one = a.number(1.0)?;
            let scale = a.choose(a.less(magnitude, 2f64.powi(-100))?, small, one)?;
            let scale = a.choose(a.less(magnitude, 2f64.powi(100))?, scale, large)?;
            let part = a.approximate(Instruction::Rcp, a.mul(under, scale)?, true)?;
            a.mul(a.mul(over, scale)?, part)
        }
    }
}
