//! How long a configuration of attention takes, as a model has it, and three kernels in its place.

use super::config::{BYTES, Config, Problem, ROWS};
use super::masked::known;
use crate::facts::chip::{Chip, SECTOR_BYTES};
use crate::facts::rates::AttentionRates;
use crate::planner::mainloop::operand::widest;
use crate::planner::problem::count;
use axe_passes::fuse::attention::visible::{Edge, Visible};

/// Instructions for a score beside its exponential: scale, maximum, sum, conversion.
const INSTRUCTIONS: f64 = 3.5;
/// How often products of few rows read keys and values at the memory's rate in the time that they take, at least. Measured: one row of each of
/// 256 problems of 4096 keys takes 1502 us in kernels of its operators, transposes of the keys and values among them, and 128 in one.
const FEW_ROWS: f64 = 4.0;
/// How much longer products take than all else where the tensor cores are what is short of power: as the model has them, heads of 96, 1.11 times, are
/// slower in clusters, those of 112, 1.28 times, as quick, and those of 128, 1.45 times, quicker.
const BUSY: f64 = 1.25;
/// Keys, and results of a tile, up to which a tile and its blocks take their part of the time of others, of so many results.
const SHORT: i64 = 256;
const BLOCK: f64 = 8192.0;
const TILE: f64 = 16_384.0;

impl Problem {
    /// Bytes of all keys and values.
    fn streamed(&self) -> f64 {
        let width = (self.depth + self.columns) * self.bytes;
        self.batch as f64 / self.repeats as f64 * self.keys as f64 * width as f64
    }

    /// The part of shorter work that is not hidden, clocks of a block, and how much longer it takes beside a second loop.
    const fn overheads(&self, rates: &AttentionRates) -> ([f64; 3], f64, f64) {
        match self.bytes < BYTES {
            true => rates.narrow,
            false => (rates.exposed, rates.block, rates.second_loop),
        }
    }

    /// Products that a multiprocessor forms in a clock: twice as many of operands half as wide.
    fn products(&self, rates: &AttentionRates) -> f64 {
        rates.products * BYTES as f64 / self.bytes as f64
    }
}

impl Config {
    /// Whether tiles are gone through problem after problem, so that keys and values are read from L2. Where long tiles of all problems
    /// come first, each of the problems that CTAs work on at a time has its own read from memory.
    #[must_use]
    pub fn by_problem(self, problem: &Problem, chip: &Chip) -> bool {
        let few = self.splits == 1;
        few && chip.attention.as_ref().is_some_and(|rates| {
            // A row of a block's keys and values for each row of queries that it is multiplied by.
            let read = problem.products(rates) * problem.bytes as f64 / self.rows() as f64;
            read * problem.batch.min(chip.multiprocessors) as f64 > rates.memory_bytes
        })
    }

    /// Clocks that it is predicted to take; infinitely many on a chip without the instructions.
    ///
    /// A block takes as long as its products, its exponentials and sums, or its reads, whichever is longest, and some of the
    /// others beside: two consumers hide each other's work in part.
    #[must_use]
    pub fn clocks(self, problem: &Problem, chip: &Chip) -> f64 {
        let Some(rates) = &chip.attention else {
            return f64::INFINITY;
        };
        let bytes =
            self.keys as f64 * (problem.depth + problem.columns) as f64 * problem.bytes as f64;
        let after = chip.mma.overhead + self.merge(problem, (chip, rates));
        if self.streams(problem, chip) {
            let block = self.block(problem, rates, 0.0);
            return self.streamed(problem, (chip, rates), [block, bytes]) + after;
        }
        let reads = self.reads(problem, (chip, rates)) / self.cluster as f64;
        let mut block = self.block(problem, rates, reads);
        let start = match self.cluster {
            1 => 0.0,
            _ => rates.pairs_start,
        };
        let tiles = self.tiles(problem);
        let mut blocks = self.blocks(problem);
        if let Some(start) = problem.causal {
            let causal = Visible {
                to: vec![Edge::of(1, start)],
                ..Visible::default()
            };
            let known = known(&causal, self, problem.rows, problem.keys);
            if let Some(all) = known.blocks {
                blocks = all as f64 / count(problem.rows, self.rows()) as f64;
            }
            if known.above {
                // Masked blocks have a loop of their own, and all blocks take longer then.
                block *= problem.overheads(rates).2;
            }
        }
        let waves = match problem.causal {
            Some(_) => (tiles as f64 / chip.multiprocessors as f64).max(1.0),
            None => count(tiles, chip.multiprocessors) as f64,
        };
        let own = self.tile(problem, rates);
        let tile = if self.stages_result(problem, chip) {
            own
        } else {
            own + (self.rows() * problem.columns * BYTES) as f64 / rates.stored_bytes
        };
        waves * (blocks * block + tile) + start + after
    }

