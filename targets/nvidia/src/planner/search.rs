//! The variants of a matrix product that are worth timing, best first as the cost model has it.
//!
//! A tile is worth it unless the model thinks it much slower than the best. Beside the tiles come the orders in
//! which they are visited, on which the model has no opinion, and the stages: each is tried on the best tiles
//! first, and further tiles take turns with further orders of the better ones.

use super::cost::{self, Problem, Unit};
use super::gemm::count;
use super::offered;
use super::padded;
use super::scaled::{self, Blocks};
use super::variant::Variant;
use super::wide::{self, KFirst, WideTile};
use crate::facts::chip::Chip;
use axe_dialect::RasterOrder;
use axe_package::{DType, Key, OperandOrder, TunedOp};
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
/// How much slower than the best a tile may be predicted to be and still be tried. The model is no better than
/// that for small products, where latencies count that it does not know.
const WORTH: f64 = 1.75;
/// How much slower than its CTAs alone a cluster may be predicted to be and still be tried.
const CLUSTERS_WORTH: f64 = 1.08;
/// What a further order costs in the ranking: as much as a tile that is this much slower.
const PATIENCE: f64 = 0.012;

/// The blocks of [`TunedOp::GemmBlockScaled`].
pub(super) const BLOCKS: Blocks = Blocks { n: 128, k: 128 };

/// What a tuner asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The product.
    pub problem: Problem,
    /// Whether the tensor memory accelerator takes its operands, or copies of them that pay.
    pub roles: bool,
    /// How the operands are stored.
    pub k_first: KFirst,
    /// What shares a scale, where blocks have scales.
    pub blocks: Option<Blocks>,
}

impl Query {
    /// Clocks that a variant is predicted to take.
    pub(super) fn clocks(self, variant: Variant, chip: &Chip) -> f64 {
        let adding = self.blocks.map_or(1.0, |_| scaled::adding(variant));
        variant.cost(self.problem, self.k_first, chip) * adding
    }

    /// The question for a key of the database; `None` for what there are no kernels to choose from: 8-bit products
    /// with one scale or of other operands than A \[m, k\] and W \[n, k\], sizes beyond 2^63.
    #[must_use]
    pub fn of(key: &Key) -> Option<Self> {
        let (unit, bytes, blocks) = match (key.op, key.dtype) {
            (TunedOp::Gemm, DType::F16 | DType::BF16) => (Unit::Half, 2, None),
            (TunedOp::GemmRowScaled, DType::F8E4M3) => (Unit::Byte, 1, None),
            (TunedOp::GemmBlockScaled, DType::F8E4M3) => (Unit::Byte, 1, Some(BLOCKS)),
            _ => return None,
        };
        if unit == Unit::Byte && key.layout != OperandOrder::Nt {
            return None;
        }
        let size = |size: u64| i64::try_from(size).ok();
        let (m, n, k) = (size(key.m)?, size(key.n)?, size(key.k)?);
        let (trans_a, trans_b) = match key.layout {
            OperandOrder::Nn => (false, false),
            OperandOrder::Nt => (false, true),
            OperandOrder::Tn => (true, false),
            OperandOrder::Tt => (true, true),
        };
        let rows = [if trans_a { m } else { k }, if trans_b { k } else { n }];
        let problem = Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: bytes,
            unit,
        };
        let takes = rows.into_iter().all(|row| wide::takes_rows(row, bytes));
        Some(Self {
            problem,
            blocks,
            roles: takes || padded::pays(problem),
            k_first: KFirst {
                a: trans_a,
                b: !trans_b,
            },
        })
    }
}

/// A variant and the clocks that it is predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The variant.
    pub variant: Variant,
    /// Predicted clocks.
    pub clocks: f64,
}

