//! Sine, cosine, tangent, and their inverses.
//!
//! An argument is reduced to `k pi/2 + r`, `|r|` at most pi/4, in two parts: up to 2^19 by Cody and Waite's subtractions of
//! pi/2 in three parts, beyond by Payne and Hanek's product with those digits of 2/pi that matter.

use super::machine::{Float, Int, Machine};
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI};

/// pi/2 in three parts, of which the first two have 33 bits: their products with whole numbers below 2^20 are exact.
const HALF_PI: [f64; 3] = [
    1.570_796_326_734_125_6,
    6.077_100_506_303_966e-11,
    2.022_266_248_795_950_6e-21,
];
/// What FRAC_PI_2 lacks of pi/2.
const HALF_PI_REST: f64 = 6.123_233_995_736_766e-17;
/// Where Payne and Hanek's reduction begins.
const LARGE: f64 = 524_288.0;

/// `(-1)^n / (2n + 1)!` from n = 8 down to 2: behind x - x^3/6, over x^5, in x^2.
const SIN: [f64; 7] = [
    1.0 / 355_687_428_096_000.0,
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
];
/// `(-1)^n / (2n)!` from n = 9 down to 2: behind 1 - x^2/2, over x^4, in x^2.
const COS: [f64; 8] = [
    -1.0 / 6_402_373_705_728_000.0,
    1.0 / 20_922_789_888_000.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
];
/// arctan(t) / t in t^2, up to tan(pi/8): through its values at Chebyshev's points, relative error 5e-20.
const ATAN: [f64; 13] = [
    0.015113765096600925,
    -0.03338782450121195,
    0.04499500728984032,
    -0.05217312574061591,
    0.05876834004614161,
    -0.06666205259976526,
    0.07692281099937744,
    -0.09090908059031191,
    0.11111111085322109,
    -0.1428571428532971,
    0.19999999999997015,
    -0.33333333333333326,
    1.0,
];
/// The bits of 2/pi behind its point, after 64 zeros.
const TWO_OVER_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// `k` and the two parts of `r` for a number that is not negative, by subtraction.
fn subtracted<M: Machine>(x: Float<'_, M>) -> [Float<'_, M>; 3] {
    let k = (x * FRAC_2_PI).round_even();
    let first = (-k).fma(HALF_PI[0], x);
    let second = k * HALF_PI[1];
    let difference = first - second;
    let lost = first - difference - second;
    let rest = k.fma(HALF_PI[2], -lost);
    let high = difference - rest;
    [k, high, difference - high - rest]
}

/// The word of the table at an index below a number and the three behind it.
fn words<'m, M: Machine>(index: Int<'m, M>, below: usize) -> [Int<'m, M>; 4] {
    std::array::from_fn(|behind| {
        let of = |at: usize| index.constant(TWO_OVER_PI.get(at).map_or(0, |word| *word as i64));
        let mut level: Vec<Int<'m, M>> = (0..below).map(|at| of(at + behind)).collect();
        for bit in 0..5 {
            let odd = index.shr(bit).and(1).equals(1);
            level = level
                .chunks(2)
                .map(|pair| match *pair {
                    [even, next] => odd.choose_int(next, even),
                    [only] => only,
                    _ => of(0),
                })
                .collect();
        }
        level.first().copied().unwrap_or_else(|| of(0))
    })
}

/// `k` (mod 4) and the two parts of `r` for a finite number from [`LARGE`] to 2^`most`, by a product.
///
/// With `x = m 2^e`, bits of 2/pi above the place `e - 2` contribute multiples of 4 to `m 2^e 2/pi`: the 192 bits from there on
/// give the product modulo 4 to 2^-137.
fn multiplied<M: Machine>(x: Float<'_, M>, most: usize) -> [Float<'_, M>; 3] {
    let bits = x.bits();
    let mantissa = bits.and((1 << 52) - 1).or(1 << 52);
    // The place in the table, whose bits begin 64 places early: e - 2 + 64, e = exponent - 1075.
    let place = bits.shr(52) - 1013;
    let (index, shift) = (place.shr(6), place.and(63));
    // The exponent is below `most` + 1023.
    let [a, b, c, d] = words(index, (most + 9) / 64 + 1);
    let (w0, w1, w2) = (
        window(a, b, shift),
        window(b, c, shift),
        window(c, d, shift),
    );
    // The lower 192 bits of the product with the mantissa.
    let r2 = mantissa * w2;
    let low1 = mantissa * w1;
    let r1 = low1 + mantissa.mul_high(w2);
    let carry = r1.below(low1).choose_int(1, 0);
    let r0 = mantissa * w0 + mantissa.mul_high(w1) + carry;
    // Two bits of the quotient, and a fraction with a sign behind them.
    let high = r0.shl(2).or(r1.shr(62));
    let low = r1.shl(2).or(r2.shr(62));
    let quotient = (r0.shr(62) - high.sar(63)).and(3);
    // 32, 32 and 53 bits, each exact.
    let parts = [
        high.sar(32).to_float() * 2f64.powi(-32),
        high.and(0xffff_ffff).to_float() * 2f64.powi(-64),
        low.shr(11).to_float() * 2f64.powi(11 - 128),
    ];
    let first = parts[0] + parts[1];
    let lost = parts[1] - (first - parts[0]);
    let second = first + parts[2];
    let lost = lost + (parts[2] - (second - first));
    let product = second * FRAC_PI_2;
    let rest = second.fma(FRAC_PI_2, -product) + (second * HALF_PI_REST + lost * FRAC_PI_2);
    [quotient.to_float(), product, rest]
}

