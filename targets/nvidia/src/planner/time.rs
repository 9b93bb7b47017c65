//! How long a matrix product by roles takes: a small model of the chip.
//!
//! CTAs take turns at the tiles. A turn is as long as its products or its reads from L2 take, whichever is longest, and a
//! little longer where both are; and all turns together take no less than memory needs for the operands. The constants are
//! fitted to timings of an H200 (docs/performance.md, "Tuning").

use super::cost::Problem;
use super::gemm::count;
use super::tail::Tail;
use super::wide::{KFirst, WideTile, takes_rows};
use crate::emit::PANEL_BYTES;
use crate::facts::chip::{Chip, LINE_BYTES};

/// Products of 8-bit elements that a multiprocessor forms in a clock by wgmma, half as many of twice the bytes: 4096
/// at best (H100 white paper: 512 FMA of 16-bit floats a clock for each of 4 tensor cores), and less because the chip
/// runs into its power.
const PRODUCTS_A_CLOCK: f64 = 3200.0;
/// What one warpgroup with 64 rows reaches of that between its waits.
const ALONE: f64 = 0.96;
/// What warpgroups reach of the products that multiply several blocks of 64 rows each together with others.
const SEVERAL: f64 = 0.95;
/// What warpgroups reach that take turns.
const IN_TURNS: f64 = 1.03;
/// The same where every CTA has one tile, at which one of them multiplies alone.
const IN_ONE_TURN: f64 = 0.93;
/// Clocks in which a multiprocessor reads a line from L2.
const LINE: f64 = 2.17;
/// The same where consumers take turns, so that reads go on while results are stored.
const LINE_IN_TURNS: f64 = 1.91;
/// Clocks for a line of a box that is not in the tensor.
const ABSENT_LINE: f64 = 2.75;
/// Bytes that the chip reads from memory in a clock.
const MEMORY_BYTES_A_CLOCK: f64 = 2710.0;
/// Clocks of a tile beside its products and reads, unless another warpgroup multiplies meanwhile.
const OVERHEAD: f64 = 650.0;
/// Clocks of a tile whose columns do not fall into panels, so that threads store what is left of them (all of it when this
/// was fitted), although another warpgroup multiplies meanwhile.
const UNEVEN: f64 = 1290.0;
/// Clocks in which two, four and eight CTAs exchange their sums of a tile.
const EXCHANGE: [f64; 3] = [60.0, 7600.0, 11100.0];
/// Clocks by which kernels whose CTAs exchange sums take longer.
const EXCHANGE_START: f64 = 2130.0;
/// Clocks by which a second kernel, which adds parts up, is later done than the first.
const PARTS_START: f64 = 1720.0;
/// Bytes of a sum.
const SUM_BYTES: f64 = 4.0;
/// Bytes of parts' sums that the chip moves in a clock.
const SUM_BYTES_A_CLOCK: f64 = 1710.0;
/// How much longer a turn is in clusters, which wait for each other.
const CLUSTERED: f64 = 1.1;
/// Clocks by which clusters of two and of four start later.
const CLUSTER_START: [f64; 2] = [1340.0, 2270.0];
/// How sharply the longest of two things that go on at once decides: within a turn, and between turns and memory.
const SHARPNESS: i32 = 6;
/// See [`SHARPNESS`].
const MEMORY_SHARPNESS: i32 = 4;

/// A little more than the larger.
fn together(a: f64, b: f64, sharpness: i32) -> f64 {
    (a.powi(sharpness) + b.powi(sharpness)).powf(1.0 / f64::from(sharpness))
}

