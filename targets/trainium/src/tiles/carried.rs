//! Tensors that loops carry: each has one buffer, which iterations write in place where they may, and a copy otherwise. Sums
//! of products stay in PSUM.

use super::lowering::{Lowering, Value, failed, key};
use super::storage::Tensor;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::value::{
    defining, identity, name, only_result, operands, parent, results, users,
};
use axe_passes::ir::{Op, Val, walk};
use axe_trn::dispatch;
use axe_trn::program::Space;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};
use std::collections::HashSet;

/// How a tensor is carried.
enum How<'c> {
    /// In a buffer of its own.
    Buffer(Tensor),
    /// As sums in PSUM, to which the value from before the loop is added behind it, unless that is zero.
    Sums(Tensor, Option<Val<'c>>),
}

/// One tensor that a loop carries.
struct Slot<'c> {
    argument: Val<'c>,
    yielded: Val<'c>,
    result: Val<'c>,
    how: How<'c>,
    /// Whether the yielded value is formed in the buffer itself.
    in_place: bool,
}

/// What a loop carries.
pub(super) struct Carried<'c> {
    slots: Vec<Slot<'c>>,
    /// The values from before the loop, where it has no iteration.
    unchanged: Vec<(Val<'c>, Val<'c>)>,
}

impl<'c> Lowering<'c> {
    /// Gives what a loop carries its buffers.
    pub(super) fn carry(
        &mut self,
        op: Op<'c>,
        arguments: &[Val<'c>],
        starts: &[Val<'c>],
        runs: bool,
    ) -> PassResult<'c, Carried<'c>> {
        let mut carried = Carried {
            slots: Vec::new(),
            unchanged: Vec::new(),
        };
        let results = results(op);
        let body = walk::blocks(op);
        let last = body
            .first()
            .and_then(|block| walk::operations(*block).pop());
        let yields = last.map(operands).unwrap_or_default();
        if yields.len() != starts.len() || results.len() != starts.len() {
            return Err(failed(op, "expected a loop that yields what it carries"));
        }
        for (at, start) in starts.iter().enumerate() {
            let (argument, yielded, result) = (arguments[at], yields[at], results[at]);
            if axe_passes::ir::TensorType::of_value(*start).is_none() {
                return Err(failed(
                    op,
                    "carries a scalar or storage: expected tensors alone, and indices formed of the loop's own",
                ));
            }
            if !runs {
                carried.unchanged.push((result, *start));
                continue;
            }
            let (how, in_place) = if is_accumulator(argument, yielded) {
                (self.carry_sums(op, argument, *start)?, true)
            } else {
                let buffer = self.carry_buffer(op, argument, *start)?;
                (How::Buffer(buffer), forms_in_place(argument, yielded))
            };
            carried.slots.push(Slot {
                argument,
                yielded,
                result,
                how,
                in_place,
            });
        }
        self.charge(op);
        Ok(carried)
    }

    fn carry_sums(
        &mut self,
        op: Op<'c>,
        argument: Val<'c>,
        start: Val<'c>,
    ) -> PassResult<'c, How<'c>> {
        if self.is_sum_of(start, op) {
            return Ok(How::Sums(self.tensor(start, op)?, None));
        }
        let sums = self.new_sums(argument, op)?;
        let start = match self.known(start, op)? {
            Value::Number(0.0) => None,
            _ => Some(start),
        };
        Ok(How::Sums(sums, start))
    }

    fn carry_buffer(
        &mut self,
        op: Op<'c>,
        argument: Val<'c>,
        start: Val<'c>,
    ) -> PassResult<'c, Tensor> {
        let known = self.known(start, op)?;
        let form = self.form(argument, op, Space::Sbuf)?;
        let to = self.tile(op, "carried", &form)?;
        match known {
            Value::Number(number) => {
                self.beside(op, |code| dispatch::fill(code, &to.region, number))?;
            }
            _ => {
                let from = self.tensor(start, op)?;
                self.beside(op, |code| dispatch::copy(code, &to.region, &from.region))?;
            }
        }
        Ok(to)
    }

    /// Begins an iteration.
    pub(super) fn enter(&mut self, carried: &Carried<'c>) {
        for slot in &carried.slots {
            match &slot.how {
                How::Buffer(buffer) => {
                    if slot.in_place {
                        self.targets.insert(identity(slot.yielded), buffer.clone());
                    }
                    self.know(slot.argument, Value::Tensor(buffer.clone()));
                }
                How::Sums(sums, _) => {
                    self.sums.insert(identity(slot.argument));
                    self.know(slot.argument, Value::Tensor(sums.clone()));
                }
            }
        }
    }

    /// Ends an iteration: what was not formed in place is copied. Buffers of the loop that others are copied from are read
    /// before they are written.
    pub(super) fn turn(&mut self, op: Op<'c>, carried: &Carried<'c>) -> PassResult<'c> {
        let own: HashSet<usize> = carried
            .slots
            .iter()
            .filter_map(|slot| match &slot.how {
                How::Buffer(buffer) => Some(buffer.region.buffer),
                How::Sums(..) => None,
            })
            .collect();
        let mut moves = Vec::new();
        for slot in &carried.slots {
            let How::Buffer(buffer) = &slot.how else {
                continue;
            };
            if let Value::Number(number) = self.known(slot.yielded, op)? {
                let region = buffer.region.clone();
                self.beside(op, |code| dispatch::fill(code, &region, number))?;
                continue;
            }
            let mut from = self.tensor(slot.yielded, op)?;
            if from.region == buffer.region {
                continue;
            }
            if own.contains(&from.region.buffer) {
                let form = self.form(slot.argument, op, Space::Sbuf)?;
                let kept = self.tile(op, "kept", &form)?;
                self.beside(op, |code| dispatch::copy(code, &kept.region, &from.region))?;
                from = kept;
            }
            moves.push((buffer.region.clone(), from.region));
        }
        for (to, from) in moves {
            self.beside(op, |code| dispatch::copy(code, &to, &from))?;
        }
        self.charge(op);
        Ok(())
    }

