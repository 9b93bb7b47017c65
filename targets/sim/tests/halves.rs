//! Packed instructions on pairs of halves against the formats' definitions: an order by integer keys,
//! and rounding by search among the format's numbers.

mod common;
use common::eval;

const COMPARISONS: [&str; 14] = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

/// A 16-bit format by the number of its fraction bits.
#[derive(Clone, Copy, PartialEq)]
struct Half(u32);
const F16: Half = Half(10);
const BF16: Half = Half(7);

impl Half {
    fn name(self) -> &'static str {
        if self == F16 { "f16" } else { "bf16" }
    }

    fn infinity(self) -> u16 {
        0x7fff >> self.0 << self.0
    }

    fn is_nan(self, x: u16) -> bool {
        x & 0x7fff > self.infinity()
    }

    /// Sign and magnitude as an integer: the numbers' order. Both zeros are 0.
    fn key(self, x: u16) -> Option<i32> {
        let magnitude = i32::from(x & 0x7fff);
        let key = if x >> 15 == 1 { -magnitude } else { magnitude };
        (!self.is_nan(x)).then_some(key)
    }

    fn flush(self, x: u16) -> u16 {
        if x & self.infinity() == 0 {
            x & 0x8000
        } else {
            x
        }
    }

    /// The value of a code, the code of infinity read as the next power of two.
    fn magnitude(self, code: u16) -> f64 {
        let (fraction, exponent) = (
            f64::from(code & ((1 << self.0) - 1)),
            i32::from(code >> self.0),
        );
        let bias = (1 << (14 - self.0)) - 1;
        let one = f64::from(1 << self.0);
        let significand = fraction + if exponent > 0 { one } else { 0.0 };
        significand / one * 2f64.powi(exponent.max(1) - bias)
    }

    fn value(self, x: u16) -> f64 {
        let sign = if x >> 15 == 1 { -1.0 } else { 1.0 };
        if self.is_nan(x) {
            f64::NAN
        } else if x & 0x7fff == self.infinity() {
            sign * f64::INFINITY
        } else {
            sign * self.magnitude(x & 0x7fff)
        }
    }

    /// `x + rest` to the nearest number, ties to the even code; `rest` is less than half an ulp of `x`.
    fn nearest(self, x: f64, rest: f64) -> u16 {
        if x.is_nan() {
            return 0x7fff;
        }
        let sign = u16::from(x.is_sign_negative()) << 15;
        let (size, rest) = (x.abs(), rest * 1f64.copysign(x));
        let (mut low, mut high) = (0, self.infinity());
        if size >= self.magnitude(high) {
            return sign | high;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.magnitude(middle) <= size {
                low = middle
            } else {
                high = middle
            }
        }
        let tie = self.magnitude(low).midpoint(self.magnitude(high));
        let up = size > tie || size == tie && (rest > 0.0 || rest == 0.0 && low & 1 == 1);
        sign | if up { high } else { low }
    }

    fn add(self, x: f64, y: f64) -> u16 {
        let sum = x + y;
        let part = sum - x;
        let rest = (x - (sum - part)) + (y - part);
        self.nearest(sum, if rest.is_finite() { rest } else { 0.0 })
    }

    fn compare(self, name: &str, a: u16, b: u16) -> bool {
        let (Some(x), Some(y)) = (self.key(a), self.key(b)) else {
            return name == "nan" || name.ends_with('u');
        };
        match name {
            "eq" | "equ" => x == y,
            "ne" | "neu" => x != y,
            "lt" | "ltu" => x < y,
            "le" | "leu" => x <= y,
            "gt" | "gtu" => x > y,
            "ge" | "geu" => x >= y,
            other => other == "num",
        }
    }

    /// The smaller or larger number, -0 below +0; a NaN loses, or wins with `.NaN`.
    fn extreme(self, a: u16, b: u16, larger: bool, nan_wins: bool) -> u16 {
        match (self.key(a), self.key(b)) {
            (None, None) => 0x7fff,
            (None, _) | (_, None) if nan_wins => 0x7fff,
            (None, _) => b,
            (_, None) => a,
            (Some(x), Some(y)) => {
                let a_above = (x, a < 0x8000) > (y, b < 0x8000);
                if a_above == larger { a } else { b }
            }
        }
    }

    /// Zeros, subnormal, small, odd, large and infinite numbers of both signs, and NaNs.
    fn samples(self) -> Vec<u16> {
        let (one, inf) = (self.infinity() >> 1 & self.infinity(), self.infinity());
        let least = 1 << self.0;
        let magnitudes = [
            0,
            1,
            least - 1,
            least,
            least + 3,
            one - least,
            one - 1,
            one,
            one + 1,
            one + least / 2,
            one + 5 * least / 4,
            one + 3 * least + 1,
            inf - least,
            inf - 1,
            inf,
            inf + 1,
            0x7fff,
        ];
        magnitudes
            .into_iter()
            .flat_map(|m| [m, m | 0x8000])
            .collect()
    }

    /// Nearly every pair of samples in the low halves; in the high halves pairs in another order.
    fn operands(self) -> [Vec<u32>; 3] {
        let samples = self.samples();
        let n = samples.len();
        // A block holds 1024 threads: 31 x 33 pairs, whose missing samples come as high halves.
        let pick = |i: usize| u32::from(samples[i % n]);
        let rows = (0..1023).map(|t| {
            let (i, j) = (t / 33, t % 33);
            [
                pick(i) | pick(t * 7 + 3) << 16,
                pick(j) | pick(n - 1 - i) << 16,
                pick(i + 5 * j) | pick(t * 11 + j) << 16,
            ]
        });
        let rows: Vec<[u32; 3]> = rows.collect();
        [0, 1, 2].map(|k| rows.iter().map(|r| r[k]).collect())
    }
}

