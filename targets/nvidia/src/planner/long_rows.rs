//! Rows that are longer than a CTA's registers hold: they are staged in shared memory, so that they are read from global
//! memory once however often a kernel goes through them. Of rows that are longer than that, too, the CTAs of a cluster have a
//! part of the columns each. There each warp forms states of reductions of its own columns, and all warps of the row exchange them
//! once a round: no barrier stands between a maximum and the sum below it. Clusters may stay for several rows ([`super::row_turns`]).

use super::row::Row;
use super::row_shares::{self, Share};
use super::row_tile::{RowTile, reduced_tile, vector};
use super::row_turns;
use super::row_walk;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, Chip};
use std::fmt;

/// Bytes of rows whose front is peeled off, at least, where registers hold them, of which threads read at most so many bytes at once. Measured: log-softmax
/// of f16 takes 76.5 us with 2001 columns, and 76.4 in registers; 72.4 and 75.3 with 3001, 69.5 and 75.7 with 4001, 70.8 and 90.7 with 16,001. Softmax of
/// f32 takes 70.5 and 71.4 with 8001, 71.9 and 76.8 with 16,001.
const LEAST_PEELED: [(i64, i64); 2] = [(2, 5000), (4, 32_000)];
/// Columns of rows that are reduced several times, at most, that registers hold, of elements of so many bytes. Measured: LayerNorm of 12,288 columns
/// of f16 takes 137 us in registers, and 68.8 in shared memory; softmax 74.5 and 67.1.
const MOST_HELD: [(i64, i64); 2] = [(2, 4096), (4, 8192)];

/// A tile of rows in registers, and where the rest of the rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowWork {
    /// What a CTA, or each of its warps, has in registers at a time.
    pub tile: RowTile,
    /// CTAs a row: a cluster.
    pub ctas: i64,
    /// Tiles that a CTA has in registers at a time, one a warp; or one of all of its threads.
    pub warps: i64,
    /// Columns that a CTA has in shared memory; none where a row is in registers, or is read piece by piece each time.
    pub staged: Option<i64>,
    /// Tiles that a warp has on their way, of rows that are read once, from global memory; none of others.
    pub ahead: i64,
    /// Whether rows go through shared memory in one piece, both ways.
    pub is_packed: bool,
    /// Clusters that stay, where each goes through several rows ([`super::row_turns`]); none where each has one.
    pub clusters: Option<i64>,
    /// Whether the warps of those have rows in registers ([`super::row_holds`]).
    pub holds: bool,
    /// Whether CTAs have what all rows have in shared memory, too, where the front of rows is peeled off.
    pub has_common: bool,
}

impl RowWork {
    /// Tiles that are read from global memory.
    pub(super) const fn of(tile: RowTile) -> Self {
        Self {
            tile,
            warps: 1,
            ctas: 1,
            staged: None,
            ahead: 0,
            is_packed: false,
            clusters: None,
            holds: false,
            has_common: false,
        }
    }

    /// Threads of a CTA.
    pub(super) const fn threads(self) -> i64 {
        self.tile.threads() * self.warps
    }

    /// Whether tiles of rows of so many columns begin at boundaries of memory where the rows do not.
    pub(super) const fn peels(self, columns: i64) -> bool {
        self.staged.is_some() && columns % self.tile.vector != 0
    }

    /// The tiles of rows that are reduced: in the registers of a CTA, else in its shared memory or that of a cluster, as far
    /// as they hold them.
    pub(super) fn of_rows(row: Row, chip: &Chip) -> Self {
        let tile = reduced_tile(row);
        match tile.columns >= row.columns {
            true => Self::of_unaligned(row, chip)
                .or_else(|| Self::of_crowded(row, chip))
                .unwrap_or(Self::of(tile)),
            false => {
                let staged = Self::staged(row, chip);
                // While one of several is reduced, the others are on their way.
                let is_crowded = |work: &Self| work.is_resident(row, chip);
                let walk = || row_walk::work(row, chip).or(staged);
                let work = staged.filter(is_crowded).or_else(walk);
                work.unwrap_or(Self::of(tile))
            }
        }
    }

    /// Rows that registers hold, but of which no vector is a part: in shared memory, where they are long enough. Their front is peeled off, unless moments of
    /// them are formed or they are summed up in wider elements: then threads have single elements, of which registers would leave few CTAs resident.
    fn of_unaligned(row: Row, chip: &Chip) -> Option<Self> {
        let at_once = vector(row.columns, row.bytes) * row.bytes;
        let least = LEAST_PEELED.into_iter().find(|(most, _)| at_once <= *most);
        let is_long =
            least.is_some_and(|(_, bytes)| row.columns.saturating_mul(row.bytes) >= bytes);
        let staged = is_long.then(|| Self::staged(row, chip)).flatten();
        let most = MOST_HELD.into_iter().find(|(bytes, _)| row.bytes <= *bytes);
        let is_crowded = most.is_some_and(|(_, columns)| row.columns > columns);
        staged.filter(|own| match (row.has_moments, row.is_widened) {
            (true, _) => is_crowded && row.stores && own.is_tight(row.columns),
            (_, true) => is_crowded && row.stores && own.ctas > 1,
            _ => own.peels(row.columns) && (own.ctas == 1 || own.has_common),
        })
    }

