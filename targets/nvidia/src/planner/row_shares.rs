//! How rows in shared memory are shared out: by one CTA or those of a cluster, whose threads go through them together or whose warps have
//! columns of their own ([`super::long_rows`]).

use super::problem::count;
use super::row::Row;
use super::row_tile::RowTile;
use super::uneven_shares::uneven;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, Chip, MOST_CLUSTER, NON_PORTABLE_CLUSTER};
use crate::vocabulary::WARP;

/// CTAs of a multiprocessor that have rows, or parts of them: one's loads overlap with another's reductions and stores.
const RESIDENT: i64 = 3;
/// Bytes of a row that one CTA has, where clusters could share it. Measured: RMSNorm of 40,960 columns of f16 takes 68.4 us in clusters of four,
/// 75.6 in clusters of two.
const ALONE_BYTES: i64 = 48 * 1024;
/// Threads of a CTA that has a row of so many columns at most, and of one that has a longer row. Measured: log-softmax of 16,384 columns of f16
/// takes 66.4 us by 256 threads, and cross entropy 64.1, 74.6 by 512.
const ROW_THREADS: [(i64, i64); 2] = [(6144, 128), (16_384, 256)];
const THREADS: i64 = 512;
/// Warps of a CTA that has a part, each of which goes through columns of its own, and bytes of a part, where a cluster of eight has no more. What
/// a warp does once a row is as much as it does for some ten elements a lane, so that few warps have many columns where enough are resident.
/// Measured: RMSNorm of 24,576 columns of f32 takes 67.8 us in parts of 24 KiB by 8 warps, 76.6 by 16, and 83.7 in one CTA of 16 warps.
const PART: (i64, i64) = (8, 32 * 1024);
/// Warps of longer parts, and CTAs of a multiprocessor.
const PARTS: [(i64, i64); 3] = [(8, 4), (16, RESIDENT), (16, RESIDENT - 1)];
/// Warps where a part leaves no room for another CTA.
const LARGEST: i64 = 16;
/// Bytes of a row that one CTA has, where it is summed up in f64, or its moments are formed.
const SLOW_ALONE_BYTES: i64 = 24 * 1024;
/// Warps and bytes of parts whose moments are formed. Measured: LayerNorm of 65,536 columns of f16 takes 74.2 us in parts of 32 KiB by 4 warps,
/// 78.3 by 8.
const MOMENT_PARTS: [(i64, i64); 2] = [(4, 32 * 1024), (8, 64 * 1024)];
/// The same where exponentials are formed twice, since what is stored is wider than what is staged, two vectors at a time. Measured: softmax of 65,536 columns
/// of f16 with results in f32 takes 105.4 us in parts of 16 KiB by 4 warps, 107.5 in parts of 32 KiB and 114.4 in these by 8, a vector at a time; of 128,256
/// 109.9 in parts of 32 KiB, 119.9 by 8; of 50,304 110.5 in clusters of four, and 125.2 in clusters of eight, whose warps have room for an eighth more.
const COMPUTED_PARTS: [(i64, i64); 2] = [(4, 28 * 1024), (4, 40 * 1024)];
/// Warps of one CTA that forms the moments of a row of so many columns at most, and of a longer one.
const MOMENT_WARPS: (i64, i64) = (8192, 4);
const MOST_MOMENT_WARPS: i64 = 8;
/// Elements of a tensor that a thread has in registers at a time, in vectors: of sums in parts that so many divide, too, and of one sum in others. Measured:
/// RMSNorm of 200,000 columns of f16 takes 74.7 us in these, 83.7 in one vector at a time, of 90,112 of f32 71.5 and 80.0.
pub(super) const VECTORS: i64 = 2;
/// The same of other parts.
pub(super) const PART_VECTORS: i64 = 1;
/// The part of a row's columns that CTAs may have room for beside it, at most, where rows are summed up once.
const MOST_UNUSED: i64 = 6;
/// Columns of a warp of a row whose front is peeled off, at least.
const PEELED_COLUMNS: i64 = 1000;
/// Warps of a CTA of the widest cluster, and bytes of its part at least: of sums, and of others. Measured, in it and in one of 8: softmax of 262,144
/// columns of f32 72.7 and 88.2 us, of 98,304 66.7 and 68.9, of 151,936 of f16, 20 KiB a part, 76.7 and 69.7; RMSNorm of 200,000 of f32 80.4 and
/// 88.1, of 163,840 75.0 and 74.2.
const WIDE_SUMS: (i64, i64) = (16, 48 * 1024);
/// See [`WIDE_SUMS`].
const WIDE: (i64, i64) = (8, 24 * 1024);
/// The same of places of extremes, which are found in two folds and of which nothing is stored. Measured: argmax of 262,144 columns of f32 takes 66.3 us, 92.5
/// in a cluster of 8, of 163,840 63.4 and 69.5, of 131,072, 32 KiB a part, 64.9 and 65.0, of 98,304 74.8 and 62.6.
const WIDE_PLACES: (i64, i64) = (8, 40 * 1024);
/// The part of a row's columns by which those of others than sums may have room for more. Measured: softmax of 200,000 columns of f16, whose last
/// CTA would have none, takes 72.9 us, and 70.4 in a cluster of 8.
const UNEVEN: i64 = 10;
/// CTAs that have what all rows have of words beside a row whose front is peeled off. Measured: RMSNorm of f32 takes 73.5 us with 16,386 columns, 98.8 where the
/// scale is read from global memory, with 40,001 by eight 72.6 and 81.7, with 65,537 77.4 and 84.2, with 131,073 by sixteen 83.1 and 87.3; of a sum of 12,001 138.4
/// and 175.4.
const COMMON_CTAS: [i64; 4] = [2, 4, MOST_CLUSTER, NON_PORTABLE_CLUSTER];
/// Warps of such a CTA where those of a part would have room for more than an eighth of the row's columns beside them. Measured: RMSNorm of 50,257 columns of f32
/// takes 79.8 us by 8 warps of eight CTAs, 76.0 by 4, of 25,003 77.8 and 74.7; of 16,387, an eighth, 72.4 and 76.6.
const COMMON_WARPS: (i64, i64) = (4, 8);
/// Bytes of a row that begins anywhere and whose moments one CTA forms. Measured, LayerNorm of f16: 16,387 columns take 104.8 us so, 107.6 by two, 33,333 118 and
/// 111.9.
pub(super) const UNALIGNED_MOMENT_BYTES: i64 = 40 * 1024;
/// Shared memory that reductions take beside parts of rows, in bytes.
const STATES_BYTES: i64 = 1024;

