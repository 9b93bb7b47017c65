//! How exact the values of a kernel need be: a backward analysis.
//!
//! A value whose uses are all rounded to a narrow type need not be more exact than that type shows. Products, quotients,
//! roots, maxima, sums of what is not negative and differences of what has other signs keep a relative error: need flows through them, through maps, casts,
//! reductions and loops. Sums and differences in general do not (`1 + tanh(x)` has no right digit where tanh is near -1 and
//! has 11 of them), nor do comparisons and other functions: their operands need all that their own type holds.
//!
//! What only sums show that are rounded to 16 bits may be 2^-20 of one wrong, which is what a logarithm takes over of its operand:
//! the terms of `x - max - log(sum exp(x - max))` need not be more exact than those of a softmax.
//!
//! What goes through memory of the CTA is shown as whatever reads it shows it ([`memory`]).
//!
//! `1 + tanh(x)`, `1 + erf(x)` and `log(1 + x)` are functions of their own: who emits them forms the whole without the
//! rounding of the inner part. [`Precision::is_biased`] names the inner functions whose every use is the addition of one, and
//! the logarithms whose operand is a sum with one; [`Precision::passed`] names the sums.

mod memory;
mod signs;

pub use signs::{is_at_least_one, is_not_negative};

use crate::ir::value::{defined_by, identity, name, operands, results, users};
use crate::ir::walk::{block_arguments, blocks, nested};
use crate::ir::{Op, TensorType, Val, attribute, types};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Type, TypeLike, ValueLike};
use std::collections::{HashMap, HashSet};

/// What the uses of a value show of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// It is rounded to f16, or to fewer bits.
    pub f16: bool,
    /// It is rounded to bf16.
    pub bf16: bool,
    /// It is the operand of a function whose result is narrow: 2^-20 of it may be wrong.
    pub close: bool,
    /// It is what a logarithm is of: numbers below 2^-126 count.
    pub tiny: bool,
    /// All that its type holds.
    pub full: bool,
    /// The same, and not only by sums and differences that are rounded to 16 bits: 2^-20 of one may be wrong of those.
    pub exact: bool,
}

impl Need {
    const FULL: Self = Self {
        f16: false,
        bf16: false,
        close: false,
        tiny: false,
        full: true,
        exact: true,
    };

