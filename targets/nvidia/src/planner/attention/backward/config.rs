//! Gradients as data, and the blocks of their kernel.

use super::super::config::BYTES;
use super::storage::span;
use super::{SHARED, STEP};
use crate::facts::chip::Chip;
use crate::planner::knobs::Plan;
use crate::planner::problem::{SUM_BYTES, count};
use std::fmt;

/// Queries of a block: as many as leave the consumers registers for the sums of dK and dV.
pub const ROWS: i64 = 64;
/// Warpgroups that multiply.
pub const CONSUMERS: i64 = 2;
/// Threads of a CTA: a warpgroup of a producer, and the consumers.
pub const THREADS: i64 = 128 * (1 + CONSUMERS);
/// Subtiles through which dQ leaves: two for each consumer, of 64 rows of 128 bytes.
const STORED: i64 = CONSUMERS * 2 * 64 * 128;
/// Bytes of shared memory that barriers and alignment take.
const SPARE: i64 = 1024;
/// Registers of a consumer's thread for sums and weights at most, of 240: heads of 128 take as many, and none is spilled.
const SUM_REGISTERS: i64 = 192;

/// Tiles of a CTA, at the mean, whose long ones are first at the end. Measured, causal: 64 problems of 2048 places and heads of 256, 1030 us
/// with the last 5, 1027 with 10, 1050 with 20, 1593 with all and 1075 with one; 32 of 8192 and 128, 2662 with 3, 2636 with 6, 2621 with
/// 12 and 2704 with all; 16 of 8192 and 256, 3626 with 4 and 3578 with all.
const LAST_ROUNDS: i64 = 2;
/// Tiles that are looked at one by one.
const MOST_TILES: i64 = 1 << 16;
/// The part of what CTAs have to do by which one may have more: what is lost at the start of each tile is more than a twentieth.
const UNEVEN: i64 = 20;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    pub batch: i64,
    pub rows: i64,
    pub keys: i64,
    pub depth: i64,
    pub columns: i64,
    pub group: i64,
    pub lengths: Lengths,
    /// Registers of a consumer's thread that scores take beside sums, of 128 keys: what they read, and what their gradients are formed with.
    pub more: i64,
}

/// How many queries see a block of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// As many see each.
    Even,
    /// Fewer and fewer, by their index.
    Falling,
    /// What is data says so.
    Unknown,
}

/// What consumers have for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// 64 keys of a block: weights and their gradients are operands in registers.
    Keys,
    /// Half of the queries of scores, and half of the columns of all sums, of 64 keys together: those of wide heads, which one
    /// warpgroup's registers do not hold. Weights, too, go through shared memory.
    Columns,
}

/// The kernels' blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub split: Split,
    /// Whether keys and values are operands in registers: products read half as much of shared memory then, which sets the pace of
    /// narrow heads.
    pub held: bool,
    /// Stages of queries, and of the weights' gradients.
    pub stages: i64,
    /// Stages of the result's gradients.
    pub gradient_stages: i64,
    /// Columns of queries and keys.
    pub depth: i64,
    pub order: Order,
    /// CTAs: one a tile, or as many as run at a time.
    pub ctas: i64,
}

/// How CTAs go through the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Problem after problem.
    Problems,
    /// The same, the tiles of every other problem from the last one on.
    Alternating,
    /// Problem after problem, but of the last ones the long tiles of all before the short ones.
    LongestFirst { last: i64 },
}

impl Order {
    /// What the CTA with most to do has to do where so many share tiles of so many problems, each tile one less than the one before.
    fn longest(self, [problems, tiles]: [i64; 2], ctas: i64) -> i64 {
        let all = problems.saturating_mul(tiles).min(MOST_TILES);
        let own = |cta: i64| {
            let step = usize::try_from(ctas).unwrap_or(usize::MAX);
            let lengths = (cta..all).step_by(step).map(|at| {
                let (problem, tile) = (at / tiles, at % tiles);
                match self {
                    Self::Alternating if problem % 2 == 1 => tile + 1,
                    _ => tiles - tile,
                }
            });
            lengths.sum::<i64>()
        };
        (0..ctas.min(all)).map(own).max().unwrap_or(0)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = Plan {
            tile: Some([self.keys(), ROWS, self.depth]),
            consumers: Some(CONSUMERS),
            stages: Some(self.stages),
            ..Plan::default()
        };
        plan.fmt(f)
    }
}

