//! Long rows that clusters which stay hold in registers ([`super::held_rows`]): what shared memory would have of a second row has room for what all rows
//! have, and each row goes through shared memory once.

use super::row::Row;
use super::row_shares::{Share, alike};
use super::row_turns::{Stays, alike_turns, is_reduced_twice, room_for};
use crate::facts::chip::{
    BANK_BYTES, Chip, MOST_CLUSTER, MULTIPROCESSOR_REGISTERS, NON_PORTABLE_CLUSTER,
    THREAD_REGISTERS,
};
use crate::vocabulary::WARP;

/// CTAs of a cluster, and bytes of a part of a tensor at least, of rows that are reduced twice and of others: what warps do once a row is as much as they do for
/// some ten columns a lane. Measured: LayerNorm of f16 takes 71.1 us of 36,864 columns in parts of 36 KiB by clusters of two (75.7 in clusters of one row),
/// 75.3 in parts of 18 KiB by clusters of four; of 32,768 columns 73.9 in parts of 32 KiB, 72.6 before. RMSNorm of f32 takes 69.4 us of 131,072 columns in
/// parts of 64 KiB (70.8 before), 71.5 of 98,304 in parts of 48 KiB (70.9).
const PARTS: [(i64, i64, Option<i64>); 4] = [
    (2, 36 * 1024, None),
    (4, 28 * 1024, None),
    (MOST_CLUSTER, 24 * 1024, Some(60 * 1024)),
    (NON_PORTABLE_CLUSTER, 20 * 1024, Some(40 * 1024)),
];
/// Warps of a CTA, the better ones first. Measured: LayerNorm of 262,144 columns of f32 takes 76.1 us with eight, 89.1 with sixteen.
const WARPS: [i64; 2] = [8, 4];
/// Columns that a lane has of a row, at most.
const LANE_COLUMNS: i64 = 80;
/// Registers of a thread beside those of its columns.
const REGISTERS: i64 = 48;
/// Warps of a multiprocessor, at least.
const RESIDENT_WARPS: i64 = 8;
/// Rows that a cluster goes through, at least: in the last turn some have none.
const TURNS: i64 = 9;
/// Bytes of rows that are on their way for each multiprocessor, at least: what memory takes until it answers. Measured: LayerNorm of f32 takes 79.8 us of
/// 163,840 columns with 34 KiB (81.5 in clusters of one row), 75.8 of 262,144 with 54 KiB.
const ON_THEIR_WAY: i64 = 33 * 1024;

/// How rows are shared out by clusters that hold them, and how many there are, so that as much as can be is on its way; none where that is not quicker.
pub(super) fn held(row: Row, chip: &Chip) -> Option<Stays> {
    let bytes = row.columns.saturating_mul(row.read);
    let ways = PARTS.into_iter().filter_map(|part| stays(row, part, chip));
    let best = ways.max_by_key(|stays| stays.clusters * bytes)?;
    (best.clusters * bytes >= ON_THEIR_WAY * chip.multiprocessors).then_some(best)
}

/// By clusters of so many CTAs; none where they would have short parts, or few rows.
fn stays(row: Row, (ctas, twice, once): (i64, i64, Option<i64>), chip: &Chip) -> Option<Stays> {
    let least = match is_reduced_twice(row) {
        true => Some(twice),
        false => once,
    };
    let mut parts = WARPS.into_iter();
    let (share, resident) = parts.find_map(|warps| part(row, [ctas, warps], chip))?;
    let most = resident * chip.clusters(ctas);
    let is_long = share.columns.saturating_mul(row.bytes) >= least?;
    (is_long && row.rows / most >= TURNS).then(|| Stays {
        share,
        clusters: alike_turns(row, most),
        holds: true,
    })
}

