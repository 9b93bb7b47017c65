//! Tiles of rows in registers: for elementwise operators, reductions, and whatever else is read and written along rows.

use super::layouts::layout;
use super::problem::count;
use super::row::Row;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES};
use crate::vocabulary::WARP;
use axe_layout::{Error, Layout, Result};
use std::fmt;

/// Threads of a CTA, unless a row takes more.
const THREADS: i64 = 128;
/// Elements of one tensor that a thread keeps, in 32-bit registers: several tensors live at a time.
const KEPT_WORDS: i64 = 32;
/// The same of rows that lanes of a warp share.
const MOST_WORDS: i64 = 40;
/// Threads that share a row at most.
const MOST_ALONG: i64 = 512;
/// Bytes of all tensors that a thread has on their way of rows whose vectors are shorter than accesses, of rows that are reduced once and of others.
const SHORT_BYTES: (i64, i64) = (40, 48);
/// The part of a row's columns that its threads may have room for beside it, at most, where others would have less.
const MOST_UNUSED: i64 = 6;
/// Bytes of one tensor that a thread has on their way.
const THREAD_BYTES: i64 = 2 * ACCESS_BYTES;
/// Loads of a thread that are on their way, at most.
const MOST_LOADS: i64 = 8;

/// Rows of a matrix in registers: how many threads share a row and how many elements each reads at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowTile {
    /// Rows of the tile.
    pub rows: i64,
    /// Columns of the tile.
    pub columns: i64,
    /// Threads that share a row: a power of two up to a warp, or whole warps.
    pub along: i64,
    /// Consecutive elements of a thread.
    pub vector: i64,
    /// Rows that the threads hold at once.
    pub across: i64,
}

impl RowTile {
    /// Threads of the CTA.
    #[must_use]
    pub const fn threads(self) -> i64 {
        self.along * self.across
    }

    /// The register tensor's layout for the shape `[rows, columns]`.
    ///
    /// # Errors
    /// When threads and vectors do not divide the tile.
    pub fn layout(self) -> Result<Layout> {
        let step = self.along * self.vector;
        if self.columns % step != 0 || self.rows % self.across != 0 {
            return Err(Error::invalid(format!(
                "tile {} x {}: expected a multiple of {} x {step}",
                self.rows, self.columns, self.across
            )));
        }
        let (chunks, passes) = (self.columns / step, self.rows / self.across);
        let axes = if self.along >= WARP {
            let warps = self.along / WARP;
            vec![
                (passes, chunks * self.vector, "reg"),
                (self.across, warps, "warp"),
                (chunks, self.vector, "reg"),
                (warps, 1, "warp"),
                (WARP, 1, "lane"),
                (self.vector, 1, "reg"),
            ]
        } else {
            let rows = WARP / self.along;
            vec![
                (passes, chunks * self.vector, "reg"),
                (self.across / rows, 1, "warp"),
                (rows, self.along, "lane"),
                (chunks, self.vector, "reg"),
                (self.along, 1, "lane"),
                (self.vector, 1, "reg"),
            ]
        };
        layout(&axes, &[])
    }
}

impl fmt::Display for RowTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns, vector) = (self.rows, self.columns, self.vector);
        let threads = self.threads();
        write!(
            f,
            "{rows} x {columns} by {threads} threads, {vector} elements at once"
        )
    }
}

/// The least power of two that is not below `value`.
pub(super) fn power_of_two(value: i64) -> i64 {
    u64::try_from(value)
        .ok()
        .and_then(u64::checked_next_power_of_two)
        .and_then(|power| i64::try_from(power).ok())
        .unwrap_or(1)
}

/// The widest vectors that rows of `columns` elements consist of, of elements of at least `bytes` bytes.
pub(super) fn vector(columns: i64, bytes: i64) -> i64 {
    let mut vector = (ACCESS_BYTES / bytes.max(1)).max(1);
    while vector > 1 && columns % vector != 0 {
        vector /= 2;
    }
    vector
}

