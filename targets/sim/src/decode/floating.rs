//! Floating-point instructions (PTX ISA 9.7.3 to 9.7.5) and comparisons (9.7.6).

use super::integer::{f1, f2, f3};
use super::lanes::{CompareFn, LaneFn, Lanes, compare, map1, map2, map3};
use crate::units::approx::{Function, div_approx};
use crate::units::float::{Format, Round};

/// How one rounding mode shows up in an instruction's modifiers.
pub(super) fn rounding(flags: &[&str]) -> Option<Round> {
    flags.iter().find_map(|flag| {
        Some(match *flag {
            "rn" | "rni" => Round::Nearest,
            "rna" => Round::Away,
            "rz" | "rzi" => Round::Zero,
            "rm" | "rmi" => Round::Down,
            "rp" | "rpi" => Round::Up,
            _ => return None,
        })
    })
}

/// `p + c` rounded to odd in double precision, so that a second rounding to a narrower format is exact.
fn add_odd(p: f64, c: f64) -> f64 {
    let sum = p + c;
    let virtual_c = sum - p;
    let error = (p - (sum - virtual_c)) + (c - virtual_c);
    if error == 0.0 || !error.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    // Away from zero if the error has the sum's sign, towards zero otherwise; both give an odd last bit.
    let bits = sum.to_bits();
    f64::from_bits(if (error > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

fn fma_rounded(format: Format, round: Round, a: f64, b: f64, c: f64) -> u64 {
    let product = a * b;
    let exact = if product == 0.0 || c == 0.0 {
        // Keep the sign rules of zeros: an exact zero sum is -0 only when rounding down.
        let sum = product + c;
        if sum == 0.0
            && round == Round::Down
            && (product.is_sign_negative() || c.is_sign_negative())
        {
            -0.0
        } else {
            sum
        }
    } else {
        let sum = add_odd(product, c);
        if sum == 0.0 && round == Round::Down {
            -0.0
        } else {
            sum
        }
    };
    format.from_f64(exact, round, false)
}

fn min_nan<T: PartialOrd + Copy>(
    a: T,
    b: T,
    is_nan: impl Fn(T) -> bool,
    negative: impl Fn(T) -> bool,
) -> T {
    if is_nan(a) {
        b
    } else if is_nan(b) || a < b || (a == b && negative(a)) {
        a
    } else {
        b
    }
}

fn max_nan<T: PartialOrd + Copy>(
    a: T,
    b: T,
    is_nan: impl Fn(T) -> bool,
    negative: impl Fn(T) -> bool,
) -> T {
    if is_nan(a) {
        b
    } else if is_nan(b) || a > b || (a == b && !negative(a)) {
        a
    } else {
        b
    }
}

macro_rules! real {
    ($name:ident, $t:ident) => {
        fn $name(op: &str, flags: &[&str]) -> Option<LaneFn> {
            let has = |flag: &str| flags.contains(&flag);
            Some(match op {
                "add" => f2!($t, |a, b| a + b),
                "sub" => f2!($t, |a, b| a - b),
                "mul" => f2!($t, |a, b| a * b),
                "fma" | "mad" => f3!($t, |a, b, c| a.mul_add(b, c)),
                "div" => f2!($t, |a, b| a / b),
                "rcp" => f1!($t, |a| 1.0 / a),
                "sqrt" => f1!($t, |a| a.sqrt()),
                "rsqrt" => f1!($t, |a| 1.0 / a.sqrt()),
                "neg" => f1!($t, |a| -a),
                "abs" => f1!($t, |a| a.abs()),
                "copysign" => f2!($t, |a, b| b.copysign(a)),
                "min" if has("NaN") => f2!($t, |a, b| if a.is_nan() || b.is_nan() {
                    $t::NAN
                } else {
                    min_nan(a, b, |v| v.is_nan(), |v| v.is_sign_negative())
                }),
                "max" if has("NaN") => f2!($t, |a, b| if a.is_nan() || b.is_nan() {
                    $t::NAN
                } else {
                    max_nan(a, b, |v| v.is_nan(), |v| v.is_sign_negative())
                }),
                "min" if has("abs") => f2!($t, |a, b| min_nan(
                    a.abs(),
                    b.abs(),
                    |v| v.is_nan(),
                    |v| v.is_sign_negative()
                )),
                "max" if has("abs") => f2!($t, |a, b| max_nan(
                    a.abs(),
                    b.abs(),
                    |v| v.is_nan(),
                    |v| v.is_sign_negative()
                )),
                "min" => f2!($t, |a, b| min_nan(
                    a,
                    b,
                    |v| v.is_nan(),
                    |v| v.is_sign_negative()
                )),
                "max" => f2!($t, |a, b| max_nan(
                    a,
                    b,
                    |v| v.is_nan(),
                    |v| v.is_sign_negative()
                )),
                _ => return None,
            })
        }
    };
}
real!(f32_op, f32);
real!(f64_op, f64);

/// Makes the last bit of `nearest` odd unless it is exact; `rest` has the sign of what it lacks.
fn to_odd(nearest: f64, rest: f64) -> f64 {
    if rest == 0.0 || !nearest.is_finite() || nearest == 0.0 || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    let bits = nearest.to_bits();
    f64::from_bits(if (rest > 0.0) == (nearest > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

/// A quotient of binary32 numbers, rounded once: the double quotient rounded to odd, then to single.
fn quotient(round: Round, a: f32, b: f32) -> u32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let q = a / b;
    let rest = (-q).mul_add(b, a);
    let rest = if b < 0.0 { -rest } else { rest };
    Format::F32.from_f64(to_odd(q, rest), round, false) as u32
}

fn root(round: Round, a: f32) -> u32 {
    let a = f64::from(a);
    let s = a.sqrt();
    Format::F32.from_f64(to_odd(s, (-s).mul_add(s, a)), round, false) as u32
}

/// Sums, products, fused ones, quotients and roots of doubles under a rounding other than to nearest: the
/// nearest result and the sign of its exact error say the neighbour.
fn directed_double(op: &str, round: Round) -> Option<LaneFn> {
    fn step(round: Round, nearest: f64, error: f64) -> f64 {
        let up = match round {
            Round::Up => error > 0.0,
            Round::Zero => error > 0.0 && nearest < 0.0,
            _ => false,
        };
        let down = match round {
            Round::Down => error < 0.0,
            Round::Zero => error < 0.0 && nearest > 0.0,
            _ => false,
        };
        if !nearest.is_finite() {
            nearest
        } else if up {
            nearest.next_up()
        } else if down {
            nearest.next_down()
        } else {
            nearest
        }
    }
    fn sum(round: Round, a: f64, b: f64) -> f64 {
        let s = a + b;
        let t = s - a;
        let error = (a - (s - t)) + (b - t);
        if s == 0.0 && round == Round::Down && (a.is_sign_negative() || b.is_sign_negative()) {
            return -0.0;
        }
        step(round, s, error)
    }
    fn product(round: Round, a: f64, b: f64) -> f64 {
        let p = a * b;
        step(round, p, a.mul_add(b, -p))
    }
    /// The exact error of a fused multiply-add is a sum of two doubles, the first of which has its sign
    /// (Boldo and Muller, "Some Functions Computable with a Fused-mac", ARITH 2005).
    fn fused(round: Round, a: f64, b: f64, c: f64) -> f64 {
        fn two_sum(a: f64, b: f64) -> (f64, f64) {
            let s = a + b;
            let t = s - a;
            (s, (a - (s - t)) + (b - t))
        }
        let r = a.mul_add(b, c);
        let p = a * b;
        if r == 0.0 && round == Round::Down && (p.is_sign_negative() || c.is_sign_negative()) {
            return -0.0;
        }
        let (c1, c2) = two_sum(c, a.mul_add(b, -p));
        let (s1, s2) = two_sum(p, c1);
        let (error, _) = two_sum((s1 - r) + s2, c2);
        step(round, r, error)
    }
    fn ratio(round: Round, a: f64, b: f64) -> f64 {
        let q = a / b;
        let rest = (-q).mul_add(b, a);
        step(round, q, if b < 0.0 { -rest } else { rest })
    }
    fn root(round: Round, a: f64) -> f64 {
        let s = a.sqrt();
        step(round, s, (-s).mul_add(s, a))
    }
    macro_rules! with {
        ($round:expr) => {
            match op {
                "add" => |x, y, _, _| map2(x, y, |a: f64, b: f64| sum($round, a, b)),
                "sub" => |x, y, _, _| map2(x, y, |a: f64, b: f64| sum($round, a, -b)),
                "mul" => |x, y, _, _| map2(x, y, |a: f64, b: f64| product($round, a, b)),
                "fma" | "mad" => {
                    |x, y, z, _| map3(x, y, z, |a: f64, b: f64, c: f64| fused($round, a, b, c))
                }
                "div" => |x, y, _, _| map2(x, y, |a: f64, b: f64| ratio($round, a, b)),
                "rcp" => |x, _, _, _| map1(x, |a: f64| ratio($round, 1.0, a)),
                "sqrt" => |x, _, _, _| map1(x, |a: f64| root($round, a)),
                _ => return None,
            }
        };
    }
    let function: LaneFn = match round {
        Round::Zero => with!(Round::Zero),
        Round::Down => with!(Round::Down),
        Round::Up => with!(Round::Up),
        Round::Nearest | Round::Away => return None,
    };
    Some(function)
}

/// Add, sub, mul and fma of binary32 under a rounding other than to nearest.
fn directed(op: &str, round: Round) -> Option<LaneFn> {
    macro_rules! with {
        ($round:expr) => {
            match op {
                "add" => |x, y, _, _| {
                    map2(x, y, |a: f32, b: f32| {
                        fma_rounded(Format::F32, $round, a.into(), 1.0, b.into()) as u32
                    })
                },
                "sub" => |x, y, _, _| {
                    map2(x, y, |a: f32, b: f32| {
                        fma_rounded(Format::F32, $round, a.into(), 1.0, (-b).into()) as u32
                    })
                },
                "mul" => |x, y, _, _| {
                    map2(x, y, |a: f32, b: f32| {
                        Format::F32.from_f64(f64::from(a) * f64::from(b), $round, false) as u32
                    })
                },
                "div" => |x, y, _, _| map2(x, y, |a: f32, b: f32| quotient($round, a, b)),
                "rcp" => |x, _, _, _| map1(x, |a: f32| quotient($round, 1.0, a)),
                "sqrt" => |x, _, _, _| map1(x, |a: f32| root($round, a)),
                "fma" | "mad" => |x, y, z, _| {
                    map3(x, y, z, |a: f32, b: f32, c: f32| {
                        fma_rounded(Format::F32, $round, a.into(), b.into(), c.into()) as u32
                    })
                },
                _ => return None,
            }
        };
    }
    let function: LaneFn = match round {
        Round::Zero => with!(Round::Zero),
        Round::Down => with!(Round::Down),
        Round::Up => with!(Round::Up),
        Round::Nearest | Round::Away => return None,
    };
    Some(function)
}

/// A 16-bit float format, known at compile time so that lane functions stay plain function pointers.
trait Half {
    const FORMAT: Format;
    fn to(bits: u16) -> f64;
    fn from(value: f64) -> u16 {
        Self::FORMAT.from_f64(value, Round::Nearest, false) as u16
    }
}
struct F16;
struct Bf16;
impl Half for F16 {
    const FORMAT: Format = Format::F16;
    fn to(bits: u16) -> f64 {
        half::f16::from_bits(bits).to_f64()
    }
}
impl Half for Bf16 {
    const FORMAT: Format = Format::Bf16;
    fn to(bits: u16) -> f64 {
        f64::from(f32::from_bits(u32::from(bits) << 16))
    }
}

fn relu<H: Half>(bits: u16) -> u16 {
    if H::to(bits) > 0.0 || H::to(bits).is_nan() {
        bits
    } else {
        0
    }
}

fn saturate<H: Half>(bits: u16) -> u16 {
    let value = H::to(bits);
    if value.is_nan() || value <= 0.0 {
        0
    } else if value > 1.0 {
        H::from(1.0)
    } else {
        bits
    }
}

fn half_scalar<H: Half>(op: &str, flags: &[&str]) -> Option<fn(u16, u16, u16) -> u16> {
    let has = |flag: &str| flags.contains(&flag);
    Some(match op {
        "add" if has("sat") => |a, b, _| saturate::<H>(H::from(H::to(a) + H::to(b))),
        "sub" if has("sat") => |a, b, _| saturate::<H>(H::from(H::to(a) - H::to(b))),
        "mul" if has("sat") => |a, b, _| saturate::<H>(H::from(H::to(a) * H::to(b))),
        "fma" if has("sat") => |a, b, c| {
            saturate::<H>(
                fma_rounded(H::FORMAT, Round::Nearest, H::to(a), H::to(b), H::to(c)) as u16,
            )
        },
        "fma" if has("relu") => |a, b, c| {
            relu::<H>(fma_rounded(H::FORMAT, Round::Nearest, H::to(a), H::to(b), H::to(c)) as u16)
        },
        "add" => |a, b, _| fma_rounded(H::FORMAT, Round::Nearest, H::to(a), 1.0, H::to(b)) as u16,
        "sub" => |a, b, _| fma_rounded(H::FORMAT, Round::Nearest, H::to(a), 1.0, -H::to(b)) as u16,
        "mul" => |a, b, _| H::from(H::to(a) * H::to(b)),
        "fma" => {
            |a, b, c| fma_rounded(H::FORMAT, Round::Nearest, H::to(a), H::to(b), H::to(c)) as u16
        }
        "neg" => |a, _, _| a ^ 0x8000,
        "abs" => |a, _, _| a & 0x7fff,
        "min" if has("NaN") => |a, b, _| {
            if H::to(a).is_nan() || H::to(b).is_nan() {
                0x7fff
            } else {
                a.pick::<H>(a, b, true)
            }
        },
        "max" if has("NaN") => |a, b, _| {
            if H::to(a).is_nan() || H::to(b).is_nan() {
                0x7fff
            } else {
                a.pick::<H>(a, b, false)
            }
        },
        "min" => |a, b, _| a.pick::<H>(a, b, true),
        "max" => |a, b, _| a.pick::<H>(a, b, false),
        "ex2" => |a, _, _| H::from(H::to(a).exp2()),
        "tanh" => |a, _, _| H::from(H::to(a).tanh()),
        _ => return None,
    })
}

trait Pick {
    fn pick<H: Half>(self, a: u16, b: u16, smaller: bool) -> u16;
}
impl Pick for u16 {
    /// The smaller or larger of two halves; a NaN loses, two NaNs are canonical, -0 < +0.
    fn pick<H: Half>(self, a: u16, b: u16, smaller: bool) -> u16 {
        let (x, y) = (H::to(a), H::to(b));
        if x.is_nan() && y.is_nan() {
            return 0x7fff;
        }
        let chosen = if smaller {
            min_nan(x, y, |v| v.is_nan(), |v| v.is_sign_negative())
        } else {
            max_nan(x, y, |v| v.is_nan(), |v| v.is_sign_negative())
        };
        if chosen.to_bits() == x.to_bits() {
            a
        } else {
            b
        }
    }
}

/// One half in the low 16 bits, or two halves: the scalar function on each.
macro_rules! half_op {
    ($name:ident, $h:ident) => {
        fn $name(op: &str, flags: &[&str], packed: bool) -> Option<LaneFn> {
            macro_rules! case {
                ($op:literal, $flags:expr) => {{
                    if packed {
                        |x: &Lanes, y: &Lanes, z: &Lanes, _: &Lanes| {
                            let Some(f) = half_scalar::<$h>($op, $flags) else {
                                return *x;
                            };
                            map3(x, y, z, |a: u32, b: u32, c: u32| {
                                u32::from(f(a as u16, b as u16, c as u16))
                                    | u32::from(f(
                                        (a >> 16) as u16,
                                        (b >> 16) as u16,
                                        (c >> 16) as u16,
                                    )) << 16
                            })
                        }
                    } else {
                        |x: &Lanes, y: &Lanes, z: &Lanes, _: &Lanes| {
                            let Some(f) = half_scalar::<$h>($op, $flags) else {
                                return *x;
                            };
                            map3(x, y, z, f)
                        }
                    }
                }};
            }
            let sat = flags.contains(&"sat");
            let nan = flags.contains(&"NaN");
            let relu = flags.contains(&"relu");
            let function: LaneFn = match (op, sat, nan, relu) {
                ("add", true, ..) => case!("add", &["sat"]),
                ("sub", true, ..) => case!("sub", &["sat"]),
                ("mul", true, ..) => case!("mul", &["sat"]),
                ("fma", true, ..) => case!("fma", &["sat"]),
                ("fma", _, _, true) => case!("fma", &["relu"]),
                ("add", ..) => case!("add", &[]),
                ("sub", ..) => case!("sub", &[]),
                ("mul", ..) => case!("mul", &[]),
                ("fma", ..) => case!("fma", &[]),
                ("neg", ..) => case!("neg", &[]),
                ("abs", ..) => case!("abs", &[]),
                ("min", _, true, _) => case!("min", &["NaN"]),
                ("max", _, true, _) => case!("max", &["NaN"]),
                ("min", ..) => case!("min", &[]),
                ("max", ..) => case!("max", &[]),
                ("ex2", ..) => case!("ex2", &[]),
                ("tanh", ..) => case!("tanh", &[]),
                _ => return None,
            };
            Some(function)
        }
    };
}
half_op!(f16_op, F16);
half_op!(bf16_op, Bf16);

/// Two binary32 at once (`fma.rn.f32x2`, PTX ISA 8.6).
fn pair_op(op: &str) -> Option<LaneFn> {
    fn both(a: u64, b: u64, c: u64, f: impl Fn(f32, f32, f32) -> f32) -> u64 {
        let part = |v: u64, i: u32| f32::from_bits((v >> (32 * i)) as u32);
        let one = |i| {
            let r = f(part(a, i), part(b, i), part(c, i));
            u64::from(if r.is_nan() { 0x7fff_ffff } else { r.to_bits() })
        };
        one(0) | one(1) << 32
    }
    Some(match op {
        "add" => |x, y, z, _| map3(x, y, z, |a, b, c| both(a, b, c, |a, b, _| a + b)),
        "sub" => |x, y, z, _| map3(x, y, z, |a, b, c| both(a, b, c, |a, b, _| a - b)),
        "mul" => |x, y, z, _| map3(x, y, z, |a, b, c| both(a, b, c, |a, b, _| a * b)),
        "fma" => |x, y, z, _| map3(x, y, z, |a, b, c| both(a, b, c, f32::mul_add)),
        _ => return None,
    })
}

fn approximate(op: &str, flags: &[&str]) -> Option<LaneFn> {
    Some(match op {
        "ex2" => f1!(f32, |a| Function::Ex2.f32(a, false)),
        "lg2" => f1!(f32, |a| Function::Lg2.f32(a, false)),
        "sin" => f1!(f32, |a| Function::Sin.f32(a, false)),
        "cos" => f1!(f32, |a| Function::Cos.f32(a, false)),
        "tanh" => f1!(f32, |a| Function::Tanh.f32(a, false)),
        "rsqrt" => f1!(f32, |a| Function::Rsqrt.f32(a, false)),
        "div" if flags.contains(&"approx") => f2!(f32, |a, b| div_approx(a, b, false)),
        _ => return None,
    })
}

/// The function of a floating-point instruction.
pub(super) fn floating(op: &str, flags: &[&str], types: &[&str]) -> Option<LaneFn> {
    let ty = *types.first()?;
    // The sign of `min.xorsign.abs` comes from both operands: refused rather than ignored.
    if flags.contains(&"xorsign") {
        return None;
    }
    let round = rounding(flags).filter(|r| *r != Round::Nearest);
    match ty {
        "f32" => match round {
            Some(round) => directed(op, round),
            None => approximate(op, flags).or_else(|| f32_op(op, flags)),
        },
        "f64" => match round {
            Some(round) => directed_double(op, round),
            None => f64_op(op, flags),
        },
        "f16" => f16_op(op, flags, false),
        "f16x2" => f16_op(op, flags, true),
        "bf16" => bf16_op(op, flags, false),
        "bf16x2" => bf16_op(op, flags, true),
        "f32x2" => pair_op(op),
        _ => None,
    }
}

macro_rules! compare_int {
    ($t:ty, $op:expr) => {
        match $op {
            "eq" => |x, y| compare(x, y, |a: $t, b: $t| a == b),
            "ne" => |x, y| compare(x, y, |a: $t, b: $t| a != b),
            "lt" | "lo" => |x, y| compare(x, y, |a: $t, b: $t| a < b),
            "le" | "ls" => |x, y| compare(x, y, |a: $t, b: $t| a <= b),
            "gt" | "hi" => |x, y| compare(x, y, |a: $t, b: $t| a > b),
            "ge" | "hs" => |x, y| compare(x, y, |a: $t, b: $t| a >= b),
            _ => return None,
        }
    };
}

macro_rules! compare_real {
    ($t:ty, $op:expr, $get:expr) => {
        match $op {
            "eq" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) == $get(b)),
            "ne" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) < $get(b) || $get(a) > $get(b)),
            "lt" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) < $get(b)),
            "le" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) <= $get(b)),
            "gt" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) > $get(b)),
            "ge" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) >= $get(b)),
            "equ" => |x, y| {
                compare(x, y, |a: $t, b: $t| {
                    $get(a).partial_cmp(&$get(b)).is_none_or(|o| o.is_eq())
                })
            },
            "neu" => |x, y| compare(x, y, |a: $t, b: $t| $get(a) != $get(b)),
            "ltu" => |x, y| {
                compare(x, y, |a: $t, b: $t| {
                    $get(a).partial_cmp(&$get(b)).is_none_or(|o| o.is_lt())
                })
            },
            "leu" => |x, y| {
                compare(x, y, |a: $t, b: $t| {
                    $get(a).partial_cmp(&$get(b)).is_none_or(|o| o.is_le())
                })
            },
            "gtu" => |x, y| {
                compare(x, y, |a: $t, b: $t| {
                    $get(a).partial_cmp(&$get(b)).is_none_or(|o| o.is_gt())
                })
            },
            "geu" => |x, y| {
                compare(x, y, |a: $t, b: $t| {
                    $get(a).partial_cmp(&$get(b)).is_none_or(|o| o.is_ge())
                })
            },
            "num" => |x, y| compare(x, y, |a: $t, b: $t| $get(a).partial_cmp(&$get(b)).is_some()),
            "nan" => |x, y| compare(x, y, |a: $t, b: $t| $get(a).partial_cmp(&$get(b)).is_none()),
            _ => return None,
        }
    };
}

