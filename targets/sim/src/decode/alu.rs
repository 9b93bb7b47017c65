//! Decodes instructions that work on registers alone.

use super::floating::{comparison, floating, rounding, test_property};
use super::integer::integer;
use super::lower::{Decoded, Lower, Symbol};
use super::{
    Combine, MOD_FTZ, MOD_FTZ_BF16, MOD_FTZ_F16, MOD_SAT, MOD_SAT64, Op, PredSrc, Setp, Slot,
};
use crate::ptx::ast::Operand;
use crate::ptx::type_bytes;
use crate::units::convert::{Convert, Type};
use crate::units::float::{Format, Round};

/// Types that a modifier list may hold, apart from those of matrices.
pub(super) fn is_type(part: &str) -> bool {
    type_bytes(part).is_some()
        || matches!(
            part,
            "u2" | "s2" | "u4" | "s4" | "e2m1x2" | "e2m3x2" | "e3m2x2" | "ue8m0x2" | "pred"
        )
}

/// The format of a scalar or packed float type.
pub(super) fn format(ty: &str) -> Option<Format> {
    Some(match ty.strip_suffix("x2").unwrap_or(ty) {
        "f16" => Format::F16,
        "bf16" => Format::Bf16,
        "tf32" => Format::Tf32,
        "f32" => Format::F32,
        "f64" => Format::F64,
        "e4m3" => Format::E4m3,
        "e5m2" => Format::E5m2,
        "e2m1" => Format::E2m1,
        "e2m3" => Format::E2m3,
        "e3m2" => Format::E3m2,
        "ue8m0" => Format::Ue8m0,
        _ => return None,
    })
}

fn convert_type(ty: &str) -> Option<Type> {
    let bits = |from: &str| from.parse::<u32>().ok();
    if let Some(format) = format(ty) {
        return Some(Type::Float(format));
    }
    match ty.split_at_checked(1)? {
        ("u" | "b", n) => bits(n).map(Type::Unsigned),
        ("s", n) => bits(n).map(Type::Signed),
        _ => None,
    }
}

const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

