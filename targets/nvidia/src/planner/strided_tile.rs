//! Tiles of rows whose columns have a stride: neighbouring rows lie next to each other in memory. A thread has some of those, a
//! warp's lanes go along rows first, so that what they access at once is together, and along columns.

use super::layouts::layout;
use super::problem::count;
use crate::facts::chip::{ACCESS_BYTES, Chip, MULTIPROCESSOR_REGISTERS, SECTOR_BYTES};
use crate::vocabulary::WARP;
use axe_layout::{Layout, Result};
use axe_passes::fuse::space::Cut;
use std::fmt;

/// Threads of a CTA at most.
const MOST_THREADS: i64 = 512;
/// Elements of one tensor that a thread keeps, in 32-bit registers, where it has all of them; of tiles that rows go through.
const KEPT_WORDS: i64 = 32;
const PASSING_WORDS: i64 = 16;
/// Warps of a CTA that rows go through from memory.
const PASSING_WARPS: [i64; 2] = [1, 8];
/// Elements of the rows of a tile that are worth a CTA.
const LEAST_ELEMENTS: i64 = 1024;
/// CTAs of a multiprocessor that have rows in shared memory: one's loads overlap with another's reductions and stores.
const RESIDENT: i64 = 2;
/// The least that `cp.async` copies (PTX ISA 9.7.9.25.3).
const LEAST_COPIED_BYTES: i64 = 4;
/// Shared memory that reductions take beside rows, in bytes.
const STATES_BYTES: i64 = 4096;
/// Registers of a thread beside elements, and of two of these.
const OTHER_REGISTERS: i64 = 32;
const REGISTERS_OF_TWO: i64 = 3;

/// Rows whose columns have a stride, as far as their tiles depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StridedRow {
    pub cut: Cut,
    /// Matrices of such rows; none where they are known at run time only.
    pub outer: Option<i64>,
    /// Bytes of the narrowest element that is moved, and of all that are read for an element of the space.
    pub bytes: i64,
    pub read: i64,
    /// 32-bit registers of the widest element that a thread keeps.
    pub words: i64,
}

/// A tile of such rows in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StridedTile {
    /// Rows, which follow each other in memory.
    pub rows: i64,
    /// Columns.
    pub columns: i64,
    /// Neighbouring rows of a thread.
    vector: i64,
    /// Lanes of a warp along rows; the others are along columns.
    lanes: i64,
    /// Warps along rows and along columns.
    warps: [i64; 2],
    /// Columns in shared memory, where a row goes through the tile piece by piece.
    pub staged: Option<i64>,
}

impl StridedTile {
    /// The tile that moves such rows in the least time, in registers or else through shared memory; none where no CTA holds
    /// rows that are together for an access.
    pub(super) fn of(row: StridedRow, chip: &Chip) -> Option<Self> {
        let Cut { columns, stride } = row.cut;
        if columns.saturating_mul(stride) < LEAST_ELEMENTS {
            return None;
        }
        let all = || Self::shapes(row).filter_map(move |tile| tile.holding(row, chip));
        let time = |tile: &Self| tile.time(row, chip);
        all().min_by(|a, b| time(a).total_cmp(&time(b)))
    }

    /// Threads of a CTA.
    pub(super) const fn threads(self) -> i64 {
        WARP * self.warps[0] * self.warps[1]
    }

    /// Tiles whose threads have one column each.
    fn shapes(row: StridedRow) -> impl Iterator<Item = Self> {
        let powers = |most: i64| {
            (0..)
                .map(|power| 1i64 << power)
                .take_while(move |own| *own <= most)
        };
        let stride = row.cut.stride;
        let widest = (ACCESS_BYTES / row.bytes.max(1)).max(1);
        let vectors = powers(widest).filter(move |vector| stride % vector == 0);
        vectors.flat_map(move |vector| {
            powers(WARP).flat_map(move |lanes| {
                powers(4).flat_map(move |along| {
                    powers(MOST_THREADS / WARP / along).map(move |across| Self {
                        rows: vector * lanes * along,
                        columns: WARP / lanes * across,
                        vector,
                        lanes,
                        warps: [along, across],
                        staged: None,
                    })
                })
            })
        })
    }

