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

const UNSIGNED: Int = Int {
    bits: 32,
    signed: false,
};

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
    /// 1 where the comparison holds.
    Set(Compare),
    /// The product plus c, either of them negated, plus one (`.po`), shifted right.
    Mad {
        one: bool,
        shift: u32,
        minus: [bool; 2],
    },
}

/// Comparisons of `vset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" => Self::Lt,
            "le" => Self::Le,
            "gt" => Self::Gt,
            "ge" => Self::Ge,
            _ => return None,
        })
    }

    const fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
        }
    }
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
    /// Of each operand, which numbers of a (from 0) and b (from `parts`) its numbers are.
    picks: [[u32; 4]; 2],
    /// The numbers of the result that are computed; the others are c's, or count for nothing in its sum.
    mask: u32,
    saturate: bool,
    /// What is done with the result and c.
    second: Option<Act>,
    /// First bit and width of the part of d that gets the result; the rest is c's.
    merge: Option<(u32, u32)>,
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
            Self::Set(compare) => i64::from(compare.holds(a, b)),
            Self::Mad { .. } => a.wrapping_mul(b),
        }
    }
}

impl Video {
    pub(crate) fn apply(&self, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
        std::array::from_fn(|i| self.one(a[i], b[i], c[i]) & 0xffff_ffff)
    }

    fn one(&self, a: u64, b: u64, c: u64) -> u64 {
        let [d, ta, tb] = self.types;
        if let Act::Mad { one, shift, minus } = self.act {
            return self.multiply_add([a, b, c], (one, shift), minus);
        }
        let width = 32 / self.parts;
        let limit = self.merge.map_or(width, |(_, bits)| bits);
        let kept = |part: u32| self.mask >> part & 1 == 0;
        let mut out = 0;
        let mut sum = d.get(c);
        for (part, (&of_a, &of_b)) in (0..self.parts).zip(self.picks[0].iter().zip(&self.picks[1]))
        {
            if kept(part) {
                out |= c & (((1 << width) - 1) << (part * width));
                continue;
            }
            let from = |pick: u32| if pick < self.parts { a } else { b };
            let at =
                |pick: u32, i: usize| from(pick) >> (pick % self.parts * width + self.select[i]);
            let (x, y) = (ta.get(at(of_a, 0)), tb.get(at(of_b, 1)));
            let mut value = self.act.apply(x, y);
            if self.saturate {
                value = Int { bits: limit, ..d }.saturate(value);
            }
            sum += value;
            out |= (value as u64 & ((1 << width) - 1)) << (part * width);
        }
        if let Some((first, bits)) = self.merge {
            let mask = ((1 << bits) - 1) << first;
            return c & !mask | out << first & mask;
        }
        match self.second {
            None => out,
            Some(Act::Add) => sum as u64,
            Some(second) => second.apply(d.get(out), d.get(c)) as u64,
        }
    }
}

impl Video {
    /// `vmad`: the sum has more than 64 bits, and is signed where a factor is, or anything is negated (PTX ISA `vmad`).
    fn multiply_add(
        &self,
        [a, b, c]: [u64; 3],
        (one, shift): (bool, u32),
        minus: [bool; 2],
    ) -> u64 {
        let [_, ta, tb] = self.types;
        let part = |ty: Int, v: u64, i: usize| i128::from(ty.get(v >> self.select[i]));
        let signed = ta.signed || tb.signed || minus.contains(&true);
        let c = Int { bits: 32, signed }.get(c);
        let sign = |minus: bool| if minus { -1 } else { 1 };
        let product = sign(minus[0]) * part(ta, a, 0) * part(tb, b, 1);
        let sum = product + sign(minus[1]) * i128::from(c) + i128::from(one);
        let value = sum >> shift;
        if !self.saturate {
            return value as u64;
        }
        let (low, high) = if signed {
            (i32::MIN.into(), i32::MAX.into())
        } else {
            (0, u32::MAX.into())
        };
        value.clamp(low, high) as u64
    }
}