impl WideTile {
    /// Clocks that a product takes.
    #[must_use]
    pub fn cost(self, problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
        let [_, n, k] = self.shape;
        let [high, wide] = self.span();
        let tiles = problem
            .batch
            .saturating_mul(count(problem.m, high))
            .saturating_mul(count(problem.n, wide))
            .saturating_mul(self.cluster)
            .saturating_mul(self.parts);
        let depth = count(count(problem.k, k), self.split * self.parts).saturating_mul(k);
        let tail = Tail::of(self, [problem.m, problem.n, problem.k], chip);
        let tiles = tail.map_or(tiles, |tail| tail.whole.saturating_mul(self.cluster));
        let turns = count(tiles, chip.clusters(self.ctas()) * self.cluster) as f64;
        let (waits, start) = match self.cluster {
            1 => (1.0, 0.0),
            2 => (CLUSTERED, CLUSTER_START[0]),
            _ => (CLUSTERED, CLUSTER_START[1]),
        };
        let (exchange, exchange_start) = match self.split {
            1 => (0.0, 0.0),
            2 => (EXCHANGE[0], EXCHANGE_START),
            4 => (EXCHANGE[1], EXCHANGE_START),
            _ => (EXCHANGE[2], EXCHANGE_START),
        };
        // Nothing follows the last tile that would hide it.
        let overhead = match self.turns {
            true if n * problem.element_bytes % PANEL_BYTES == 0 => OVERHEAD,
            true => OVERHEAD + (turns - 1.0).max(0.0) * UNEVEN,
            false => turns * OVERHEAD,
        };
        let turn = |depth: i64, turns| {
            let reads = self.reads_of(problem, k_first, depth);
            let products = self.products(depth as f64 * problem.element_bytes as f64, turns);
            together(products, reads, SHARPNESS) * waits
        };
        let busy = turn(depth, turns) + exchange;
        let last = tail.map_or(0.0, |tail| {
            let pieces = tail.rest.saturating_mul(self.tail);
            let turns = count(pieces, chip.clusters(self.ctas())) as f64;
            turns * (turn(tail.steps.saturating_mul(k), 1.0) + OVERHEAD)
        });
        let rows = problem.batch as f64 * (problem.m as f64 + problem.n as f64);
        let bytes = rows * problem.k as f64 * problem.element_bytes as f64;
        let memory = bytes / MEMORY_BYTES_A_CLOCK;
        start
            + exchange_start
            + self.sums(problem, tail)
            + together(turns * busy + overhead + last, memory, MEMORY_SHARPNESS)
    }

    /// Clocks of the kernel that adds parts up.
    fn sums(self, problem: Problem, tail: Option<Tail>) -> f64 {
        let [m, n, _] = self.shape;
        let (sums, parts) = match tail {
            None if self.parts == 1 => return 0.0,
            None => (problem.m as f64 * problem.n as f64, self.parts),
            Some(tail) => (
                (tail.rest * self.cluster) as f64 * (m * n) as f64,
                self.tail,
            ),
        };
        PARTS_START + sums * (parts + 1) as f64 * SUM_BYTES / SUM_BYTES_A_CLOCK
    }

    /// Clocks of a tile's products, of so many bytes of k, in so many turns.
    fn products(self, depth: f64, turns: f64) -> f64 {
        let [m, n, _] = self.shape;
        let blocks = self.instruction()[0] / 64 / self.warpgroups();
        let share = match self.warpgroups() {
            1 if blocks == 1 => ALONE,
            1 if self.turns && turns > 1.0 => IN_TURNS,
            1 if self.turns => IN_ONE_TURN,
            2.. if blocks > 1 => SEVERAL,
            _ => 1.0,
        };
        (m * n) as f64 * depth / (PRODUCTS_A_CLOCK * share)
    }

    /// Clocks of a tile's reads from L2.
    fn reads_of(self, problem: Problem, k_first: KFirst, depth: i64) -> f64 {
        let [m, n, _] = self.shape;
        let bytes = problem.element_bytes;
        // A row of a box that does not start with a line is in two of them; those of a copy start with one.
        let lines = |outer: i64, k_first: bool| {
            let row = if k_first { outer } else { problem.k };
            if row % LINE_BYTES * bytes % LINE_BYTES == 0 || !takes_rows(row, bytes) {
                1.0
            } else {
                2.0
            }
        };
        let there = m.min(problem.m);
        let line = if self.turns { LINE_IN_TURNS } else { LINE };
        let shared = 1.0 / self.cluster as f64;
        let [of_a, of_b] = if self.beside {
            [shared, 1.0]
        } else {
            [1.0, shared]
        };
        let a = there as f64 * lines(problem.m, k_first.a) * line * of_a;
        let absent = (m - there) as f64 * ABSENT_LINE * of_a;
        let b = n as f64 * lines(problem.n, k_first.b) * line * of_b;
        (a + absent + b) * depth as f64 * bytes as f64 / LINE_BYTES as f64
    }
}
