//! The configurations of `wgmma` that the cost model chooses from, and its choice; [`mma`] has those of `mma.sync`.

mod even;
pub(in crate::planner) mod mma;

use crate::facts::chip::{Chip, LINE_BYTES};
use crate::planner::config::{Cluster, Config, SPLITS, Wgmma};
use crate::planner::model;
use crate::planner::problem::{
    Blocks, KFirst, Problem, Query, RESULT_BYTES, SCALE_BYTES, Unit, count, takes_rows,
};
use crate::planner::scheduler::stream_k;
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
/// Rows and columns, in steps, of tiles of consumers at tiles of their own: fine steps fill the chip evenly.
const PINGPONG: [(i64, RangeInclusive<i64>, usize); 2] = [(128, 64..=192, 8), (64, 128..=256, 8)];
/// Consumers of those: while one stores, the other multiplies.
const PINGPONG_CONSUMERS: i64 = 2;
/// Columns, in steps, of tiles of 64 rows where there are no more: fine steps let every multiprocessor read as much.
const OF_FEW_ROWS: (RangeInclusive<i64>, usize) = (80..=240, 16);
/// Rows and columns of the CTAs that fetch operands for each other: a portable cluster has up to 8, but the more there are, the more
/// multiprocessors are left over ([`Chip::clustered`]).
const CLUSTERS: [[i64; 2]; 4] = [[2, 1], [4, 1], [1, 2], [1, 4]];
/// Those that share both operands, where all tiles are visited at once.
const WIDE_CLUSTERS: [[i64; 2]; 3] = [[2, 2], [2, 4], [4, 2]];
/// Rows that a swapped tile may have, in eights: the instruction's columns.
const MOST_SWAPPED_ROWS: i64 = 256;
/// What rows of swapped tiles are multiples of, where one has all: the instruction's eights, and those that two and four CTAs of a
/// cluster fetch for each other.
const ROUNDED_ROWS: [i64; 3] = [8, 16, 32];
/// `(columns, consumers)` of swapped tiles.
const SWAPPED: [(i64, i64); 4] = [(64, 1), (128, 1), (128, 2), (192, 3)];
/// Columns up to which tiles have as many as the result, in eights.
const FEW_COLUMNS: i64 = 128;
/// `(rows, consumers)` of those.
const OF_FEW_COLUMNS: [(i64, i64); 2] = [(64, 1), (128, 2)];
/// Rows of swapped tiles at the most where threads store rows that no tensor map takes.
const SWAPPED_ROWS_BY_THREADS: i64 = 128;
/// CTAs that may share a tile through memory.
const MEMORY_SPLITS: [i64; 8] = [2, 3, 4, 6, 8, 12, 16, 24];

/// `(rows, columns, consumers)`: 64 rows a warpgroup, so that the sums of a block and those over blocks fit in
/// registers side by side.
const SCALED_SHAPES: [(i64, i64, i64); 7] = [
    (192, 128, 3),
    (128, 128, 2),
    (128, 64, 2),
    (64, 128, 1),
    (64, 64, 1),
    (64, 32, 1),
    (64, 16, 1),
];

/// Rows up to which warps alone are quicker where sums are short and operands would be copied first, and the bytes of a row of A up to
/// which they are: the model knows no better of copies of a microsecond.
const SHORT: (i64, i64) = (64, 512);
/// How much longer kernels of `mma.sync` take than predicted, in comparison with those of `wgmma`: the quickest prediction of many
/// is a low one. Of 200 sizes on an H100 (docs/performance.md), those between 0.87 and 1 took 1.05 times as long as by `wgmma`, and
/// those below it 0.89 times.
const OPTIMISM: f64 = 1.15;