impl Lower<'_> {
    pub(super) fn alu(&mut self, parts: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let (name, mods) = parts.split_first().unwrap_or((&"", &[]));
        let types: Vec<&str> = mods.iter().copied().filter(|m| is_type(m)).collect();
        let flags: Vec<&str> = mods.iter().copied().filter(|m| !is_type(m)).collect();
        let op = match *name {
            "mov" => self.mov(&types, ops)?,
            "cvt" => return self.cvt(&flags, &types, ops).map(Some),
            "setp" => self.setp(&flags, &types, ops)?,
            "set" => return self.set(&flags, &types, ops).map(Some),
            "selp" => {
                let ty = types.first().copied().unwrap_or("b32");
                let d = self.dst(self.nth(ops, 0)?)?;
                let (a, b) = (
                    self.src(self.nth(ops, 1)?, ty)?,
                    self.src(self.nth(ops, 2)?, ty)?,
                );
                Some(Op::Selp {
                    d,
                    a,
                    b,
                    p: self.pred_src(self.nth(ops, 3)?)?,
                })
            }
            "slct" => {
                let (Some(ty), Some(cty)) = (types.first(), types.get(1)) else {
                    return Err(self.error("slct needs two types"));
                };
                let d = self.dst(self.nth(ops, 0)?)?;
                let (a, b) = (
                    self.src(self.nth(ops, 1)?, ty)?,
                    self.src(self.nth(ops, 2)?, ty)?,
                );
                let c = self.src(self.nth(ops, 3)?, cty)?;
                let f =
                    comparison("ge", cty).ok_or_else(|| self.error("slct compares s32 or f32"))?;
                Some(Op::Slct { d, a, b, c, f })
            }
            "testp" => {
                let ty = types.first().copied().unwrap_or("");
                let property = flags.first().copied().unwrap_or("");
                let Some(f) = test_property(property, ty) else {
                    return Ok(None);
                };
                let d = self.pred_dst(self.nth(ops, 0)?)?;
                let a = self.src(self.nth(ops, 1)?, ty)?;
                Some(Op::Setp(Box::new(Setp {
                    f,
                    d,
                    q: None,
                    a,
                    b: 0,
                    combine: None,
                    ftz: 0,
                    packed: false,
                })))
            }
            "and" | "or" | "xor" | "not" if types == ["pred"] => Some(self.pred_logic(name, ops)?),
            "add" | "addc" | "sub" | "subc" | "mad" | "madc"
                if flags.contains(&"cc") || name.ends_with('c') =>
            {
                Some(self.carry(name, &flags, &types, ops)?)
            }
            "min" | "max" if ops.len() == 4 => Some(self.of_three(name, &flags, &types, ops)?),
            _ => match self.lanes(name, &flags, &types, ops)? {
                None => self.video(name, mods, ops)?,
                some => some,
            },
        };
        Ok(op)
    }

    /// `min` and `max` of three numbers (PTX ISA 9.7.3.11): of two, and of that and the third.
    fn of_three(
        &mut self,
        name: &str,
        flags: &[&str],
        types: &[&str],
        ops: &[Operand],
    ) -> Decoded<Op> {
        let Some(Op::Alu { f, d, s, mods }) = self.lanes(name, flags, types, &ops[..3])? else {
            return Err(self.error(format!("unsupported `{name}` of three operands")));
        };
        let ty = types.first().copied().unwrap_or("");
        let third = self.src(self.nth(ops, 3)?, ty)?;
        let both = self.new_slot();
        self.before.push(Op::Alu {
            f,
            d: both,
            s,
            mods,
        });
        Ok(Op::Alu {
            f,
            d,
            s: [both, third, 0, 0],
            mods,
        })
    }

    /// Instructions that are one function over lanes.
    fn lanes(
        &mut self,
        name: &str,
        flags: &[&str],
        types: &[&str],
        ops: &[Operand],
    ) -> Decoded<Option<Op>> {
        let Some(&ty) = types.first() else {
            return Ok(None);
        };
        let float = format(ty).is_some();
        let f = if float {
            floating(name, flags, types)
        } else {
            integer(name, flags, types)
        };
        let Some(f) = f else { return Ok(None) };
        let arity = match name {
            "neg" | "abs" | "not" | "cnot" | "popc" | "clz" | "brev" | "bfind" | "rcp" | "sqrt"
            | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => 1,
            "mad" | "fma" | "sad" | "bfe" | "prmt" | "shf" | "dp4a" | "dp2a" | "mad24" => 3,
            "lop3" | "bfi" => 4,
            _ => 2,
        };
        if ops.len() != arity + 1 {
            // The predicate form of lop3 is another instruction.
            return Err(self.error(format!(
                "`{name}` takes {} operands here, got {}",
                arity + 1,
                ops.len()
            )));
        }
        let d = self.dst(self.nth(ops, 0)?)?;
        let mut s = [0; 4];
        for (i, slot) in s.iter_mut().enumerate().take(arity) {
            let wide = flags.contains(&"wide") && i == 2;
            let shift = matches!(name, "shl" | "shr") && i == 1
                || matches!(name, "bfe" | "bfi") && i >= arity - 2;
            let operand_ty = if wide {
                "b64"
            } else if shift {
                "b32"
            } else {
                ty
            };
            *slot = self.src(self.nth(ops, i + 1)?, operand_ty)?;
        }
        let mut mods = flush(flags, ty);
        if flags.contains(&"sat") && ty == "f32" {
            mods |= MOD_SAT;
        }
        if flags.contains(&"sat") && ty == "f64" {
            mods |= MOD_SAT64;
        }
        Ok(Some(Op::Alu { f, d, s, mods }))
    }

    fn mov(&mut self, types: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let ty = types.first().copied().unwrap_or("b32");
        let (to, from) = (self.nth(ops, 0)?, self.nth(ops, 1)?);
        let bits = type_bytes(ty).unwrap_or(4) as u32 * 8;
        if ty == "pred" {
            let d = self.pred_dst(to)?;
            let a = match from {
                Operand::Name(name) if name == "%is_explicit_cluster" => PredSrc(0, false),
                other => self.pred_src(other)?,
            };
            return Ok(Some(Op::PredMov { d, a }));
        }
        if ty == "b128" {
            return self.mov_wide(to, from).map(Some);
        }
        if let Operand::Vector(parts) = to {
            let count = parts.len() as u32;
            let parts = parts
                .iter()
                .map(|p| self.dst(p))
                .collect::<Decoded<Vec<_>>>()?;
            let a = self.src(from, ty)?;
            return Ok(Some(Op::Unpack {
                parts,
                a,
                bits: bits / count.max(1),
            }));
        }
        if let Operand::Vector(parts) = from {
            let each = bits / (parts.len() as u32).max(1);
            let part_ty = format!("b{each}");
            let parts = parts
                .iter()
                .map(|p| self.src(p, &part_ty))
                .collect::<Decoded<Vec<_>>>()?;
            return Ok(Some(Op::Pack {
                d: self.dst(to)?,
                parts,
                bits: each,
            }));
        }
        let d = self.dst(to)?;
        if let Operand::Name(name) = from {
            match name.as_str() {
                "%clock" | "%globaltimer_lo" => {
                    return Ok(Some(Op::Clock {
                        d,
                        shift: 0,
                        bits: 32,
                    }));
                }
                "%clock_hi" | "%globaltimer_hi" => {
                    return Ok(Some(Op::Clock {
                        d,
                        shift: 32,
                        bits: 32,
                    }));
                }
                "%clock64" | "%globaltimer" => {
                    return Ok(Some(Op::Clock {
                        d,
                        shift: 0,
                        bits: 64,
                    }));
                }
                _ => {}
            }
        }
        let a = self.src(from, ty)?;
        Ok(Some(Op::Mov { d, a }))
    }

    /// `mov.b128`: two halves.
    fn mov_wide(&mut self, to: &Operand, from: &Operand) -> Decoded<Op> {
        let (Some([d0, d1]), Some([a0, a1])) = (
            <[Slot; 2]>::try_from(self.destinations(to)?).ok(),
            <[Slot; 2]>::try_from(self.sources(from, "b64")?).ok(),
        ) else {
            return Err(self.error("mov.b128 takes a 128-bit register and two of 64 bits"));
        };
        self.before.push(Op::Mov { d: d0, a: a0 });
        Ok(Op::Mov { d: d1, a: a1 })
    }

    /// The slots of an operand: two of a 128-bit register.
    fn slots_of(&self, operand: &Operand) -> Option<[Slot; 2]> {
        match operand {
            Operand::Name(name) => match self.lookup(name) {
                Some(Symbol::Reg(slot, 16)) => Some([slot, slot + 1]),
                _ => None,
            },
            _ => None,
        }
    }

    fn pred_logic(&mut self, name: &str, ops: &[Operand]) -> Decoded<Op> {
        let d = self.pred_dst(self.nth(ops, 0)?)?;
        let a = self.pred_src(self.nth(ops, 1)?)?;
        if name == "not" {
            return Ok(Op::PredMov {
                d,
                a: PredSrc(a.0, !a.1),
            });
        }
        let b = self.pred_src(self.nth(ops, 2)?)?;
        let op = match name {
            "and" => Combine::And,
            "or" => Combine::Or,
            _ => Combine::Xor,
        };
        Ok(Op::PredLogic { op, d, a, b })
    }

    fn setp(&mut self, flags: &[&str], types: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let ty = types.first().copied().unwrap_or("");
        let mut setp = self.compared(flags, ty, ops)?;
        (setp.d, setp.q) = match self.nth(ops, 0)? {
            Operand::Pair(p, q) => (self.pred_dst(p)?, Some(self.pred_dst(q)?)),
            _ if setp.packed => return Err(self.error("packed setp writes two predicates, p|q")),
            other => (self.pred_dst(other)?, None),
        };
        Ok(Some(Op::Setp(Box::new(setp))))
    }

    fn set(&mut self, flags: &[&str], types: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let (Some(&to), Some(ty)) = (types.first(), types.get(1)) else {
            return Err(self.error("set needs two types"));
        };
        let setp = Box::new(self.compared(flags, ty, ops)?);
        let value = match (to, setp.packed) {
            ("f32", false) => u64::from(1f32.to_bits()),
            ("f16", false) => 0x3c00,
            ("bf16", false) => 0x3f80,
            ("u16" | "s16", false) => 0xffff,
            ("u32" | "s32", false) => 0xffff_ffff,
            // Of each half.
            ("f16x2", true) if *ty == to => 0x3c00,
            ("bf16x2", true) if *ty == to => 0x3f80,
            ("u32" | "s32", true) => 0xffff,
            _ => {
                return Err(self.error(format!("unsupported result type `{to}` of set of `{ty}`")));
            }
        };
        let d = self.dst(self.nth(ops, 0)?)?;
        Ok(Op::Set { setp, d, value })
    }

    /// The comparison of `setp` and `set`, before it is known where its outcome goes.
    fn compared(&mut self, flags: &[&str], ty: &str, ops: &[Operand]) -> Decoded<Setp> {
        let Some(name) = flags.iter().find(|f| COMPARISONS.contains(f)) else {
            return Err(self.error("setp and set need a comparison"));
        };
        // A function of halves looks at the low 16 bits: it is applied to each half of a pair.
        let scalar = ty.strip_suffix("x2").unwrap_or(ty);
        let packed = scalar != ty;
        let f = match comparison(name, scalar) {
            Some(f) if !packed || matches!(scalar, "f16" | "bf16") => f,
            _ => return Err(self.error(format!("unsupported comparison `{name}` of `{ty}`"))),
        };
        let (a, b) = (
            self.src(self.nth(ops, 1)?, ty)?,
            self.src(self.nth(ops, 2)?, ty)?,
        );
        let combine = match combine(flags) {
            Some(op) => Some((op, self.pred_src(self.nth(ops, 3)?)?)),
            None => None,
        };
        Ok(Setp {
            f,
            d: 0,
            q: None,
            a,
            b,
            combine,
            ftz: flush(flags, ty),
            packed,
        })
    }

    fn carry(
        &mut self,
        name: &str,
        flags: &[&str],
        types: &[&str],
        ops: &[Operand],
    ) -> Decoded<Op> {
        let ty = types.first().copied().unwrap_or("u32");
        let bits = type_bytes(ty).unwrap_or(4) as u32 * 8;
        let (carry_in, carry_out) = (name.ends_with('c'), flags.contains(&"cc"));
        let d = self.dst(self.nth(ops, 0)?)?;
        let (a, b) = (
            self.src(self.nth(ops, 1)?, ty)?,
            self.src(self.nth(ops, 2)?, ty)?,
        );
        if name.starts_with("mad") {
            let c = self.src(self.nth(ops, 3)?, ty)?;
            let (high, signed) = (flags.contains(&"hi"), ty.starts_with('s'));
            return Ok(Op::MadCarry {
                d,
                a,
                b,
                c,
                high,
                carry_in,
                carry_out,
                bits,
                signed,
            });
        }
        Ok(Op::Carry {
            d,
            a,
            b,
            subtract: name.starts_with("sub"),
            carry_in,
            carry_out,
            bits,
        })
    }

    fn cvt(&mut self, flags: &[&str], types: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let (Some(&to), Some(&from)) = (types.first(), types.get(1)) else {
            return Err(self.error("cvt needs two types"));
        };
        let has = |flag: &str| flags.contains(&flag);
        let (satfinite, relu) = (has("satfinite"), has("relu"));
        if flags.contains(&"pack") {
            return self.cvt_pack_sat(types, ops);
        }
        if to.ends_with("x2") || from.ends_with("x2") {
            return self.cvt_packed(flags, to, from, ops);
        }
        let round = rounding(flags);
        let integral = flags
            .iter()
            .any(|f| matches!(*f, "rni" | "rzi" | "rmi" | "rpi"));
        let (Some(from_type), Some(to_type)) = (convert_type(from), convert_type(to)) else {
            return Err(self.error(format!("unsupported conversion from `{from}` to `{to}`")));
        };
        let convert = Convert {
            from: from_type,
            to: to_type,
            round,
            integral,
            ftz: has("ftz"),
            sat: has("sat"),
            satfinite,
            relu,
        };
        let (d, bytes) = self.dst_bytes(self.nth(ops, 0)?)?;
        let a = self.src(self.nth(ops, 1)?, from)?;
        Ok(Op::Cvt {
            convert: Box::new(convert),
            d,
            a,
            extend: bytes,
        })
    }

    fn cvt_packed(&mut self, flags: &[&str], to: &str, from: &str, ops: &[Operand]) -> Decoded<Op> {
        let (Some(to_format), Some(from_format)) = (format(to), format(from)) else {
            return Err(self.error(format!("unsupported conversion from `{from}` to `{to}`")));
        };
        let relu = flags.contains(&"relu");
        let d = self.dst(self.nth(ops, 0)?)?;
        if from == "f32" {
            let round = rounding(flags).unwrap_or(Round::Nearest);
            // The 8-bit forms take `.satfinite` always (PTX ISA `cvt`).
            let satfinite = flags.contains(&"satfinite");
            let (high, low) = (
                self.src(self.nth(ops, 1)?, "f32")?,
                self.src(self.nth(ops, 2)?, "f32")?,
            );
            return Ok(Op::CvtPack {
                to: to_format,
                round,
                satfinite,
                relu,
                d,
                high,
                low,
            });
        }
        let a = self.src(self.nth(ops, 1)?, "b32")?;
        Ok(Op::CvtUnpack {
            from: from_format,
            to: to_format,
            relu,
            d,
            a,
        })
    }

    /// A register list of a matrix operand.
    pub(super) fn sources(&mut self, operand: &Operand, ty: &str) -> Decoded<Vec<Slot>> {
        let all: Vec<Operand> = self.elements(operand).to_vec();
        let mut slots = Vec::with_capacity(all.len());
        for operand in &all {
            match self.slots_of(operand) {
                Some(wide) => slots.extend(wide),
                None => slots.push(self.src(operand, ty)?),
            }
        }
        Ok(slots)
    }

    /// A register list that is written.
    pub(super) fn destinations(&mut self, operand: &Operand) -> Decoded<Vec<Slot>> {
        let all: Vec<Operand> = self.elements(operand).to_vec();
        let mut slots = Vec::with_capacity(all.len());
        for operand in &all {
            match self.slots_of(operand) {
                Some(wide) => slots.extend(wide),
                None => slots.push(self.dst(operand)?),
            }
        }
        Ok(slots)
    }
}

fn combine(flags: &[&str]) -> Option<Combine> {
    flags.iter().find_map(|f| {
        Some(match *f {
            "and" => Combine::And,
            "or" => Combine::Or,
            "xor" => Combine::Xor,
            _ => return None,
        })
    })
}

/// The modifier that `.ftz` stands for at operands of a type; 0 without `.ftz`.
fn flush(flags: &[&str], ty: &str) -> u8 {
    match ty {
        _ if !flags.contains(&"ftz") => 0,
        "f32" | "f32x2" => MOD_FTZ,
        "f16" | "f16x2" => MOD_FTZ_F16,
        // Only `ex2` has it (PTX ISA `ex2`, half precision).
        "bf16" | "bf16x2" => MOD_FTZ_BF16,
        _ => 0,
    }
}