impl Problem {
    /// The blocks that a chip has registers and shared memory for; an error where it has not.
    pub fn config(&self, chip: &Chip) -> Result<Config, String> {
        // There are as many places of gradients of scores as stages of queries: two make one barrier a block enough.
        let stages = [[2, 2], [2, 1]];
        let forms = [
            (Split::Keys, true),
            (Split::Keys, false),
            (Split::Columns, false),
        ];
        let all = forms.into_iter().flat_map(|(split, held)| {
            stages.map(|[stages, gradient_stages]| Config {
                split,
                held,
                stages,
                gradient_stages,
                depth: self.depth,
                order: Order::Problems,
                ctas: 0,
            })
        });
        let fits = |own: &Config| {
            own.sum_registers(self) <= SUM_REGISTERS
                && (!own.held || own.has_room(self))
                && own.shared_bytes(self) <= chip.shared_bytes
        };
        let scheduled = |own: Config| {
            let (order, ctas) = own.schedule(self, chip);
            Config { order, ctas, ..own }
        };
        all.into_iter().find(fits).map(scheduled).ok_or_else(|| {
            format!(
                "no blocks of keys and queries of {} and {} columns fit in {} bytes of shared memory and {SUM_REGISTERS} registers",
                self.depth, self.columns, chip.shared_bytes
            )
        })
    }
}

impl Config {
    /// How CTAs go through the tiles, and how many there are. Queries and sums of dQ of a problem stay in L2 while all of its tiles are
    /// worked on, which is what counts where few CTAs have the same problem at a time; else long tiles first leave less to wait for at the
    /// end, and of many problems those of the last ones do. CTAs that go through several tiles start once and have the next one's copies
    /// under way, where each has long tiles and short ones. Measured on 132 multiprocessors, heads of 2048 places: causal, of 128 columns
    /// 770 us and 808 with a CTA a tile, of 64 896 and 922; those of 256, whose warpgroups wait for each other, 1128 and 1080, and 1027
    /// with the long tiles of the last ten problems first.
    fn schedule(&self, problem: &Problem, chip: &Chip) -> (Order, i64) {
        let (heads, tiles) = (
            problem.batch / problem.group,
            count(problem.keys, self.keys()),
        );
        let (all, ctas) = (heads.saturating_mul(tiles), chip.multiprocessors);
        let goes_on = self.split == Split::Keys;
        let share = |ctas_each: i64| heads.saturating_mul(ctas_each) <= ctas;
        let is_shared = || {
            let all = heads.min(MOST_TILES / tiles.max(1));
            let each = all * tiles * (tiles + 1) / 2 / ctas;
            Order::Alternating.longest([all, tiles], ctas) <= each + each / UNEVEN
        };
        match problem.lengths {
            Lengths::Even if goes_on => (Order::Problems, all.min(ctas)),
            Lengths::Even => (Order::Problems, all),
            Lengths::Falling if goes_on && !share(SHARED) && is_shared() => {
                (Order::Alternating, all.min(ctas))
            }
            Lengths::Falling if !share(2 * SHARED) => {
                let last = count(LAST_ROUNDS * ctas, tiles) + 1;
                let last = last.min(heads);
                (Order::LongestFirst { last }, all)
            }
            Lengths::Unknown if !share(SHARED) => (Order::Problems, all),
            Lengths::Falling | Lengths::Unknown => (Order::LongestFirst { last: heads }, all),
        }
    }

    /// Keys of a block.
    pub const fn keys(self) -> i64 {
        match self.split {
            Split::Keys => 64 * CONSUMERS,
            Split::Columns => 64,
        }
    }

    /// Columns of queries and keys, and of values, in shared memory, and of their gradients in registers: consumers have half of those
    /// of dQ, or of all of them, in steps of `wgmma`'s depth. What is behind the last one is 0.
    pub const fn padded(self, problem: &Problem) -> [i64; 2] {
        match self.split {
            Split::Keys => [even(problem.depth), problem.columns],
            Split::Columns => [even(problem.depth), even(problem.columns)],
        }
    }

    /// The columns of dQ that leave together, as the first one and how many: two halves where consumers share columns, and each half has
    /// whole spans of the keys' swizzle of both. Heads of 192, whose halves would differ, take 1848 us in two and 1748 in one.
    pub fn query_parts(self, problem: &Problem) -> Vec<[i64; 2]> {
        let [depth, _] = self.padded(problem);
        let (half, whole) = (depth / 2, CONSUMERS * span(depth, depth / CONSUMERS));
        match self.split {
            Split::Columns if half % whole == 0 => vec![[0, half], [half, half]],
            _ => vec![[0, depth]],
        }
    }

    /// Tiles: blocks of keys of each head of keys and values.
    pub const fn tiles(self, problem: &Problem) -> i64 {
        (problem.batch / problem.group).saturating_mul(count(problem.keys, self.keys()))
    }

