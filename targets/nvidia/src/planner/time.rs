//! How long a matrix product by roles takes: a small model of the chip.
//!
//! CTAs take turns at the tiles. A turn is as long as its products, its reads from L2 or its share of what the chip
//! reads from memory take, whichever is longest, and a little longer where several are. The constants are from an
//! H200 (docs/performance.md, "Tuning").

use super::cost::Problem;
use super::wide::{KFirst, WideTile};
use crate::emit::PANEL_BYTES;
use crate::facts::chip::Chip;

/// Products of 8-bit elements that a multiprocessor forms in a clock by wgmma, half as many of twice the bytes: 4096
/// at best (H100 white paper: 512 FMA of 16-bit floats a clock for each of 4 tensor cores), and less because the chip
/// runs into its power.
const PRODUCTS_A_CLOCK: f64 = 3200.0;
/// What one warpgroup with 64 rows reaches of that between its waits.
const ALONE: f64 = 0.9;
/// Bytes of a line of L2, which a box of a tensor map is read by.
const LINE_BYTES: i64 = 128;
/// Clocks in which a multiprocessor reads a line from L2.
const LINE: f64 = 2.2;
/// The same where consumers take turns, so that reads go on while results are stored.
const LINE_IN_TURNS: f64 = 2.0;
/// Clocks for a line of a box that is not in the tensor.
const ABSENT_LINE: f64 = 5.0;
/// Bytes that the chip reads from memory in a clock.
const MEMORY_BYTES_A_CLOCK: f64 = 2600.0;
/// Clocks of a tile beside its products and reads, unless another warpgroup multiplies meanwhile.
const OVERHEAD: f64 = 800.0;
/// Clocks of a tile whose columns do not fall into panels, so that threads store it, although another warpgroup
/// multiplies meanwhile.
const UNEVEN: f64 = 2500.0;
/// Clocks in which two, four and eight CTAs start together and exchange their sums of a tile.
const EXCHANGE: [f64; 3] = [2500.0, 6000.0, 11000.0];
/// How much longer a turn is in clusters, which wait for each other.
const CLUSTERED: f64 = 1.02;
/// Clocks by which clusters start later.
const CLUSTER_START: f64 = 1000.0;
/// What warpgroups reach of the products that multiply several blocks of 64 rows each together with others.
const SEVERAL: f64 = 0.95;
/// What warpgroups reach that take turns.
const IN_TURNS: f64 = 1.01;
/// How sharply the longest part of a turn decides.
const SHARPNESS: i32 = 6;

/// `extent / tile`, rounded up.
fn count(extent: i64, tile: i64) -> i64 {
    extent.div_euclid(tile.max(1)) + i64::from(extent % tile.max(1) != 0)
}

/// A little more than the larger.
fn together(a: f64, b: f64) -> f64 {
    (a.powi(SHARPNESS) + b.powi(SHARPNESS)).powf(1.0 / f64::from(SHARPNESS))
}

impl WideTile {
    /// Clocks that a product takes.
    #[must_use]
    pub fn cost(self, problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
        let [m, n, k] = self.shape;
        let rows = count(problem.m, m * self.cluster).saturating_mul(self.cluster);
        let tiles = problem
            .batch
            .saturating_mul(rows)
            .saturating_mul(count(problem.n, n));
        let depth = count(count(problem.k, k), self.split).saturating_mul(k);
        let (waits, start) = match self.cluster {
            2.. => (CLUSTERED, CLUSTER_START),
            _ => (1.0, 0.0),
        };
        let reads = self.reads_of(problem, k_first, depth);
        let products = self.products(depth as f64 * problem.element_bytes as f64);
        let busy = together(products, reads) * waits;
        let rows = problem.batch as f64 * (problem.m as f64 + problem.n as f64);
        let bytes = rows * problem.k as f64 * problem.element_bytes as f64;
        let memory = bytes / MEMORY_BYTES_A_CLOCK / tiles as f64;
        let at_once = chip.clusters(self.ctas()) * self.cluster;
        let turn = |tiles: i64| together(busy, memory * tiles as f64);
        let (full, rest) = (tiles / at_once, tiles % at_once);
        let last = if rest > 0 { turn(rest) } else { 0.0 };
        let exchange = match self.split {
            1 => 0.0,
            2 => EXCHANGE[0],
            4 => EXCHANGE[1],
            _ => EXCHANGE[2],
        };
        let turns = full + i64::from(rest > 0);
        // Nothing follows the last tile that would hide it.
        let overhead = match self.turns {
            true if n * problem.element_bytes % PANEL_BYTES == 0 => OVERHEAD,
            true => OVERHEAD + (turns - 1).max(0) as f64 * UNEVEN,
            false => turns as f64 * OVERHEAD,
        };
        let busy = full as f64 * turn(at_once) + last;
        start + busy + overhead + turns as f64 * exchange
    }

    /// Clocks of a tile's products, of so many bytes of k.
    fn products(self, depth: f64) -> f64 {
        let [m, n, _] = self.shape;
        let blocks = self.instruction()[0] / 64 / self.warpgroups();
        let share = match self.warpgroups() {
            1 if blocks == 1 => ALONE,
            1 if self.turns => IN_TURNS,
            2.. if blocks > 1 => SEVERAL,
            _ => 1.0,
        };
        (m * n) as f64 * depth / (PRODUCTS_A_CLOCK * share)
    }

    /// Clocks of a tile's reads from L2.
    fn reads_of(self, problem: Problem, k_first: KFirst, depth: i64) -> f64 {
        let [m, n, _] = self.shape;
        let bytes = problem.element_bytes;
        // A row of a box that does not start with a line is in two of them.
        let lines = |outer: i64, k_first: bool| {
            let row = if k_first { outer } else { problem.k };
            if row % LINE_BYTES * bytes % LINE_BYTES == 0 {
                1.0
            } else {
                2.0
            }
        };
        let there = m.min(problem.m);
        let line = if self.turns { LINE_IN_TURNS } else { LINE };
        let a = there as f64 * lines(problem.m, k_first.a) * line;
        let absent = (m - there) as f64 * ABSENT_LINE;
        let b = n as f64 * lines(problem.n, k_first.b) * line / self.cluster as f64;
        (a + absent + b) * depth as f64 * bytes as f64 / LINE_BYTES as f64
    }
}