/// 64 bits of two words, from a bit of the first on; the shift of the second is in two steps, as none is by 64.
fn window<'m, M: Machine>(word: Int<'m, M>, next: Int<'m, M>, shift: Int<'m, M>) -> Int<'m, M> {
    let back = shift.constant(63) - shift;
    word.shl(shift).or(next.shr(1).shr(back))
}

/// A reduced argument: the quarter turns modulo 4, and the sine and cosine of the rest.
struct Turned<'m, M: Machine> {
    quarters: Int<'m, M>,
    sin: Float<'m, M>,
    cos: Float<'m, M>,
}

/// The reduction of a number that is not negative, and the sine and cosine of what is left of it.
fn turned<M: Machine>(x: Float<'_, M>) -> Turned<'_, M> {
    let [k, high, low] = x
        .less(LARGE)
        .branch(|| subtracted(x), || multiplied(x, 1024));
    let z = high * high;
    let cube = z * high;
    let sin = high - ((z * (low * 0.5 - cube * z.polynomial(&SIN)) - low) - cube * (-1.0 / 6.0));
    let half = z * 0.5;
    let whole = half * -1.0 + 1.0;
    let lost = (whole * -1.0 + 1.0) - half;
    let cos = whole + (lost + (z * z * z.polynomial(&COS) - high * low));
    Turned {
        quarters: k.to_int().and(3),
        sin,
        cos,
    }
}

/// The value where the argument is finite, else NaN.
fn finite<'m, M: Machine>(x: Float<'m, M>, value: Float<'m, M>) -> Float<'m, M> {
    x.abs().less(f64::INFINITY).choose(value, f64::NAN)
}

/// The value, or the argument itself where it is so small that they agree.
fn or_small<'m, M: Machine>(x: Float<'m, M>, value: Float<'m, M>) -> Float<'m, M> {
    x.abs().less(1e-9).choose(x, value)
}

/// The sine of `quarters` quarter turns more.
fn after<'m, M: Machine>(turned: &Turned<'m, M>, quarters: i64) -> Float<'m, M> {
    let quarters = turned.quarters + quarters;
    let value = quarters.and(1).equals(1).choose(turned.cos, turned.sin);
    quarters.and(2).equals(2).choose(-value, value)
}

/// The sine.
pub(crate) fn sin<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let value = after(&turned(x.abs()), 0);
    let negative = x.less(0.0);
    or_small(x, finite(x, negative.choose(-value, value)))
}

/// The cosine.
pub(crate) fn cos<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    finite(x, after(&turned(x.abs()), 1))
}

/// The tangent.
pub(crate) fn tan<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let turned = turned(x.abs());
    let odd = turned.quarters.and(1).equals(1);
    let value = odd.choose(-turned.cos, turned.sin) / odd.choose(turned.sin, turned.cos);
    let negative = x.less(0.0);
    or_small(x, finite(x, negative.choose(-value, value)))
}

/// (sin(r) / r - 1) / r^2 in r^2, up to pi/2: through its values at Chebyshev's points, relative error of the sine 2^-33.
const SHORT_SIN: [f64; 5] = [
    -2.408009508712208e-08,
    2.753645944364609e-06,
    -0.0001984108650700057,
    0.008333332768529359,
    -0.1666666666387985,
];
/// A number whose sum with a whole one below 2^50 has that in its last bits.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// The sine of `|r|` up to pi/2, as exact as f32 needs it, with the other sign where the last bit of `sum` is set.
fn short<'m, M: Machine>(r: Float<'m, M>, sum: Float<'m, M>) -> Float<'m, M> {
    let z = r * r;
    let value = r * z.fma(z.polynomial(&SHORT_SIN), 1.0);
    // The sum of a last bit and the sign's has the other sign.
    (value.bits() + sum.bits().shl(63)).as_bits()
}

