//! How long a matrix product by roles takes: a small model of the chip.
//!
//! CTAs take turns at the tiles. A turn is as long as its products, its reads from L2 or its stages' way around the ring take,
//! whichever is longest, and a little longer where several are; then the tile's results are stored, behind the next tile's
//! products where warpgroups take turns. All turns together take no less than memory needs for the operands and the result.
//! The constants are fitted to timings of an H200 (docs/performance.md, "Tuning").

use super::cost::Problem;
use super::gemm::count;
use super::layouts::ROW_BYTES;
use super::tail::Tail;
use super::wide::{KFirst, WideTile, takes_rows};
use crate::emit::PANEL_BYTES;
use crate::facts::chip::{Chip, LINE_BYTES};

/// Bytes of an element of a result, as most have.
const RESULT_BYTES: i64 = 2;

/// Products of 8-bit elements that a multiprocessor forms in a clock by wgmma, half as many of twice the bytes: 4096
/// at best (H100 white paper: 512 FMA of 16-bit floats a clock for each of 4 tensor cores), and less because the chip
/// runs into its power.
const PRODUCTS_A_CLOCK: f64 = 3490.0;
/// What one warpgroup that is alone with several blocks of 64 rows reaches of that.
const ALONE: f64 = 0.8;
/// What warpgroups reach that multiply several blocks of 64 rows each together with others.
const SEVERAL: f64 = 0.94;
/// What warpgroups reach that take turns.
const IN_TURNS: f64 = 1.06;
/// Clocks in which a multiprocessor reads a line from L2.
const LINE: f64 = 1.81;
/// The same where consumers take turns, so that reads go on while results are stored.
const LINE_IN_TURNS: f64 = 1.74;
/// Clocks for a line of a box that is not in the tensor.
const ABSENT_LINE: f64 = 4.0;
/// Clocks from the request of a stage until it is free again: what a stage takes at least, shared among all of the ring.
const LATENCY: f64 = 2500.0;
/// Bytes that the chip reads from memory in a clock.
const MEMORY_BYTES_A_CLOCK: f64 = 3400.0;
/// Bytes of results that the chip writes to memory in a clock.
const WRITTEN_BYTES_A_CLOCK: f64 = 4000.0;
/// Clocks of a tile beside its products, reads and rows of results.
const OVERHEAD: f64 = 850.0;
/// Clocks in which a row of a panel is formed and stored.
const PANEL_ROW: f64 = 7.4;
/// Clocks of a tile whose columns do not fall into panels, so that threads store what is left of them.
const UNEVEN: f64 = 6000.0;
/// Clocks in which two, four and eight CTAs exchange their sums of a tile.
const EXCHANGE: [f64; 3] = [3000.0, 10800.0, 12900.0];
/// Clocks by which kernels whose CTAs exchange sums take longer.
const EXCHANGE_START: f64 = 1750.0;
/// Clocks by which a second kernel, which adds parts up, is later done than the first.
const PARTS_START: f64 = 3030.0;
/// Bytes of a sum.
const SUM_BYTES: f64 = 4.0;
/// Bytes of parts' sums that the chip moves in a clock.
const SUM_BYTES_A_CLOCK: f64 = 1260.0;
/// How much longer a turn is in clusters, which wait for each other.
const CLUSTERED: f64 = 1.12;
/// Clocks by which clusters of two and of four start later.
const CLUSTER_START: [f64; 2] = [2000.0, 2350.0];
/// How sharply the longest of what goes on at once decides: within a tile, between the tiles of warpgroups that take turns,
/// and between all tiles and memory.
const SHARPNESS: i32 = 6;
/// See [`SHARPNESS`].
const TURNS_SHARPNESS: i32 = 5;
/// See [`SHARPNESS`].
const MEMORY_SHARPNESS: i32 = 2;

/// A little more than the largest.
fn together<const N: usize>(clocks: [f64; N], sharpness: i32) -> f64 {
    let sum: f64 = clocks.iter().map(|clocks| clocks.powi(sharpness)).sum();
    sum.powf(1.0 / f64::from(sharpness))
}