    /// Behind the loop: what its results are.
    pub(super) fn leave(&mut self, op: Op<'c>, carried: Carried<'c>) -> PassResult<'c> {
        for (result, start) in carried.unchanged {
            let known = self.known(start, op)?;
            self.know(result, known);
        }
        for slot in carried.slots {
            self.targets.remove(&identity(slot.yielded));
            let value = match slot.how {
                How::Buffer(buffer) => buffer,
                How::Sums(sums, None) => {
                    if users(slot.result).len() == 1 {
                        self.sums.insert(identity(slot.result));
                    }
                    sums
                }
                How::Sums(sums, Some(start)) => {
                    let start = self.tensor(start, op)?;
                    let to = self.tile_of(slot.result, op, "summed", Space::Sbuf)?;
                    self.add(op, &to, &start, &sums)?;
                    to
                }
            };
            self.know(slot.result, Value::Tensor(value));
        }
        self.charge(op);
        Ok(())
    }

    /// Whether a value is sums that an operation of the same block may add to.
    pub(super) fn is_sum_of(&self, value: Val<'c>, op: Op<'c>) -> bool {
        let block = match defining(value) {
            Some(made) => made.block(),
            None => argument_block(value),
        };
        self.sums.contains(&identity(value)) && block == op.block()
    }
}

/// The block of an argument, by the operation around it.
fn argument_block<'c>(argument: Val<'c>) -> Option<BlockRef<'c, 'c>> {
    walk::blocks(parent(argument)?).first().copied()
}

/// Whether a loop's argument is only what products add to, one after another, up to what the loop yields for it. Products
/// of f32 alone: others are converted on the way.
fn is_accumulator<'c>(argument: Val<'c>, yielded: Val<'c>) -> bool {
    if !is_f32(argument) {
        return false;
    }
    let mut value = argument;
    // A chain is no longer than the text.
    for _ in 0..1024 {
        if value == yielded {
            return value != argument;
        }
        let all = users(value);
        let [user] = all.as_slice() else {
            return false;
        };
        let next = match name(*user).as_str() {
            ops::GEMM => adds_to(*user, value),
            "scf.for" => carries_sums(*user, value),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    false
}

fn is_f32(value: Val<'_>) -> bool {
    super::storage::stored(value.r#type()) == Ok(axe_package::DType::F32)
}

/// The result of a product that adds to a value.
fn adds_to<'c>(gemm: Op<'c>, value: Val<'c>) -> Option<Val<'c>> {
    let parts: axe_dialect::ops::GemmOp = axe_dialect::Typed::of(gemm)?;
    let factor = parts.a == value || parts.b == value;
    (parts.acc == Some(value) && !factor).then_some(parts.result)
}

/// The result of a loop that adds products to a value.
fn carries_sums<'c>(inner: Op<'c>, value: Val<'c>) -> Option<Val<'c>> {
    let at = operands(inner)
        .iter()
        .skip(3)
        .position(|start| *start == value)?;
    let block = walk::blocks(inner).first().copied()?;
    let argument = *walk::block_arguments(block).get(at + 1)?;
    let yielded = *operands(walk::operations(block).pop()?).get(at)?;
    is_accumulator(argument, yielded).then(|| results(inner).get(at).copied())?
}

/// Whether what a loop yields may be formed in the buffer of what it carries: by an operator element by element of the
/// loop's body, behind which nothing reads the old value.
fn forms_in_place<'c>(argument: Val<'c>, yielded: Val<'c>) -> bool {
    let Some(op) = defining(yielded) else {
        return false;
    };
    let Some(block) = op.block().filter(|block| {
        let arguments = walk::block_arguments(*block);
        arguments.contains(&argument)
    }) else {
        return false;
    };
    if ![ops::MAP, ops::GEMM, ops::CAST].contains(&name(op).as_str()) || !writes_once(op) {
        return false;
    }
    let body = walk::operations(block);
    let place = |op: Op<'c>| body.iter().position(|known| key(*known) == key(op));
    let Some(own) = place(op) else {
        return false;
    };
    readers(argument, 0).into_iter().all(|(reader, direct)| {
        let mut around = Some(reader);
        while let Some(op) = around {
            if let Some(at) = place(op) {
                return at < own || at == own && direct;
            }
            around = op.parent_operation();
        }
        false
    })
}

/// Whether a map's last instruction alone writes its result: a choice is written in two.
fn writes_once(map: Op<'_>) -> bool {
    let body = walk::nested(map, &|_| true);
    let twice = ["arith.select", "math.powf", "math.fpowi"];
    body.into_iter()
        .all(|op| !twice.contains(&name(op).as_str()))
}

/// The operations that read a tensor, through other names for it too, and whether they read it under its own.
fn readers<'c>(value: Val<'c>, depth: usize) -> Vec<(Op<'c>, bool)> {
    const NAMES: [&str; 4] = [
        ops::BROADCAST,
        ops::EXTRACT_SLICE,
        ops::TRANSPOSE,
        ops::COPY,
    ];
    let mut found = Vec::new();
    for user in users(value) {
        found.push((user, depth == 0));
        if NAMES.contains(&name(user).as_str())
            && depth < 64
            && let Some(result) = only_result(user)
        {
            found.extend(readers(result, depth + 1));
        }
    }
    found
}
