//! Operations whose results need not be as exact as their types: [`super::approximate`], as [`axe_passes::precision`] says.

use super::approximate::{
    self, Arithmetic, Divisor, EXPONENT, Function, Goal, Instruction, TAKEN_APART,
};
use super::emitter::Emitter;
use super::factors::by_ordinary_number;
use super::math::{EX2, Floats, LG2};
use super::schedules::convert;
use super::value::Bound;
use crate::state::types;
use axe_passes::fuse::peaks::{is_below_peak, reaches_one};
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{defined_by, operands, results};
use axe_passes::ir::{Op, Val};
use axe_passes::precision::{constant, is_at_least_one, is_bf16};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

impl<'c> Emitter<'c> {
    /// Emits an operation whose result need not be as exact as its type; false for others.
    pub(super) fn by_need(&mut self, op: Op<'c>, name: &str) -> PassResult<'c, bool> {
        let (Some(&result), operands) = (results(op).first(), operands(op)) else {
            return Ok(false);
        };
        if let Some(passed) = self.precision.passed(op).and_then(|at| operands.get(at)) {
            let value = self.scalar(*passed)?;
            self.bind(result, Bound::Scalar(value));
            return Ok(true);
        }
        if ["arith.addf", "arith.subf", "arith.mulf"].contains(&name) {
            return self.contracted(op, name);
        }
        let function = Function::of(name, self.precision.is_biased(op));
        if function.is_none() && name != "arith.divf" {
            return Ok(false);
        }
        let Some(goal) = self.goal(op, result) else {
            return self.shared_quotient(op, name);
        };
        if let Some(of) = self
            .constant_of(op, 0)
            .filter(|_| function == Some(Function::Sqrt))
        {
            let root = self.builder.float(result.r#type(), of.sqrt());
            let root = self.builder.constant(root)?;
            self.bind(result, Bound::Scalar(root));
            return Ok(true);
        }
        if let (Some(Function::Sin | Function::Cos), Some(x)) = (function, operands.first()) {
            let x = self.scalar(*x)?;
            let value = self.sine_by_need(name, x, (result.r#type(), true))?;
            self.bind(result, Bound::Scalar(value));
            return Ok(true);
        }
        let f32 = Floats::new(self);
        let wide = self.wide(&operands, f32.r#type)?;
        let value = match (function, wide.as_slice()) {
            (Some(Function::OnePlusErf), &[x]) => {
                approximate::one_plus_erf_of(&f32, by_ordinary_number(x), goal)?
            }
            (Some(function), &[x]) => function.at(&f32, x, goal)?,
            (None, &[a, b]) => match self.quotient(&f32, op, (a, b), goal)? {
                Some(quotient) => quotient,
                None => return Ok(false),
            },
            _ => return Ok(false),
        };
        let value = convert(self, value, result.r#type())?;
        self.bind(result, Bound::Scalar(value));
        Ok(true)
    }

    /// Emits a sum, a difference or a product that LLVM may join with others; false where it may not.
    fn contracted(&mut self, op: Op<'c>, name: &str) -> PassResult<'c, bool> {
        let (Some(&result), all) = (results(op).first(), operands(op)) else {
            return Ok(false);
        };
        if !self.precision.may_contract(op) || has_flags(op) {
            return Ok(false);
        }
        let by_constant = (0..all.len()).any(|at| self.constant_of(op, at).is_some());
        let inexact = self.precision.need(result).is_inexact();
        if inexact && let Some(value) = self.gathered(op, name)? {
            self.bind(result, Bound::Scalar(value));
            return Ok(true);
        }
        // Of products by constants one after the other one is left.
        let flags = match name == "arith.mulf" && by_constant && inexact {
            true => "reassoc,contract",
            false => "contract",
        };
        let flags = self.builder.parsed(&format!("#arith.fastmath<{flags}>"))?;
        let all = all.into_iter().map(|operand| self.scalar(operand));
        let all = all.collect::<PassResult<'c, Vec<_>>>()?;
        let value = self
            .builder
            .value(name, &all, result.r#type(), &[("fastmath", flags)])?;
        self.bind(result, Bound::Scalar(value));
        Ok(true)
    }

    /// A sum or a product of f32 with fewer constants ([`super::factors`]); `None` where there is none.
    fn gathered(&self, op: Op<'c>, name: &str) -> PassResult<'c, Option<Val<'c>>> {
        let f32 = Floats::new(self);
        let all = operands(op).into_iter().map(|own| self.scalar(own));
        let &[a, b] = &all.collect::<PassResult<'c, Vec<_>>>()?[..] else {
            return Ok(None);
        };
        if a.r#type() != f32.r#type {
            return Ok(None);
        }
        match (name, constant(a), constant(b)) {
            ("arith.addf", None, None) => f32.factored(op, [a, b]),
            ("arith.mulf", None, Some(by)) => f32.by_sum(a, by),
            ("arith.mulf", Some(by), None) => f32.by_sum(b, by),
            ("arith.mulf", None, None) => f32.without_numbers(a, b),
            _ => Ok(None),
        }
    }

    /// What is asked of an operation's result; `None` for all that its type holds.
    fn goal(&self, op: Op<'c>, result: Val<'c>) -> Option<Goal> {
        let (r#type, need) = (result.r#type(), self.precision.need(result));
        let allowed = allows_approximation(op);
        let absolute = self.precision.is_absolute(op);
        match (is_float(r#type), bits(r#type)?) {
            (true, 16) if is_bf16(r#type) => Some(Goal {
                flush: false,
                flush_operand: false,
                coarse: true,
                absolute,
                at_most_zero: false,
            }),
            (true, 16) => Some(Goal {
                flush: true,
                flush_operand: true,
                coarse: !need.full && !need.close || allowed,
                absolute,
                at_most_zero: false,
            }),
            (true, 32) if allowed => Some(Goal {
                flush: true,
                flush_operand: true,
                coarse: true,
                absolute,
                at_most_zero: false,
            }),
            (true, 32) if need.is_inexact() => Some(Goal {
                flush: reaches_one(op) || !need.bf16 && !need.tiny,
                flush_operand: false,
                coarse: need.is_narrow() && !need.f16,
                absolute,
                at_most_zero: is_below_peak(op),
            }),
            _ => None,
        }
    }

    /// A quotient of numbers of f32; `None` where it is best as it stands.
    fn quotient(
        &self,
        f32: &Floats<'_, 'c>,
        op: Op<'c>,
        (a, b): (Val<'c>, Val<'c>),
        goal: Goal,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let ordinary = |value: &f64| (2f64.powi(-100)..2f64.powi(100)).contains(&value.abs());
        if let Some(by) = self.constant_of(op, 1).filter(ordinary) {
            // LLVM multiplies by the reciprocal where that is exact.
            let exact = by.abs().log2().fract() == 0.0;
            return match exact {
                true => Ok(None),
                false => Arithmetic::mul(f32, a, f32.number(by.recip())?).map(Some),
            };
        }
        let small = bits(results(op).first().map_or(f32.r#type, ValueLike::r#type)) == Some(16);
        let of_constant = self.constant_of(op, 0).is_some_and(|a| ordinary(&a));
        let divisor = match operands(op).get(1) {
            _ if goal.flush && (small || of_constant || is_bounded(op)) => Divisor::Small,
            Some(shared) if self.is_shared(*shared) => Divisor::Shared,
            _ => Divisor::Any,
        };
        approximate::quotient(f32, (a, b), divisor).map(Some)
    }

    /// Emits a quotient of f32 whose divisor many registers have, or one of f32 or f64 whose divisor is a constant; false for others, and
    /// where LLVM multiplies by a constant's reciprocal, which is exact.
    fn shared_quotient(&mut self, op: Op<'c>, name: &str) -> PassResult<'c, bool> {
        let (Some(&result), &[over, under]) = (results(op).first(), &operands(op)[..]) else {
            return Ok(false);
        };
        let r#type = result.r#type();
        if name != "arith.divf" || !is_float(r#type) || has_flags(op) {
            return Ok(false);
        }
        let inexact = |by: &f64| by.is_normal() && by.abs().log2().fract() != 0.0;
        let constant = self.constant_of(op, 1).filter(inexact);
        let over = self.scalar(over)?;
        let value = match (bits(r#type), constant) {
            (Some(32), by) if by.is_some() || self.is_shared(under) => {
                approximate::quotient_of_f32(&Floats::new(self), over, self.scalar(under)?)?
            }
            (Some(64), Some(by)) if approximate::has_reciprocal(by) => {
                let emitter = &*self;
                approximate::quotient_by_constant(&Floats { emitter, r#type }, over, by)?
            }
            _ => return Ok(false),
        };
        self.bind(result, Bound::Scalar(value));
        Ok(true)
    }

    /// The number that an operand of an operation is in the code that was emitted.
    fn constant_of(&self, op: Op<'c>, at: usize) -> Option<f64> {
        let operand = operands(op).get(at).copied()?;
        self.scalar(operand).ok().and_then(constant)
    }
}

/// Whether a quotient is of a number of f16, and of one that is no less than one: `a (1 / b)` is below what f16 has where `1 / b` is zero.
fn is_bounded(quotient: Op<'_>) -> bool {
    let &[over, under] = &operands(quotient)[..] else {
        return false;
    };
    let from = defined_by(over, "arith.extf").and_then(|op| operands(op).first().copied());
    let is_f16 = |from: Val<'_>| bits(from.r#type()) == Some(16) && !is_bf16(from.r#type());
    from.is_some_and(is_f16) && is_at_least_one(under)
}

/// Whether an operation has flags of fast math of its own.
fn has_flags(op: Op<'_>) -> bool {
    let flags = op.attribute("fastmath").map(|flags| flags.to_string());
    flags.is_ok_and(|flags| !flags.contains("none"))
}

/// Whether an operation's flags allow approximations.
fn allows_approximation(op: Op<'_>) -> bool {
    let flags = op.attribute("fastmath").map(|flags| flags.to_string());
    flags.is_ok_and(|flags| {
        let mut flags = flags.split(|c: char| !c.is_ascii_alphanumeric());
        flags.any(|flag| ["afn", "fast"].contains(&flag))
    })
}

impl<'c> Arithmetic for Floats<'_, 'c> {
    type Value = Val<'c>;
    type Bit = Val<'c>;
    type Error = PassError<'c>;

    fn number(&self, value: f64) -> PassResult<'c, Val<'c>> {
        Floats::number(self, value)
    }

    fn add(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.apply("arith.addf", &[a, b])
    }

    fn mul(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let by_sum = match (constant(a), constant(b)) {
            (None, None) => return self.apply("arith.mulf", &[a, b]),
            (None, Some(by)) => self.by_sum(a, by)?,
            (Some(by), None) => self.by_sum(b, by)?,
            _ => None,
        };
        if let Some(value) = by_sum {
            return Ok(value);
        }
        let builder = self.emitter.builder;
        let flags = builder.parsed("#arith.fastmath<reassoc,contract>")?;
        builder.value("arith.mulf", &[a, b], self.r#type, &[("fastmath", flags)])
    }

    fn fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> PassResult<'c, Val<'c>> {
        Floats::fma(self, a, b, c)
    }

    fn reciprocal(&self, x: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.apply("arith.divf", &[Floats::number(self, 1.0)?, x])
    }

    fn quotient(&self, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.intrinsic("llvm.nvvm.div.full", &[a, b])
    }

    fn approximate(
        &self,
        instruction: Instruction,
        x: Val<'c>,
        flush: bool,
    ) -> PassResult<'c, Val<'c>> {
        let name = match (instruction, flush) {
            (Instruction::Ex2, true) => "llvm.nvvm.ex2.approx.ftz.f32",
            (Instruction::Ex2, false) => EX2,
            (Instruction::Lg2, true) => "llvm.nvvm.lg2.approx.ftz.f",
            (Instruction::Lg2, false) => LG2,
            (Instruction::Rsqrt, true) => "llvm.nvvm.rsqrt.approx.ftz.f",
            (Instruction::Rsqrt, false) => "llvm.nvvm.rsqrt.approx.f",
            (Instruction::Sqrt, true) => "llvm.nvvm.sqrt.approx.ftz.f",
            (Instruction::Sqrt, false) => "llvm.nvvm.sqrt.approx.f",
            (Instruction::Rcp, _) => "llvm.nvvm.rcp.approx.ftz.f",
            // LLVM has `tanh.approx` where approximations are allowed.
            (Instruction::Tanh, _) => return self.flagged("llvm.tanh.f32", &[x], "afn"),
        };
        self.intrinsic(name, &[x])
    }

    fn taken_apart(&self, x: Val<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let builder = self.emitter.builder;
        let int = types::integer(builder, 32);
        let number =
            |bits: u32| builder.constant(IntegerAttribute::new(int, i64::from(bits)).into());
        let on_ints = |name: &str, a, b| builder.value(name, &[a, b], int, &[]);
        let bits = builder.value("arith.bitcast", &[x], int, &[])?;
        let [from, four] = TAKEN_APART.map(number);
        let above = on_ints("arith.subi", bits, from?)?;
        let exponent = on_ints("arith.andi", above, number(EXPONENT.0)?)?;
        let power = on_ints("arith.shrsi", exponent, number(EXPONENT.1)?)?;
        let scale = on_ints("arith.subi", four?, exponent)?;
        Ok([
            self.apply("arith.sitofp", &[power])?,
            self.apply("arith.bitcast", &[scale])?,
        ])
    }

    fn signed(&self, x: Val<'c>, sum: Val<'c>) -> PassResult<'c, Val<'c>> {
        let builder = self.emitter.builder;
        let int = types::integer(builder, 32);
        let on_ints = |name: &str, a, b| builder.value(name, &[a, b], int, &[]);
        let to_bits = |value| builder.value("arith.bitcast", &[value], int, &[]);
        let last = builder.constant(IntegerAttribute::new(int, 31).into())?;
        let sign = on_ints("arith.shli", to_bits(sum)?, last)?;
        let bits = on_ints("arith.xori", to_bits(x)?, sign)?;
        self.apply("arith.bitcast", &[bits])
    }

    fn abs(&self, x: Val<'c>) -> PassResult<'c, Val<'c>> {
        let name = match bits(self.r#type) {
            Some(64) => "llvm.fabs.f64",
            _ => "llvm.fabs.f32",
        };
        self.intrinsic(name, &[x])
    }

    fn clamp(&self, x: Val<'c>, [least, most]: [f64; 2]) -> PassResult<'c, Val<'c>> {
        let above = self.apply("arith.maximumf", &[x, Floats::number(self, least)?])?;
        self.apply("arith.minimumf", &[above, Floats::number(self, most)?])
    }

    fn less(&self, a: Val<'c>, b: f64) -> PassResult<'c, Val<'c>> {
        Floats::less(self, a, b)
    }

    fn choose(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> PassResult<'c, Val<'c>> {
        Floats::choose(self, condition, yes, no)
    }
}
