//! Binary floating-point formats of PTX: decoding, and encoding with every rounding mode.
//!
//! A finite number is kept exactly as `mantissa * 2^exponent`, so one encoder serves every pair of
//! formats and every integer source; nothing is rounded twice. Formats: PTX ISA "Fundamental Types",
//! "Alternate Floating-Point Data Formats" and "Packed Floating Point Data Types" (5.2), OCP OFP8 and
//! OCP Microscaling Formats (MX) 1.0 for the encodings of 8 bits and fewer.

/// A binary floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// IEEE binary16.
    F16,
    /// The upper half of binary32.
    Bf16,
    /// 8-bit exponent and 10-bit fraction in the upper 19 bits of a 32-bit register.
    Tf32,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// OFP8 E4M3: no infinity, one NaN magnitude, largest number 448.
    E4m3,
    /// OFP8 E5M2: infinities and NaNs as in IEEE.
    E5m2,
    /// MX FP6 E2M3: no infinity, no NaN, largest number 7.5.
    E2m3,
    /// MX FP6 E3M2: no infinity, no NaN, largest number 28.
    E3m2,
    /// MX FP4 E2M1: no infinity, no NaN, largest number 6.
    E2m1,
    /// MX scale: an unsigned power of two, 0xff is NaN.
    Ue8m0,
    /// NVFP4 scale: E4M3 without its sign.
    Ue4m3,
}

/// Rounding modes of `cvt` and arithmetic (PTX ISA 9.7.1, "Rounding Modifiers").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Round {
    /// To nearest, ties to even (`.rn`, `.rni`).
    Nearest,
    /// To nearest, ties away from zero (`.rna`).
    Away,
    /// Towards zero (`.rz`, `.rzi`).
    Zero,
    /// Towards negative infinity (`.rm`, `.rmi`).
    Down,
    /// Towards positive infinity (`.rp`, `.rpi`).
    Up,
}

/// A decoded number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity, negative if `true`.
    Inf(bool),
    /// `(-1)^negative * mantissa * 2^exponent`.
    Finite {
        /// Sign.
        negative: bool,
        /// Integer significand, not normalised.
        mantissa: u64,
        /// Power of two of the significand's last bit.
        exponent: i32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// The largest exponent field holds infinities and NaNs.
    Ieee,
    /// Only all ones is NaN.
    OneNan,
    /// Every code is a number.
    None,
}

/// How a format is laid out.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    /// Bits of a register below the code.
    unused_bits: u32,
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    special: Special,
    signed: bool,
}

impl Spec {
    /// Decodes the low bits of `bits`.
    #[inline]
    pub(crate) fn decode(self, bits: u64) -> Value {
        let s = self;
        let bits = bits >> s.unused_bits;
        let fraction = bits & ((1 << s.fraction_bits) - 1);
        let field_mask = (1u64 << s.exponent_bits) - 1;
        let field = (bits >> s.fraction_bits) & field_mask;
        let negative = s.signed && (bits >> (s.fraction_bits + s.exponent_bits)) & 1 == 1;
        if field == field_mask {
            match s.special {
                Special::Ieee if fraction == 0 => return Value::Inf(negative),
                Special::Ieee => return Value::Nan,
                Special::OneNan if fraction == (1 << s.fraction_bits) - 1 => return Value::Nan,
                _ => {}
            }
        }
        let (mantissa, field) = if field == 0 {
            (fraction, 1)
        } else {
            (fraction | 1 << s.fraction_bits, field)
        };
        finite(
            negative,
            mantissa,
            field as i32 - s.bias - s.fraction_bits as i32,
        )
    }
}

impl Format {
    const fn spec(self) -> Spec {
        let (exponent_bits, fraction_bits, special, signed) = match self {
            Self::F16 => (5, 10, Special::Ieee, true),
            Self::Bf16 => (8, 7, Special::Ieee, true),
            Self::Tf32 => (8, 10, Special::Ieee, true),
            Self::F32 => (8, 23, Special::Ieee, true),
            Self::F64 => (11, 52, Special::Ieee, true),
            Self::E4m3 => (4, 3, Special::OneNan, true),
            Self::E5m2 => (5, 2, Special::Ieee, true),
            Self::E2m3 => (2, 3, Special::None, true),
            Self::E3m2 => (3, 2, Special::None, true),
            Self::E2m1 => (2, 1, Special::None, true),
            Self::Ue4m3 => (4, 3, Special::OneNan, false),
            Self::Ue8m0 => (8, 0, Special::OneNan, false),
        };
        Spec {
            unused_bits: if matches!(self, Self::Tf32) { 13 } else { 0 },
            exponent_bits,
            fraction_bits,
            bias: (1 << (exponent_bits - 1)) - 1,
            special,
            signed,
        }
    }

