//! Attention as data, the configurations of its kernel, and how long they take.

use super::tiles::known;
use crate::facts::chip::{Chip, THREAD_REGISTERS};
use crate::planner::knobs::Plan;
use crate::planner::problem::count;
use axe_passes::fuse::attention::visible::{Edge, Visible};
use std::fmt;

/// Bytes of an element of queries, keys and values.
pub const BYTES: i64 = 2;
/// Rows of an instruction, which are a warpgroup's.
pub const ROWS: i64 = 64;
/// Bytes of shared memory that barriers and alignment take.
const SPARE: i64 = 2048;
/// Registers of a thread beside scores, weights and results: addresses, row values, and what exponentials need.
const OTHER_REGISTERS: i64 = 32;
/// Registers more where threads store results themselves: the places of their rows. Measured: heads of 128 with 192 keys, which leave
/// none, take 1.02 times as long as with 176.
const PLACE_REGISTERS: i64 = 8;
/// Instructions for a score beside its exponential: scale, maximum, sum, conversion.
const INSTRUCTIONS: f64 = 3.5;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Independent problems: batch and heads.
    pub batch: i64,
    /// Queries of one.
    pub rows: i64,
    /// Its keys.
    pub keys: i64,
    /// What scores are summed over.
    pub depth: i64,
    /// Columns of values and result.
    pub columns: i64,
    /// Registers that a mask takes for a row of 4 keys of a thread: tensors that scores read at rows and keys.
    pub masks: i64,
    /// Keys behind the diagonal that rows see at most, where a mask is causal: blocks above are skipped.
    pub causal: Option<i64>,
    /// Part of all pairs of row and key that some row of a tile sees.
    pub seen: f64,
}

/// One way to compute it: a producer warp and consumer warpgroups, each of which has 64 rows of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Warpgroups that multiply.
    pub consumers: i64,
    /// Keys of a block.
    pub keys: i64,
    /// Blocks of keys, and of values, in flight.
    pub stages: i64,
    /// Tiles of queries in flight.
    pub query_stages: i64,
    /// Columns of the result.
    pub columns: i64,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = Plan {
            tile: Some([self.rows(), self.keys, self.columns]),
            consumers: Some(self.consumers),
            stages: Some(self.stages),
            ..Plan::default()
        };
        plan.fmt(f)
    }
}

impl Config {
    /// Rows of a tile.
    #[must_use]
    pub const fn rows(self) -> i64 {
        self.consumers * ROWS
    }

    /// Threads of a CTA.
    #[must_use]
    pub const fn threads(self) -> i64 {
        (self.consumers + 1) * 128
    }

    /// Registers of a thread of the producer's warpgroup, and of a consumer.
    #[must_use]
    pub const fn registers(self) -> [i64; 2] {
        match self.consumers {
            1 => [56, 256 - 16],
            2 => [24, 240],
            _ => [32, 160],
        }
    }

    /// Bytes of shared memory: queries and the rings.
    #[must_use]
    pub const fn shared_bytes(self, problem: &Problem) -> i64 {
        let queries = self.query_stages * self.rows() * problem.depth * BYTES;
        let block = self.keys * (problem.depth + problem.columns) * BYTES;
        queries + self.stages * block + SPARE
    }

    /// Whether the result leaves through shared memory beside that, a row of 128 bytes or of what there is after the other; else threads
    /// store what they hold.
    fn stages_result(self, problem: &Problem, chip: &Chip) -> bool {
        let width = (problem.columns * BYTES).min(128);
        self.shared_bytes(problem) + self.rows() * width <= chip.shared_bytes
    }

    /// Registers of a consumer's thread: scores in f32, weights in 16 bits, results in f32, and masks.
    #[must_use]
    pub const fn thread_registers(self, problem: &Problem) -> i64 {
        self.keys / 2
            + self.keys / 4
            + problem.columns / 2
            + problem.masks * self.keys / 4
            + OTHER_REGISTERS
    }

    /// The same with the queries of the next tile beside those of this one, where that leaves as much for results as they take.
    #[must_use]
    fn ahead(self, problem: &Problem, chip: &Chip) -> Self {
        let ahead = Self {
            query_stages: 2,
            ..self
        };
        let width = (problem.columns * BYTES).min(128);
        let all = ahead.shared_bytes(problem) + 2 * self.rows() * width;
        if all <= chip.shared_bytes {
            ahead
        } else {
            self
        }
    }

    /// Whether tiles are gone through problem after problem, so that keys and values are read from L2. Where long tiles of all problems
    /// come first, each of the problems that CTAs work on at a time has its own read from memory.
    #[must_use]
    pub fn by_problem(self, problem: &Problem, chip: &Chip) -> bool {
        chip.attention.is_some_and(|rates| {
            // A row of a block's keys and values for each row of queries that it is multiplied by.
            let read = rates.products * BYTES as f64 / self.rows() as f64;
            read * problem.batch.min(chip.multiprocessors) as f64 > rates.memory_bytes
        })
    }

