//! Tables whose elements a kernel loads by index: what a broadcast repeats along dimensions that are neither all rows nor all columns, as the scale and the
//! shift of a modulated normalisation are, one of each for a batch and a column. A cheap map of such a table is computed of what is loaded, rather than by a
//! kernel of its own in front.

use super::between::Between;
use super::group::repeated_along;
use super::operators::{dims_of, is_reshape, reshaped, splat};
use super::rematerialize::{is_cheap, is_cheap_but_for};
use super::reshape::{element_bytes, reshape};
use super::rewritten::Rewritten;
use super::space::{product, source};
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses, users};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, walk};
use axe_dialect::ops;
use melior::ir::{Attribute, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::HashSet;

/// Operations of a map that is computed for each element, at most.
const MOST_OPERATIONS: usize = 6;
/// Values that are followed from one.
const MOST_FOLLOWED: usize = 64;
/// Elements for each of a table from which on it does not matter how wide its elements are.
const REPEATS: i64 = 16;
/// Operations that an epilogue computes for each row of its tile, beside cheap ones: what becomes of the variance of a channel.
const OF_ROWS: [&str; 4] = ["arith.divf", "math.absf", "math.rsqrt", "math.sqrt"];

/// Rewrites such broadcasts. `ops` are operations of a block in order; they are given with those that are new, and without those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn rewrite<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let mut ops = ops.to_vec();
    loop {
        let rewritten = Rewritten::of(&ops);
        let mut replaced = Vec::new();
        for &op in &ops {
            if let Some(table) = Table::of(op) {
                table.load(op)?;
                replaced.push(op);
            }
        }
        // What is read by nothing else then may be a map of a table, too.
        match replaced.is_empty() {
            true => return Ok(ops),
            false => ops = rewritten.without(replaced),
        }
    }
}

/// A map of a table, and the broadcast that repeats it.
struct Table<'c> {
    map: Op<'c>,
    dims: Vec<i64>,
    /// The shapes of what is repeated and of the result.
    shapes: [Vec<i64>; 2],
    result: Val<'c>,
}

