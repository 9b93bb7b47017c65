//! Exponentials and logarithms, and what is made of them.
//!
//! `e^x = 2^k e^r` with `x = k ln 2 + r`, `|r|` at most half of ln 2: a Taylor polynomial in `r`. `ln x = k ln 2 + ln m` with
//! `m` between the roots of 1/2 and 2, and `ln m = 2 artanh((m - 1) / (m + 1))`: its series. Both keep what rounding loses
//! of the reduced argument.

use super::machine::{Bit, Float, Int, Machine};
use std::f64::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E, SQRT_2};

/// ln 2 in two parts: the first has 33 bits, so that its products with exponents are exact.
const LN2: [f64; 2] = [0.693_147_180_485_539_1_f64, 7.440_617_110_012_397e-11];
/// What LN_2 lacks of ln 2.
const LN2_REST: f64 = 2.319_046_813_846_299_6e-17;
/// Beyond these ends e^x is 0 or infinite.
const MOST: f64 = 750.0;

/// `1 / n!` from n = 13 down to 2: (e^r - 1 - r) / r^2.
const EXP: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// `2 / (2n + 1)` from n = 11 down to 1: (2 artanh(s) - 2s) / s^3 in s^2.
const LOG: [f64; 11] = [
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];

/// `value 2^exponent` for an exponent between -2000 and 2000, in two steps: one power of two might not exist.
pub(super) fn scaled<'m, M: Machine>(value: Float<'m, M>, exponent: Int<'m, M>) -> Float<'m, M> {
    let half = exponent.sar(1);
    let power = |exponent: Int<'m, M>| (exponent + 1023).shl(52).as_bits();
    value * power(half) * power(exponent - half)
}

/// `k`, `high` and `low` with `x = k ln 2 + high - low`.
fn reduced<'m, M: Machine>(x: Float<'m, M>) -> [Float<'m, M>; 3] {
    let k = (x * LOG2_E).round_even();
    [k, (-k).fma(LN2[0], x), k * LN2[1]]
}

/// `e^(high - low) - 1` for a reduced argument.
fn expm1_reduced<'m, M: Machine>(high: Float<'m, M>, low: Float<'m, M>) -> Float<'m, M> {
    let r = high - low;
    let square = r * r;
    high + (square * r.polynomial(&EXP) - low)
}

/// `e^(x + rest) 2^shift`, of a `rest` that is small beside 1.
pub(super) fn exp_of_sum<'m, M: Machine>(
    x: Float<'m, M>,
    rest: Float<'m, M>,
    shift: i64,
) -> Float<'m, M> {
    let x = x.clamp(-MOST, MOST);
    let [k, high, low] = reduced(x);
    let power = expm1_reduced(high, low - rest) + 1.0;
    scaled(power, k.to_int() + shift)
}

/// e^x.
pub(crate) fn exp<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    exp_of_sum(x, x.constant(0.0), 0)
}

/// 2^x.
pub(crate) fn exp2<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let x = x.clamp(-1100.0, 1100.0);
    let k = x.round_even();
    let fraction = x - k;
    let high = fraction * LN_2;
    let lost = fraction.fma(LN_2, -high) + fraction * LN2_REST;
    scaled(expm1_reduced(high, -lost) + 1.0, k.to_int())
}

/// e^x - 1.
pub(crate) fn expm1<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let [k, high, low] = reduced(x.clamp(-60.0, MOST));
    let part = expm1_reduced(high, low);
    let exponent = k.to_int();
    let power = scaled(x.constant(1.0), exponent);
    let near = power.fma(part, power - 1.0);
    let far = scaled(part + 1.0, exponent);
    let value = k.more(56.0).choose(far, near);
    // The least of them, and the sign of a zero.
    x.abs().less(1e-17).choose(x, value)
}

/// The exponent and the mantissa between the roots of 1/2 and 2 of a positive number.
pub(super) fn taken_apart<'m, M: Machine>(x: Float<'m, M>) -> (Float<'m, M>, Float<'m, M>) {
    let subnormal = x.less(f64::MIN_POSITIVE);
    let bits = subnormal.choose(x * 2f64.powi(54), x).bits();
    let root = (SQRT_2 / 2.0).to_bits() as i64;
    let k = (bits - root).sar(52);
    let mantissa = (bits - k.shl(52)).as_bits();
    let k = k.to_float();
    (subnormal.choose(k - 54.0, k), mantissa)
}

