//! Tiles of results through shared memory, so that neighbouring lanes store neighbours. Fragments of `mma.sync` have pairs of eight rows:
//! stored from there, each store goes to eight rows of memory, and where rows begin anywhere pairs are two stores.

use super::Epilogue;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES};
use crate::planner::row_tile::{RowTile, vector};
use crate::vocabulary::WARP;
use axe_dialect::element_type;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Evaluator;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::ValueLike;

/// Elements of a tile from which on the way through shared memory, and its barrier, are quicker than stores of pairs.
const LEAST_ELEMENTS: i64 = 2048;

/// Whether a tile of rows of so many elements goes through shared memory.
pub(in crate::planner) const fn is_by_row([rows, columns]: [i64; 2], row: i64) -> bool {
    row % 2 != 0 || rows * columns >= LEAST_ELEMENTS
}

/// The tile in which so many threads store rows of these elements; none where they stay in fragments.
fn by_row(shape: [i64; 2], row: i64, bytes: i64, threads: i64) -> Option<RowTile> {
    let ([rows, columns], vector) = (shape, vector(row, bytes));
    let along = WARP.min(columns / vector).max(1);
    let across = threads / along;
    let tile = RowTile {
        rows,
        columns,
        along,
        vector,
        across,
    };
    let is_whole = columns % (along * vector) == 0 && across > 0 && rows % across == 0;
    (bytes <= BANK_BYTES && is_by_row(shape, row) && is_whole).then_some(tile)
}

/// A CTA whose threads store a tile together.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Together {
    pub threads: i64,
    /// Bytes of shared memory that nothing has.
    pub free: i64,
}

impl<'c> Epilogue<'_, 'c> {
    /// Stores a value along the result's rows; false where it is to be stored from fragments.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store_by_row(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        (value, to): (Val<'c>, &Argument<'c>),
        together: &mut Together,
    ) -> PassResult<'c, bool> {
        let code = evaluator.code;
        let element = element_type(to.memref.r#type());
        let (bytes, row) = (element_bytes(element), to.extents.last().copied());
        let shape = evaluator.registers.shape;
        let Some(tile) = by_row(shape, row.unwrap_or(1), bytes, together.threads) else {
            return Ok(false);
        };
        let failed = |error| layout_error(code.builder.location, error);
        let [rows, columns] = shape;
        // Rows that lie beside each other in the banks, by the four words that a fragment has of each.
        let pitch = columns + ACCESS_BYTES / bytes;
        let storage = Layout::strided(&shape, &[pitch, 1]).map_err(failed)?;
        let formed = evaluator.value(value, Kind::Full)?;
        together.free -= rows * pitch * bytes;
        if together.free < 0 {
            // It shares the memory of what warps may still read.
            code.barrier()?;
        }
        let storage = code.alloc(&shape, element, &storage)?;
        code.store(formed, storage)?;
        code.barrier()?;
        let tile = tile.layout().map_err(failed)?;
        let moved = code.load(storage, code.fragment(&shape, element, &tile)?)?;
        let place = &evaluator.origin;
        let at = [place.row, place.column].into_iter();
        let at: Vec<_> = place.batch.into_iter().chain(at).collect();
        code.store(moved, code.global_box(to.memref, &to.extents, &at, &shape)?)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_odd_numbers_of_elements_and_large_tiles_are_stored_by_row() {
        for (shape, row, bytes, threads, lanes) in [
            ([64, 64], 187, 2, 128, Some([32, 1, 4])),
            ([16, 16], 187, 2, 128, Some([16, 1, 8])),
            ([64, 48], 187, 2, 128, None),
            ([64, 64], 186, 2, 128, Some([32, 2, 4])),
            ([64, 64], 192, 2, 128, Some([8, 8, 16])),
            ([16, 32], 192, 2, 128, None),
            ([64, 64], 187, 4, 128, Some([32, 1, 4])),
            ([64, 64], 187, 8, 128, None),
        ] {
            let tile = by_row(shape, row, bytes, threads);
            let own = tile.map(|tile| [tile.along, tile.vector, tile.across]);
            assert_eq!(own, lanes, "{shape:?} {row} {bytes}");
            assert!(tile.is_none_or(|tile| tile.layout().is_ok()));
        }
    }
}