fn halves(x: u32) -> [u16; 2] {
    [x as u16, (x >> 16) as u16]
}

fn join([low, high]: [u16; 2]) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// The forms of a comparison: modifiers, third operand, and what they do to an outcome and `c`.
type Combined = (&'static str, &'static str, fn(bool, bool) -> bool);
const COMBINED: [Combined; 4] = [
    ("", "", |t, _| t),
    (".and", ", %p3", |t, c| t & c),
    (".or", ", !%p3", |t, c| t | !c),
    (".xor", ", %p3", |t, c| t ^ c),
];

/// Runs every packed comparison, written by `body` from modifiers and last operand, with the parity
/// of `%r2` in `%p3`; `result` gives a thread's word from its two outcomes.
fn check_comparisons(
    format: Half,
    body: impl Fn(&str, &str) -> String,
    result: impl Fn([bool; 2]) -> u32,
) {
    let [a, b, c] = format.operands();
    for (i, name) in COMPARISONS.into_iter().enumerate() {
        for ftz in [false, true] {
            let (bool_op, last, combine) = COMBINED[(i + usize::from(ftz)) % COMBINED.len()];
            let forms = [COMBINED[0], (bool_op, last, combine)];
            for (bool_op, last, combine) in forms {
                let ftz_name = if ftz { ".ftz" } else { "" };
                let body = format!(
                    "and.b32 %r3, %r2, 1; setp.eq.u32 %p3, %r3, 1; {}",
                    body(&format!("{name}{bool_op}{ftz_name}"), last)
                );
                let got = eval(&body, &a, &b, &c);
                for t in 0..a.len() {
                    let (x, y) = (halves(a[t]), halves(b[t]));
                    let outcome = [0, 1].map(|h| {
                        let [x, y] = [x[h], y[h]].map(|v| if ftz { format.flush(v) } else { v });
                        combine(format.compare(name, x, y), c[t] & 1 == 1)
                    });
                    assert_eq!(got[t], result(outcome), "{body}: {:#x} {:#x}", a[t], b[t]);
                }
            }
        }
    }
}

