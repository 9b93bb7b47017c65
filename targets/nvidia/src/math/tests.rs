//! The functions on a machine that computes, beside libm's.

use super::machine::{Binary, Float, Machine, Order, Unary, Whole};
use super::{far_sine, near_sine, of};

/// The host.
struct Host;

impl Machine for Host {
    type Float = f64;
    type Int = i64;
    type Bit = bool;

    fn float(&self, value: f64) -> f64 {
        value
    }

    fn int(&self, value: i64) -> i64 {
        value
    }

    fn unary(&self, op: Unary, a: f64) -> f64 {
        match op {
            Unary::Abs => a.abs(),
            Unary::Neg => -a,
            Unary::Sqrt => a.sqrt(),
            Unary::RoundEven => a.round_ties_even(),
        }
    }

    fn binary(&self, op: Binary, a: f64, b: f64) -> f64 {
        match op {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::CopySign => a.copysign(b),
        }
    }

    fn fma(&self, a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }

    fn whole(&self, op: Whole, a: i64, b: i64) -> i64 {
        let by = b as u32;
        match op {
            Whole::Add => a.wrapping_add(b),
            Whole::Sub => a.wrapping_sub(b),
            Whole::Mul => a.wrapping_mul(b),
            Whole::MulHigh => ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64,
            Whole::And => a & b,
            Whole::Or => a | b,
            // Shifts by more are the GPU's own: no value of a function depends on one.
            Whole::Shl => a.wrapping_shl(by),
            Whole::Shr => ((a as u64).wrapping_shr(by)) as i64,
            Whole::Sar => a.wrapping_shr(by),
        }
    }

    fn compare(&self, order: Order, a: f64, b: f64) -> bool {
        match order {
            Order::Equal => a == b,
            Order::Less => a < b,
            Order::Unordered => a.is_nan() || b.is_nan(),
            Order::Below => unreachable!("floats have signs"),
        }
    }

    fn compare_int(&self, order: Order, a: i64, b: i64) -> bool {
        match order {
            Order::Equal => a == b,
            Order::Less => a < b,
            Order::Below => (a as u64) < b as u64,
            Order::Unordered => unreachable!("integers are numbers"),
        }
    }

    fn and(&self, a: bool, b: bool) -> bool {
        a & b
    }

    fn or(&self, a: bool, b: bool) -> bool {
        a | b
    }

    fn not(&self, a: bool) -> bool {
        !a
    }

    fn choose(&self, condition: bool, a: f64, b: f64) -> f64 {
        if condition { a } else { b }
    }

    fn choose_int(&self, condition: bool, a: i64, b: i64) -> i64 {
        if condition { a } else { b }
    }

    fn bits(&self, a: f64) -> i64 {
        a.to_bits() as i64
    }

    fn of_bits(&self, a: i64) -> f64 {
        f64::from_bits(a as u64)
    }

    fn to_float(&self, a: i64) -> f64 {
        a as f64
    }

    fn branch(
        &self,
        condition: bool,
        yes: impl FnOnce() -> [f64; 3],
        no: impl FnOnce() -> [f64; 3],
    ) -> [f64; 3] {
        if condition { yes() } else { no() }
    }
}

unsafe extern "C" {
    fn erf(x: f64) -> f64;
    fn erfc(x: f64) -> f64;
}

fn ours(name: &str, operands: &[f64]) -> f64 {
    let operands: Vec<_> = operands.iter().map(|x| Float::new(&Host, *x)).collect();
    of(name, &operands).unwrap().value
}

/// How many floats lie between two; none where both are NaN, or equal.
fn between(a: f64, b: f64) -> u64 {
    let ordered = |x: f64| {
        let bits = x.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN - bits } else { bits })
    };
    match a.is_nan() || b.is_nan() {
        true if a.is_nan() && b.is_nan() => 0,
        true => u64::MAX,
        false => u64::try_from((ordered(a) - ordered(b)).unsigned_abs()).unwrap_or(u64::MAX),
    }
}

/// A generator of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 2f64.powi(53)
    }
}