    /// Bits of one element in memory (TF32 fills 32, FP6 and FP4 their own 6 and 4).
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::F32 | Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E2m3 | Self::E3m2 => 6,
            Self::E2m1 => 4,
            _ => 8,
        }
    }

    /// Bits of the fraction, without the hidden bit.
    #[must_use]
    pub const fn fraction_bits(self) -> u32 {
        self.spec().fraction_bits
    }

    /// The exponent of the smallest normal number, also that of the subnormals.
    #[must_use]
    pub const fn min_exponent(self) -> i32 {
        1 - self.spec().bias
    }

    /// The NaN that the hardware writes; the largest number where the format has no NaN
    /// (PTX ISA 9.7.9, `cvt`: NaN becomes the positive MAX_NORM of such formats).
    #[must_use]
    pub const fn canonical_nan(self) -> u64 {
        match self {
            Self::F16 | Self::Bf16 => 0x7fff,
            Self::Tf32 | Self::F32 => 0x7fff_ffff,
            Self::F64 => 0xfff8_0000_0000_0000,
            Self::Ue8m0 => 0xff,
            Self::E4m3 | Self::E5m2 | Self::Ue4m3 => 0x7f,
            Self::E2m3 | Self::E3m2 => 0x1f,
            Self::E2m1 => 0x7,
        }
    }

    /// Decodes the low bits of `bits`; every bit pattern has a value.
    #[must_use]
    pub fn decode(self, bits: u64) -> Value {
        if self == Self::Ue8m0 {
            return match bits & 0xff {
                0xff => Value::Nan,
                code => finite(false, 1, code as i32 - 127),
            };
        }
        self.spec().decode(bits)
    }

    /// Decodes many numbers of every format but [`Format::Ue8m0`].
    pub(crate) const fn decoder(self) -> Spec {
        self.spec()
    }

    /// Encodes `value`, rounding by `round`; a result past the largest number becomes infinity (or
    /// what the mode's direction keeps finite), and with `satfinite` the largest number of its sign.
    /// Formats without infinity always saturate, unsigned ones take the magnitude.
    #[must_use]
    pub fn encode(self, value: Value, round: Round, satfinite: bool) -> u64 {
        match value {
            Value::Nan => self.canonical_nan(),
            Value::Inf(negative) => self.overflow(negative, None, satfinite),
            Value::Finite {
                negative,
                mantissa,
                exponent,
            } => {
                if self == Self::Ue8m0 {
                    return encode_scale(mantissa, exponent, round);
                }
                self.encode_finite(negative, mantissa, exponent, round, satfinite)
            }
        }
    }

    fn encode_finite(
        self,
        negative: bool,
        mantissa: u64,
        exponent: i32,
        round: Round,
        satfinite: bool,
    ) -> u64 {
        let s = self.spec();
        let Some(top) = mantissa.checked_ilog2() else {
            return self.place(negative, 0);
        };
        let lead = exponent.saturating_add(top as i32);
        let quantum = lead.max(1 - s.bias) - s.fraction_bits as i32;
        let mut rounded = shift_round(mantissa, quantum - exponent, negative, round);
        let mut quantum = quantum;
        if rounded >> (s.fraction_bits + 1) != 0 {
            rounded >>= 1;
            quantum += 1;
        }
        if rounded >> s.fraction_bits == 0 {
            return self.place(negative, rounded);
        }
        let field = (quantum + s.fraction_bits as i32 + s.bias) as u64;
        let code = (field << s.fraction_bits) | (rounded & ((1 << s.fraction_bits) - 1));
        if field >> s.exponent_bits != 0 || code > self.largest() {
            return self.overflow(negative, Some(round), satfinite);
        }
        self.place(negative, code)
    }

    /// The code of the largest number, without sign.
    #[must_use]
    pub const fn largest(self) -> u64 {
        let s = self.spec();
        let all = (1u64 << (s.exponent_bits + s.fraction_bits)) - 1;
        match s.special {
            Special::Ieee => all - (1 << s.fraction_bits),
            Special::OneNan => all - 1,
            Special::None => all,
        }
    }

    fn overflow(self, negative: bool, round: Option<Round>, satfinite: bool) -> u64 {
        let keeps_finite = match round {
            None | Some(Round::Nearest | Round::Away) => false,
            Some(Round::Zero) => true,
            Some(Round::Down) => !negative,
            Some(Round::Up) => negative,
        };
        let has_infinity = self.spec().special == Special::Ieee;
        let code = self.largest() + u64::from(has_infinity && !satfinite && !keeps_finite);
        self.place(negative, code)
    }

    fn place(self, negative: bool, code: u64) -> u64 {
        let s = self.spec();
        let sign = u64::from(negative && s.signed) << (s.exponent_bits + s.fraction_bits);
        let bits = sign | code;
        if self == Self::Tf32 { bits << 13 } else { bits }
    }

    /// The value as a double; exact for every format here.
    #[must_use]
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            Self::F64 => f64::from_bits(bits),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => self.decode(bits).to_f64(),
        }
    }

    /// Rounds a double into this format.
    #[must_use]
    pub fn from_f64(self, x: f64, round: Round, satfinite: bool) -> u64 {
        self.encode(Value::from_f64(x), round, satfinite)
    }
}

