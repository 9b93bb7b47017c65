//! Rows of which nothing is stored but what they are reduced to, in one round of folds: they are read once, so that no memory has
//! to hold them, where few would be held at a time. A CTA has a row; its warps take tiles in turns, and load some ahead of those
//! that they fold. Several CTAs a multiprocessor have more bytes on their way than a row in shared memory would leave room for.

use super::long_rows::RowWork;
use super::row::Row;
use super::row_states::States;
use super::row_tile::{RowTile, power_of_two};
use crate::facts::chip::{ACCESS_BYTES, Chip};
use crate::vocabulary::WARP;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::evaluate::RowPart;
use axe_passes::fuse::online::{Rest, Walk};
use axe_passes::fuse::registers::registers;
use axe_passes::fuse::rounds::Round;
use axe_passes::ir::Val;

/// Warps of a CTA: the first, but as many as fill the chip where rows are few, up to the second.
const WARPS: [i64; 2] = [4, 16];
/// Warps of a multiprocessor whose loads hide the memory's latency together.
const RESIDENT_WARPS: i64 = 32;
/// 32-bit registers of a thread that have states of elements.
const STATE_WORDS: i64 = 16;
/// Vectors of a tensor in a tile at most, for each thread.
const VECTORS: i64 = 2;
/// Bytes of a thread that are on their way.
const AHEAD_BYTES: i64 = 64;
/// Tiles that are on their way at most.
const MOST_AHEAD: i64 = 4;

/// The tiles of rows that are read once; none where rows are too short for tiles that are on their way.
pub(super) fn work(row: Row, chip: &Chip) -> Option<RowWork> {
    let [least, most] = WARPS;
    let wanted = power_of_two(chip.multiprocessors * RESIDENT_WARPS / row.rows.max(1));
    let warps = wanted.clamp(least, most);
    let vector = ACCESS_BYTES / row.bytes;
    let vectors = (STATE_WORDS / row.words / vector).clamp(1, VECTORS);
    let tile = RowTile {
        rows: 1,
        columns: WARP * vector * vectors,
        along: WARP,
        vector,
        across: 1,
    };
    let of_tile = vector.saturating_mul(vectors).saturating_mul(row.read);
    let ahead = (AHEAD_BYTES / of_tile.max(1)).clamp(1, MOST_AHEAD);
    // The first tile and as many as are on their way lie in the row, wherever that begins.
    let reach = (ahead + 1) * warps * tile.columns + vector;
    (row.is_read_once && row.read > 0 && row.columns >= reach).then_some(RowWork {
        tile,
        ctas: 1,
        warps,
        staged: None,
        ahead,
        is_packed: false,
        clusters: None,
        holds: false,
        has_common: false,
    })
}

/// A row that a CTA goes through once.
#[derive(Debug)]
pub(super) struct Walked<'c> {
    work: RowWork,
    columns: i64,
    /// Elements of the tensors.
    elements: i64,
    row: Val<'c>,
    states: States<'c>,
}

impl<'c> Walked<'c> {
    /// The row `row` of `rows`, of so many columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        work: RowWork,
        (row, [rows, columns]): (Val<'c>, [i64; 2]),
        rounds: &[Round<'c>],
    ) -> PassResult<'c, Self> {
        Ok(Self {
            work,
            columns,
            elements: rows.saturating_mul(columns),
            row,
            states: States::new(code, (work.warps, false), rounds)?,
        })
    }

    /// The part of a warp, in its scope.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn of_warp(
        &self,
        code: Code<'c>,
        early: Vec<Val<'c>>,
    ) -> PassResult<'c, OfWarp<'_, 'c>> {
        let RowTile {
            columns, vector, ..
        } = self.work.tile;
        let warp = code.div(code.thread("x")?, code.index(WARP)?)?;
        let own = code.times(warp, columns)?;
        let begin = code.times(self.row, self.columns)?;
        let end = code.add(begin, code.index(self.columns)?)?;
        let boundary = code.times(code.div(begin, code.index(vector)?)?, vector)?;
        let whole = self.elements - self.elements % vector;
        let rest = (whole < self.elements).then(|| {
            let lanes = RowTile {
                rows: 1,
                columns: WARP,
                along: WARP,
                vector: 1,
                across: 1,
            };
            let lanes = lanes.layout();
            let lanes = lanes.map_err(|error| layout_error(code.builder.location, error))?;
            // One of the warps takes them.
            let zero = code.index(0)?;
            Ok(Rest {
                registers: registers(code, [1, WARP], lanes)?,
                end: code.where_at_most([own, zero], [end, zero])?,
            })
        });
        Ok(OfWarp {
            of: self,
            columns: [own, code.index(self.columns)?],
            walk: Walk {
                first: code.add(boundary, own)?,
                step: self.work.warps * columns,
                row: [begin, end],
                elements: self.elements,
                whole,
                ahead: self.work.ahead,
                early,
                begins_inside: self.columns % vector != 0,
                rest: rest.transpose()?,
            },
        })
    }
}

/// A warp's tiles of a row.
#[derive(Debug)]
pub(super) struct OfWarp<'a, 'c> {
    of: &'a Walked<'c>,
    columns: [Val<'c>; 2],
    walk: Walk<'c>,
}

impl<'c> RowPart<'c> for OfWarp<'_, 'c> {
    fn columns(&self) -> [Val<'c>; 2] {
        self.columns
    }

    fn walk(&self) -> Option<&Walk<'c>> {
        Some(&self.walk)
    }

    fn gather(
        &self,
        code: Code<'c>,
        round: usize,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        self.of.states.gather(code, round, states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    fn row(columns: i64, bytes: i64, words: i64) -> Row {
        Row {
            words,
            is_read_once: true,
            ..Row::plain(columns, bytes)
        }
    }

    #[test]
    fn tiles_on_their_way_lie_in_the_row() {
        let chip = chip("sm_90a").unwrap();
        for bytes in [1, 2, 4, 8] {
            for words in [1, 2] {
                for columns in (1000..70_000).step_by(331) {
                    let Some(work) = work(row(columns, bytes, words), chip) else {
                        continue;
                    };
                    let reach = (work.ahead + 1) * work.warps * work.tile.columns;
                    assert!(reach < columns, "{work}");
                    assert!(work.tile.layout().is_ok(), "{work}");
                    assert_eq!(work.tile.columns % (ACCESS_BYTES / bytes), 0);
                }
                assert!(work(row(70_000, bytes, words), chip).is_some());
            }
        }
    }

    #[test]
    fn few_rows_have_many_warps() {
        let chip = chip("sm_90a").unwrap();
        for (rows, warps) in [(1, 16), (256, 16), (512, 8), (1046, 4), (100_000, 4)] {
            let row = Row {
                rows,
                ..row(128_256, 2, 1)
            };
            assert_eq!(
                work(row, chip).map(|work| work.warps),
                Some(warps),
                "{rows}"
            );
        }
    }

    #[test]
    fn rows_that_are_read_again_are_held() {
        let again = Row {
            is_read_once: false,
            ..row(50_257, 2, 1)
        };
        assert_eq!(work(again, chip("sm_90a").unwrap()), None);
    }
}