    /// Registers of a consumer's thread that sums of dK and dV take, and keys and values as operands, and beside them scores and the weights'
    /// gradients, or those of dQ and what is formed of both as operands.
    const fn sum_registers(self, problem: &Problem) -> i64 {
        let [depth, columns] = self.padded(problem);
        match self.split {
            Split::Keys => {
                let held = if self.held { (depth + columns) / 4 } else { 0 };
                depth / 2 + columns / 2 + held + greater(ROWS, depth / 4 + ROWS / 2)
            }
            Split::Columns => depth / 4 + columns / 4 + greater(ROWS / 2, depth / 4),
        }
    }

    /// Whether what scores read has registers while products are under way.
    pub const fn has_room(self, problem: &Problem) -> bool {
        self.sum_registers(problem) + problem.more <= SUM_REGISTERS
    }

    /// Bytes of shared memory: keys and values, rings of queries and of gradients, what goes through it of weights, and dQ.
    const fn shared_bytes(self, problem: &Problem) -> i64 {
        let [depth, columns] = self.padded(problem);
        let (keys, own) = (self.keys(), ROWS * SUM_BYTES);
        let weights = match self.split {
            Split::Keys => 0,
            Split::Columns => self.stages * keys * ROWS * BYTES,
        };
        keys * (depth + columns) * BYTES
            + self.stages * (ROWS * depth * BYTES + own)
            + self.gradient_stages * (ROWS * columns * BYTES + own)
            + self.stages * keys * ROWS * BYTES
            + weights
            + STORED
            + SPARE
    }
}

const fn greater(a: i64, b: i64) -> i64 {
    if a > b { a } else { b }
}

/// Columns of which consumers have as many.
const fn even(columns: i64) -> i64 {
    count(columns, CONSUMERS * STEP) * CONSUMERS * STEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    #[test]
    fn ctas_have_long_tiles_and_short_ones() {
        // Of 132 CTAs, 132 tiles further is 4 further in another problem: a quarter of all CTAs has the longest of each four.
        assert_eq!(Order::Problems.longest([64, 32], 132), 16 * 18);
        assert_eq!(Order::Alternating.longest([64, 32], 132), 8 * 18 + 8 * 15);
        let chip = chip("sm_90a").expect("a chip");
        let of = |batch: i64, keys: i64, depth: i64, lengths: Lengths| {
            let problem = Problem {
                batch,
                rows: keys,
                keys,
                depth,
                columns: depth,
                group: 1,
                lengths,
                more: 0,
            };
            let own = problem.config(chip).expect("fits");
            (own.order, own.ctas)
        };
        let first = |last| Order::LongestFirst { last };
        for (batch, keys, depth, lengths, order, ctas) in [
            (128, 2048, 128, Lengths::Falling, Order::Alternating, 132),
            (256, 2048, 64, Lengths::Falling, Order::Alternating, 132),
            (64, 2048, 256, Lengths::Falling, first(10), 2048),
            (128, 2048, 128, Lengths::Unknown, Order::Problems, 2048),
            (128, 2048, 128, Lengths::Even, Order::Problems, 132),
            (4, 1024, 128, Lengths::Even, Order::Problems, 32),
            (85, 2048, 128, Lengths::Falling, first(18), 1360),
            (32, 8192, 128, Lengths::Falling, first(6), 2048),
            (16, 8192, 256, Lengths::Falling, first(16), 2048),
            (16, 8192, 256, Lengths::Unknown, first(16), 2048),
        ] {
            assert_eq!(
                of(batch, keys, depth, lengths),
                (order, ctas),
                "{batch} {keys} {depth}"
            );
        }
    }

    #[test]
    fn narrow_heads_hold_keys_and_wide_ones_share_columns() {
        let chip = chip("sm_90a").expect("a chip");
        let of = |depth, columns| {
            let problem = Problem {
                batch: 8,
                rows: 512,
                keys: 512,
                depth,
                columns,
                group: 1,
                lengths: Lengths::Even,
                more: 0,
            };
            let own = problem.config(chip).expect("fits");
            (own.split, own.held, own.stages, own.gradient_stages)
        };
        for (depth, columns) in [(16, 16), (64, 64), (80, 64), (64, 96)] {
            let expected = (Split::Keys, true, 2, 2);
            assert_eq!(of(depth, columns), expected, "{depth} {columns}");
        }
        for (depth, columns) in [(80, 80), (96, 96), (128, 128), (160, 64)] {
            let expected = (Split::Keys, false, 2, 2);
            assert_eq!(of(depth, columns), expected, "{depth} {columns}");
        }
        for (depth, columns) in [(192, 128), (192, 192), (16, 256)] {
            assert_eq!(
                of(depth, columns),
                (Split::Columns, false, 2, 2),
                "{depth} {columns}"
            );
        }
        assert_eq!(of(256, 256), (Split::Columns, false, 2, 1));
    }
}
