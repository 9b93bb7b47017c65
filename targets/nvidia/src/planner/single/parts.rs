//! Reductions to fewer results than the chip has work for, in parts: each part is reduced by itself, and then the parts.

use super::reduce::{Elements, column_tile, narrow_tile};
use super::runs;
use crate::facts::chip::Chip;
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, row_tile};
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::reshape::reshape;
use axe_passes::fuse::space::source;
use axe_passes::fuse::strided;
use axe_passes::ir::value::{defining, name, only_result, replace_all_uses, results, users};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute, walk};
use melior::ir::operation::OperationLike;

/// Rows that the threads of a multiprocessor read at once, each of them one of a CTA's: their loads hide the memory's latency together.
const ROWS_AT_ONCE: i64 = 32;
/// Rows that a CTA combines at least.
const LEAST_ROWS: i64 = 128;
/// Steps of a CTA that take less time than another kernel.
const FEW_STEPS: i64 = 4;
/// Elements below which a row is one CTA's.
const SHORT: i64 = 32 * 1024;
/// Operations that are followed from a reduction to a broadcast of its result.
const MOST_FOLLOWED: usize = 64;

/// A reduction of `[outer, reduced, columns]` along its second dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    outer: i64,
    reduced: i64,
    columns: i64,
}

impl Shape {
    /// What neighbouring dimensions of one role are; none where an extent is known at run time only.
    fn of(shape: &[i64], dims: &[i64]) -> Option<Self> {
        if shape.contains(&DYNAMIC) {
            return None;
        }
        let (outer, reduced, columns) = match runs(shape, |dim| dims.contains(&dim))[..] {
            [(reduced, true)] => (1, reduced, 1),
            [(outer, false), (reduced, true)] => (outer, reduced, 1),
            [(reduced, true), (columns, false)] => (1, reduced, columns),
            [(outer, false), (reduced, true), (columns, false)] => (outer, reduced, columns),
            _ => return None,
        };
        Some(Self {
            outer,
            reduced,
            columns,
        })
    }

    /// Into how many parts the reduced dimension is cut, of elements of so many bytes; none where CTAs are enough without, or
    /// no number of parts divides it.
    fn parts(self, of: Elements, chip: &Chip) -> Option<i64> {
        match self.columns {
            1 => self.parts_of_rows(of.bytes, chip),
            columns => {
                let narrow = narrow_tile(columns, of);
                if self.reduced <= FEW_STEPS * narrow.rows {
                    return None;
                }
                let tile = column_tile([self.reduced, columns], of);
                let resident = (ROWS_AT_ONCE * tile.across / tile.rows).max(1);
                self.parts_of_columns(tile, resident * chip.multiprocessors)
            }
        }
    }

    /// Rows are CTAs, and fit in registers once they are cut.
    fn parts_of_rows(self, bytes: i64, chip: &Chip) -> Option<i64> {
        if self.outer >= 2 * chip.multiprocessors || self.reduced < SHORT {
            return None;
        }
        let fits = count(self.reduced, row_tile(self.reduced, bytes, 1).columns);
        let least = fits.max(count(4 * chip.multiprocessors, self.outer)).max(2);
        (least..least.saturating_mul(4)).find(|parts| self.reduced % parts == 0)
    }

    /// CTAs have a tile's columns each, and go through the rows of a part; the chip holds so many of them.
    fn parts_of_columns(self, tile: RowTile, held: i64) -> Option<i64> {
        let ctas = self.outer.saturating_mul(count(self.columns, tile.columns));
        let most = (held / ctas).min(self.reduced / LEAST_ROWS.max(2 * tile.rows));
        (2..=most).rev().find(|parts| self.reduced % parts == 0)
    }
}

/// Into how many parts rows along these dimensions of a shape are cut, of elements of so many bytes; none where they are not.
pub(super) fn parts_of_rows(shape: &[i64], dims: &[i64], bytes: i64, chip: &Chip) -> Option<i64> {
    let shape = Shape::of(shape, dims).filter(|shape| shape.columns == 1);
    shape.and_then(|shape| shape.parts_of_rows(bytes, chip))
}

