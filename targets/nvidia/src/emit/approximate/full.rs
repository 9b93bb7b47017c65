//! Functions of f32, in f32: `log(1 + x)`, 1.5 units in the last place, `e^x`, 2^-21 relative, and quotients.

use super::{Arithmetic, Formed, Instruction, polynomial};
use std::f64::consts::{LN_2, LOG2_E};

/// `(log(1 + f) - f) / f^2` for f from -1/4 to 1/2: the logarithm is 2^-26 wrong.
const LOG1P: [f64; 9] = [
    -0.046_203_836_798_667_91,
    0.105_920_620_262_622_83,
    -0.131_928_309_798_240_66,
    0.144_678_115_844_726_56,
    -0.166_429_385_542_869_57,
    0.199_909_925_460_815_43,
    -0.250_002_294_778_823_85,
    0.333_334_505_558_013_9,
    -0.5,
];

/// Beyond these ends `e^x` is 0 or infinite in f32.
const EXP_ENDS: [f64; 2] = [-150.0, 150.0];

/// `2^t (1 + r)` with `t` of `x log2 e`, rounded, and `r = x - t ln 2`, which is below 2^-17. With `flush` results below 2^-126 may
/// be zero. NaN stays.
pub(super) fn exp<A: Arithmetic>(a: &A, x: A::Value, flush: bool) -> Formed<A> {
    let x = a.clamp(x, EXP_ENDS)?;
    let turns = a.mul(x, a.number(LOG2_E)?)?;
    // ln 2 in two parts of f32.
    let high = f64::from(LN_2 as f32);
    let rest = a.fma(turns, a.number(-high)?, x)?;
    let rest = a.fma(turns, a.number(high - LN_2)?, rest)?;
    let power = a.approximate(Instruction::Ex2, turns, flush)?;
    a.mul(power, a.add(rest, a.number(1.0)?)?)
}

/// `k ln 2 + log(1 + f)` with `1 + x = 2^k (1 + f)`, where f has what the sum loses of x. What has no logarithm, and what is
/// infinite, has the chip's approximation.
pub(super) fn log1p<A: Arithmetic>(a: &A, x: A::Value) -> Formed<A> {
    let sum = a.add(x, a.number(1.0)?)?;
    let [power, scale] = a.taken_apart(sum)?;
    let four = a.fma(x, scale, a.add(scale, a.number(-4.0)?)?)?;
    let f = a.mul(four, a.number(0.25)?)?;
    let part = a.fma(a.mul(f, f)?, polynomial(a, f, &LOG1P)?, f)?;
    let value = a.fma(power, a.number(LN_2)?, part)?;
    let log = a.approximate(Instruction::Lg2, sum, false)?;
    let log = a.mul(log, a.number(LN_2)?)?;
    let value = a.choose(a.less(sum, 2f64.powi(100))?, value, log)?;
    let value = a.choose(a.less(sum, 2f64.powi(-25))?, log, value)?;
    // The sign of a zero.
    a.choose(a.less(a.abs(x)?, 2f64.powi(-25))?, x, value)
}

/// `a / b`, half a unit in the last place wrong and 2^-22 of one; 1.5 units where that or `a` is below 2^-100. A zero may have
/// another sign where `b` is infinite. All but six operations depend on the divisor alone.
///
/// `q + (a - q b) / b` with `q = a (1 / b)` is rounded once (Markstein, "Computation of elementary functions on the IBM RISC
/// System/6000 processor"); where `b` is zero or infinite, or `q` is, that is no number and `q` the quotient.
pub(super) fn quotient<A: Arithmetic>(a: &A, over: A::Value, under: A::Value) -> Formed<A> {
    // Neither the divisor nor its reciprocal leaves f32.
    let magnitude = a.abs(under)?;
    let [small, one, large] = [2f64.powi(64), 1.0, 2f64.powi(-64)].map(|scale| a.number(scale));
    let scale = a.choose(a.less(magnitude, 2f64.powi(64))?, one?, large?)?;
    let scale = a.choose(a.less(magnitude, 2f64.powi(-64))?, small?, scale)?;
    let under = a.mul(under, scale)?;
    let part = a.reciprocal(under)?;
    let opposite = a.mul(under, a.number(-1.0)?)?;
    corrected(a, a.mul(over, scale)?, part, opposite)
}

/// `a / b` for a constant, of whose reciprocal [`has_reciprocal`] holds, in the type of the numbers: the nearest number where `a` is not
/// within 2^60 of the least normal number, else a unit in the last place wrong.
pub(super) fn by_constant<A: Arithmetic>(a: &A, over: A::Value, by: f64) -> Formed<A> {
    corrected(a, over, a.number(by.recip())?, a.number(-by)?)
}

/// Whether neither a divisor of f64 nor its reciprocal is near the ends of what f64 has.
pub(in crate::emit) fn has_reciprocal(by: f64) -> bool {
    (2f64.powi(-500)..2f64.powi(500)).contains(&by.abs())
}

/// `a / b` of a number, `1 / b` and `-b`.
fn corrected<A: Arithmetic>(
    a: &A,
    over: A::Value,
    part: A::Value,
    opposite: A::Value,
) -> Formed<A> {
    let first = a.mul(over, part)?;
    let rest = a.fma(first, opposite, over)?;
    let second = a.fma(rest, part, first)?;
    let is_number = a.less(a.abs(second)?, f64::INFINITY)?;
    a.choose(is_number, second, first)
}