/// The comparison of `setp`, `set` and `slct`.
pub(super) fn comparison(op: &str, ty: &str) -> Option<CompareFn> {
    Some(match ty {
        "u16" | "b16" => compare_int!(u16, op),
        "s16" => compare_int!(i16, op),
        "u32" | "b32" => compare_int!(u32, op),
        "s32" => compare_int!(i32, op),
        "u64" | "b64" => compare_int!(u64, op),
        "s64" => compare_int!(i64, op),
        "f32" => compare_real!(f32, op, |v: f32| v),
        "f64" => compare_real!(f64, op, |v: f64| v),
        "f16" => compare_real!(u16, op, F16::to),
        "bf16" => compare_real!(u16, op, Bf16::to),
        _ => return None,
    })
}

/// `testp`: a property of a number.
pub(super) fn test_property(property: &str, ty: &str) -> Option<CompareFn> {
    macro_rules! on {
        ($t:ty) => {
            match property {
                "finite" => |x, y| compare(x, y, |a: $t, _: $t| a.is_finite()),
                "infinite" => |x, y| compare(x, y, |a: $t, _: $t| a.is_infinite()),
                "number" => |x, y| compare(x, y, |a: $t, _: $t| !a.is_nan()),
                "notanumber" => |x, y| compare(x, y, |a: $t, _: $t| a.is_nan()),
                "normal" => |x, y| compare(x, y, |a: $t, _: $t| a.is_normal() || a == 0.0),
                "subnormal" => |x, y| compare(x, y, |a: $t, _: $t| a.is_subnormal()),
                _ => return None,
            }
        };
    }
    Some(match ty {
        "f32" => on!(f32),
        "f64" => on!(f64),
        _ => return None,
    })
}
