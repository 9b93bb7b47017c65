//! Clusters that stay for several rows, one after the other: what all rows have of a column, as the scale and the bias of a layer
//! normalisation, they read once. A cluster of one row reads it from L2: twice the bytes of a row of f16. The parts of two
//! rows are in shared memory, so that the next one is on its way while one is reduced and stored.
//!
//! Measured, LayerNorm of 128 MiB on an H200, by clusters of one row and by those that stay, us (a copy takes 65.5):
//!
//! | f16 | one | stay | f32 | one | stay |
//! |---|---|---|---|---|---|
//! | 57,344 | 73.4 | 71.1 | 32,768 | 75.0 | 71.4 |
//! | 65,536 | 75.2 | 71.3 | 40,960 | 75.6 | 73.0 |
//! | 73,728 | 77.7 | 71.9 | 49,152 | 77.2 | 70.8 |
//! | 98,304 | 73.3 | 70.9 | 65,536 | 75.3 | 72.1 |
//! | 131,072 | 75.0 | 70.7 | 98,304 | 79.9 | 74.2 |
//!
//! Where there is no room for two rows, warps have one of them in registers ([`super::row_holds`]).

use super::problem::count;
use super::row::Row;
use super::row_holds;
use super::row_shares::{Share, alike};
use crate::facts::chip::{
    Chip, MOST_CLUSTER, MULTIPROCESSOR_REGISTERS, NON_PORTABLE_CLUSTER, RESERVED_BYTES,
};
use crate::vocabulary::WARP;

/// Rows whose parts a CTA has in shared memory.
pub(super) const STAGES: i64 = 2;
/// Warps of a CTA. Measured: LayerNorm of 65,536 columns of f16 in clusters of eight takes 71.3 us with four, 85.0 with eight.
const WARPS: i64 = 4;
/// CTAs that a multiprocessor holds, at least. Measured: LayerNorm of 98,304 columns of f32 takes 81.3 us where it holds one of a cluster of eight, 74.2
/// where it holds two of one of sixteen.
const RESIDENT: i64 = 2;
/// Bytes of a part, at least. Measured: LayerNorm of 40,960 columns of f16 takes 72.8 us so, and 73.2 in clusters of one row.
const PART_BYTES: i64 = 14 * 1024;
/// Bytes of rows that are on their way for each multiprocessor, at least, of rows with moments and of others: what memory takes until it answers. Measured:
/// LayerNorm of 65,536 columns of f16 takes 71.3 us with 43 clusters, 73.4 with 40, 76.9 with 37 and 90.2 with 30; of 114,688 in 21 clusters of sixteen
/// 77.7, and 74.0 in clusters of one row.
const ON_THEIR_WAY: (i64, i64) = (37 * 1024, 36 * 1024);
/// Rows that a cluster goes through, at least: in the last turn some have none, and all wait for the first row.
const TURNS: i64 = 20;
/// Bytes of what a warp tells the others of a row, at most: two sums in f64, or three in f32.
const STATE_BYTES: i64 = 16;
/// Bytes that parts of rows are no multiple of where it is quicker to hold them, if they are summed up in f64: moments of what is held take one exchange, and two
/// otherwise. Measured, LayerNorm of f32: 28,672 columns 71.0 us held, in parts of 56 KiB, and 74.4 to 78.3 in shared memory; 49,152 71.3 and 72.6 to 76.9;
/// 98,304 71.7 and 72.4; but 32,768 73.4, in parts of 64 KiB, and 71.6; 65,536 73.2, in parts of 32 KiB, and 71.5.
const SPREAD_BYTES: i64 = 32 * 1024;
/// Slots of what warps tell each other.
const SLOTS: i64 = 2;
/// Registers of a thread, at least.
const REGISTERS: i64 = 64;

/// Clusters that stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stays {
    /// What a CTA has of a row.
    pub share: Share,
    /// How many there are.
    pub clusters: i64,
    /// Whether warps have rows in registers.
    pub holds: bool,
}

/// How rows are shared out by clusters that stay, and how many there are; none where rows have nothing in common, are too few, or are too long or too short
/// for that.
pub(super) fn staying(row: Row, chip: &Chip) -> Option<Stays> {
    let is_summed = row.has_moments || row.adds;
    let has_common = is_summed && row.stores && row.repeated > 0;
    let is_known = !row.dynamic && chip.clustered > 0;
    if !(has_common && is_known) {
        return None;
    }
    let (shared, held) = (in_shared_memory(row, chip), row_holds::held(row, chip));
    match held.filter(|held| row.is_widened && !row.has_moments && held.is_spread(row)) {
        Some(held) => Some(held),
        None => shared.or(held),
    }
}

impl Stays {
    /// Whether parts of rows begin anywhere in what memory spreads over its channels.
    const fn is_spread(self, row: Row) -> bool {
        self.share.columns.saturating_mul(row.bytes) % SPREAD_BYTES != 0
    }
}

