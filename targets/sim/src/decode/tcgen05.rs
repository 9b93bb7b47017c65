//! Decodes the instructions of Blackwell's tensor cores and tensor memory (PTX ISA 9.7.16).

use super::lower::{Decoded, Lower};
use super::{Op, PredSrc, Slot};
use crate::ptx::ast::Operand;
use crate::units::tcgen05::Kind;
use crate::units::tensor_memory::{Access, CopyShape};

/// An address in tensor memory or of an mbarrier: register and offset.
pub type Address = (Slot, i64);

/// Operand A of `tcgen05.mma`.
#[derive(Debug, Clone, Copy)]
pub enum TensorA {
    /// A matrix descriptor.
    Descriptor(Slot),
    /// An address in tensor memory.
    Memory(Address),
}

/// `tcgen05.mma`.
#[derive(Debug, Clone)]
pub struct TensorMma {
    /// `.kind`.
    pub kind: Kind,
    /// Address of D.
    pub d: Address,
    /// Operand A.
    pub a: TensorA,
    /// Descriptor of B.
    pub b: Slot,
    /// Instruction descriptor.
    pub descriptor: Slot,
    /// Addresses of the scales of A and B.
    pub scales: Option<[Address; 2]>,
    /// Elements that share a scale.
    pub block: usize,
    /// `disable-output-lane`, 32 lanes a register.
    pub disabled: Vec<Slot>,
    /// `enable-input-d`.
    pub accumulate: PredSrc,
    /// `scale-input-d`.
    pub scale_d: u32,
}

/// What `tcgen05.ld.red` makes of the words that a thread loads.
#[derive(Debug, Clone, Copy)]
pub struct TensorReduce {
    /// Maximum instead of minimum.
    pub max: bool,
    /// Type of the words.
    pub kind: Kind32,
    /// `.abs`.
    pub abs: bool,
    /// `.NaN`: a NaN wins.
    pub nan: bool,
    /// Result.
    pub d: Slot,
}

/// Types of 32 bits that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the PTX ISA")]
pub enum Kind32 {
    U32,
    S32,
    F32,
}

/// `tcgen05.ld` or `tcgen05.st`.
#[derive(Debug, Clone)]
pub struct TensorAccess {
    /// Shape.
    pub shape: Access,
    /// `.xN`.
    pub repeat: usize,
    /// `.pack::16b` or `.unpack::16b`.
    pub packed: bool,
    /// Address in tensor memory.
    pub address: Address,
    /// Registers.
    pub regs: Vec<Slot>,
    /// `.red`.
    pub reduce: Option<TensorReduce>,
}

/// A decoded `tcgen05` instruction; `pair` is `.cta_group::2`.
#[derive(Debug, Clone)]
pub enum Tcgen05 {
    /// `alloc`: where the address is written, and the number of columns.
    Alloc { dst: Address, columns: Slot },
    /// `dealloc`.
    Dealloc { address: Slot, columns: Slot },
    /// `relinquish_alloc_permit`.
    Relinquish,
    /// `mma`.
    Mma { pair: bool, form: TensorMma },
    /// `cp` from the matrix that the descriptor names.
    Copy {
        pair: bool,
        shape: CopyShape,
        address: Address,
        descriptor: Slot,
    },
    /// `commit` to an mbarrier, of several CTAs with a mask.
    Commit {
        mbar: Address,
        multicast: Option<Slot>,
    },
    /// `ld`.
    Load(TensorAccess),
    /// `st`.
    Store(TensorAccess),
    /// `wait::ld` or `wait::st`.
    Wait { store: bool },
    /// `fence::before_thread_sync` and `fence::after_thread_sync`.
    Fence,
}

impl TensorAccess {
    /// Registers that a load writes.
    pub(crate) fn written(&self) -> impl Iterator<Item = Slot> {
        let reduced = self.reduce.map(|r| r.d);
        self.regs.iter().copied().chain(reduced)
    }
}

impl Tcgen05 {
    /// Calls `f` with the data registers that the instruction reads (`false`) or writes (`true`).
    pub(crate) fn registers(&self, f: &mut dyn FnMut(Slot, bool)) {
        match self {
            Self::Load(form) => form.written().for_each(|r| f(r, true)),
            Self::Store(form) => form.regs.iter().for_each(|&r| f(r, false)),
            _ => {}
        }
    }
}

fn kind(mods: &[&str]) -> Option<Kind> {
    mods.iter().find_map(|m| {
        Some(match m.strip_prefix("kind::")? {
            "f16" => Kind::F16,
            "tf32" => Kind::Tf32,
            "f8f6f4" => Kind::F8f6f4,
            "i8" => Kind::I8,
            "mxf8f6f4" => Kind::Mxf8f6f4,
            "mxf4" => Kind::Mxf4,
            "mxf4nvf4" => Kind::Mxf4nvf4,
            _ => return None,
        })
    })
}