const fn finite(negative: bool, mantissa: u64, exponent: i32) -> Value {
    Value::Finite {
        negative,
        mantissa,
        exponent,
    }
}

/// `mantissa * 2^-shift`, rounded to an integer of the magnitude.
#[must_use]
pub fn shift_round(mantissa: u64, shift: i32, negative: bool, round: Round) -> u64 {
    if shift <= 0 {
        return mantissa.checked_shl(shift.unsigned_abs()).unwrap_or(0);
    }
    let wide = u128::from(mantissa);
    let shift = shift.min(100) as u32;
    let kept = (wide >> shift) as u64;
    let rest = wide & ((1u128 << shift) - 1);
    let half = 1u128 << (shift - 1);
    let up = match round {
        Round::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Round::Away => rest >= half,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    kept + u64::from(up)
}

/// UE8M0 has no zero and no subnormal: what lies below 2^-127 becomes 2^-127, above 2^127 saturates.
fn encode_scale(mantissa: u64, exponent: i32, round: Round) -> u64 {
    let Some(top) = mantissa.checked_ilog2() else {
        return 0;
    };
    let rest = mantissa & !(1 << top) != 0;
    let half = top > 0 && (mantissa >> (top - 1)) & 1 == 1;
    let up = match round {
        Round::Up => rest,
        Round::Nearest | Round::Away => half,
        Round::Zero | Round::Down => false,
    };
    let e = exponent.saturating_add(top as i32) + i32::from(up);
    (e.clamp(-127, 127) + 127) as u64
}

impl Value {
    /// Decodes a double exactly.
    #[must_use]
    pub fn from_f64(x: f64) -> Self {
        Format::F64.decode(x.to_bits())
    }

    /// An integer, exactly.
    #[must_use]
    pub const fn from_int(negative: bool, magnitude: u64) -> Self {
        finite(negative, magnitude, 0)
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Nan => f64::NAN,
            Self::Inf(false) => f64::INFINITY,
            Self::Inf(true) => f64::NEG_INFINITY,
            finite => f64::from_bits(Format::F64.encode(finite, Round::Nearest, false)),
        }
    }

    /// Whether this is negative (negative zero included, NaN not).
    #[must_use]
    pub const fn is_negative(self) -> bool {
        matches!(self, Self::Inf(true) | Self::Finite { negative: true, .. })
    }
}

/// `.ftz`: a subnormal binary32 becomes a zero of its sign.
#[must_use]
pub fn flush_f32(x: f32) -> f32 {
    if x.is_subnormal() {
        f32::from_bits(x.to_bits() & 0x8000_0000)
    } else {
        x
    }
}