/// The tile of rows that are reduced: whole rows, as long as `words` registers an element allow; longer rows
/// go through the tile piece by piece.
#[must_use]
pub fn row_tile(columns: i64, bytes: i64, words: i64) -> RowTile {
    let vector = vector(columns, bytes);
    let kept = (KEPT_WORDS / words.max(1)).max(vector);
    let is_short = vector * bytes < ACCESS_BYTES;
    let places = |lanes: i64| count(columns, lanes * vector) * lanes;
    let in_warp = match power_of_two(count(columns, vector)).min(WARP) {
        // Two rows a warp, where that leaves fewer lanes without elements.
        WARP if is_short && places(WARP / 2) < places(WARP) => WARP / 2,
        lanes => lanes,
    };
    let most = MOST_WORDS / words.max(1);
    let few = lanes(count(columns, vector), most / vector, bytes).filter(|_| !is_short);
    let (along, kept) = match (few, count(columns, kept)) {
        (Some(few), _) => (few, most),
        (None, threads) if threads <= in_warp => (in_warp, kept),
        (None, threads) => (power_of_two(threads).min(MOST_ALONG), kept),
    };
    let chunks = count(columns, along * vector).min((kept / vector).max(1));
    let across = (THREADS / along).max(1);
    let passes = (loads(vector, bytes) / chunks).max(1).ilog2();
    RowTile {
        rows: across << passes,
        columns: along * vector * chunks,
        along,
        vector,
        across,
    }
}

/// The tile of rows that are reduced, where more is known of them: of what is stored, vectors that are shorter than accesses are few a thread, and
/// moments are those of few lanes.
pub(super) fn reduced_tile(row: Row) -> RowTile {
    let tile = row_tile(row.columns, row.bytes, row.words);
    let own = match row.has_moments {
        true => lanes_of_few_vectors(row),
        false => threads_of_short_vectors(row, tile.vector),
    };
    own.map_or(tile, |along| shared_by(along, row, tile.vector))
}

/// Lanes that share a row of a few vectors whose moments are formed: fewer than of other rows, for what a lane does once a row is much. Measured, LayerNorm of f16:
/// 24 columns take 68.5 us by one lane, 82.0 by two and 110.2 by four; 40 101.7, 73.0 and 91.9, 48 108.8, 66.6 and 79.7; 56 72.0 by two and 74.8 by four, 72
/// 77.1 and 74.1.
fn lanes_of_few_vectors(row: Row) -> Option<i64> {
    let vector = ACCESS_BYTES / row.bytes;
    let is_short = row.bytes < BANK_BYTES && row.words == 1 && row.columns % vector == 0;
    match row.columns / vector {
        3 if is_short => Some(1),
        5..=7 if is_short => Some(2),
        _ => None,
    }
}

/// Threads that share a row of vectors of so many elements, which are shorter than accesses: as many as have a few loads each of all tensors. Vectors of neighbours
/// are in the same sectors, which are then on their way at a time. Measured, f32: RMSNorm of 2047 columns takes 68.4 us by 256 threads, 81.1 by 64, of 4097 69.8
/// by 512 and 77.0 by 256, of a sum 136.4 by 512 and 162.9 by 64; softmax of 1001 66.0 by 128 and 68.1 by 32, of 3001 69.3 by 256 and 74.7 by 512; of f16, pairs
/// of 1002, 66.3 by 64 and 69.0 by 32.
fn threads_of_short_vectors(row: Row, vector: i64) -> Option<i64> {
    let bytes = vector * row.bytes;
    let is_plain = row.stores && row.words == 1 && !row.is_widened && row.read > 0;
    // Measured, f16: RMSNorm of a sum of 1537 columns, whose threads read single elements of two tensors, takes 158 us by 256 threads, 149 by 64.
    let is_short = bytes < ACCESS_BYTES && (bytes >= BANK_BYTES || row.read == bytes);
    let is_moved = (2..=BANK_BYTES).contains(&row.bytes);
    let of_thread = if row.folds > 1 {
        SHORT_BYTES.1
    } else {
        SHORT_BYTES.0
    };
    let threads = count(row.columns, (of_thread / row.read.max(1)).max(vector));
    let fits = is_plain && is_short && is_moved && threads > WARP / 2;
    let along = fits.then(|| power_of_two(threads).min(MOST_ALONG))?;
    // Measured: softmax of 4098 columns of f32, in pairs, takes 73.3 us by 512 threads of up to five, 68.1 by 256.
    let places = count(row.columns, along * vector) * along * vector;
    let is_loose = places > row.columns + row.columns / MOST_UNUSED;
    Some(match row.folds > 1 && is_loose {
        true if along > WARP => along / 2,
        _ => along,
    })
}

