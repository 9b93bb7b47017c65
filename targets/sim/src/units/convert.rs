//! `cvt`: scalar and packed conversions (PTX ISA 9.7.9, `cvt` and `cvt.pack`).

use super::float::{Format, Round, Value, shift_round};

/// A type that `cvt` takes or makes in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Unsigned integer of 8, 16, 32 or 64 bits.
    Unsigned(u32),
    /// Signed integer of 8, 16, 32 or 64 bits.
    Signed(u32),
    /// Floating point.
    Float(Format),
}

/// One scalar conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convert {
    /// Source type.
    pub from: Type,
    /// Destination type.
    pub to: Type,
    /// `.rn .rna .rz .rm .rp`, or the integer roundings `.rni .rzi .rmi .rpi`.
    pub round: Option<Round>,
    /// Whether `round` is an integer rounding (a float source becomes an integral value).
    pub integral: bool,
    /// `.ftz`: subnormal binary32 sources and results become zero.
    pub ftz: bool,
    /// `.sat`: floats clamp to [0, 1], integers to the range of the destination.
    pub sat: bool,
    /// `.satfinite`: what overflows becomes the largest number.
    pub satfinite: bool,
    /// `.relu`: negative results become zero.
    pub relu: bool,
}

impl Convert {
    /// Whether integers keep their low bits: the conversion only moves them.
    #[must_use]
    pub const fn moves(&self) -> bool {
        let float = matches!(self.from, Type::Float(_)) || matches!(self.to, Type::Float(_));
        !float && !self.sat
    }

    /// A conversion without modifiers.
    #[must_use]
    pub const fn plain(from: Type, to: Type) -> Self {
        Self {
            from,
            to,
            round: None,
            integral: false,
            ftz: false,
            sat: false,
            satfinite: false,
            relu: false,
        }
    }

    /// Converts the low bits of `bits`; the result is sign- or zero-extended to 64 bits by the
    /// destination type.
    #[must_use]
    pub fn apply(&self, bits: u64) -> u64 {
        match (self.from, self.to) {
            (Type::Float(from), Type::Float(to)) => self.float_to_float(from, to, bits),
            (Type::Float(from), to) => self.float_to_int(from, to, bits),
            (from, Type::Float(to)) => {
                let x = integer(from, bits);
                let value = Value::from_int(x < 0, x.unsigned_abs() as u64);
                let round = self.round.unwrap_or(Round::Nearest);
                self.finish(to, value, round)
            }
            (from, to) => {
                let x = integer(from, bits);
                let (low, high) = range(to);
                extend(to, if self.sat { x.clamp(low, high) } else { x })
            }
        }
    }

    fn float_to_float(&self, from: Format, to: Format, bits: u64) -> u64 {
        let mut value = from.decode(bits);
        if value == Value::Nan && !self.sat {
            // Measured on an H200: conversions between binary32 and binary64 keep the NaN's payload.
            match (from, to) {
                (Format::F64, Format::F32) => {
                    let payload = (bits >> 29) & 0x3f_ffff;
                    return (bits >> 63) << 31 | 0x7fc0_0000 | payload;
                }
                (Format::F32, Format::F64) => {
                    let payload = (bits & 0x3f_ffff) << 29;
                    return (bits >> 31 & 1) << 63 | 0x7ff8_0000_0000_0000 | payload;
                }
                _ => {}
            }
        }
        if self.ftz && from == Format::F32 {
            value = flush(value);
        }
        let round = self.round.unwrap_or(Round::Nearest);
        if self.integral {
            value = to_integral(value, round);
        }
        self.finish(to, value, round)
    }

    fn finish(&self, to: Format, value: Value, round: Round) -> u64 {
        let zero = Value::from_int(false, 0);
        let mut value = value;
        if self.sat {
            value = match value {
                Value::Nan => zero,
                v if v.is_negative() => zero,
                v if v.to_f64() > 1.0 => Value::from_int(false, 1),
                v => v,
            };
        }
        if self.relu && value.is_negative() {
            value = zero;
        }
        let bits = to.encode(value, round, self.satfinite);
        if self.ftz && to == Format::F32 && (bits as u32 & 0x7f80_0000) == 0 {
            return bits & 0x8000_0000;
        }
        bits
    }

