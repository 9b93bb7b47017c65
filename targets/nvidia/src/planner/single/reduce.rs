//! Reductions of the outer or the middle dimensions.

use super::{Single, folded, is_folded, runs};
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, elementwise_tile, power_of_two};
use crate::vocabulary::WARP;
use axe_dialect::ops;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::registers::without;
use axe_passes::fuse::reshape::{element_bytes, leading_of};
use axe_passes::ir::types::is_float;
use axe_passes::ir::{Builder, DYNAMIC, Op, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

/// A reduction of neighbouring dimensions, the rows, of `[outer, rows, columns]`.
#[derive(Clone, Copy)]
pub(super) struct Reduction {
    outer: Option<i64>,
    rows: i64,
    columns: i64,
}

impl Reduction {
    /// A reduction of this shape, along these dimensions.
    ///
    /// # Errors
    /// At the operator, when they are not neighbours.
    pub(super) fn new<'c>(op: Op<'c>, shape: &[i64], dims: &[i64]) -> PassResult<'c, Self> {
        let runs = runs(shape, |dim| dims.contains(&dim));
        let (outer, rows, columns) = match runs[..] {
            // Dimensions of one element are in no run.
            [] => (None, 1, 1),
            [(columns, false)] => (None, 1, columns),
            [(rows, true)] => (None, rows, 1),
            [(rows, true), (columns, false)] => (None, rows, columns),
            [(outer, false), (rows, true), (columns, false)] => (Some(outer), rows, columns),
            _ => {
                return Err(PassError::new(
                    op.location(),
                    format!(
                        "expected a reduction of neighbouring dimensions, got dims {dims:?} of rank {}",
                        shape.len()
                    ),
                ));
            }
        };
        Ok(Self {
            outer,
            rows,
            columns,
        })
    }

    /// The tile of a reduction of such elements.
    pub(super) fn tile(self, element: Type<'_>) -> RowTile {
        let of = Elements::of(element);
        reduced_tile(self.outer.unwrap_or(1), [self.rows, self.columns], of)
    }
}

impl<'c> Single<'c> {
    /// Combines rows: tiles of the rows are combined one after the other, then the rows of the last.
    pub(super) fn reduce(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        &Reduction {
            outer,
            rows,
            columns,
        }: &Reduction,
        tile: RowTile,
    ) -> PassResult<'c, String> {
        let of: Vec<i64> = outer.into_iter().chain([rows, columns]).collect();
        let kept: Vec<i64> = outer.into_iter().chain([columns]).collect();
        let (from, out) = (
            frame.operand(builder, self.from, &of)?,
            frame.out(builder, self.result, &kept)?,
        );
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        self.reduce_body(&kernel, tile, (source, &of), (result, &kept))?;
        let name = frame.name("reduce");
        kernel.finish(frame.module, &name, tile.threads())?;
        let code = Code { builder: *builder };
        let z = match outer {
            Some(DYNAMIC) => leading_of(builder, self.from, &of)?,
            outer => code.index(outer.unwrap_or(1))?,
        };
        let x = code.index(count(columns, tile.columns))?;
        let one = code.index(1)?;
        let grid = match is_folded(outer.as_slice()) {
            true => [code.mul(x, z)?, one, one],
            false => [x, one, z],
        };
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])?;
        Ok(name)
    }

    fn reduce_body(
        &self,
        kernel: &Kernel<'c>,
        tile: RowTile,
        (source, of): (Val<'c>, &[i64]),
        (result, kept): (Val<'c>, &[i64]),
    ) -> PassResult<'c> {
        let code = kernel.code;
        let failed = |error| layout_error(self.op.location(), error);
        let fold = Fold::of_reduction(self.op)?;
        let element = code.builder.tensor_of(self.result)?.element;
        let (shape, layout) = ([tile.rows, tile.columns], tile.layout().map_err(failed)?);
        let whole = code.fragment(&shape, element, &layout)?;
        let vector = without(&layout, &shape, 0).map_err(failed)?;
        let (column, outer) = match of {
            [outer, _, columns] => {
                let along = count(*columns, tile.columns);
                let [column, outer] = folded(code, &[*outer], along)?;
                (column, Some(outer))
            }
            _ => (code.block("x")?, None),
        };
        let column = code.times(column, tile.columns)?;
        let rows = match of {
            [DYNAMIC, _] => code.leading(source, DYNAMIC)?,
            [.., rows, _] => code.index(*rows)?,
            _ => return Err(layout_error(self.op.location(), "expected a matrix")),
        };
        let neutral = code.scalar(element, fold.neutral())?;
        let start = code.fill(neutral, whole)?;
        let load = |code: Code<'c>, row: Val<'c>| {
            let at: Vec<_> = outer.into_iter().chain([row, column]).collect();
            let piece = code.global_box(source, of, &at, &shape)?;
            code.load_padded(piece, neutral, whole)
        };
        // The next rows are on their way while some are combined.
        let first = load(code, code.index(0)?)?;
        let sums = code.for_each(rows, tile.rows, &[start, first], |code, row, carried| {
            let &[sum, piece] = carried else {
                return Err(layout_error(
                    self.op.location(),
                    "a loop lacks what it carries",
                ));
            };
            let next = load(code, code.add(row, code.index(tile.rows)?)?)?;
            Ok(vec![fold.merge(code, element, sum, piece)?, next])
        })?;
        let sum = sums.first().copied().unwrap_or(start);
        let attribute = self
            .op
            .attribute("combiner")
            .map_err(|_| layout_error(self.op.location(), "no combiner"))?;
        let attributes = [("combiner", attribute), ("dims", code.builder.i64s(&[0]))];
        let vector = code.fragment(&[tile.columns], element, &vector)?;
        let sum = code
            .builder
            .value(ops::REDUCE, &[sum], vector, &attributes)?;
        let at: Vec<_> = outer.into_iter().chain([column]).collect();
        code.store(sum, code.global_box(result, kept, &at, &[tile.columns])?)
    }
}