/// The register that an operand is a part of, the part's first bit, and its width.
fn part_of(operand: &Operand) -> Option<(Operand, u32, u32)> {
    let Operand::Name(name) = operand else {
        return None;
    };
    let (base, part) = name.rsplit_once('.')?;
    let (kind, n) = part.split_at_checked(1)?;
    let n = n.parse::<u32>().ok()?;
    let width = match (kind, n) {
        ("b", 0..4) => 8,
        ("h", 0..2) => 16,
        _ => return None,
    };
    Some((Operand::Name(base.into()), n * width, width))
}

/// The register that an operand of several numbers names, and the numbers that it selects, the lowest first:
/// `.h10`, `.b7654`.
fn numbers_of(operand: &Operand, parts: u32) -> Option<(Operand, Vec<u32>)> {
    let Operand::Name(name) = operand else {
        return None;
    };
    let (base, part) = name.rsplit_once('.')?;
    let digits = part.strip_prefix(if parts == 2 { 'h' } else { 'b' })?;
    let numbers: Option<Vec<u32>> = digits.chars().rev().map(|c| c.to_digit(10)).collect();
    Some((Operand::Name(base.into()), numbers?))
}

/// The operands of `vmad` without their signs, which go into the act: a minus of a and of b cancel.
fn unsigned(operands: &[Operand], act: &mut Act) -> Vec<Operand> {
    let mut operands = operands.to_vec();
    if let Act::Mad { minus, .. } = act {
        for (operand, of) in operands.iter_mut().skip(1).zip([0, 0, 1]) {
            if let Operand::Minus(name) = operand {
                minus[of] = !minus[of];
                *operand = Operand::Name(std::mem::take(name));
            }
        }
    }
    operands
}

