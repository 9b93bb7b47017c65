//! The tiles by roles that the cost model chooses from, and its choice.

use super::cost::Problem;
use super::gemm::count;
use super::tail::Tail;
use super::wide::{KFirst, SPLITS, WideTile};
use crate::facts::chip::Chip;
use std::ops::RangeInclusive;

/// `(rows, columns, consumers)` that the cost model chooses from.
const SHAPES: [(i64, i64, i64); 18] = [
    (256, 192, 2),
    (256, 160, 2),
    (192, 192, 3),
    (192, 128, 3),
    (192, 96, 3),
    (192, 64, 3),
    (128, 256, 2),
    (128, 224, 2),
    (128, 192, 2),
    (128, 160, 2),
    (256, 128, 2),
    (128, 128, 2),
    (128, 96, 2),
    (128, 64, 2),
    (64, 256, 1),
    (64, 128, 1),
    (64, 64, 1),
    (64, 32, 1),
];
/// Rows and columns, in steps, of tiles at which consumers take turns: fine steps fill the chip evenly.
const TURNS: [(i64, RangeInclusive<i64>, usize); 2] = [(128, 64..=192, 8), (64, 128..=256, 32)];
/// Consumers that take turns: while one stores, the other multiplies.
const CONSUMERS_IN_TURNS: i64 = 2;
/// Columns, in steps, of tiles of 64 rows where there are no more: fine steps let every multiprocessor read as much.
const OF_FEW_ROWS: (RangeInclusive<i64>, usize) = (80..=240, 16);
/// CTAs that share an operand: a portable cluster has up to 8, but the more there are, the more multiprocessors are left
/// over ([`Chip::clustered`]).
const CLUSTERS: [i64; 2] = [2, 4];
/// Rows that swapped tiles may have: the instruction's columns.
const FEW_ROWS: [i64; 17] = [
    8, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
];
/// `(columns, consumers)` of swapped tiles.
const SWAPPED: [(i64, i64); 4] = [(64, 1), (128, 1), (128, 2), (192, 3)];
/// Parts that CTAs may share a tile in through memory.
const PARTS: [i64; 8] = [2, 3, 4, 6, 8, 12, 16, 24];

/// Rows up to which warps alone are quicker where sums are short, and the bytes of a row of A up to which they are: the ring
/// of roles takes longer to fill (an H200: 2.65 us and 1.23 for 2 x 320 x 24, even at 8 x 1320 x 240).
const SHORT: (i64, i64) = (64, 512);

/// Whether warps alone are quicker, for sums too short for roles.
pub(super) const fn is_short(problem: Problem) -> bool {
    let rows = problem.m.saturating_mul(problem.batch);
    rows <= SHORT.0 && problem.k.saturating_mul(problem.element_bytes) <= SHORT.1
}

/// The tiles to choose from.
pub(super) fn tiles(problem: Problem, k_first: KFirst, chip: &Chip) -> Vec<WideTile> {
    let bytes = problem.element_bytes;
    let turns = TURNS.into_iter().flat_map(|(rows, columns, step)| {
        columns.step_by(step).filter_map(move |columns| {
            let tile = WideTile::new((rows, columns, 1), bytes, chip)?;
            tile.in_turns(CONSUMERS_IN_TURNS, bytes, chip)
        })
    });
    let usual = SHAPES
        .iter()
        .filter_map(|shape| WideTile::new(*shape, bytes, chip));
    let (columns, step) = OF_FEW_ROWS;
    let flat = columns
        .step_by(step)
        .filter_map(|columns| WideTile::new((64, columns, 1), bytes, chip));
    let rows = FEW_ROWS.into_iter().find(|rows| *rows >= problem.m);
    let few = rows
        .into_iter()
        .flat_map(|rows| few_rows(rows, problem, chip));
    // Reading the weights of few rows takes longer than what turns would hide.
    let many = problem.m > 64;
    usual
        .flat_map(|tile| std::iter::once(tile).chain(split(tile, problem, chip)))
        .chain(turns.filter(|_| many))
        .chain(flat.filter(|_| !many))
        .chain(few)
        .flat_map(|tile| std::iter::once(tile).chain(clusters(tile, problem, k_first)))
        .filter(|tile| tile.reads(k_first, bytes))
        .flat_map(|tile| std::iter::once(tile).chain(Tail::offered(tile, problem, chip)))
        .collect()
}

/// The tile shared by clusters or through memory, where there are too few for the chip's multiprocessors.
fn split(tile: WideTile, problem: Problem, chip: &Chip) -> impl Iterator<Item = WideTile> {
    let [m, n, _] = tile.shape;
    let tiles = count(problem.m, m)
        .saturating_mul(count(problem.n, n))
        .saturating_mul(problem.batch);
    let more = SPLITS.into_iter().filter(|split| *split > 1);
    more.filter(move |split| tiles <= chip.clusters(*split))
        .filter_map(move |split| tile.split_by(split, problem.element_bytes, chip))
        .filter(move |tile| tile.can_split(problem.k))
        .chain(parts(tile, tiles, problem, chip))
}

