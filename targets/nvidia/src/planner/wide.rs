//! The tile of a matrix product by roles: a small model of what each choice costs on the chip.

use super::cost::Problem;
use crate::facts::chip::Chip;
use axe_dialect::TileOrder;

/// A tile of a kernel with roles, and the order of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WideTile {
    /// Rows, columns and depth.
    pub shape: [i64; 3],
    /// Warpgroups that multiply.
    pub consumers: i64,
    /// Tiles of A and B in flight.
    pub stages: i64,
    /// The order in which tiles are visited.
    pub order: TileOrder,
    /// Rows of tiles in a group of the order.
    pub group: i64,
    /// CTAs of a cluster: tiles one below the other, whose columns of B each fetches a part of for all.
    pub cluster: i64,
}

/// Threads of a warpgroup.
const WARPGROUP: i64 = 128;
/// Bytes that the staged store of results takes at most: two panels of 64 rows for each of two warpgroups.
const STAGING: i64 = 32 * 1024;
/// Accumulators of a thread: the rest of its 255 registers is left to addresses and the epilogue.
const ACCUMULATORS: i64 = 192;
/// Accumulators of a thread from which on the roles' registers are shared out unevenly.
const WIDE: i64 = 112;
/// Bytes of the ring's barriers and of alignment.
const RESERVED: i64 = 2048;
/// Rows of tiles in a group, unless a tuner knows better.
const GROUP: i64 = 8;

/// `(rows, columns, consumers)`; columns in panels of 128 bytes, as results are stored.
const SHAPES: [(i64, i64, i64); 9] = [
    (128, 256, 2),
    (128, 192, 2),
    (256, 128, 2),
    (128, 128, 2),
    (128, 64, 2),
    (64, 256, 1),
    (64, 128, 1),
    (64, 64, 1),
    (64, 32, 1),
];

/// Bytes that a stage should have, so that the one thread that copies keeps memory busy.
const STAGE_BYTES: i64 = 24 * 1024;

/// Products of 16-bit elements that a multiprocessor forms in a clock by wgmma (H100 white paper: 512 FMA a
/// clock for each of 4 tensor cores).
const PRODUCTS_A_CLOCK: f64 = 2048.0;
/// Bytes that a multiprocessor reads from L2 in a clock.
const BYTES_A_CLOCK: f64 = 48.0;
/// Clocks of a tile beside its products: the last sums, and the first stage of a CTA.
const OVERHEAD: f64 = 1500.0;

impl WideTile {
    /// The tile of this shape with as many stages as fit; `None` when fewer than two do, or the shape is not one
    /// of whole instructions and at most 192 accumulators a thread.
    #[must_use]
    pub fn new((m, n, consumers): (i64, i64, i64), bytes: i64, chip: &Chip) -> Option<Self> {
        let row = 128 / bytes;
        let stage = |depth: i64| (m + n) * depth * bytes;
        let depth = match m {
            // A's rows are few, and mostly not there.
            ..=64 => [row, 2 * row, 4 * row]
                .into_iter()
                .find(|depth| stage(*depth) >= STAGE_BYTES)
                .unwrap_or(4 * row),
            _ => row,
        };
        Self::with_depth((m, n, consumers), depth, bytes, chip)
    }

    /// The tile of this shape and depth, a multiple of 128 bytes.
    #[must_use]
    pub fn with_depth(
        (m, n, consumers): (i64, i64, i64),
        depth: i64,
        bytes: i64,
        chip: &Chip,
    ) -> Option<Self> {
        let whole = (1..=3).contains(&consumers)
            && m > 0
            && m % (64 * consumers) == 0
            && (8..=256).contains(&n)
            && n % 8 == 0
            && (128..=1024).contains(&(depth * bytes))
            && depth * bytes % 128 == 0;
        if !whole || m * n / (consumers * WARPGROUP) > ACCUMULATORS {
            return None;
        }
        let stage = (m + n) * depth * bytes;
        let staging = STAGING.min(m * n * 4);
        let stages = (chip.shared_bytes - staging - RESERVED) / stage;
        (stages >= 2).then(|| Self {
            shape: [m, n, depth],
            consumers,
            stages: stages.min(8),
            order: TileOrder::Groups,
            group: GROUP,
            cluster: 1,
        })
    }

    /// Threads of the CTA: one warpgroup copies.
    #[must_use]
    pub const fn threads(self) -> i64 {
        (1 + self.consumers) * WARPGROUP
    }

    /// The registers of the role that copies and of those that multiply, where they matter.
    #[must_use]
    pub const fn budgets(self) -> (Option<i64>, Option<i64>) {
        let [m, n, _] = self.shape;
        // With fewer accumulators an even share of the registers is enough, and ptxas gives less.
        let wide = m * n / (self.consumers * WARPGROUP) >= WIDE;
        match (wide, self.consumers) {
            (true, 2) => (Some(40), Some(232)),
            _ => (None, None),
        }
    }

    /// Clocks that a product takes.
    #[must_use]
    pub fn cost(self, problem: Problem, chip: &Chip) -> f64 {
        let [m, n, k] = self.shape;
        let count = |extent: i64, tile: i64| (extent + tile - 1).div_euclid(tile.max(1)) as f64;
        let tiles = problem.batch as f64 * count(problem.m, m) * count(problem.n, n);
        let turns = (tiles / chip.multiprocessors as f64).ceil();
        let depth = count(problem.k, k) * k as f64;
        // One warpgroup alone does not keep the tensor cores busy between its waits.
        let share = if self.consumers == 1 { 0.8 } else { 1.0 };
        let math = (m * n) as f64 * depth / (PRODUCTS_A_CLOCK * share);
        let bytes = depth * problem.element_bytes as f64;
        let loads = (m.min(problem.m) + n) as f64 * bytes / BYTES_A_CLOCK;
        turns * (math.max(loads) + OVERHEAD)
    }
}

/// The cheapest tile; `None` when none fits.
#[must_use]
pub fn choose(problem: Problem, chip: &Chip) -> Option<WideTile> {
    SHAPES
        .iter()
        .filter_map(|shape| WideTile::new(*shape, problem.element_bytes, chip))
        .min_by(|a, b| a.cost(problem, chip).total_cmp(&b.cost(problem, chip)))
}

#[cfg(test)]
mod tests {
    use super::super::cost::Unit;
    use super::*;
    use crate::facts::chip::chip;

    fn chosen(m: i64, n: i64, k: i64) -> [i64; 3] {
        let problem = Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        };
        choose(problem, chip("sm_90a").unwrap()).unwrap().shape
    }

    #[test]
    fn large_products_take_the_widest_tile() {
        assert_eq!(chosen(8192, 24576, 4096), [128, 256, 64]);
        assert_eq!(chosen(4096, 4096, 4096), [128, 256, 64]);
    }

    #[test]
    fn few_rows_take_few_rows() {
        assert_eq!(chosen(16, 4096, 4096)[0], 64);
        assert!(chosen(64, 4096, 4096)[1] <= 64);
    }

    #[test]
    fn every_tile_fits() {
        for shape in SHAPES {
            let tile = WideTile::new(shape, 2, chip("sm_90a").unwrap()).unwrap();
            assert!(tile.threads() <= 1024 && tile.stages >= 2, "{tile:?}");
            assert_eq!(tile.shape[0] % (64 * tile.consumers), 0);
        }
    }
}