    fn float_to_int(&self, from: Format, to: Type, bits: u64) -> u64 {
        let mut value = from.decode(bits);
        if self.ftz && from == Format::F32 {
            value = flush(value);
        }
        let (low, high) = range(to);
        let x = match to_integral(value, self.round.unwrap_or(Round::Zero)) {
            // PTX ISA cvt: NaN gives 0, but 1 << (bits - 1) where a 64-bit type takes part.
            Value::Nan if from == Format::F64 || width(to) == 64 => {
                return match to {
                    Type::Signed(_) => extend(to, low),
                    _ => 1 << (width(to) - 1),
                };
            }
            Value::Nan => 0,
            Value::Inf(true) => low,
            Value::Inf(false) => high,
            Value::Finite {
                negative,
                mantissa,
                exponent,
            } => {
                let magnitude = if mantissa == 0 {
                    0
                } else if exponent > 64 {
                    i128::MAX
                } else if exponent >= 0 {
                    i128::from(mantissa)
                        .checked_mul(1i128 << exponent.min(63))
                        .unwrap_or(i128::MAX)
                } else {
                    i128::from(mantissa.checked_shr(exponent.unsigned_abs()).unwrap_or(0))
                };
                if negative { -magnitude } else { magnitude }
            }
        };
        extend(to, x.clamp(low, high))
    }
}

fn flush(value: Value) -> Value {
    match value {
        Value::Finite {
            negative,
            mantissa,
            exponent,
        } if mantissa < 1 << 23 && exponent == -149 => Value::from_int(negative, 0),
        v => v,
    }
}

/// Rounds to an integral value; one that already is stays as it is.
fn to_integral(value: Value, round: Round) -> Value {
    match value {
        Value::Finite {
            negative,
            mantissa,
            exponent,
        } if exponent < 0 => {
            Value::from_int(negative, shift_round(mantissa, -exponent, negative, round))
        }
        v => v,
    }
}

const fn width(t: Type) -> u32 {
    match t {
        Type::Unsigned(w) | Type::Signed(w) => w,
        Type::Float(f) => f.bits(),
    }
}

fn range(t: Type) -> (i128, i128) {
    let w = width(t).clamp(1, 64);
    match t {
        Type::Signed(_) => (-(1i128 << (w - 1)), (1i128 << (w - 1)) - 1),
        _ => (0, (1i128 << w) - 1),
    }
}

fn integer(t: Type, bits: u64) -> i128 {
    let w = width(t).clamp(1, 64);
    let low = bits & (u64::MAX >> (64 - w));
    match t {
        Type::Signed(_) => i128::from(((low << (64 - w)) as i64) >> (64 - w)),
        _ => i128::from(low),
    }
}

/// The low bits of `x`, extended to 64 bits by the type's sign.
fn extend(t: Type, x: i128) -> u64 {
    integer(t, x as u64) as u64
}

/// Packs two binary32 values into `to`: `high` into the upper half (`cvt.rn.f16x2.f32 d, high, low`
/// and the e4m3x2, e5m2x2, e2m1x2, e2m3x2, e3m2x2, ue8m0x2 and bf16x2 forms). FP6 elements take 8
/// bits each, FP4 elements 4.
#[must_use]
pub fn pack2(to: Format, high: f32, low: f32, round: Round, satfinite: bool, relu: bool) -> u32 {
    let one = |x: f32| {
        let value = Format::F32.decode(u64::from(x.to_bits()));
        let value = if relu && value.is_negative() {
            Value::from_int(false, 0)
        } else {
            value
        };
        to.encode(value, round, satfinite) as u32
    };
    one(high) << slot_bits(to) | one(low)
}

/// Unpacks two elements of `from` into `(high, low)` of `to` (`cvt.rn.f16x2.e4m3x2` and the like);
/// every value of the small formats is exact in binary16 except those of UE8M0, which go to bf16x2.
#[must_use]
pub fn unpack2(from: Format, to: Format, packed: u32, relu: bool) -> (u32, u32) {
    let one = |bits: u32| {
        let value = from.decode(u64::from(bits));
        let value = if relu && value.is_negative() {
            Value::from_int(false, 0)
        } else {
            value
        };
        to.encode(value, Round::Nearest, false) as u32
    };
    let slot = slot_bits(from);
    let mask = (1u32 << slot) - 1;
    (one(packed >> slot & mask), one(packed & mask))
}

