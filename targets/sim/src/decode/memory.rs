//! Decodes loads, stores, atomics, address conversions and copies without tensor maps.

use super::lower::{Decoded, Lower, Symbol};
use super::{Access, Atom, AtomOp, Bulk, CpAsync, Op, Order, PARAM_WINDOW, SHARED_WINDOW};
use crate::ptx::ast::{Operand, Space};
use crate::ptx::type_bytes;
use crate::units::reduce::{Kind, Op as ReduceOp};
use crate::units::tensor_map::Field;

pub(super) fn space_of(parts: &[&str]) -> (Space, bool) {
    for part in parts {
        let (base, scope) = part.split_once("::").unwrap_or((part, ""));
        let space = match base {
            "global" => Space::Global,
            "shared" => return (Space::Shared, scope == "cluster"),
            "local" => Space::Local,
            "const" => Space::Const,
            "param" => Space::Param,
            _ => continue,
        };
        return (space, false);
    }
    (Space::Generic, true)
}

fn order_of(parts: &[&str]) -> Order {
    for part in parts {
        match *part {
            "volatile" | "relaxed" | "mmio" => return Order::Relaxed,
            "acquire" => return Order::Acquire,
            "release" => return Order::Release,
            "acq_rel" => return Order::AcqRel,
            _ => {}
        }
    }
    Order::Weak
}

pub(super) fn reduce_op(parts: &[&str]) -> Option<ReduceOp> {
    parts.iter().find_map(|part| {
        Some(match *part {
            "add" => ReduceOp::Add,
            "min" => ReduceOp::Min,
            "max" => ReduceOp::Max,
            "inc" => ReduceOp::Inc,
            "dec" => ReduceOp::Dec,
            "and" => ReduceOp::And,
            "or" => ReduceOp::Or,
            "xor" => ReduceOp::Xor,
            _ => return None,
        })
    })
}

/// Element type of a reduction, and the bytes that one register holds.
pub(super) fn kind_of(ty: &str) -> Option<(Kind, u8)> {
    Some(match ty {
        "u32" | "b32" => (Kind::U32, 4),
        "s32" => (Kind::S32, 4),
        "u64" | "b64" => (Kind::U64, 8),
        "s64" => (Kind::S64, 8),
        "b16" => (Kind::U16, 2),
        "f16" => (Kind::F16, 2),
        "bf16" => (Kind::Bf16, 2),
        "f16x2" => (Kind::F16, 4),
        "bf16x2" => (Kind::Bf16, 4),
        "f32" => (Kind::F32, 4),
        "f64" => (Kind::F64, 8),
        _ => return None,
    })
}