/// Whether `mma.sync` is quicker than `wgmma`, with the copies that this takes of operands whose rows no tensor map does: for short sums
/// with such copies, and as predicted, of the configurations that the product can have. Of other elements than 16-bit floats
/// its rates are not known well enough.
pub(in crate::planner) fn is_quicker_by_mma(
    query: Query,
    chip: &Chip,
    of: impl Fn(&Config) -> bool,
) -> bool {
    let problem = query.problem;
    let rows = problem.m.saturating_mul(problem.batch);
    let row_bytes = problem.k.saturating_mul(problem.element_bytes);
    if problem.unit != Unit::Half {
        return false;
    }
    if rows <= SHORT.0 && row_bytes <= SHORT.1 && model::copies(query, chip) > 0.0 {
        return true;
    }
    let by_mma = mma::choose_of(query, chip, |config| of(&Config::Mma(*config)));
    let by_wgmma = choose_of(query, chip, |config| of(&Config::Wgmma(*config)));
    match (by_mma, by_wgmma) {
        (Some((_, by_mma)), Some(config)) => {
            by_mma * OPTIMISM < model::clocks(query, Config::Wgmma(config), chip)
        }
        (by_mma, _) => by_mma.is_some(),
    }
}

/// The configurations to choose from.
pub(in crate::planner) fn all(query: Query, chip: &Chip) -> Vec<Wgmma> {
    match query.blocks {
        _ if query.grouped => of_groups(query, chip),
        Some(blocks) => of_blocks(query.problem, blocks, chip),
        None => usual(query.problem, query.k_first, chip),
    }
}

/// The cheapest; `None` when none fits.
#[must_use]
pub(in crate::planner) fn choose(query: Query, chip: &Chip) -> Option<Wgmma> {
    choose_of(query, chip, |_| true)
}

