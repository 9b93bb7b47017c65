//! Reductions over small windows as one body: pools, and convolutions of each channel by itself.
//!
//! Loops whose every point reduces a few elements become loops without reductions, whose body reads all of them. Such loops are one
//! kernel with what is around them ([`super::inline`]): padding in front of them, and a quotient, a bias or a cast behind. The order
//! of the reduction stays.

use super::inline::{is_computed, mapped};
use super::{Nest, Start, is_nest, maps};
use crate::PassResult;
use crate::error::PassError;
use crate::generalize::generic::{elementwise, extract};
use crate::ir::value::{
    defining, identity, is_used, name, only_result, operands, replace_all_uses,
};
use crate::ir::walk::{block_arguments, blocks, erase, operations};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline};
use axe_dialect::Typed;
use axe_dialect::ops::FillOp;
use melior::ir::AffineMap;
use melior::ir::operation::OperationLike;

/// Elements of a window, at most.
const MOST_TURNS: i64 = 32;
/// Operations of all the turns of a body, at most.
const MOST_OPERATIONS: i64 = 384;

/// Makes loops without reductions of those over small windows; all operations, with the new ones in the place of the old ones.
///
/// # Errors
/// When building fails.
pub fn unroll_windows<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let unrolled = |op: &Op<'c>| match Windows::of(*op) {
        Some(windows) => windows.replace(),
        None => Ok(*op),
    };
    ops.iter().map(unrolled).collect()
}

/// Loops that reduce windows.
struct Windows<'c> {
    nest: Nest<'c>,
    maps: Vec<AffineMap<'c>>,
    result: Val<'c>,
    /// For each loop, the dimension of the result that it is, or its extent where it is a reduction.
    loops: Vec<Loop>,
}

#[derive(Clone, Copy)]
enum Loop {
    Parallel(usize),
    Reduction(i64),
}

