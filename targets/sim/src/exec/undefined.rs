//! Values that loads took from memory that nothing wrote.
//!
//! Compilers load ahead of the test whether a value counts, as in CUB's merges: what is found is the use of
//! such a value, not its load. Registers and predicates carry the lanes that are undefined; storing one,
//! branching on it, and using it as an address or in an operation of the whole warp are uses. Where some bytes of a register are
//! undefined, arithmetic that takes the others alone (`prmt`, `and`, a shift) gives a defined value.

use super::step::alu;
use super::step::{Ctx, lanes_of};
use super::warp::Warp;
use super::warpwide::shuffle_source;
use crate::decode::lanes::LaneFn;
use crate::decode::{Combine, Op, Pred, PredSrc, Setp, Slot};
use crate::report::{Finding, FindingKind};
use std::collections::HashMap;

/// Lanes of a register or a predicate that are undefined, and the load that it comes from.
#[derive(Debug, Clone, Copy, Default)]
struct Lanes {
    mask: u32,
    /// Bits that may be undefined in these lanes. LLVM loads four bytes where three are wanted.
    bits: u64,
    origin: usize,
}

impl Lanes {
    fn join(self, other: Self) -> Self {
        if self.mask == 0 || other.mask == 0 {
            return if self.mask == 0 { other } else { self };
        }
        Self {
            mask: self.mask | other.mask,
            bits: self.bits | other.bits,
            origin: self.origin,
        }
    }

    /// The same lanes, undefined in all bits.
    fn whole(self) -> Self {
        Self {
            bits: u64::MAX,
            ..self
        }
    }

    fn within(self, mask: u32) -> Self {
        Self {
            mask: self.mask & mask,
            ..self
        }
    }
}

/// A warp's undefined values.
#[derive(Debug, Default)]
pub(crate) struct Undefined {
    regs: HashMap<usize, Lanes>,
    preds: HashMap<usize, Lanes>,
    /// The loads, as they are reported when a value is used.
    origins: Vec<Finding>,
}

/// Notes that `bits` of a lane of `reg` hold what nothing wrote; `message` says where it was loaded from.
pub(super) fn mark(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    (lane, reg, bits): (usize, usize, u64),
    message: String,
) {
    let place = ctx.place(warp, lane as u32);
    let all = warp.undefined.get_or_insert_default();
    let known = (all.origins.iter())
        .position(|o| o.place.line == place.line && o.place.function == place.function);
    let origin = known.unwrap_or_else(|| {
        let finding = Finding::new(FindingKind::Unwritten, place, message);
        all.origins.push(finding);
        all.origins.len() - 1
    });
    let lanes = all.regs.entry(reg).or_default();
    *lanes = lanes.join(Lanes {
        mask: 1 << lane,
        bits,
        origin,
    });
}

/// Follows undefined values through an instruction that is about to be executed.
pub(super) fn watch(ctx: &Ctx<'_, '_>, warp: &mut Warp) {
    let Some(mut all) = warp.undefined.take() else {
        return;
    };
    let step = Step { ctx, warp };
    step.follow(&mut all);
    if !(all.regs.is_empty() && all.preds.is_empty()) {
        warp.undefined = Some(all);
    }
}

struct Step<'s, 'a, 'b> {
    ctx: &'s Ctx<'a, 'b>,
    warp: &'s Warp,
}