/// What a CTA has of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// What all of its threads, or those of a warp, have in registers at a time.
    pub tile: RowTile,
    /// Tiles that it has in registers at a time: one, or one a warp.
    pub warps: i64,
    /// CTAs that share a row.
    pub ctas: i64,
    /// Columns that it has in shared memory.
    pub columns: i64,
    /// Whether it has what all rows have of them there, too: vectors of it begin anywhere where the row's front is peeled off.
    pub has_common: bool,
}

/// How rows are shared out; none where shared memory does not hold them, or they are gone through once.
pub(super) fn share(row: Row, chip: &Chip) -> Option<Share> {
    let shares = Shares::of(row);
    let is_known = shares.is_aligned || !row.dynamic;
    let passes = row.folds + usize::from(row.stores);
    (passes > 1 && row.read > 0 && is_known)
        .then(|| shares.find(chip))
        .flatten()
}

/// How rows are shared out by a cluster of so many CTAs of so many warps, whose parts are as long as each other; none where they would not be.
pub(super) fn alike(row: Row, ctas: i64, warps: i64) -> Option<Share> {
    let shares = Shares::of(row);
    let tile = shares.tile(WARP, PART_VECTORS);
    let is_even = shares.is_aligned && row.columns % (ctas * warps * tile.columns) == 0;
    is_even.then_some(Share {
        tile,
        warps,
        ctas,
        columns: row.columns / ctas,
        has_common: false,
    })
}

/// Long rows that a chip has work from, of which each is a CTA's, or a cluster's.
pub(super) const fn enough(chip: &Chip) -> i64 {
    match chip.clustered {
        0 => 2 * chip.multiprocessors,
        _ => 2 * chip.multiprocessors / MOST_CLUSTER,
    }
}

