//! How long a matrix product by `wgmma` takes: a small model of the chip.
//!
//! CTAs go through the tiles in waves. The first tile waits for its first stage; its sums then take as long as its products, its
//! reads or its stages' way around the ring, whichever is longest, and a little longer where several are. The next tile's stages
//! come while a tile is stored, and in a ping-pong schedule it is multiplied then, too. All waves together take no less than
//! memory needs for the operands and the result.

mod reads;

use super::{MEMORY_SHARPNESS, SHARPNESS, together};
use crate::emit::{SHORT_BYTES, is_large_cluster};
use crate::facts::chip::{Chip, LINE_BYTES, SECTOR_BYTES};
use crate::facts::rates::WgmmaRates;
use crate::planner::config::{Decomposition, Store, Wgmma};
use crate::planner::layouts::ROW_BYTES;
use crate::planner::problem::{KFirst, Problem, RESULT_BYTES, SUM_BYTES, count, takes_rows};
use crate::planner::scheduler::stream_k::LastWave;
use reads::Lines;

/// How sharply the longest of products, reads and waits decides that go on at once in a tile.
const STEP_SHARPNESS: f64 = 7.5;

/// Clocks that a product takes; no number of them is enough on a chip without wgmma.
#[must_use]
pub fn cost(config: Wgmma, problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
    let Some(rates) = &chip.wgmma else {
        return f64::INFINITY;
    };
    let model = Model {
        config,
        problem,
        k_first,
        store: config.store(problem.element_bytes, chip),
        last: LastWave::of(config, [problem.m, problem.n, problem.k], chip),
        chip,
        rates,
    };
    let busy = model.tiles();
    let memory = model.memory();
    let moves = together([busy, memory], MEMORY_SHARPNESS);
    model.start(moves) + model.sums() + moves
}

/// How many times as long a tile whose blocks have scales takes as its products: while one of several warpgroups adds, the
/// others multiply.
#[must_use]
pub fn adding(config: Wgmma, chip: &Chip) -> f64 {
    let consumers = config.consumers() as f64;
    chip.wgmma.map_or(1.0, |rates| {
        1.0 + rates.block_added / (consumers * consumers * rates.block_products)
    })
}

/// A product, its configuration and the chip.
struct Model<'a> {
    config: Wgmma,
    problem: Problem,
    k_first: KFirst,
    /// How results leave.
    store: Store,
    /// The tiles that CTAs share in the last wave.
    last: Option<LastWave>,
    chip: &'a Chip,
    rates: &'a WgmmaRates,
}

