//! Attention as data, the configurations of its kernel, and how long they take.

use crate::facts::chip::{Chip, MULTIPROCESSOR_REGISTERS, THREAD_REGISTERS};
use crate::facts::wgmma::K_BYTES;
use crate::planner::knobs::{Plan, Sharing};
use crate::planner::problem::count;
use axe_passes::fuse::attention::visible::Visible;
use axe_passes::ir::facts::gcd;
use std::fmt;

/// Bytes of an element of results, and of operands that are not narrower.
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
/// Registers that ptxas counts for an instruction beside its sums: of 208 columns it asks for 134.
const INSTRUCTION_REGISTERS: i64 = 30;

/// Parts of keys at most: those of one problem are about as many as multiprocessors.
pub(super) const MOST_SPLITS: i64 = 128;
/// Stages that a configuration is given at most, unless a plan asks for more.
const MOST_STAGES: i64 = 4;

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
    /// Bytes of an element of queries, keys, values and weights.
    pub bytes: i64,
    /// Registers that a mask takes for a row of 4 keys of a thread: tensors that scores read at rows and keys.
    pub masks: i64,
    /// Keys behind the diagonal that rows see at most, where a mask is causal: blocks above are skipped.
    pub causal: Option<i64>,
    /// Part of all pairs of row and key that some row of a tile sees.
    pub seen: f64,
    /// Problems that have the same keys and values: of packed ones, no others do.
    pub repeats: i64,
    /// Keys of a page, where keys or values are read through a table; else 0.
    pub page: i64,
    /// Keys of a run of each tensor that scores read in such: blocks are multiples of this number, which is 1 where there is none.
    pub run: i64,
    /// Whether the kernel can store the results itself: rows have one stride, and there are two or more.
    pub stores: bool,
    /// Whether extents are known at run time only: those above are what they are taken for.
    pub dynamic: bool,
    /// Whether rows of keys or values begin inside of sectors of memory.
    pub straddles: bool,
    /// Whether the tiles of a problem, which are a known number, go through the same blocks of keys, each of which one copy brings.
    pub same_blocks: bool,
}