/// Bytes of a row at most that the CTAs of a chip's widest cluster hold.
pub(super) const fn most_held(chip: &Chip) -> i64 {
    let ctas = if chip.clustered > 0 {
        NON_PORTABLE_CLUSTER
    } else {
        1
    };
    ctas * resident_bytes(1, chip)
}

/// Whether a multiprocessor holds as many parts of so many columns as overlap each other.
pub(super) const fn is_resident(columns: i64, row: Row, chip: &Chip) -> bool {
    columns.saturating_mul(row.read) <= resident_bytes(RESIDENT, chip)
}

/// The ways in which rows can be shared out.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    pub(super) row: Row,
    /// Elements of a vector.
    vector: i64,
    /// Whether rows begin at boundaries of vectors.
    pub(super) is_aligned: bool,
}

impl Shares {
    fn of(row: Row) -> Self {
        let vector = (ACCESS_BYTES / row.bytes).max(1);
        Self {
            row,
            vector,
            is_aligned: row.columns % vector == 0,
        }
    }

    fn find(self, chip: &Chip) -> Option<Share> {
        let found = self.usual(chip);
        let is_loose = |share: Share| share.ctas.saturating_mul(share.columns) != self.row.columns;
        match self.row.stores && chip.clustered > 0 && found.is_some_and(is_loose) {
            true => uneven(self).or(found),
            false => found,
        }
    }

    /// How rows are shared out where nothing else is known.
    fn usual(self, chip: &Chip) -> Option<Share> {
        let row = self.row;
        let sizes: &[i64] = match chip.clustered {
            0 => &[],
            _ => &[2, 4, MOST_CLUSTER],
        };
        let resident = |ctas: i64| resident_bytes(ctas, chip);
        let (alone, first): (i64, &[(i64, i64)]) = match (row.has_moments, row.is_widened) {
            (true, _) => (SLOW_ALONE_BYTES, &MOMENT_PARTS),
            (_, true) => (SLOW_ALONE_BYTES, &[]),
            _ if self.is_computed() => (ALONE_BYTES, &COMPUTED_PARTS),
            _ => (ALONE_BYTES, &[PART]),
        };
        // Measured: batch normalisation in training, of which nothing is stored, takes 154 us in such parts, and 113 otherwise.
        let (alone, first) = match self.is_aligned && row.stores {
            true => (alone.min(resident(RESIDENT)), first),
            false if row.has_moments => (UNALIGNED_MOMENT_BYTES, &[][..]),
            false => (resident(RESIDENT), &[][..]),
        };
        if let Some(share) = self.with_common(resident(RESIDENT), chip) {
            return Some(share);
        }
        let parts = |of: &[(i64, i64)]| of.iter().find_map(|part| self.in_parts(sizes, *part));
        let others = PARTS.map(|(warps, ctas)| (warps, resident(ctas)));
        // What is formed of sums, or in f64, is no quicker in more and shorter parts.
        let is_slow = row.adds && !row.has_moments || row.is_widened;
        let (before, behind) = others.split_at(if is_slow { 2 } else { 0 });
        self.by_one_cta(alone)
            .or_else(|| parts(first))
            .or_else(|| parts(before))
            .or_else(|| self.in_wide_cluster(chip))
            .or_else(|| parts(behind))
            .or_else(|| self.by_one_cta(resident(1)))
            .or_else(|| self.in_parts(sizes, (LARGEST, resident(1))))
    }

    /// Whether exponentials are formed twice, since what is stored is wider than what is staged.
    const fn is_computed(self) -> bool {
        let row = self.row;
        let is_exponential = !row.adds && !row.has_moments && !row.is_widened;
        self.is_aligned && is_exponential && row.stores && row.folds > 1 && row.read < row.bytes
    }

    /// By a cluster of more CTAs than every chip has room for, where their parts are long and about as long as each other.
    fn in_wide_cluster(self, chip: &Chip) -> Option<Share> {
        let row = self.row;
        let is_summed = row.adds && !row.has_moments && !row.is_widened;
        let (warps, least) = match row.stores {
            _ if is_summed => WIDE_SUMS,
            true => WIDE,
            false => WIDE_PLACES,
        };
        let is_taken = row.stores || !row.adds;
        let is_quick = self.is_aligned && is_taken && chip.clustered > 0;
        let bytes = resident_bytes(RESIDENT, chip);
        let share = is_quick.then(|| self.in_parts(&[NON_PORTABLE_CLUSTER], (warps, bytes)))??;
        let unused = share.ctas.saturating_mul(share.columns) - row.columns;
        let is_even = is_summed || unused <= row.columns / UNEVEN;
        (is_even && share.columns.saturating_mul(row.read) >= least).then_some(share)
    }

