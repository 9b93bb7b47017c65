//! Powers, roots, and rounding.

use super::exponential::{exp_of_sum, is_whole, taken_apart};
use super::machine::{Bit, Float, Machine};

/// ln 2 in two parts: the first has 42 bits, so that its products with exponents are exact.
const LN2: [f64; 2] = [0.693_147_180_559_890_3_f64, 5.497_923_018_708_371e-14];
/// 2/3 in two parts.
const TWO_THIRDS: [f64; 2] = [0.666_666_666_666_666_6_f64, 3.700_743_415_417_188e-17];

/// `2 / (2n + 1)` from n = 12 down to 2: the rest of 2 artanh(s) behind 2s + 2/3 s^3, over s^5, in s^2.
const TAIL: [f64; 11] = [
    2.0 / 25.0,
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
];

/// `a + b` in two parts, for `|a|` at least `|b|` or `a` zero.
fn sum<'m, M: Machine>(a: Float<'m, M>, b: Float<'m, M>) -> [Float<'m, M>; 2] {
    let high = a + b;
    [high, b - (high - a)]
}

/// ln of a positive number in two parts, of together about 64 bits.
fn log_in_parts<M: Machine>(x: Float<'_, M>) -> [Float<'_, M>; 2] {
    let (k, mantissa) = taken_apart(x);
    let f = mantissa - 1.0;
    // s = f / (2 + f), with what rounding loses of the sum and the quotient.
    let below = f + 2.0;
    let below_rest = f - (below - 2.0);
    let s = f / below;
    let s_rest = ((-s).fma(below, f) - s * below_rest) / below;
    // s^3, then 2/3 of it.
    let z = s * s;
    let z_rest = s.fma(s, -z) + s * s_rest * 2.0;
    let cube = s * z;
    let cube_rest = s.fma(z, -cube) + s * z_rest + s_rest * z;
    let third = cube * TWO_THIRDS[0];
    let third_rest =
        cube.fma(TWO_THIRDS[0], -third) + cube_rest * TWO_THIRDS[0] + cube * TWO_THIRDS[1];
    let tail = cube * z * z.polynomial(&TAIL);
    let [high, first] = sum(k * LN2[0], s * 2.0);
    let [high, second] = sum(high, third);
    let low = first + second + (s_rest * 2.0 + third_rest + tail + k * LN2[1]);
    sum(high, low)
}

/// x^y for `x` that is not negative, without regard to what is special.
fn positive_power<'m, M: Machine>(x: Float<'m, M>, y: Float<'m, M>) -> Float<'m, M> {
    let [high, low] = log_in_parts(x);
    let high = x.equals(0.0).choose(f64::NEG_INFINITY, high);
    let high = x.equals(f64::INFINITY).choose(f64::INFINITY, high);
    let product = y * high;
    let rest = y.fma(high, -product) + y * low;
    let certain = product.abs().less(800.0);
    exp_of_sum(product, certain.choose(rest, 0.0), 0)
}

/// Whether a whole number is odd: those above 2^53 are even.
fn is_odd<M: Machine>(x: Float<'_, M>) -> Bit<'_, M> {
    is_whole(x) & !is_whole(x * 0.5)
}

/// x^y, and its special cases as in C (C17, F.10.4.4).
pub(crate) fn pow<'m, M: Machine>(x: Float<'m, M>, y: Float<'m, M>) -> Float<'m, M> {
    let magnitude = x.abs();
    let value = positive_power(magnitude, y);
    let negative = x.constant(1.0).copysign(x).less(0.0);
    let value = (negative & is_odd(y)).choose(-value, value);
    let value = (x.less(0.0) & !is_whole(y) & x.abs().less(f64::INFINITY)).choose(f64::NAN, value);
    let value = (magnitude.equals(1.0) & y.abs().equals(f64::INFINITY)).choose(1.0, value);
    let value = (x.is_nan() | y.is_nan()).choose(f64::NAN, value);
    (x.equals(1.0) | y.equals(0.0)).choose(1.0, value)
}

/// x^n of a whole number whose magnitude may be beyond 2^53: `odd` says what rounding would hide.
pub(crate) fn whole_power<'m, M: Machine>(
    x: Float<'m, M>,
    n: Float<'m, M>,
    odd: Bit<'m, M>,
) -> Float<'m, M> {
    let value = pow(x.abs(), n);
    let negative = x.constant(1.0).copysign(x).less(0.0);
    (negative & odd).choose(-value, value)
}

/// The cube root.
pub(crate) fn cbrt<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let subnormal = magnitude.less(f64::MIN_POSITIVE);
    let bits = subnormal
        .choose(magnitude * 2f64.powi(54), magnitude)
        .bits();
    // The exponent's third, rounded down: 21846 / 2^16 is 1/3 for what is below 2^12.
    let exponent = bits.shr(52) + (3072 - 1023);
    let third = (exponent * 21846).shr(16) - 1024;
    // Between 1 and 8.
    let m = (bits - (third * 3).shl(52)).as_bits();
    let mut root = m.fma(0.19, 0.6);
    for _ in 0..3 {
        // Halley's iteration: three times the digits.
        let cube = root * root * root;
        root = root * ((cube + m + m) / (cube + cube + m));
    }
    // Newton's, of a cube without rounding errors.
    let square = root * root;
    let square_rest = root.fma(root, -square);
    let cube = square * root;
    let cube_rest = square.fma(root, -cube) + square_rest * root;
    let root = root - (cube - m + cube_rest) / (square * 3.0);
    let value = (root.bits() + third.shl(52)).as_bits();
    let value = subnormal.choose(value * 2f64.powi(-18), value).copysign(x);
    let special = x.equals(0.0) | magnitude.equals(f64::INFINITY) | x.is_nan();
    special.choose(x, value)
}

/// 1 / sqrt(x).
pub(crate) fn rsqrt<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    x.constant(1.0) / x.sqrt()
}

/// The nearest whole number, ties away from zero.
pub(crate) fn round<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let magnitude = x.abs();
    let nearest = magnitude.round_even();
    let tie = (magnitude - nearest).equals(0.5);
    (nearest + tie.choose(1.0, 0.0)).copysign(x)
}
