//! Epilogue subtiles: what follows a product is formed on one range of a tile's columns, stored, and formed on the next, so
//! that beside the sums a thread keeps the values of one subtile, and what is loaded for another.

use crate::emit::SUBTILE_ROW_BYTES;
use crate::planner::layouts::ROW_BYTES;
use crate::state::slots::STORE_PIPELINE_BYTES;
use axe_passes::fuse::registers::Registers;

/// A range of a tile's columns.
#[derive(Clone, Debug)]
pub(in crate::planner) struct Subtile {
    /// The first column.
    pub first: i64,
    /// The subtile, as the tile's threads hold it.
    pub registers: Registers,
}

/// Bytes of the rows of subtiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::planner) struct RowBytes {
    /// Of results that are stored as they are summed.
    pub plain: i64,
    /// Of those that are formed of sums.
    pub formed: i64,
}

impl RowBytes {
    /// For a tile of which a warpgroup has so many rows. Of results that are formed, two subtiles fit in what planners leave a
    /// warpgroup, so that one is formed while the other is stored. That is 32 elements of 16 bits a thread.
    pub(in crate::planner) const fn of(rows: i64, plain: i64) -> Self {
        let mut formed = ROW_BYTES;
        while formed > SUBTILE_ROW_BYTES && 2 * rows * formed > STORE_PIPELINE_BYTES {
            formed /= 2;
        }
        Self { plain, formed }
    }
}

/// The widths of the subtiles of so many columns, of elements of so many bytes: as wide as may be, then what is left in
/// halves down to the narrowest that is stored at once, then the rest.
fn widths(columns: i64, bytes: i64, widest: i64) -> Vec<i64> {
    let elements = |of: i64| (of / bytes.max(1)).max(1);
    let (mut width, narrowest) = (elements(widest), elements(SUBTILE_ROW_BYTES));
    let (mut widths, mut left) = (Vec::new(), columns);
    while left > 0 {
        while width > left && width > narrowest {
            width /= 2;
        }
        widths.push(width.min(left));
        left -= width.min(left);
    }
    widths
}

impl Subtile {
    /// The subtiles of a tile of results of up to so many bytes; none where the tile is stored at once: sums that are stored as they are, or converted, take no registers beside them, and columns that
    /// are whole subtiles the store takes subtile by subtile itself.
    ///
    /// # Errors
    /// When a subtile has no layout.
    pub(in crate::planner) fn of(
        tile: &Registers,
        bytes: i64,
        row_bytes: RowBytes,
        plain: bool,
    ) -> axe_layout::Result<Vec<Self>> {
        let [_, columns] = tile.shape;
        let widest = match plain {
            true => row_bytes.plain,
            false => row_bytes.formed,
        };
        let widths = widths(columns, bytes, widest);
        if widths.len() < 2 || plain && columns * bytes % widest == 0 {
            return Ok(Vec::new());
        }
        let mut first = 0;
        let mut subtiles = Vec::new();
        for width in widths {
            subtiles.push(Self {
                first,
                registers: tile.part(first, width)?,
            });
            first += width;
        }
        Ok(subtiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_subtiles_fit_in_what_a_warpgroup_stores_through() {
        let formed = [64, 128, 192, 512].map(|rows| RowBytes::of(rows, 128).formed);
        assert_eq!(formed, [128, 64, 32, 32]);
    }

    #[test]
    fn the_last_subtiles_are_narrower() {
        assert_eq!(widths(192, 2, 64), [32; 6]);
        assert_eq!(widths(176, 2, 64), [32, 32, 32, 32, 32, 16]);
        assert_eq!(widths(240, 2, 128), [64, 64, 64, 32, 16]);
        // Eight columns of 16 bits are too narrow for a subtile.
        assert_eq!(widths(72, 2, 64), [32, 32, 8]);
        assert_eq!(widths(8, 2, 64), [8]);
        assert_eq!(widths(96, 4, 128), [32; 3]);
        assert_eq!(widths(40, 8, 32), [4; 10]);
    }

    #[test]
    fn subtiles_are_all_of_the_tile() {
        for columns in (8..=256).step_by(8) {
            for bytes in [1, 2, 4, 8] {
                for widest in [128, 64, 32] {
                    let widths = widths(columns, bytes, widest);
                    assert_eq!(widths.iter().sum::<i64>(), columns);
                    assert!(widths.iter().all(|width| width * bytes <= widest.max(8)));
                }
            }
        }
    }
}
