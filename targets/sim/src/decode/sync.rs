//! Decodes control flow, warp-wide operations, barriers, fences and mbarriers.

use super::lower::{Decoded, Lower, Symbol};
use super::memory::{kind_of, reduce_op};
use super::{Callee, MbarOp, Op, Order, Passed, ShflMode};
use crate::ptx::ast::Operand;
use crate::units::reduce::{Kind, Op as ReduceOp};

impl Lower<'_> {
    pub(super) fn control(&mut self, parts: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let (name, mods) = parts.split_first().unwrap_or((&"", &[]));
        Ok(Some(match *name {
            "bra" => Op::Bra {
                target: self.label(ops.first())?,
                reconverge: None,
            },
            "brx" => {
                let index = self.src(self.nth(ops, 0)?, "u32")?;
                let Operand::Name(list) = self.nth(ops, 1)? else {
                    return Err(self.error("brx.idx needs a list of targets"));
                };
                let Some(names) = self.targets(list) else {
                    return Err(self.error(format!("no .branchtargets `{list}`")));
                };
                let targets = names
                    .iter()
                    .map(|n| self.label_named(n))
                    .collect::<Decoded<_>>()?;
                Op::Brx {
                    index,
                    targets,
                    reconverge: None,
                }
            }
            "call" => self.call(ops)?,
            "ret" => Op::Ret,
            "exit" => Op::Exit,
            "trap" | "brkpt" => Op::Trap,
            "alloca" => Op::Alloca {
                d: self.dst(self.nth(ops, 0)?)?,
                bytes: self.src(self.nth(ops, 1)?, "u64")?,
                align: ops.get(2).map_or(Ok(8), |n| self.constant_of(n))?,
            },
            "stacksave" => Op::StackSave {
                d: self.dst(self.nth(ops, 0)?)?,
            },
            "stackrestore" => Op::StackRestore {
                a: self.src(self.nth(ops, 0)?, "u64")?,
            },
            "nanosleep" => Op::Sleep,
            "griddepcontrol" | "pmevent" => Op::Nop,
            "setmaxnreg" => {
                let count = self.constant_of(self.nth(ops, 0)?)? as u32;
                if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
                    return Err(self.error("setmaxnreg takes a multiple of 8 from 24 to 256"));
                }
                Op::SetMaxNReg {
                    count,
                    increase: mods.contains(&"inc"),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn call(&mut self, ops: &[Operand]) -> Decoded<Op> {
        let (results, rest) = match ops.first() {
            Some(Operand::List(results)) => (results.clone(), &ops[1..]),
            _ => (Vec::new(), ops),
        };
        let Some(Operand::Name(name)) = rest.first() else {
            return Err(self.error("call needs a function"));
        };
        let args = match rest.get(1) {
            Some(Operand::List(args)) => args.clone(),
            _ => Vec::new(),
        };
        let callee = match self.lookup(name) {
            Some(Symbol::Function(index)) => {
                self.func.calls.push(index);
                Callee::Direct(index)
            }
            Some(Symbol::Reg(slot, _)) => {
                self.func.calls_indirect = true;
                Callee::Indirect(slot)
            }
            _ => return Err(self.error(format!("`{name}` is no function"))),
        };
        let args = args
            .iter()
            .map(|a| self.passed(a, false))
            .collect::<Decoded<_>>()?;
        let results = results
            .iter()
            .map(|a| self.passed(a, true))
            .collect::<Decoded<_>>()?;
        Ok(Op::Call {
            callee,
            args,
            results,
        })
    }

    fn passed(&mut self, operand: &Operand, written: bool) -> Decoded<Passed> {
        if let Operand::Name(name) = operand
            && let Some(Symbol::Local(offset, bytes, true)) = self.lookup(name)
        {
            return Ok(Passed::Local(offset, bytes));
        }
        Ok(Passed::Slot(if written {
            self.dst(operand)?
        } else {
            self.src(operand, "b64")?
        }))
    }

    pub(super) fn sync(&mut self, parts: &[&str], ops: &[Operand]) -> Decoded<Option<Op>> {
        let (name, mods) = parts.split_first().unwrap_or((&"", &[]));
        let has = |m: &str| mods.contains(&m);
        Ok(Some(match *name {
            "bar" if has("warp") => Op::WarpSync {
                mask: self.src(self.nth(ops, 0)?, "b32")?,
            },
            "barrier" if has("cluster") => {
                if has("arrive") {
                    Op::ClusterArrive {
                        release: !has("relaxed"),
                    }
                } else {
                    Op::ClusterWait
                }
            }
            "bar" | "barrier" => self.barrier(name, mods, ops)?,
            "membar" => {
                if mods.iter().any(|m| m.starts_with("proxy")) {
                    Op::ProxyFence
                } else {
                    Op::Fence {
                        order: Order::AcqRel,
                    }
                }
            }
            "fence" if has("acquire") && has("tensormap::generic") => {
                let (addr, offset, _) = self.address(self.nth(ops, 0)?)?;
                Op::MapFence { addr, offset }
            }
            "fence" if mods.iter().any(|m| m.starts_with("proxy")) => Op::ProxyFence,
            "fence" => Op::Fence {
                order: if has("acquire") {
                    Order::Acquire
                } else if has("release") || has("mbarrier_init") {
                    Order::Release
                } else {
                    Order::AcqRel
                },
            },
            "shfl" => self.shuffle(mods, ops)?,
            "vote" => self.vote(mods, ops)?,
            "match" => {
                let (d, p) = match self.nth(ops, 0)? {
                    Operand::Pair(d, p) => (self.dst(d)?, Some(self.pred_dst(p)?)),
                    other => (self.dst(other)?, None),
                };
                let a = self.src(self.nth(ops, 1)?, "b64")?;
                Op::Match {
                    all: has("all"),
                    d,
                    p,
                    a,
                    mask: self.src(self.nth(ops, 2)?, "b32")?,
                }
            }
            "redux" => {
                let ty = mods.last().copied().unwrap_or("");
                let (Some(op), Some((kind, _))) = (reduce_op(mods), kind_of(ty)) else {
                    return Err(self.error("unsupported redux"));
                };
                if kind == Kind::F32 && !matches!(op, ReduceOp::Min | ReduceOp::Max) {
                    return Err(self.error("redux of f32 is min or max"));
                }
                let d = self.dst(self.nth(ops, 0)?)?;
                let a = self.src(self.nth(ops, 1)?, ty)?;
                let mask = self.src(self.nth(ops, 2)?, "b32")?;
                Op::Redux {
                    op,
                    kind,
                    d,
                    a,
                    mask,
                    abs: has("abs"),
                    nan: has("NaN"),
                }
            }
            "activemask" => Op::ActiveMask {
                d: self.dst(self.nth(ops, 0)?)?,
            },
            "elect" => {
                let (d, p) = match self.nth(ops, 0)? {
                    Operand::Pair(d, p) => (self.dst(d)?, self.pred_dst(p)?),
                    _ => return Err(self.error("elect.sync writes a register and a predicate")),
                };
                Op::Elect {
                    d,
                    p,
                    mask: self.src(self.nth(ops, 1)?, "b32")?,
                }
            }
            "mbarrier" => self.mbarrier(mods, ops)?,
            _ => return Ok(None),
        }))
    }

    fn barrier(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let aligned = name == "bar" || mods.contains(&"aligned");
        if mods.contains(&"red") {
            let wanted = mods
                .iter()
                .position(|m| matches!(*m, "popc" | "and" | "or"));
            let mode = match wanted.and_then(|i| mods.get(i)) {
                Some(&"popc") => 0,
                Some(&"and") => 1,
                _ => 2,
            };
            let result = self.nth(ops, 0)?;
            let (slot, pred) = if mode == 0 {
                (self.dst(result)?, self.new_pred())
            } else {
                (0, self.pred_dst(result)?)
            };
            let id = self.src(self.nth(ops, 1)?, "b32")?;
            let count = if ops.len() > 3 {
                Some(self.src(self.nth(ops, 2)?, "b32")?)
            } else {
                None
            };
            let p = self.pred_src(self.nth(ops, ops.len() - 1)?)?;
            return Ok(Op::Barrier {
                id,
                count,
                arrive: false,
                aligned,
                red: Some((mode, slot, pred, p)),
            });
        }
        let id = self.src(self.nth(ops, 0)?, "b32")?;
        let count = match ops.get(1) {
            Some(operand) => Some(self.src(operand, "b32")?),
            None => None,
        };
        Ok(Op::Barrier {
            id,
            count,
            arrive: mods.contains(&"arrive"),
            aligned,
            red: None,
        })
    }

    fn shuffle(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let mode = mods.iter().find_map(|m| {
            Some(match *m {
                "up" => ShflMode::Up,
                "down" => ShflMode::Down,
                "bfly" => ShflMode::Bfly,
                "idx" => ShflMode::Idx,
                _ => return None,
            })
        });
        let (Some(mode), true) = (mode, mods.contains(&"sync")) else {
            return Err(self.error("only shfl.sync is supported"));
        };
        let (d, p) = match self.nth(ops, 0)? {
            Operand::Pair(d, p) => (self.dst(d)?, Some(self.pred_dst(p)?)),
            other => (self.dst(other)?, None),
        };
        let a = self.src(self.nth(ops, 1)?, "b32")?;
        let (b, c) = (
            self.src(self.nth(ops, 2)?, "b32")?,
            self.src(self.nth(ops, 3)?, "b32")?,
        );
        Ok(Op::Shfl {
            mode,
            d,
            p,
            a,
            b,
            c,
            mask: self.src(self.nth(ops, 4)?, "b32")?,
        })
    }

    fn vote(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        if !mods.contains(&"sync") {
            return Err(self.error("only vote.sync is supported"));
        }
        let mode = mods.iter().find_map(|m| {
            Some(match *m {
                "all" => 0,
                "any" => 1,
                "uni" => 2,
                "ballot" => 3,
                _ => return None,
            })
        });
        let mode = mode.ok_or_else(|| self.error("vote without a mode"))?;
        let result = self.nth(ops, 0)?;
        let (d, p) = if mode == 3 {
            (self.dst(result)?, 0)
        } else {
            (0, self.pred_dst(result)?)
        };
        let a = self.pred_src(self.nth(ops, 1)?)?;
        Ok(Op::Vote {
            mode,
            d,
            p,
            a,
            mask: self.src(self.nth(ops, 2)?, "b32")?,
        })
    }

    fn mbarrier(&mut self, mods: &[&str], ops: &[Operand]) -> Decoded<Op> {
        let has = |m: &str| mods.contains(&m);
        let action = mods.first().copied().unwrap_or("");
        let state_first = matches!(action, "arrive" | "arrive_drop" | "test_wait" | "try_wait")
            && !matches!(ops.first(), Some(Operand::Memory(..)));
        let at = usize::from(state_first);
        if action == "pending_count" {
            let d = self.dst(self.nth(ops, 0)?)?;
            let a = self.src(self.nth(ops, 1)?, "b64")?;
            return Ok(Op::Mbar {
                op: Box::new(MbarOp::PendingCount(d, a)),
                addr: 0,
                offset: 0,
            });
        }
        let (addr, offset, _) = self.address(self.nth(ops, at)?)?;
        let op = match action {
            "init" => MbarOp::Init(self.src(self.nth(ops, 1)?, "b32")?),
            "inval" => MbarOp::Inval,
            "expect_tx" => MbarOp::ExpectTx(self.src(self.nth(ops, 1)?, "b32")?),
            "complete_tx" => MbarOp::CompleteTx(self.src(self.nth(ops, 1)?, "b32")?),
            "arrive" | "arrive_drop" => {
                let extra = match ops.get(at + 1) {
                    Some(operand) => Some(self.src(operand, "b32")?),
                    None => None,
                };
                let expecting = has("expect_tx");
                let state = match ops.first().filter(|_| state_first) {
                    Some(Operand::Sink) | None => None,
                    Some(operand) => Some(self.dst(operand)?),
                };
                MbarOp::Arrive {
                    count: extra.filter(|_| !expecting),
                    expect: extra.filter(|_| expecting),
                    drop: action == "arrive_drop",
                    no_complete: has("noComplete"),
                    release: !has("relaxed"),
                    state,
                }
            }
            "test_wait" | "try_wait" => MbarOp::Wait {
                d: self.pred_dst(self.nth(ops, 0)?)?,
                phase: self.src(self.nth(ops, 2)?, "b64")?,
                parity: has("parity"),
                blocking: action == "try_wait",
                acquire: !has("relaxed"),
            },
            other => return Err(self.error(format!("unsupported mbarrier operation `{other}`"))),
        };
        Ok(Op::Mbar {
            op: Box::new(op),
            addr,
            offset,
        })
    }
}
