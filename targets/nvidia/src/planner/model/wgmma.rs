//! How long a matrix product by `wgmma` takes: a small model of the chip.
//!
//! CTAs go through the tiles in waves. A wave is as long as a tile's products, its reads from L2 or its stages' way around the
//! ring take, whichever is longest, and a little longer where several are; then the tile's results are stored, behind the next
//! tile's products in a ping-pong schedule. All waves together take no less than memory needs for the operands and the result.

use crate::emit::SUBTILE_ROW_BYTES;
use crate::facts::chip::{Chip, LINE_BYTES, SECTOR_BYTES};
use crate::facts::rates::WgmmaRates;
use crate::planner::config::{Cluster, Decomposition, Store, Wgmma};
use crate::planner::layouts::ROW_BYTES;
use crate::planner::problem::{KFirst, Problem, RESULT_BYTES, count, takes_rows};
use crate::planner::scheduler::stream_k::LastWave;

/// Bytes of a sum.
const SUM_BYTES: f64 = 4.0;
/// How sharply the longest of what goes on at once decides: within a tile, between the tiles of a ping-pong schedule, and
/// between all tiles and memory.
const SHARPNESS: i32 = 6;
/// See [`SHARPNESS`].
const PINGPONG_SHARPNESS: i32 = 5;
/// See [`SHARPNESS`].
const MEMORY_SHARPNESS: i32 = 2;