/// The tile shared through memory, of so many.
fn parts(
    tile: WideTile,
    tiles: i64,
    problem: Problem,
    chip: &Chip,
) -> impl Iterator<Item = WideTile> {
    let most = if problem.batch == 1 {
        chip.multiprocessors
    } else {
        0
    };
    PARTS
        .into_iter()
        .filter(move |parts| tiles.saturating_mul(*parts) <= most)
        .filter_map(move |parts| tile.in_parts(parts, problem.k))
}

/// The tile in the clusters that the product has tiles for.
pub(super) fn clusters(
    tile: WideTile,
    problem: Problem,
    k_first: KFirst,
) -> impl Iterator<Item = WideTile> {
    let [m, n, _] = tile.shape;
    let ways = [(false, problem.m, m), (true, problem.n, n)];
    ways.into_iter().flat_map(move |(beside, extent, own)| {
        CLUSTERS.into_iter().filter_map(move |cluster| {
            let enough = extent > own.saturating_mul(cluster - 1);
            let tile = tile.in_clusters(cluster, beside, k_first);
            tile.filter(|_| enough)
        })
    })
}

/// Swapped tiles of so many rows, whole and split.
fn few_rows(rows: i64, problem: Problem, chip: &Chip) -> Vec<WideTile> {
    let bytes = problem.element_bytes;
    let tiles = SWAPPED.into_iter().filter_map(|(columns, consumers)| {
        WideTile::swapped((rows, columns, consumers), bytes, chip)
    });
    tiles
        .flat_map(|tile| std::iter::once(tile).chain(split(tile, problem, chip)))
        .collect()
}

/// The cheapest tile; `None` when none fits.
#[must_use]
pub fn choose(problem: Problem, k_first: KFirst, chip: &Chip) -> Option<WideTile> {
    choose_of(problem, k_first, chip, |_| true)
}

/// The cheapest of some tiles.
pub(super) fn choose_of(
    problem: Problem,
    k_first: KFirst,
    chip: &Chip,
    of: impl Fn(&WideTile) -> bool,
) -> Option<WideTile> {
    let cost = |tile: &WideTile| tile.cost(problem, k_first, chip);
    tiles(problem, k_first, chip)
        .into_iter()
        .filter(of)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

#[cfg(test)]
mod tests {
    use super::super::cost::Unit;
    use super::*;
    use crate::facts::chip::chip;

    fn chosen(m: i64, n: i64, k: i64) -> WideTile {
        let problem = Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        };
        choose(
            problem,
            KFirst { a: false, b: false },
            chip("sm_90a").unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn large_products_take_turns_at_tiles_that_fill_the_chip() {
        // 140 x 64 tiles are 67.9 of each multiprocessor's.
        let tile = chosen(8192, 24576, 4096);
        assert_eq!((tile.shape, tile.turns), ([128, 176, 64], true), "{tile}");
    }

    #[test]
    fn long_sums_of_few_tiles_are_shared() {
        let tile = chosen(777, 1032, 14336);
        assert!(tile.parts > 1 || tile.split > 1, "{tile}");
        assert!(chosen(128, 104, 14336).parts >= 8);
        assert_eq!(chosen(4096, 4096, 4096).parts, 1);
        assert_eq!(chosen(512, 512, 64).parts, 1);
    }

    #[test]
    fn few_rows_take_few_rows() {
        assert_eq!(chosen(16, 4096, 12288).shape, [16, 64, 256]);
        assert_eq!(chosen(1, 57344, 8192).shape[0], 8);
        assert_eq!(chosen(64, 4096, 12288).shape[0], 64);
    }

    #[test]
    fn sizes_beyond_any_memory_have_a_cost() {
        for (m, n, k) in [(i64::MAX, i64::MAX, i64::MAX), (1, i64::MAX, 8)] {
            let problem = Problem {
                batch: i64::MAX,
                m,
                n,
                k,
                element_bytes: 2,
                unit: Unit::Half,
            };
            let k_first = KFirst { a: true, b: true };
            let chip = chip("sm_90a").unwrap();
            for tile in tiles(problem, k_first, chip) {
                let clocks = tile.cost(problem, k_first, chip);
                assert!(clocks.is_finite() && clocks > 0.0, "{tile}: {clocks}");
            }
        }
    }

    #[test]
    fn clusters_share_the_operand_that_their_tiles_have_in_common() {
        let chip = chip("sm_90a").unwrap();
        let k_first = KFirst { a: false, b: false };
        let tile = WideTile::new((64, 96, 1), 2, chip).unwrap();
        let problem = |m, n| Problem {
            batch: 1,
            m,
            n,
            k: 4096,
            element_bytes: 2,
            unit: Unit::Half,
        };
        let of = |m, n| clusters(tile, problem(m, n), k_first).collect::<Vec<_>>();
        // One row of tiles: only side by side; 2 x 2 of them do not fill a cluster of four.
        let one_row = of(64, 12288);
        assert!(one_row.iter().all(|tile| tile.beside), "{one_row:?}");
        assert_eq!(
            one_row.iter().map(|t| t.cluster).collect::<Vec<_>>(),
            [2, 4]
        );
        let square = of(128, 192);
        let spans: Vec<_> = square.iter().map(|tile| tile.span()).collect();
        assert_eq!(spans, [[128, 96], [64, 192]]);
        assert!(square.iter().all(|cluster| cluster.alone() == tile));
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
