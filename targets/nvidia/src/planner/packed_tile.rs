//! Tiles of short rows that begin anywhere in memory and go through shared memory in one piece ([`super::packed_rows`]): how many threads share a row, and how
//! many rows a CTA has.

use super::problem::count;
use super::row::Row;
use super::row_tile::{RowTile, power_of_two, row_tile};
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, BANKS_BYTES};
use crate::vocabulary::WARP;

/// Bytes of shared memory of a CTA at most, so that a multiprocessor has several. Measured: log-softmax of 2001 columns, with 64 KiB, 82.5 us,
/// and 76.4 where threads read and write global memory.
const MOST_BYTES: i64 = 40 * 1024;
/// Columns of rows of whole words, at most. Measured, softmax of f16 where threads read global memory: 34 columns 217 us, 50 157, 66 77.0, 100 76.8, and 250 67.6.
const SHORT: i64 = 128;
/// Threads of a CTA at least and at most.
const THREADS: [i64; 2] = [128, 256];
/// Elements of a CTA's rows, beyond which it has no more of them. Measured: softmax of 127 columns in 32 rows 67.9 us, in 64 76.9; of 65 in 16,
/// 32 and 64 91.1, 82.1 and 77.6.
const ELEMENTS: i64 = 4608;
/// Elements of a tensor that a thread has at most, in 32-bit registers: of elementwise operators, and of rows that are reduced.
const MOST_WORDS: [i64; 2] = [64, 40];
/// The same of a row, where the same elements are read for each: a LayerNorm of 1001 columns takes 112 us, and 91 from global memory.
const REPEATED_WORDS: i64 = 20;
/// Elements of such a row that a thread has at most where no moments are formed, and of how many rows where there is room for them.
const REPEATED: i64 = 16;
const REPEATED_ROWS: [i64; 2] = [4, 2];
/// Bytes of shared memory of a CTA at most, where a value a column is read for all rows.
const MOST_REPEATED_BYTES: i64 = 50 * 1024;

/// What an element of a row that is reduced costs a thread, each wavefront of reading and writing it, and what threads exchange.
const ELEMENT: i64 = 10;
const ACCESS: i64 = 6;
const EXCHANGE: i64 = 6;
/// The same of an element of a row whose moments are formed, and what a thread does once a row then.
const MOMENT_ELEMENT: i64 = 16;
const MOMENT_ONCE: i64 = 60;
/// Elements of such a row that a thread has at most where fewer threads than fill a warp share it, and rows of a thread, by its elements of each at most.
const MOMENT_ELEMENTS: i64 = 36;
const MOMENT_PASSES: [(i64, i64); 2] = [(4, 13), (2, 42)];
/// Elements of a row that a thread has at most where fewer threads than fill a warp share it.
const LONGEST: i64 = 12;

/// What is done with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing ties their elements to each other.
    Elementwise,
    /// They are reduced.
    Reduced,
    /// They are reduced, and elements of a row are read for each.
    Repeated,
    /// The same, where moments are formed.
    Moments,
}

/// The tile of such rows, of which a CTA holds so many bytes an element; none where rows are too long, or a thread has words of several
/// elements of them in global memory.
pub(super) fn tile(row: Row, held: i64, how: Use) -> Option<RowTile> {
    let vector = ACCESS_BYTES / row.bytes;
    let own = row_tile(row.columns, row.bytes, row.words);
    if row.columns % vector == 0 || own.columns < row.columns || row.bytes >= BANK_BYTES {
        return None;
    }
    let fits = |tile: &RowTile, most: i64| {
        padded(*tile, row.columns, vector).saturating_mul(held) <= most
            && tile.rows * row.columns % vector == 0
    };
    let known = match how {
        _ if row.words > 1 || row.is_widened => [None; 2],
        Use::Moments => [moments(row, own.vector), None],
        Use::Repeated => REPEATED_ROWS.map(|rows| repeated(row, own.vector, rows)),
        _ => [None; 2],
    };
    let mut known = known.into_iter().flatten();
    let known = known.find(|tile| fits(tile, MOST_REPEATED_BYTES));
    known.or_else(|| single(row, own, how).filter(|tile| fits(tile, MOST_BYTES)))
}

/// The tile of rows whose moments are formed, and of which a value a column is read for all: lanes that share a row have many elements of it, since what they do
/// once a row is as much as they do for a few. Measured, LayerNorm of f16: 100 columns take 66.9 us by 4 lanes, 68.5 by 8 and 82.2 by 16; 250 68.4 by 16 and 84.4
/// by 32; of pairs 770 70.9 so and 68.9 where threads read and write global memory, and 2047 89.3 and 86.0.
fn moments(row: Row, vector: i64) -> Option<RowTile> {
    let [along, passes] = match row.columns {
        64..=200 if vector > 1 => [4, 1],
        201..=400 if vector == 2 => [16, 2],
        64..=1536 if vector == 1 => {
            let along = lanes_of_moments(row.columns, row.bytes)?;
            let of_row = count(row.columns, along);
            let passes = MOMENT_PASSES.iter().find(|(_, most)| of_row <= *most);
            // Rows of a CTA begin and end at boundaries.
            let across = THREADS[0] / along;
            let least = count(ACCESS_BYTES / row.bytes, across);
            [along, passes.map_or(1, |(passes, _)| *passes).max(least)]
        }
        _ => return None,
    };
    Some(shared(row, vector, [along, THREADS[0] / along, passes]))
}

