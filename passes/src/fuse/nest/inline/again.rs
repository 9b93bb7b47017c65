//! What loops form again instead of reading it: normalised rows, of what they are normalised from and a factor or two a row. Stored for the
//! loops, they would be written once and read once more; formed again they cost a product or two an element.

use super::readers::{all_readers, elements, is_moved, is_turned, keeps_rows};
use super::{follows_kernel, follows_product, is_inlined, is_operand, is_reduced, is_stored};
use crate::PassResult;
use crate::fuse::operators::{is_reshape, reshaped, splat};
use crate::fuse::rematerialize::{is_cheap, is_cheap_but_for};
use crate::fuse::reshape::element_bytes;
use crate::fuse::rewritten::Rewritten;
use crate::ir::value::{defining, identity, name, only_result, operands, users};
use crate::ir::{Builder, Op, TensorType, Val, types, walk};
use axe_dialect::ops;
use melior::ir::ValueLike;
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// Operators that form such a value, at most.
const MOST_OPERATORS: usize = 32;
/// Elements of a row that a value a row stands for, at least.
const ROW: i64 = 16;

/// A value that loops form again.
pub(super) struct Again<'c> {
    /// What forms it, each after its operands; the value itself is the last.
    values: Vec<Val<'c>>,
    /// What kernels store for it.
    stored: Vec<Val<'c>>,
}

impl<'c> Again<'c> {
    /// None where others than loops read the value, or where forming it again saves nothing.
    pub(super) fn of(value: Val<'c>) -> Option<Self> {
        let moves = is_moved(value) || is_turned(value);
        if !moves || !is_for_loops(value) || !follows_kernel(value) {
            return None;
        }
        let mut formed = Formed::new(value);
        formed.is_once = is_formed_once(value);
        formed.visit(value)?;
        let gains = formed.is_reduced && formed.whole == 1;
        gains.then_some(Self {
            values: formed.values,
            stored: formed.stored,
        })
    }

    /// All such values.
    pub(super) fn all(ops: &[Op<'c>]) -> Vec<Self> {
        let all = ops.iter().filter_map(|op| Self::of(only_result(*op)?));
        all.collect()
    }

    /// Whether one of these operations forms it.
    pub(super) fn has(&self, ops: &HashSet<usize>) -> bool {
        let mut own = self.values.iter();
        own.any(|value| ops.contains(&identity(*value)))
    }

    /// Gives the value operators of its own, where others may read those that form it; the ones that it read before.
    fn separate(&self) -> PassResult<'c, Vec<Op<'c>>> {
        let Some((last, others)) = self.values.split_last() else {
            return Ok(Vec::new());
        };
        let Some(op) = defining(*last) else {
            return Ok(Vec::new());
        };
        let mut copies = Copies {
            builder: Builder::before(op),
            of: others.iter().map(|value| identity(*value)).collect(),
            made: HashMap::new(),
        };
        copies.read(op)?;
        Ok(others.iter().filter_map(|value| defining(*value)).collect())
    }
}

/// Gives each value that loops form again operators of its own. `ops` are operations of a block in order; they are given with the copies,
/// and without those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn separate<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for again in Again::all(ops) {
        replaced.extend(again.separate()?);
    }
    Ok(rewritten.without(replaced))
}

/// What loops form again, by value.
#[derive(Default)]
pub(super) struct Values {
    /// The values, and all that these are formed of.
    pub formed: HashSet<usize>,
    /// What is in memory for them.
    pub stored: HashSet<usize>,
}

impl Values {
    pub(super) fn of(all: &[Again<'_>]) -> Self {
        let formed = all.iter().flat_map(|again| &again.values);
        let stored = all.iter().flat_map(|again| &again.stored);
        Self {
            formed: formed.map(|value| identity(*value)).collect(),
            stored: stored.map(|value| identity(*value)).collect(),
        }
    }
}

/// Copies of operators at one place.
struct Copies<'c> {
    builder: Builder<'c>,
    /// The values whose operators are copied.
    of: HashSet<usize>,
    made: HashMap<usize, Val<'c>>,
}

impl<'c> Copies<'c> {
    /// Lets an operation read copies.
    fn read(&mut self, op: Op<'c>) -> PassResult<'c> {
        for (at, value) in (0..).zip(operands(op)) {
            let copy = self.value(value)?;
            // SAFETY: the position is that of an operand of a live operation, and a copy has its type.
            unsafe { sys::mlirOperationSetOperand(op.to_raw(), at, copy.to_raw()) };
        }
        Ok(())
    }

    fn value(&mut self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        if let Some(made) = self.made.get(&identity(value)) {
            return Ok(*made);
        }
        let of = |value| self.of.contains(&identity(value));
        let Some(op) = defining(value).filter(|_| of(reshaped(value))) else {
            return Ok(value);
        };
        let copy = self.builder.clone_of(op);
        // Its operands come before it.
        let before = Builder::before(copy);
        let after = std::mem::replace(&mut self.builder, before);
        self.read(copy)?;
        self.builder = after;
        let made = self.builder.result_of(copy)?;
        self.made.insert(identity(value), made);
        Ok(made)
    }
}

/// What a value is formed of.
struct Formed<'c> {
    elements: i64,
    bytes: i64,
    seen: HashSet<usize>,
    values: Vec<Val<'c>>,
    /// What is read.
    stored: Vec<Val<'c>>,
    /// Tensors of its size among them.
    whole: usize,
    /// Whether it depends on reductions.
    is_reduced: bool,
    /// Whether loops form each element once.
    is_once: bool,
}