impl Model<'_> {
    /// Bytes of the operands and of the result.
    fn bytes(&self) -> [f64; 2] {
        let problem = self.problem;
        let [m, n, k] = [problem.m, problem.n, problem.k].map(|extent| extent as f64);
        let batch = problem.batch as f64;
        let read = batch * (m + n) * k * problem.element_bytes as f64;
        [read, batch * m * n * RESULT_BYTES as f64]
    }

    /// Clocks in which memory gives a product's operands and takes its result.
    fn memory(&self) -> f64 {
        let (rates, [read, written]) = (self.rates, self.bytes());
        let sectors = match self.problem.n.wrapping_mul(RESULT_BYTES) % SECTOR_BYTES {
            0 => 1.0,
            _ => rates.within_sectors,
        };
        let high = match self.has_high_subtiles() {
            true => rates.high_subtiles,
            false => 1.0,
        };
        let clocks = read / rates.memory_bytes + written * sectors * high / rates.written_bytes;
        match read + written <= rates.cached_bytes {
            true => clocks * rates.cached,
            false => clocks,
        }
    }

    /// Whether warpgroups have more than 64 rows, which leave in the widest subtiles.
    const fn has_high_subtiles(&self) -> bool {
        let [m, ..] = self.config.tile();
        let high = m > 64 * self.config.warpgroups() && !self.config.swaps_ab();
        high && self.store.row_bytes == ROW_BYTES
    }

    /// Clocks by which the first tile starts late, or the last one ends late, of a kernel that takes so many otherwise.
    fn start(&self, moves: f64) -> f64 {
        let rates = self.rates;
        let cluster = match self.config.cluster().ctas() {
            1 => 0.0,
            2 => rates.cluster_start[0],
            _ => {
                let [most, hidden] = rates.short_cluster;
                rates.cluster_start[1] + (most - moves / hidden).max(0.0)
            }
        };
        let apart = match self.lets_next_start() {
            true => 0.0,
            false => rates.apart,
        };
        rates.start + cluster + apart + rates.start_of_cta * self.active()
    }

    /// Whether the next kernel starts while this one runs, as emission decides.
    fn lets_next_start(&self) -> bool {
        let few = 2.0 * self.active() <= self.chip.multiprocessors as f64;
        let parts = match self.config.decomposition() {
            Decomposition::SplitK(_, splits) => splits,
            _ => 0,
        };
        let followed = parts > 0 || self.last.is_some();
        let [read, written] = self.bytes();
        let moved = read + written * (1.0 + (parts * SUM_BYTES) as f64 / RESULT_BYTES as f64);
        is_large_cluster(self.config.ctas()) || few || followed && moved <= SHORT_BYTES as f64
    }

    /// Tiles of whole waves, counted in those of clusters, each as often as CTAs share its depth through memory.
    fn units(&self) -> i64 {
        let (problem, config) = (self.problem, self.config);
        let [high, wide] = config.span();
        let tiles = count(problem.m, high).saturating_mul(count(problem.n, wide));
        let all = problem
            .batch
            .saturating_mul(tiles)
            .saturating_mul(config.splits());
        self.last.map_or(all, |last| last.whole)
    }

    /// CTAs that are there at once.
    fn active(&self) -> f64 {
        let ctas = self.config.ctas();
        let at_once = self.chip.clusters(ctas);
        (self.units().min(at_once) * ctas) as f64
    }

    /// Clocks of the CTA that has most tiles.
    fn tiles(&self) -> f64 {
        let (config, rates) = (self.config, self.rates);
        let [_, _, k] = config.tile();
        let at_once = self.chip.clusters(config.ctas());
        let more = count(self.units(), at_once).saturating_sub(1) as f64;
        let shared = config.cluster_splits() * config.splits();
        let tile = self.tile(count(count(self.problem.k, k), shared) as f64);
        let stores = self.stores();
        let after = stores + rates.overhead[usize::from(config.is_pingpong())];
        let stored = self.exchange() + after;
        let next = match config.is_pingpong() {
            // While one warpgroup stores another multiplies, or stores as well.
            true => [
                tile.busy().max(stores * rates.pingpong_stores),
                (tile.busy() + after) / 2.0,
            ],
            // Only reads go on while results are stored.
            false => [tile.reads.max(tile.ring), tile.products + stored],
        };
        let whole = tile.first(config.stages() as f64, rates.ramp)
            + stored
            + more * together(next, SHARPNESS);
        let last = self.last.map_or(0.0, |last| {
            let parts = last.rest.saturating_mul(last.splits);
            let busy = self.tile(last.steps as f64).busy();
            count(parts, at_once) as f64 * (busy + rates.overhead[0])
        });
        whole + last
    }

    /// What goes on while so many steps of a tile are summed up.
    fn tile(&self, steps: f64) -> Tile {
        let (config, rates, bytes) = (self.config, self.rates, self.problem.element_bytes);
        let [_, _, k] = config.tile();
        let lines: Lines = self.lines();
        let deep = k.saturating_mul(bytes) as f64 / LINE_BYTES as f64;
        let last = self.last_bytes();
        let reads = lines.clocks((steps - 1.0) * deep + count(last, LINE_BYTES) as f64);
        let depth = (steps - 1.0) * (k * bytes) as f64 + last as f64;
        Tile {
            steps,
            products: self.products(depth) + steps * rates.step,
            reads,
            stage: lines.clocks(deep),
            ring: (steps * rates.latency + reads) / config.stages() as f64,
        }
    }

    /// Bytes of k in the last step.
    fn last_bytes(&self) -> i64 {
        let (problem, bytes) = (self.problem, self.problem.element_bytes);
        let last = self.config.last_depth(problem.k, bytes, self.k_first);
        last.saturating_mul(bytes)
    }

    /// Clocks in which the CTAs of a cluster exchange their sums of a tile, of which each keeps a part and sends the others.
    fn exchange(&self) -> f64 {
        let (rates, [m, n, _]) = (self.rates, self.config.tile());
        let splits = self.config.cluster_splits();
        let waits = match splits {
            1 => return 0.0,
            2 => rates.exchange[0],
            4 => rates.exchange[1],
            _ => rates.exchange[2],
        };
        let sent = m * n / splits * (splits - 1) * SUM_BYTES;
        waits + sent as f64 / rates.exchanged_bytes
    }

    /// Clocks in which a tile's results are formed and stored, in subtiles.
    fn stores(&self) -> f64 {
        let (rates, [m, n, _]) = (self.rates, self.config.tile());
        let waits = match self.store.slots {
            1 => rates.slot_waits,
            _ => 1.0,
        };
        // Rows of a tile that end inside a sector or a pair of them.
        let uneven = match n * RESULT_BYTES {
            bytes if bytes % (2 * SECTOR_BYTES) == 0 => 0.0,
            bytes if bytes % SECTOR_BYTES == 0 => rates.uneven[0],
            _ => rates.uneven[1],
        };
        // Rows of the result that begin inside a line or a sector, and those that threads store.
        let shifted = match self.problem.n.wrapping_mul(RESULT_BYTES) {
            bytes if bytes % LINE_BYTES == 0 => 0.0,
            bytes if bytes % SECTOR_BYTES == 0 => rates.shifted[0],
            _ if takes_rows(self.problem.n, RESULT_BYTES) => rates.shifted[1],
            _ => rates.shifted[2],
        };
        let subtiles = self.store.subtiles as f64;
        m as f64 * (subtiles * (rates.subtile_row * waits + shifted) + uneven)
    }

    /// Clocks of the kernel that adds parts up.
    fn sums(&self) -> f64 {
        let [m, n, _] = self.config.tile();
        let (sums, splits) = match (self.last, self.config.decomposition()) {
            (Some(last), _) => (
                (last.rest * self.config.cluster().ctas()) as f64 * (m * n) as f64,
                last.splits,
            ),
            (None, Decomposition::SplitK(_, splits)) => {
                (self.problem.m as f64 * self.problem.n as f64, splits)
            }
            _ => return 0.0,
        };
        self.rates.parts_start + sums * ((splits + 1) * SUM_BYTES) as f64 / self.rates.sum_bytes
    }

    /// Clocks of a tile's products, of so many bytes of k.
    fn products(&self, depth: f64) -> f64 {
        let (config, rates) = (self.config, self.rates);
        let [m, n, _] = config.tile();
        let blocks = config.instruction()[0] / 64 / config.warpgroups();
        let share = match config.warpgroups() {
            1 if config.is_pingpong() => rates.pingpong,
            1 if blocks > 1 => rates.alone,
            2.. if blocks > 1 => rates.several,
            _ => 1.0,
        };
        (m * n) as f64 * depth / (rates.products * share)
    }
}

/// Clocks of what goes on at once while a tile's steps are summed up.
struct Tile {
    steps: f64,
    products: f64,
    reads: f64,
    /// Reads of the first stage.
    stage: f64,
    /// Of the stages' way around the ring.
    ring: f64,
}

impl Tile {
    /// Where its stages are on their way already.
    fn busy(&self) -> f64 {
        together([self.products, self.reads, self.ring], STEP_SHARPNESS)
    }

    /// Of a CTA's first: nothing is multiplied before the first stage is there, and as many steps as there are stages wait for no
    /// other's products.
    fn first(&self, stages: f64, ramp: f64) -> f64 {
        let ring = self.ring * (1.0 - stages / self.steps).max(0.0);
        let reads = (self.reads - self.stage).max(0.0);
        self.stage * ramp + together([self.products, reads, ring], STEP_SHARPNESS)
    }
}