/// Numbers of every kind: special ones, all exponents, and evenly from an interval.
fn samples(least: f64, most: f64) -> Vec<f64> {
    let mut numbers = Numbers(7);
    let special = [
        0.0,
        1.0,
        0.5,
        2.0,
        f64::INFINITY,
        f64::MIN_POSITIVE,
        f64::MIN_POSITIVE / 8.0,
        5e-324,
        f64::MAX,
        1e-300,
        1.0 + f64::EPSILON,
        1.0 - f64::EPSILON / 2.0,
        std::f64::consts::PI,
        std::f64::consts::FRAC_PI_2,
        709.78,
        745.2,
        524_288.0,
        1e22,
    ];
    let mut all: Vec<f64> = special.iter().flat_map(|x| [*x, -x]).collect();
    all.push(f64::NAN);
    all.extend((0..20_000).map(|_| f64::from_bits(numbers.bits())));
    all.extend((0..40_000).map(|_| least + (most - least) * numbers.unit()));
    all.extend((0..20_000).map(|_| {
        let exponent = (numbers.unit() * 60.0 - 50.0).exp2();
        (numbers.unit() - 0.5) * 4.0 * exponent
    }));
    all
}

/// The worst of all samples against a reference.
fn worst(name: &str, (least, most): (f64, f64), reference: impl Fn(f64) -> f64) -> (u64, f64) {
    let error = |x: f64| (between(ours(name, &[x]), reference(x)), x);
    let errors = samples(least, most).into_iter().map(error);
    errors.max_by_key(|(error, _)| *error).unwrap()
}