/// Cuts reductions whose results are too few for a chip's multiprocessors. What follows a row's result back along the row, as
/// in softmax, stays one kernel.
///
/// # Errors
/// When an operation cannot be built.
pub(in crate::planner) fn reduce_in_parts<'c>(ops: &[Op<'c>], chip: &Chip) -> PassResult<'c> {
    let is_cut = |op: &&Op<'c>| name(**op) == ops::REDUCE && !strided::is_marked(**op);
    for &op in ops.iter().filter(is_cut) {
        let mut next = Some(op);
        while let Some(op) = next {
            next = cut(op, chip)?;
        }
    }
    Ok(())
}

/// One step: the reduction of the parts, which may be cut again.
fn cut<'c>(op: Op<'c>, chip: &Chip) -> PassResult<'c, Option<Op<'c>>> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
    let (Some(from), Some(result), Some(dims)) = (source(op), only_result(op), dims) else {
        return Ok(None);
    };
    let builder = Builder::before(op);
    let tensor = builder.tensor_of(from)?;
    let Some(shape) = Shape::of(&tensor.shape, &dims) else {
        return Ok(None);
    };
    let Some(parts) = shape.parts(Elements::of(tensor.element), chip) else {
        return Ok(None);
    };
    if shape.columns == 1 && is_repeated(result) {
        return Ok(None);
    }
    let combiner = op
        .attribute("combiner")
        .map_err(|_| layout_error(op.location(), "a reduction has no combiner"))?;
    let step = |from: Val<'c>, dim: i64, kept: &[i64]| {
        let attributes = [("combiner", combiner), ("dims", builder.i64s(&[dim]))];
        let kept = builder.tensor(kept, tensor.element)?;
        builder.value(ops::REDUCE, &[from], kept, &attributes)
    };
    let Shape {
        outer,
        reduced,
        columns,
    } = shape;
    let from = reshape(
        &builder,
        from,
        &[outer, parts, reduced / parts, columns],
        None,
    )?;
    let states = step(from, 2, &[outer, parts, columns])?;
    let last = step(states, 1, &[outer, columns])?;
    let wanted = builder.tensor_of(result)?.shape;
    replace_all_uses(result, reshape(&builder, last, &wanted, None)?);
    walk::erase(op);
    Ok(defining(last))
}

/// Whether something repeats what is computed of a value.
pub(in crate::planner) fn is_repeated(value: Val<'_>) -> bool {
    let mut next = vec![value];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        for user in users(value) {
            followed += 1;
            if name(user) == ops::BROADCAST || followed > MOST_FOLLOWED {
                return true;
            }
            next.extend(results(user));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    fn parts(shape: &[i64], dims: &[i64]) -> Option<i64> {
        let chip = chip("sm_90a").expect("a chip");
        let of = Elements {
            bytes: 2,
            is_float: true,
        };
        Shape::of(shape, dims)?.parts(of, chip)
    }

    #[test]
    fn few_results_are_reduced_in_parts() {
        for (shape, dims, wanted) in [
            (&[16384, 4096][..], &[0, 1][..], Some(4096)),
            (&[8, 100_000], &[1], Some(80)),
            (&[4096, 100_000], &[1], None),
            (&[16384, 512], &[1], None),
            (&[131_072, 512], &[0], Some(128)),
            (&[1024, 512], &[0], None),
            (&[4096, 512], &[0], Some(32)),
            (&[128, 512], &[0], None),
            (&[4, 65_536, 1, 64], &[1], Some(64)),
            (&[DYNAMIC, 512], &[0], None),
            (&[1_000_003, 512], &[0], None),
        ] {
            assert_eq!(parts(shape, dims), wanted, "{shape:?} {dims:?}");
        }
    }

    #[test]
    fn parts_divide_what_is_reduced() {
        for reduced in (100..200_000).step_by(97) {
            for [outer, columns] in [[1, 1], [7, 1], [1, 300], [3, 4096]] {
                let shape = [outer, reduced, columns];
                let Some(parts) = parts(&shape, &[1]) else {
                    continue;
                };
                assert!(parts > 1 && reduced % parts == 0, "{shape:?}: {parts}");
            }
        }
    }
}
