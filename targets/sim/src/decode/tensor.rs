//! Decodes tensor copies and matrix instructions.

use super::alu::format;
use super::lower::{Decoded, Lower};
use super::memory::reduce_op;
use super::{Op, PredSrc, Slot};
use crate::ptx::ast::Operand;
use crate::units::matrix::{MatrixMove, Shape, Source};
use crate::units::mma::{Accumulator, Element};
use crate::units::reduce::Op as ReduceOp;
use crate::units::wgmma::Wgmma as WgmmaUnit;

/// Which way a tensor copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorDirection {
    /// Global to shared memory.
    Load,
    /// Shared to global memory.
    Store,
    /// Shared to global memory, combining.
    Reduce(ReduceOp),
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Direction.
    pub direction: TensorDirection,
    /// Shared-memory address.
    pub shared: Slot,
    /// Offset added to it.
    pub shared_offset: i64,
    /// Address of the tensor map.
    pub map: Slot,
    /// Offset added to it.
    pub map_offset: i64,
    /// Coordinates, innermost first.
    pub coords: Vec<Slot>,
    /// im2col offsets.
    pub im2col: Option<Vec<Slot>>,
    /// `tile::gather4` or `tile::scatter4`.
    pub gather: bool,
    /// mbarrier of a load.
    pub mbar: Option<(Slot, i64)>,
    /// CTAs that a load is multicast to.
    pub multicast: Option<Slot>,
}

/// `ldmatrix` or `stmatrix`.
#[derive(Debug, Clone)]
pub struct Ldmatrix {
    /// The unit that moves the data.
    pub unit: MatrixMove,
    /// Registers.
    pub regs: Vec<Slot>,
    /// Row address of each lane.
    pub addr: Slot,
    /// Offset in bytes.
    pub offset: i64,
}

/// Operand A of `wgmma`.
#[derive(Debug, Clone)]
pub enum WgmmaA {
    /// A matrix descriptor.
    Descriptor(Slot),
    /// Four registers a thread.
    Registers(Vec<Slot>),
}

/// `wgmma.mma_async`.
#[derive(Debug, Clone)]
pub struct Wgmma {
    /// The unit that computes.
    pub unit: WgmmaUnit,
    /// Accumulators.
    pub d: Vec<Slot>,
    /// Operand A.
    pub a: WgmmaA,
    /// Descriptor of B.
    pub b: Slot,
    /// Whether the accumulators are read.
    pub scale_d: PredSrc,
}

/// `m16n8k16` as numbers.
pub(super) fn shape(parts: &[&str]) -> Option<(usize, usize, usize)> {
    parts.iter().find_map(|part| {
        let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k').unwrap_or((rest, "0"));
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    })
}

pub(super) fn element(ty: &str) -> Option<Element> {
    Some(match ty {
        "s8" => Element::Int {
            bits: 8,
            signed: true,
        },
        "u8" => Element::Int {
            bits: 8,
            signed: false,
        },
        "s4" => Element::Int {
            bits: 4,
            signed: true,
        },
        "u4" => Element::Int {
            bits: 4,
            signed: false,
        },
        "b1" => Element::Bit,
        other => Element::Float(format(other)?),
    })
}

pub(super) fn accumulator(ty: &str) -> Option<Accumulator> {
    Some(match ty {
        "f16" => Accumulator::F16,
        "f32" => Accumulator::F32,
        "f64" => Accumulator::F64,
        "s32" => Accumulator::S32,
        _ => return None,
    })
}

pub(super) fn matrix_types<'a>(mods: &[&'a str]) -> Vec<&'a str> {
    mods.iter()
        .copied()
        .filter(|m| element(m).is_some() || *m == "s32")
        .collect()
}