/// Lanes that share a row of single elements whose moments are formed. Fitted to 15 lengths from 65 to 1501 columns: these take 1.005 of the time of the best tile.
fn lanes_of_moments(columns: i64, bytes: i64) -> Option<i64> {
    let cost = |lanes: &i64| cost([columns, bytes], *lanes, [MOMENT_ELEMENT, MOMENT_ONCE]);
    let fits = |lanes: &i64| *lanes == WARP || count(columns, *lanes) <= MOMENT_ELEMENTS;
    [2, 4, 8, 16, WARP]
        .into_iter()
        .filter(fits)
        .min_by_key(cost)
}

/// The tile of other rows of which a value a column is read for all: a thread has few elements of each of several rows. Measured, RMSNorm of f16: 197
/// columns take 68.6 us by 32 lanes in 16 rows, 71.3 by 16; 501 69.5, 1001 69.7 by 64 threads, 72.3 by 32 and 79.9 where threads read and write
/// global memory; 2047 71.4 by 128, 75.5 by 32 and 83.7, 3001 72.8 by 256, 76.1 by 128 and 82.3.
fn repeated(row: Row, vector: i64, rows: i64) -> Option<RowTile> {
    if vector > 1 || row.columns <= SHORT {
        return None;
    }
    let along = power_of_two(count(row.columns, REPEATED)).max(WARP);
    let threads = if along > WARP { THREADS[1] } else { THREADS[0] };
    let across = threads.checked_div(along).filter(|across| *across > 0)?;
    let passes = rows.max(ACCESS_BYTES / row.bytes / across);
    Some(shared(row, vector, [along, across, passes]))
}

/// So many threads a row, each of which has vectors of so many elements of each of so many rows.
fn shared(row: Row, vector: i64, [along, across, passes]: [i64; 3]) -> RowTile {
    RowTile {
        rows: across * passes,
        columns: count(row.columns, along * vector) * along * vector,
        along,
        vector,
        across,
    }
}

/// The tile of other rows, whose threads read and write single elements.
fn single(row: Row, own: RowTile, how: Use) -> Option<RowTile> {
    let Row {
        columns,
        bytes,
        words,
        ..
    } = row;
    let vector = ACCESS_BYTES / bytes;
    if own.vector * bytes > BANK_BYTES / 2 && columns > SHORT {
        return None;
    }
    let (along, across, most) = match how {
        // What is repeated for each row is read once for all rows of a thread.
        Use::Elementwise => {
            let along = match power_of_two(columns).min(THREADS[0]) {
                many if columns > THREADS[0] => many,
                most => lanes(columns, bytes, most.min(WARP)),
            };
            (along, THREADS[0] / along, MOST_WORDS[0])
        }
        _ => {
            let along = match own.along {
                0..=WARP => lanes(columns, bytes, own.along),
                more => more,
            };
            (along, vector.max(THREADS[0] / along), MOST_WORDS[1])
        }
    };
    let of_row = count(columns, along);
    let words = |rows: i64| rows / across * of_row * words;
    let least = vector.max(across);
    let is_next = |rows: &i64| rows * columns <= ELEMENTS && words(*rows) <= most;
    let rows = std::iter::successors(Some(least), |rows| Some(rows * 2).filter(is_next));
    let tile = RowTile {
        rows: rows.last()?,
        columns: of_row * along,
        along,
        vector: 1,
        across,
    };
    let is_repeated = matches!(how, Use::Repeated | Use::Moments);
    let fits = (!is_repeated || words(across) <= REPEATED_WORDS)
        && tile.threads() <= THREADS[1]
        && words(tile.rows) <= most;
    fits.then_some(tile)
}

/// Threads of a warp that share a row of so many elements that is reduced, `most` at most. Fewer have less to exchange and leave fewer without an
/// element, but rows of a warp meet in banks. Measured, softmax of f16: 17 columns take 267 us by 16 threads and 66.2 by 4, 33 88.8 and 70.7 by
/// 8, 57 96.6 by 32 and 66.4 by 8; 65 76.4 by 16 and 92.8 by 8, 301 67.7 by 32 and 93.6 by 16.
fn lanes(columns: i64, bytes: i64, most: i64) -> i64 {
    let cost = |lanes: &i64| cost([columns, bytes], *lanes, [ELEMENT, 0]);
    let fits = |lanes: &i64| *lanes <= most && count(columns, *lanes) <= LONGEST;
    let few = [4, 8, 16, WARP].into_iter().filter(fits);
    few.min_by_key(cost).unwrap_or(most)
}