impl Problem {
    /// Keys of an instruction of the second product (PTX ISA 9.7.15.2: 32 bytes), and of whole runs: blocks are multiples of those.
    #[must_use]
    pub fn key_step(&self) -> i64 {
        let own = K_BYTES / self.bytes;
        own / gcd(own, self.run) * self.run
    }
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
    /// Parts of a tile's keys, each a CTA's at a time; a second kernel merges them.
    pub splits: i64,
    /// CTAs of a cluster, whose tiles of a problem follow each other: each brings a part of a block of keys and values for all.
    pub cluster: i64,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = Plan {
            tile: Some([self.rows(), self.keys, self.columns]),
            consumers: Some(self.consumers),
            stages: Some(self.stages),
            decomposition: (self.splits > 1).then_some(Sharing::SplitK),
            splits: (self.splits > 1).then_some(self.splits),
            cluster: (self.cluster > 1).then_some([self.cluster, 1]),
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

    /// Tiles of all problems, each part of its keys one; those of a problem fill whole clusters.
    #[must_use]
    pub const fn tiles(self, problem: &Problem) -> i64 {
        let clusters = count(count(problem.rows, self.rows()), self.cluster);
        let tiles = problem.batch.saturating_mul(clusters * self.cluster);
        tiles.saturating_mul(self.splits)
    }

    /// Sums of products in all parts.
    pub(super) const fn parts(self, problem: &Problem) -> i64 {
        let rows = problem.batch.saturating_mul(problem.rows);
        let sums = rows.saturating_mul(problem.columns);
        sums.saturating_mul(self.splits)
    }

    /// Whether a second kernel stores the results.
    #[must_use]
    pub const fn is_split(self, problem: &Problem) -> bool {
        self.splits > 1 || !problem.stores
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
        let queries = self.query_stages * self.rows() * problem.depth * problem.bytes;
        let block = self.keys * (problem.depth + problem.columns) * problem.bytes;
        queries + self.stages * block + SPARE
    }

    /// Whether the result leaves through shared memory beside that, a row of 128 bytes or of what there is after the other; else threads
    /// store what they hold.
    pub(super) fn stages_result(self, problem: &Problem, chip: &Chip) -> bool {
        let width = (problem.columns * BYTES).min(128);
        self.shared_bytes(problem) + self.rows() * width <= chip.shared_bytes
    }

    /// Registers of a consumer's thread: scores in f32, weights as narrow as operands, results in f32, and masks.
    #[must_use]
    pub const fn thread_registers(self, problem: &Problem) -> i64 {
        self.keys / 2
            + self.keys * problem.bytes / 8
            + problem.columns / 2
            + problem.masks * self.keys / 4
            + OTHER_REGISTERS
    }

    /// The same with as many stages as there is shared memory for, where keys and values come from memory: what is under way hides how
    /// long that takes.
    #[must_use]
    fn deepest(self, problem: &Problem, chip: &Chip) -> Self {
        let with = |stages| Self { stages, ..self };
        let most = if self.streams(problem, chip) {
            MOST_STAGES
        } else {
            2
        };
        let mut fits = (self.stages..=most).rev().map(with);
        let fits = fits.find(|own| own.fits(problem, chip) && own.stages_result(problem, chip));
        fits.unwrap_or(self)
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

    /// Whether a chip has the memory and the registers.
    #[must_use]
    pub fn fits(self, problem: &Problem, chip: &Chip) -> bool {
        let places = match self.stages_result(problem, chip) {
            true => 0,
            false => PLACE_REGISTERS,
        };
        // ptxas counts an instruction's registers against those that a launch has for each thread.
        let launched = MULTIPROCESSOR_REGISTERS / self.threads();
        self.shared_bytes(problem) <= chip.shared_bytes
            && problem.columns.max(self.keys) / 2 + INSTRUCTION_REGISTERS <= launched
            && self.thread_registers(problem) + places <= self.registers()[1].min(THREAD_REGISTERS)
    }
}

/// The configurations of a problem that a chip has, the quickest first.
#[must_use]
pub fn offered(problem: &Problem, chip: &Chip) -> Vec<Config> {
    let consumers = 1..=3;
    let all = consumers.flat_map(|consumers| {
        (1..=16).map(move |keys| Config {
            consumers,
            keys: keys * 16,
            stages: 2,
            query_stages: 1,
            columns: problem.columns,
            splits: 1,
            cluster: 1,
        })
    });
    let whole = |config: &Config| config.keys % problem.key_step() == 0;
    let fits = all.filter(|config| {
        whole(config) && config.takes_pages(problem) && config.fits(problem, chip)
    });
    let fits = fits.flat_map(|config| {
        let config = config.deepest(problem, chip).ahead(problem, chip);
        splits(problem, config, chip).map(move |splits| Config { splits, ..config })
    });
    let fits = fits.flat_map(|config| {
        [Some(config), config.in_pairs(problem)]
            .into_iter()
            .flatten()
    });
    let mut fits: Vec<_> = fits.collect();
    fits.sort_by_cached_key(|config| {
        // Clocks are positive: their bits are ordered as they are.
        config.clocks(problem, chip).to_bits()
    });
    fits
}

/// Parts of keys that are worth looking at: several, where tiles are too few for the chip's multiprocessors, or for whole turns of
/// them, and keys are long enough.
fn splits(problem: &Problem, config: Config, chip: &Chip) -> std::ops::RangeInclusive<i64> {
    let few = config.tiles(problem) < TURNS * chip.multiprocessors && !problem.dynamic;
    let blocks = count(problem.keys, config.keys) / LEAST_BLOCKS;
    let most = MOST_PARTS / config.parts(problem).max(1);
    1..=if few {
        blocks.min(most).clamp(1, MOST_SPLITS)
    } else {
        1
    }
}

/// Turns of the multiprocessors below which tiles are worth splitting.
const TURNS: i64 = 4;
/// Blocks of keys of a part at least.
const LEAST_BLOCKS: i64 = 2;
/// Sums of products in all parts at most: 4 GiB.
const MOST_PARTS: i64 = 1 << 30;

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
        decomposition: None,
        splits: None,
        cluster: None,
        ..*plan
    };
    if let Some((key, _)) = known.entries().first() {
        return Err(format!(
            "expected tile, consumers, stages, decomposition, splits and cluster in axe.plan of attention, got '{key}'"
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
        let step = problem.key_step();
        if !right || keys % step != 0 || !(16..=256).contains(&keys) || columns != problem.columns {
            return Err(format!(
                "expected tile = [rows, keys, columns] in axe.plan of attention with 64 rows for each of 1 to 3 consumers, 16 to 256 keys in multiples of {step}, and the values' {} columns, got [{rows}, {keys}, {columns}]",
                problem.columns
            ));
        }
    }
    if !config.takes_pages(problem) {
        return Err(format!(
            "expected blocks of whole pages of {} keys, or of a part that divides one, in axe.plan of attention, got blocks of {}",
            problem.page, config.keys
        ));
    }
    config.stages = plan.stages.unwrap_or(config.stages);
    config.query_stages = 1;
    config.cluster = 1;
    config.splits = asked_splits(problem, plan, config, chip)?;
    config = config.clustered(problem, plan, chip)?;
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

/// The parts of keys that a plan asks for; the cost model's, where it does not say.
fn asked_splits(
    problem: &Problem,
    plan: &Plan,
    config: Config,
    chip: &Chip,
) -> Result<i64, String> {
    let of = |splits| Config { splits, ..config };
    let quickest = |least: i64| {
        let all = splits(problem, of(1), chip).filter(|own| *own >= least);
        all.min_by_key(|own| of(*own).clocks(problem, chip).to_bits())
    };
    let splits = match (plan.decomposition, plan.splits) {
        (None, _) if plan.cluster.is_some_and(|shape| shape != [1, 1]) => 1,
        (None, _) => quickest(1).unwrap_or(1),
        (Some(Sharing::DataParallel), None) => 1,
        (Some(Sharing::SplitK), Some(splits)) => splits,
        (Some(Sharing::SplitK), None) => quickest(2).unwrap_or(2),
        (Some(_), _) => {
            return Err("expected decomposition = \"data_parallel\", or \"split_k\" with splits, in axe.plan of attention".to_owned());
        }
    };
    let right = splits == 1 || splits <= MOST_SPLITS && of(splits).parts(problem) <= MOST_PARTS;
    if splits > 1 && problem.dynamic {
        return Err("expected no splits in axe.plan of attention of dynamic extents".to_owned());
    }
    match splits >= 1 && right {
        true => Ok(splits),
        false => Err(format!(
            "expected splits of 1 to {MOST_SPLITS} in axe.plan of attention, and at most {MOST_PARTS} sums in all parts, got {splits} and {}",
            of(splits).parts(problem)
        )),
    }
}

/// The part of all pairs of row and key that some row of a tile of 128 sees, and the diagonal of a causal mask.
#[must_use]
pub fn seen(visible: &Visible, rows: i64, keys: i64) -> (f64, Option<i64>) {
    let causal = match (visible.from.as_slice(), visible.to.as_slice()) {
        ([], [edge]) if edge.per_row == 1 && edge.length.is_none() => Some(edge.start),
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
pub(super) mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::attention::cost;
    use axe_passes::fuse::attention::visible::Edge;

    pub(in super::super) fn problem(rows: i64, columns: i64) -> Problem {
        Problem {
            batch: 64,
            rows,
            keys: rows,
            depth: columns,
            columns,
            bytes: BYTES,
            masks: 0,
            causal: None,
            seen: 1.0,
            repeats: 1,
            page: 0,
            run: 1,
            stores: true,
            dynamic: false,
            straddles: false,
            same_blocks: true,
        }
    }

    #[test]
    fn short_problems_are_one_kernel() {
        let chip = chip("sm_90a").expect("a chip");
        for (rows, columns) in [(32, 32), (49, 32), (64, 32), (32, 64), (64, 64), (197, 64)] {
            let own = Problem {
                batch: (1 << 23) / (rows * columns),
                ..problem(rows, columns)
            };
            let config = configure(&own, &Plan::default(), chip).expect("fits");
            let (one, apart) = (config.clocks(&own, chip), cost::apart(&own, chip));
            assert!(one < apart, "{rows} x {columns}: {one} {apart}");
        }
    }

    #[test]
    fn few_rows_of_any_batch_are_one_kernel() {
        let chip = chip("sm_90a").expect("a chip");
        for (batch, keys) in [
            (1, 131_072),
            (16, 4096),
            (256, 4096),
            (512, 1024),
            (2048, 1024),
        ] {
            for (rows, columns) in [(1, 64), (1, 128), (4, 128), (16, 128), (1, 256)] {
                let own = Problem {
                    batch,
                    keys,
                    ..problem(rows, columns)
                };
                let config = configure(&own, &Plan::default(), chip).expect("fits");
                let (one, apart) = (config.clocks(&own, chip), cost::apart(&own, chip));
                assert!(
                    one < apart,
                    "{batch} {rows} x {keys} x {columns}: {one} {apart}"
                );
            }
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
    fn tiles_of_bytes_are_those_that_are_fast() {
        let chip = chip("sm_90a").expect("a chip");
        for (columns, causal, rows, keys) in [
            (64, None, 192, 128),
            (64, Some(1), 192, 128),
            (128, None, 192, 96),
            (128, Some(1), 192, 96),
            (256, None, 128, 128),
            (256, Some(1), 128, 128),
        ] {
            // Two sequences, as they were measured.
            let problem = Problem {
                batch: 2 * 2048 / columns,
                bytes: 1,
                causal,
                seen: if causal.is_some() { 0.5 } else { 1.0 },
                ..problem(8192, columns)
            };
            let own = configure(&problem, &Plan::default(), chip).expect("fits");
            assert_eq!((own.rows(), own.keys), (rows, keys), "{columns}: {own}");
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
    fn an_instruction_has_the_registers_that_a_launch_has() {
        let chip = chip("sm_90a").expect("a chip");
        for columns in (16..=256).step_by(16) {
            let all = offered(&problem(4096, columns), chip);
            let wide = all.iter().filter(|own| own.consumers == 3);
            assert_eq!(wide.count() > 0, columns <= 192, "{columns}");
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
            "{cluster = array<i64: 1, 2>}",
            "{cluster = array<i64: 2, 1>, decomposition = \"split_k\", splits = 2 : i64}",
        ] {
            assert!(configure(&problem, &plan(wrong), chip).is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_of_the_pairs_are_seen_below_a_diagonal() {
        let causal = Visible {
            to: vec![Edge::of(1, 1)],
            ..Visible::default()
        };
        let (part, offset) = seen(&causal, 8192, 8192);
        assert!((part - 0.5).abs() < 0.02, "{part}");
        assert_eq!(offset, Some(1));
        assert_eq!(seen(&Visible::default(), 100, 100), (1.0, None));
    }
}
