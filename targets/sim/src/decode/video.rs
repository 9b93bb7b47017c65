//! `cvt.pack` and video instructions: integers of mixed sign that are cut or saturated (PTX ISA 9.7.9.22,
//! 9.7.17).

use super::Slot;
use super::lanes::Lanes;
use super::lower::{Decoded, Lower};
use super::op::Op;
use crate::ptx::ast::Operand;

/// An integer type: bits and sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    bits: u32,
    signed: bool,
}

impl Int {
    fn parse(ty: &str) -> Option<Self> {
        let (sign, bits) = ty.split_at_checked(1)?;
        let bits = bits
            .parse()
            .ok()
            .filter(|b| matches!(b, 2 | 4 | 8 | 16 | 32))?;
        match sign {
            "u" | "b" => Some(Self {
                bits,
                signed: false,
            }),
            "s" => Some(Self { bits, signed: true }),
            _ => None,
        }
    }

    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The number that the low bits of a register hold.
    fn get(self, v: u64) -> i64 {
        let low = (v & self.mask()) as i64;
        if self.signed && low >> (self.bits - 1) == 1 {
            low - (1 << self.bits)
        } else {
            low
        }
    }

    fn saturate(self, v: i64) -> i64 {
        let (low, high) = if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1 << self.bits) - 1)
        };
        v.clamp(low, high)
    }
}

/// `cvt.pack.sat`: a and b saturated, above the low bits of c.
#[derive(Debug, Clone)]
pub struct CvtSat {
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
    pub c: Slot,
    to: Int,
    from: Int,
}

impl CvtSat {
    /// Both numbers in the low bits, shifted into the register of c where that is narrower than 32 bits.
    pub(crate) fn apply(&self, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
        let bits = self.to.bits;
        let one = |v: u64| self.to.saturate(self.from.get(v)) as u64 & self.to.mask();
        let kept = |v: u64| if bits == 16 { 0 } else { v << (2 * bits) };
        std::array::from_fn(|i| (kept(c[i]) | one(a[i]) << bits | one(b[i])) & 0xffff_ffff)
    }
}

/// What a video instruction computes of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    Average,
    /// Shifts clamp or wrap the amount.
    Shl(bool),
    Shr(bool),
}

/// `vadd`, `vadd2`, `vadd4` and their kin.
#[derive(Debug, Clone)]
pub struct Video {
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
    pub c: Slot,
    act: Act,
    /// Type of the result and of the parts of a and b.
    types: [Int; 3],
    /// First bit of the part of a and of b.
    select: [u32; 2],
    /// 1, 2 or 4 numbers in a register.
    parts: u32,
    saturate: bool,
    /// What is done with the result and c.
    second: Option<Act>,
}

impl Act {
    fn apply(self, a: i64, b: i64) -> i64 {
        let amount = |clamp: bool| {
            let n = b & 0xffff_ffff;
            if clamp { n.min(32) } else { n & 31 }
        };
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::AbsDiff => (a - b).abs(),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            // Rounds away from zero (PTX ISA `vavrg2`).
            Self::Average => (a + b + i64::from(a + b >= 0)) >> 1,
            // Only 32 bits of a number of 32 do not fit: beyond the largest result, with zeros below.
            Self::Shl(clamp) => {
                i64::try_from(i128::from(a) << amount(clamp)).unwrap_or(i64::MAX << 32)
            }
            Self::Shr(clamp) => a >> amount(clamp),
        }
    }
}

impl Video {
    pub(crate) fn apply(&self, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
        std::array::from_fn(|i| self.one(a[i], b[i], c[i]) & 0xffff_ffff)
    }

    fn one(&self, a: u64, b: u64, c: u64) -> u64 {
        let [d, ta, tb] = self.types;
        let width = 32 / self.parts;
        let mut out = 0;
        let mut sum = d.get(c);
        for part in 0..self.parts {
            let at = |v: u64, select: u32| v >> (part * width + select);
            let (x, y) = (ta.get(at(a, self.select[0])), tb.get(at(b, self.select[1])));
            let mut value = self.act.apply(x, y);
            if self.saturate {
                value = Int { bits: width, ..d }.saturate(value);
            }
            sum += value;
            out |= (value as u64 & ((1 << width) - 1)) << (part * width);
        }
        match self.second {
            None => out,
            Some(Act::Add) => sum as u64,
            Some(second) => second.apply(d.get(out), d.get(c)) as u64,
        }
    }
}

/// Whether an operand is a part of a register.
fn is_part(operand: Option<&Operand>) -> bool {
    matches!(operand, Some(Operand::Name(name)) if name.contains('.'))
}