/// What a row of so many columns of so many bytes costs its lanes, of which each element does, beside its accesses, and each lane once.
fn cost([columns, bytes]: [i64; 2], lanes: i64, [element, once]: [i64; 2]) -> i64 {
    let element = element + ACCESS * meetings(columns * bytes, lanes, bytes);
    let once = once + i64::from(lanes.ilog2()) * EXCHANGE;
    lanes * (count(columns, lanes) * element + once)
}

/// Words of a bank at most that lanes read at once of rows that are so many bytes apart, each of as many neighbours of so many bytes.
fn meetings(pitch: i64, lanes: i64, bytes: i64) -> i64 {
    let word = |lane: i64| (lane / lanes * pitch + lane % lanes * bytes) / BANK_BYTES;
    let mut words: Vec<i64> = (0..WARP).map(word).collect();
    words.sort_unstable();
    words.dedup();
    let banks = BANKS_BYTES / BANK_BYTES;
    let of_bank = |bank: i64| words.iter().filter(|word| **word % banks == bank).count();
    let most = (0..banks).map(of_bank).max().unwrap_or(1);
    i64::try_from(most).unwrap_or(1)
}

/// Elements of a tile's rows.
pub(super) const fn elements(tile: RowTile, columns: i64) -> i64 {
    tile.rows * columns
}

/// Those, and as many behind them as make up whole vectors of all threads.
pub(super) const fn padded(tile: RowTile, columns: i64, vector: i64) -> i64 {
    let turn = tile.threads() * vector;
    count(elements(tile, columns), turn) * turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_threads_share_a_short_row_that_meets_no_bank_twice() {
        for (columns, bytes, most, threads) in [
            (17, 2, 16, 4),
            (33, 2, 16, 8),
            (49, 2, 32, 8),
            (65, 2, 16, 16),
            (97, 2, 32, 16),
            (127, 2, 32, 32),
            (301, 2, 32, 32),
            (1001, 2, 32, 32),
            (3, 2, 4, 4),
            (3, 2, 2, 2),
        ] {
            assert_eq!(lanes(columns, bytes, most), threads, "{columns}");
        }
        assert_eq!(meetings(130, 16, 2), 2);
        assert_eq!(meetings(130, 8, 2), 4);
        assert_eq!(meetings(128, 32, 4), 1);
    }

    #[test]
    fn rows_of_a_tile_begin_and_end_at_boundaries() {
        let [map, reduced, repeated] = [Use::Elementwise, Use::Reduced, Use::Repeated];
        for (columns, bytes, how, expected) in [
            (33, 2, reduced, Some((128, 128))),
            (65, 2, reduced, Some((64, 128))),
            (127, 2, reduced, Some((32, 256))),
            (1001, 2, reduced, Some((8, 256))),
            (1001, 2, repeated, Some((8, 256))),
            (513, 2, repeated, Some((16, 256))),
            (127, 2, repeated, Some((32, 256))),
            (1002, 2, reduced, None),
            (50, 2, reduced, Some((64, 128))),
            (48, 2, reduced, None),
            (130, 2, reduced, None),
            (1001, 4, reduced, None),
            (2001, 2, reduced, None),
            (3, 2, reduced, Some((1024, 128))),
            (65, 1, reduced, Some((64, 256))),
            (65, 2, map, Some((64, 128))),
            (1001, 2, map, Some((8, 128))),
            (2001, 2, map, None),
        ] {
            let row = Row::plain(columns, bytes);
            let own = tile(row, 2 * bytes, how);
            let seen = own.map(|own| (own.rows, own.threads()));
            assert_eq!(seen, expected, "{columns} {bytes} {how:?}");
            let Some(own) = own else { continue };
            assert_eq!(own.rows * columns * bytes % ACCESS_BYTES, 0, "{columns}");
            assert!(own.layout().is_ok(), "{columns}");
        }
    }

    #[test]
    fn threads_have_many_elements_of_moments_and_few_of_several_rows_of_sums() {
        let seen = |columns, how| {
            let own = tile(Row::plain(columns, 2), 2, how)?;
            Some([own.rows, own.along, own.across, own.vector])
        };
        for (columns, moments, sums) in [
            (100, Some([32, 4, 32, 4]), Some([32, 16, 8, 1])),
            (102, Some([32, 4, 32, 2]), Some([32, 16, 8, 1])),
            (65, Some([128, 2, 64, 1]), Some([64, 16, 8, 1])),
            (127, Some([32, 16, 8, 1]), Some([32, 32, 8, 1])),
            (171, Some([32, 16, 8, 1]), Some([16, 32, 4, 1])),
            (250, Some([16, 16, 8, 2]), None),
            (252, None, None),
            (501, Some([8, 32, 4, 1]), Some([16, 32, 4, 1])),
            (770, None, None),
            (1001, Some([8, 32, 4, 1]), Some([16, 64, 4, 1])),
            (2047, None, Some([8, 128, 2, 1])),
            (3001, None, Some([8, 256, 1, 1])),
            (3077, None, None),
        ] {
            assert_eq!(seen(columns, Use::Moments), moments, "{columns}");
            assert_eq!(seen(columns, Use::Repeated), sums, "{columns}");
        }
    }
}