/// Rows that a thread reads before it combines them, where threads of a CTA are many: loads that are under way together.
const AT_ONCE: i64 = 4;
/// 32-bit words of them that a thread holds at most, where it has as many more of sums and of rows that come next.
const HELD_WORDS: i64 = 64;

/// Threads of a CTA.
const THREADS: i64 = 128;
/// Rows of which a thread has all, at most. Measured: the sum of two rows of each of 8192 matrices of f32 of 1024 columns takes 25.0 us, 41.8 with warps across rows,
/// of four 39.6 and 46.1, of eight of 2048 columns 69.2 and 69.5; of experts' results of f16, read by numbers, 8192 x 4 x 1024, 10.0 and 50.7.
const FEW_ROWS: i64 = 8;
/// The same where CTAs are few.
const MANY_THREADS: i64 = 512;
/// CTAs that are few: they leave multiprocessors without work.
const FEW_CTAS: i64 = 64;

/// Elements, as registers hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::planner) struct Elements {
    /// Bytes of one.
    pub bytes: i64,
    /// Whether they are floats: narrow ones are held in pairs, integers in a register each.
    pub is_float: bool,
    /// Whether what is reduced takes long to form of them ([`super::cost`]): threads that compute hide each other's latencies, and are many
    /// where each has few rows on their way.
    pub is_costly: bool,
}

impl Elements {
    /// Elements of a type.
    pub(in crate::planner) fn of(element: Type<'_>) -> Self {
        Self {
            bytes: element_bytes(element),
            is_float: is_float(element),
            is_costly: false,
        }
    }

    /// Rows of vectors of so many elements that a thread reads at once, of so many for each thread.
    fn at_once(self, vector: i64, rows: i64) -> i64 {
        let words = match self.bytes {
            2 if self.is_float => vector / 2,
            1..4 => vector,
            bytes => vector * (bytes / 4).max(1),
        };
        // Short vectors take a predicate or an address each, too.
        let most = match self.is_costly {
            true => AT_ONCE,
            false => HELD_WORDS / words.max(2),
        };
        match rows {
            DYNAMIC => AT_ONCE,
            rows => power_of_two(rows / 2 + 1).clamp(1, most.max(1)),
        }
    }
}

/// The tile of a reduction of `[outer, rows, columns]`: of few results, fewer columns and more rows at once.
pub(in crate::planner) fn reduced_tile(
    outer: i64,
    [rows, columns]: [i64; 2],
    of: Elements,
) -> RowTile {
    let tile = column_tile([rows, columns], of);
    let narrow = narrow_tile(columns, of);
    let ctas = count(columns, tile.columns).saturating_mul(outer.max(1));
    match outer != DYNAMIC && ctas < FEW_CTAS && (narrow.rows..i64::MAX).contains(&rows) {
        true => narrow,
        false => tile,
    }
}

/// Columns of a line of 128 bytes, and as many rows as there are threads for.
pub(super) fn narrow_tile(columns: i64, of: Elements) -> RowTile {
    let tile = elementwise_tile(columns, of.bytes);
    across_rows(tile.along.min(8), MANY_THREADS, tile.vector, |_| AT_ONCE)
}

/// The tile of a reduction of rows' columns: neighbouring threads read neighbouring columns, and each several rows at once.
pub(in crate::planner) fn column_tile([rows, columns]: [i64; 2], of: Elements) -> RowTile {
    let tile = elementwise_tile(columns, of.bytes);
    let at_once = |across| match rows {
        DYNAMIC => of.at_once(tile.vector, DYNAMIC),
        rows => of.at_once(tile.vector, count(rows, across)),
    };
    // A thread has all of few rows.
    let along = match rows {
        1..=FEW_ROWS => THREADS,
        _ => WARP,
    };
    across_rows(tile.along.min(along), THREADS, tile.vector, at_once)
}

/// So many of the threads along the columns, with a vector each, and the others across rows.
fn across_rows(along: i64, threads: i64, vector: i64, at_once: impl FnOnce(i64) -> i64) -> RowTile {
    let across = threads / along;
    RowTile {
        rows: across * at_once(across),
        columns: along * vector,
        along,
        vector,
        across,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_read_as_many_rows_as_they_hold_and_have() {
        let [f16, f32, i16, i8] =
            [(2, true), (4, true), (2, false), (1, false)].map(|(bytes, is_float)| Elements {
                bytes,
                is_float,
                is_costly: false,
            });
        for (rows, of, wanted) in [
            (131_072, f16, 64),
            (131_072, f32, 64),
            (131_072, i16, 32),
            (131_072, i8, 16),
            (16, f16, 16),
            (32, f32, 32),
            (3, f32, 2),
            (DYNAMIC, f32, 16),
        ] {
            assert_eq!(column_tile([rows, 4096], of).rows, wanted, "{rows} {of:?}");
        }
        for (rows, wanted) in [(1, 1), (2, 1), (FEW_ROWS, 1), (FEW_ROWS + 1, 4)] {
            assert_eq!(column_tile([rows, 4096], f16).across, wanted, "{rows}");
        }
    }
}
