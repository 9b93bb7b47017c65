//! Reductions to fewer results than the chip has work for, in parts: each part is reduced by itself, and then the parts.

use super::reduce::{Elements, column_tile, narrow_tile};
use super::split::in_two;
use super::{cost, runs};
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, Chip};
use crate::planner::problem::count;
use crate::planner::row_shares::most_held;
use crate::planner::row_tile::{RowTile, row_tile};
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::group::ColumnFold;
use axe_passes::fuse::operators::{is_reshape, splat};
use axe_passes::fuse::reshape::{element_bytes, reshape};
use axe_passes::fuse::row_parts;
use axe_passes::fuse::siblings;
use axe_passes::fuse::space::source;
use axe_passes::fuse::strided;
use axe_passes::ir::value::{
    defining, identity, name, only_result, operands, replace_all_uses, results, users,
};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use melior::ir::operation::OperationLike;
use std::collections::HashSet;

/// Bytes that the threads of a multiprocessor read at once: their loads hide the memory's latency together.
const BYTES_AT_ONCE: i64 = 64 * 1024;
/// Rows that a CTA combines at least.
const LEAST_ROWS: i64 = 128;
/// The same where elements take long to form, and how many times as many CTAs there are as the chip holds. Measured: the gradient of a GELU with its
/// sum over 8192 rows of 4096 takes 87.1 us in 1024 CTAs, 82.2 in 4096, over 32,768 rows of 768 83.8 in 768 and 63.5 in 3072.
const COSTLY_LEAST_ROWS: i64 = 32;
const COSTLY_TURNS: i64 = 4;
/// Steps of a CTA that take less time than another kernel.
const FEW_STEPS: i64 = 4;
/// Elements below which a row is one CTA's.
const SHORT: i64 = 32 * 1024;
/// Elements of a short part of a row at most, which a few threads hold: of 16 bits, or which take long to form. Measured: the sums of a Dice loss of 64 x
/// 262,144 f16 take 48.9 us in parts of 16,384, and 28.5 in short ones, squared errors of 16,384 x 4096 f16 73.0 and 61.8, of f32 60.8 and 61.6;
/// variances of 8 x 8,388,608 f16 41.6 and 53.8.
pub(super) const PART: i64 = 4096;
/// Columns of a matrix that a row is seen as.
const LEAST_WIDTH: i64 = 32;
const MOST_WIDTH: i64 = 4096;
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
            1 => {
                let is_short = of.is_costly || of.bytes < BANK_BYTES;
                let longest = if is_short { PART } else { i64::MAX };
                self.parts_of_rows((of.bytes, longest), chip)
            }
            _ => {
                let most = self.most_parts(of, chip)?;
                (2..=most).rev().find(|parts| self.reduced % parts == 0)
            }
        }
    }

    /// Whether no number of parts of columns' rows divides them that keeps most of the chip at work, or several rows are read as one.
    fn is_uneven(self, of: Elements, chip: &Chip) -> bool {
        let most = match self.columns {
            1 => None,
            _ => self.most_parts(of, chip),
        };
        let is_unaligned =
            self.outer == 1 && self.columns.saturating_mul(of.bytes) % ACCESS_BYTES != 0;
        let keeps = |most| self.parts(of, chip).unwrap_or(1) * 4 >= most * 3;
        most.is_some_and(|most| most > 1 && (is_unaligned || !keeps(most)))
    }

    /// Parts of columns' rows at most; none where rows are few steps of one CTA.
    fn most_parts(self, of: Elements, chip: &Chip) -> Option<i64> {
        let narrow = narrow_tile(self.columns, of);
        let tile = column_tile([self.reduced, self.columns], of);
        let fold = ColumnFold {
            outer: self.outer,
            rows: self.reduced,
            columns: self.columns,
        };
        (self.reduced > FEW_STEPS * narrow.rows).then(|| most_parts(fold, (tile, of), chip))
    }

    /// Whether rows are long, and too few for a CTA each.
    const fn has_few_rows(self, chip: &Chip) -> bool {
        self.columns == 1 && self.outer < 2 * chip.multiprocessors && self.reduced >= SHORT
    }

    /// Whether rows of a tensor stay in one kernel with what goes back along them: CTAs hold them, or there are enough for a chip.
    fn is_held(self, from: Val<'_>, chip: &Chip) -> bool {
        let bytes = || read(from).into_iter().map(bytes_of).sum::<i64>();
        let row = || self.reduced.saturating_mul(bytes());
        self.columns == 1 && (!self.has_few_rows(chip) || row() <= most_held(chip))
    }

    /// Columns of a matrix that a row is, whose rows are added up first, where no number of parts divides the row; none where it has no
    /// such divisor. Vectors divide it if they divide the row.
    fn width(self, chip: &Chip) -> Option<i64> {
        let divides = |width: &i64| self.reduced % width == 0;
        let vectors = (LEAST_WIDTH / 8..=MOST_WIDTH / 8)
            .rev()
            .map(|width| width * 8);
        let all = vectors.chain((LEAST_WIDTH..=MOST_WIDTH).rev());
        self.has_few_rows(chip)
            .then(|| all.into_iter().find(divides))
            .flatten()
    }

    /// Rows are CTAs, and fit in registers once they are cut; of so many bytes an element, in parts of so many at most.
    fn parts_of_rows(self, (bytes, longest): (i64, i64), chip: &Chip) -> Option<i64> {
        if !self.has_few_rows(chip) {
            return None;
        }
        let fits = count(self.reduced, row_tile(self.reduced, bytes, 1).columns);
        let enough = count(4 * chip.multiprocessors, self.outer);
        let least = fits.max(enough).max(count(self.reduced, longest)).max(2);
        (least..least.saturating_mul(4)).find(|parts| self.reduced % parts == 0)
    }
}

