//! The configurations of `mma.sync` and of scalar multiply-adds that the cost model chooses from, and its choice.

use crate::facts::chip::Chip;
use crate::planner::config::{Config, Mma};
use crate::planner::layouts::Grid;
use crate::planner::model;
use crate::planner::problem::{Problem, Query, Unit, count};

/// Rows and columns of a tile, and those of its warps.
type Shape = ([i64; 2], [i64; 2]);

/// What [`Mma::registers`] may be: 64 of the 255 registers of a thread (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability") are left to addresses, and nothing spills.
const REGISTERS: i64 = 192;

/// Warp tiles of 64 x 64 read each element of shared memory for 64 products, and keep 128 accumulators a
/// thread: the largest that leaves registers for the operands.
const HALF: &[Shape] = &[
    ([128, 256], [2, 4]),
    ([128, 128], [2, 2]),
    ([128, 64], [2, 2]),
    ([64, 128], [2, 2]),
    ([64, 64], [2, 2]),
    ([64, 32], [2, 2]),
    ([32, 64], [2, 2]),
    ([32, 32], [2, 2]),
    ([32, 128], [1, 4]),
    ([128, 32], [4, 1]),
    ([16, 128], [1, 4]),
    ([16, 64], [1, 4]),
    ([16, 32], [1, 4]),
    ([64, 16], [4, 1]),
];
const TF32: &[Shape] = &[
    ([128, 128], [2, 2]),
    ([64, 64], [2, 2]),
    ([32, 32], [2, 2]),
    ([16, 64], [1, 4]),
];
const SCALAR: &[Shape] = &[
    ([128, 128], [16, 16]),
    ([64, 64], [16, 16]),
    ([32, 32], [8, 8]),
    ([8, 128], [2, 32]),
];

/// Depths of a stage of 16-bit floats, and of the other units.
const HALF_DEPTHS: &[i64] = &[32, 64, 128];
const TF32_DEPTHS: &[i64] = &[32];
const SCALAR_DEPTHS: &[i64] = &[8];
/// Stages of 16-bit floats, and of the other units.
const HALF_STAGES: &[i64] = &[2, 3, 4, 6];
const OTHER_STAGES: &[i64] = &[3];
/// CTAs that may share a tile's depth through memory.
const SPLITS: [i64; 10] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48];
/// CTAs for each multiprocessor, of those that share tiles, at the most.
const MOST_OF_PARTS: i64 = 2;

/// The configurations to choose from.
pub(in crate::planner) fn all(query: Query, chip: &Chip) -> Vec<Mma> {
    let problem = query.problem;
    let alignments = problem.row_alignments(query.k_first);
    let (shapes, depths, stages) = match problem.unit {
        Unit::Half => (HALF, HALF_DEPTHS, HALF_STAGES),
        Unit::Tf32 => (TF32, TF32_DEPTHS, OTHER_STAGES),
        Unit::Scalar => (SCALAR, SCALAR_DEPTHS, OTHER_STAGES),
        Unit::Byte => return Vec::new(),
    };
    // Deeper stages than sums are long copy and multiply zeros.
    let shallow = depths.first().copied().unwrap_or(1);
    let deepest = count(problem.k, shallow).saturating_mul(shallow);
    let tile = |[m, n]: [i64; 2], [rows, columns]: [i64; 2], depth, stages| Mma {
        tile: [m, n, depth],
        warps: Grid { rows, columns },
        stages,
        splits: 1,
    };
    let depths = depths.iter().filter(|depth| **depth <= deepest);
    depths
        .flat_map(|depth| stages.iter().map(move |stages| (*depth, *stages)))
        .flat_map(|(depth, stages)| {
            let tiles = shapes.iter();
            tiles.map(move |(extents, warps)| tile(*extents, *warps, depth, stages))
        })
        .filter(|tile| tile.shared_bytes(problem.element_bytes) <= chip.shared_bytes)
        .filter(|tile| {
            let staged = tile.staged(problem, alignments).into_iter().max();
            tile.registers(problem.unit) + staged.unwrap_or(0) <= REGISTERS
        })
        .flat_map(|tile| std::iter::once(tile).chain(in_parts(tile, problem, chip)))
        .collect()
}

/// The tile with its depth shared, where there are too few for the chip's multiprocessors.
fn in_parts(tile: Mma, problem: Problem, chip: &Chip) -> impl Iterator<Item = Mma> {
    let [m, n, _] = tile.tile;
    let tiles = count(problem.m, m).saturating_mul(count(problem.n, n));
    // Parts of the products of a batch have no place in the workspace.
    let most = match problem.batch {
        1 => chip.multiprocessors * MOST_OF_PARTS,
        _ => 0,
    };
    SPLITS
        .into_iter()
        .filter(move |splits| tiles.saturating_mul(*splits) <= most)
        .filter_map(move |splits| tile.split_k(splits, problem.k))
}

