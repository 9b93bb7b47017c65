//! Every function at every input of f16 and bf16, with every instruction as wrong as it may be.

use super::{
    Arithmetic, Divisor, EXPONENT, Function, Goal, Instruction, MOST_OF_SINE, TAKEN_APART,
    exp_of_f32, log1p_of_f32, one_plus_erf_of, quotient, quotient_of_f32,
};
use axe_sim::units::float::{Format, Round};
use std::convert::Infallible;

/// f32 on the host. An instruction that approximates is wrong by all that it may, up or down, or not at all.
struct Host {
    /// The errors of functions that are powers or logarithms, and of the others: parts of their bounds.
    errors: [f64; 2],
}

/// The ends of all bounds, together and against each other, and none.
const MACHINES: [[f64; 2]; 5] = [
    [0.0, 0.0],
    [1.0, 1.0],
    [1.0, -1.0],
    [-1.0, 1.0],
    [-1.0, -1.0],
];

fn flushed(x: f32, flush: bool) -> f32 {
    match flush && x.is_subnormal() {
        true => 0.0f32.copysign(x),
        false => x,
    }
}

impl Host {
    fn wrong(&self, exact: f64, relative: f64, kind: usize) -> f32 {
        (exact * (1.0 + relative * self.errors[kind])) as f32
    }
}

type Made<T> = Result<T, Infallible>;

impl Arithmetic for Host {
    type Value = f32;
    type Bit = bool;
    type Error = Infallible;

    fn number(&self, value: f64) -> Made<f32> {
        Ok(value as f32)
    }
    fn add(&self, a: f32, b: f32) -> Made<f32> {
        Ok(a + b)
    }
    fn mul(&self, a: f32, b: f32) -> Made<f32> {
        Ok(a * b)
    }
    fn fma(&self, a: f32, b: f32, c: f32) -> Made<f32> {
        Ok(a.mul_add(b, c))
    }
    fn reciprocal(&self, x: f32) -> Made<f32> {
        Ok(x.recip())
    }
    fn quotient(&self, a: f32, b: f32) -> Made<f32> {
        Ok(self.wrong(f64::from(a) / f64::from(b), 2f64.powi(-22), 1))
    }
    fn approximate(&self, instruction: Instruction, x: f32, flush: bool) -> Made<f32> {
        let x = f64::from(flushed(x, flush));
        let y = match instruction {
            Instruction::Ex2 => self.wrong(x.exp2(), 2f64.powi(-22), 0),
            Instruction::Lg2 => {
                let (log, error) = (x.log2(), 2f64.powi(-22) * self.errors[0]);
                match (0.5..=2.0).contains(&x) {
                    true => (log + error) as f32,
                    false => (log * (1.0 + error)) as f32,
                }
            }
            Instruction::Rcp => self.wrong(x.recip(), 2f64.powi(-23), 1),
            Instruction::Rsqrt => self.wrong(x.sqrt().recip(), 2f64.powf(-22.9), 1),
            Instruction::Sqrt => self.wrong(x.sqrt(), 2f64.powi(-23), 1),
            Instruction::Tanh => self.wrong(x.tanh(), 2f64.powi(-11), 1),
        };
        Ok(flushed(y, flush))
    }
    fn taken_apart(&self, x: f32) -> Made<[f32; 2]> {
        let exponent = x.to_bits().wrapping_sub(TAKEN_APART[0]) & EXPONENT.0;
        let power = (exponent as i32 >> EXPONENT.1) as f32;
        Ok([power, f32::from_bits(TAKEN_APART[1].wrapping_sub(exponent))])
    }
    fn abs(&self, x: f32) -> Made<f32> {
        Ok(x.abs())
    }
    fn clamp(&self, x: f32, [least, most]: [f64; 2]) -> Made<f32> {
        Ok(x.clamp(least as f32, most as f32))
    }
    fn signed(&self, x: f32, sum: f32) -> Made<f32> {
        Ok(f32::from_bits(x.to_bits() ^ sum.to_bits() << 31))
    }
    fn less(&self, a: f32, b: f64) -> Made<bool> {
        Ok(a < b as f32)
    }
    fn choose(&self, condition: bool, yes: f32, no: f32) -> Made<f32> {
        Ok(if condition { yes } else { no })
    }
}