/// Into how many parts the rows of columns are cut at most: CTAs have a tile's columns each, and go through the rows of a part; the chip
/// holds so many of them.
fn most_parts(fold: ColumnFold, (tile, of): (RowTile, Elements), chip: &Chip) -> i64 {
    let resident = (BYTES_AT_ONCE / (tile.rows * tile.columns * of.bytes)).max(1);
    let ctas = fold.outer.saturating_mul(count(fold.columns, tile.columns));
    let held = resident * chip.multiprocessors / ctas.max(1);
    let (held, least) = match of.is_costly {
        true => (held.saturating_mul(COSTLY_TURNS), COSTLY_LEAST_ROWS),
        false => (held, LEAST_ROWS),
    };
    held.min(fold.rows / least.max(2 * tile.rows))
}

/// How many parts of whole tiles' rows, and rows of each but the last.
pub(in crate::planner) fn uneven_parts(
    fold: ColumnFold,
    (tile, of): (RowTile, Elements),
    chip: &Chip,
) -> [i64; 2] {
    let most = most_parts(fold, (tile, of), chip).max(1);
    let length = count(count(fold.rows, most), tile.rows) * tile.rows;
    [count(fold.rows, length), length]
}

/// The tensors of its own size that a reduction's kernel reads, which forms what it reduces of them.
fn read(from: Val<'_>) -> Vec<Val<'_>> {
    let (mut next, mut seen) = (vec![from], HashSet::new());
    let mut read = Vec::new();
    while let Some(value) = next.pop() {
        if !seen.insert(identity(value)) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        match defining(value) {
            Some(op) if is_reshape(op) || [ops::MAP, ops::CAST].contains(&name(op).as_str()) => {
                next.extend(operands(op));
            }
            Some(op) if name(op) == ops::BROADCAST || splat(op).is_some() => {}
            _ => read.push(value),
        }
    }
    read
}

/// Bytes of an element of a tensor.
fn bytes_of(value: Val<'_>) -> i64 {
    TensorType::of_value(value).map_or(1, |own| element_bytes(own.element))
}

/// The narrowest elements that a reduction's kernel reads.
fn narrowest(from: Val<'_>) -> Val<'_> {
    let read = read(from).into_iter();
    read.min_by_key(|value| bytes_of(*value)).unwrap_or(from)
}

/// Into how many parts rows along these dimensions of a shape are cut, of elements of so many bytes, of so many at most; none where they are not.
pub(super) fn parts_of_rows(
    (shape, dims): (&[i64], &[i64]),
    elements: (i64, i64),
    chip: &Chip,
) -> Option<i64> {
    let shape = Shape::of(shape, dims).filter(|shape| shape.columns == 1);
    shape.and_then(|shape| shape.parts_of_rows(elements, chip))
}

/// Into how many parts rows are cut of which another reduction has parts already: one kernel reduces both.
fn parts_beside((op, from): (Op<'_>, Val<'_>), shape: Shape) -> Option<i64> {
    let Shape {
        outer,
        reduced,
        columns,
    } = shape;
    let read = siblings::read_by(from);
    let all = op.block().map_or_else(Vec::new, walk::operations);
    let parts = |op: Op<'_>| {
        let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
        let own = source(op).filter(|_| name(op) == ops::REDUCE && dims == [2])?;
        match TensorType::of_value(own)?.shape[..] {
            [rows, parts, length, 1] if rows == outer && parts * length == reduced => {
                (!read.is_disjoint(&siblings::read_by(own))).then_some(parts)
            }
            _ => None,
        }
    };
    let is_row = columns == 1;
    is_row.then(|| all.into_iter().find_map(parts)).flatten()
}

/// Whether what goes back along rows is formed in the kernel that reduces them, of a tensor along these dimensions.
pub(super) fn goes_back(result: Val<'_>, (from, dims): (Val<'_>, &[i64]), chip: &Chip) -> bool {
    let shape = TensorType::of_value(from).and_then(|own| Shape::of(&own.shape, dims));
    is_repeated(result) && shape.is_none_or(|shape| shape.is_held(from, chip))
}

