//! The configurations of a product that are worth timing.
//!
//! Beside the tiles come the orders in which they are visited, on which the model has no opinion, clusters, and stages: each is
//! tried on the best tiles first.

use super::offered;
use crate::facts::chip::Chip;
use crate::planner::choose::search::{self, Candidate, Tried};
use crate::planner::config::{Config, Decomposition, Raster, Wgmma};
use crate::planner::knobs::Sharing;
use crate::planner::model;
use crate::planner::problem::{Query, count};
use axe_dialect::RasterOrder;
use std::collections::HashSet;
use std::mem::discriminant;

/// `(rows, columns, consumers)` beside those that the cost model chooses from.
const SHAPES: [(i64, i64, i64); 3] = [(256, 64, 2), (256, 96, 2), (128, 128, 1)];
/// Orders to try, the likeliest first, with the rows of tiles in a group.
const ORDERS: [(RasterOrder, i64); 9] = [
    (RasterOrder::Groups, 8),
    (RasterOrder::Groups, 16),
    (RasterOrder::Snake, 8),
    (RasterOrder::Groups, 4),
    (RasterOrder::Hilbert, 1),
    (RasterOrder::Snake, 16),
    (RasterOrder::Groups, 32),
    (RasterOrder::Rows, 1),
    (RasterOrder::Columns, 1),
];
/// How much slower than its CTAs alone a cluster may be predicted to be and still be tried.
const CLUSTERS_WORTH: f64 = 1.08;
/// At most `limit` configurations, the cost model's own choice first.
#[must_use]
pub(in crate::planner) fn candidates(
    query: Query,
    chip: &Chip,
    limit: usize,
) -> Vec<Candidate<Config>> {
    let problem = query.problem;
    let wgmma = query.wgmma && chip.has_wgmma && chip.has_tma;
    let plain = query.blocks.is_none() && !query.grouped;
    let quicker = wgmma && plain && offered::is_quicker_by_mma(query, chip, |_| true);
    let own = (wgmma && !quicker)
        .then(|| offered::choose(query, chip))
        .flatten()
        .map(Config::Wgmma);
    let by_mma = || {
        let chosen = offered::mma::choose_of(query, chip, |_| true);
        chosen.map(|(config, _)| Config::Mma(config))
    };
    let own = own.or_else(|| (!query.grouped).then(by_mma).flatten());
    let mut all = Vec::new();
    if wgmma {
        all.extend(by_wgmma(query, chip));
    }
    // A descriptor's tile has 64 rows at least: few rows may be quicker without.
    if !query.grouped && (!wgmma || quicker || problem.m <= 64) {
        let mma = offered::mma::all(query, chip).into_iter();
        all.extend(mma.map(|config| Tried {
            config: Config::Mma(config),
            number: 0,
        }));
    }
    let clocks = |config: &Config| model::clocks(query, *config, chip);
    // The two mainloops are measured by models of their own.
    search::ranked(own, all, limit, clocks, discriminant, way)
}

/// How CTAs and warpgroups share the work: whether each consumer has its own tile, A and B are swapped, and which CTAs share
/// depth.
fn way(config: &Config) -> Option<(bool, bool, Sharing)> {
    match config {
        Config::Wgmma(config) => {
            let (sharing, _) = config.decomposition().sharing();
            Some((config.is_pingpong(), config.swaps_ab(), sharing))
        }
        Config::Mma(_) => None,
    }
}

/// Those of wgmma, each with its number among those of its tile.
fn by_wgmma(query: Query, chip: &Chip) -> Vec<Tried<Config>> {
    let bytes = query.problem.element_bytes;
    let more = SHAPES
        .into_iter()
        .filter_map(|shape| Wgmma::new(shape, bytes, chip))
        .filter_map(|config| match query.grouped {
            true => config.grouped(),
            false => Some(config),
        })
        .filter(|config| config.reads(query.k_first, bytes) && query.blocks.is_none());
    // Clusters come with the orders, but where the last wave's tiles are shared among as many as there are for it.
    let alone = |config: Wgmma| match config.decomposition() {
        Decomposition::StreamK(..) => config,
        _ => config.alone(),
    };
    // A stage less may be what leaves a second slot for results.
    let (mut seen, mut tried) = (HashSet::new(), HashSet::new());
    offered::all(query, chip)
        .into_iter()
        .map(alone)
        .chain(more)
        .filter(|config| seen.insert(*config))
        .flat_map(|config| orders(config, query, chip).into_iter().zip(0..))
        .filter(|(config, _)| tried.insert(*config))
        .map(|(config, number)| Tried {
            config: Config::Wgmma(config),
            number,
        })
        .collect()
}