    /// Whether a chip has the memory and the registers.
    #[must_use]
    pub fn fits(self, problem: &Problem, chip: &Chip) -> bool {
        let places = match self.stages_result(problem, chip) {
            true => 0,
            false => PLACE_REGISTERS,
        };
        self.shared_bytes(problem) <= chip.shared_bytes
            && self.thread_registers(problem) + places <= self.registers()[1].min(THREAD_REGISTERS)
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
        let (rows, keys) = (self.rows() as f64, self.keys as f64);
        let width = (problem.depth + problem.columns) as f64;
        let products = rows * keys * width / rates.products;
        let scores = rows
            * keys
            * (1.0 / rates.exponentials
                + (INSTRUCTIONS + 2.0 * problem.masks as f64) / rates.lanes);
        let results = rows * problem.columns as f64 / rates.lanes;
        let reads = keys * width * BYTES as f64 / chip.mma.l2_bytes;
        let others = scores + results;
        let [one, two, three] = rates.exposed;
        let exposed = match self.consumers {
            1 => one,
            2 => two,
            _ => three,
        };
        let mut block =
            products.max(others).max(reads) + exposed * others.min(products) + rates.block;
        let tiles = problem.batch * count(problem.rows, self.rows());
        let mut blocks = (problem.keys as f64 * problem.seen / keys).ceil().max(1.0);
        if let Some(start) = problem.causal {
            let causal = Visible {
                from: Vec::new(),
                to: vec![Edge { per_row: 1, start }],
            };
            let known = known(&causal, self, problem.rows, problem.keys);
            if let Some(all) = known.blocks {
                blocks = all as f64 / count(problem.rows, self.rows()) as f64;
            }
            if known.above {
                // Masked blocks have a loop of their own, and all blocks take longer then.
                block *= rates.second_loop;
            }
        }
        let waves = match problem.causal {
            Some(_) => (tiles as f64 / chip.multiprocessors as f64).max(1.0),
            None => count(tiles, chip.multiprocessors) as f64,
        };
        let tile = if self.stages_result(problem, chip) {
            rates.tile
        } else {
            rates.tile + (self.rows() * problem.columns * BYTES) as f64 / rates.stored_bytes
        };
        waves * (blocks * block + tile) + chip.mma.overhead
    }
}

/// The configurations of a problem that a chip has, the quickest first.
#[must_use]
pub fn offered(problem: &Problem, chip: &Chip) -> Vec<Config> {
    let consumers = 1..=3;
    let all = consumers.flat_map(|consumers| {
        (2..=16).map(move |keys| Config {
            consumers,
            keys: keys * 16,
            stages: 2,
            query_stages: 1,
            columns: problem.columns,
        })
    });
    let fits = all.filter(|config| config.fits(problem, chip));
    let mut fits: Vec<_> = fits.map(|config| config.ahead(problem, chip)).collect();
    fits.sort_by_cached_key(|config| {
        // Clocks are positive: their bits are ordered as they are.
        config.clocks(problem, chip).to_bits()
    });
    fits
}

/// The configuration of a plan; what it leaves out is the cost model's.
///
/// # Errors
/// What a plan asks for that there is not.
pub fn configure(problem: &Problem, plan: &Plan, chip: &Chip) -> Result<Config, String> {
    let own = offered(problem, chip).first().copied();
    let mut config = own.ok_or("no block of keys fits in shared memory and registers")?;
    let known = Plan {
        tile: None,
        consumers: None,
        stages: None,
        ..*plan
    };
    if let Some((key, _)) = known.entries().first() {
        return Err(format!(
            "expected tile, consumers and stages in axe.plan of attention, got '{key}'"
        ));
    }
    if let Some([rows, keys, columns]) = plan.tile {
        config = Config {
            consumers: rows / ROWS,
            keys,
            ..config
        };
        let right = rows % ROWS == 0
            && (1..=3).contains(&config.consumers)
            && plan.consumers.is_none_or(|own| own == config.consumers);
        if !right || keys % 16 != 0 || !(16..=256).contains(&keys) || columns != problem.columns {
            return Err(format!(
                "expected tile = [rows, keys, columns] in axe.plan of attention with 64 rows for each of 1 to 3 consumers, 16 to 256 keys in sixteens, and the values' {} columns, got [{rows}, {keys}, {columns}]",
                problem.columns
            ));
        }
    }
    config.stages = plan.stages.unwrap_or(config.stages);
    config.query_stages = 1;
    let checked = (2..=8).contains(&config.stages) && config.fits(problem, chip);
    let ahead = config.ahead(problem, chip);
    checked.then_some(ahead).ok_or_else(|| {
        format!(
            "expected a tile and 2 stages or more in axe.plan of attention that fit in {} bytes of shared memory and {} registers, got {config} with {} and {}",
            chip.shared_bytes,
            config.registers()[1],
            config.shared_bytes(problem),
            config.thread_registers(problem)
        )
    })
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
    let products = scores * padded * width / rates.products / busy;
    // f32 scores are written and read, weights written and read.
    let moved = scores * (2 * 4 + 2 * BYTES) as f64 / (chip.mma.l2_bytes / 2.0) / busy;
    products + moved + 3.0 * (chip.mma.overhead + rates.kernel_gap)
}