/// Clocks in which memory gives a product's operands and takes its result.
fn memory(problem: Problem) -> f64 {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(|extent| extent as f64);
    let batch = problem.batch as f64;
    let read = batch * (m + n) * k * problem.element_bytes as f64;
    let written = batch * m * n * RESULT_BYTES as f64;
    read / MEMORY_BYTES_A_CLOCK + written / WRITTEN_BYTES_A_CLOCK
}

impl WideTile {
    /// Clocks that a product takes.
    #[must_use]
    pub fn cost(self, problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
        let tail = Tail::of(self, [problem.m, problem.n, problem.k], chip);
        let busy = self.tiles(problem, k_first, tail, chip);
        let memory = memory(problem);
        self.start() + self.sums(problem, tail) + together([busy, memory], MEMORY_SHARPNESS)
    }

    /// Clocks by which the first tile starts late, or the last one ends late.
    fn start(self) -> f64 {
        let cluster = match self.cluster {
            1 => 0.0,
            2 => CLUSTER_START[0],
            _ => CLUSTER_START[1],
        };
        cluster + if self.split == 1 { 0.0 } else { EXCHANGE_START }
    }

    /// Clocks of the CTA that has most tiles.
    fn tiles(self, problem: Problem, k_first: KFirst, tail: Option<Tail>, chip: &Chip) -> f64 {
        let [_, _, k] = self.shape;
        let at_once = chip.clusters(self.ctas());
        let turn = |depth: i64| self.turn(problem, k_first, depth);
        let turns = match tail {
            Some(tail) => count(tail.whole, at_once),
            None => {
                let [high, wide] = self.span();
                let tiles = count(problem.m, high).saturating_mul(count(problem.n, wide));
                let all = problem
                    .batch
                    .saturating_mul(tiles)
                    .saturating_mul(self.parts);
                count(all, at_once)
            }
        } as f64;
        let depth = count(count(problem.k, k), self.split * self.parts).saturating_mul(k);
        let busy = turn(depth) + self.exchange();
        let after = OVERHEAD + self.stores();
        let whole = match self.turns {
            // While one warpgroup stores another multiplies, except after the last tile.
            true => turns * together([busy, (busy + after) / 2.0], TURNS_SHARPNESS) + after,
            false => turns * (busy + after),
        };
        let last = tail.map_or(0.0, |tail| {
            let pieces = tail.rest.saturating_mul(self.tail);
            let depth = tail.steps.saturating_mul(k);
            count(pieces, at_once) as f64 * (turn(depth) + OVERHEAD)
        });
        whole + last
    }

    /// Clocks until a tile's sums, of so much of k, are there.
    fn turn(self, problem: Problem, k_first: KFirst, depth: i64) -> f64 {
        let steps = depth as f64 / self.shape[2] as f64;
        let clocks = [
            self.products(depth as f64 * problem.element_bytes as f64),
            self.reads_of(problem, k_first, depth),
            steps * LATENCY / self.stages as f64,
        ];
        let waits = if self.cluster == 1 { 1.0 } else { CLUSTERED };
        together(clocks, SHARPNESS) * waits
    }

    /// Clocks in which the CTAs of a cluster exchange their sums of a tile.
    const fn exchange(self) -> f64 {
        match self.split {
            1 => 0.0,
            2 => EXCHANGE[0],
            4 => EXCHANGE[1],
            _ => EXCHANGE[2],
        }
    }

    /// Clocks in which a tile's results are formed and stored, in panels.
    fn stores(self) -> f64 {
        let [m, n, _] = self.shape;
        let row = n * RESULT_BYTES;
        // Two panels of more rows than 64 fit in what a warpgroup stores through where they are half as wide.
        let whole = self.swap || m <= 64 * self.warpgroups() || row % ROW_BYTES == 0;
        let panels = count(row, if whole { ROW_BYTES } else { ROW_BYTES / 2 });
        let uneven = if row % PANEL_BYTES == 0 { 0.0 } else { UNEVEN };
        (m * panels) as f64 * PANEL_ROW + uneven
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

    /// Clocks of a tile's products, of so many bytes of k.
    fn products(self, depth: f64) -> f64 {
        let [m, n, _] = self.shape;
        let blocks = self.instruction()[0] / 64 / self.warpgroups();
        let share = match self.warpgroups() {
            1 if self.turns => IN_TURNS,
            1 if blocks > 1 => ALONE,
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
