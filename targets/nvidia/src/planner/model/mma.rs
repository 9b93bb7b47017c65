//! How long a matrix product by `mma.sync` or scalar multiply-adds takes, and the tiles to choose from.

use crate::facts::chip::Chip;
use crate::planner::config::Mma;
use crate::planner::layouts::Grid;
use crate::planner::problem::{Problem, Unit, count};

/// `(m, n, k, rows of warps, columns of warps, stages)`.
type Row = (i64, i64, i64, i64, i64, i64);

/// What [`Mma::registers`] may be: 64 of the 255 registers of a thread (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability") are left to addresses, and nothing spills.
const REGISTERS: i64 = 192;

/// Warp tiles of 64 x 64 read each element of shared memory for 64 products, and keep 128 accumulators a
/// thread: the largest that leaves registers for the operands.
const HALF: &[Row] = &[
    (128, 256, 32, 2, 4, 4),
    (128, 128, 64, 2, 2, 3),
    (128, 128, 32, 2, 2, 4),
    (128, 64, 32, 2, 2, 4),
    (64, 128, 32, 2, 2, 4),
    (64, 64, 32, 2, 2, 4),
    (64, 32, 64, 2, 2, 4),
    (32, 64, 64, 2, 2, 4),
    (32, 32, 64, 2, 2, 4),
    (16, 128, 64, 1, 4, 4),
    (16, 64, 64, 1, 4, 4),
    (16, 32, 64, 1, 4, 4),
    (64, 16, 64, 4, 1, 4),
];
const TF32: &[Row] = &[
    (128, 128, 32, 2, 2, 3),
    (64, 64, 32, 2, 2, 3),
    (32, 32, 32, 2, 2, 3),
    (16, 64, 32, 1, 4, 3),
];
const SCALAR: &[Row] = &[
    (128, 128, 8, 16, 16, 3),
    (64, 64, 8, 16, 16, 3),
    (32, 32, 8, 8, 8, 3),
    (8, 128, 8, 2, 32, 3),
];

/// Products that a multiprocessor forms in a clock.
const fn products_a_clock(unit: Unit, chip: &Chip) -> f64 {
    match unit {
        Unit::Half => chip.mma.half_products,
        Unit::Tf32 => chip.mma.tf32_products,
        Unit::Byte => chip.mma.byte_products,
        Unit::Scalar => chip.mma.scalar_products,
    }
}

/// Clocks that the product takes with this tile.
#[must_use]
pub fn cost(problem: Problem, config: Mma, chip: &Chip) -> f64 {
    let [m, n, k] = config.tile;
    let tiles = problem.batch as f64 * count(problem.m, m) as f64 * count(problem.n, n) as f64;
    let waves = (tiles / chip.multiprocessors as f64).ceil();
    let depth = (count(problem.k, k) * k) as f64;
    // A warp issues alone on its quarter of the multiprocessor.
    let share = (config.threads(problem.unit) as f64 / 128.0).min(1.0);
    let math = (m * n) as f64 * depth / (products_a_clock(problem.unit, chip) * share);
    // Small warp tiles are bound by shared memory: 128 bytes a clock.
    let (wm, wn) = (m / config.warps.rows, n / config.warps.columns);
    let reads = (config.warps.count() * (wm + wn)) as f64 * depth * problem.element_bytes as f64;
    let loads = (m + n) as f64 * depth * problem.element_bytes as f64 / chip.mma.l2_bytes;
    waves * (math.max(loads).max(reads / chip.mma.shared_bytes) + chip.mma.overhead)
}

/// The tiles that fit in the chip's shared memory and registers.
#[must_use]
pub fn candidates(problem: Problem, chip: &Chip) -> Vec<Mma> {
    let rows = match problem.unit {
        Unit::Half => HALF,
        Unit::Tf32 => TF32,
        Unit::Byte => &[],
        Unit::Scalar => SCALAR,
    };
    let tile = |&(m, n, k, rows, columns, stages): &Row| Mma {
        tile: [m, n, k],
        warps: Grid { rows, columns },
        stages,
    };
    rows.iter()
        .map(tile)
        .filter(|tile| tile.shared_bytes(problem.element_bytes) <= chip.shared_bytes)
        .filter(|tile| tile.registers(problem.unit) <= REGISTERS)
        .collect()
}

/// The cheapest tile; `None` when none fits in the chip's shared memory.
#[must_use]
pub fn choose(problem: Problem, chip: &Chip) -> Option<Mma> {
    candidates(problem, chip)
        .into_iter()
        .min_by(|a, b| cost(problem, *a, chip).total_cmp(&cost(problem, *b, chip)))
}

#[cfg(test)]
mod tests {
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
        choose(problem, chip("sm_90a").unwrap()).unwrap().tile
    }

    #[test]
    fn large_products_take_large_tiles() {
        assert_eq!(chosen(4096, 4096, 4096), [128, 256, 32]);
        assert_eq!(chosen(8192, 8192, 4096), [128, 256, 32]);
    }

    #[test]
    fn small_products_spread_over_the_chip() {
        let [m, n, _] = chosen(256, 1024, 512);
        assert!(m * n <= 64 * 64, "{m} x {n}");
        assert!(chosen(16, 4096, 4096)[0] == 16);
        assert!(chosen(1, 4096, 4096)[0] == 16);
    }

    #[test]
    fn every_tile_fits_and_divides() {
        use crate::planner::layouts::{matrix_product, scalar_product};
        for (rows, unit, bytes) in [
            (HALF, Unit::Half, 2),
            (TF32, Unit::Tf32, 4),
            (SCALAR, Unit::Scalar, 8),
        ] {
            for &(m, n, k, r, columns, stages) in rows {
                let grid = Grid { rows: r, columns };
                let tile = Mma {
                    tile: [m, n, k],
                    warps: grid,
                    stages,
                };
                assert!(
                    tile.shared_bytes(bytes) <= chip("sm_86").unwrap().shared_bytes,
                    "{tile:?}"
                );
                assert!(tile.registers(unit) <= REGISTERS, "{tile:?}");
                let product = match unit.atom() {
                    Some(atom) => matrix_product(tile.tile, grid, atom),
                    None => scalar_product(tile.tile, grid),
                };
                assert!(product.is_ok(), "{tile:?}: {product:?}");
            }
        }
    }
}
