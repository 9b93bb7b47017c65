//! Operands: registers, predicates, labels, addresses and constants.

use super::*;

impl Lower<'_> {
    /// A label's number, to be resolved to an instruction at the end.
    pub(in crate::decode) fn label(&self, operand: Option<&Operand>) -> Decoded<u32> {
        let Some(Operand::Name(name)) = operand else {
            return Err(self.error("expected a label"));
        };
        self.label_named(name)
    }

    pub(in crate::decode) fn label_named(&self, name: &str) -> Decoded<u32> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.labels.get(name).copied())
            .ok_or_else(|| self.undefined(format!("no label `{name}`")))
    }

    pub(in crate::decode) fn targets(&self, name: &str) -> Option<Vec<String>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.targets.get(name).cloned())
    }

    // Operands.

    pub(in crate::decode) fn nth<'o>(
        &self,
        operands: &'o [Operand],
        i: usize,
    ) -> Decoded<&'o Operand> {
        operands
            .get(i)
            .ok_or_else(|| self.error(format!("operand {} is missing", i + 1)))
    }

    pub(in crate::decode) fn pred_named(&self, name: &str) -> Decoded<Pred> {
        match self.lookup(name) {
            Some(Symbol::Pred(p)) => Ok(p),
            _ => Err(self.undefined(format!("`{name}` is no predicate"))),
        }
    }

    pub(in crate::decode) fn pred_dst(&mut self, operand: &Operand) -> Decoded<Pred> {
        match operand {
            Operand::Name(name) => self.pred_named(name),
            Operand::Sink => Ok(self.new_pred()),
            _ => Err(self.error("expected a predicate")),
        }
    }

    pub(in crate::decode) fn pred_src(&mut self, operand: &Operand) -> Decoded<PredSrc> {
        match operand {
            Operand::Name(name) => Ok(PredSrc(self.pred_named(name)?, false)),
            Operand::Not(name) => Ok(PredSrc(self.pred_named(name)?, true)),
            Operand::Int(n) => Ok(PredSrc(0, *n == 0)),
            _ => Err(self.error("expected a predicate")),
        }
    }

    pub(in crate::decode) fn is_pred(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Name(name) | Operand::Not(name) => {
                matches!(self.lookup(name), Some(Symbol::Pred(_)))
            }
            _ => false,
        }
    }

    /// A register that is written; `_` is a register that nobody reads.
    pub(in crate::decode) fn dst(&mut self, operand: &Operand) -> Decoded<Slot> {
        Ok(self.dst_bytes(operand)?.0)
    }

    pub(in crate::decode) fn dst_bytes(&mut self, operand: &Operand) -> Decoded<(Slot, u8)> {
        match operand {
            Operand::Name(name) => match self.lookup(name) {
                Some(Symbol::Reg(slot, bytes)) => Ok((slot, bytes)),
                _ => Err(self.undefined(format!("`{name}` is no register to write"))),
            },
            Operand::Sink => Ok((self.new_slot(), 8)),
            _ => Err(self.error("expected a register to write")),
        }
    }

    /// A value of type `ty`.
    pub(in crate::decode) fn src(&mut self, operand: &Operand, ty: &str) -> Decoded<Slot> {
        match operand {
            Operand::Name(name) => self.named(name, 0),
            Operand::Offset(name, offset) => self.named(name, *offset),
            Operand::Int(n) => {
                let bits = match ty {
                    "f32" => u64::from((*n as i64 as f32).to_bits()),
                    "f64" => (*n as i64 as f64).to_bits(),
                    _ => *n,
                };
                let bytes = crate::ptx::type_bytes(ty).unwrap_or(8);
                Ok(self.constant(if bytes >= 8 {
                    bits
                } else {
                    bits & ((1 << (8 * bytes)) - 1)
                }))
            }
            Operand::F32(bits) => Ok(self.constant(u64::from(*bits))),
            Operand::F64(bits) => {
                let value = f64::from_bits(*bits);
                Ok(self.constant(match ty {
                    "f32" | "b32" => u64::from((value as f32).to_bits()),
                    "f16" => u64::from(half::f16::from_f64(value).to_bits()),
                    "bf16" => u64::from(half::bf16::from_f64(value).to_bits()),
                    _ => *bits,
                }))
            }
            Operand::Sink => Ok(0),
            _ => Err(self.error("expected a register or a constant")),
        }
    }

    fn named(&mut self, name: &str, offset: i64) -> Decoded<Slot> {
        match self.lookup(name) {
            Some(Symbol::Reg(slot, _)) if offset == 0 => Ok(slot),
            Some(Symbol::Reg(..)) => {
                Err(self.error("a register plus an offset is no operand outside brackets"))
            }
            Some(Symbol::Pred(_)) => {
                Err(self.error(format!("`{name}` is a predicate, a register is needed")))
            }
            Some(Symbol::Shared(index)) => {
                self.use_shared(index);
                Ok(self.preloaded(Preload::Shared(index, offset)))
            }
            Some(Symbol::Global(index)) => Ok(self.preloaded(Preload::Global(index, offset))),
            Some(Symbol::Local(at, ..)) => {
                Ok(self.preloaded(Preload::Local(at.wrapping_add_signed(offset))))
            }
            Some(Symbol::KernelParam(at)) => Ok(self.constant(at.wrapping_add_signed(offset))),
            Some(Symbol::Function(index)) => {
                self.func.calls_indirect = true;
                Ok(self.preloaded(Preload::Function(index)))
            }
            None => {
                if let Some(special) = special(name) {
                    return Ok(self.preloaded(special));
                }
                let known = name.starts_with("%pm") || !name.contains(|c: char| c.is_ascii_digit());
                if name.starts_with('%') && known {
                    return Err(self.error(format!("special register `{name}` is not supported")));
                }
                Err(self.undefined(format!("`{name}` is not defined")))
            }
        }
    }

    pub(in crate::decode) fn use_shared(&mut self, index: usize) {
        if !self.func.shared.contains(&index) {
            self.func.shared.push(index);
        }
    }

    /// `[base + offset]`: the base's slot, the offset, and what the base is.
    pub(in crate::decode) fn address(
        &mut self,
        operand: &Operand,
    ) -> Decoded<(Slot, i64, Option<Symbol>)> {
        let Operand::Memory(base, offset, _) = operand else {
            return Err(self.error("expected an address in brackets"));
        };
        if let Operand::Name(name) = base.as_ref() {
            let symbol = self.lookup(name);
            return Ok((self.named(name, 0)?, *offset, symbol));
        }
        Ok((self.src(base, "b64")?, *offset, None))
    }

    pub(in crate::decode) fn constant_of(&self, operand: &Operand) -> Decoded<u64> {
        match operand {
            Operand::Int(n) => Ok(*n),
            _ => Err(self.error("expected an integer constant")),
        }
    }

    /// The elements of `{a, b, ...}`, or the operand alone.
    pub(in crate::decode) fn elements<'o>(&self, operand: &'o Operand) -> &'o [Operand] {
        match operand {
            Operand::Vector(all) => all,
            other => std::slice::from_ref(other),
        }
    }
}