/// The sine of a number of f32 whose magnitude is below 2^31, or its cosine: 2^-32 of it is wrong at most. What whole and half turns of pi
/// leave of the number is exact but for pi's second part.
pub(crate) fn near_sine<M: Machine>(x: Float<'_, M>, is_cosine: bool) -> Float<'_, M> {
    let turns = x * FRAC_1_PI;
    let sum = if is_cosine { turns + 0.5 } else { turns } + WHOLE;
    let whole = sum - WHOLE;
    let k = if is_cosine { whole - 0.5 } else { whole };
    short((-k).fma(2.0 * HALF_PI_REST, (-k).fma(PI, x)), sum)
}

/// The same of any number of f32 from 2^20 on, of infinities and of what is none.
pub(crate) fn far_sine<M: Machine>(x: Float<'_, M>, is_cosine: bool) -> Float<'_, M> {
    let [k, high, _] = multiplied(x.abs(), 128);
    let sign = x.constant(1.0).copysign(x);
    let quarters = (k * sign).to_int() + i64::from(is_cosine);
    let rest = high * sign;
    let odd = quarters.and(1).equals(1);
    let rest = odd.choose(rest.constant(FRAC_PI_2) - rest.abs(), rest);
    finite(x, short(rest, quarters.shr(1).and(1).as_bits()))
}

/// tan(pi/8).
const LEAST: f64 = 0.414_213_562_373_095_03;
/// tan(3 pi/8).
const MOST: f64 = 2.414_213_562_373_095;

/// The angle of a point that has no negative coordinates, with what it lacks.
fn angle<'m, M: Machine>(y: Float<'m, M>, x: Float<'m, M>) -> [Float<'m, M>; 2] {
    let (steep, flat) = (y.more(x * MOST), !y.more(x * LEAST));
    let above = steep.choose(-x, flat.choose(y, y - x));
    let below = steep.choose(y, flat.choose(x, y + x));
    let t = above / below;
    let series = (t * t).polynomial(&ATAN);
    let whole = steep.choose(FRAC_PI_2, flat.choose(0.0, FRAC_PI_4));
    let rest = steep.choose(HALF_PI_REST, flat.choose(0.0, HALF_PI_REST / 2.0));
    // Of the constant and the series, the constant is the larger or zero.
    let product = t * series;
    let high = whole + product;
    [high, product - (high - whole) + rest]
}

/// The angle of the point (x, y), from -pi to pi (C17, F.10.1.4).
pub(crate) fn atan2<'m, M: Machine>(y: Float<'m, M>, x: Float<'m, M>) -> Float<'m, M> {
    let (up, right) = (y.abs(), x.abs());
    // The sum of the two may not exist, and of two infinities one is enough.
    let large = up.more(1e300) | right.more(1e300);
    let scale = |value: Float<'m, M>| large.choose(value * 2f64.powi(-100), value);
    let both = up.equals(f64::INFINITY) & right.equals(f64::INFINITY);
    let one = |value: Float<'m, M>| both.choose(1.0, scale(value));
    let [high, low] = angle(one(up), one(right));
    let none = up.equals(0.0) & right.equals(0.0);
    let (high, low) = (none.choose(0.0, high), none.choose(0.0, low));
    let behind = x.constant(1.0).copysign(x).less(0.0);
    let away = (high * -1.0 + PI) + (low * -1.0 + 2.0 * HALF_PI_REST);
    let value = behind.choose(away, high + low).copysign(y);
    (x.is_nan() | y.is_nan()).choose(f64::NAN, value)
}

/// The inverse tangent.
pub(crate) fn atan<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let [high, low] = angle(x.abs(), x.constant(1.0));
    (high + low).copysign(x)
}

/// The inverse sine.
pub(crate) fn asin<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let one = x.constant(1.0);
    atan2(x, ((one - x) * (one + x)).sqrt())
}

/// The inverse cosine.
pub(crate) fn acos<M: Machine>(x: Float<'_, M>) -> Float<'_, M> {
    let one = x.constant(1.0);
    atan2((one - x).sqrt(), (one + x).sqrt()) * 2.0
}