    /// By one CTA, where a row is no more bytes than that.
    fn by_one_cta(self, bytes: i64) -> Option<Share> {
        let columns = self.row.columns;
        match (self.peels(), self.row.has_moments) {
            (true, _) => self.in_parts(&[1], (peeled_warps(columns), bytes)),
            (_, true) => self.in_parts(&[1], (moment_warps(columns), bytes)),
            _ => {
                let tile = self.tile(row_threads(columns), VECTORS);
                let columns = rounded_up(columns, tile.columns);
                self.fits(columns, bytes).then_some(Share {
                    tile,
                    warps: 1,
                    ctas: 1,
                    columns,
                    has_common: false,
                })
            }
        }
    }

    /// By one CTA that has what all rows have beside a row whose front is peeled off, where both are no more bytes than that; of elements of a word, which
    /// global memory gives one by one otherwise, also by those of a cluster.
    fn with_common(self, bytes: i64, chip: &Chip) -> Option<Share> {
        let common = Self {
            row: Row {
                read: self.row.read.saturating_add(self.row.repeated),
                ..self.row
            },
            ..self
        };
        let has_common = self.peels() && self.row.repeated > 0;
        let alone = || common.in_parts(&[1], (peeled_warps(self.row.columns), bytes));
        let few: &[i64] = match self.row.bytes < BANK_BYTES || chip.clustered == 0 {
            true => &[],
            false => &COMMON_CTAS,
        };
        let by = |warps: i64| common.in_parts(few, (warps, bytes));
        let by_few = || {
            let many = by(COMMON_WARPS.1)?;
            let unused = many.ctas.saturating_mul(many.columns) - self.row.columns;
            let is_loose = unused.saturating_mul(8) > self.row.columns;
            by(COMMON_WARPS.0).filter(|_| is_loose).or(Some(many))
        };
        let share = has_common.then(|| alone().or_else(by_few))??;
        Some(Share {
            has_common,
            ..share
        })
    }

    /// By the first of these numbers of CTAs whose parts are no more bytes than that, of which warps have columns of their own.
    fn in_parts(self, sizes: &[i64], (warps, bytes): (i64, i64)) -> Option<Share> {
        let of_vectors = |ctas: i64, vectors: i64| {
            let tile = self.tile(WARP, vectors);
            Share {
                tile,
                warps,
                ctas,
                columns: rounded_up(count(self.row.columns, ctas), warps * tile.columns),
                has_common: false,
            }
        };
        let part = |ctas: i64| {
            let [many, few] = [VECTORS, PART_VECTORS].map(|vectors| of_vectors(ctas, vectors));
            // CTAs have about as many columns each, but where rows are summed up once.
            let is_summed = self.row.adds && self.row.stores;
            let unused = ctas.saturating_mul(many.columns) - self.row.columns;
            let is_once = self.row.folds == 1 && !self.row.has_moments;
            let is_once = is_once && unused <= self.row.columns / MOST_UNUSED;
            let is_even = is_once || many.columns <= few.columns;
            let is_even = self.is_aligned && is_summed && is_even;
            let chosen = match is_even || self.is_computed() && warps == COMPUTED_PARTS[0].0 {
                true => many,
                false => few,
            };
            self.fits(chosen.columns, bytes).then_some(chosen)
        };
        sizes.iter().copied().find_map(part)
    }

    const fn fits(self, columns: i64, bytes: i64) -> bool {
        columns.saturating_mul(self.row.read) <= bytes
    }

    /// Whether the front of rows is peeled off.
    const fn peels(self) -> bool {
        !self.is_aligned && !self.row.has_moments && !self.row.is_widened
    }

