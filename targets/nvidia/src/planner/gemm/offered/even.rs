//! Tiles that fill the chip's multiprocessors evenly: as high, or as wide, as the tiles of a few whole waves are.
//!
//! The instruction has 64 rows, and any columns in eights. Those are columns of the result, or of swapped tiles its rows: as few as
//! fill the waves, or so many that the CTAs of a cluster fetch whole eights for each other.

use super::{SWAPPED, deep, split};
use crate::facts::chip::Chip;
use crate::planner::config::{SPLITS, Wgmma};
use crate::planner::problem::{Problem, count};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// What the instruction may have of columns: fewer are for products that take as long whatever the tile.
const COLUMNS: RangeInclusive<i64> = 16..=256;
/// What they are multiples of: four CTAs of a cluster fetch eights each.
const MULTIPLES: [i64; 2] = [8, 32];
/// Waves of tiles: of more, those of any size fill the last one to much of it.
const WAVES: RangeInclusive<i64> = 1..=4;
/// `(rows, consumers)` of tiles whose columns are even.
const ROWS: [(i64, i64); 2] = [(64, 1), (128, 2)];

/// A kind of tile whose columns, as the instruction has them, are free.
#[derive(Clone, Copy)]
struct Kind {
    /// Rows, as the instruction has them.
    rows: i64,
    consumers: i64,
    swapped: bool,
}

/// Even tiles of more rows or columns than one has, whole and split.
pub(super) fn tiles(problem: Problem, chip: &Chip) -> Vec<Wgmma> {
    let kind = |swapped: bool| {
        move |(rows, consumers): (i64, i64)| Kind {
            rows,
            consumers,
            swapped,
        }
    };
    // Three warpgroups took 27.0 us for 9880 x 352 x 1792 on an H200, where tiles of 128 x 128 take 24.2.
    let swapped = SWAPPED
        .into_iter()
        .filter(|(_, consumers)| *consumers < 3)
        .map(kind(true));
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    let flat = ROWS.into_iter().filter(|_| problem.m > 64);
    for kind in swapped.chain(flat.map(kind(false))) {
        for splits in SPLITS {
            let even = kind.columns(splits, problem, chip);
            let tiles = even.flat_map(|columns| kind.tiles(columns, problem, chip));
            for config in tiles.filter(|tile| seen.insert((splits, *tile))) {
                match splits {
                    1 => all.push(config),
                    _ => all.extend(
                        split(config, problem, chip)
                            .filter(|config| config.splits() * config.cluster_splits() == splits),
                    ),
                }
            }
        }
    }
    all
}

impl Kind {
    /// The columns with which tiles that so many CTAs share fill so many waves.
    fn columns(
        self,
        splits: i64,
        problem: Problem,
        chip: &Chip,
    ) -> impl Iterator<Item = i64> + use<> {
        let [rows, columns] = match self.swapped {
            true => [problem.n, problem.m],
            false => [problem.m, problem.n],
        };
        let across = count(rows, self.rows)
            .saturating_mul(problem.batch)
            .saturating_mul(splits);
        let waves = if splits == 1 { WAVES } else { 1..=1 };
        // Clusters of four find fewer multiprocessors.
        let ctas = [chip.multiprocessors, chip.clustered];
        waves
            .flat_map(move |waves| ctas.map(|ctas| waves * ctas / across.max(1)))
            .filter(|tiles| *tiles > 0)
            .flat_map(move |tiles| {
                MULTIPLES.map(|of| count(count(columns, tiles), of).saturating_mul(of))
            })
            .filter(move |even| COLUMNS.contains(even) && *even < columns)
    }

    fn tiles(
        self,
        columns: i64,
        problem: Problem,
        chip: &Chip,
    ) -> impl Iterator<Item = Wgmma> + use<> {
        let shape = match self.swapped {
            true => (columns, self.rows, self.consumers),
            false => (self.rows, columns, self.consumers),
        };
        deep(shape, self.swapped, problem, chip)
    }
}