#[test]
fn packed_setp_writes_the_low_and_the_high_outcome() {
    for format in [F16, BF16] {
        let ty = format.name();
        check_comparisons(
            format,
            |mods, last| {
                format!(
                    "setp.{mods}.{ty}x2 %p0|%p1, %r0, %r1{last}; selp.b32 %r8, 1, 0, %p0; selp.b32 %r9, 2, 0, %p1; or.b32 %r9, %r8, %r9;"
                )
            },
            |[low, high]| u32::from(low) | u32::from(high) << 1,
        );
    }
}

#[test]
fn packed_set_writes_ones_or_masks() {
    for (format, to, one) in [
        (F16, "f16x2", 0x3c00),
        (F16, "u32", 0xffff),
        (BF16, "bf16x2", 0x3f80),
        (BF16, "s32", 0xffff),
    ] {
        let ty = format.name();
        check_comparisons(
            format,
            |mods, last| format!("set.{mods}.{to}.{ty}x2 %r9, %r0, %r1{last};"),
            |outcomes| join(outcomes.map(|t| if t { one } else { 0 })),
        );
    }
}

#[test]
fn a_sink_takes_one_outcome_of_a_pair() {
    let body = "setp.gt.f16x2 _|%p1, %r0, %r1; setp.gt.f16x2 %p0|_, %r0, %r1; selp.b32 %r8, 1, 0, %p0; selp.b32 %r9, 2, 0, %p1; or.b32 %r9, %r8, %r9;";
    let (a, b) = ([0x3c00_0000, 0x0000_3c00], [0, 0]);
    assert_eq!(eval(body, &a, &b, &b), [2, 1]);
}

#[test]
fn malformed_packed_comparisons_are_errors() {
    for line in [
        "setp.gt.f16x2 p, a, b;",
        "setp.hi.f16x2 p|q, a, b;",
        "setp.gt.f32x2 p|q, x, x;",
        "setp.f16x2 p|q, a, b;",
        "setp.gt.and.bf16x2 p|q, a, b;",
        "set.gt.f32.f16x2 a, a, b;",
        "set.gt.bf16x2.f16x2 a, a, b;",
        "set.gt.f16x2.f16 a, h, h;",
    ] {
        let text = format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n.reg .pred p, q; .reg .b16 h; .reg .b32 a, b; .reg .b64 x;\n{line}\nret;\n}}"
        );
        let module = axe_sim::Module::parse(&text).unwrap();
        let errors: Vec<String> = module.unsupported().map(ToString::to_string).collect();
        assert!(
            errors.len() == 1 && errors[0].contains("line 7"),
            "{line}: {errors:?}"
        );
    }
}

type Reference = fn(Half, u16, u16, u16) -> u16;
const ARITHMETIC: &[(&str, usize, Reference)] = &[
    ("add{.ftz}", 2, |f, a, b, _| f.add(f.value(a), f.value(b))),
    ("add.rn{.ftz}", 2, |f, a, b, _| {
        f.add(f.value(a), f.value(b))
    }),
    ("sub.rn{.ftz}", 2, |f, a, b, _| {
        f.add(f.value(a), -f.value(b))
    }),
    ("mul.rn{.ftz}", 2, |f, a, b, _| {
        f.nearest(f.value(a) * f.value(b), 0.0)
    }),
    ("fma.rn{.ftz}", 3, |f, a, b, c| {
        f.add(f.value(a) * f.value(b), f.value(c))
    }),
    ("fma.rn{.ftz}.relu", 3, |f, a, b, c| {
        let sum = f.add(f.value(a) * f.value(b), f.value(c));
        if sum >= 0x8000 { 0 } else { sum }
    }),
    ("neg{.ftz}", 1, |_, a, _, _| a ^ 0x8000),
    ("abs{.ftz}", 1, |_, a, _, _| a & 0x7fff),
    ("min{.ftz}", 2, |f, a, b, _| f.extreme(a, b, false, false)),
    ("max{.ftz}", 2, |f, a, b, _| f.extreme(a, b, true, false)),
    ("min{.ftz}.NaN", 2, |f, a, b, _| {
        f.extreme(a, b, false, true)
    }),
    ("max{.ftz}.NaN", 2, |f, a, b, _| f.extreme(a, b, true, true)),
    ("tanh.approx", 1, |f, a, _, _| {
        f.nearest(f.value(a).tanh(), 0.0)
    }),
];