    /// Whether CTAs have room for no more than an eighth of a row's columns beside them.
    fn is_tight(&self, columns: i64) -> bool {
        let unused = self.staged.map(|staged| self.ctas * staged - columns);
        unused.is_some_and(|unused| unused.saturating_mul(8) <= columns)
    }

    /// Rows that registers hold, but only of so many threads that few CTAs are resident: in shared memory.
    fn of_crowded(row: Row, chip: &Chip) -> Option<Self> {
        let most = MOST_HELD.into_iter().find(|(bytes, _)| row.bytes <= *bytes);
        let is_long = most.is_some_and(|(_, columns)| row.columns > columns);
        let staged = || Self::staged(row, chip);
        let is_long = is_long && row.folds > 1 && row.columns % (ACCESS_BYTES / row.bytes) == 0;
        let staged = is_long.then(staged).flatten();
        let is_quick = |own: &Self| row.bytes < BANK_BYTES && own.is_resident(row, chip);
        staged.filter(|own| row.stores || row.is_read_once && is_quick(own))
    }

    /// Whether a multiprocessor holds as many rows of single CTAs as overlap each other.
    fn is_resident(&self, row: Row, chip: &Chip) -> bool {
        let holds = |columns| row_shares::is_resident(columns, row, chip);
        self.ctas == 1 && self.staged.is_some_and(holds)
    }

    fn staged(row: Row, chip: &Chip) -> Option<Self> {
        let share = row_shares::share(row, chip);
        let is_short = share.is_some_and(|share| share.ctas == 1);
        let stays = (!is_short).then(|| row_turns::staying(row, chip)).flatten();
        let Share {
            tile,
            warps,
            ctas,
            columns,
            has_common,
        } = stays.map_or(share, |stays| Some(stays.share))?;
        Some(Self {
            tile,
            warps,
            ctas,
            staged: Some(columns),
            ahead: 0,
            is_packed: false,
            clusters: stays.map(|stays| stays.clusters),
            holds: stays.is_some_and(|stays| stays.holds),
            has_common,
        })
    }
}