    /// So many vectors of each thread.
    pub(super) const fn tile(self, along: i64, vectors: i64) -> RowTile {
        let in_vectors = self.is_aligned || self.peels() && along == WARP;
        RowTile {
            rows: 1,
            columns: along * self.vector * vectors,
            along,
            vector: if in_vectors { self.vector } else { 1 },
            across: 1,
        }
    }
}

/// Threads of a CTA that has a row of so many columns.
fn row_threads(columns: i64) -> i64 {
    let few = ROW_THREADS.into_iter().find(|(most, _)| columns <= *most);
    few.map_or(THREADS, |(_, threads)| threads)
}

/// Warps of a CTA that forms the moments of a row of so many columns.
const fn moment_warps(columns: i64) -> i64 {
    let (most, few) = MOMENT_WARPS;
    if columns <= most {
        few
    } else {
        MOST_MOMENT_WARPS
    }
}

/// Warps of a CTA that has a row of so many columns whose front is peeled off: what a warp does once a row is as much as it does for some
/// hundred columns. Measured: log-softmax of 8001 columns of f16 takes 95.0 us with 16 warps, 69.9 with 8; of 20,001 columns 69.7 and 70.4.
const fn peeled_warps(columns: i64) -> i64 {
    match columns / PEELED_COLUMNS {
        0..2 => 1,
        2..4 => 2,
        4..8 => 4,
        8..20 => 8,
        _ => THREADS / WARP,
    }
}

/// The least multiple that is not below a number.
pub(super) const fn rounded_up(number: i64, multiple: i64) -> i64 {
    count(number, multiple).saturating_mul(multiple)
}

