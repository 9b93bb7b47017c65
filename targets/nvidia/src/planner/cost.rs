//! The tile of a matrix product: a small model of what each choice costs on the chip.

use super::layouts::Grid;
use crate::facts::chip::Chip;
use crate::facts::matrix::{M16N8K8, M16N8K16, Mma};

/// How the products of a tile are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `mma.sync` on 16-bit floats.
    Half,
    /// `mma.sync` on f32 rounded to tf32.
    Tf32,
    /// `wgmma` on 8-bit floats or integers; `mma.sync` takes floats widened to f16.
    Byte,
    /// Scalar multiply-adds.
    Scalar,
}

impl Unit {
    /// The instruction of the tensor cores that forms them.
    #[must_use]
    pub const fn atom(self) -> Option<Mma> {
        match self {
            Self::Half => Some(M16N8K16),
            Self::Tf32 => Some(M16N8K8),
            Self::Byte | Self::Scalar => None,
        }
    }
}

/// The extents of a matrix product; a dynamic extent is given as what is expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Independent products.
    pub batch: i64,
    /// Rows of the result.
    pub m: i64,
    /// Columns of the result.
    pub n: i64,
    /// The contracted extent.
    pub k: i64,
    /// Bytes of an element of A and B.
    pub element_bytes: i64,
    /// What forms the products.
    pub unit: Unit,
}

/// A tile and how it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Rows, columns and depth.
    pub shape: [i64; 3],
    /// Warps over the tile; threads for [`Unit::Scalar`].
    pub grid: Grid,
    /// Tiles of A and B in flight.
    pub stages: i64,
}

impl Tile {
    /// Threads of the CTA.
    #[must_use]
    pub const fn threads(self, unit: Unit) -> i64 {
        match unit {
            Unit::Scalar => self.grid.count(),
            Unit::Half | Unit::Tf32 | Unit::Byte => self.grid.count() * crate::vocabulary::WARP,
        }
    }

    /// 32-bit registers of a thread for its accumulators and, on tensor cores, for the fragments of two steps: the one
    /// multiplied and the one loaded.
    #[must_use]
    pub const fn registers(self, unit: Unit) -> i64 {
        let [m, n, k] = self.shape;
        let (m, n) = (m / self.grid.rows, n / self.grid.columns);
        match unit.atom() {
            None => m * n + (m + n) * k,
            Some(atom) => {
                let lanes = crate::vocabulary::WARP;
                m * n / lanes + 2 * (m + n) * atom.k * atom.element_bytes / (4 * lanes)
            }
        }
    }

    /// Bytes of shared memory that the ring takes.
    #[must_use]
    pub const fn shared_bytes(self, element_bytes: i64) -> i64 {
        let [m, n, k] = self.shape;
        self.stages * (m + n) * k * element_bytes
    }
}

/// `(m, n, k, rows of warps, columns of warps, stages)`.
type Row = (i64, i64, i64, i64, i64, i64);

/// What [`Tile::registers`] may be: 64 of the 255 registers of a thread (CUDA C++ Programming Guide, "Technical
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

/// Products that a multiprocessor forms in a clock, as mma.sync reaches them (a third less than the peak that
/// the architecture's white paper gives on sm_90, whose full rate needs wgmma).
const fn products_a_clock(unit: Unit) -> f64 {
    match unit {
        Unit::Half => 1300.0,
        Unit::Tf32 => 650.0,
        Unit::Byte => 2600.0,
        Unit::Scalar => 100.0,
    }
}

/// Bytes that a multiprocessor reads from L2 in a clock.
const BYTES_A_CLOCK: f64 = 40.0;
/// Clocks for a CTA to start, fill its pipeline and store its results.
const OVERHEAD: f64 = 3000.0;

/// Clocks that the product takes with this tile.
#[must_use]
pub fn cost(problem: Problem, tile: Tile, chip: &Chip) -> f64 {
    let [m, n, k] = tile.shape;
    let count = |extent: i64, tile: i64| extent.div_euclid(tile) + i64::from(extent % tile != 0);
    let tiles = problem.batch as f64 * count(problem.m, m) as f64 * count(problem.n, n) as f64;
    let waves = (tiles / chip.multiprocessors as f64).ceil();
    let depth = (count(problem.k, k) * k) as f64;
    // A warp issues alone on its quarter of the multiprocessor.
    let share = (tile.threads(problem.unit) as f64 / 128.0).min(1.0);
    let math = (m * n) as f64 * depth / (products_a_clock(problem.unit) * share);
    // Small warp tiles are bound by shared memory: 128 bytes a clock.
    let (wm, wn) = (m / tile.grid.rows, n / tile.grid.columns);
    let reads = (tile.grid.count() * (wm + wn)) as f64 * depth * problem.element_bytes as f64;
    let loads = (m + n) as f64 * depth * problem.element_bytes as f64 / BYTES_A_CLOCK;
    waves * (math.max(loads).max(reads / 128.0) + OVERHEAD)
}

/// The tiles that fit in the chip's shared memory and registers.
#[must_use]
pub fn candidates(problem: Problem, chip: &Chip) -> Vec<Tile> {
    let rows = match problem.unit {
        Unit::Half => HALF,
        Unit::Tf32 => TF32,
        Unit::Byte => &[],
        Unit::Scalar => SCALAR,
    };
    let tile = |&(m, n, k, rows, columns, stages): &Row| Tile {
        shape: [m, n, k],
        grid: Grid { rows, columns },
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
pub fn choose(problem: Problem, chip: &Chip) -> Option<Tile> {
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
        choose(problem, chip("sm_90a").unwrap()).unwrap().shape
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
        use super::super::layouts::{matrix_product, scalar_product};
        for (rows, unit, bytes) in [
            (HALF, Unit::Half, 2),
            (TF32, Unit::Tf32, 4),
            (SCALAR, Unit::Scalar, 8),
        ] {
            for &(m, n, k, r, columns, stages) in rows {
                let grid = Grid { rows: r, columns };
                let tile = Tile {
                    shape: [m, n, k],
                    grid,
                    stages,
                };
                assert!(
                    tile.shared_bytes(bytes) <= chip("sm_86").unwrap().shared_bytes,
                    "{tile:?}"
                );
                assert!(tile.registers(unit) <= REGISTERS, "{tile:?}");
                let product = match unit.atom() {
                    Some(atom) => matrix_product(tile.shape, grid, atom),
                    None => scalar_product(tile.shape, grid),
                };
                assert!(product.is_ok(), "{tile:?}: {product:?}");
            }
        }
    }
}