/// `k ln 2 + ln(1 + f) + rest`.
fn log_of_parts<'m, M: Machine>(
    k: Float<'m, M>,
    f: Float<'m, M>,
    rest: Float<'m, M>,
) -> Float<'m, M> {
    let s = f / (f + 2.0);
    let z = s * s;
    let half = f * f * 0.5;
    let tail = s * (half + z * z.polynomial(&LOG)) + (k * LN2[1] + rest);
    k * LN2[0] + (f - (half - tail))
}

/// A logarithm where the argument has one: `value`, minus infinity of 0, infinity, or NaN of what is negative.
fn logarithm<'m, M: Machine>(x: Float<'m, M>, value: Float<'m, M>) -> Float<'m, M> {
    let value = x.equals(0.0).choose(f64::NEG_INFINITY, value);
    let value = x.equals(f64::INFINITY).choose(x, value);
    (x.less(0.0) | x.is_nan()).choose(f64::NAN, value)
}

/// ln x.
pub(crate) fn log<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let (k, m) = taken_apart(x);
    logarithm(x, log_of_parts(k, m - 1.0, x.constant(0.0)))
}

/// The logarithm to a base, of which `per` is 1 / ln and `two` the logarithm of 2, both in two parts.
fn log_to<M: Machine>(x: Float<'_, M>, per: [f64; 2], two: [f64; 2]) -> Float<'_, M> {
    let (k, m) = taken_apart(x);
    let zero = x.constant(0.0);
    let part = log_of_parts(zero, m - 1.0, zero);
    let rest = part.fma(per[1], k * two[1]);
    // The larger of two terms is the exponent's, or it is zero.
    let [whole, fraction] = [k * two[0], part * per[0]];
    let sum = whole + fraction;
    let lost = fraction - (sum - whole) + part.fma(per[0], -fraction) + k.fma(two[0], -whole);
    logarithm(x, sum + (lost + rest))
}

/// The logarithm to base 2.
pub(crate) fn log2<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    log_to(x, [LOG2_E, 2.035_527_374_093_103_3e-17], [1.0, 0.0])
}

/// The logarithm to base 10.
pub(crate) fn log10<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    log_to(
        x,
        [LOG10_E, 1.098_319_650_216_765e-17],
        [LOG10_2, -2.803_728_127_785_17e-18],
    )
}

/// ln(1 + x).
pub(crate) fn log1p<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let sum = x + 1.0;
    let (k, m) = taken_apart(sum);
    // What the sum lost, of the larger of the two.
    let large = k.more(1.0);
    let lost = large.choose((sum - x - 1.0) * -1.0, x - (sum - 1.0)) / sum;
    let whole = k.equals(0.0);
    let f = whole.choose(x, m - 1.0);
    let value = logarithm(sum, log_of_parts(k, f, whole.choose(0.0, lost)));
    x.abs().less(1e-17).choose(x, value)
}

/// The hyperbolic sine.
pub(crate) fn sinh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let part = expm1(magnitude.clamp(0.0, 22.0));
    let small = (part + part / (part + 1.0)) * 0.5;
    let large = exp_of_sum(magnitude, x.constant(0.0), -1);
    magnitude.less(22.0).choose(small, large).copysign(x)
}

/// The hyperbolic cosine.
pub(crate) fn cosh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let half = exp_of_sum(magnitude, x.constant(0.0), -1);
    magnitude
        .less(22.0)
        .choose(half + x.constant(0.25) / half, half)
}

/// The hyperbolic tangent.
pub(crate) fn tanh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let part = expm1(x.abs().clamp(0.0, 40.0) * 2.0);
    (part / (part + 2.0)).copysign(x)
}

/// `value`, or where the magnitude is so large that the two agree, ln of twice the magnitude.
fn or_log_of_twice<'m, M: Machine>(magnitude: Float<'m, M>, value: Float<'m, M>) -> Float<'m, M> {
    magnitude.more(1e9).choose(log(magnitude) + LN_2, value)
}

/// The inverse of sinh.
pub(crate) fn asinh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    let value = log1p(magnitude + square / ((square + 1.0).sqrt() + 1.0));
    or_log_of_twice(magnitude, value).copysign(x)
}

/// The inverse of cosh.
pub(crate) fn acosh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let above = x - 1.0;
    let value = log1p(above + (above * 2.0 + above * above).sqrt());
    let value = or_log_of_twice(x, value);
    x.less(1.0).choose(f64::NAN, value)
}

/// The inverse of tanh.
pub(crate) fn atanh<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let value = log1p(magnitude * 2.0 / (x.constant(1.0) - magnitude)) * 0.5;
    value.copysign(x)
}

/// Whether a number is whole; infinities are.
pub(super) fn is_whole<M: Machine>(x: Float<'_, M>) -> Bit<'_, M> {
    x.round_even().equals(x)
}