    /// The same with as many columns as rows have, or through which these go.
    fn holding(self, row: StridedRow, chip: &Chip) -> Option<Self> {
        let chunks = |words: i64| words / row.words.max(1) / self.vector;
        let all = count(row.cut.columns, self.columns);
        let stride = row.cut.stride;
        let of_warp = self.lanes * self.vector;
        let is_short = of_warp.saturating_mul(row.bytes) < SECTOR_BYTES;
        if is_short && of_warp < stride || self.rows >= 2 * stride.max(2) {
            return None;
        }
        if all <= chunks(KEPT_WORDS) {
            return Some(Self {
                columns: all * self.columns,
                ..self
            });
        }
        let columns = self.through(row).columns;
        let staged = count(row.cut.columns, columns).checked_mul(columns)?;
        let bytes = staged.checked_mul(self.rows)?.checked_mul(row.read)?;
        let copied = self.copied(row) >= LEAST_COPIED_BYTES;
        let fits = bytes <= chip.shared_bytes / RESIDENT - STATES_BYTES;
        // Lanes of a warp have neighbouring elements of shared memory, which are in other banks.
        (fits && copied && self.warps[0] == 1).then_some(Self {
            columns,
            staged: Some(staged),
            ..self
        })
    }

    /// The same with as many columns as pass through it at a time.
    fn through(self, row: StridedRow) -> Self {
        let chunks = PASSING_WORDS / row.words.max(1) / self.vector;
        Self {
            columns: chunks.max(1) * self.columns,
            ..self
        }
    }

    /// A tile that rows which no CTA holds go through, from memory each time.
    pub(super) fn passing(row: StridedRow) -> Option<Self> {
        let is_along = |tile: &Self| tile.lanes == WARP && tile.warps == PASSING_WARPS;
        let tile = Self::shapes(row).filter(is_along).last();
        tile.map(|tile| tile.through(row))
    }

    /// Bytes of the narrowest elements that can be copied to shared memory at once: of rows of the tile that are together.
    fn copied(self, row: StridedRow) -> i64 {
        let bytes = |rows: i64| 1 << rows.saturating_mul(row.bytes).trailing_zeros();
        bytes(row.cut.stride)
            .min(bytes(self.rows))
            .min(ACCESS_BYTES)
    }

    /// Columns that a thread has in registers.
    const fn chunks(self) -> i64 {
        self.columns / (WARP / self.lanes * self.warps[1])
    }

    /// Threads that a multiprocessor holds.
    fn resident(self, row: StridedRow, chip: &Chip) -> i64 {
        let threads = self.threads();
        let kept = self.chunks() * self.vector * row.words;
        let registers = OTHER_REGISTERS + kept * REGISTERS_OF_TWO / 2;
        let staged = self.staged.unwrap_or(0).saturating_mul(self.rows);
        let bytes = staged.saturating_mul(row.read).max(1);
        let ctas = (chip.multiprocessor_threads / threads)
            .min(MULTIPROCESSOR_REGISTERS / registers / threads)
            .min(chip.shared_bytes / bytes);
        ctas.max(1) * threads
    }

    /// Clocks of a multiprocessor that an element takes, which is read and written.
    fn time(self, row: StridedRow, chip: &Chip) -> f64 {
        let Cut { columns, stride } = row.cut;
        let rates = chip.strided;
        let tiles = count(stride, self.rows);
        let segment = self.rows.min(stride).saturating_mul(row.bytes);
        let [at_boundary, inside] = rates.beginning_bytes;
        let beginning = match stride.saturating_mul(row.bytes) % SECTOR_BYTES {
            _ if self.rows >= stride => 0.0,
            0 => at_boundary,
            _ => inside,
        };
        let moved = (2 * row.bytes) as f64 / rates.moved_bytes * (1.0 + beginning / segment as f64);
        let held = self.staged.unwrap_or(self.columns);
        let own = self.chunks() * (held / self.columns);
        let [_, across] = self.warps;
        let warps = if across > 1 { across } else { 0 };
        let others = f64::from((WARP / self.lanes).ilog2()) + warps as f64;
        let copied = self.copied(row) / row.bytes;
        let staged = self
            .staged
            .map_or(0.0, |_| rates.staged + rates.access / copied as f64);
        let each =
            rates.exchange * others / own as f64 + rates.access / self.vector as f64 + staged;
        let idle = (tiles * self.rows) as f64 / stride as f64 * held as f64 / columns as f64;
        let resident = self.resident(row, chip);
        let ctas = row
            .outer
            .map_or(i64::MAX, |outer| outer.saturating_mul(tiles));
        let all = ctas.saturating_mul(self.threads()) / chip.multiprocessors;
        let busy = (rates.busy_threads / resident.min(all).max(1) as f64).max(1.0);
        let computed = each * idle * busy / rates.operations;
        moved.max(computed) + rates.apart * moved.min(computed)
    }