#[test]
fn functions_of_one_number_are_accurate() {
    type Case = (&'static str, u64, (f64, f64), fn(f64) -> f64);
    let cases: [Case; 22] = [
        ("math.exp", 1, (-745.0, 710.0), f64::exp),
        ("math.exp2", 1, (-1075.0, 1024.0), f64::exp2),
        ("math.expm1", 1, (-40.0, 40.0), f64::exp_m1),
        ("math.log", 1, (0.0, 10.0), f64::ln),
        ("math.log2", 2, (0.0, 10.0), f64::log2),
        ("math.log10", 2, (0.0, 10.0), f64::log10),
        ("math.log1p", 1, (-1.0, 10.0), f64::ln_1p),
        ("math.sinh", 3, (-711.0, 711.0), f64::sinh),
        ("math.cosh", 3, (-711.0, 711.0), f64::cosh),
        ("math.tanh", 3, (-20.0, 20.0), f64::tanh),
        ("math.sin", 1, (-1e6, 1e6), f64::sin),
        ("math.cos", 1, (-100.0, 100.0), f64::cos),
        ("math.tan", 3, (-100.0, 100.0), f64::tan),
        ("math.asin", 3, (-1.0, 1.0), f64::asin),
        ("math.acos", 3, (-1.0, 1.0), f64::acos),
        ("math.atan", 2, (-10.0, 10.0), f64::atan),
        ("math.cbrt", 1, (-1000.0, 1000.0), f64::cbrt),
        ("math.round", 0, (-1000.0, 1000.0), f64::round),
        ("math.rsqrt", 1, (0.0, 100.0), |x| 1.0 / x.sqrt()),
        // SAFETY: both functions take any number.
        ("math.erf", 2, (-6.0, 6.0), |x| unsafe { erf(x) }),
        ("math.erfc", 4, (-6.0, 27.3), |x| unsafe { erfc(x) }),
        ("math.exp", 1, (-1.0, 1.0), f64::exp),
    ];
    let mut wrong = Vec::new();
    for (name, most, range, reference) in cases {
        let (error, at) = worst(name, range, reference);
        wrong.extend((error > most).then(|| format!("{name}({at:e}): {error}")));
    }
    assert!(wrong.is_empty(), "more units in the last place: {wrong:?}");
}

unsafe extern "C" {
    fn asinh(x: f64) -> f64;
    fn acosh(x: f64) -> f64;
    fn atanh(x: f64) -> f64;
}

#[test]
fn inverse_hyperbolic_functions_are_accurate() {
    // SAFETY: both functions take any number.
    let (error, at) = worst("math.asinh", (-10.0, 10.0), |x| unsafe { asinh(x) });
    assert!(error <= 3, "asinh({at:e}): {error}");
    // SAFETY: as above.
    let (error, at) = worst("math.acosh", (1.0, 10.0), |x| unsafe { acosh(x) });
    assert!(error <= 3, "acosh({at:e}): {error}");
    // SAFETY: as above.
    let (error, at) = worst("math.atanh", (-1.0, 1.0), |x| unsafe { atanh(x) });
    assert!(error <= 3, "atanh({at:e}): {error}");
}

#[test]
fn sines_of_the_hardest_arguments_are_accurate() {
    // The double that is closest to a multiple of pi/2 (Muller, Elementary Functions, 11.3), where libms fail by several
    // units, and neighbours of others.
    let hardest = ours("math.cos", &[6_381_956_970_095_103.0 * 2f64.powi(797)]);
    assert_eq!(hardest, -4.687_165_924_254_628e-19);
    let mut all = Vec::new();
    let mut numbers = Numbers(3);
    for _ in 0..20_000 {
        let turns = (numbers.unit() * 2f64.powi(40)).floor();
        all.push(turns * std::f64::consts::FRAC_PI_2);
    }
    for x in all {
        for (name, reference) in [
            ("math.sin", f64::sin as fn(f64) -> f64),
            ("math.cos", f64::cos),
        ] {
            let error = between(ours(name, &[x]), reference(x));
            assert!(error <= 1, "{name}({x:e}): {error}");
        }
    }
}

#[test]
fn sines_of_narrow_floats_are_as_exact_as_those_need() {
    let mut numbers = Numbers(5);
    let mut all: Vec<f32> = samples(-1e6, 1e6).into_iter().map(|x| x as f32).collect();
    all.extend((0..200_000).map(|_| f32::from_bits(numbers.bits() as u32)));
    // The number of f32 whose cosine is closest to zero, the first ones that the other reduction has, and neighbours of multiples.
    all.extend([
        16_367_173.0 * 2f32.powi(72),
        2f32.powi(31),
        -2f32.powi(31),
        f32::MAX,
    ]);
    let quarters = (1..100_000).map(|k| (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32);
    all.extend(quarters);
    let sine = |x: f64, is_cosine| {
        let number = Float::new(&Host, x);
        let near = x.abs() < 2f64.powi(31);
        let far = (x.abs() >= 2f64.powi(20) || !near).then(|| far_sine(number, is_cosine).value);
        let near = near.then(|| near_sine(number, is_cosine).value);
        [near, far].into_iter().flatten().collect::<Vec<_>>()
    };
    for x in all.into_iter().map(f64::from) {
        for (is_cosine, exact) in [(false, x.sin()), (true, x.cos())] {
            for made in sine(x, is_cosine) {
                let error = (made - exact).abs();
                let known = error <= exact.abs() * 2f64.powi(-32);
                let known = known || made.is_nan() && exact.is_nan();
                assert!(known, "{x:e}, {is_cosine}: {made:e} for {exact:e}");
            }
        }
    }
    let zero = near_sine(Float::new(&Host, -0.0), false).value;
    assert!(zero == 0.0 && zero.is_sign_negative());
}

#[test]
fn functions_of_two_numbers_are_accurate() {
    let mut numbers = Numbers(11);
    let special = [
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        1.5,
        f64::INFINITY,
        f64::NAN,
        5e-324,
        1e300,
        9_007_199_254_740_993.0,
    ];
    let mut pairs = Vec::new();
    let signed = || special.iter().flat_map(|x| [*x, -x]);
    for x in signed() {
        pairs.extend(signed().map(|y| (x, y)));
    }
    for _ in 0..50_000 {
        pairs.push((numbers.unit() * 20.0, (numbers.unit() - 0.5) * 400.0));
        pairs.push((
            f64::from_bits(numbers.bits()),
            f64::from_bits(numbers.bits()),
        ));
        pairs.push((1.0 + numbers.unit() * 1e-3, (numbers.unit() - 0.5) * 1e6));
        pairs.push((
            -numbers.unit() * 20.0,
            (numbers.unit() * 20.0).floor() - 10.0,
        ));
    }
    for (x, y) in pairs {
        let error = between(ours("math.powf", &[x, y]), x.powf(y));
        assert!(error <= 1, "pow({x:e}, {y:e}): {error}");
        let error = between(ours("math.atan2", &[x, y]), x.atan2(y));
        assert!(error <= 2, "atan2({x:e}, {y:e}): {error}");
    }
}

#[test]
fn zeros_keep_their_signs() {
    for name in [
        "exp", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p",
        "cbrt", "erf",
    ] {
        let value = ours(&format!("math.{name}"), &[-0.0]);
        assert!(
            name == "exp" || (value == 0.0 && value.is_sign_negative()),
            "{name}: {value}"
        );
    }
}