impl fmt::Display for RowWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tile.fmt(f)?;
        if self.warps > 1 {
            write!(f, " of {} warps", self.warps)?;
        }
        if self.ahead > 0 {
            write!(f, ", {} tiles on their way", self.ahead)?;
        }
        if self.is_packed {
            write!(f, ", in one piece through shared memory")?;
        }
        if let Some(columns) = self.staged {
            let common = match self.has_common {
                true => ", what all rows have, too",
                false => "",
            };
            write!(f, ", {columns} columns in shared memory{common}")?;
        }
        if self.ctas > 1 {
            write!(f, " of each of {} CTAs", self.ctas)?;
        }
        match self.clusters {
            None => Ok(()),
            Some(clusters) => {
                let held = if self.holds { " in registers" } else { "" };
                write!(f, ", {clusters} clusters that stay for several rows{held}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    fn work(columns: i64, bytes: i64, name: &str) -> RowWork {
        let row = Row::plain(columns, bytes);
        RowWork::of_rows(row, chip(name).unwrap())
    }

    #[test]
    fn rows_are_in_registers_then_in_shared_memory_then_in_a_cluster() {
        for (columns, ctas, staged) in [
            (2001, 1, None),
            (4001, 1, Some(4096)),
            (4002, 1, None),
            (16_002, 1, Some(16_384)),
            (16_384, 1, None),
            (32_768, 2, Some(16_384)),
            (32_001, 1, Some(32_768)),
            (40_008, 4, Some(10_240)),
            (40_001, 2, Some(20_480)),
            (60_008, 4, Some(16_384)),
            (131_072, 8, Some(16_384)),
            (262_144, 16, Some(16_384)),
            (524_288, 16, Some(32_768)),
        ] {
            let work = work(columns, 2, "sm_90a");
            assert_eq!((work.ctas, work.staged), (ctas, staged), "{work}");
            assert!(staged.is_none_or(|part| part % (work.warps * work.tile.columns) == 0));
            assert!(
                staged.is_none_or(|part| (ctas - 1) * part < columns && ctas * part >= columns)
            );
        }
    }

    #[test]
    fn rows_that_are_reduced_twice_leave_registers_where_few_ctas_would_be_resident() {
        let chip = chip("sm_90a").unwrap();
        let work = |columns: i64, bytes: i64, is_read_once: bool| {
            let row = Row {
                folds: 2,
                stores: !is_read_once,
                is_read_once,
                ..Row::plain(columns, bytes)
            };
            RowWork::of_rows(row, chip)
        };
        for (columns, bytes, is_read_once, wanted) in [
            (4096, 2, false, (1, None, 128)),
            (5120, 2, false, (1, Some(6144), 128)),
            (16_384, 2, false, (1, Some(16_384), 256)),
            (16_384, 2, true, (1, Some(16_384), 256)),
            (8192, 4, false, (1, None, 256)),
            (12_288, 4, false, (1, Some(12_288), 256)),
            (16_384, 4, false, (2, Some(8192), 256)),
            (16_384, 4, true, (1, None, 512)),
        ] {
            let work = work(columns, bytes, is_read_once);
            let own = (work.ctas, work.staged, work.threads());
            assert_eq!(own, wanted, "{columns} {bytes}");
        }
    }

    #[test]
    fn clusters_stay_for_rows_that_have_something_in_common() {
        let row = Row {
            rows: 1024,
            repeated: 4,
            has_moments: true,
            adds: true,
            ..Row::plain(65_536, 2)
        };
        let chip = chip("sm_90a").unwrap();
        let stays = "1 x 256 by 32 threads, 8 elements at once of 4 warps, 8192 columns in shared memory of each of 8 CTAs, 43 clusters that stay for several rows";
        assert_eq!(RowWork::of_rows(row, chip).to_string(), stays);
        let own = RowWork::of_rows(Row { repeated: 0, ..row }, chip);
        assert_eq!((own.ctas, own.clusters), (4, None));
    }

    #[test]
    fn ctas_of_a_cluster_have_about_as_many_columns_each() {
        let work = work(50_257, 4, "sm_90a");
        assert_eq!((work.ctas, work.staged), (4, Some(13_312)));
    }

    #[test]
    fn rows_that_begin_anywhere_are_in_vectors_where_their_front_is_peeled_off() {
        for (columns, ctas, warps) in [
            (3001, 1, 2),
            (4001, 1, 4),
            (8001, 1, 8),
            (16_001, 1, 8),
            (32_001, 1, 16),
            (40_001, 2, 8),
            (50_257, 2, 8),
        ] {
            let row = Row::plain(columns, 2);
            let chip = chip("sm_90a").unwrap();
            let work = RowWork::of_rows(row, chip);
            assert_eq!((work.ctas, work.warps), (ctas, warps), "{work}");
            assert_eq!((work.tile.vector, work.peels(columns)), (8, true), "{work}");
            let counted = Row {
                has_moments: true,
                ..row
            };
            let work = RowWork::of_rows(counted, chip);
            assert_eq!(
                (work.tile.vector, work.peels(columns)),
                (1, false),
                "{work}"
            );
        }
    }

    #[test]
    fn parts_are_of_few_warps_where_many_ctas_are_resident() {
        for (columns, bytes, ctas, warps) in [
            (128_256, 2, 8, 8),
            (128_256, 4, 16, 8),
            (151_936, 2, 8, 8),
            (151_936, 4, 16, 8),
        ] {
            let work = work(columns, bytes, "sm_90a");
            assert_eq!((work.ctas, work.warps), (ctas, warps), "{work}");
        }
    }

    #[test]
    fn rows_that_are_read_once_are_walked_where_few_are_held_at_a_time() {
        let chip = chip("sm_90a").unwrap();
        for (columns, folds, walks) in [
            (16_384, 2, false),
            (32_000, 2, false),
            (50_257, 2, true),
            (128_256, 2, true),
            (32_000, 1, true),
        ] {
            let row = Row {
                folds,
                stores: false,
                is_read_once: true,
                ..Row::plain(columns, 2)
            };
            let work = RowWork::of_rows(row, chip);
            assert_eq!(work.ahead > 0, walks, "{columns} {work}");
            assert!(work.ahead == 0 || work.staged.is_none(), "{work}");
        }
    }

    #[test]
    fn what_fits_no_shared_memory_goes_piece_by_piece() {
        for work in [
            work(1 << 20, 2, "sm_90a"),
            work(131_072, 2, "sm_80"),
            work(i64::MAX / 8 * 8, 2, "sm_90a"),
        ] {
            assert_eq!((work.ctas, work.staged), (1, None));
        }
        assert_eq!(work(65_536, 2, "sm_80").staged, Some(65_536));
        let once = Row {
            folds: 0,
            ..Row::plain(32_768, 2)
        };
        assert_eq!(RowWork::of_rows(once, chip("sm_90a").unwrap()).staged, None);
        let odd = Row {
            columns: 40_001,
            folds: 1,
            dynamic: true,
            ..once
        };
        assert_eq!(RowWork::of_rows(odd, chip("sm_90a").unwrap()).staged, None);
    }
}
