//! Tiles of results whose rows begin anywhere in memory: through shared memory, so that neighbouring lanes store neighbours. Fragments of the
//! tensor cores have pairs, four of a row: of elements one by one eight rows of memory would have a part of each store.

use super::Epilogue;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES};
use crate::planner::row_tile::RowTile;
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

/// The tile in which so many threads store rows of these elements, one element each; none where pairs can be stored.
fn by_element([rows, columns]: [i64; 2], row: i64, bytes: i64, threads: i64) -> Option<RowTile> {
    let along = WARP.min(columns);
    let across = threads / along;
    let tile = RowTile {
        rows,
        columns,
        along,
        vector: 1,
        across,
    };
    let is_whole = columns % along == 0 && across > 0 && rows % across == 0;
    (bytes <= BANK_BYTES && row % 2 != 0 && is_whole).then_some(tile)
}

impl<'c> Epilogue<'_, 'c> {
    /// Stores a value by so many threads as [`Epilogue::store`] does, each element by a lane beside those of its neighbours where that is
    /// what the result's rows want; false where it is not.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store_by_element(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        (value, to): (Val<'c>, &Argument<'c>),
        threads: i64,
    ) -> PassResult<'c, bool> {
        let code = evaluator.code;
        let element = element_type(to.memref.r#type());
        let (bytes, row) = (element_bytes(element), to.extents.last().copied());
        let shape = evaluator.registers.shape;
        let Some(tile) = by_element(shape, row.unwrap_or(1), bytes, threads) else {
            return Ok(false);
        };
        let failed = |error| layout_error(code.builder.location, error);
        let [rows, columns] = shape;
        // Rows that lie beside each other in the banks, by the four words that a fragment has of each.
        let pitch = columns + ACCESS_BYTES / bytes;
        let storage = Layout::strided(&shape, &[pitch, 1]).map_err(failed)?;
        let storage = code.alloc(&[rows, columns], element, &storage)?;
        code.store(evaluator.value(value, Kind::Full)?, storage)?;
        code.barrier()?;
        let tile = tile.layout().map_err(failed)?;
        let moved = code.load(storage, code.fragment(&shape, element, &tile)?)?;
        let place = &evaluator.origin;
        let at: Vec<_> = place
            .batch
            .into_iter()
            .chain([place.row, place.column])
            .collect();
        code.store(moved, code.global_box(to.memref, &to.extents, &at, &shape)?)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_odd_numbers_of_elements_are_stored_by_element() {
        for (shape, row, bytes, threads, lanes) in [
            ([64, 64], 187, 2, 128, Some([32, 4])),
            ([16, 16], 187, 2, 128, Some([16, 8])),
            ([64, 48], 187, 2, 128, None),
            ([64, 64], 186, 2, 128, None),
            ([64, 64], 187, 4, 128, Some([32, 4])),
            ([64, 64], 187, 8, 128, None),
            ([64, 64], 187, 1, 128, Some([32, 4])),
        ] {
            let tile = by_element(shape, row, bytes, threads);
            assert_eq!(tile.map(|tile| [tile.along, tile.across]), lanes);
            assert!(tile.is_none_or(|tile| tile.layout().is_ok()));
        }
    }
}