fn act(name: &str, clamp: bool) -> Option<Act> {
    Some(match name {
        "add" => Act::Add,
        "sub" => Act::Sub,
        "absdiff" => Act::AbsDiff,
        "min" => Act::Min,
        "max" => Act::Max,
        "avrg" => Act::Average,
        "shl" => Act::Shl(clamp),
        "shr" => Act::Shr(clamp),
        _ => return None,
    })
}

impl Lower<'_> {
    /// `cvt.pack.sat.convertType.abType{.cType} d, a, b{, c}`.
    pub(super) fn cvt_pack_sat(&mut self, types: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let int = |i: usize| types.get(i).copied().and_then(Int::parse);
        let (Some(to), Some(from)) = (int(0), int(1)) else {
            return Err(self.error("cvt.pack takes two integer types"));
        };
        Ok(Op::CvtSat(Box::new(CvtSat {
            d: self.dst(self.nth(ops, 0)?)?,
            a: self.src(self.nth(ops, 1)?, "s32")?,
            b: self.src(self.nth(ops, 2)?, "s32")?,
            c: match ops.get(3) {
                Some(c) => self.src(c, "b32")?,
                None => self.constant(0),
            },
            to,
            from,
        })))
    }

    /// An operand, and the first bit of what `.b0` to `.b3`, `.h0`, `.h1` select, with its width.
    fn selected(&mut self, operand: &Operand) -> Decoded<(Slot, u32, Option<u32>)> {
        if let Operand::Name(name) = operand
            && let Some((base, part)) = name.rsplit_once('.')
            && let Some((kind @ ("b" | "h"), n)) = part.split_at_checked(1)
            && let Ok(n @ 0..4) = n.parse::<u32>()
            && (kind == "b" || n < 2)
        {
            let width = if kind == "b" { 8 } else { 16 };
            let slot = self.src(&Operand::Name(base.into()), "b32")?;
            return Ok((slot, n * width, Some(width)));
        }
        Ok((self.src(operand, "b32")?, 0, None))
    }

    /// Video instructions that name no part of the destination.
    pub(super) fn video(
        &mut self,
        name: &str,
        mods: &[&str],
        ops: &[Operand],
    ) -> Decoded<Option<Op>> {
        let Some(base) = name.strip_prefix('v') else {
            return Ok(None);
        };
        let digits = base.trim_end_matches(['2', '4']);
        let parts = base[digits.len()..].parse().unwrap_or(1);
        let clamp = mods.contains(&"clamp");
        let Some(first) = act(digits, clamp) else {
            return Ok(None);
        };
        let types: Vec<Int> = mods.iter().filter_map(|m| Int::parse(m)).collect();
        let &[mut d, mut ta, mut tb] = types.as_slice() else {
            return Err(self.error("a video instruction takes three types"));
        };
        let (a, at_a, width_a) = self.selected(self.nth(ops, 1)?)?;
        let (b, at_b, width_b) = self.selected(self.nth(ops, 2)?)?;
        let whole = 32 / parts;
        (d.bits, ta.bits, tb.bits) = (32, width_a.unwrap_or(whole), width_b.unwrap_or(whole));
        let second = mods.last().and_then(|m| act(m, clamp));
        // Those of several parts always name c, which only parts of d that a mask leaves out are taken from.
        if ops.len() != 3 + usize::from(second.is_some() || parts > 1) || is_part(ops.first()) {
            return Err(self.error(format!(
                "unsupported form of `{name}`, which merges into a part of d"
            )));
        }
        if parts > 1 && ops.iter().any(|o| is_part(Some(o))) {
            return Err(self.error(format!("unsupported form of `{name}`, which selects parts")));
        }
        Ok(Some(Op::Video(Box::new(Video {
            d: self.dst(self.nth(ops, 0)?)?,
            a,
            b,
            c: match ops.get(3) {
                Some(c) => self.src(c, "b32")?,
                None => self.constant(0),
            },
            act: first,
            types: [d, ta, tb],
            select: [at_a, at_b],
            parts,
            saturate: mods.contains(&"sat"),
            second,
        }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_saturate_to_their_type() {
        let s8 = Int::parse("s8").unwrap();
        assert_eq!([-300, -5, 300].map(|v| s8.saturate(v)), [-128, -5, 127]);
        assert_eq!(s8.get(0x1ff), -1);
        assert_eq!(Int::parse("u4").unwrap().saturate(-1), 0);
        assert!(Int::parse("f32").is_none());
    }
}