impl Step<'_, '_, '_> {
    fn reg(&self, all: &Undefined, slot: Slot) -> Lanes {
        let found = all.regs.get(&(self.ctx.base + slot as usize));
        found.copied().unwrap_or_default()
    }

    fn pred(&self, all: &Undefined, pred: Pred) -> Lanes {
        let found = all.preds.get(&(self.ctx.preds + pred as usize));
        found.copied().unwrap_or_default()
    }

    fn follow(&self, all: &mut Undefined) {
        let inst = self.ctx.inst;
        let lanes = self.warp.fragments[self.ctx.at].mask;
        let guard = self.pred(all, inst.guard.0).within(lanes);
        match self.result(all) {
            Some(result) => self.write(all, result.join(guard), guard.mask),
            None => {
                let used = self.read(all).within(self.ctx.mask).join(guard);
                if used.mask != 0 {
                    self.report(all, used);
                }
                self.write(all, Lanes::default(), 0);
            }
        }
    }

    /// What registers the instruction reads hold.
    fn read(&self, all: &Undefined) -> Lanes {
        let mut read = Lanes::default();
        let op = &self.ctx.inst.op;
        op.registers(&mut |slot, write| {
            if !write {
                read = read.join(self.reg(all, slot));
            }
        });
        match op {
            Op::Vote { a, .. } => read.join(self.pred(all, a.0)),
            Op::Brx { index, .. } => read.join(self.reg(all, *index)),
            Op::Atom(atom) => read.join(self.reg(all, atom.addr)),
            _ => read,
        }
    }

    /// The lanes of the result that are undefined; `None` where undefined operands are a use.
    fn result(&self, all: &Undefined) -> Option<Lanes> {
        let value = |p: PredSrc| self.warp.pred(self.ctx.preds, p);
        Some(match &self.ctx.inst.op {
            Op::Selp { a, b, p, .. } => {
                let (taken, from) = (value(*p), self.pred(all, p.0));
                let a = self.reg(all, *a).within(taken | from.mask);
                a.join(self.reg(all, *b).within(!taken | from.mask))
                    .join(from)
            }
            Op::Setp(setp) | Op::Set { setp, .. } => self.compared(all, setp),
            Op::PredMov { a, .. } => self.pred(all, a.0),
            Op::PredLogic { op, a, b, .. } => combined(
                *op,
                (self.pred(all, a.0), value(*a)),
                (self.pred(all, b.0), value(*b)),
            ),
            Op::Shfl { mode, a, b, c, .. } => {
                let from = self.reg(all, *a);
                let [steps, bounds] = [b, c].map(|s| self.warp.reg(self.ctx.base, *s));
                let mask = lanes_of(u32::MAX).fold(0, |mask, lane| {
                    let (source, _) = shuffle_source(*mode, lane, steps[lane], bounds[lane]);
                    mask | (from.mask >> (source & 31) & 1) << lane
                });
                Lanes { mask, ..from }
            }
            Op::Alu { f, s, mods, .. } => self.computed(all, *f, s, *mods),
            Op::Mov { .. } => self.read(all),
            Op::Cvt { .. }
            | Op::CvtPack { .. }
            | Op::CvtUnpack { .. }
            | Op::Slct { .. }
            | Op::Carry { .. }
            | Op::MadCarry { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::CvtSat(_)
            | Op::Video(_) => self.read(all).whole(),
            _ => return None,
        })
    }

    /// The lanes in which arithmetic depends on undefined bits: where other values of these bits give other results.
    /// Values that are undefined as a whole are not tried.
    fn computed(&self, all: &Undefined, f: LaneFn, slots: &[Slot; 4], mods: u8) -> Lanes {
        let given = slots.map(|slot| self.reg(all, slot));
        let read = given.into_iter().fold(Lanes::default(), Lanes::join);
        if read.mask == 0 || read.bits == u64::MAX {
            return read.whole();
        }
        let values = slots.map(|slot| *self.warp.reg(self.ctx.base, slot));
        let outcome = |values: &[[u64; 32]; 4]| alu(f, values.each_ref(), mods);
        let before = outcome(&values);
        let mut mask = 0;
        for pattern in [u64::MAX, 0x5555_5555_5555_5555, 0x3333_3333_3333_3333] {
            let mut other = values;
            for (value, undefined) in other.iter_mut().zip(given) {
                for lane in lanes_of(undefined.mask) {
                    value[lane] ^= undefined.bits & pattern;
                }
            }
            let after = outcome(&other);
            let differs = (0..32).filter(|&lane| after[lane] != before[lane]);
            mask |= differs.fold(0, |mask, lane| mask | 1 << lane);
        }
        read.within(mask).whole()
    }

    fn compared(&self, all: &Undefined, setp: &Setp) -> Lanes {
        let own = self.reg(all, setp.a).join(self.reg(all, setp.b));
        let Some((op, p)) = setp.combine else {
            return own;
        };
        let other = (self.pred(all, p.0), self.warp.pred(self.ctx.preds, p));
        // What the comparison gives is not known yet: the outcome that leaves the most undefined.
        let worst = if op == Combine::Or { 0 } else { u32::MAX };
        combined(op, (own, worst), other)
    }

    /// Sets what the instruction writes, in the lanes that execute it and in `more`.
    fn write(&self, all: &mut Undefined, value: Lanes, more: u32) {
        let mask = self.ctx.mask | more;
        let put = |map: &mut HashMap<usize, Lanes>, key: usize| {
            let old = map.get(&key).copied().unwrap_or_default().within(!mask);
            let new = value.within(mask).join(old);
            if new.mask == 0 {
                map.remove(&key);
            } else {
                map.insert(key, new);
            }
        };
        let op = &self.ctx.inst.op;
        op.registers(&mut |slot, write| {
            if write {
                put(&mut all.regs, self.ctx.base + slot as usize);
            }
        });
        let mut pred = |p: Pred| put(&mut all.preds, self.ctx.preds + p as usize);
        match op {
            Op::Setp(setp) => {
                pred(setp.d);
                setp.q.into_iter().for_each(pred);
            }
            Op::PredMov { d, .. } | Op::PredLogic { d, .. } | Op::IsSpace { d, .. } => pred(*d),
            Op::Vote { p, .. } | Op::Elect { p, .. } => pred(*p),
            Op::Shfl { p: Some(p), .. } | Op::Match { p: Some(p), .. } => pred(*p),
            _ => {}
        }
    }

    fn report(&self, all: &Undefined, used: Lanes) {
        let Some(origin) = all.origins.get(used.origin) else {
            return;
        };
        let mut finding = origin.clone();
        let line = self.ctx.inst.line;
        finding.message += &format!("; the value is used at PTX line {line}");
        self.ctx.launch.record(finding);
    }
}

/// Lanes in which neither operand alone decides the outcome.
fn combined(op: Combine, (a, va): (Lanes, u32), (b, vb): (Lanes, u32)) -> Lanes {
    let (open_a, open_b) = match op {
        Combine::And => (va, vb),
        Combine::Or => (!va, !vb),
        Combine::Xor => (u32::MAX, u32::MAX),
    };
    a.within(open_b | b.mask).join(b.within(open_a | a.mask))
}
