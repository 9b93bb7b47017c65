//! Decodes `mma.sync`: dense, sparse and block-scaled (PTX ISA 9.7.14.5 and 9.7.14.6).

use super::alu::format;
use super::lower::{Decoded, Lower};
use super::tensor::{accumulator, element, matrix_types, shape};
use super::{Op, Slot};
use crate::ptx::ast::Operand;
use crate::units::float::Format;
use crate::units::mma::{Accumulator, BitOp, Mma};
use crate::units::scaled::ScaledMma;
use crate::units::sparse::SparseMma;
use crate::units::tcgen05::Kind;

/// Data, byte and thread selectors of the scales of A or B.
#[derive(Debug, Clone, Copy)]
pub struct ScaleSlots {
    /// `scale-a-data`.
    pub data: Slot,
    /// `byte-id-a`.
    pub byte: Slot,
    /// `thread-id-a`.
    pub thread: Slot,
}

/// The unit that computes.
#[derive(Debug, Clone)]
pub enum MmaUnit {
    /// Dense products.
    Dense(Mma),
    /// `mma.sp`, with the register of the metadata.
    Sparse(SparseMma, Slot),
    /// Small floats in bytes and block-scaled products.
    Scaled(ScaledMma, Option<[ScaleSlots; 2]>),
}

impl MmaUnit {
    /// The dense product that it stands for, and its registers of A, B, C and D.
    #[must_use]
    pub fn shape(&self) -> (Mma, [usize; 4]) {
        match self {
            Self::Dense(unit) => (*unit, unit.registers()),
            Self::Sparse(sparse, _) => (sparse.unit, sparse.registers()),
            Self::Scaled(scaled, _) => (scaled.shape(), scaled.shape().registers()),
        }
    }
}

/// `mma.sync`.
#[derive(Debug, Clone)]
pub struct MmaForm {
    /// The unit that computes.
    pub unit: MmaUnit,
    /// Result registers.
    pub d: Vec<Slot>,
    /// Registers of A.
    pub a: Vec<Slot>,
    /// Registers of B.
    pub b: Vec<Slot>,
    /// Registers of C.
    pub c: Vec<Slot>,
}

impl MmaForm {
    /// Registers that only sparse and scaled products read.
    pub(super) fn extra(&self) -> Vec<Slot> {
        match &self.unit {
            MmaUnit::Dense(_) | MmaUnit::Scaled(_, None) => Vec::new(),
            MmaUnit::Sparse(_, metadata) => vec![*metadata],
            MmaUnit::Scaled(_, Some(scales)) => scales.iter().map(|s| s.data).collect(),
        }
    }
}

/// Kinds of small floats and of block scales.
fn scaled_kind(mods: &[&str]) -> Option<Kind> {
    mods.iter().find_map(|m| match *m {
        "kind::f8f6f4" => Some(Kind::F8f6f4),
        "kind::mxf8f6f4" => Some(Kind::Mxf8f6f4),
        "kind::mxf4" => Some(Kind::Mxf4),
        "kind::mxf4nvf4" => Some(Kind::Mxf4nvf4),
        _ => None,
    })
}

impl Lower<'_> {
    pub(super) fn mma(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let unit = match scaled_kind(mods) {
            Some(kind) => self.scaled_unit(kind, mods, ops)?,
            None => self.mma_unit(mods, ops)?,
        };
        match &unit {
            MmaUnit::Dense(unit) => unit.check(),
            MmaUnit::Sparse(unit, _) => unit.check(),
            MmaUnit::Scaled(unit, _) => unit.check(),
        }
        .map_err(|fault| self.error(fault.to_string()))?;
        let (shape, registers) = unit.shape();
        let ty = if shape.d == Accumulator::F64 {
            "f64"
        } else {
            "b32"
        };
        let form = MmaForm {
            unit,
            d: self.destinations(self.nth(ops, 0)?)?,
            a: self.sources(self.nth(ops, 1)?, ty)?,
            b: self.sources(self.nth(ops, 2)?, ty)?,
            c: self.sources(self.nth(ops, 3)?, ty)?,
        };
        if [form.a.len(), form.b.len(), form.c.len(), form.d.len()] != registers {
            return Err(self.error(format!(
                "mma takes {registers:?} registers of A, B, C and D"
            )));
        }
        Ok(Op::Mma(Box::new(form)))
    }

    /// Dense and sparse products.
    fn mma_unit(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<MmaUnit> {
        let Some((m, n, k)) = shape(mods) else {
            return Err(self.error("mma without a shape"));
        };
        let types = matrix_types(mods);
        let [d, a, b, c] = types[..] else {
            return Err(self.error("mma needs four types"));
        };
        let (Some(a), Some(b), Some(c), Some(d)) =
            (element(a), element(b), accumulator(c), accumulator(d))
        else {
            return Err(self.error("unsupported types of mma"));
        };
        let unit = Mma {
            m,
            n,
            k,
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
        let Some(sp) = mods.iter().find(|m| **m == "sp" || m.starts_with("sp::")) else {
            return Ok(MmaUnit::Dense(unit));
        };
        let metadata = self.src(self.nth(ops, 4)?, "b32")?;
        let sparse = SparseMma {
            unit,
            selector: self.constant_of(self.nth(ops, 5)?)? as u32,
            ordered: *sp == "sp::ordered_metadata",
        };
        Ok(MmaUnit::Sparse(sparse, metadata))
    }

    /// `.kind::f8f6f4` and the block-scaled kinds.
    fn scaled_unit(&mut self, kind: Kind, mods: &[&str], ops: &[Operand]) -> Decoded<MmaUnit> {
        let scaled = mods.contains(&"block_scale");
        let sparse = mods.iter().any(|m| m.starts_with("sp"));
        if scaled != kind.block_scaled() || sparse {
            return Err(self.error("unsupported form of block-scaled mma.sync"));
        }
        let scale = mods.iter().find_map(|m| match *m {
            "ue8m0" => Some(Format::Ue8m0),
            "ue4m3" => Some(Format::Ue4m3),
            _ => None,
        });
        let types: Vec<&str> = (matrix_types(mods).into_iter())
            .filter(|m| !m.starts_with("ue"))
            .collect();
        let [d, a, b, c] = types[..] else {
            return Err(self.error("mma needs four types"));
        };
        let (Some(a), Some(b), Some(acc), true) = (format(a), format(b), accumulator(d), c == d)
        else {
            return Err(self.error("unsupported types of mma"));
        };
        let unit = ScaledMma {
            kind,
            elements: [a, b],
            accumulator: acc,
            scale: scale.unwrap_or(Format::Ue8m0),
            block: if mods.contains(&"scale_vec::4X") {
                16
            } else {
                32
            },
        };
        if shape(mods) != Some((16, 8, unit.shape().k)) {
            return Err(self.error("unsupported shape of block-scaled mma.sync"));
        }
        if !scaled {
            return Ok(MmaUnit::Scaled(unit, None));
        }
        let scales = [self.scale_slots(ops, 4)?, self.scale_slots(ops, 6)?];
        Ok(MmaUnit::Scaled(unit, Some(scales)))
    }

    fn scale_slots(&mut self, ops: &[Operand], at: usize) -> Decoded<ScaleSlots> {
        let data = self.src(self.nth(ops, at)?, "b32")?;
        let selectors = self.sources(self.nth(ops, at + 1)?, "b16")?;
        let [byte, thread] = selectors[..] else {
            return Err(self.error("expected {byte-id, thread-id}"));
        };
        Ok(ScaleSlots { data, byte, thread })
    }
}