/// The cheapest of some. Of blocks with scales those of CTAs alone: pairs, which wait for each other's sums of every block
/// too, took 1.15 times as long on an H200.
pub(in crate::planner) fn choose_of(
    query: Query,
    chip: &Chip,
    of: impl Fn(&Wgmma) -> bool,
) -> Option<Wgmma> {
    let cost = |config: Wgmma| model::clocks(query, Config::Wgmma(config), chip);
    all(query, chip)
        .into_iter()
        .filter(|config| query.blocks.is_none() || config.cluster() == Cluster::Alone)
        .filter(of)
        .map(|config| (config, cost(config)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(config, _)| config)
}

/// Those of products whose blocks have no scales.
fn usual(problem: Problem, k_first: KFirst, chip: &Chip) -> Vec<Wgmma> {
    let bytes = problem.element_bytes;
    let pingpong = PINGPONG.into_iter().flat_map(|(rows, columns, step)| {
        columns.step_by(step).filter_map(move |columns| {
            let config = Wgmma::new((rows, columns, 1), bytes, chip)?;
            config.pingpong(PINGPONG_CONSUMERS, bytes, chip)
        })
    });
    let cooperative = SHAPES
        .iter()
        .filter_map(|shape| Wgmma::new(*shape, bytes, chip))
        .chain(shallow(problem, chip));
    let (columns, step) = OF_FEW_ROWS;
    let flat = columns
        .step_by(step)
        .filter_map(|columns| Wgmma::new((64, columns, 1), bytes, chip));
    let fitted = few_rows(problem, chip)
        .into_iter()
        .chain(even::tiles(problem, chip));
    // Reading the weights of few rows takes longer than what a ping-pong schedule would hide.
    let many = problem.m > 64;
    cooperative
        .flat_map(|config| std::iter::once(config).chain(split(config, problem, chip)))
        .chain(pingpong.filter(|_| many))
        .chain(flat.filter(|_| !many))
        .chain(fitted)
        .filter(|config| config.reads(k_first, bytes) && stores(*config, problem))
        .flat_map(|config| std::iter::once(config).chain(config.double_buffered(bytes, chip)))
        .flat_map(|config| std::iter::once(config).chain(clusters(config, problem, k_first, chip)))
        .flat_map(|config| with_last_wave(config, problem, chip))
        .collect()
}

/// Whether a result's rows are stored without reading sums that are still formed: of those that no tensor map takes the
/// threads' own code for swapped tiles of more rows makes ptxas complete each product before the next (C7514).
const fn stores(config: Wgmma, problem: Problem) -> bool {
    let [rows, ..] = config.tile();
    !config.swaps_ab() || rows <= SWAPPED_ROWS_BY_THREADS || takes_rows(problem.n, RESULT_BYTES)
}

/// The configuration, and the same with a shared last wave where that is worth trying.
fn with_last_wave(
    config: Wgmma,
    problem: Problem,
    chip: &Chip,
) -> impl Iterator<Item = Wgmma> + use<> {
    std::iter::once(config).chain(stream_k::offered(config, problem, chip))
}

/// Those of groups of rows.
fn of_groups(query: Query, chip: &Chip) -> Vec<Wgmma> {
    let bytes = query.problem.element_bytes;
    let shapes = SHAPES.into_iter();
    shapes
        .filter_map(|shape| Wgmma::new(shape, bytes, chip)?.grouped())
        .filter(|config| config.reads(query.k_first, bytes))
        .collect()
}

/// Those of products whose blocks have scales.
fn of_blocks(problem: Problem, blocks: Blocks, chip: &Chip) -> Vec<Wgmma> {
    let bytes = problem.element_bytes;
    // A [m, k] and B [n, k].
    let k_first = KFirst { a: false, b: false };
    let clusters = |config: Wgmma| {
        let several = problem.m > config.tile()[0];
        let pair = config
            .in_clusters(Cluster::Rows(2), k_first)
            .filter(|_| several);
        std::iter::once(config).chain(pair)
    };
    SCALED_SHAPES
        .into_iter()
        .filter_map(|shape| Wgmma::with_depth(shape, blocks.k, false, bytes, chip))
        .filter_map(|config| with_scales(config, bytes, chip))
        .filter(|config| fits_blocks(*config, blocks))
        .flat_map(clusters)
        .flat_map(|config| with_last_wave(config, problem, chip))
        .collect()
}

/// Whether a tile's columns share each block's scale of B, and its stages are blocks.
pub(in crate::planner) fn fits_blocks(config: Wgmma, blocks: Blocks) -> bool {
    let [m, n, k] = config.tile();
    m == 64 * config.consumers()
        && blocks.n % n == 0
        && k == blocks.k
        && !config.swaps_ab()
        && !config.is_pingpong()
        && config.cluster_splits() == 1
        && config.splits() == 1
}

/// The configuration with as many stages as fit with the scales of their rows.
pub(in crate::planner) fn with_scales(config: Wgmma, bytes: i64, chip: &Chip) -> Option<Wgmma> {
    config.with_more(config.tile()[0] * SCALE_BYTES, bytes, chip)
}

/// Whether there is a configuration for the blocks; the reason, where there is none.
pub(in crate::planner) fn admits_blocks(
    problem: Problem,
    blocks: Blocks,
    chip: &Chip,
) -> Result<(), String> {
    let found = of_blocks(problem, blocks, chip);
    match found
        .iter()
        .any(|config| config.cluster() == Cluster::Alone)
    {
        true => Ok(()),
        false => Err(format!(
            "blocks of {} elements along k are no stage of a multiple of 128 bytes up to 1024",
            blocks.k
        )),
    }
}

/// The tile shared by clusters or through memory, where there are too few for the chip's multiprocessors.
fn split(config: Wgmma, problem: Problem, chip: &Chip) -> impl Iterator<Item = Wgmma> {
    let [m, n, _] = config.tile();
    let tiles = count(problem.m, m)
        .saturating_mul(count(problem.n, n))
        .saturating_mul(problem.batch);
    let more = SPLITS.into_iter().filter(|split| *split > 1);
    more.filter(move |split| tiles <= chip.clusters(*split))
        .filter_map(move |split| config.cluster_split_k(split, problem.element_bytes, chip))
        .filter(move |config| config.can_split(problem.k))
        .chain(in_memory(config, tiles, problem, chip))
}

/// The tile shared through memory, of so many.
fn in_memory(
    config: Wgmma,
    tiles: i64,
    problem: Problem,
    chip: &Chip,
) -> impl Iterator<Item = Wgmma> {
    let most = if problem.batch == 1 {
        chip.multiprocessors
    } else {
        0
    };
    MEMORY_SPLITS
        .into_iter()
        .filter(move |splits| tiles.saturating_mul(*splits) <= most)
        .filter_map(move |splits| config.split_k(splits, problem.k))
}

/// The tile in the clusters that the product has tiles for.
pub(in crate::planner) fn clusters(
    config: Wgmma,
    problem: Problem,
    k_first: KFirst,
    chip: &Chip,
) -> impl Iterator<Item = Wgmma> {
    let [m, n, _] = config.tile();
    let enough = move |[rows, columns]: [i64; 2]| {
        let has = |extent: i64, own: i64, ctas: i64| extent > own.saturating_mul(ctas - 1);
        has(problem.m, m, rows) && has(problem.n, n, columns)
    };
    let at_once = move |[rows, columns]: [i64; 2]| {
        let clusters = |extent: i64, own: i64, ctas: i64| count(extent, own.saturating_mul(ctas));
        let all = clusters(problem.m, m, rows).saturating_mul(clusters(problem.n, n, columns));
        all.saturating_mul(problem.batch) <= chip.clusters(rows * columns)
    };
    let wide = WIDE_CLUSTERS
        .into_iter()
        .filter(move |shape| at_once(*shape));
    CLUSTERS
        .into_iter()
        .chain(wide)
        .filter(move |shape| enough(*shape))
        .filter_map(move |shape| config.in_clusters(Cluster::of(shape), k_first))
}

/// Swapped tiles of all rows, where they are few, whole and split: in eights, and in as many as the CTAs of a cluster share.
fn few_rows(problem: Problem, chip: &Chip) -> Vec<Wgmma> {
    let mut heights: Vec<_> = ROUNDED_ROWS
        .into_iter()
        .map(|to| count(problem.m, to).saturating_mul(to))
        .filter(|rows| *rows <= MOST_SWAPPED_ROWS)
        .collect();
    heights.dedup();
    heights
        .into_iter()
        .flat_map(|rows| SWAPPED.map(|(columns, consumers)| (rows, columns, consumers)))
        .flat_map(|shape| deep(shape, true, problem, chip))
        .flat_map(|config| std::iter::once(config).chain(split(config, problem, chip)))
        .collect()
}

/// The tile of this shape with stages as long as memory wants them, and with such of one line, of which there are more.
fn deep(
    shape: (i64, i64, i64),
    swap: bool,
    problem: Problem,
    chip: &Chip,
) -> impl Iterator<Item = Wgmma> + use<> {
    let bytes = problem.element_bytes;
    let usual = match swap {
        true => Wgmma::swapped(shape, bytes, chip),
        false => Wgmma::new(shape, bytes, chip),
    };
    let flat = Wgmma::with_depth(shape, LINE_BYTES / bytes, swap, bytes, chip);
    usual
        .into_iter()
        .chain(flat.filter(|flat| usual != Some(*flat)))
}

/// Tiles whose stages are one line deep: those of 64 rows, of which others are deeper, and those of all columns of a result that
/// has few.
fn shallow(problem: Problem, chip: &Chip) -> Vec<Wgmma> {
    let bytes = problem.element_bytes;
    let line = LINE_BYTES / bytes;
    let columns = count(problem.n, 8).saturating_mul(8);
    let narrow = OF_FEW_COLUMNS
        .into_iter()
        .filter(|_| columns <= FEW_COLUMNS && problem.m > 64)
        .map(|(rows, consumers)| (rows, columns, consumers));
    let flat = SHAPES.into_iter().filter(|(rows, ..)| *rows == 64);
    let mut tiles: Vec<_> = flat
        .chain(narrow)
        .filter_map(|shape| Wgmma::with_depth(shape, line, false, bytes, chip))
        .filter(|tile| {
            !SHAPES
                .iter()
                .any(|shape| Wgmma::new(*shape, bytes, chip) == Some(*tile))
        })
        .collect();
    tiles.dedup();
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::problem::Unit;

    const K_FIRST: KFirst = KFirst { a: false, b: false };

    fn query(problem: Problem, k_first: KFirst) -> Query {
        Query {
            problem,
            wgmma: true,
            k_first,
            blocks: None,
            grouped: false,
        }
    }

    fn chosen(m: i64, n: i64, k: i64) -> Wgmma {
        let problem = Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        };
        choose(query(problem, K_FIRST), chip("sm_90a").unwrap()).unwrap()
    }

    #[test]
    fn large_products_take_tiles_that_fill_the_chip_in_ping_pong() {
        // 140 x 64 tiles are 67.9 of each multiprocessor's.
        let tile = chosen(8192, 24576, 4096);
        assert_eq!(
            (tile.tile(), tile.is_pingpong()),
            ([128, 176, 64], true),
            "{tile}"
        );
    }

    #[test]
    fn long_sums_of_few_tiles_are_shared() {
        let tile = chosen(777, 1032, 14336);
        assert!(tile.splits() > 1 || tile.cluster_splits() > 1, "{tile}");
        assert!(chosen(128, 104, 14336).splits() >= 8);
        assert_eq!(chosen(4096, 4096, 4096).splits(), 1);
        assert_eq!(chosen(512, 512, 64).splits(), 1);
    }

    #[test]
    fn few_rows_take_few_rows() {
        assert_eq!(chosen(16, 4096, 12288).tile(), [16, 64, 256]);
        assert_eq!(chosen(1, 57344, 8192).tile()[0], 8);
        assert_eq!(chosen(64, 4096, 12288).tile()[0], 64);
    }

    #[test]
    fn many_rows_of_few_columns_take_even_swapped_tiles() {
        // One that cuBLASLt 13.1 takes as well.
        let tile = chosen(5160, 48, 1048);
        let found = (tile.swaps_ab(), tile.tile()[0], tile.cluster());
        assert_eq!(found, (true, 48, Cluster::Rows(4)), "{tile}");
    }

    #[test]
    fn short_sums_have_shallow_stages() {
        for (m, n, k) in [(88, 1512, 24), (152, 736, 24)] {
            let tile = chosen(m, n, k);
            assert_eq!(tile.tile()[2], 64, "{tile}");
        }
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
            let query = query(problem, KFirst { a: true, b: true });
            let chip = chip("sm_90a").unwrap();
            for tile in all(query, chip) {
                let clocks = model::clocks(query, Config::Wgmma(tile), chip);
                assert!(clocks.is_finite() && clocks > 0.0, "{tile}: {clocks}");
            }
        }
    }

    #[test]
    fn clusters_share_the_operand_that_their_tiles_have_in_common() {
        let chip = chip("sm_90a").unwrap();
        let tile = Wgmma::new((64, 96, 1), 2, chip).unwrap();
        let problem = |m, n| Problem {
            batch: 1,
            m,
            n,
            k: 4096,
            element_bytes: 2,
            unit: Unit::Half,
        };
        let of = |m, n| clusters(tile, problem(m, n), K_FIRST, chip).collect::<Vec<_>>();
        // One row of tiles: only side by side; 2 x 2 of them fill no row or column of four.
        let one_row = of(64, 12288);
        let shapes: Vec<_> = one_row.iter().map(|tile| tile.cluster()).collect();
        assert_eq!(shapes, [Cluster::Columns(2), Cluster::Columns(4)]);
        let square = of(128, 192);
        let spans: Vec<_> = square.iter().map(|tile| tile.span()).collect();
        assert_eq!(spans, [[128, 96], [64, 192], [128, 192]]);
        // More tiles than there are multiprocessors are visited one after the other.
        let many = of(8192, 12288);
        assert!(
            many.iter()
                .all(|tile| !matches!(tile.cluster(), Cluster::Both(_)))
        );
        assert!(square.iter().all(|cluster| cluster.alone() == tile));
    }

    #[test]
    fn every_tile_fits() {
        for shape in SHAPES {
            let tile = Wgmma::new(shape, 2, chip("sm_90a").unwrap()).unwrap();
            assert!(tile.threads() <= 1024 && tile.stages() >= 2, "{tile:?}");
            assert_eq!(tile.tile()[0] % (64 * tile.consumers()), 0);
        }
    }
}
