//! The tiles of groups of rows, whose ends are data: `axe.grouped_gemm`.
//!
//! Every CTA walks the groups in order and carries the number of its next tile, counted from the group's first: tiles are
//! numbered through all groups, and a CTA of so many has each so manieth (CUTLASS,
//! `sm90_tile_scheduler_group.hpp`). Rows in front of the first group and behind the last one are groups too, without a
//! matrix: their tiles have no steps, and results of zero.
//!
//! Offsets are data that may be wrong: the end of a group is at least its beginning, and at most the number of rows.

use super::{Scheduler, Steps, WorkTile};
use crate::planner::config::Raster;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::ir::{Int, Val};
use melior::ir::ValueLike;

/// The groups of a product.
pub(super) struct Groups<'c> {
    /// Where each begins, and the last one ends.
    offsets: Argument<'c>,
    /// How many there are.
    count: Val<'c>,
}

/// The group of a tile.
#[derive(Clone, Copy)]
pub(in crate::planner) struct GroupTile<'c> {
    /// The number of its matrix of B.
    pub matrix: Val<'c>,
    /// Whether there is one: rows of no group have none, and no steps.
    pub exists: Val<'c>,
    /// The row behind its last one.
    pub end: Val<'c>,
}

/// A group's rows, and what tells whether it is one of the product's.
#[derive(Clone, Copy)]
struct Rows<'c> {
    begin: Val<'c>,
    end: Val<'c>,
    matrix: Val<'c>,
    /// Whether it has a matrix.
    exists: Val<'c>,
}

impl<'c> Groups<'c> {
    /// Those that begin at these offsets, with the matrices of B.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        offsets: Argument<'c>,
        b: &Argument<'c>,
    ) -> PassResult<'c, Self> {
        let count = b.extents.first().copied().unwrap_or(1);
        let count = code.leading(b.memref, count)?;
        Ok(Self { offsets, count })
    }

    /// The rows from `begin` to the end of the group of this number, counted from 1: 0 are those in front of the first, the
    /// last number those behind the last.
    fn rows(
        &self,
        code: Code<'c>,
        number: Val<'c>,
        begin: Val<'c>,
        all: Val<'c>,
    ) -> PassResult<'c, Rows<'c>> {
        let ints = code.builder.ints();
        let one = code.index(1)?;
        let last = code.min(number, self.count)?;
        let element = element_type(self.offsets.memref.r#type());
        let offset =
            code.builder
                .value("memref.load", &[self.offsets.memref, last], element, &[])?;
        let offset = ints.value(ints.cast(Int::Value(offset))?)?;
        let end = code.where_at_most([number, self.count], [offset, all])?;
        let end = ints.min(Int::Value(end), Int::Value(all))?;
        let end = ints.value(ints.max(end, Int::Value(begin))?)?;
        // 0 less 1 is more than any number without a sign.
        let matrix = code.min(code.sub(number, one)?, self.count)?;
        Ok(Rows {
            begin,
            end,
            matrix,
            exists: ints.below(Int::Value(matrix), Int::Value(self.count))?,
        })
    }
}

impl<'c> Scheduler<'c> {
    /// This CTA's tiles of all groups.
    pub(super) fn visit_groups(
        &self,
        code: Code<'c>,
        groups: &Groups<'c>,
        body: impl Fn(Code<'c>, WorkTile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let lost = |code: Code<'c>| {
            let what = "a loop over groups carries their end and the next tile";
            layout_error(code.builder.location, what)
        };
        let first = code.block("x")?;
        let step = code.blocks("x")?;
        let all = code.add(groups.count, code.index(2)?)?;
        code.for_each(all, 1, &[code.index(0)?, first], |code, number, carried| {
            let &[begin, next] = carried else {
                return Err(lost(code));
            };
            let rows = groups.rows(code, number, begin, self.rows)?;
            let counts = self.tiles(code, rows)?;
            let count = code.mul(counts[0], counts[1])?;
            let next = code.for_range([next, count, step], &[next], |code, tile, _| {
                body(code, self.tile_of(code, rows, counts, tile)?)?;
                Ok(vec![code.add(tile, step)?])
            })?;
            let &[next] = next.as_slice() else {
                return Err(lost(code));
            };
            Ok(vec![rows.end, code.sub(next, count)?])
        })?;
        Ok(())
    }

    /// Rows and columns of a group's tiles.
    fn tiles(&self, code: Code<'c>, rows: Rows<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let &[.., columns] = self.counts.as_slice() else {
            return Err(super::lost(code));
        };
        let high = self.config.tile()[0];
        Ok([
            code.ceil_div(code.sub(rows.end, rows.begin)?, high)?,
            columns,
        ])
    }

    /// A tile of a group by its number.
    fn tile_of(
        &self,
        code: Code<'c>,
        rows: Rows<'c>,
        counts: [Val<'c>; 2],
        number: Val<'c>,
    ) -> PassResult<'c, WorkTile<'c>> {
        let Raster { order, swizzle } = self.config.raster();
        let [row, column] = code.tile_at(number, counts, (order, swizzle))?;
        let [high, wide, _] = self.config.tile();
        let (steps, zero) = (code.index(self.steps())?, code.index(0)?);
        Ok(WorkTile {
            origin: Origin {
                batch: None,
                row: code.add(rows.begin, code.times(row, high)?)?,
                column: code.times(column, wide)?,
                limit: [rows.end, code.index(self.extents.n)?],
            },
            steps: Steps {
                first: None,
                count: code.choose(rows.exists, [steps, zero])?,
            },
            sums: None,
            group: Some(GroupTile {
                matrix: rows.matrix,
                exists: rows.exists,
                end: rows.end,
            }),
        })
    }
}
