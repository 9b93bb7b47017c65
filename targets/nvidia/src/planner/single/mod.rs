//! Operators that get a kernel of their own: transposes, and broadcasts and reductions in the middle.

mod broadcast;
mod cost;
mod parts;
mod permutation;
mod reduce;
mod split;
mod states;

pub(super) use cost::is_costly;
pub(super) use parts::{is_repeated, reduce_in_parts, uneven_parts};
pub(super) use reduce::{Elements, column_tile, reduced_tile};
pub(super) use split::split_reductions;
pub(super) use states::{parts_of_exponentials, parts_of_moments};

use super::choose::search::{self, Candidate};
use super::columns::Columns;
use super::family::{Family, Launch};
use super::knobs::Plan;
use super::model;
use super::problem::count;
use super::row_tile::RowTile;
use crate::facts::chip::{Chip, MOST_BLOCKS};
use axe_dialect::ops;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::frame::{Frame, Operand};
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::reshape::{element_bytes, leading_of};
use axe_passes::fuse::space::{Size, source};
use axe_passes::ir::value::{name, only_result};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute};
use axe_passes::{PassError, PassResult};
use broadcast::Broadcast;
use melior::ir::operation::OperationLike;
use permutation::Permutation;
pub(super) use permutation::{swizzle, words};
use reduce::Reduction;

/// The family of operators by themselves.
pub(super) struct Singles;

/// One operator, read.
pub(super) struct Read<'c> {
    single: Single<'c>,
    way: Way,
    problem: Problem,
}

/// What it does with its tensor.
enum Way {
    Transpose(Box<Permutation>),
    Broadcast(Broadcast),
    Reduce(Reduction),
}

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Bytes that are read and written, for each of a leading extent that is known at run time.
    moved: i64,
    tile: RowTile,
}

impl<'c> Read<'c> {
    fn of(op: Op<'c>, builder: &Builder<'c>) -> PassResult<'c, Self> {
        let unreadable = || {
            PassError::new(
                op.location(),
                format!("'{}' has no kernel of its own", name(op)),
            )
        };
        let (from, result) = source(op).zip(only_result(op)).ok_or_else(unreadable)?;
        let dims = |key| {
            let dims = op.attribute(key).ok().and_then(attribute::read_i64s);
            dims.ok_or_else(unreadable)
        };
        let single = Single { op, from, result };
        let tensor = builder.tensor_of(result)?;
        let bytes = element_bytes(tensor.element);
        let shape = builder.tensor_of(from)?.shape;
        let (way, tile) = match name(op).as_str() {
            ops::TRANSPOSE => {
                let way = Permutation::new(op, &shape, &dims("permutation")?, bytes)?;
                let tile = way.tile;
                (Way::Transpose(Box::new(way)), tile)
            }
            ops::BROADCAST => {
                let way = Broadcast::new(op, &tensor.shape, &dims("dims")?)?;
                let tile = way.tile(bytes);
                (Way::Broadcast(way), tile)
            }
            ops::REDUCE => {
                let way = Reduction::new(op, &shape, &dims("dims")?)?;
                let tile = way.tile(tensor.element);
                (Way::Reduce(way), tile)
            }
            _ => return Err(unreadable()),
        };
        let elements = [from, result].into_iter().filter_map(Size::of);
        let elements = elements.fold(0i64, |sum, size| sum.saturating_add(size.known));
        let moved = elements.saturating_mul(bytes);
        Ok(Self {
            single,
            way,
            problem: Problem { moved, tile },
        })
    }
}

impl Family for Singles {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = RowTile;

    /// The tile follows from the shape.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        _: &[Val<'c>],
        builder: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        match group.root {
            Root::Single(op) => Read::of(op, builder),
            _ => Err(layout_error(
                builder.location,
                "a group of several operators",
            )),
        }
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Read<'_>, _: &Plan, _: &Chip) -> Result<RowTile, String> {
        Ok(operators.problem.tile)
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<RowTile>> {
        let config = problem.tile;
        let clocks = Self::clocks(problem, config, chip);
        search::only(config, clocks, limit)
    }

    /// All multiprocessors move the bytes.
    fn clocks(problem: Problem, _: RowTile, chip: &Chip) -> f64 {
        model::moving(problem.moved, chip)
    }

    fn tile(config: RowTile) -> [i64; 3] {
        [config.rows, config.columns, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        name(operators.single.op)
    }

    fn emit<'c>(
        operators: &Read<'c>,
        tile: RowTile,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let (single, frame) = (&operators.single, &mut *launch.frame);
        match &operators.way {
            Way::Transpose(way) => single.transpose(frame, launch.builder, way),
            Way::Broadcast(way) => single.broadcast(frame, launch.builder, way, tile),
            Way::Reduce(way) => single.reduce(frame, launch.builder, way, tile),
        }
    }
}