const fn slot_bits(format: Format) -> u32 {
    match format {
        Format::E2m1 => 4,
        Format::F16 | Format::Bf16 => 16,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const F32: Type = Type::Float(Format::F32);

    fn to_int(to: Type, round: Round, x: f32) -> u64 {
        let c = Convert {
            round: Some(round),
            integral: true,
            ..Convert::plain(F32, to)
        };
        c.apply(u64::from(x.to_bits()))
    }

    #[test]
    fn floats_to_integers() {
        assert_eq!(to_int(Type::Signed(32), Round::Nearest, 2.5), 2);
        assert_eq!(to_int(Type::Signed(32), Round::Up, 2.5), 3);
        assert_eq!(to_int(Type::Signed(32), Round::Down, -2.5) as i64, -3);
        assert_eq!(to_int(Type::Signed(32), Round::Zero, -2.5) as i64, -2);
        assert_eq!(to_int(Type::Unsigned(8), Round::Zero, 300.0), 255);
        assert_eq!(to_int(Type::Signed(8), Round::Zero, -300.0) as i64, -128);
        assert_eq!(to_int(Type::Unsigned(32), Round::Zero, -1.0), 0);
        assert_eq!(to_int(Type::Signed(32), Round::Zero, f32::NAN), 0);
        assert_eq!(to_int(Type::Signed(64), Round::Zero, f32::NAN), 1 << 63);
        assert_eq!(to_int(Type::Signed(32), Round::Zero, 1e30), i32::MAX as u64);
        assert_eq!(to_int(Type::Unsigned(64), Round::Zero, 1e30), u64::MAX);
    }

    #[test]
    fn integers_to_integers() {
        let c = Convert::plain(Type::Signed(32), Type::Signed(8));
        assert_eq!(c.apply(300) as i64, 44);
        let c = Convert { sat: true, ..c };
        assert_eq!(c.apply(300) as i64, 127);
        assert_eq!(c.apply(-300i64 as u64) as i64, -128);
        let c = Convert::plain(Type::Signed(16), Type::Unsigned(32));
        assert_eq!(c.apply(0xffff), 0xffff_ffff);
    }

    #[test]
    fn packed_halves_and_fp8() {
        let p = pack2(Format::F16, 1.0, -2.0, Round::Nearest, false, false);
        assert_eq!(p, 0x3c00_c000);
        assert_eq!(
            pack2(Format::F16, 1.0, -2.0, Round::Nearest, false, true),
            0x3c00_0000
        );
        let p = pack2(Format::E4m3, 1000.0, f32::NAN, Round::Nearest, true, false);
        assert_eq!(p, 0x7e7f);
        assert_eq!(
            unpack2(Format::E4m3, Format::F16, 0x387e, false),
            (0x3c00, 0x5f00)
        );
        assert_eq!(
            pack2(Format::E2m1, 6.0, -0.5, Round::Nearest, true, false),
            0x79
        );
        assert_eq!(
            pack2(Format::Ue8m0, 2.0, 1.5, Round::Up, true, false),
            0x8080
        );
    }

    #[test]
    fn saturation_to_the_unit_interval() {
        let c = Convert {
            sat: true,
            ..Convert::plain(F32, F32)
        };
        let run = |x: f32| f32::from_bits(c.apply(u64::from(x.to_bits())) as u32);
        assert_eq!(run(2.0), 1.0);
        assert_eq!(run(-2.0), 0.0);
        assert_eq!(run(0.25), 0.25);
        assert_eq!(run(f32::NAN), 0.0);
    }

    proptest! {
        #[test]
        fn truncation_agrees_with_the_processor(bits: u32) {
            let x = f32::from_bits(bits);
            prop_assume!(!x.is_nan());
            prop_assert_eq!(to_int(Type::Signed(32), Round::Zero, x) as i64, i64::from(x as i32));
            prop_assert_eq!(to_int(Type::Unsigned(64), Round::Zero, x), x as u64);
            prop_assert_eq!(to_int(Type::Signed(64), Round::Nearest, x) as i64, x.round_ties_even() as i64);
        }

        #[test]
        fn hostile_values_never_panic(bits: u64, w in 0u32..80, exponent in -20i32..20) {
            for to in [Type::Signed(w), Type::Unsigned(w)] {
                let _ = Convert::plain(F32, to).apply(bits << (exponent.unsigned_abs()));
            }
        }
    }
}