    /// The need of what is rounded to a type.
    fn of(r#type: Type<'_>) -> Self {
        match (types::is_float(r#type), types::bits(r#type)) {
            (true, Some(..=16)) if is_bf16(r#type) => Self {
                bf16: true,
                ..Self::default()
            },
            (true, Some(..=16)) => Self {
                f16: true,
                ..Self::default()
            },
            _ => Self::FULL,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            f16: self.f16 || other.f16,
            bf16: self.bf16 || other.bf16,
            close: self.close || other.close,
            tiny: self.tiny || other.tiny,
            full: self.full || other.full,
            exact: self.exact || other.exact,
        }
    }

    /// Whether the value is used, and only where it is rounded to 16 bits.
    #[must_use]
    pub const fn is_narrow(self) -> bool {
        self.is_inexact() && !self.close
    }

    /// Whether the value is used, and nowhere as exact as f32 is.
    #[must_use]
    pub const fn is_inexact(self) -> bool {
        !self.full && (self.f16 || self.bf16)
    }

    /// The need of a function's operand.
    const fn of_operand(self) -> Self {
        match self.is_inexact() {
            true => Self {
                close: true,
                ..self
            },
            false => Self::FULL,
        }
    }

    /// The need of what is added to others, or subtracted: nothing is known of what is left of it.
    const fn of_summand(self) -> Self {
        match self.exact || !(self.f16 || self.bf16) {
            true => Self::FULL,
            false => Self {
                close: false,
                tiny: false,
                full: true,
                ..self
            },
        }
    }

    /// The need of what a logarithm is of. Where only sums and differences show the logarithm, and are rounded to 16 bits, it
    /// may be 2^-20 wrong, which is below half a unit in the last place of f16's numbers from 2^-8: so may be its operand.
    const fn of_logarithm(self) -> Self {
        match self.full && !self.exact {
            true => Self {
                close: true,
                tiny: true,
                full: false,
                ..self
            },
            false => Self::FULL,
        }
    }
}

/// Whether this is bf16.
#[must_use]
pub fn is_bf16(r#type: Type<'_>) -> bool {
    // SAFETY: the type is valid.
    unsafe { mlir_sys::mlirTypeIsABF16(r#type.to_raw()) }
}

/// What tells operations apart.
fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

/// What is known of a kernel's values.
#[derive(Clone, Debug, Default)]
pub struct Precision {
    needs: HashMap<usize, Need>,
    /// Of functions that are formed with one added, what is shown of the sums.
    sums: HashMap<usize, Need>,
    biased: HashSet<usize>,
    absolute: HashSet<usize>,
    passed: HashMap<usize, usize>,
    transcendental: bool,
}

impl Precision {
    /// Reads a kernel.
    #[must_use]
    pub fn of(kernel: Op<'_>) -> Self {
        let all = nested(kernel, &|_| true);
        let mut precision = Self {
            transcendental: all.iter().any(|op| is_transcendental(&name(*op))),
            ..Self::default()
        };
        // Loops carry need from one round to the next: it only grows, and each of a loop's values at most three times.
        while precision.pass(&all) {}
        for &op in all.iter().filter(|op| name(**op) == "math.log") {
            precision.find_logarithm(op);
        }
        precision
    }

    /// What the uses of a value show of it.
    #[must_use]
    pub fn need(&self, value: Val<'_>) -> Need {
        let identity = identity(value);
        let need = self
            .sums
            .get(&identity)
            .or_else(|| self.needs.get(&identity));
        need.copied().unwrap_or_default()
    }

    /// Whether the kernel has a function that is no arithmetic.
    #[must_use]
    pub const fn is_transcendental(&self) -> bool {
        self.transcendental
    }

    /// Whether a tanh or erf is to be formed with one added; whether a logarithm is of its operand and one.
    #[must_use]
    pub fn is_biased(&self, op: Op<'_>) -> bool {
        self.biased.contains(&number(op))
    }

    /// Whether a function's uses are all sums with constants of its own magnitude: an absolute error is what counts.
    #[must_use]
    pub fn is_absolute(&self, op: Op<'_>) -> bool {
        self.absolute.contains(&number(op))
    }

    /// The operand that a sum with one is, since that is formed with it or of it.
    #[must_use]
    pub fn passed(&self, op: Op<'_>) -> Option<usize> {
        self.passed.get(&number(op)).copied()
    }

    /// Goes through the operations, users first; true when a need grew.
    fn pass(&mut self, all: &[Op<'_>]) -> bool {
        let mut grew = false;
        for &op in all.iter().rev() {
            if ["math.tanh", "math.erf"].contains(&name(op).as_str()) {
                self.find_sums(op);
            }
            for (at, operand) in operands(op).into_iter().enumerate() {
                let demanded = self.demand(op, at);
                let own = self.needs.entry(identity(operand)).or_default();
                let joined = own.or(demanded);
                grew |= *own != joined;
                *own = joined;
            }
        }
        grew
    }

    /// What an operation shows of its operand.
    fn demand(&self, op: Op<'_>, at: usize) -> Need {
        let own = name(op);
        let result = results(op).first().copied();
        let (Some(result), own) = (result, own.as_str()) else {
            return self.demand_of_terminator(op, &own, at);
        };
        let kept = match own {
            "arith.truncf" => return Need::of(result.r#type()),
            ops::CAST => match element(result) {
                Some(to) if narrows(op, to) => return Need::of(to),
                to => to.is_some_and(types::is_float),
            },
            ops::MAP => {
                let argument = blocks(op).first().copied().map(block_arguments);
                let argument = argument.and_then(|arguments| arguments.get(at).copied());
                return argument.map_or(Need::FULL, |argument| self.need(argument));
            }
            "scf.for" => return self.demand_of_loop(op, at),
            ops::ALL_GATHER => {
                let gathered = results(op).get(at).copied();
                return gathered.map_or(Need::FULL, |gathered| self.need(gathered));
            }
            "arith.mulf" | "arith.divf" | "arith.negf" | "arith.extf" | "arith.maximumf"
            | "arith.minimumf" | "arith.maxnumf" | "arith.minnumf" | "math.absf" | "math.sqrt"
            | "math.rsqrt" => true,
            "math.tanh" | "math.erf" | "math.exp" | "math.exp2" => {
                return self.need(result).of_operand();
            }
            "math.log1p" => operands(op).into_iter().all(is_not_negative),
            "math.copysign" | "math.fpowi" => at == 0,
            "arith.select" => at > 0,
            "math.log" => return self.need(result).of_logarithm(),
            "arith.addf" if operands(op).into_iter().all(is_not_negative) => true,
            "arith.subf" if signs::is_away_from_zero(op) => true,
            "arith.addf" | "arith.subf" => return self.need(result).of_summand(),
            ops::REDUCE => match combiner(op) {
                Some(Combiner::Add) if operands(op).into_iter().all(is_not_negative) => true,
                Some(Combiner::Add) => return self.need(result).of_summand(),
                combiner => matches!(combiner, Some(Combiner::Max | Combiner::Min)),
            },
            ops::BROADCAST | ops::EXTRACT_SLICE | ops::TRANSPOSE | ops::COPY | ops::MASK => true,
            ops::SLICE | ops::PEER => true,
            _ => false,
        };
        match kept {
            true => self.need(result),
            false => Need::FULL,
        }
    }

    /// What a terminator, or another operation without a result, shows of its operand.
    fn demand_of_terminator(&self, op: Op<'_>, own: &str, at: usize) -> Need {
        match (own, around(op)) {
            (ops::COPY, _) => self.demand_of_store(op, at),
            (ops::YIELD, Some(map)) if name(map) == ops::MAP => {
                let result = results(map).first().copied();
                result.map_or(Need::FULL, |result| self.need(result))
            }
            ("scf.yield", Some(of)) if name(of) == "scf.for" => self.carried(of, at),
            _ => Need::FULL,
        }
    }

    /// What a loop shows of what it starts from.
    fn demand_of_loop(&self, around: Op<'_>, at: usize) -> Need {
        match at.checked_sub(LOOP_BOUNDS) {
            Some(at) => self.carried(around, at),
            None => Need::FULL,
        }
    }

    /// What is shown of a value that a loop carries.
    fn carried(&self, around: Op<'_>, at: usize) -> Need {
        let argument = blocks(around).first().copied().map(block_arguments);
        let argument = argument.and_then(|arguments| arguments.get(at + 1).copied());
        match (argument, results(around).get(at)) {
            (Some(argument), Some(result)) => self.need(argument).or(self.need(*result)),
            _ => Need::FULL,
        }
    }

    /// Notes a function all of whose uses are sums with a constant.
    fn find_sums(&mut self, op: Op<'_>) {
        let Some(&value) = results(op).first() else {
            return;
        };
        let Some(uses) = uses_in_maps(value) else {
            return;
        };
        let added = |&(user, at): &(Op<'_>, usize)| {
            let sums = ["arith.addf", "arith.subf"].contains(&name(user).as_str());
            sums.then(|| added_constant(user, at)).flatten()
        };
        if !uses.is_empty()
            && uses
                .iter()
                .all(|used| added(used).is_some_and(|by| by.abs() >= 0.25))
        {
            self.absolute.insert(number(op));
        }
        let is_one = |used: &(Op<'_>, usize)| {
            let result = results(used.0).first().copied();
            let narrow = result.is_some_and(|result| self.need(result).is_narrow());
            name(used.0) == "arith.addf" && narrow && added(used) == Some(1.0)
        };
        if is_f32(value) && !uses.is_empty() && uses.iter().all(is_one) {
            let sums = uses
                .iter()
                .filter_map(|(sum, _)| results(*sum).first().copied());
            let need = sums.fold(Need::default(), |need, sum| need.or(self.need(sum)));
            self.biased.insert(number(op));
            self.sums.insert(identity(value), need);
            self.passed
                .extend(uses.into_iter().map(|(user, at)| (number(user), at)));
        } else if self.biased.remove(&number(op)) {
            // In a loop more was found to be shown of a sum than before.
            self.sums.remove(&identity(value));
            for (user, _) in uses {
                self.passed.remove(&number(user));
            }
        }
    }

    /// Notes a logarithm of a sum with one that nothing else uses.
    fn find_logarithm(&mut self, op: Op<'_>) {
        let (Some(&result), Some(&operand)) = (results(op).first(), operands(op).first()) else {
            return;
        };
        let Some(sum) = defined_by(operand, "arith.addf") else {
            return;
        };
        let alone = users(operand).len() == 1;
        let other = (0..2).find(|&at| added_constant(sum, at) == Some(1.0));
        if let Some(at) = other.filter(|_| alone && is_f32(result) && self.need(result).is_narrow())
        {
            self.biased.insert(number(op));
            self.passed.insert(number(sum), at);
        }
    }
}

impl Precision {
    /// Whether a sum, difference or product of f32 may be joined with what it is formed of or goes into, with one rounding: it
    /// is inexact, or a product that only inexact sums take.
    #[must_use]
    pub fn may_contract(&self, op: Op<'_>) -> bool {
        let Some(&result) = results(op).first().filter(|_| self.transcendental) else {
            return false;
        };
        let inexact = |op: Op<'_>| {
            let result = results(op).first().copied();
            result.is_some_and(|result| self.need(result).is_inexact())
        };
        let is_sum = |op: Op<'_>| ["arith.addf", "arith.subf"].contains(&name(op).as_str());
        let users = users(result);
        is_f32(result)
            && (inexact(op)
                || !users.is_empty() && users.into_iter().all(|op| is_sum(op) && inexact(op)))
    }
}

/// Operands of `scf.for` before those that it carries: the bounds and the step.
const LOOP_BOUNDS: usize = 3;

/// Functions of the math dialect that are one rounding or none.
const ARITHMETIC: [&str; 8] = [
    "math.absf",
    "math.ceil",
    "math.floor",
    "math.trunc",
    "math.round",
    "math.roundeven",
    "math.fma",
    "math.copysign",
];

/// Whether an operation is a function that arithmetic alone does not compute.
#[must_use]
pub fn is_transcendental(name: &str) -> bool {
    name.starts_with("math.") && !ARITHMETIC.contains(&name)
}

/// The operation in whose region an operation is.
fn around(op: Op<'_>) -> Option<Op<'_>> {
    // SAFETY: the operation is live; a missing parent is null, which is checked.
    unsafe { OperationRef::from_option_raw(mlir_sys::mlirOperationGetParentOperation(op.to_raw())) }
}

fn is_f32(value: Val<'_>) -> bool {
    types::is_float(value.r#type()) && types::bits(value.r#type()) == Some(32)
}

/// The type of a value's elements; a scalar's own; none of memory.
fn element(value: Val<'_>) -> Option<Type<'_>> {
    match TensorType::of_value(value) {
        Some(tensor) => Some(tensor.element),
        None => types::is_float(value.r#type()).then(|| value.r#type()),
    }
}

/// Whether a conversion of floats is to fewer bits.
fn narrows(op: Op<'_>, to: Type<'_>) -> bool {
    let from = operands(op).first().copied().and_then(element);
    from.is_some_and(|from| types::is_float(from) && types::bits(to) < types::bits(from))
}

fn combiner(op: Op<'_>) -> Option<Combiner> {
    op.attribute("combiner")
        .ok()
        .and_then(|own| Combiner::cast(own))
}

/// The number that a constant of a float is.
#[must_use]
pub fn constant(value: Val<'_>) -> Option<f64> {
    let attribute = defined_by(value, "arith.constant")?
        .attribute("value")
        .ok()?;
    attribute::float(attribute).or_else(|| attribute::splat(attribute).and_then(attribute::float))
}

/// The number that a constant of an integer is.
#[must_use]
pub fn constant_integer(value: Val<'_>) -> Option<i64> {
    let attribute = defined_by(value, "arith.constant")?
        .attribute("value")
        .ok()?;
    attribute::integer(attribute)
}

/// The constant that is added to the operand `at` of a sum or a difference.
fn added_constant(sum: Op<'_>, at: usize) -> Option<f64> {
    let operands = operands(sum);
    constant(*operands.get(1_usize.checked_sub(at)?)?)
}

/// The uses of a scalar of a map's body, also by the bodies of maps that take the map's result; `None` when it leaves maps.
fn uses_in_maps<'c>(value: Val<'c>) -> Option<Vec<(Op<'c>, usize)>> {
    let mut found = Vec::new();
    for user in distinct(users(value)) {
        for at in positions(user, value) {
            if name(user) != ops::YIELD {
                found.push((user, at));
                continue;
            }
            let map = around(user).filter(|map| name(*map) == ops::MAP)?;
            let result = results(map).first().copied()?;
            for next in distinct(users(result)) {
                let body = (name(next) == ops::MAP).then(|| blocks(next).first().copied())??;
                let arguments = block_arguments(body);
                for at in positions(next, result) {
                    found.extend(uses_in_maps(*arguments.get(at)?)?);
                }
            }
        }
    }
    Some(found)
}

fn distinct(ops: Vec<Op<'_>>) -> Vec<Op<'_>> {
    let mut seen = HashSet::new();
    ops.into_iter()
        .filter(|op| seen.insert(number(*op)))
        .collect()
}

fn positions<'c>(user: Op<'c>, value: Val<'c>) -> Vec<usize> {
    let all = operands(user).into_iter().enumerate();
    let own = all.filter(|(_, operand)| identity(*operand) == identity(value));
    own.map(|(at, _)| at).collect()
}