/// The part of all pairs of row and key that some row of a tile of 128 sees, and the diagonal of a causal mask.
#[must_use]
pub fn seen(visible: &Visible, rows: i64, keys: i64) -> (f64, Option<i64>) {
    let causal = match (visible.from.as_slice(), visible.to.as_slice()) {
        ([], [edge]) if edge.per_row == 1 => Some(edge.start),
        _ => None,
    };
    if visible.is_all() || rows < 1 || keys < 1 {
        return (1.0, causal);
    }
    // Tiles far apart stand for those between.
    let tiles = count(rows, 128);
    let step = count(tiles, 256);
    let sampled = (0..tiles).step_by(usize::try_from(step).unwrap_or(1));
    let of = |tile: i64| {
        let [first, end] = visible.some(tile * 128, 128, keys);
        (end - first).max(0) as f64
    };
    let (sum, number) = sampled.fold((0.0, 0), |(sum, number), tile| (sum + of(tile), number + 1));
    (sum / (f64::from(number) * keys as f64), causal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    fn problem(rows: i64, columns: i64) -> Problem {
        Problem {
            batch: 64,
            rows,
            keys: rows,
            depth: columns,
            columns,
            masks: 0,
            causal: None,
            seen: 1.0,
        }
    }

    #[test]
    fn tiles_are_those_that_are_fast() {
        let chip = chip("sm_90a").expect("a chip");
        for (columns, rows, least) in [(64, 192, 112), (128, 128, 160), (256, 128, 64)] {
            let own = configure(&problem(8192, columns), &Plan::default(), chip).expect("fits");
            assert_eq!(own.rows(), rows, "{columns}: {own}");
            assert!(own.keys >= least, "{columns}: {own}");
        }
    }

    #[test]
    fn many_problems_at_a_time_are_gone_through_one_by_one() {
        let chip = chip("sm_90a").expect("a chip");
        for (batch, columns, by_problem) in [(128, 128, true), (32, 128, false), (64, 64, false)] {
            let problem = Problem {
                batch,
                causal: Some(1),
                seen: 0.5,
                ..problem(8192, columns)
            };
            let own = configure(&problem, &Plan::default(), chip).expect("fits");
            assert_eq!(own.by_problem(&problem, chip), by_problem, "{batch}: {own}");
        }
    }

    #[test]
    fn few_rows_are_one_consumers() {
        let chip = chip("sm_90a").expect("a chip");
        let own = configure(
            &Problem {
                keys: 4096,
                ..problem(16, 128)
            },
            &Plan::default(),
            chip,
        );
        assert_eq!(own.map(|own| own.consumers), Ok(1));
    }

    #[test]
    fn a_plan_is_taken_or_says_why() {
        let chip = chip("sm_90a").expect("a chip");
        let problem = problem(1024, 128);
        let plan = |text: &str| Plan::of_text(text).expect("a dictionary").expect("a plan");
        let asked = plan("{tile = array<i64: 128, 96, 128>, stages = 3 : i64}");
        let own = configure(&problem, &asked, chip).expect("fits");
        assert_eq!((own.consumers, own.keys, own.stages), (2, 96, 3));
        assert_eq!(
            Plan::of_text(&own.to_string())
                .expect("a dictionary")
                .map(|plan| configure(&problem, &plan, chip)),
            Ok(Ok(own))
        );
        for wrong in [
            "{tile = array<i64: 100, 96, 128>}",
            "{tile = array<i64: 128, 90, 128>}",
            "{tile = array<i64: 128, 96, 64>}",
            "{tile = array<i64: 128, 256, 128>}",
            "{tile = array<i64: 128, 96, 128>, consumers = 1 : i64}",
            "{stages = 8 : i64}",
            "{cluster = array<i64: 2, 1>}",
        ] {
            assert!(configure(&problem, &plan(wrong), chip).is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_of_the_pairs_are_seen_below_a_diagonal() {
        let causal = Visible {
            from: Vec::new(),
            to: vec![Edge {
                per_row: 1,
                start: 1,
            }],
        };
        let (part, offset) = seen(&causal, 8192, 8192);
        assert!((part - 0.5).abs() < 0.02, "{part}");
        assert_eq!(offset, Some(1));
        assert_eq!(seen(&Visible::default(), 100, 100), (1.0, None));
    }
}
