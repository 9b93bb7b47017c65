//! Transposes of whole rows that sink below what is computed of rows: normalised heads are the normalised rows of a linear layer's result in
//! another order. The rows' kernel reads memory as it lies then, and who reads the result elsewhere, attention or loops, reads it through the
//! transpose.

use super::operators::{dims_of, is_reshape, splat};
use super::rewritten::Rewritten;
use super::transposed::{Turned, key, permutation, set_type};
use crate::PassResult;
use crate::ir::value::{defining, identity, name, only_result, operands, users};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val};
use axe_dialect::ops;
use melior::ir::ValueLike;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use mlir_sys as sys;
use std::collections::HashSet;

/// Sinks such transposes. `ops` are operations of a block in order; they are given with those that are new, and without those that
/// nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn sink<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut gone = Vec::new();
    for (at, &op) in ops.iter().enumerate() {
        let behind = ops.get(at + 1..).unwrap_or_default();
        if let Some(below) = Below::of(op, behind) {
            below.rewrite()?;
            gone.push(op);
        }
    }
    Ok(rewritten.without(gone))
}

/// What is computed of rows below a transpose of whole rows.
struct Below<'c> {
    transpose: Op<'c>,
    turned: Turned,
    /// Operators of the transpose's shape, reductions along rows, and operators of what those give, in order.
    members: Vec<Op<'c>>,
    /// The one value that others read.
    left: Val<'c>,
}

impl<'c> Below<'c> {
    /// None where nothing reduces rows there, or others read more than one value.
    fn of(transpose: Op<'c>, behind: &[Op<'c>]) -> Option<Self> {
        if name(transpose) != ops::TRANSPOSE {
            return None;
        }
        let (own, result) = (permutation(transpose)?, only_result(transpose)?);
        let shape = TensorType::of_value(result)?.shape;
        let rank = shape.len();
        if own.last() != Some(&rank.checked_sub(1)?) || shape.contains(&DYNAMIC) {
            return None;
        }
        let turned = Turned::new(own);
        let mut found = Vec::new();
        let mut values: HashSet<usize> = [identity(result)].into();
        for &op in behind {
            let reads = operands(op)
                .iter()
                .any(|value| values.contains(&identity(*value)));
            if reads && joins(op, rank, &turned, &values) {
                values.extend(only_result(op).map(identity));
                found.push(op);
            }
        }
        // Others read one value: what forms a second one is theirs.
        loop {
            if !found.iter().any(|op| name(*op) == ops::REDUCE) {
                return None;
            }
            let inside: HashSet<usize> = found.iter().map(key).collect();
            let results = found.iter().filter_map(|op| only_result(*op));
            let all = std::iter::once(result).chain(results);
            let left: Vec<_> = all
                .filter(|value| users(*value).iter().any(|op| !inside.contains(&key(op))))
                .collect();
            match left[..] {
                [left] if left != result && shape_of(left).as_ref() == Some(&shape) => {
                    return Some(Self {
                        transpose,
                        turned,
                        members: found,
                        left,
                    });
                }
                _ => found.pop()?,
            };
        }
    }

    fn rewrite(&self) -> PassResult<'c> {
        let inside: HashSet<usize> = self.members.iter().map(key).collect();
        let outside = |value: Val<'c>| {
            let all = users(value).into_iter();
            all.filter(|op| !inside.contains(&key(op)))
                .collect::<Vec<_>>()
        };
        let (readers, r#type) = (outside(self.left), self.left.r#type());
        for &op in &self.members {
            if name(op) == ops::MAP {
                for value in operands(op) {
                    let is_member =
                        defining(value).is_some_and(|from| inside.contains(&key(&from)));
                    if !is_member && defining(value) != Some(self.transpose) {
                        self.turned.repeat(op, value)?;
                    }
                }
            }
            let Some(result) = only_result(op) else {
                continue;
            };
            let own = self.turned.r#type(&Builder::before(op), result)?;
            set_type(result, own);
            if name(op) == "tensor.expand_shape" {
                let builder = Builder::before(op);
                let shape = builder.i64s(&builder.tensor_of(result)?.shape);
                // SAFETY: the operation is live, and nothing else refers to its attributes.
                unsafe { OperationRefMut::from_raw(op.to_raw()) }
                    .set_attribute("static_output_shape", shape);
            }
        }
        let (Some(from), Some(to)) = (
            operands(self.transpose).first().copied(),
            only_result(self.transpose),
        ) else {
            return Ok(());
        };
        for op in users(to) {
            replace(op, to, from);
        }
        let Some(after) = defining(self.left).and_then(|op| op.next_in_block()) else {
            return Ok(());
        };
        let builder = Builder::before(after);
        let order: Vec<_> = self.turned.order();
        let permutation = [("permutation", builder.i64s(&order))];
        let again = builder.value(ops::TRANSPOSE, &[self.left], r#type, &permutation)?;
        for reader in readers {
            replace(reader, self.left, again);
        }
        Ok(())
    }
}

/// Whether an operator belongs to what is computed of rows: of values of the transpose's shape, or of one a row.
fn joins(op: Op<'_>, rank: usize, turned: &Turned, values: &HashSet<usize>) -> bool {
    let Some(shape) = only_result(op).and_then(shape_of) else {
        return false;
    };
    let own = |value: &Val<'_>| values.contains(&identity(*value));
    let last = i64::try_from(rank).map(|rank| rank - 1);
    let along_rows =
        || dims_of(op).is_some_and(|dims| dims.first().copied() == last.ok() && dims.len() == 1);
    match name(op).as_str() {
        ops::MAP | ops::CAST => {
            let is_full = shape.len() == rank && shape.last() != Some(&1);
            operands(op).iter().all(|value| {
                let from = defining(*value);
                own(value)
                    || from.is_some_and(|from| match is_full {
                        true => turned.is_repeated(from),
                        false => splat(from).is_some() || name(from) == ops::FILL,
                    })
            })
        }
        ops::REDUCE => along_rows(),
        ops::BROADCAST => along_rows() && shape.len() == rank,
        _ if is_reshape(op) => {
            // A last dimension of one comes or goes.
            let from = operands(op).first().copied().and_then(shape_of);
            let without = |shape: &[i64]| match shape.split_last() {
                Some((1, rest)) if shape.len() == rank => rest.to_vec(),
                _ => shape.to_vec(),
            };
            from.is_some_and(|from| {
                without(&from) == without(&shape) && without(&shape).len() + 1 == rank
            })
        }
        _ => false,
    }
}

fn shape_of(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    (!tensor.encoded && !tensor.shape.contains(&DYNAMIC)).then_some(tensor.shape)
}

/// Lets an operation read another value.
fn replace<'c>(op: Op<'c>, old: Val<'c>, new: Val<'c>) {
    for (at, operand) in (0..).zip(operands(op)) {
        if operand == old {
            // SAFETY: the position is that of an operand of a live operation.
            unsafe { sys::mlirOperationSetOperand(op.to_raw(), at, new.to_raw()) };
        }
    }
}
