//! The sums of parts, added up in order from memory, and what follows them: the second kernel of split-K and stream-K.

use super::Epilogue;
use crate::facts::chip::LINE_BYTES;
use crate::planner::problem::{SUM_BYTES, count};
use crate::planner::row_tile::RowTile;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use std::ops::Range;

/// Elements that a thread loads before it adds them up, at most: all others wait for those, and more are spilled.
const LOADED: i64 = 192;
/// Threads of a CTA that adds parts up.
const THREADS: i64 = 256;
/// Rows of its tile at most: a warpgroup's, which divide every tile's.
const ROWS: i64 = 64;

/// Elements of a row of sums, so that each begins with a line.
pub(in crate::planner) const fn padded_row(columns: i64) -> i64 {
    count(columns.saturating_mul(SUM_BYTES), LINE_BYTES).saturating_mul(LINE_BYTES / SUM_BYTES)
}

/// The tile of a CTA that adds parts up: columns that divide a tile's.
pub(in crate::planner) fn sums_tile(columns: i64) -> RowTile {
    let columns = 1 << columns.trailing_zeros().min(7);
    let vector = columns.min(16 / SUM_BYTES);
    let along = columns / vector;
    let across = (THREADS / along).min(ROWS);
    RowTile {
        rows: (2 * across).min(ROWS),
        columns,
        along,
        vector,
        across,
    }
}

/// A tile with fewer rows, where a thread would have more elements of so many parts than it loads at once.
pub(in crate::planner) fn low_enough(mut tile: RowTile, parts: i64) -> RowTile {
    while tile.rows % (2 * tile.across) == 0 && elements(tile).saturating_mul(parts) > LOADED {
        tile.rows /= 2;
    }
    tile
}

/// Elements of a thread.
const fn elements(tile: RowTile) -> i64 {
    tile.rows * tile.columns / tile.threads()
}

impl<'c> Epilogue<'_, 'c> {
    /// Adds up so many parts, `[parts, rows, columns]`, and forms what follows, on a tile with its place in the result and
    /// in the sums.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn add_parts(
        &self,
        code: Code<'c>,
        (tile, parts): (RowTile, i64),
        sums: &Argument<'c>,
        (origin, at): (Origin<'c>, [Val<'c>; 2]),
    ) -> PassResult<'c> {
        let location = code.builder.location;
        let layout = tile
            .layout()
            .map_err(|error| layout_error(location, error))?;
        let registers = registers(code, [tile.rows, tile.columns], layout)?;
        let mut evaluator = self.evaluator(code, &registers, origin);
        let start = self.start(&mut evaluator)?;
        let with = |code: Code<'c>, sum: Option<Val<'c>>, part: Val<'c>| {
            let own = self.part(code, &registers, sums, (part, at))?;
            match sum {
                None => Ok(own),
                Some(sum) => Fold::PRODUCT.merge(code, self.gemm.accumulator, sum, own),
            }
        };
        let straight = |sum: Option<Val<'c>>, parts: Range<i64>| {
            parts.into_iter().try_fold(sum, |sum, part| {
                with(code, sum, code.index(part)?).map(Some)
            })
        };
        // As many at a time in all turns.
        let turns = count(elements(tile).saturating_mul(parts), LOADED);
        let each = count(parts, turns.max(1)).max(1);
        let last = parts - parts % each;
        let mut sum = straight(start, 0..each.min(parts))?;
        if let Some(before) = sum.filter(|_| each < last) {
            let (step, end) = (code.index(each)?, code.index(last)?);
            let range = [step, end, step];
            let all = code.for_range(range, &[before], |code, at, carried| {
                let mut sum = carried.first().copied();
                for part in 0..each {
                    sum = Some(with(code, sum, code.add(at, code.index(part)?)?)?);
                }
                Ok(sum.into_iter().collect())
            })?;
            sum = all.first().copied();
        }
        let sum = straight(sum, last..parts)?;
        let sum = sum.ok_or_else(|| layout_error(location, "a product of no parts"))?;
        self.store(&mut evaluator, sum, None)
    }

    /// A tile of one part's sums.
    fn part(
        &self,
        code: Code<'c>,
        registers: &Registers,
        sums: &Argument<'c>,
        (part, [row, column]): (Val<'c>, [Val<'c>; 2]),
    ) -> PassResult<'c, Val<'c>> {
        let at = [part, row, column];
        let from = code.global_box(sums.memref, &sums.extents, &at, &registers.shape)?;
        let r#type = registers.r#type(code, Kind::Full, self.gemm.accumulator)?;
        code.load(from, r#type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_add_parts_divide_every_tile() {
        for columns in (8..=256).step_by(8) {
            let sums = sums_tile(columns);
            assert_eq!(columns % sums.columns, 0, "{sums:?}");
            assert_eq!(64 % sums.rows, 0, "{sums:?}");
            assert_eq!(sums.rows % sums.across, 0, "{sums:?}");
            assert_eq!(sums.columns, sums.along * sums.vector, "{sums:?}");
            assert_eq!(sums.threads() % 32, 0, "{sums:?}");
            assert!(
                sums.threads() <= THREADS && sums.layout().is_ok(),
                "{sums:?}"
            );
            for parts in [2, 16, 24, 32, 48, 64] {
                let low = low_enough(sums, parts);
                assert!(low.layout().is_ok() && sums.rows % low.rows == 0, "{low:?}");
                let is_lowest = low.rows == low.across;
                assert!(
                    is_lowest || elements(low) * parts <= LOADED,
                    "{low:?} {parts}"
                );
            }
        }
    }
}