/// Cuts reductions whose results are too few for a chip's multiprocessors. What follows a row's result back along the row, as
/// in softmax, stays one kernel where CTAs hold the row.
///
/// # Errors
/// When an operation cannot be built.
pub(in crate::planner) fn reduce_in_parts<'c>(ops: &[Op<'c>], chip: &Chip) -> PassResult<'c> {
    let is_cut = |op: &&Op<'c>| name(**op) == ops::REDUCE && !strided::is_marked(**op);
    let mut parts = Vec::new();
    for &op in ops.iter().filter(is_cut) {
        let mut left = vec![op];
        while let Some(op) = left.pop() {
            left.extend(cut(op, &mut parts, chip)?);
        }
    }
    siblings::gather_parts(&parts);
    Ok(())
}

/// One step: reductions that may be cut again, and those of rows' parts.
fn cut<'c>(op: Op<'c>, of_parts: &mut Vec<Op<'c>>, chip: &Chip) -> PassResult<'c, Vec<Op<'c>>> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
    let (Some(from), Some(result), Some(dims)) = (source(op), only_result(op), dims) else {
        return Ok(Vec::new());
    };
    let builder = Builder::before(op);
    let tensor = builder.tensor_of(from)?;
    if let Some((outer, rows)) = rows_below(from, &dims) {
        let [_, last] = in_two(op, (&outer, &rows))?;
        return Ok(vec![last]);
    }
    let Some(shape) = Shape::of(&tensor.shape, &dims) else {
        return Ok(Vec::new());
    };
    let of = Elements {
        is_costly: match shape.columns {
            1 => cost::takes_long(op),
            _ => cost::is_costly(op),
        },
        ..Elements::of(builder.tensor_of(narrowest(from))?.element)
    };
    if shape.is_uneven(of, chip) && ColumnFold::of(op).is_some() {
        row_parts::mark(op);
        return Ok(Vec::new());
    }
    let goes_back = || is_repeated(result) || is_below_row(from, &dims);
    if shape.is_held(from, chip) && goes_back() {
        return Ok(Vec::new());
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
    let parts = shape.parts(of, chip);
    let parts = parts.and_then(|parts| parts_beside((op, from), shape).or(Some(parts)));
    let width = shape.width(chip);
    let states = match (parts, width) {
        (Some(parts), _) => {
            let cut = [outer, parts, reduced / parts, columns];
            let from = reshape(&builder, from, &cut, None)?;
            step(from, 2, &[outer, parts, columns])?
        }
        (None, Some(width)) => {
            let cut = [outer, reduced / width, width, columns];
            let from = reshape(&builder, from, &cut, None)?;
            step(from, 1, &[outer, width, columns])?
        }
        (None, None) => return Ok(Vec::new()),
    };
    let last = step(states, 1, &[outer, columns])?;
    let wanted = builder.tensor_of(result)?.shape;
    replace_all_uses(result, reshape(&builder, last, &wanted, None)?);
    walk::erase(op);
    // Parts are as they are to be.
    of_parts.extend(defining(states).filter(|_| parts.is_some() && columns == 1));
    let states = Some(states).filter(|_| parts.is_none());
    let left = states.into_iter().chain([last]);
    Ok(left.filter_map(defining).collect())
}