    /// Clocks of a tile beside its blocks.
    fn tile(self, problem: &Problem, rates: &AttentionRates) -> f64 {
        let [any, large] = rates.tile;
        any + match self.is_small(problem) {
            true => large * self.results(problem) / TILE,
            false => large,
        }
    }

    /// Whether each problem is one tile of few results and few blocks: the next one's queries and keys are there when one is done.
    fn is_small(self, problem: &Problem) -> bool {
        problem.rows <= ROWS && problem.keys <= SHORT && self.results(problem) < BLOCK
    }

    fn results(self, problem: &Problem) -> f64 {
        (self.rows() * problem.columns) as f64
    }

    /// Blocks of a tile, or of its part.
    fn blocks(self, problem: &Problem) -> f64 {
        let blocks = (problem.keys as f64 * problem.seen / self.keys as f64).ceil();
        (blocks.max(1.0) / self.splits as f64).ceil()
    }

    /// Clocks in which a multiprocessor reads a block from L2. The accelerator asks for each row of a box: where rows begin inside of sectors,
    /// for one sector more than its bytes are.
    fn reads(self, problem: &Problem, (chip, rates): (&Chip, &AttentionRates)) -> f64 {
        let bytes = self.keys * (problem.depth + problem.columns) * problem.bytes;
        let whole = bytes as f64 / chip.mma.l2_bytes;
        if !problem.straddles {
            return whole;
        }
        let [sector, row] = rates.requests;
        let requests = |columns: i64| {
            let piece = widest(columns, problem.bytes);
            let sectors = piece * problem.bytes / SECTOR_BYTES + 1;
            columns / piece * (sectors * sector + row)
        };
        let requests = requests(problem.depth) + requests(problem.columns);
        whole.max((self.keys * requests) as f64)
    }

    /// Clocks of a block whose reads take so many.
    fn block(self, problem: &Problem, rates: &AttentionRates, reads: f64) -> f64 {
        let (rows, keys) = (self.rows() as f64, self.keys as f64);
        let (exposed, overhead, _) = problem.overheads(rates);
        let overhead = match self.is_small(problem) {
            true => overhead * self.results(problem) / BLOCK,
            false => overhead,
        };
        let width = (problem.depth + problem.columns) as f64;
        let products = rows * keys * width / problem.products(rates);
        let scores = rows
            * keys
            * (1.0 / rates.exponentials
                + (INSTRUCTIONS + 2.0 * problem.masks as f64) / rates.lanes);
        let (most, longer) = rates.narrow_keys;
        // Results are rarely scaled; the rates of 16 bits were fitted when they always were.
        let others = match problem.bytes < BYTES {
            true if self.keys > most => scores * longer,
            true => scores,
            false => scores + rows * problem.columns as f64 / rates.lanes,
        };
        let [one, two, three] = exposed;
        let exposed = match self.consumers {
            1 => one,
            2 => two,
            _ => three,
        };
        let [busy, other] = rates.pairs;
        let longer = match (self.cluster, self.consumers) {
            (1, _) => 1.0,
            (_, 2) if products > BUSY * others => busy,
            _ => other,
        };
        (products.max(others) * longer).max(reads) + exposed * others.min(products) + overhead
    }