impl Lower<'_> {
    pub(super) fn tensor(&mut self, parts: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let (name, mods) = parts.split_first().unwrap_or((&"", &[]));
        Ok(Some(match *name {
            "ldmatrix" => self.matrix_move(mods, self.nth(ops, 1)?, self.nth(ops, 0)?, false)?,
            "stmatrix" => self.matrix_move(mods, self.nth(ops, 0)?, self.nth(ops, 1)?, true)?,
            "movmatrix" => {
                let d = self.dst(self.nth(ops, 0)?)?;
                Op::Movmatrix {
                    d,
                    a: self.src(self.nth(ops, 1)?, "b32")?,
                }
            }
            "mma" => self.mma(mods, ops)?,
            "wgmma" => self.wgmma(mods, ops)?,
            "wmma" => self.wmma(mods, ops)?,
            "tcgen05" => self.tcgen05(mods, ops)?,
            _ => return Ok(None),
        }))
    }

    fn matrix_move(
        &mut self,
        mods: &[&str],
        at: &Operand,
        regs: &Operand,
        store: bool,
    ) -> Decoded<Op> {
        let has = |m: &str| mods.contains(&m);
        let count = if has("x4") {
            4
        } else if has("x2") {
            2
        } else {
            1
        };
        let shape = match shape(mods) {
            Some((8, 8, _)) => Shape::M8n8,
            Some((16, 16, _)) => Shape::M16n16,
            Some((8, 16, _)) => Shape::M8n16,
            Some((16, 8, _)) => Shape::M16n8,
            _ => return Err(self.error("unsupported matrix shape")),
        };
        let source = if has("b6x16_p32") {
            Source::SixBits
        } else if has("b4x16_p64") {
            Source::FourBits
        } else {
            Source::Plain
        };
        let unit = MatrixMove {
            shape,
            count,
            trans: has("trans"),
            source,
        };
        let (addr, offset, _) = self.address(at)?;
        let regs = if store {
            self.sources(regs, "b32")?
        } else {
            self.destinations(regs)?
        };
        if regs.len() != unit.registers() {
            return Err(self.error(format!(
                "{} registers, {} are needed",
                regs.len(),
                unit.registers()
            )));
        }
        let form = Box::new(Ldmatrix {
            unit,
            regs,
            addr,
            offset,
        });
        Ok(if store {
            Op::Stmatrix(form)
        } else {
            Op::Ldmatrix(form)
        })
    }

    fn wgmma(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        self.func.has_wgmma = true;
        match mods.first() {
            Some(&"fence") => return Ok(Op::WgmmaFence),
            Some(&"commit_group") => return Ok(Op::WgmmaCommit),
            Some(&"wait_group") => {
                return Ok(Op::WgmmaWait {
                    pending: self.constant_of(self.nth(ops, 0)?)? as u32,
                });
            }
            Some(&"mma_async") if !mods.contains(&"sp") => {}
            _ => return Err(self.error("unsupported wgmma instruction")),
        }
        let types = matrix_types(mods);
        let (Some((64, n, k)), [d, a, b]) = (shape(mods), &types[..]) else {
            return Err(self.error("wgmma.mma_async needs a shape m64nNkK and three types"));
        };
        let (Some(d), Some(a), Some(b)) = (accumulator(d), element(a), element(b)) else {
            return Err(self.error("unsupported types of wgmma"));
        };
        let regs = self.destinations(self.nth(ops, 0)?)?;
        let a_operand = match self.nth(ops, 1)? {
            vector @ Operand::Vector(_) => WgmmaA::Registers(self.sources(vector, "b32")?),
            other => WgmmaA::Descriptor(self.src(other, "b64")?),
        };
        let desc = self.src(self.nth(ops, 2)?, "b64")?;
        let scale_operand = self.nth(ops, 3)?.clone();
        let scale_d = self.pred_src(&scale_operand)?;
        let mut immediates = Vec::new();
        for operand in ops.get(4..).unwrap_or_default() {
            immediates.push(self.constant_of(operand)? as i64);
        }
        let at = |i: usize| immediates.get(i).copied();
        let registers_a = matches!(a_operand, WgmmaA::Registers(_));
        // imm-scale-a, imm-scale-b, then imm-trans-a (descriptors only) and imm-trans-b.
        let trans_a = !registers_a && at(2) == Some(1);
        let trans_b = if registers_a {
            at(2) == Some(1)
        } else {
            at(3) == Some(1)
        };
        let unit = WgmmaUnit {
            n,
            k,
            a,
            b,
            d,
            trans_a,
            trans_b,
            negate_a: at(0) == Some(-1),
            negate_b: at(1) == Some(-1),
            satfinite: mods.contains(&"satfinite"),
        };
        unit.check()
            .map_err(|fault| self.error(fault.to_string()))?;
        if regs.len() != unit.d_registers() {
            return Err(self.error(format!(
                "{} accumulators, {} are needed",
                regs.len(),
                unit.d_registers()
            )));
        }
        Ok(Op::Wgmma(Box::new(Wgmma {
            unit,
            d: regs,
            a: a_operand,
            b: desc,
            scale_d,
        })))
    }

    /// So many coordinates of `[map, {coordinates}]`.
    fn coordinates(&mut self, map: &Operand, wanted: usize) -> Decoded<Vec<Slot>> {
        let Operand::Memory(_, _, more) = map else {
            return Err(self.error("a tensor copy needs [map, {coordinates}]"));
        };
        let coords = match more.first() {
            Some(list) => self.sources(list, "b32")?,
            None => Vec::new(),
        };
        match coords.len() == wanted {
            true => Ok(coords),
            false => Err(self.error(format!("{} coordinates, {wanted} are needed", coords.len()))),
        }
    }

    /// `cp{.reduce}.async.bulk.tensor.Nd...`.
    pub(super) fn tensor_copy(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let has = |m: &str| mods.contains(&m);
        let dims = mods
            .iter()
            .find_map(|m| m.strip_suffix('d').and_then(|n| n.parse::<usize>().ok()));
        let Some(dims) = dims.filter(|d| (1..=5).contains(d)) else {
            return Err(self.error("a tensor copy needs 1d to 5d"));
        };
        let load = mods
            .iter()
            .find(|m| m.starts_with("shared") || **m == "global")
            .is_some_and(|m| *m != "global");
        let reduce = mods.first() == Some(&"reduce");
        let (map_at, shared_at) = if load { (1, 0) } else { (0, 1) };
        let map_operand = self.nth(ops, map_at)?.clone();
        let (map, map_offset, _) = self.address(&map_operand)?;
        let (shared, shared_offset, _) = self.address(self.nth(ops, shared_at)?)?;
        let gather = mods
            .iter()
            .any(|m| m.ends_with("gather4") || m.ends_with("scatter4"));
        let coords = self.coordinates(&map_operand, if gather { 5 } else { dims })?;
        let im2col_mode = mods.iter().any(|m| m.starts_with("im2col"));
        let mut rest = ops.get(2..).unwrap_or_default();
        let mbar = if load {
            let (bar, offset, _) = self.address(self.nth(rest, 0)?)?;
            rest = rest.get(1..).unwrap_or_default();
            Some((bar, offset))
        } else {
            None
        };
        let im2col = match rest.first() {
            Some(list @ Operand::Vector(_)) if load && im2col_mode => {
                rest = rest.get(1..).unwrap_or_default();
                Some(self.sources(list, "b16")?)
            }
            _ => None,
        };
        let multicast = if has("multicast::cluster") {
            Some(self.src(self.nth(rest, 0)?, "b16")?)
        } else {
            None
        };
        let direction = if load {
            TensorDirection::Load
        } else if reduce {
            TensorDirection::Reduce(
                reduce_op(mods).ok_or_else(|| self.error("unsupported reduction"))?,
            )
        } else {
            TensorDirection::Store
        };
        Ok(Op::Tensor(Box::new(Tensor {
            direction,
            shared,
            shared_offset,
            map,
            map_offset,
            coords,
            im2col,
            gather,
            mbar,
            multicast,
        })))
    }
}