/// The last of these dimensions, as the second, where a value is formed of what rows along them were reduced to: the kernel of those rows adds them up.
fn rows_below(value: Val<'_>, dims: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    let splits = (1..dims.len()).map(|at| dims.split_at(at));
    let mut splits = splits.filter(|(_, rows)| is_below_row(value, rows));
    splits
        .next()
        .map(|(outer, rows)| (outer.to_vec(), rows.to_vec()))
}

/// Whether a value is formed of what rows along the same dimensions were reduced to before: `exp(x - max)` of a row that is one kernel's.
fn is_below_row(value: Val<'_>, dims: &[i64]) -> bool {
    let of_row = |op: Op<'_>| {
        let along = op.attribute("dims").ok().and_then(attribute::read_i64s);
        let mut from = operands(op).into_iter().filter_map(defining);
        along.as_deref() == Some(dims) && from.any(|from| name(from) == ops::REDUCE)
    };
    let mut next = vec![value];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        let Some(op) = defining(value) else {
            continue;
        };
        followed += 1;
        match name(op).as_str() {
            ops::BROADCAST if of_row(op) => return true,
            ops::MAP | ops::CAST | ops::BROADCAST if followed <= MOST_FOLLOWED => {
                next.extend(operands(op));
            }
            _ => {}
        }
    }
    false
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
            is_costly: false,
        };
        Shape::of(shape, dims)?.parts(of, chip)
    }

    #[test]
    fn few_results_are_reduced_in_parts() {
        for (shape, dims, wanted) in [
            (&[16384, 4096][..], &[0, 1][..], Some(16_384)),
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

    #[test]
    fn rows_that_nothing_divides_are_shared_out_in_whole_tiles() {
        let chip = chip("sm_90a").expect("a chip");
        for (bytes, is_float) in [(2, true), (4, true), (1, false)] {
            let of = Elements {
                bytes,
                is_float,
                is_costly: false,
            };
            let shape = |outer, reduced, columns| Shape {
                outer,
                reduced,
                columns,
            };
            assert!(shape(1, 1_000_003, 512).is_uneven(of, chip));
            assert!(shape(2, 67_043, 1001).is_uneven(of, chip));
            assert!(!shape(1, 131_072, 512).is_uneven(of, chip));
            assert!(!shape(1, 1009, 512).is_uneven(of, chip));
            assert!(!shape(1, 1_000_003, 1).is_uneven(of, chip));
            for rows in (1100..300_000).step_by(397) {
                for columns in [3, 300, 1001, 4096] {
                    let fold = ColumnFold {
                        outer: 1,
                        rows,
                        columns,
                    };
                    let tile = column_tile([rows, columns], of);
                    let [parts, length] = uneven_parts(fold, (tile, of), chip);
                    let covers = parts * length >= rows && (parts - 1) * length < rows;
                    assert!(
                        covers && length % tile.rows == 0,
                        "{rows} x {columns}: {parts} of {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn rows_that_nothing_divides_are_added_up_along_columns() {
        let chip = chip("sm_90a").expect("a chip");
        let width = |outer, reduced| {
            let shape = Shape {
                outer,
                reduced,
                columns: 1,
            };
            shape.width(chip)
        };
        assert_eq!(width(1, 67_043 * 512), Some(512));
        assert_eq!(width(1, 2203 * 48), Some(48));
        assert_eq!(width(8, 67_043 * 33), Some(33));
        assert_eq!(width(1, 67_043 * 7), None);
        assert_eq!(width(1, 10_000_019), None);
        assert_eq!(width(1024, 67_043 * 512), None);
    }
}