/// Rows that warps go through tile by tile, twice or more.
fn in_shared_memory(row: Row, chip: &Chip) -> Option<Stays> {
    let sizes: &[i64] = match is_reduced_twice(row) {
        true => &[MOST_CLUSTER, NON_PORTABLE_CLUSTER],
        false => &[],
    };
    sizes.iter().find_map(|ctas| {
        let share = alike(row, *ctas, WARPS)?;
        let of_registers = MULTIPROCESSOR_REGISTERS / (share.warps * WARP * REGISTERS);
        let resident = room_for(share, row, STAGES, chip).min(of_registers);
        let all = resident.saturating_mul(chip.clusters(share.ctas));
        // Measured: LayerNorm of 65,536 columns of f16, 1024 rows, takes 77.9 us with all 45 that there is room for, 71.3 with 43; of 57,344, 26 rows each, 71.1.
        let is_full = share.ctas == MOST_CLUSTER && resident > RESIDENT;
        let most = match is_full && row.rows.checked_rem(all)? != 0 {
            true => all - 1,
            false => all,
        };
        let is_enough = resident >= RESIDENT && row.rows / most >= TURNS;
        let clusters = is_enough.then(|| alike_turns(row, most))?;
        let least = if row.has_moments {
            ON_THEIR_WAY.0
        } else {
            ON_THEIR_WAY.1
        };
        let on_their_way = clusters * row.columns.saturating_mul(row.read);
        let is_quick =
            share.columns * row.read >= PART_BYTES && on_their_way >= least * chip.multiprocessors;
        is_quick.then_some(Stays {
            share,
            clusters,
            holds: false,
        })
    })
}

/// Whether one reduction takes the result of another.
pub(super) const fn is_reduced_twice(row: Row) -> bool {
    row.has_moments || row.folds > 1
}

/// So many clusters, or a few less, of which all have as many rows or one less: one more than a chip holds at a time would begin when all others have ended.
pub(super) const fn alike_turns(row: Row, most: i64) -> i64 {
    count(row.rows, count(row.rows, most))
}

/// CTAs whose shared memory a multiprocessor has room for, where parts of so many rows are in each beside what all rows have.
pub(super) const fn room_for(share: Share, row: Row, rows: i64, chip: &Chip) -> i64 {
    let column = row.read.saturating_mul(rows).saturating_add(row.repeated);
    let states = SLOTS * share.ctas * share.warps * STATE_BYTES;
    let bytes = share.columns.saturating_mul(column);
    (chip.shared_bytes + RESERVED_BYTES) / bytes.saturating_add(states + RESERVED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    /// CTAs, the columns of each, and clusters.
    fn stay(row: Row) -> Option<[i64; 3]> {
        let stays = staying(row, chip("sm_90a").unwrap())?;
        let Stays {
            share, clusters, ..
        } = stays;
        (!stays.holds).then_some([share.ctas, share.columns, clusters])
    }

    /// Layer normalisation of so many rows, in f32 with sums.
    fn layer_norm(rows: i64, columns: i64, bytes: i64) -> Row {
        Row {
            rows,
            repeated: 2 * bytes,
            folds: 2,
            has_moments: bytes == 2,
            adds: true,
            ..Row::plain(columns, bytes)
        }
    }

    #[test]
    fn clusters_have_about_as_many_rows_each() {
        for (columns, bytes, wanted) in [
            (49_152, 2, None),
            (57_344, 2, Some([8, 7168, 45])),
            (60_008, 2, None),
            (65_536, 2, Some([8, 8192, 43])),
            (73_728, 2, Some([8, 9216, 44])),
            (81_920, 2, None),
            (98_304, 2, Some([8, 12_288, 30])),
            (114_688, 2, None),
            (131_072, 2, Some([16, 8192, 21])),
            (163_840, 2, None),
            (200_000, 2, None),
            (262_144, 2, None),
            (32_768, 4, Some([8, 4096, 43])),
            (40_960, 4, Some([8, 5120, 30])),
            (49_152, 4, Some([8, 6144, 30])),
            (65_536, 4, Some([16, 4096, 21])),
            (98_304, 4, Some([16, 6144, 14])),
            (131_072, 4, None),
        ] {
            let row = layer_norm((1 << 27) / bytes / columns, columns, bytes);
            assert_eq!(stay(row), wanted, "{columns} {bytes}");
        }
        assert_eq!(stay(layer_norm(420, 131_072, 2)), Some([16, 8192, 21]));
        assert_eq!(stay(layer_norm(419, 131_072, 2)), None);
    }

    #[test]
    fn sums_in_f64_are_of_rows_that_are_held_where_their_parts_are_spread() {
        for (columns, wanted) in [
            (28_672, true),
            (32_768, false),
            (49_152, true),
            (65_536, false),
            (98_304, true),
        ] {
            let row = Row {
                is_widened: true,
                ..layer_norm((1 << 25) / columns, columns, 4)
            };
            let stays = staying(row, chip("sm_90a").unwrap()).unwrap();
            assert_eq!(stays.holds, wanted, "{columns}");
        }
    }

    #[test]
    fn rows_that_have_nothing_in_common_are_a_cluster_each() {
        let row = layer_norm(1024, 65_536, 2);
        for other in [
            Row { repeated: 0, ..row },
            Row {
                has_moments: false,
                folds: 1,
                ..row
            },
            Row {
                dynamic: true,
                rows: i64::MAX,
                ..row
            },
            Row {
                columns: 65_537,
                ..row
            },
        ] {
            assert_eq!(stay(other), None);
        }
        assert!(staying(row, chip("sm_80").unwrap()).is_none());
    }
}