/// The operands of a video instruction, as [`Video`] has them.
struct Chosen {
    to: Operand,
    a: Slot,
    b: Slot,
    widths: (u32, u32),
    select: [u32; 2],
    picks: [[u32; 4]; 2],
    mask: u32,
    merge: Option<(u32, u32)>,
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
        match part_of(operand) {
            Some((base, first, width)) => Ok((self.src(&base, "b32")?, first, Some(width))),
            None => Ok((self.src(operand, "b32")?, 0, None)),
        }
    }

    /// What the name and the modifiers of a video instruction say that it computes.
    fn video_act(&self, name: &str, mods: &[&str]) -> Decoded<Option<Act>> {
        Ok(match name {
            "set" => {
                let compare = mods.iter().find_map(|m| Compare::parse(m));
                let missing = || self.error("vset needs a comparison");
                Some(Act::Set(compare.ok_or_else(missing)?))
            }
            "mad" => Some(Act::Mad {
                one: mods.contains(&"po"),
                shift: match mods {
                    _ if mods.contains(&"shr7") => 7,
                    _ if mods.contains(&"shr15") => 15,
                    _ => 0,
                },
                minus: [false; 2],
            }),
            _ => act(name, mods.contains(&"clamp")),
        })
    }

    /// The numbers that the operands a and b of `vadd2` and its kin select, of both registers; all in their
    /// order where nothing is said.
    fn picked(&mut self, operand: &Operand, parts: u32, first: u32) -> Decoded<(Slot, [u32; 4])> {
        let mut picks = std::array::from_fn(|i| (first + i as u32) % (2 * parts));
        let Some((base, numbers)) = numbers_of(operand, parts) else {
            return Ok((self.src(operand, "b32")?, picks));
        };
        if numbers.len() != parts as usize || numbers.iter().any(|&n| n >= 2 * parts) {
            return Err(self.error(format!(
                "{operand:?} selects no {parts} numbers of two registers"
            )));
        }
        for (pick, n) in picks.iter_mut().zip(numbers) {
            *pick = n;
        }
        Ok((self.src(&base, "b32")?, picks))
    }

    /// Where the result goes, and which of its numbers are computed.
    fn masked(&self, operand: &Operand, parts: u32) -> Decoded<(Operand, u32)> {
        let Some((base, numbers)) = numbers_of(operand, parts) else {
            return Ok((operand.clone(), (1 << parts) - 1));
        };
        let rising = numbers.windows(2).all(|n| n[0] < n[1]);
        if numbers.is_empty() || !rising || numbers.iter().any(|&n| n >= parts) {
            return Err(self.error(format!("{operand:?} masks no numbers of {parts}")));
        }
        Ok((base, numbers.iter().fold(0, |mask, n| mask | 1 << n)))
    }

    /// The operands of an instruction of one number.
    fn part(&mut self, ops: &[Operand]) -> Decoded<Chosen> {
        let (a, first_a, width_a) = self.selected(self.nth(ops, 1)?)?;
        let (b, first_b, width_b) = self.selected(self.nth(ops, 2)?)?;
        let d = self.nth(ops, 0)?;
        let (to, merge) = match part_of(d) {
            Some((base, first, width)) => (base, Some((first, width))),
            None => (d.clone(), None),
        };
        Ok(Chosen {
            to,
            a,
            b,
            widths: (width_a.unwrap_or(32), width_b.unwrap_or(32)),
            select: [first_a, first_b],
            picks: [[0; 4], [1; 4]],
            mask: 1,
            merge,
        })
    }

    /// The operands of an instruction of two or four numbers.
    fn numbers(&mut self, ops: &[Operand], parts: u32) -> Decoded<Chosen> {
        let (a, of_a) = self.picked(self.nth(ops, 1)?, parts, 0)?;
        let (b, of_b) = self.picked(self.nth(ops, 2)?, parts, parts)?;
        let (to, mask) = self.masked(self.nth(ops, 0)?, parts)?;
        Ok(Chosen {
            to,
            a,
            b,
            widths: (32 / parts, 32 / parts),
            select: [0; 2],
            picks: [of_a, of_b],
            mask,
            merge: None,
        })
    }

    /// Video instructions.
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
        let Some(mut first) = self.video_act(digits, mods)? else {
            return Ok(None);
        };
        let ops = &unsigned(ops, &mut first)[..];
        let types: Vec<Int> = mods.iter().filter_map(|m| Int::parse(m)).collect();
        let (mut d, mut ta, mut tb) = match (first, types.as_slice()) {
            // What vset gives has no type of its own.
            (Act::Set(_), &[ta, tb]) => (UNSIGNED, ta, tb),
            (_, &[d, ta, tb]) => (d, ta, tb),
            _ => return Err(self.error(format!("`{name}` takes a type for each operand"))),
        };
        d.bits = 32;
        let chosen = if parts > 1 {
            self.numbers(ops, parts)?
        } else {
            self.part(ops)?
        };
        (ta.bits, tb.bits) = chosen.widths;
        let merge = chosen.merge;
        let second = mods.last().and_then(|m| act(m, false));
        let takes_c = second.is_some() || merge.is_some() || matches!(first, Act::Mad { .. });
        // Those of several parts always name c, which only parts of d that a mask leaves out are taken from.
        if ops.len() != 3 + usize::from(takes_c || parts > 1) {
            return Err(self.error(format!("`{name}` has {} operands", ops.len())));
        }
        Ok(Some(Op::Video(Box::new(Video {
            d: self.dst(&chosen.to)?,
            a: chosen.a,
            b: chosen.b,
            c: match ops.get(3) {
                Some(c) => self.src(c, "b32")?,
                None => self.constant(0),
            },
            act: first,
            types: [d, ta, tb],
            select: chosen.select,
            parts,
            picks: chosen.picks,
            mask: chosen.mask,
            saturate: mods.contains(&"sat"),
            second,
            merge,
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