/// The part of a CTA of so many warps, and how many of these CTAs a multiprocessor holds. All that it has room for have registers enough: of fewer clusters
/// than there is room for some multiprocessors would have several CTAs, and others none.
fn part(row: Row, [ctas, warps]: [i64; 2], chip: &Chip) -> Option<(Share, i64)> {
    let share = alike(row, ctas, warps)?;
    let columns = share.columns / (warps * WARP);
    let registers = columns * registers(row) / BANK_BYTES + REGISTERS;
    let resident = room_for(share, row, 1, chip);
    let fits = columns <= LANE_COLUMNS
        && resident * warps >= RESIDENT_WARPS
        && registers <= THREAD_REGISTERS
        && resident * warps * WARP * registers <= MULTIPROCESSOR_REGISTERS;
    fits.then_some((share, resident))
}

/// Bytes of registers of a column: of what is read and, of elements that are summed up in wider ones, what these are then.
const fn registers(row: Row) -> i64 {
    match (row.is_widened, row.has_moments) {
        (true, _) => 3 * BANK_BYTES,
        (_, true) => BANK_BYTES,
        _ => row.read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    /// CTAs, their warps, the columns of each, and clusters.
    fn holds(row: Row) -> Option<[i64; 4]> {
        let stays = held(row, chip("sm_90a").unwrap())?;
        let Share {
            ctas,
            warps,
            columns,
            ..
        } = stays.share;
        Some([ctas, warps, columns, stays.clusters])
    }

    /// Layer normalisation of 128 MiB.
    fn layer_norm(columns: i64, bytes: i64) -> Row {
        Row {
            rows: (1 << 27) / bytes / columns,
            repeated: 2 * bytes,
            folds: 2,
            has_moments: bytes == 2,
            is_widened: bytes == 4,
            adds: true,
            ..Row::plain(columns, bytes)
        }
    }

    /// RMSNorm of so many tensors' sum, of 128 MiB each.
    fn rms_norm(columns: i64, bytes: i64, tensors: i64) -> Row {
        Row {
            rows: (1 << 27) / bytes / columns,
            read: tensors * bytes,
            repeated: bytes,
            adds: true,
            ..Row::plain(columns, bytes)
        }
    }

    #[test]
    fn as_much_as_can_be_is_on_its_way() {
        for (columns, bytes, wanted) in [
            (32_768, 2, None),
            (36_864, 2, Some([2, 8, 18_432, 130])),
            (40_960, 2, Some([2, 8, 20_480, 66])),
            (60_008, 2, None),
            (163_840, 2, Some([16, 4, 10_240, 21])),
            (262_144, 2, Some([16, 8, 16_384, 14])),
            (16_384, 4, None),
            (28_672, 4, Some([2, 8, 14_336, 65])),
            (49_152, 4, Some([4, 8, 12_288, 30])),
            (131_072, 4, Some([8, 8, 16_384, 15])),
            (163_840, 4, Some([16, 8, 10_240, 7])),
            (200_000, 4, None),
            (262_144, 4, Some([16, 8, 16_384, 7])),
            (524_288, 4, None),
        ] {
            assert_eq!(
                holds(layer_norm(columns, bytes)),
                wanted,
                "{columns} {bytes}"
            );
        }
    }

    #[test]
    fn rows_that_are_reduced_once_are_long() {
        for (columns, bytes, tensors, wanted) in [
            (262_144, 2, 1, None),
            (65_536, 4, 1, None),
            (98_304, 4, 1, None),
            (131_072, 4, 1, Some([8, 8, 16_384, 15])),
            (163_840, 4, 1, Some([8, 8, 20_480, 15])),
            (262_144, 4, 1, Some([16, 8, 16_384, 7])),
            (262_144, 2, 2, None),
            (262_144, 4, 2, Some([16, 8, 16_384, 7])),
        ] {
            let row = rms_norm(columns, bytes, tensors);
            assert_eq!(holds(row), wanted, "{columns} {bytes} {tensors}");
        }
    }

    #[test]
    fn few_rows_are_a_cluster_each() {
        let of = |rows| Row {
            rows,
            ..layer_norm(262_144, 4)
        };
        assert_eq!(holds(of(63)), Some([16, 8, 16_384, 7]));
        assert_eq!(holds(of(62)), None);
    }
}