    /// Whether keys and values come from memory: there are more than the L2 cache has, and no other tile reads them.
    pub(super) fn streams(self, problem: &Problem, chip: &Chip) -> bool {
        let once = problem.repeats == 1 && problem.rows <= self.rows();
        let more = |rates: AttentionRates| problem.streamed() > rates.cached_bytes;
        once && chip.attention.is_some_and(more)
    }

    /// Clocks of blocks of keys and values that come from memory, which take so many at least, and are of so many bytes. CTAs of the
    /// last turn have more of the memory each.
    fn streamed(
        self,
        problem: &Problem,
        (chip, rates): (&Chip, &AttentionRates),
        [block, bytes]: [f64; 2],
    ) -> f64 {
        let tile = self.tile(problem, rates);
        let of = |turns: i64, reading: i64| {
            // What one multiprocessor reads, and its share of what the memory gives: near each other, neither is reached.
            let times = [
                1.0 / rates.streamed_by_one,
                reading as f64 / rates.streamed_bytes,
            ];
            let read = times
                .map(|time| time.powi(4))
                .iter()
                .sum::<f64>()
                .powf(0.25);
            let block = block.max(bytes * read) + rates.unhidden * block;
            turns as f64 * (self.blocks(problem) * block + tile)
        };
        let (tiles, ctas) = (self.tiles(problem), chip.multiprocessors);
        let rest = tiles % ctas;
        of(tiles / ctas, ctas) + of(i64::from(rest > 0), rest)
    }

    /// Clocks of the kernel that merges parts, and of what the one before it stores of them.
    fn merge(self, problem: &Problem, (chip, rates): (&Chip, &AttentionRates)) -> f64 {
        if !self.is_split(problem) {
            return 0.0;
        }
        let bytes = 2.0 * self.parts(problem) as f64 * 4.0;
        let parts = self.splits as f64 * rates.merged + bytes / rates.streamed_bytes;
        chip.mma.overhead + rates.kernel_gap + parts
    }
}

/// Clocks of the three kernels that take its place: two products and rows between them, whose scores go through memory.
#[must_use]
pub fn apart(problem: &Problem, chip: &Chip) -> f64 {
    let Some(rates) = &chip.attention else {
        return 0.0;
    };
    let tiles = problem.batch * count(problem.rows, 128);
    let busy = (tiles * count(problem.keys, 128)).min(chip.multiprocessors) as f64;
    let scores = problem.batch as f64 * problem.rows as f64 * problem.keys as f64;
    let width = (problem.depth + problem.columns) as f64;
    let padded = count(problem.rows, ROWS) as f64 * ROWS as f64 / problem.rows.max(1) as f64;
    let products = scores * padded * width / problem.products(rates) / busy;
    // f32 scores are written and read, weights written and read: from memory where the L2 cache does not have them.
    let rate = match scores * 4.0 > rates.cached_bytes {
        true => rates.scores_bytes.min(chip.mma.l2_bytes / 2.0 * busy),
        false => chip.mma.l2_bytes / 2.0 * busy,
    };
    let moved = scores * (2 * 4 + 2 * problem.bytes) as f64 / rate;
    let turns = count(
        problem.batch * count(problem.rows, 128),
        chip.multiprocessors,
    );
    let tiles_of_products = 2.0 * turns as f64 * rates.apart;
    let streamed = match problem.rows < ROWS {
        true => FEW_ROWS * problem.streamed(),
        false => problem.streamed(),
    };
    let read = match problem.streamed() > rates.cached_bytes {
        true => rates.streamed_bytes,
        false => chip.mma.l2_bytes * busy,
    };
    products.max(streamed / read)
        + tiles_of_products
        + moved
        + 3.0 * (chip.mma.overhead + rates.kernel_gap)
}