/// Elements that share a scale (PTX ISA 9.7.16.10.7); `None` if the kind has no such block.
fn block(kind: Kind, mods: &[&str]) -> Option<usize> {
    let named = mods.iter().find_map(|m| match *m {
        "scale_vec::1X" | "block32" => Some(32),
        // Two scales of the 64 elements along K, or four.
        "scale_vec::2X" => Some(32),
        "scale_vec::4X" | "block16" => Some(16),
        _ => None,
    });
    match (kind, named) {
        (Kind::Mxf8f6f4 | Kind::Mxf4, None | Some(32)) => Some(32),
        (Kind::Mxf4nvf4, named) => named,
        _ => None,
    }
}

fn access(mods: &[&str]) -> Option<Access> {
    mods.iter().find_map(|m| {
        Some(match *m {
            "32x32b" => Access::L32x32b,
            "16x64b" => Access::L16x64b,
            "16x128b" => Access::L16x128b,
            "16x256b" => Access::L16x256b,
            "16x32bx2" => Access::L16x32bx2(0),
            _ => return None,
        })
    })
}

fn copy_shape(mods: &[&str]) -> Option<CopyShape> {
    let has = |m: &str| mods.contains(&m);
    Some(if has("128x256b") {
        CopyShape::L128x256b
    } else if has("4x256b") {
        CopyShape::L4x256b
    } else if has("128x128b") {
        CopyShape::L128x128b
    } else if has("64x128b") && has("warpx2::02_13") {
        CopyShape::L64x128bPairs
    } else if has("64x128b") && has("warpx2::01_23") {
        CopyShape::L64x128bHalves
    } else if has("32x128b") && has("warpx4") {
        CopyShape::L32x128bAll
    } else {
        return None;
    })
}