impl<'c> Formed<'c> {
    fn new(value: Val<'c>) -> Self {
        Self {
            elements: elements(value),
            bytes: bytes(value),
            seen: HashSet::new(),
            values: Vec::new(),
            stored: Vec::new(),
            whole: 0,
            is_reduced: false,
            is_once: false,
        }
    }

    /// Reads what a value is formed of; none where that costs more than it saves.
    fn visit(&mut self, value: Val<'c>) -> Option<()> {
        let value = reshaped(value);
        if !self.seen.insert(identity(value)) {
            return Some(());
        }
        let op = defining(value).filter(|_| !is_stored(value));
        let Some(op) = op else {
            return self.stored(value);
        };
        match name(op).as_str() {
            ops::BROADCAST => {}
            ops::MAP | ops::CAST if self.is_few(value) => {
                let mut read = HashSet::new();
                if !is_quick(value, &mut read) || read.len() > 1 {
                    return self.stored(value);
                }
            }
            ops::MAP | ops::CAST if is_cheap(op) || self.is_once && is_narrow(op) => {
                let is_first = self.seen.len() == 1;
                if !is_first && self.is_narrow(value) && follows_product(value) {
                    return self.stored(value);
                }
            }
            _ => return None,
        }
        let known = is_inlined(op) && self.values.len() < MOST_OPERATORS;
        known.then_some(())?;
        operands(op)
            .into_iter()
            .try_for_each(|operand| self.visit(operand))?;
        self.values.push(value);
        Some(())
    }

    /// Takes note of a value in memory.
    fn stored(&mut self, value: Val<'c>) -> Option<()> {
        let op = defining(value);
        if op.is_some_and(|op| splat(op).is_some() || name(op) == ops::FILL) {
            return Some(());
        }
        self.is_reduced |= is_reduced(value);
        self.stored.push(value);
        if self.is_few(value) {
            return Some(());
        }
        self.whole += 1;
        self.is_narrow(value).then_some(())
    }

    /// Whether a value has one element for a row of the other or less.
    fn is_few(&self, value: Val<'c>) -> bool {
        elements(value).saturating_mul(ROW) <= self.elements
    }

    /// Whether elements of another value take no more memory.
    fn is_narrow(&self, value: Val<'c>) -> bool {
        bytes(value) <= self.bytes
    }
}

/// Whether nothing but a transpose, whose result loops read where they have it, reads a value.
fn is_formed_once(value: Val<'_>) -> bool {
    let readers = all_readers(value);
    let turned =
        |op: &Op<'_>| name(*op) == ops::TRANSPOSE && !only_result(*op).is_some_and(is_moved);
    readers.len() == 1 && readers.iter().all(turned)
}

/// Whether an operator has operations of arithmetic alone, on no more than 32 bits.
fn is_narrow(op: Op<'_>) -> bool {
    let is_known = |inner: Op<'_>| {
        let name = name(inner);
        let known = name == ops::YIELD || name.starts_with("arith.") || name.starts_with("math.");
        let mut all = operands(inner).into_iter().chain(only_result(inner));
        let is_number = name == "arith.constant";
        known && (is_number || all.all(|value| types::bits(value.r#type()) <= Some(32)))
    };
    let mut inside = walk::nested(op, &|_| true).into_iter();
    inside.all(is_known)
}

/// Whether a value of few elements is formed in a few clocks of what reductions give or is in memory, which is added to what is read.
fn is_quick(value: Val<'_>, read: &mut HashSet<usize>) -> bool {
    const QUICK: [&str; 3] = ["arith.divf", "math.rsqrt", "math.sqrt"];
    let value = reshaped(value);
    let Some(op) = defining(value).filter(|_| !is_stored(value)) else {
        read.insert(identity(value));
        return true;
    };
    let is_map = [ops::MAP, ops::CAST].contains(&name(op).as_str());
    is_map
        && is_cheap_but_for(op, &QUICK)
        && operands(op).into_iter().all(|value| is_quick(value, read))
}

fn bytes(value: Val<'_>) -> i64 {
    TensorType::of_value(value).map_or(0, |tensor| element_bytes(tensor.element))
}

/// Whether nothing but loops, maps, and transposes of rows that no product reads as they are, reads a value.
fn is_for_loops(value: Val<'_>) -> bool {
    users(value).into_iter().all(|user| {
        let result = only_result(user);
        match name(user).as_str() {
            ops::MAP | ops::CAST | "linalg.generic" | "tensor.extract" => true,
            ops::TRANSPOSE => keeps_rows(user) && !result.is_some_and(is_operand),
            _ => is_reshape(user) && result.is_some_and(is_for_loops),
        }
    })
}