impl<'c> Windows<'c> {
    /// Reads loops; none where they do not reduce small windows of static tensors.
    fn of(op: Op<'c>) -> Option<Self> {
        let result = only_result(op).filter(|_| is_nest(op))?;
        let nest = Nest::read(op).ok()?;
        let maps = maps(op)?;
        let (out, inputs) = maps.split_last()?;
        let is_static = |value: &Val<'c>| {
            let tensor = TensorType::of_value(*value);
            tensor
                .is_none_or(|tensor| !tensor.shape.contains(&DYNAMIC) && !tensor.shape.contains(&0))
        };
        if !inputs.iter().all(|map| is_computed(*map)) || !operands(op).iter().all(is_static) {
            return None;
        }
        let loops: Option<Vec<Loop>> = (0..nest.reductions.len())
            .map(|at| match nest.reductions.get(at)? {
                true => nest.extents.get(at).copied().map(Loop::Reduction),
                false => dimension(*out, at).map(Loop::Parallel),
            })
            .collect();
        let rank = out.result_count();
        let windows = Self {
            loops: loops?,
            nest,
            maps,
            result,
        };
        let body = operations(blocks(op).first().copied()?);
        let turns = windows.turns();
        let length = i64::try_from(body.len()).ok()?;
        let plain = body.iter().all(|inner| inner.region_count() == 0);
        let parallel = windows.loops.iter();
        let parallel = parallel.filter(|own| matches!(own, Loop::Parallel(_)));
        let covers = parallel.count() == rank;
        let small =
            (2..=MOST_TURNS).contains(&turns) && turns.saturating_mul(length) <= MOST_OPERATIONS;
        (small && plain && covers).then_some(windows)
    }

    /// How many elements a window has.
    fn turns(&self) -> i64 {
        let extents = self.loops.iter().map(|own| match own {
            Loop::Reduction(extent) => *extent,
            Loop::Parallel(_) => 1,
        });
        extents.fold(1, i64::saturating_mul)
    }

    /// Builds the loops without reductions; the new operation.
    fn replace(&self) -> PassResult<'c, Op<'c>> {
        let op = self.nest.op;
        let builder = Builder::before(op);
        let missing = || PassError::new(op.location(), "expected loops with a body");
        let tensor = builder.tensor_of(self.result)?;
        let made = elementwise(&builder, &tensor, &[], |inner, at| {
            let mut value = self.start(inner, at)?;
            for turn in 0..self.turns() {
                value = Some(self.turn(inner, at, turn, value)?);
            }
            value.ok_or_else(missing)
        })?;
        replace_all_uses(self.result, made);
        erase(op);
        defining(made).ok_or_else(missing)
    }

    /// What the result starts from at an index; none where the body does not read it.
    fn start(&self, inner: &Builder<'c>, at: &[Val<'c>]) -> PassResult<'c, Option<Val<'c>>> {
        let init = self.nest.inits.first().copied();
        let value = match (self.nest.starts.first(), init) {
            (Some(Start::Number(number)), _) => inner.constant(*number)?,
            (Some(Start::Memory), Some(init)) => match FillOp::defining(init) {
                Some(fill) => fill.value,
                None => extract(inner, init, at)?,
            },
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// The indices of all loops in a turn, the last reduction's the fastest.
    fn index(
        &self,
        inner: &Builder<'c>,
        at: &[Val<'c>],
        turn: i64,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut rest = turn;
        let mut index = Vec::new();
        for own in self.loops.iter().rev() {
            index.push(match own {
                Loop::Parallel(dim) => {
                    let missing =
                        || PassError::new(inner.location, "expected an index of the result");
                    at.get(*dim).copied().ok_or_else(missing)?
                }
                Loop::Reduction(extent) => {
                    let place = rest % extent;
                    rest /= extent;
                    inner.index(place)?
                }
            });
        }
        index.reverse();
        Ok(index)
    }

    /// One turn of the body.
    fn turn(
        &self,
        inner: &Builder<'c>,
        at: &[Val<'c>],
        turn: i64,
        carried: Option<Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let op = self.nest.op;
        let missing = || PassError::new(op.location(), "expected a body that yields an element");
        let index = self.index(inner, at, turn)?;
        let block = blocks(op).first().copied().ok_or_else(missing)?;
        let mut values = inline::Values::new();
        let arguments = block_arguments(block);
        let (result, inputs) = arguments.split_last().ok_or_else(missing)?;
        values.extend(carried.map(|carried| (identity(*result), carried)));
        for ((input, map), argument) in operands(op).into_iter().zip(&self.maps).zip(inputs) {
            if !is_used(*argument) {
                continue;
            }
            let element = match TensorType::of_value(input) {
                Some(_) => extract(inner, input, &mapped(inner, *map, &index)?)?,
                None => input,
            };
            values.insert(identity(*argument), element);
        }
        let mut own = operations(block);
        let last = own.pop().ok_or_else(missing)?;
        for inside in own {
            if name(inside) == "linalg.index" {
                let dim = inside.attribute("dim").ok().and_then(attribute::integer);
                let dim = dim.and_then(|dim| usize::try_from(dim).ok());
                let place = dim.and_then(|dim| index.get(dim)).ok_or_else(missing)?;
                values.extend(only_result(inside).map(|result| (identity(result), *place)));
            } else {
                inline::copy_operation(inner, inside, &mut values);
            }
        }
        let yielded = operands(last).first().copied().ok_or_else(missing)?;
        Ok(values.get(&identity(yielded)).copied().unwrap_or(yielded))
    }
}

/// The dimension of a result that a loop is, by the result's map.
fn dimension(map: AffineMap<'_>, at: usize) -> Option<usize> {
    let is_own = |dim: &usize| {
        let index = map.result(*dim);
        index.is_ok_and(|index| index.is_dim() && index.dim_position() == at)
    };
    (0..map.result_count()).find(is_own)
}