fn value<T>(made: Made<T>) -> T {
    match made {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// The place of a 16-bit float among them, in order; `None` for a NaN.
fn place(format: Format, x: f64) -> Option<i32> {
    let bits = format.from_f64(x, Round::Nearest, false) as i32;
    let magnitude = bits & 0x7fff;
    (!x.is_nan()).then_some(if bits > 0x7fff { -magnitude } else { magnitude })
}

/// What is asked of a value that is rounded to a format and comes from it.
fn goal(format: Format) -> Goal {
    let f16 = format == Format::F16;
    Goal {
        flush: f16,
        flush_operand: f16,
        coarse: !f16,
        absolute: false,
        at_most_zero: false,
    }
}

/// The most ulps between what a function gives and the correctly rounded result, over all inputs and machines.
fn most_ulps(
    format: Format,
    exact: impl Fn(f64) -> f64,
    made: impl Fn(&Host, f32) -> f32,
) -> (i32, f64) {
    let mut most = (0, 0.0);
    for errors in MACHINES {
        let host = Host { errors };
        for bits in 0..=u16::MAX {
            let x = format.to_f64(u64::from(bits));
            let wanted = place(format, exact(x));
            let got = place(format, f64::from(made(&host, x as f32)));
            let distance = match (wanted, got) {
                (None, None) => 0,
                (Some(wanted), Some(got)) => (wanted - got).abs(),
                _ => i32::MAX,
            };
            if distance > most.0 {
                most = (distance, x);
            }
        }
    }
    most
}

const FORMATS: [Format; 2] = [Format::F16, Format::Bf16];

fn at(function: Function, goal: Goal) -> impl Fn(&Host, f32) -> f32 {
    move |host, x| value(function.at(host, x, goal))
}

#[test]
fn functions_are_within_an_ulp_of_the_correctly_rounded_result() {
    type Exact = fn(f64) -> f64;
    let functions: [(Function, Exact); 9] = [
        (Function::Exp, f64::exp),
        (Function::Exp2, f64::exp2),
        (Function::Log, f64::ln),
        (Function::Log2, f64::log2),
        (Function::Log1p, f64::ln_1p),
        (Function::Sqrt, f64::sqrt),
        (Function::Rsqrt, |x| x.sqrt().recip()),
        (Function::Tanh, f64::tanh),
        (Function::Erf, libm::erf),
    ];
    for format in FORMATS {
        for (function, exact) in functions {
            for coarse in [false, true] {
                let goal = Goal {
                    coarse,
                    ..goal(format)
                };
                let made = at(function, goal);
                // What is known of the logarithm of 1 is that it is at most 2^-22: the ISA's bound there.
                let log = [Function::Log, Function::Log2].contains(&function);
                let exact = |x: f64| if log && x == 1.0 { 0.0 } else { exact(x) };
                let made = |host: &Host, x: f32| match made(host, x) {
                    y if log && x == 1.0 && y.abs() <= 2f32.powi(-22) => 0.0,
                    y => y,
                };
                let most = most_ulps(format, exact, made);
                assert!(
                    most.0 <= 1,
                    "{function:?} of {format:?}, {goal:?}: {most:?}"
                );
            }
        }
    }
}

#[test]
fn exponentials_below_one_are_those_of_bf16_down_to_its_smallest_number() {
    let goal = Goal {
        at_most_zero: true,
        ..goal(Format::Bf16)
    };
    let made = |host: &Host, x: f32| match x > 0.0 {
        true => f64::from(x).exp() as f32,
        false => value(Function::Exp.at(host, x, goal)),
    };
    let most = most_ulps(Format::Bf16, f64::exp, made);
    assert!(most.0 <= 1, "{most:?}");
    for host in MACHINES.map(|errors| Host { errors }) {
        let at = |x: f32| value(Function::Exp.at(&host, x, goal));
        assert!(at(f32::NEG_INFINITY) == 0.0 && at(f32::NAN).is_nan());
        let least = f64::from(at(-92.0));
        assert!((least / (-92f64).exp() - 1.0).abs() < 1e-2, "{least}");
    }
}

#[test]
fn sines_are_within_an_ulp_of_the_correctly_rounded_result() {
    let near = |x: f64| x.abs() <= MOST_OF_SINE || x.is_nan();
    for (function, exact) in [
        (Function::Sin, f64::sin as fn(f64) -> f64),
        (Function::Cos, f64::cos),
    ] {
        for format in FORMATS {
            let made = at(function, goal(format));
            // Others are not computed so.
            let made = |host: &Host, x: f32| match near(f64::from(x)) {
                true => made(host, x),
                false => exact(f64::from(x)) as f32,
            };
            let most = most_ulps(format, exact, made);
            assert!(most.0 <= 1, "{function:?} of {format:?}: {most:?}");
        }
        let host = Host {
            errors: MACHINES[0],
        };
        let made = at(function, goal(Format::Bf16));
        // Numbers of f32 next to quarter turns, where the result is least.
        for k in 1..600_000 {
            let x = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
            let (got, wanted) = (f64::from(made(&host, x)), exact(f64::from(x)));
            let error = (got - wanted).abs();
            assert!(
                error <= wanted.abs() * 2f64.powi(-12),
                "{function:?}({x:e}): {got:e}"
            );
        }
    }
    let zero = at(Function::Sin, goal(Format::F16))(
        &Host {
            errors: MACHINES[0],
        },
        -0.0,
    );
    assert!(zero == 0.0 && zero.is_sign_negative());
}

#[test]
fn what_only_sums_see_is_exact_beside_one() {
    for (function, exact) in [
        (Function::Tanh, f64::tanh as fn(f64) -> f64),
        (Function::Erf, libm::erf),
    ] {
        for errors in MACHINES {
            let host = Host { errors };
            for bits in 0..=u16::MAX {
                let x = Format::F16.to_f64(u64::from(bits));
                let goal = Goal {
                    absolute: true,
                    coarse: false,
                    ..goal(Format::F16)
                };
                let got = f64::from(value(function.at(&host, x as f32, goal)));
                let error = (got - exact(x)).abs();
                assert!(
                    error <= 2f64.powi(-19) || x.is_nan(),
                    "{function:?} at {x}: {got}"
                );
            }
        }
    }
}

/// Sums with one keep a relative error where those of the rounded function have no digit left.
#[test]
fn sums_with_one_do_not_cancel() {
    let erfc = |x: f64| libm::erfc(-x);
    let functions: [(Function, &dyn Fn(f64) -> f64); 2] = [
        (Function::OnePlusTanh, &|x| 2.0 / (1.0 + (-2.0 * x).exp())),
        (Function::OnePlusErf, &erfc),
    ];
    for format in FORMATS {
        for (function, exact) in functions {
            for errors in MACHINES {
                let host = Host { errors };
                for bits in 0..=u16::MAX {
                    let x = format.to_f64(u64::from(bits));
                    let (wanted, got) =
                        (exact(x), value(function.at(&host, x as f32, goal(format))));
                    // Where 1 + f(x) of f32 is zero, so may this be.
                    let relative = if wanted < 1e-8 { 1.0 } else { 2f64.powi(-13) };
                    let within = (f64::from(got) - wanted).abs() <= wanted * relative;
                    assert!(
                        within || x.is_nan() && got.is_nan(),
                        "{function:?} at {x}: {got}, {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn activations_are_within_an_ulp() {
    let half = |x: f32| x * 0.5;
    let sigmoid = |host: &Host, x: f32, goal: Goal| {
        let below = 1.0 + value(Function::Exp.at(host, -x, goal));
        let divisor = if goal.flush {
            Divisor::Small
        } else {
            Divisor::Any
        };
        value(quotient(host, (1.0, below), divisor))
    };
    for format in FORMATS {
        let goal = goal(format);
        let tanh_gelu = |host: &Host, x: f32| {
            let inner = (x + 0.044715 * (x * x * x)) * 0.797_884_6;
            if (-1e30..-10.0).contains(&x) {
                return -0.0;
            }
            x * half(value(Function::OnePlusTanh.at(host, inner, goal)))
        };
        let erf_gelu = |host: &Host, x: f32| {
            let of = (x, std::f64::consts::FRAC_1_SQRT_2);
            x * half(value(one_plus_erf_of(host, of, goal)))
        };
        let softplus = |host: &Host, x: f32| {
            let power = value(Function::Exp.at(host, x, goal));
            let log = value(Function::Log1p.at(host, power, goal));
            if x > 20.0 { x } else { log }
        };
        let exact_sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let exact_tanh_gelu = |x: f64| {
            let inner = 0.797_884_6 * (x + 0.044715 * x * x * x);
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else if x < -10.0 {
                // 1 + tanh(x) of f32 is zero long before, and this where e^-2x is infinite.
                -0.0
            } else {
                x * exact_sigmoid(2.0 * inner)
            }
        };
        let exact_erf_gelu = |x: f64| {
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else {
                x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
            }
        };
        let most = [
            // Beyond -88 e^-x is infinite in f32.
            most_ulps(
                format,
                |x| if x < -88.0 { 0.0 } else { exact_sigmoid(x) },
                |host, x| {
                    if x < -88.0 {
                        0.0
                    } else {
                        sigmoid(host, x, goal)
                    }
                },
            ),
            most_ulps(
                format,
                |x| if x < -88.0 { 0.0 } else { x * exact_sigmoid(x) },
                |host, x| {
                    if x < -88.0 {
                        0.0
                    } else {
                        x * sigmoid(host, x, goal)
                    }
                },
            ),
            most_ulps(format, exact_tanh_gelu, tanh_gelu),
            most_ulps(format, exact_erf_gelu, erf_gelu),
            most_ulps(
                format,
                |x| if x > 20.0 { x } else { x.exp().ln_1p() },
                softplus,
            ),
        ];
        assert!(most.iter().all(|most| most.0 <= 1), "{format:?}: {most:?}");
    }
}

#[test]
fn quotients_are_within_an_ulp() {
    // All divisors, for dividends of all magnitudes.
    for format in FORMATS {
        for over in [
            1.0,
            -3.0,
            0.1,
            65504.0,
            6e-8,
            1e-30,
            1e30,
            0.0,
            f64::INFINITY,
            f64::NAN,
        ] {
            let over = format.to_f64(format.from_f64(over, Round::Nearest, false));
            let kinds: &[Divisor] = match format {
                Format::F16 => &[Divisor::Small, Divisor::Shared, Divisor::Any],
                _ => &[Divisor::Shared, Divisor::Any],
            };
            for kind in kinds {
                let made = |host: &Host, under| value(quotient(host, (over as f32, under), *kind));
                let most = most_ulps(format, |under| over / under, made);
                assert!(most.0 <= 1, "{over} by {format:?}, {kind:?}: {most:?}");
            }
        }
    }
}

/// Units in the last place of f32 between a value and a number of f64.
fn units(value: f32, exact: f64) -> f64 {
    let rounded = (exact as f32).abs().max(f32::MIN_POSITIVE);
    let unit = f64::from(f32::from_bits(rounded.to_bits() + 1)) - f64::from(rounded);
    (f64::from(value) - exact).abs() / unit
}

#[test]
fn quotients_of_f32_are_as_exact_as_said() {
    let host = Host { errors: [0.0; 2] };
    let least = 2f64.powi(-100);
    let special = [
        0.0,
        -0.0,
        1.0,
        3.0,
        1e-45,
        1e-40,
        -1e-38,
        1e-30,
        1e30,
        3e38,
        f32::MAX,
    ];
    let special = special
        .into_iter()
        .chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    let every = |step| (0..=u32::MAX).step_by(step).map(f32::from_bits);
    let numbers: Vec<_> = special.chain(every(1_000_003)).collect();
    // The longest mantissas, of divisors for which quotients come nearest to the middle of two numbers.
    let long = (0..256u32).map(|bits| f32::from_bits(0x3fff_ff00 | bits));
    let divisors: Vec<_> = numbers.iter().copied().chain(long).collect();
    for (over, under) in numbers
        .iter()
        .flat_map(|over| divisors.iter().map(|under| (*over, *under)))
    {
        let (exact, got) = (
            f64::from(over) / f64::from(under),
            value(quotient_of_f32(&host, over, under)),
        );
        let wanted = exact as f32;
        let right = match exact {
            _ if exact.is_nan() => got.is_nan(),
            _ if wanted.is_infinite() || wanted == 0.0 => got == wanted || got.abs() <= 1e-45,
            _ if exact.abs() < least || f64::from(over.abs()) < least => units(got, exact) <= 1.5,
            _ => units(got, exact) <= 0.5 + 2f64.powi(-22),
        };
        assert!(right, "{over:e} / {under:e}: {got:e} for {exact:e}");
    }
}

#[test]
fn log1p_of_f32_is_one_and_a_half_units_wrong_at_most() {
    for errors in MACHINES {
        let host = Host { errors };
        let of = |x: f32| value(log1p_of_f32(&host, x));
        // Every bit pattern in so many, and all that are near where the form changes.
        let far = (0..=u32::MAX).step_by(4099).map(f32::from_bits);
        let near = [-0.75f32, -0.25, 0.5, 2.0, 2f32.powi(100)];
        let near = near
            .iter()
            .flat_map(|x| (0..2000).map(move |by| f32::from_bits(x.to_bits() - 1000 + by)));
        for x in far.chain(near) {
            let (exact, got) = (f64::from(x).ln_1p(), of(x));
            match exact.is_nan() {
                true => assert!(got.is_nan(), "{x}"),
                false if exact.is_infinite() => assert_eq!(f64::from(got), exact, "{x}"),
                // Beyond 2^100 it is the chip's approximation, 2^-22 wrong.
                false => {
                    let most = if x > 1e30 { 4.0 } else { 1.5 };
                    assert!(units(got, exact) <= most, "{x}: {got} for {exact}");
                }
            }
        }
        assert_eq!(of(0.0), 0.0);
        assert!(of(-0.0).is_sign_negative());
        assert_eq!(of(-1.0), f32::NEG_INFINITY);
        assert_eq!(of(f32::INFINITY), f32::INFINITY);
        assert!(of(-1.5).is_nan());
    }
}

#[test]
fn exp_of_f32_is_as_exact_as_said() {
    let least = f64::from(f32::MIN_POSITIVE);
    let most = f64::from(f32::MAX);
    let bound = 2f64.powi(-21);
    for errors in MACHINES {
        let host = Host { errors };
        for flush in [false, true] {
            let of = |x: f32| value(exp_of_f32(&host, x, flush));
            // Every bit pattern in so many, and all near where results end.
            let far = (0..=u32::MAX).step_by(4099).map(f32::from_bits);
            let near = [-150.0f32, -104.0, -103.3, -87.4, 88.7, 89.0, 150.0];
            let near = near
                .iter()
                .flat_map(|x| (0..20_000).map(move |by| f32::from_bits(x.to_bits() - 10_000 + by)));
            for x in far.chain(near) {
                let (exact, got) = (f64::from(x).exp(), f64::from(of(x)));
                let apart = (got - exact).abs();
                let right = match exact {
                    _ if exact.is_nan() => got.is_nan(),
                    _ if exact > most * (1.0 + bound) => got == f64::INFINITY,
                    _ if exact > most * (1.0 - bound) => got > most * (1.0 - 2.0 * bound),
                    _ if exact >= least * (1.0 + bound) => apart <= bound * exact,
                    _ if flush => (0.0..least * (1.0 + 2.0 * bound)).contains(&got),
                    // Two roundings to multiples of 2^-149.
                    _ => apart <= bound * exact + 2f64.powi(-149),
                };
                assert!(right, "{x}: {got} for {exact}");
            }
        }
    }
}