impl Lower<'_> {
    pub(super) fn tcgen05(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        self.program.tensor_memory = true;
        let pair = self.cta_group(mods)?;
        let (name, rest) = mods.split_first().unwrap_or((&"", &[]));
        let unsupported = ["sp", "ws", "ashift"];
        if let Some(m) = rest.iter().find(|m| unsupported.contains(*m)) {
            return Err(self.error(format!("unsupported `tcgen05.{name}` with `.{m}`")));
        }
        let op = match *name {
            "alloc" => {
                let (slot, offset, _) = self.address(self.nth(ops, 0)?)?;
                Tcgen05::Alloc {
                    dst: (slot, offset),
                    columns: self.src(self.nth(ops, 1)?, "b32")?,
                }
            }
            "dealloc" => Tcgen05::Dealloc {
                address: self.src(self.nth(ops, 0)?, "b32")?,
                columns: self.src(self.nth(ops, 1)?, "b32")?,
            },
            "relinquish_alloc_permit" => Tcgen05::Relinquish,
            "mma" => Tcgen05::Mma {
                pair,
                form: self.tensor_mma(pair, rest, ops)?,
            },
            "cp" => self.tensor_cp(pair, rest, ops)?,
            "commit" => {
                let (slot, offset, _) = self.address(self.nth(ops, 0)?)?;
                let multicast = match ops.get(1) {
                    Some(mask) if rest.contains(&"multicast::cluster") => {
                        Some(self.src(mask, "b16")?)
                    }
                    _ => None,
                };
                Tcgen05::Commit {
                    mbar: (slot, offset),
                    multicast,
                }
            }
            "ld" => Tcgen05::Load(self.tensor_access(rest, ops, false)?),
            "st" => Tcgen05::Store(self.tensor_access(rest, ops, true)?),
            "wait::ld" => Tcgen05::Wait { store: false },
            "wait::st" => Tcgen05::Wait { store: true },
            "fence::before_thread_sync" | "fence::after_thread_sync" => Tcgen05::Fence,
            _ => return Err(self.error(format!("unsupported instruction `tcgen05.{name}`"))),
        };
        Ok(Op::Tcgen05(Box::new(op)))
    }

    /// Whether `.cta_group::2` is named; all instructions of a kernel must agree (PTX ISA 9.7.16.2.1).
    fn cta_group(&mut self, mods: &[&str]) -> Decoded<bool> {
        let Some(group) = mods.iter().find_map(|m| m.strip_prefix("cta_group::")) else {
            return Ok(false);
        };
        let pair = group == "2";
        if *self.func.cta_pair.get_or_insert(pair) != pair {
            return Err(self.error("instructions of a kernel name different .cta_group"));
        }
        Ok(pair)
    }

    fn tensor_address(&mut self, operand: &Operand) -> Decoded<Address> {
        let (slot, offset, _) = self.address(operand)?;
        Ok((slot, offset))
    }

    fn tensor_mma(&mut self, pair: bool, mods: &[&str], ops: &[Operand]) -> Decoded<TensorMma> {
        let Some(kind) = kind(mods) else {
            return Err(self.error("unsupported kind of tcgen05.mma"));
        };
        let scaled = mods.contains(&"block_scale");
        if scaled != kind.block_scaled() {
            return Err(self.error("`.block_scale` and the kind of tcgen05.mma disagree"));
        }
        let d = self.tensor_address(self.nth(ops, 0)?)?;
        let a = match self.nth(ops, 1)? {
            memory @ Operand::Memory(..) => TensorA::Memory(self.tensor_address(memory)?),
            other => TensorA::Descriptor(self.src(other, "b64")?),
        };
        let b = self.src(self.nth(ops, 2)?, "b64")?;
        let descriptor = self.src(self.nth(ops, 3)?, "b32")?;
        let mut rest = ops.get(4..).unwrap_or_default();
        let (mut scales, mut block_size) = (None, 32);
        if scaled {
            let Some(size) = block(kind, mods) else {
                return Err(self.error("this kind of tcgen05.mma has no such size of blocks"));
            };
            block_size = size;
            scales = Some([
                self.tensor_address(self.nth(rest, 0)?)?,
                self.tensor_address(self.nth(rest, 1)?)?,
            ]);
            rest = rest.get(2..).unwrap_or_default();
        }
        let mut disabled = Vec::new();
        if let Some(list @ Operand::Vector(_)) = rest.first() {
            disabled = self.sources(list, "b32")?;
            if disabled.len() != if pair { 8 } else { 4 } {
                return Err(self.error("disable-output-lane takes 4 registers a CTA"));
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        let accumulate = self.pred_src(self.nth(rest, 0)?)?;
        let scale_d = match rest.get(1) {
            Some(operand) => self.constant_of(operand)? as u32,
            None => 0,
        };
        Ok(TensorMma {
            kind,
            d,
            a,
            b,
            descriptor,
            scales,
            block: block_size,
            disabled,
            accumulate,
            scale_d,
        })
    }

    fn tensor_cp(&mut self, pair: bool, mods: &[&str], ops: &[Operand]) -> Decoded<Tcgen05> {
        if let Some(format) = mods.iter().find(|m| m.starts_with("b8x16")) {
            return Err(self.error(format!("unsupported decompression `.{format}`")));
        }
        let Some(shape) = copy_shape(mods) else {
            return Err(self.error("unsupported shape of tcgen05.cp"));
        };
        Ok(Tcgen05::Copy {
            pair,
            shape,
            address: self.tensor_address(self.nth(ops, 0)?)?,
            descriptor: self.src(self.nth(ops, 1)?, "b64")?,
        })
    }

    fn tensor_access(
        &mut self,
        mods: &[&str],
        ops: &[Operand],
        store: bool,
    ) -> Decoded<TensorAccess> {
        let Some(mut shape) = access(mods) else {
            return Err(self.error("unsupported shape of tensor memory access"));
        };
        let repeat = mods.iter().find_map(|m| m.strip_prefix('x')?.parse().ok());
        let Some(repeat) = repeat.filter(|n: &usize| n.is_power_of_two() && *n <= 128) else {
            return Err(self.error("a tensor memory access takes .x1 to .x128"));
        };
        let mut operands: Vec<&Operand> = ops.iter().collect();
        let mut reduce = None;
        if mods.contains(&"red") {
            reduce = Some(self.tensor_reduce(shape, mods, self.nth(ops, 1)?)?);
            operands.remove(1);
        }
        if let Access::L16x32bx2(offset) = &mut shape {
            // The column offset of the second half follows the address.
            let at = if store { 1 } else { 2 };
            *offset = self.constant_of(self.nth(ops, at)?)? as u32 & 0xffff;
            operands.remove(at);
        }
        let [first, second] = operands[..] else {
            return Err(self.error("expected an address and registers"));
        };
        let (address, regs) = if store {
            (self.tensor_address(first)?, self.sources(second, "b32")?)
        } else {
            (self.tensor_address(second)?, self.destinations(first)?)
        };
        let count = shape.registers() * repeat;
        if regs.len() != count || count > 128 {
            return Err(self.error(format!("{} registers, {count} are needed", regs.len())));
        }
        if !store {
            // The registers are in flight until tcgen05.wait::ld.
            self.func.has_wgmma = true;
        }
        Ok(TensorAccess {
            shape,
            repeat,
            packed: mods.iter().any(|m| m.ends_with("pack::16b")),
            address,
            regs,
            reduce,
        })
    }

    fn tensor_reduce(
        &mut self,
        shape: Access,
        mods: &[&str],
        d: &Operand,
    ) -> Decoded<TensorReduce> {
        let has = |m: &str| mods.contains(&m);
        let kind = match mods.iter().find(|m| matches!(**m, "f32" | "u32" | "s32")) {
            Some(&"u32") => Kind32::U32,
            Some(&"s32") => Kind32::S32,
            Some(_) => Kind32::F32,
            None => return Err(self.error("tcgen05.ld.red needs .f32, .u32 or .s32")),
        };
        if shape != Access::L32x32b || has("min") == has("max") || has("pack::16b") {
            return Err(self.error("unsupported form of tcgen05.ld.red"));
        }
        Ok(TensorReduce {
            max: has("max"),
            kind,
            abs: has("abs"),
            nan: has("NaN"),
            d: self.dst(d)?,
        })
    }
}