/// A little more than the largest.
fn together<const N: usize>(clocks: [f64; N], sharpness: i32) -> f64 {
    let sum: f64 = clocks.iter().map(|clocks| clocks.powi(sharpness)).sum();
    sum.powf(1.0 / f64::from(sharpness))
}

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
    model.start() + model.sums() + together([busy, memory], MEMORY_SHARPNESS)
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
    /// Clocks in which memory gives a product's operands and takes its result.
    fn memory(&self) -> f64 {
        let problem = self.problem;
        let [m, n, k] = [problem.m, problem.n, problem.k].map(|extent| extent as f64);
        let batch = problem.batch as f64;
        let read = batch * (m + n) * k * problem.element_bytes as f64;
        let written = batch * m * n * RESULT_BYTES as f64;
        let sectors = match problem.n.wrapping_mul(RESULT_BYTES) % SECTOR_BYTES {
            0 => 1.0,
            _ => self.rates.within_sectors,
        };
        let high = match self.has_high_subtiles() {
            true => self.rates.high_subtiles,
            false => 1.0,
        };
        read / self.rates.memory_bytes + written * sectors * high / self.rates.written_bytes
    }

    /// Whether warpgroups have more than 64 rows, which leave in the widest subtiles.
    const fn has_high_subtiles(&self) -> bool {
        let [m, ..] = self.config.tile();
        let high = m > 64 * self.config.warpgroups() && !self.config.swaps_ab();
        high && self.store.row_bytes == ROW_BYTES
    }

    /// Clocks by which the first tile starts late, or the last one ends late.
    fn start(&self) -> f64 {
        let cluster = match self.config.cluster().ctas() {
            1 => 0.0,
            2 => self.rates.cluster_start[0],
            _ => self.rates.cluster_start[1],
        };
        cluster
            + match self.config.cluster_splits() {
                1 => 0.0,
                _ => self.rates.exchange_start,
            }
    }

    /// Waves of whole tiles.
    fn waves(&self, at_once: i64) -> i64 {
        let (problem, config) = (self.problem, self.config);
        if let Some(last) = self.last {
            return count(last.whole, at_once);
        }
        let [high, wide] = config.span();
        let tiles = count(problem.m, high).saturating_mul(count(problem.n, wide));
        let all = problem
            .batch
            .saturating_mul(tiles)
            .saturating_mul(config.splits());
        count(all, at_once)
    }

    /// Clocks of the CTA that has most tiles.
    fn tiles(&self) -> f64 {
        let (config, rates) = (self.config, self.rates);
        let [_, _, k] = config.tile();
        let at_once = self.chip.clusters(config.ctas());
        let waves = self.waves(at_once) as f64;
        let shared = config.cluster_splits() * config.splits();
        let depth = count(count(self.problem.k, k), shared).saturating_mul(k);
        let busy = self.sums_of(depth) + self.exchange();
        let after = rates.overhead + self.stores();
        let whole = match config.is_pingpong() {
            // While one warpgroup stores another multiplies, except after the last tile.
            true => waves * together([busy, (busy + after) / 2.0], PINGPONG_SHARPNESS) + after,
            false => waves * (busy + after),
        };
        let last = self.last.map_or(0.0, |last| {
            let parts = last.rest.saturating_mul(last.splits);
            let depth = last.steps.saturating_mul(k);
            count(parts, at_once) as f64 * (self.sums_of(depth) + rates.overhead)
        });
        whole + last
    }

    /// Clocks until a tile's sums, of so much of k, are there.
    fn sums_of(&self, depth: i64) -> f64 {
        let config = self.config;
        let steps = depth as f64 / config.tile()[2] as f64;
        let clocks = [
            self.products(depth as f64 * self.problem.element_bytes as f64),
            self.reads_of(depth),
            steps * self.rates.latency / config.stages() as f64,
        ];
        let waits = match config.cluster() {
            Cluster::Alone => 1.0,
            _ => self.rates.clustered,
        };
        together(clocks, SHARPNESS) * waits
    }

    /// Clocks in which the CTAs of a cluster exchange their sums of a tile.
    const fn exchange(&self) -> f64 {
        match self.config.cluster_splits() {
            1 => 0.0,
            2 => self.rates.exchange[0],
            4 => self.rates.exchange[1],
            _ => self.rates.exchange[2],
        }
    }

    /// Clocks in which a tile's results are formed and stored, in subtiles.
    fn stores(&self) -> f64 {
        let config = self.config;
        let [m, n, _] = config.tile();
        let uneven = if n * RESULT_BYTES % SUBTILE_ROW_BYTES == 0 {
            0.0
        } else {
            self.rates.uneven
        };
        let waits = match self.store.slots {
            1 => self.rates.slot_waits,
            _ => 1.0,
        };
        (m * self.store.subtiles) as f64 * self.rates.subtile_row * waits + uneven
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
        self.rates.parts_start + sums * (splits + 1) as f64 * SUM_BYTES / self.rates.sum_bytes
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

    /// Clocks of a tile's reads from L2, of so much of k. Lines that are not in the tensor take longer than others.
    fn reads_of(&self, depth: i64) -> f64 {
        let (config, problem, rates) = (self.config, self.problem, self.rates);
        let [m, n, _] = config.tile();
        let bytes = problem.element_bytes;
        let line = match config.is_pingpong() {
            true => rates.pingpong_line,
            false => rates.line,
        };
        // Clocks of so many rows of a box, of which some exist.
        let clocks = |rows: i64, extent: i64, outer: bool| {
            let lines = self.lines(if outer { extent } else { problem.k });
            // With k first, a box's lines are along the extent.
            let there = if outer { rows } else { rows.min(extent) };
            there as f64 * lines * line + (rows - there) as f64 * rates.absent_line
        };
        let [of_a, of_b] = match config.cluster() {
            Cluster::Alone => [1.0, 1.0],
            Cluster::Rows(ctas) => [1.0, 1.0 / ctas as f64],
            Cluster::Columns(ctas) => [1.0 / ctas as f64, 1.0],
        };
        let a = clocks(m, problem.m, self.k_first.a) * of_a;
        let b = clocks(n, problem.n, self.k_first.b) * of_b;
        let absent = (m as f64 * of_a + n as f64 * of_b) * rates.absent_line;
        let whole = count(problem.k, LINE_BYTES / bytes).saturating_mul(LINE_BYTES / bytes);
        let there = depth.min(whole);
        let read = (a + b) * there as f64 + absent * (depth - there) as f64;
        read * bytes as f64 / LINE_BYTES as f64
    }

    /// Lines that a box's line of a row of so many elements is in: two where the row does not start with one, but rows of a
    /// copy do.
    fn lines(&self, row: i64) -> f64 {
        let bytes = self.problem.element_bytes;
        if row % LINE_BYTES * bytes % LINE_BYTES == 0 || !takes_rows(row, bytes) {
            1.0
        } else {
            2.0
        }
    }
}