/// At most `limit` variants, the cost model's own choice first.
#[must_use]
pub fn candidates(query: Query, chip: &Chip, limit: usize) -> Vec<Candidate> {
    let problem = query.problem;
    let roles = query.roles && chip.has_wgmma && chip.has_tma;
    let by_warps = query.blocks.is_none() && offered::is_short(problem);
    let own = (roles && !by_warps)
        .then(|| match query.blocks {
            Some(blocks) => scaled::choose(problem, blocks, chip),
            None => offered::choose(problem, query.k_first, chip),
        })
        .flatten()
        .map(Variant::Roles);
    let own = own.or_else(|| cost::choose(problem, chip).map(Variant::Warps));
    let mut ranked = Vec::new();
    if roles {
        ranked.extend(by_roles(query, chip));
    }
    // A descriptor's tile has 64 rows at least: few rows may be quicker without.
    if !roles || problem.m <= 64 {
        let warps = cost::candidates(problem, chip).into_iter();
        ranked.extend(warps.map(|tile| (Variant::Warps(tile), 0)));
    }
    let clocks = |variant: &Variant| query.clocks(*variant, chip);
    // The two kinds are measured by models of their own.
    let best = |kind: &Variant| {
        let same = |(variant, _): &&(Variant, usize)| discriminant(variant) == discriminant(kind);
        let all = ranked.iter().filter(same);
        all.map(|(variant, _)| clocks(variant))
            .fold(f64::INFINITY, f64::min)
    };
    let mut worth: Vec<_> = ranked
        .iter()
        .map(|(variant, turn)| {
            let slower = clocks(variant) / best(variant);
            (*variant, slower, slower + PATIENCE * *turn as f64)
        })
        .filter(|(_, slower, _)| *slower <= WORTH)
        .collect();
    worth.sort_by(|a, b| a.2.total_cmp(&b.2));
    // The best of each way to share the work comes before more of what the model likes best: it is surer within a way.
    let mut ways = HashSet::new();
    let (firsts, others): (Vec<_>, Vec<_>) = worth
        .into_iter()
        .map(|(variant, ..)| variant)
        .partition(|variant| ways.insert(way(*variant)));
    let others = firsts.into_iter().chain(others);
    let all = own.into_iter().chain(others.filter(|v| Some(*v) != own));
    all.take(limit)
        .map(|variant| Candidate {
            clocks: clocks(&variant),
            variant,
        })
        .collect()
}

/// How CTAs and warpgroups share the work: the warpgroups that multiply in turns, the CTAs of a tile.
const fn way(variant: Variant) -> Option<[bool; 5]> {
    match variant {
        Variant::Roles(tile) => Some([
            tile.turns,
            tile.swap,
            tile.split > 1,
            tile.parts > 1,
            tile.tail > 1,
        ]),
        Variant::Warps(_) => None,
    }
}

/// The variants by roles, each with its turn among those of its tile.
fn by_roles(query: Query, chip: &Chip) -> Vec<(Variant, usize)> {
    let bytes = query.problem.element_bytes;
    let more = SHAPES
        .into_iter()
        .filter_map(|shape| WideTile::new(shape, bytes, chip))
        .filter(|tile| tile.reads(query.k_first, bytes) && query.blocks.is_none());
    let tiles = match query.blocks {
        Some(blocks) => scaled::tiles(query.problem, blocks, chip),
        None => offered::tiles(query.problem, query.k_first, chip),
    };
    // Clusters come with the orders, but where the last turn's tiles are shared among as many as there are for it.
    let alone = |tile: WideTile| if tile.tail == 1 { tile.alone() } else { tile };
    let mut seen = HashSet::new();
    tiles
        .into_iter()
        .map(alone)
        .chain(more)
        .filter(|tile| seen.insert(*tile))
        .flat_map(|tile| orders(tile, query, chip).into_iter().zip(0..))
        .map(|(tile, turn)| (Variant::Roles(tile), turn))
        .collect()
}