/// The tile in which so many threads share a row.
fn shared_by(along: i64, row: Row, vector: i64) -> RowTile {
    let kept = KEPT_WORDS / row.words.max(1);
    let chunks = count(row.columns, along * vector).min((kept / vector).max(1));
    let across = (THREADS / along).max(1);
    RowTile {
        rows: across,
        columns: along * vector * chunks,
        along,
        vector,
        across,
    }
}

/// Lanes that share a row of so many vectors of elements of so many bytes, of which each has at most so many. Fewer have less to exchange, and
/// fewer of them are without a vector; what a load of few reads is spread over many rows, so that they are no less than four of 16-bit elements and
/// eight of 32. Measured: RMSNorm of a sum of 64 columns of f32 takes 139 us by four lanes, 130 by eight.
fn lanes(vectors: i64, most: i64, bytes: i64) -> Option<i64> {
    let fits =
        |lanes: &i64| (2 * bytes..=vectors).contains(lanes) && count(vectors, *lanes) <= most;
    let cost = |lanes: &i64| (count(vectors, *lanes) + 1) * lanes;
    let all = [4, 8, 16, WARP].into_iter().filter(fits);
    all.min_by_key(cost)
}

/// Loads of so many elements that a thread has on their way: two of whole vectors, more of shorter ones.
fn loads(vector: i64, bytes: i64) -> i64 {
    (THREAD_BYTES / (vector * bytes).max(1)).clamp(1, MOST_LOADS)
}

/// The tile of elementwise operators.
#[must_use]
pub fn elementwise_tile(columns: i64, bytes: i64) -> RowTile {
    tile_of_vectors(columns, vector(columns, bytes), bytes)
}

