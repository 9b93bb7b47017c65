//! The tile of a matrix product by roles: a small model of what each choice costs on the chip.

use super::cost::Problem;
use crate::facts::chip::Chip;
use axe_dialect::TileOrder;
use std::fmt;

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
/// Accumulators of a thread at most: the rest of its 255 registers is left to addresses and the epilogue.
const ACCUMULATORS: i64 = 192;
/// Accumulators of a thread from which on the roles' registers are shared out unevenly.
const WIDE: i64 = 112;
/// Registers beside the accumulators without which ptxas refuses a kernel (C7602): it compiles for the registers that
/// every thread of the CTA can have, whatever `setmaxnreg` gives to some.
const BESIDE: i64 = 28;
/// Registers of a multiprocessor, and of a thread at most (CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability"); ptxas counts in eights.
const REGISTERS: [i64; 2] = [64 * 1024, 255];
/// Bytes of the ring's barriers and of alignment.
const RESERVED: i64 = 2048;
/// Rows of tiles in a group, unless a tuner knows better.
const GROUP: i64 = 8;

/// `(rows, columns, consumers)` that the cost model chooses from; columns in panels of 128 bytes, as results are stored.
pub(super) const SHAPES: [(i64, i64, i64); 9] = [
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

/// Products of 8-bit elements that a multiprocessor forms in a clock by wgmma, half as many of twice the bytes (H100
/// white paper: 512 FMA of 16-bit floats a clock for each of 4 tensor cores).
const PRODUCTS_A_CLOCK: f64 = 4096.0;
/// Bytes that a multiprocessor reads from L2 in a clock.
const BYTES_A_CLOCK: f64 = 48.0;
/// Clocks of a tile beside its products: the last sums, and the first stage of a CTA.
const OVERHEAD: f64 = 1500.0;

/// Accumulators that a thread can have beside this many consumers.
fn accumulators(consumers: i64) -> i64 {
    let [all, most] = REGISTERS;
    let even = all / ((1 + consumers) * WARPGROUP) / 8 * 8;
    (even.min(most) - BESIDE).min(ACCUMULATORS)
}

impl WideTile {
    /// The tile of this shape with as many stages as fit; `None` when fewer than two do, or the shape is not one
    /// of whole instructions whose accumulators fit in registers.
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
        if !whole || m * n / (consumers * WARPGROUP) > accumulators(consumers) {
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

    /// Whether the columns are whole panels of 128 bytes or divide one, as shared memory holds them where B is
    /// stored `[k, n]`.
    #[must_use]
    pub const fn has_whole_panels(self, bytes: i64) -> bool {
        let (panel, [_, n, _]) = (128 / bytes, self.shape);
        n % panel == 0 || panel % n == 0
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
        let bytes = depth * problem.element_bytes as f64;
        let math = (m * n) as f64 * bytes / (PRODUCTS_A_CLOCK * share);
        let loads = (m.min(problem.m) + n) as f64 * bytes / BYTES_A_CLOCK;
        turns * (math.max(loads) + OVERHEAD)
    }
}

impl fmt::Display for WideTile {
    /// The tile as the dictionary `axe.plan`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape;
        write!(
            f,
            "{{kernel = \"wgmma\", tile = array<i64: {m}, {n}, {k}>, consumers = {} : i64, stages = {} : i64, order = \"{}\", group = {} : i64, cluster = {} : i64}}",
            self.consumers,
            self.stages,
            order_name(self.order),
            self.group,
            self.cluster
        )
    }
}

/// The orders and their names in `axe.plan`.
const ORDERS: [(&str, TileOrder); 5] = [
    ("rows", TileOrder::Rows),
    ("columns", TileOrder::Columns),
    ("groups", TileOrder::Groups),
    ("snake", TileOrder::Snake),
    ("hilbert", TileOrder::Hilbert),
];

/// The order of a name in `axe.plan`.
pub(super) fn order(name: &str) -> Option<TileOrder> {
    let mut orders = ORDERS.into_iter();
    orders
        .find(|(known, _)| *known == name)
        .map(|(_, order)| order)
}

fn order_name(order: TileOrder) -> &'static str {
    let mut orders = ORDERS.into_iter();
    orders
        .find(|(_, known)| *known == order)
        .map_or("rows", |(name, _)| name)
}

/// Whether a descriptor takes rows of this many elements: strides are multiples of 16 bytes (CUDA driver API,
/// `cuTensorMapEncodeTiled`, globalStrides).
#[must_use]
pub const fn takes_rows(elements: i64, bytes: i64) -> bool {
    elements.wrapping_mul(bytes) % 16 == 0
}

/// The cheapest tile; `None` when none fits. With `k_first`, B is stored `[k, n]`.
#[must_use]
pub fn choose(problem: Problem, k_first: bool, chip: &Chip) -> Option<WideTile> {
    SHAPES
        .iter()
        .filter_map(|shape| WideTile::new(*shape, problem.element_bytes, chip))
        .filter(|tile| !k_first || tile.has_whole_panels(problem.element_bytes))
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
        choose(problem, false, chip("sm_90a").unwrap())
            .unwrap()
            .shape
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
    fn accumulators_fit_in_registers() {
        let tile = |shape| WideTile::new(shape, 2, chip("sm_90a").unwrap());
        // ptxas takes 128 accumulators of 384 threads, and refuses them of 512.
        assert!(tile((128, 256, 2)).is_some() && tile((256, 192, 2)).is_none());
        assert!(tile((192, 192, 3)).is_some() && tile((192, 256, 3)).is_none());
        assert!(tile((64, 256, 1)).is_some() && tile((128, 200, 1)).is_none());
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