    /// The register tensor's layout for the shape `[rows, columns]`.
    ///
    /// # Errors
    /// When an extent is beyond what layouts have.
    pub(super) fn layout(self) -> Result<Layout> {
        let [along, across] = self.warps;
        let others = WARP / self.lanes;
        layout(
            &[
                (along, 1, "warp"),
                (self.lanes, 1, "lane"),
                (self.vector, 1, "reg"),
                (self.columns / (across * others), self.vector, "reg"),
                (across, along, "warp"),
                (others, self.lanes, "lane"),
            ],
            &[],
        )
    }
}

impl fmt::Display for StridedTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns, vector) = (self.rows, self.columns, self.vector);
        let threads = self.threads();
        write!(
            f,
            "{rows} x {columns} by {threads} threads, {vector} rows at once"
        )?;
        match self.staged {
            Some(staged) => write!(f, ", {staged} columns in shared memory"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::fragment::Fragment;

    fn row(outer: i64, [columns, stride]: [i64; 2], bytes: i64) -> StridedRow {
        StridedRow {
            cut: Cut { columns, stride },
            outer: Some(outer),
            bytes,
            read: bytes,
            words: 1,
        }
    }

    fn tile(outer: i64, columns: i64, stride: i64, bytes: i64) -> Option<StridedTile> {
        let chip = chip("sm_90a").expect("a chip");
        StridedTile::of(row(outer, [columns, stride], bytes), chip)
    }

    #[test]
    fn rows_are_in_registers_or_in_shared_memory() {
        for (outer, columns, stride, bytes, staged) in [
            (8, 21, 1 << 18, 2, false),
            (64, 96, 3136, 4, false),
            (1024, 768, 49, 2, false),
            (32, 1024, 1024, 2, true),
            (8, 2048, 2048, 4, true),
        ] {
            let tile = tile(outer, columns, stride, bytes).expect("a tile");
            assert_eq!(tile.staged.is_some(), staged, "{tile}");
            let held = tile.staged.unwrap_or(tile.columns);
            assert!(held >= columns && held % tile.columns == 0, "{tile}");
        }
    }

    #[test]
    fn rows_that_no_cta_holds_together_are_not_taken() {
        // A sector of neighbouring rows has more columns than shared memory.
        assert_eq!(tile(1, 16_384, 4096, 2), None);
        assert_eq!(tile(1, i64::MAX / 2, 4096, 2), None);
        assert_eq!(
            tile(1, 2, i64::MAX / 4, 2).map(|tile| tile.staged),
            Some(None)
        );
        // Nor such as are too short.
        assert_eq!(tile(1_000_000, 32, 4, 2), None);
    }

    #[test]
    fn every_tile_has_a_layout_that_fills_its_threads() {
        let chip = chip("sm_90a").expect("a chip");
        for columns in [2, 21, 100, 768, 1000, 3000] {
            for stride in [4, 49, 64, 333, 4096] {
                for bytes in [1, 2, 4, 8] {
                    let mut row = row(3, [columns, stride], bytes);
                    row.words = bytes.max(4) / 4;
                    let tiles = StridedTile::of(row, chip).into_iter();
                    for tile in tiles.chain(StridedTile::passing(row)) {
                        let shape = [tile.rows, tile.columns];
                        let layout = tile.layout().expect("a layout");
                        let threads = tile.threads();
                        let fragment = Fragment::new(&layout, &shape, threads).expect("registers");
                        assert!(fragment.is_full() && threads <= MOST_THREADS, "{tile}");
                        assert_eq!(fragment.registers() * threads, tile.rows * tile.columns);
                        assert_eq!(stride % tile.vector, 0, "{tile}");
                    }
                }
            }
        }
    }
}