/// The same in vectors of so many elements.
pub(super) fn tile_of_vectors(columns: i64, vector: i64, bytes: i64) -> RowTile {
    let along = power_of_two(count(columns, vector)).min(THREADS);
    let loads = loads(vector, bytes);
    let all = count(columns, along * vector);
    // Tiles of a row have about as many columns each.
    let chunks = count(all, count(all, loads));
    let across = THREADS / along;
    RowTile {
        rows: across * (loads / chunks).max(1),
        columns: along * vector * chunks,
        along,
        vector,
        across,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::Fragment;

    #[test]
    fn rows_stay_in_registers_while_they_fit() {
        let tile = row_tile(1000, 2, 1);
        assert_eq!(
            (tile.along, tile.vector, tile.columns, tile.rows),
            (32, 8, 1024, 4)
        );
        let tile = row_tile(768, 2, 1);
        assert_eq!((tile.along, tile.columns), (32, 768));
        let tile = row_tile(4096, 4, 1);
        assert_eq!((tile.along, tile.columns, tile.rows), (128, 4096, 1));
        let tile = row_tile(64, 2, 1);
        assert_eq!((tile.along, tile.columns, tile.rows), (4, 64, 32));
        let tile = row_tile(100_000, 2, 1);
        assert_eq!((tile.along, tile.columns), (512, 16_384));
    }

    #[test]
    fn few_lanes_share_a_short_row() {
        for (columns, bytes, along, chunks, rows) in [
            (16, 2, 2, 1, 128),
            (64, 2, 4, 2, 32),
            (96, 2, 4, 3, 32),
            (200, 2, 8, 4, 16),
            (320, 2, 8, 5, 16),
            (512, 2, 16, 4, 8),
            (1280, 2, 32, 5, 4),
            (64, 4, 8, 2, 16),
            (200, 4, 8, 7, 16),
            (256, 4, 8, 8, 16),
        ] {
            let tile = row_tile(columns, bytes, 1);
            let own = tile.columns / tile.along / tile.vector;
            assert_eq!(
                (tile.along, own, tile.rows),
                (along, chunks, rows),
                "{columns}"
            );
        }
    }

    #[test]
    fn threads_have_several_short_loads_on_their_way() {
        for (columns, bytes, along, chunks, rows) in [
            (65, 2, 16, 5, 8),
            (127, 2, 32, 4, 8),
            (1001, 2, 32, 32, 4),
            (65, 4, 16, 5, 8),
        ] {
            let tile = row_tile(columns, bytes, 1);
            assert_eq!((tile.along, tile.vector), (along, 1), "{columns}");
            assert_eq!(
                (tile.columns / along, tile.rows),
                (chunks, rows),
                "{columns}"
            );
        }
        for (columns, bytes, chunks, rows) in [
            (1001, 2, 8, 1),
            (1025, 2, 5, 1),
            (130, 2, 1, 8),
            (4096, 2, 2, 1),
        ] {
            let tile = elementwise_tile(columns, bytes);
            let step = tile.along * tile.vector;
            assert_eq!(
                (tile.columns / step, tile.rows),
                (chunks, rows),
                "{columns} {tile:?}"
            );
        }
    }

    #[test]
    fn every_tile_has_a_layout_and_a_legal_number_of_threads() {
        for columns in [1, 2, 3, 7, 32, 80, 300, 999, 1000, 4096, 12_345, 70_000] {
            for bytes in [1, 2, 4, 8] {
                for tile in [
                    row_tile(columns, bytes, 1),
                    row_tile(columns, bytes, 2),
                    elementwise_tile(columns, bytes),
                ] {
                    assert!(tile.layout().is_ok(), "{tile:?}");
                    assert!(
                        tile.threads() % 32 == 0 && tile.threads() <= 1024,
                        "{tile:?}"
                    );
                    assert_eq!(columns % tile.vector, 0);
                }
            }
        }
    }

    #[test]
    fn rows_fill_their_threads() {
        for (rows, columns, along, vector, across) in [
            (4, 1024, 32, 8, 4),
            (1, 4096, 128, 4, 1),
            (32, 40, 8, 1, 16),
            (16, 64, 8, 8, 16),
        ] {
            let tile = RowTile {
                rows,
                columns,
                along,
                vector,
                across,
            };
            let fragment =
                Fragment::new(&tile.layout().unwrap(), &[rows, columns], tile.threads()).unwrap();
            assert!(fragment.is_full());
            assert_eq!(fragment.registers() * tile.threads(), rows * columns);
        }
    }

    /// Threads of a row, chunks of each, and rows.
    fn reduced(row: Row) -> [i64; 3] {
        let tile = reduced_tile(row);
        let chunks = tile.columns / tile.along / tile.vector;
        [tile.along, chunks, tile.rows]
    }

    #[test]
    fn a_thread_has_few_loads_of_rows_whose_vectors_are_short() {
        for (columns, bytes, read, wanted) in [
            (197, 4, 4, [32, 7, 4]),
            (501, 4, 4, [64, 8, 2]),
            (1001, 4, 4, [128, 8, 1]),
            (1001, 4, 8, [256, 4, 1]),
            (4097, 4, 4, [512, 9, 1]),
            (4100, 4, 4, [256, 5, 1]),
            (1002, 2, 2, [64, 8, 2]),
            (4097, 2, 2, [256, 17, 1]),
        ] {
            let row = Row {
                read,
                ..Row::plain(columns, bytes)
            };
            assert_eq!(reduced(row), wanted, "{columns} {bytes} {read}");
        }
    }

    #[test]
    fn moments_of_few_vectors_are_those_of_few_lanes() {
        for (columns, wanted) in [
            (16, [2, 1, 128]),
            (24, [1, 3, 128]),
            (32, [4, 1, 64]),
            (48, [2, 3, 64]),
            (56, [2, 4, 64]),
            (72, [4, 3, 32]),
        ] {
            let row = Row {
                has_moments: true,
                ..Row::plain(columns, 2)
            };
            assert_eq!(reduced(row), wanted, "{columns}");
        }
    }
}