/// A tile in the orders that differ from each other, in clusters of two, and with a stage less.
fn orders(tile: WideTile, query: Query, chip: &Chip) -> Vec<WideTile> {
    let problem = query.problem;
    let [m, n, _] = tile.shape;
    let rows = count(problem.m, m);
    let columns = count(problem.n, n);
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for (order, group) in ORDERS {
        // One turn visits all tiles at once, and a group of more rows than there are is all of them.
        let effect = match order {
            _ if rows * columns * problem.batch <= chip.multiprocessors => (RasterOrder::Groups, 0),
            RasterOrder::Groups if group >= rows => (RasterOrder::Columns, 1),
            RasterOrder::Snake if group >= rows => (RasterOrder::Columns, 1),
            other => (other, group),
        };
        if !seen.contains(&effect) {
            seen.push(effect);
            all.push(WideTile {
                order,
                group,
                ..tile
            });
        }
    }
    let first = all.len().min(1);
    let cost = |tile: &WideTile| tile.cost(problem, query.k_first, chip);
    let clusters = offered::clusters(tile, problem, query.k_first)
        .filter(|cluster| tile.tail == 1 && cost(cluster) <= CLUSTERS_WORTH * cost(&tile));
    all.splice(first..first, clusters);
    if tile.stages > 3 {
        let fewer = WideTile {
            stages: tile.stages - 1,
            ..tile
        };
        all.insert(all.len().min(3), fewer);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
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
            roles: k % 8 == 0,
            blocks: None,
            k_first: KFirst { a: false, b: false },
        }
    }

    fn found(query: Query, limit: usize) -> Vec<Variant> {
        let found = candidates(query, chip("sm_90a").unwrap(), limit);
        found
            .into_iter()
            .map(|candidate| candidate.variant)
            .collect()
    }

    fn roles(variants: &[Variant]) -> Vec<WideTile> {
        let tile = |variant: &Variant| match variant {
            Variant::Roles(tile) => Some(*tile),
            Variant::Warps(_) => None,
        };
        variants.iter().filter_map(tile).collect()
    }

    #[test]
    fn large_products_vary_tiles_and_orders() {
        let tiles = roles(&found(query(8192, 24576, 4096), 40));
        let shapes: HashSet<_> = tiles
            .iter()
            .map(|tile| (tile.shape, tile.consumers))
            .collect();
        let orders: HashSet<_> = tiles.iter().map(|tile| (tile.order, tile.group)).collect();
        assert!(shapes.len() >= 3, "{shapes:?}");
        assert!(orders.len() >= 3, "{orders:?}");
        let turns = tiles.iter().filter(|tile| tile.turns).count();
        assert!((1..tiles.len()).contains(&turns), "{tiles:?}");
    }

    #[test]
    fn one_turn_has_one_order() {
        let tiles = roles(&found(query(512, 512, 4096), 100));
        let small: Vec<_> = tiles
            .iter()
            .filter(|t| t.shape[..2] == [64, 64] && t.ctas() == 1 && t.parts == 1)
            .collect();
        assert!((1..=2).contains(&small.len()), "{small:?}");
    }

    #[test]
    fn few_rows_and_odd_rows_have_variants_by_warps() {
        let by_warps = |variants: Vec<Variant>| variants.len() - roles(&variants).len();
        assert!(by_warps(found(query(16, 4096, 4096), 100)) > 0);
        let odd = found(query(999, 1001, 1003), 100);
        assert_eq!(by_warps(odd.clone()), odd.len());
        assert!(odd.len() > 1, "{odd:?}");
        assert_eq!(by_warps(found(query(4096, 4096, 4096), 100)), 0);
    }

    #[test]
    fn operands_with_k_first_take_whole_panels() {
        let mut query = query(8192, 4096, 4096);
        query.k_first.b = true;
        let tiles = roles(&found(query, 100));
        assert!(
            tiles
                .iter()
                .all(|t| t.shape[1] % 64 == 0 || 64 % t.shape[1] == 0),
            "{tiles:?}"
        );
    }

    proptest! {
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
                let own = if query.roles && !offered::is_short(query.problem) {
                    Variant::Roles(offered::choose(query.problem, query.k_first, chip).unwrap())
                } else {
                    Variant::Warps(cost::choose(query.problem, chip).unwrap())
                };
                prop_assert_eq!(*first, own);
            }
        }
    }
}
