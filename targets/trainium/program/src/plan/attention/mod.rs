//! Attention forward, `softmax(scale * q k^T) v`, in one kernel.
//!
//! Two passes over the keys for 512 queries. The first has queries on the partitions, and finds the largest score of each.
//! The second has keys on the partitions: the negated largest scores are one more row of what is contracted, so that scores
//! leave PSUM through `exp` as the stationary operand of the product with the values, and no transpose stands in between.
//! A column of ones beside the values sums up the weights. Scores are computed twice, and nothing is rescaled; the first
//! pass of the next queries is on the vector engine while the second pass of these is on the scalar engine.
//!
//! What is subtracted is the largest score rounded to bf16, the same in weights and sums: results do not change, and
//! `scale` times the largest score may be up to some 2^13 before its rounding is beyond what sums hold.

mod buffers;
mod first;
mod load;
mod loops;
mod schedule;
mod second;
mod steps;
mod tensor;

pub use tensor::{Digit, Strided, Tensors};

use super::operand::Order;
use super::{Declined, chip};
use crate::facts::chip::{Chip, Engine};
use crate::facts::memory::PARTITIONS;
use crate::program::Program;
use crate::{place, rules, time};
use axe_package::DType;

/// Largest extent: positions in tensors stay far inside of 64 bits.
const MAX_EXTENT: i64 = 1 << 24;

/// Attention of several heads, each of its own queries, keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Heads of all batches.
    pub heads: i64,
    /// Queries of a head.
    pub queries: i64,
    /// Keys of a head.
    pub keys: i64,
    /// Elements of a query, of a key and of a value: 128 at most.
    pub dim: i64,
    /// How queries lie: `[dim, queries]` (K-major) or `[queries, dim]`.
    pub q: Order,
    /// How keys lie: `[dim, keys]` (K-major) or `[keys, dim]`. Values are `[keys, dim]`, results `[queries, dim]`.
    pub k: Order,
    /// The type of all: bf16 or f16. Statistics and sums are f32.
    pub dtype: DType,
    /// What scores are multiplied with: positive.
    pub scale: f64,
    /// Whether query `i` sees keys up to `i` alone.
    pub causal: bool,
}

/// How far the streams of a kernel are apart ([`schedule`]).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    /// Tiles of scores between the end of a first pass and the second one of the same step.
    slack: i64,
    /// Chunks of keys whose weights are formed, that of which is used included.
    chunks: i64,
}

impl Pace {
    /// Those that are compared; the first one where steps are long, and it does not matter much.
    const ALL: [Self; 4] = [
        Self {
            slack: 28,
            chunks: 3,
        },
        Self {
            slack: 36,
            chunks: 3,
        },
        Self {
            slack: 44,
            chunks: 3,
        },
        Self {
            slack: 28,
            chunks: 4,
        },
    ];
}

/// Attention at a pace.
#[derive(Clone, Copy, Debug)]
struct Paced {
    attention: Attention,
    pace: Pace,
}

impl std::ops::Deref for Paced {
    type Target = Attention;

    fn deref(&self) -> &Attention {
        &self.attention
    }
}

/// Tiles of scores of a head up to which paces are compared.
const SHORT: i64 = 1100;
/// Heads on which they are compared.
const FEW_HEADS: i64 = 6;

impl Attention {
    /// The program, of heads one below the other in memory.
    ///
    /// # Errors
    /// Extents below 1 or above 2^24, more than 128 elements a head, other types, a scale that is not positive, causal
    /// attention of other numbers of queries and keys, a chip that is not known; keys of a head that do not fit SBUF.
    pub fn plan(&self, name: &str, chip_name: &str) -> Result<Program, Declined> {
        self.plan_of(name, chip_name, &Tensors::below(self))
    }

    /// The program, of tensors that lie anyhow.
    ///
    /// # Errors
    /// As [`Self::plan`]; tensors that are not of these heads, or whose rows no transfer reads.
    pub fn plan_of(
        &self,
        name: &str,
        chip_name: &str,
        tensors: &Tensors,
    ) -> Result<Program, Declined> {
        let chip = chip(chip_name)?;
        self.check()?;
        if let Some(why) = tensors.declined(self) {
            return Err(Declined::Invalid(why));
        }
        let (needed, room) = (self.head_bytes(), chip.sbuf_bytes);
        if needed > room {
            return Err(Declined::DoesNotFit(format!(
                "'kt' and 'values' of a head do not fit sbuf: {room} bytes a partition, {needed} are needed"
            )));
        }
        let pace = match self.head_work() {
            ..=SHORT => self.quickest(chip),
            _ => Pace::ALL[0],
        };
        let program = steps::program(&self.paced(pace), tensors, name, chip);
        if let Some(violation) = rules::check(&program).into_iter().next() {
            return Err(Declined::Invalid(violation.to_string()));
        }
        place::place(&program, chip).map_err(|error| Declined::DoesNotFit(error.to_string()))?;
        Ok(program)
    }