/// A tile in the orders that differ from each other, in clusters of two, and with a stage less.
fn orders(config: Wgmma, query: Query, chip: &Chip) -> Vec<Wgmma> {
    let problem = query.problem;
    let [m, n, _] = config.tile();
    let rows = count(problem.m, m);
    let columns = count(problem.n, n);
    let mut seen = Vec::new();
    let mut all = Vec::new();
    // Hilbert's curve needs counts of tiles that are known.
    let orders = ORDERS.into_iter();
    for (order, group) in
        orders.filter(|(order, _)| !query.grouped || *order != RasterOrder::Hilbert)
    {
        // One wave visits all tiles at once, and a group of more rows than there are is all of them.
        let effect = match order {
            _ if rows * columns * problem.batch <= chip.multiprocessors => (RasterOrder::Groups, 0),
            RasterOrder::Groups if group >= rows => (RasterOrder::Columns, 1),
            RasterOrder::Snake if group >= rows => (RasterOrder::Columns, 1),
            other => (other, group),
        };
        if !seen.contains(&effect) {
            seen.push(effect);
            all.push(config.with_raster(Raster {
                order,
                swizzle: group,
            }));
        }
    }
    let first = all.len().min(1);
    let cost = |config: &Wgmma| model::wgmma::cost(*config, problem, query.k_first, chip);
    let shares = matches!(config.decomposition(), Decomposition::StreamK(..));
    let clusters = offered::clusters(config, problem, query.k_first, chip)
        .filter(|cluster| !shares && cost(cluster) <= CLUSTERS_WORTH * cost(&config));
    all.splice(first..first, clusters);
    if let Some(fewer) = config
        .with_stages(config.stages() - 1)
        .filter(|_| config.stages() > 3)
    {
        all.insert(all.len().min(3), fewer);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::problem::{KFirst, Problem, Unit};
    use proptest::prelude::*;

    fn query(m: i64, n: i64, k: i64) -> Query {
        Query {
            problem: Problem {
                batch: 1,
                m,
                n,
                k,
                element_bytes: 2,
                unit: Unit::Half,
            },
            wgmma: k % 8 == 0,
            blocks: None,
            grouped: false,
            k_first: KFirst { a: false, b: false },
        }
    }

    fn found(query: Query, limit: usize) -> Vec<Config> {
        let found = candidates(query, chip("sm_90a").unwrap(), limit);
        found
            .into_iter()
            .map(|candidate| candidate.config)
            .collect()
    }

    fn wgmma(configs: &[Config]) -> Vec<Wgmma> {
        let tile = |config: &Config| match config {
            Config::Wgmma(config) => Some(*config),
            Config::Mma(_) => None,
        };
        configs.iter().filter_map(tile).collect()
    }

    #[test]
    fn large_products_vary_tiles_and_orders() {
        let tiles = wgmma(&found(query(8192, 24576, 4096), 40));
        let shapes: HashSet<_> = tiles
            .iter()
            .map(|tile| (tile.tile(), tile.consumers()))
            .collect();
        let orders: HashSet<_> = tiles.iter().map(|tile| tile.raster()).collect();
        assert!(shapes.len() >= 3, "{shapes:?}");
        assert!(orders.len() >= 3, "{orders:?}");
        let pingpong = tiles.iter().filter(|tile| tile.is_pingpong()).count();
        assert!((1..tiles.len()).contains(&pingpong), "{tiles:?}");
    }

    #[test]
    fn a_stage_less_is_tried_once() {
        let mut query = query(7169, 4777, 5568);
        query.k_first.b = true;
        let all = found(query, 32);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn one_wave_has_one_order() {
        let tiles = wgmma(&found(query(512, 512, 512), 100));
        let small: Vec<_> = tiles
            .iter()
            .filter(|t| t.tile() == [64, 64, 64] && !t.swaps_ab())
            .filter(|t| t.ctas() == 1 && t.splits() == 1)
            .collect();
        assert!((1..=2).contains(&small.len()), "{small:?}");
    }

    #[test]
    fn few_rows_and_odd_rows_have_configurations_of_mma() {
        let of_mma = |configs: Vec<Config>| configs.len() - wgmma(&configs).len();
        assert!(of_mma(found(query(16, 4096, 4096), 100)) > 0);
        let odd = found(query(999, 1001, 1003), 100);
        assert_eq!(of_mma(odd.clone()), odd.len());
        assert!(odd.len() > 1, "{odd:?}");
        assert_eq!(of_mma(found(query(4096, 4096, 4096), 100)), 0);
    }

    #[test]
    fn operands_with_k_first_take_whole_rows() {
        let mut query = query(8192, 4096, 4096);
        query.k_first.b = true;
        let tiles = wgmma(&found(query, 100));
        assert!(
            tiles
                .iter()
                .all(|t| t.tile()[1] % 64 == 0 || 64 % t.tile()[1] == 0),
            "{tiles:?}"
        );
    }

    proptest! {
        // A case asks the model for thousands of configurations.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bounded_distinct_and_the_models_choice_first(
            m in 1i64..20_000, n in 1i64..20_000, k in 1i64..20_000, k_first: bool, limit in 0usize..40
        ) {
            let k_first = KFirst { a: false, b: k_first };
            let query = Query { k_first, ..query(m, n, k) };
            let chip = chip("sm_90a").unwrap();
            let all = found(query, limit);
            prop_assert!(all.len() <= limit);
            prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            if let Some(first) = all.first() {
                let own = if query.wgmma && !offered::is_quicker_by_mma(query, chip, |_| true) {
                    Config::Wgmma(offered::choose(query, chip).unwrap())
                } else {
                    Config::Mma(offered::mma::choose_of(query, chip, |_| true).unwrap().0)
                };
                prop_assert_eq!(*first, own);
            }
        }
    }
}