fn check_arithmetic(format: Half, op: &str, arity: usize, ftz: bool, reference: Reference) {
    let [a, b, c] = format.operands();
    let sources = ["%r0", "%r0, %r1", "%r0, %r1, %r2"][arity - 1];
    let body = format!("{op}.{}x2 %r9, {sources};", format.name());
    let flush = |v| if ftz { format.flush(v) } else { v };
    for (t, got) in eval(&body, &a, &b, &c).into_iter().enumerate() {
        let [x, y, z] = [a[t], b[t], c[t]].map(halves);
        for (h, got) in halves(got).into_iter().enumerate() {
            let want = flush(reference(format, flush(x[h]), flush(y[h]), flush(z[h])));
            // The ISA leaves open which NaN comes out of neg and abs.
            let same = got == want || arity == 1 && format.is_nan(got) && format.is_nan(want);
            assert!(
                same,
                "{body}: {:#x} {:#x} {:#x}: {got:#x}, not {want:#x}",
                x[h], y[h], z[h]
            );
        }
    }
}

#[test]
fn packed_arithmetic_agrees_with_the_formats() {
    for &(op, arity, reference) in ARITHMETIC {
        check_arithmetic(F16, &op.replace("{.ftz}", ""), arity, false, reference);
        check_arithmetic(BF16, &op.replace("{.ftz}", ""), arity, false, reference);
        if op.contains("{.ftz}") {
            check_arithmetic(F16, &op.replace("{.ftz}", ".ftz"), arity, true, reference);
        }
    }
    let exp2: Reference = |f, a, _, _| f.nearest(f.value(a).exp2(), 0.0);
    check_arithmetic(F16, "ex2.approx", 1, false, exp2);
    check_arithmetic(BF16, "ex2.approx.ftz", 1, true, exp2);
}

#[test]
fn scalar_halves_flush_only_with_ftz() {
    let sum = |mods: &str| {
        let body = format!(
            "cvt.u16.u32 %h0, %r0; cvt.u16.u32 %h1, %r1; add{mods}.f16 %h2, %h0, %h1; cvt.u32.u16 %r9, %h2;"
        );
        eval(
            &body,
            &[0x0001, 0x8001, 0x0400],
            &[0x0400, 0, 0x8401],
            &[0; 3],
        )
    };
    assert_eq!(sum(""), [0x0401, 0x8001, 0x8001]);
    assert_eq!(sum(".ftz"), [0x0400, 0x0000, 0x8000]);
}

#[test]
fn conversions_pack_the_first_operand_high() {
    let numbers = [
        0.0,
        -0.0,
        1.0,
        1.000_488_3,
        -1.001_464_8,
        65519.0,
        65520.0,
        -1e38,
        3.4e38,
        1e-7,
        2.9e-8,
        1e-40,
        0.1,
        f32::INFINITY,
        f32::NAN,
        1.003_906_3,
        1.011_718_8,
    ];
    let a: Vec<u32> = numbers.iter().map(|x| x.to_bits()).collect();
    let b: Vec<u32> = a.iter().rev().copied().collect();
    for format in [F16, BF16] {
        let body = format!("cvt.rn.{}x2.f32 %r9, %f0, %f1;", format.name());
        let nearest = |x: u32| format.nearest(f32::from_bits(x).into(), 0.0);
        let want: Vec<u32> = (0..a.len())
            .map(|t| join([nearest(b[t]), nearest(a[t])]))
            .collect();
        assert_eq!(eval(&body, &a, &b, &a), want, "{body}");
    }
}