    const fn paced(&self, pace: Pace) -> Paced {
        Paced {
            attention: *self,
            pace,
        }
    }

    /// The pace that the cost model finds fastest for a few heads.
    fn quickest(&self, chip: &Chip) -> Pace {
        let few = Self {
            heads: self.heads.min(FEW_HEADS),
            ..*self
        };
        let tensors = Tensors::below(&few);
        let timed = Pace::ALL.into_iter().filter_map(|pace| {
            let program = steps::program(&few.paced(pace), &tensors, "compared", chip);
            let timing = time::simulate(&program).ok()?;
            Some((timing.seconds, pace))
        });
        let best = timed.min_by(|(a, _), (b, _)| a.total_cmp(b));
        best.map_or(Pace::ALL[0], |(_, pace)| pace)
    }

    fn check(&self) -> Result<(), Declined> {
        let refuse = |why: String| Err(Declined::Invalid(why));
        let extents = [self.heads, self.queries, self.keys, self.dim];
        if extents
            .iter()
            .any(|extent| !(1..=MAX_EXTENT).contains(extent))
        {
            return refuse(format!(
                "attention of {} heads, {} queries, {} keys, {} elements each: expected extents from 1 to {MAX_EXTENT}",
                self.heads, self.queries, self.keys, self.dim
            ));
        }
        if self.dim > PARTITIONS {
            return refuse(format!(
                "attention of {} elements a head: expected at most {PARTITIONS}, which lie on the partitions",
                self.dim
            ));
        }
        if !matches!(self.dtype, DType::BF16 | DType::F16) {
            return refuse(format!("attention of {}: expected bf16 or f16", self.dtype));
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return refuse(format!(
                "a scale of {}: expected a positive one",
                self.scale
            ));
        }
        if self.causal && self.queries != self.keys {
            return refuse(format!(
                "causal attention of {} queries and {} keys: expected as many keys as queries",
                self.queries, self.keys
            ));
        }
        Ok(())
    }

    /// Whether what is subtracted is a product of its own, and no row beside queries: where no partition is left, or where
    /// their type does not reach as far as scores do.
    fn has_own_row(&self) -> bool {
        self.row() + buffers::TILES > PARTITIONS || self.dtype != DType::BF16
    }

    /// The partition after the elements of a head at which one row may begin.
    const fn row(&self) -> i64 {
        (self.dim + 31) / 32 * 32
    }

    /// Tiles of 128 x 128 scores that some query sees.
    fn tiles(&self) -> i64 {
        let tiles = |size: i64| (size + PARTITIONS - 1) / PARTITIONS;
        let (rows, columns) = (tiles(self.queries), tiles(self.keys));
        match self.causal {
            true => self.heads * rows * (rows + 1) / 2,
            false => self.heads * rows * columns,
        }
    }
}

/// The least seconds that the busiest of the tensor, vector and scalar engines needs, and of the port to PSUM where the last
/// two share it: for each tile of 128 x 128 scores two products of q and k, one with the row that is subtracted where it is
/// no row of q, one with v; one maximum; one `exp`. Loads, transposes and the quotient at the end are not in it.
#[must_use]
pub fn attention_bound(attention: &Attention, chip: &Chip) -> f64 {
    let seconds = |engine, cycles: i64| match chip.clock(engine) {
        Some(clock) => (attention.tiles() * cycles) as f64 / clock,
        None => 0.0,
    };
    let scores = if attention.has_own_row() { 3 } else { 2 } * PARTITIONS;
    let tensor = seconds(Engine::Tensor, scores + (attention.dim + 1).max(64));
    let vector = seconds(Engine::Vector, PARTITIONS);
    let scalar = seconds(Engine::Scalar, PARTITIONS);
    match chip.shares_ports {
        true => tensor.max(vector + scalar),
        false => tensor.max(vector).max(scalar),
    }
}