/// NaN results of binary32 arithmetic are 0x7fffffff on NVIDIA hardware (PTX ISA 9.7.3).
#[must_use]
pub fn canonical_f32(x: f32) -> f32 {
    if x.is_nan() {
        f32::from_bits(0x7fff_ffff)
    } else {
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every magnitude of a small format, in order, by brute force over its codes.
    fn magnitudes(format: Format) -> Vec<(f64, u64)> {
        let codes = 0..(1u64 << (format.bits() - 1));
        let mut all: Vec<_> = codes
            .map(|c| (format.to_f64(c), c))
            .filter(|(v, _)| v.is_finite())
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }

    /// Rounding by definition: the neighbours in the sorted table of all numbers.
    fn reference(format: Format, x: f64, round: Round) -> u64 {
        let table = magnitudes(format);
        let (negative, mag) = (x.is_sign_negative(), x.abs());
        let sign = if negative {
            1 << (format.bits() - 1)
        } else {
            0
        };
        let above = table.iter().position(|(v, _)| *v >= mag);
        let code = match above {
            None => table[table.len() - 1].1,
            Some(i) if table[i].0 == mag || i == 0 => table[i].1,
            Some(i) => {
                let (lo, hi) = (table[i - 1], table[i]);
                let (down, up) = (mag - lo.0, hi.0 - mag);
                let pick_up = match round {
                    Round::Zero => false,
                    Round::Down => negative,
                    Round::Up => !negative,
                    Round::Nearest => up < down || (up == down && hi.1 & 1 == 0),
                    Round::Away => up <= down,
                };
                if pick_up { hi.1 } else { lo.1 }
            }
        };
        sign | code
    }

    const SMALL: [Format; 5] = [
        Format::E4m3,
        Format::E5m2,
        Format::E2m3,
        Format::E3m2,
        Format::E2m1,
    ];
    const MODES: [Round; 5] = [
        Round::Nearest,
        Round::Away,
        Round::Zero,
        Round::Down,
        Round::Up,
    ];

    #[test]
    fn every_code_survives_a_round_trip() {
        for format in SMALL.into_iter().chain([Format::F16, Format::Bf16]) {
            for code in 0..(1u64 << format.bits()) {
                let v = format.decode(code);
                if v != Value::Nan {
                    assert_eq!(format.encode(v, Round::Zero, false), code, "{format:?}");
                }
            }
        }
    }

    #[test]
    fn known_values() {
        assert_eq!(Format::E4m3.to_f64(0x7e), 448.0);
        assert_eq!(Format::E5m2.to_f64(0x7b), 57344.0);
        assert_eq!(Format::E2m1.to_f64(0xf), -6.0);
        assert_eq!(Format::E3m2.to_f64(0x1f), 28.0);
        assert_eq!(Format::E2m3.to_f64(0x1f), 7.5);
        assert_eq!(Format::Ue8m0.to_f64(127), 1.0);
        assert_eq!(Format::Ue8m0.from_f64(3.0, Round::Up, true), 129);
        assert_eq!(Format::Ue8m0.from_f64(3.0, Round::Zero, true), 128);
        assert_eq!(Format::E4m3.decode(0x7f), Value::Nan);
        assert_eq!(Format::E4m3.from_f64(1e9, Round::Nearest, true), 0x7e);
        assert_eq!(Format::E5m2.from_f64(1e9, Round::Nearest, true), 0x7b);
        assert_eq!(Format::E5m2.from_f64(1e9, Round::Nearest, false), 0x7c);
        assert_eq!(Format::F16.from_f64(65520.0, Round::Nearest, false), 0x7c00);
        assert_eq!(Format::F16.from_f64(65519.9, Round::Nearest, false), 0x7bff);
        assert_eq!(Format::F16.from_f64(-65520.0, Round::Up, false), 0xfbff);
        assert_eq!(
            Format::Tf32.from_f64(f64::from(f32::from_bits(0x3f80_1000)), Round::Away, false),
            0x3f80_2000
        );
    }

    #[test]
    fn a_double_below_every_subnormal_rounds_by_direction() {
        for tiny in [f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(Format::F16.from_f64(tiny, Round::Up, false), 1);
            assert_eq!(Format::F16.from_f64(-tiny, Round::Down, false), 0x8001);
            assert_eq!(Format::F16.from_f64(tiny, Round::Nearest, false), 0);
        }
    }

    proptest! {
        #[test]
        fn small_formats_round_by_definition(m in -500.0f64..500.0, scale in -12i32..3) {
            let x = m * f64::powi(2.0, scale);
            for format in SMALL {
                for round in MODES {
                    prop_assert_eq!(
                        format.from_f64(x, round, true),
                        reference(format, x, round),
                        "{:?} {:?} {}", format, round, x
                    );
                }
            }
        }

        #[test]
        fn f16_and_bf16_agree_with_an_independent_library(bits: u32) {
            let x = f32::from_bits(bits);
            prop_assume!(!x.is_nan());
            let wide = f64::from(x);
            prop_assert_eq!(Format::F16.from_f64(wide, Round::Nearest, false) as u16, half::f16::from_f32(x).to_bits());
            prop_assert_eq!(Format::Bf16.from_f64(wide, Round::Nearest, false) as u16, half::bf16::from_f32(x).to_bits());
        }

        #[test]
        fn f32_agrees_with_the_processor(bits: u64) {
            let x = f64::from_bits(bits);
            prop_assume!(!x.is_nan());
            prop_assert_eq!(Format::F32.from_f64(x, Round::Nearest, false) as u32, (x as f32).to_bits());
        }

        #[test]
        fn integers_round_like_the_processor(x: u64) {
            let v = Value::from_int(false, x);
            prop_assert_eq!(Format::F32.encode(v, Round::Nearest, false) as u32, (x as f32).to_bits());
            prop_assert_eq!(Format::F64.encode(v, Round::Nearest, false), (x as f64).to_bits());
        }
    }
}