impl<'c> Table<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let dims = dims_of(op).filter(|_| name(op) == ops::BROADCAST)?;
        let (repeated, result) = (source(op)?, only_result(op)?);
        let shapes = [shape_of(repeated)?, shape_of(result)?];
        let map = defining(reshaped(repeated))?;
        let is_map = [ops::MAP, ops::CAST].contains(&name(map).as_str());
        let few = walk::nested(map, &|_| true).len() <= MOST_OPERATIONS;
        let made = only_result(map)?;
        let mut others = operands(map).into_iter().filter(|value| !is_number(*value));
        let (from, None) = (others.next()?, others.next()) else {
            return None;
        };
        // Of a few times as many elements it would take longer to read wider ones.
        let bytes = |value| TensorType::of_value(value).map(|own| element_bytes(own.element));
        let [few_elements, elements] = [&shapes[0], &shapes[1]].map(|shape| product(shape));
        let is_small = few_elements?.saturating_mul(REPEATS) <= elements?;
        let is_taken = is_map
            && few
            && is_repeated(made)
            && (is_of_epilogue(map, from, op)
                || is_of_map(map, from, op)
                || is_cheap(map)
                    && is_in_memory(from, &[])
                    && is_between(&dims, &shapes[1])
                    && is_of_rows(result))
            && (is_small || bytes(from) <= bytes(made));
        is_taken.then_some(Self {
            map,
            dims,
            shapes,
            result,
        })
    }

    /// Computes the map of what is repeated.
    fn load(&self, op: Op<'c>) -> PassResult<'c> {
        let builder = Builder::before(op);
        let [from, to] = &self.shapes;
        let mut inputs = Vec::new();
        for operand in operands(self.map) {
            let element = builder.tensor_of(operand)?.element;
            let r#type = builder.tensor(to, element)?;
            inputs.push(match splat_of(operand) {
                Some(number) => Code { builder }.fill(builder.constant(number)?, r#type)?,
                None => {
                    let own = reshape(&builder, operand, from, None)?;
                    let dims = [("dims", builder.i64s(&self.dims))];
                    builder.value(ops::BROADCAST, &[own], r#type, &dims)?
                }
            });
        }
        let copy = builder.clone_of(self.map);
        let made = builder.result_of(copy)?;
        let r#type = builder.tensor_of(self.result)?;
        let r#type = builder.tensor(to, r#type.element)?;
        // SAFETY: the copy is live, the positions are those of its own operands, and the verifier checks it with its new type.
        unsafe {
            for (at, input) in (0..).zip(&inputs) {
                sys::mlirOperationSetOperand(copy.to_raw(), at, input.to_raw());
            }
            sys::mlirValueSetType(made.to_raw(), r#type.to_raw());
        }
        replace_all_uses(self.result, made);
        Ok(())
    }
}

/// Whether a broadcast along these dimensions to a shape adds neither the last ones, of rows, nor the first ones, of columns.
fn is_between(dims: &[i64], shape: &[i64]) -> bool {
    let kept = (0i64..)
        .zip(shape)
        .filter(|(dim, extent)| **extent != 1 && !dims.contains(dim));
    let kept: Vec<_> = kept.map(|(dim, _)| dim).collect();
    let added = |dim: &i64| {
        shape
            .get(usize::try_from(*dim).unwrap_or(usize::MAX))
            .is_some_and(|extent| *extent != 1)
    };
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else {
        return false;
    };
    let mut added = dims.iter().filter(|dim| added(dim));
    added.any(|dim| first < dim && dim < last)
}

/// The static extents of a tensor without an encoding.
fn shape_of(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    (!tensor.encoded && !tensor.shape.contains(&DYNAMIC)).then_some(tensor.shape)
}

fn splat_of(value: Val<'_>) -> Option<Attribute<'_>> {
    defining(reshaped(value)).and_then(splat)
}

fn is_number(value: Val<'_>) -> bool {
    splat_of(value).is_some()
}

/// Whether broadcasts alone read a value.
fn is_repeated(value: Val<'_>) -> bool {
    users(value).into_iter().all(|user| {
        let result = only_result(user).filter(|_| is_reshape(user));
        name(user) == ops::BROADCAST || result.is_some_and(is_repeated)
    })
}

/// Whether a value is computed with others that a kernel of rows has: of what reductions give, or for one. Loops form maps of tables themselves.
fn is_of_rows(value: Val<'_>) -> bool {
    met(value, ops::REDUCE).is_some()
}

/// Whether the epilogue of a product computes a map of what a broadcast repeats between its rows.
fn is_of_epilogue<'c>(map: Op<'c>, from: Val<'c>, repeat: Op<'c>) -> bool {
    let columns = || {
        let result = only_result(met(only_result(repeat)?, ops::GEMM)?)?;
        TensorType::of_value(result)?.shape.last().copied()
    };
    let between = || Between::of(repeat, only_result(repeat)?, columns()?);
    let cheap: &[_] = match between() {
        Some(Between::Element) => &OF_ROWS,
        Some(Between::Row { .. }) => &[],
        None => return false,
    };
    is_cheap_but_for(map, cheap) && is_in_memory(from, cheap)
}

/// Whether a kernel of maps alone computes a map of what a broadcast repeats along the last dimensions, which are its rows then.
fn is_of_map<'c>(map: Op<'c>, from: Val<'c>, repeat: Op<'c>) -> bool {
    let is_of_rows = || {
        let result = only_result(repeat)?;
        let columns = repeated_along(repeat, result)?;
        let between = Between::of(repeat, result, columns);
        let is_alone = met(result, ops::REDUCE)
            .or_else(|| met(result, ops::GEMM))
            .is_none();
        Some(columns >= REPEATS && between == Some(Between::Element) && is_alone)
    };
    is_cheap_but_for(map, &OF_ROWS) && is_in_memory(from, &OF_ROWS) && is_of_rows() == Some(true)
}

/// An operator of a name that a value meets along maps, of it or of what it is of.
fn met<'c>(value: Val<'c>, wanted: &str) -> Option<Op<'c>> {
    let (mut next, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = next.pop() {
        if !seen.insert(identity(value)) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        let around = defining(value).into_iter().chain(users(value));
        for op in around {
            match name(op).as_str() {
                own if own == wanted => return Some(op),
                ops::MAP | ops::CAST | ops::BROADCAST => {
                    next.extend(operands(op).into_iter().chain(only_result(op)));
                }
                _ if is_reshape(op) => {
                    next.extend(operands(op).into_iter().chain(only_result(op)));
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether a value is in memory, or computed of what is by other maps that are cheap, or of these operations.
fn is_in_memory(value: Val<'_>, others: &[&str]) -> bool {
    let Some(op) = defining(reshaped(value)) else {
        return true;
    };
    let is_map = [ops::MAP, ops::CAST].contains(&name(op).as_str());
    let mut read = operands(op).into_iter();
    match is_map {
        true => {
            let is_taken = |value| is_number(value) || is_in_memory(value, others);
            is_cheap_but_for(op, others) && read.all(is_taken)
        }
        false => ![ops::REDUCE, ops::BROADCAST].contains(&name(op).as_str()),
    }
}