/// The cheapest of some, and its clocks; `None` when none fits in the chip's shared memory.
#[must_use]
pub(in crate::planner) fn choose_of(
    query: Query,
    chip: &Chip,
    of: impl Fn(&Mma) -> bool,
) -> Option<(Mma, f64)> {
    let clocks = |config: Mma| model::clocks(query, Config::Mma(config), chip);
    all(query, chip)
        .into_iter()
        .filter(of)
        .map(|config| (config, clocks(config)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::{CHIPS, chip};
    use crate::planner::layouts::{matrix_product, scalar_product};
    use crate::planner::problem::KFirst;
    use proptest::prelude::*;

    fn query(batch: i64, [m, n, k]: [i64; 3], (unit, element_bytes): (Unit, i64)) -> Query {
        Query {
            problem: Problem {
                batch,
                m,
                n,
                k,
                element_bytes,
                unit,
            },
            wgmma: false,
            k_first: KFirst { a: false, b: true },
            blocks: None,
            grouped: false,
        }
    }

    fn chosen(chip_name: &str, sizes: [i64; 3]) -> Mma {
        let query = query(1, sizes, (Unit::Half, 2));
        let chip = chip(chip_name).unwrap();
        choose_of(query, chip, |_| true).unwrap().0
    }

    #[test]
    fn large_products_take_large_tiles() {
        for sizes in [[4096, 4096, 4096], [8192, 8192, 4096]] {
            let config = chosen("sm_80", sizes);
            let [m, n, _] = config.tile;
            assert!(m * n >= 128 * 128 && config.splits == 1, "{config:?}");
        }
    }

    #[test]
    fn small_products_spread_over_the_chip() {
        let [m, n, _] = chosen("sm_90a", [256, 1024, 512]).tile;
        assert!(m * n <= 64 * 64, "{m} x {n}");
        assert_eq!(chosen("sm_90a", [1, 4096, 4096]).tile[0], 16);
    }

    #[test]
    fn long_sums_of_few_tiles_are_shared() {
        // An H100: 17.7 us with its depth shared, 60 and more without.
        assert!(chosen("sm_90a", [22, 2372, 6491]).splits > 1);
        assert!(chosen("sm_80", [64, 64, 65_536]).splits > 8);
        assert_eq!(chosen("sm_90a", [22, 2372, 32]).splits, 1);
        let batch = query(4, [64, 64, 65_536], (Unit::Half, 2));
        let all = all(batch, chip("sm_80").unwrap());
        assert!(all.iter().all(|config| config.splits == 1));
    }

    #[test]
    fn every_tile_divides() {
        let units = [
            (HALF, Unit::Half),
            (TF32, Unit::Tf32),
            (SCALAR, Unit::Scalar),
        ];
        for (shapes, unit) in units {
            for ([m, n], [rows, columns]) in shapes {
                let warps = Grid {
                    rows: *rows,
                    columns: *columns,
                };
                let product = match unit.atom() {
                    Some(atom) => matrix_product([*m, *n, 32], warps, atom),
                    None => scalar_product([*m, *n, 8], warps),
                };
                assert!(product.is_ok(), "{m} x {n}: {product:?}");
            }
        }
    }

    proptest! {
        // A case asks the model for thousands of configurations.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_configuration_fits_and_has_a_cost(
            m in 1i64..20_000, n in 1i64..20_000, k in 1i64..20_000, batch in 1i64..3,
            unit in prop::sample::select(vec![(Unit::Half, 2), (Unit::Tf32, 4), (Unit::Scalar, 4), (Unit::Scalar, 8)]),
            number in 0usize..4
        ) {
            let query = query(batch, [m, n, k], unit);
            let chip = &CHIPS[number];
            let all = all(query, chip);
            prop_assert!(!all.is_empty());
            for config in all {
                prop_assert!(config.shared_bytes(unit.1) <= chip.shared_bytes);
                prop_assert!(config.steps(k) * (config.splits - 1) * config.tile[2] < k);
                let clocks = model::clocks(query, Config::Mma(config), chip);
                prop_assert!(clocks.is_finite() && clocks > 0.0, "{:?}: {}", config, clocks);
            }
        }
    }

    #[test]
    fn sizes_beyond_any_memory_have_a_cost() {
        for sizes in [[i64::MAX; 3], [1, i64::MAX, 8]] {
            let query = query(i64::MAX, sizes, (Unit::Half, 2));
            let found = choose_of(query, chip("sm_90a").unwrap(), |_| true);
            assert!(found.is_some_and(|(_, clocks)| clocks.is_finite() && clocks > 0.0));
        }
    }
}