/// Neighbouring dimensions with one role, as one: extent and role.
fn runs(shape: &[i64], role: impl Fn(i64) -> bool) -> Vec<(i64, bool)> {
    let mut runs: Vec<(i64, bool)> = Vec::new();
    for (dim, &extent) in (0i64..).zip(shape).filter(|(_, extent)| **extent != 1) {
        match runs.last_mut() {
            Some((have, last)) if *last == role(dim) => {
                *have = if *have == DYNAMIC {
                    DYNAMIC
                } else {
                    have.saturating_mul(extent)
                };
            }
            _ => runs.push((extent, role(dim))),
        }
    }
    runs
}

/// One operator, its source and its result.
#[derive(Clone, Copy)]
struct Single<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
}

/// Whether blocks of outer dimensions follow each other along x, as there may be more of them than a grid has along z.
fn is_folded(outer: &[i64]) -> bool {
    outer.contains(&DYNAMIC) || product(outer) > MOST_BLOCKS
}

/// The product of the extents that are known.
fn product(extents: &[i64]) -> i64 {
    let known = extents.iter().filter(|extent| **extent != DYNAMIC);
    known.fold(1, |product, extent| product.saturating_mul(*extent))
}

/// This block's number along x, and that of its outer dimensions, for so many blocks along x of each.
fn folded<'c>(code: Code<'c>, outer: &[i64], along: i64) -> PassResult<'c, [Val<'c>; 2]> {
    let block = code.block("x")?;
    if !is_folded(outer) {
        return Ok([block, code.block("z")?]);
    }
    split(code, block, along)
}

/// The number of a block among `along`, and which so many it is.
fn split<'c>(code: Code<'c>, block: Val<'c>, along: i64) -> PassResult<'c, [Val<'c>; 2]> {
    let along = code.index(along.max(1))?;
    Ok([code.rem(block, along)?, code.div(block, along)?])
}

/// The tile's place among blocks: rows along x, columns along y, the other dimensions along z.
fn places<'c>(code: Code<'c>, shape: &[i64], tile: [i64; 2]) -> PassResult<'c, Vec<Val<'c>>> {
    let [outer @ .., rows, columns] = shape else {
        return Err(PassError::new(code.builder.location, "expected a matrix"));
    };
    let columns = Columns::across(count(*columns, tile[1]));
    let [column, block] = columns.place(code)?;
    let along = count(*rows, tile[0]);
    let [row, mut rest] = match columns.are_folded() {
        true => split(code, block, along)?,
        false => folded(code, outer, along)?,
    };
    let mut places = vec![code.times(column, tile[1])?, code.times(row, tile[0])?];
    for (at, &extent) in outer.iter().enumerate().rev() {
        if at == 0 {
            places.push(rest);
        } else {
            let extent = code.index(extent)?;
            places.push(code.rem(rest, extent)?);
            rest = code.div(rest, extent)?;
        }
    }
    places.reverse();
    Ok(places)
}

/// The blocks for a tensor whose last two dimensions are tiled. `leading` is the first extent where dynamic.
fn blocks<'c>(
    builder: &Builder<'c>,
    shape: &[i64],
    tile: [i64; 2],
    leading: Option<Val<'c>>,
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let [outer @ .., rows, columns] = shape else {
        return Err(PassError::new(builder.location, "expected a matrix"));
    };
    let x = match (outer, leading) {
        ([], Some(rows)) => code.ceil_div(rows, tile[0])?,
        _ => code.index(count(*rows, tile[0]))?,
    };
    let known = product(outer);
    let z = match (outer, leading) {
        ([_, ..], Some(leading)) => code.times(leading, known)?,
        _ => code.index(known)?,
    };
    let columns = Columns::across(count(*columns, tile[1]));
    let known = known.saturating_mul(if *rows == DYNAMIC {
        1
    } else {
        count(*rows, tile[0])
    });
    match columns.are_folded() || is_folded(outer) {
        true => columns.grid(code, code.mul(x, z)?, known),
        false => Ok([x, code.index(columns.count)?, z]),
    }
}

impl<'c> Single<'c> {
    fn kernel(
        &self,
        frame: &Frame<'c>,
        from: &Operand<'c>,
        to: &Operand<'c>,
    ) -> PassResult<'c, (Kernel<'c>, Val<'c>, Val<'c>)> {
        let kernel = Kernel::new(self.op.location(), frame.module, &[from.memref, to.memref]);
        match kernel.arguments[..] {
            [source, result] => Ok((kernel, source, result)),
            _ => Err(layout_error(
                self.op.location(),
                "a kernel lacks its arguments",
            )),
        }
    }
}

/// The leading extent of `shape`, a shape of `value`'s elements, where it is dynamic.
fn dynamic_leading<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Option<Val<'c>>> {
    match shape.first() {
        Some(&DYNAMIC) => leading_of(builder, value, shape).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_role_are_one_run() {
        let repeated = |dim| [1, 2].contains(&dim);
        assert_eq!(
            runs(&[2, 3, 4, 5], repeated),
            [(2, false), (12, true), (5, false)]
        );
        assert_eq!(
            runs(&[DYNAMIC, 1, 4, 5], repeated),
            [(DYNAMIC, false), (4, true), (5, false)]
        );
    }
}