/// Bytes of rows that a CTA has in shared memory, of so many of a multiprocessor.
const fn resident_bytes(resident: i64, chip: &Chip) -> i64 {
    chip.shared_bytes / resident - STATES_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    /// CTAs, their warps, elements of a thread and columns.
    fn shared(row: Row) -> Option<[i64; 4]> {
        let share = share(row, chip("sm_90a").unwrap())?;
        let threads = share.tile.threads();
        Some([
            share.ctas,
            share.warps * threads / WARP,
            share.tile.columns / threads,
            share.columns,
        ])
    }

    #[test]
    fn long_rows_are_parts_of_few_warps() {
        for (columns, bytes, wanted) in [
            (12_288, 2, [1, 8, 16, 12_288]),
            (16_384, 2, [1, 8, 16, 16_384]),
            (24_576, 2, [1, 16, 16, 24_576]),
            (32_768, 2, [2, 8, 16, 16_384]),
            (65_536, 2, [4, 8, 16, 16_384]),
            (131_072, 2, [8, 8, 16, 16_384]),
            (262_144, 2, [8, 16, 16, 32_768]),
            (24_576, 4, [4, 8, 8, 6144]),
            (65_536, 4, [8, 8, 8, 8192]),
            (262_144, 4, [16, 16, 8, 16_384]),
        ] {
            let row = Row {
                adds: true,
                ..Row::plain(columns, bytes)
            };
            assert_eq!(shared(row), Some(wanted), "{columns} {bytes}");
        }
    }

    #[test]
    fn exponentials_that_are_formed_twice_are_those_of_few_warps() {
        for (columns, read, wanted) in [
            (32_000, 2, [4, 4, 8, 8192]),
            (50_304, 2, [4, 4, 8, 13_312]),
            (65_536, 2, [8, 4, 8, 8192]),
            (128_256, 2, [8, 4, 8, 16_384]),
            (151_936, 2, [8, 4, 8, 19_456]),
            (65_536, 4, [8, 8, 4, 8192]),
        ] {
            let row = Row {
                folds: 2,
                read,
                ..Row::plain(columns, 4)
            };
            assert_eq!(shared(row), Some(wanted), "{columns} {read}");
        }
    }

    #[test]
    fn moments_are_formed_by_fewer_warps() {
        for (columns, wanted) in [
            (5120, [1, 4, 8, 5120]),
            (8192, [1, 4, 16, 8192]),
            (12_288, [1, 8, 16, 12_288]),
            (32_768, [2, 4, 16, 16_384]),
            (65_536, [4, 4, 16, 16_384]),
            (262_144, [8, 8, 16, 32_768]),
        ] {
            let row = Row {
                adds: true,
                has_moments: true,
                ..Row::plain(columns, 2)
            };
            assert_eq!(shared(row), Some(wanted), "{columns}");
        }
    }

    #[test]
    fn longest_rows_are_those_of_more_ctas_than_every_chip_has_room_for() {
        let chip = chip("sm_90a").unwrap();
        let of = |columns, bytes, adds, is_widened| {
            let row = Row {
                adds,
                is_widened,
                ..Row::plain(columns, bytes)
            };
            share(row, chip).map(|share| (share.ctas, share.warps * share.tile.threads() / WARP))
        };
        for (columns, bytes, adds, is_widened, wanted) in [
            (98_304, 4, false, false, (16, 8)),
            (131_072, 2, false, false, (8, 8)),
            (151_936, 2, false, false, (8, 8)),
            (163_840, 4, true, false, (8, 16)),
            (200_000, 2, false, false, (8, 8)),
            (262_144, 2, false, false, (16, 8)),
            (262_144, 4, false, false, (16, 8)),
            (262_144, 2, true, false, (8, 16)),
            (200_000, 4, true, false, (16, 16)),
            (262_144, 4, true, false, (16, 16)),
            (131_072, 4, true, true, (8, 16)),
            (262_144, 4, true, true, (16, 8)),
        ] {
            assert_eq!(
                of(columns, bytes, adds, is_widened),
                Some(wanted),
                "{columns} {bytes} {adds}"
            );
        }
    }

    #[test]
    fn places_of_extremes_in_long_rows_are_found_by_more_ctas() {
        for (columns, wanted) in [
            (98_304, [8, 8, 4, 12_288]),
            (131_072, [8, 16, 4, 16_384]),
            (163_840, [16, 8, 4, 10_240]),
            (262_144, [16, 8, 4, 16_384]),
        ] {
            let row = Row {
                folds: 2,
                stores: false,
                ..Row::plain(columns, 4)
            };
            assert_eq!(shared(row), Some(wanted), "{columns}");
        }
    }

    #[test]
    fn ctas_have_about_as_many_columns_each() {
        for columns in (40_000..520_000).step_by(8 * 37) {
            let row = Row {
                adds: true,
                ..Row::plain(columns, 2)
            };
            let Some([ctas, _, _, own]) = shared(row) else {
                continue;
            };
            assert!(ctas * own >= columns, "{columns}");
            assert!(
                ctas == 1 || (ctas * own - columns) * 4 <= columns,
                "{columns}: {ctas} of {own}"
            );
        }
    }

    #[test]
    fn rows_that_begin_anywhere_have_a_scale_beside_them_where_there_is_room() {
        let chip = chip("sm_90a").unwrap();
        for (columns, bytes, wanted) in [
            (3001, 2, Some((1, true))),
            (16_386, 2, Some((1, true))),
            (24_001, 2, Some((1, false))),
            (40_001, 2, Some((2, false))),
            (8001, 4, Some((1, true))),
            (16_386, 4, Some((2, true))),
            (33_333, 4, Some((4, true))),
            (65_537, 4, Some((8, true))),
            (131_073, 4, Some((16, true))),
        ] {
            let row = Row {
                repeated: bytes,
                adds: true,
                ..Row::plain(columns, bytes)
            };
            let own = share(row, chip).map(|share| (share.ctas, share.has_common));
            assert_eq!(own, wanted, "{columns} {bytes}");
            let moments = Row {
                has_moments: true,
                ..row
            };
            let has_common = |row| share(row, chip).is_some_and(|share| share.has_common);
            assert!(!has_common(moments) && !has_common(Row { repeated: 0, ..row }));
        }
    }

    #[test]
    fn chips_without_clusters_share_no_row_among_ctas() {
        let chip = chip("sm_80").unwrap();
        for columns in [10_007, 16_387, 33_333, 65_537, 65_536] {
            for (bytes, is_widened, repeated) in
                [(2, false, 2), (4, false, 4), (4, true, 8), (4, false, 0)]
            {
                let row = Row {
                    repeated,
                    is_widened,
                    adds: true,
                    folds: 2,
                    ..Row::plain(columns, bytes)
                };
                let ctas = share(row, chip).map_or(1, |share| share.ctas);
                assert_eq!(ctas, 1, "{columns} {bytes} {is_widened} {repeated}");
            }
        }
    }
}