impl Lower<'_> {
    pub(super) fn memory(&mut self, parts: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let (name, mods) = parts.split_first().unwrap_or((&"", &[]));
        Ok(Some(match *name {
            "ld" | "ldu" => self.load(mods, ops)?,
            "st" if mods.first() == Some(&"async") => self.store_async(mods, ops)?,
            "st" if mods.first() == Some(&"bulk") => return Ok(None),
            "st" => Op::St(Box::new(self.access(
                mods,
                self.nth(ops, 0)?,
                self.nth(ops, 1)?,
                true,
            )?)),
            "atom" | "red" => self.atomic(name, mods, ops)?,
            "cvta" => self.cvta(mods, ops)?,
            "isspacep" => {
                let (space, _) = space_of(mods);
                let d = self.pred_dst(self.nth(ops, 0)?)?;
                Op::IsSpace {
                    space,
                    d,
                    a: self.src(self.nth(ops, 1)?, "b64")?,
                }
            }
            "mapa" => {
                let d = self.dst(self.nth(ops, 0)?)?;
                let a = self.src(self.nth(ops, 1)?, "b64")?;
                Op::Mapa {
                    d,
                    a,
                    rank: self.src(self.nth(ops, 2)?, "b32")?,
                }
            }
            "getctarank" => {
                let d = self.dst(self.nth(ops, 0)?)?;
                Op::GetRank {
                    d,
                    a: self.src(self.nth(ops, 1)?, "b64")?,
                }
            }
            "prefetch" | "prefetchu" | "applypriority" | "discard" => Op::Nop,
            "createpolicy" => {
                let d = self.dst(self.nth(ops, 0)?)?;
                // Cache policies change no value: the encoding is that of evict_normal.
                let policy = self.constant(0x1000_0000_0000_0000);
                Op::Mov { d, a: policy }
            }
            "cp" => return self.copy(mods, ops),
            "tensormap" if mods.first() == Some(&"replace") => self.map_replace(mods, ops)?,
            "tensormap" if mods.first() == Some(&"cp_fenceproxy") => {
                let (dst, to, _) = self.address(self.nth(ops, 0)?)?;
                let (src, from, _) = self.address(self.nth(ops, 1)?)?;
                Op::MapCopy {
                    dst: (dst, to),
                    src: (src, from),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn load(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        Ok(Op::Ld(Box::new(self.access(
            mods,
            self.nth(ops, 1)?,
            self.nth(ops, 0)?,
            false,
        )?)))
    }

    /// The bytes of the register that a signed load of `bytes` fills, where it has more.
    fn widened(&mut self, value: &Operand, bytes: u8) -> Decoded<Option<u8>> {
        let first: Option<Operand> = self.elements(value).first().cloned();
        let width = match first {
            Some(operand) => self.dst_bytes(&operand)?.1,
            None => bytes,
        };
        Ok(Some(width).filter(|&width| width > bytes))
    }

    fn access(
        &mut self,
        mods: &[&str],
        at: &Operand,
        value: &Operand,
        store: bool,
    ) -> Decoded<Access> {
        let Some(&ty) = mods.iter().rev().find(|m| type_bytes(m).is_some()) else {
            return Err(self.error("an access needs a type"));
        };
        let mut bytes = type_bytes(ty).unwrap_or(4) as u8;
        // 128 bits are two elements of 64.
        let halves = if bytes > 8 { 2 } else { 1 };
        bytes = bytes.min(8);
        let (mut space, cluster) = space_of(mods);
        let (addr, offset, symbol) = self.address(at)?;
        if space == Space::Param && (!self.func.entry || matches!(symbol, Some(Symbol::Local(..))))
        {
            // Parameters of functions and of calls live in the local frame.
            space = Space::Local;
        }
        let mut regs = if store {
            self.sources(value, ty)?
        } else {
            self.destinations(value)?
        };
        let vector = mods.iter().find_map(|m| match *m {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        });
        let wanted = vector.unwrap_or(1) * halves;
        if regs.len() != wanted {
            return Err(self.error(format!("{} registers for {wanted} elements", regs.len())));
        }
        let sign_extend = match ty.starts_with('s') && !store {
            true => self.widened(value, bytes)?,
            false => None,
        };
        let order = order_of(mods);
        let align = u64::from(bytes) * regs.len() as u64;
        if !store && order == Order::Weak && halves == 1 {
            regs.truncate(self.read_elements(value));
        }
        Ok(Access {
            space,
            cluster,
            bytes,
            sign_extend,
            regs,
            align,
            addr,
            offset,
            order,
        })
    }

    /// The elements of a load up to the last one that something reads, at least one. LLVM loads four elements where three are
    /// wanted (LoadStoreVectorizer): an aligned vector lies on one page, so that the machine does not fault where the array ends in it.
    fn read_elements(&self, value: &Operand) -> usize {
        let elements = self.elements(value);
        let unread = |operand: &&Operand| match operand {
            Operand::Sink => true,
            Operand::Name(name) => self.written_once.contains(name.as_str()),
            _ => false,
        };
        let unread = elements.iter().rev().take_while(unread).count();
        (elements.len() - unread).max(1)
    }

    fn store_async(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let mut access = self.access(mods, self.nth(ops, 0)?, self.nth(ops, 1)?, true)?;
        access.space = Space::Shared;
        access.cluster = true;
        let (bar, offset, _) = self.address(self.nth(ops, 2)?)?;
        Ok(Op::StAsync(Box::new(access), bar, offset))
    }

    fn atomic(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let Some(ty) = mods.iter().rev().find(|m| type_bytes(m).is_some()) else {
            return Err(self.error("an atomic needs a type"));
        };
        let wide = *ty == "b128";
        let Some((kind, bytes)) = kind_of(if wide { "b64" } else { ty }) else {
            return Err(self.error(format!("unsupported atomic type `{ty}`")));
        };
        let op = if mods.contains(&"cas") {
            AtomOp::Cas
        } else if mods.contains(&"exch") {
            AtomOp::Exch
        } else {
            AtomOp::Reduce(
                reduce_op(mods).ok_or_else(|| self.error("unsupported atomic operation"))?,
            )
        };
        let has_dst = name == "atom";
        let first = usize::from(has_dst);
        let dst = if has_dst {
            self.destinations(self.nth(ops, 0)?)?
        } else {
            Vec::new()
        };
        let (addr, offset, _) = self.address(self.nth(ops, first)?)?;
        let b = self.sources(self.nth(ops, first + 1)?, ty)?;
        let c = if op == AtomOp::Cas {
            self.sources(self.nth(ops, first + 2)?, ty)?
        } else {
            Vec::new()
        };
        let (space, _) = space_of(mods);
        let order = match order_of(mods) {
            Order::Weak => Order::Relaxed,
            other => other,
        };
        let mbar = if mods.contains(&"async") {
            let (bar, offset, _) = self.address(self.nth(ops, first + 2)?)?;
            Some((bar, offset))
        } else {
            None
        };
        Ok(Op::Atom(Box::new(Atom {
            space,
            op,
            kind,
            bytes,
            dst,
            addr,
            offset,
            b,
            c,
            order,
            mbar,
        })))
    }

    /// `tensormap.replace` (PTX ISA 9.7.9.28); fields of a dimension name it before the value.
    fn map_replace(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let (addr, offset, _) = self.address(self.nth(ops, 0)?)?;
        let dim = || -> Decoded<usize> {
            let dim = self.constant_of(self.nth(ops, 1)?)?;
            let valid = usize::try_from(dim).ok().filter(|&d| d < 5);
            valid.ok_or_else(|| self.error("a tensor map has dimensions 0 to 4"))
        };
        let field = match mods.get(2).copied().unwrap_or("") {
            "global_address" => Field::GlobalAddress,
            "rank" => Field::Rank,
            "box_dim" => Field::BoxDim(dim()?),
            "global_dim" => Field::GlobalDim(dim()?),
            "global_stride" => Field::GlobalStride(dim()?),
            "element_stride" => Field::ElementStride(dim()?),
            "elemtype" => Field::ElementType,
            "swizzle_mode" => Field::SwizzleMode,
            "fill_mode" => Field::FillMode,
            "interleave_layout" => Field::Interleave,
            "swizzle_atomicity" => Field::SwizzleAtomicity,
            other => {
                return Err(self.error(format!("unsupported field `{other}` of tensormap.replace")));
            }
        };
        let value = self.nth(ops, ops.len().saturating_sub(1))?;
        let ty = if mods.contains(&"b64") { "b64" } else { "b32" };
        Ok(Op::MapReplace {
            space: space_of(mods).0,
            addr,
            offset,
            field,
            value: self.src(value, ty)?,
        })
    }

    fn cvta(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let (space, _) = space_of(mods);
        let d = self.dst(self.nth(ops, 0)?)?;
        let a = self.src(self.nth(ops, 1)?, "b64")?;
        let base = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => super::LOCAL_WINDOW,
            Space::Param if self.func.entry => PARAM_WINDOW,
            Space::Param => super::LOCAL_WINDOW,
            _ => 0,
        };
        let base = if mods.contains(&"to") {
            base.wrapping_neg()
        } else {
            base
        };
        let window = self.constant(base);
        let f = super::integer::integer("add", &[], &["u64"]).ok_or_else(|| self.error("cvta"))?;
        Ok(Op::Alu {
            f,
            d,
            s: [a, window, 0, 0],
            mods: 0,
        })
    }

    fn copy(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let has = |m: &str| mods.contains(&m);
        if mods.first() == Some(&"reduce") || has("bulk") {
            return self.bulk(mods, ops);
        }
        if mods.first() != Some(&"async") {
            return Ok(None);
        }
        if has("commit_group") {
            return Ok(Some(Op::CpCommit));
        }
        if has("wait_all") {
            return Ok(Some(Op::CpWait { pending: 0 }));
        }
        if has("wait_group") {
            let pending = self.constant_of(self.nth(ops, 0)?)? as u32;
            return Ok(Some(Op::CpWait { pending }));
        }
        if has("arrive") {
            let (addr, offset, _) = self.address(self.nth(ops, 0)?)?;
            return Ok(Some(Op::CpArrive {
                addr,
                offset,
                no_inc: has("noinc"),
            }));
        }
        let (dst, dst_offset, _) = self.address(self.nth(ops, 0)?)?;
        let (src, src_offset, _) = self.address(self.nth(ops, 1)?)?;
        let bytes = self.constant_of(self.nth(ops, 2)?)?;
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(self.error("cp.async copies 4, 8 or 16 bytes"));
        }
        let (mut size, mut ignore) = (None, None);
        if let Some(operand) = ops
            .get(3)
            .filter(|_| !has("L2::cache_hint") || ops.len() > 4)
        {
            if self.is_pred(operand) {
                ignore = Some(self.pred_src(operand)?);
            } else {
                size = Some(self.src(operand, "b32")?);
            }
        }
        Ok(Some(Op::CpAsync(Box::new(CpAsync {
            dst,
            dst_offset,
            src,
            src_offset,
            bytes: bytes as u8,
            size,
            ignore,
        }))))
    }

    fn bulk(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let has = |m: &str| mods.contains(&m);
        if has("commit_group") {
            return Ok(Some(Op::BulkCommit));
        }
        if has("wait_group") {
            let pending = self.constant_of(self.nth(ops, 0)?)? as u32;
            return Ok(Some(Op::BulkWait { pending }));
        }
        if has("prefetch") {
            return Ok(Some(Op::Nop));
        }
        if has("tensor") {
            return self.tensor_copy(mods, ops).map(Some);
        }
        let spaces: Vec<&str> = mods
            .iter()
            .copied()
            .filter(|m| m.starts_with("shared") || *m == "global")
            .collect();
        let [to, from] = spaces[..] else {
            return Err(self.error("cp.async.bulk needs a destination and a source space"));
        };
        let (dst, dst_offset, _) = self.address(self.nth(ops, 0)?)?;
        let (src, src_offset, _) = self.address(self.nth(ops, 1)?)?;
        let size = self.src(self.nth(ops, 2)?, "b32")?;
        let complete = mods.iter().any(|m| m.starts_with("mbarrier"));
        let mbar = if complete {
            let (bar, offset, _) = self.address(self.nth(ops, 3)?)?;
            Some((bar, offset))
        } else {
            None
        };
        let multicast = if has("multicast::cluster") {
            Some(self.src(self.nth(ops, 4)?, "b16")?)
        } else {
            None
        };
        let reduce = if mods.first() == Some(&"reduce") {
            let ty = mods.iter().rev().find_map(|m| kind_of(m));
            match (reduce_op(mods), ty) {
                (Some(op), Some((kind, _))) => Some((op, kind)),
                _ => return Err(self.error("unsupported bulk reduction")),
            }
        } else {
            None
        };
        Ok(Some(Op::Bulk(Box::new(Bulk {
            dst,
            dst_offset,
            src,
            src_offset,
            size,
            from_global: from == "global",
            to_global: to == "global",
            mbar,
            multicast,
            reduce,
        }))))
    }
}
