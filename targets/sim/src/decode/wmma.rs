//! Decodes the `wmma` instructions (PTX ISA 9.7.14.4).

use super::lower::{Decoded, Lower};
use super::memory::space_of;
use super::tensor::{accumulator, element, matrix_types, shape};
use super::{Op, Slot};
use crate::ptx::ast::{Operand, Space};
use crate::units::mma::BitOp;
use crate::units::wmma::{Fragment, Part, Wmma};

/// `wmma.load` or `wmma.store`.
#[derive(Debug, Clone)]
pub struct WmmaMove {
    /// What is moved.
    pub fragment: Fragment,
    /// Whether memory holds it column by column.
    pub by_column: bool,
    /// State space.
    pub space: Space,
    /// Address register.
    pub addr: Slot,
    /// Offset in bytes.
    pub offset: i64,
    /// Elements between lines; by default they are contiguous.
    pub stride: Option<Slot>,
    /// Registers.
    pub regs: Vec<Slot>,
}

/// `wmma.mma`.
#[derive(Debug, Clone)]
pub struct WmmaForm {
    /// The unit that computes.
    pub unit: Wmma,
    /// Registers of A.
    pub a: Vec<Slot>,
    /// Registers of B.
    pub b: Vec<Slot>,
    /// Registers of C.
    pub c: Vec<Slot>,
    /// Registers of D.
    pub d: Vec<Slot>,
}

/// Type of a register of a fragment.
const fn register_type(fragment: &Fragment) -> &'static str {
    if fragment.bits == 64 { "b64" } else { "b32" }
}

impl Lower<'_> {
    pub(super) fn wmma(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let Some((m, n, k)) = shape(mods) else {
            return Err(self.error("wmma without a shape"));
        };
        let shape = [m, n, k];
        match mods {
            ["load", part @ ("a" | "b" | "c"), rest @ ..] => {
                let form = self.wmma_move(shape, part, rest, (self.nth(ops, 1)?, ops), false)?;
                Ok(Op::WmmaLoad(Box::new(form)))
            }
            ["store", "d", rest @ ..] => {
                let form = self.wmma_move(shape, "d", rest, (self.nth(ops, 0)?, ops), true)?;
                Ok(Op::WmmaStore(Box::new(form)))
            }
            ["mma", rest @ ..] => self.wmma_mma(shape, rest, ops),
            _ => Err(self.error("unsupported wmma instruction")),
        }
    }

    fn wmma_move(
        &mut self,
        shape: [usize; 3],
        part: &str,
        mods: &[&str],
        (at, ops): (&Operand, &[Operand]),
        store: bool,
    ) -> Decoded<WmmaMove> {
        let ty = mods.last().copied().unwrap_or("");
        let operand = |part| {
            let e = element(ty).filter(|e| Wmma::defines_operand(shape, *e))?;
            Some(Fragment::operand(part, shape, e))
        };
        let fragment = match part {
            "a" => operand(Part::A),
            "b" => operand(Part::B),
            _ => accumulator(ty)
                .filter(|t| Wmma::defines_accumulator(shape, *t))
                .map(|t| Fragment::accumulator(shape, t)),
        };
        let Some(fragment) = fragment else {
            return Err(self.error("unsupported shape or type of wmma"));
        };
        let (addr, offset, _) = self.address(at)?;
        let regs = if store {
            self.sources(self.nth(ops, 1)?, register_type(&fragment))?
        } else {
            self.destinations(self.nth(ops, 0)?)?
        };
        if regs.len() != fragment.registers {
            let wanted = fragment.registers;
            return Err(self.error(format!("{} registers, {wanted} are needed", regs.len())));
        }
        Ok(WmmaMove {
            fragment,
            by_column: mods.contains(&"col"),
            space: space_of(mods).0,
            addr,
            offset,
            stride: ops.get(2).map(|o| self.src(o, "b32")).transpose()?,
            regs,
        })
    }

    fn wmma_mma(&mut self, shape: [usize; 3], mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let types = match matrix_types(mods)[..] {
            // Binary16 products name D and C only.
            [d, c] => [d, "f16", "f16", c],
            [d, a, b, c] => [d, a, b, c],
            _ => return Err(self.error("wmma.mma needs two or four types")),
        };
        let [d, a, b, c] = types;
        let (Some(d), Some(a), Some(b), Some(c)) =
            (accumulator(d), element(a), element(b), accumulator(c))
        else {
            return Err(self.error("unsupported types of wmma"));
        };
        let unit = Wmma {
            shape,
            a,
            b,
            c,
            d,
            satfinite: mods.contains(&"satfinite"),
            bit_op: mods.iter().find_map(|m| match *m {
                "and" => Some(BitOp::And),
                "xor" => Some(BitOp::Xor),
                _ => None,
            }),
        };
        unit.check()
            .map_err(|fault| self.error(fault.to_string()))?;
        let [fa, fb, fc, fd] = unit.fragments();
        let form = WmmaForm {
            unit,
            d: self.destinations(self.nth(ops, 0)?)?,
            a: self.sources(self.nth(ops, 1)?, register_type(&fa))?,
            b: self.sources(self.nth(ops, 2)?, register_type(&fb))?,
            c: self.sources(self.nth(ops, 3)?, register_type(&fc))?,
        };
        let wanted = [fa, fb, fc, fd].map(|f| f.registers);
        if [form.a.len(), form.b.len(), form.c.len(), form.d.len()] != wanted {
            return Err(self.error(format!(
                "wmma.mma takes {wanted:?} registers of A, B, C and D"
            )));
        }
        Ok(Op::Wmma(Box::new(form)))
    }
}
