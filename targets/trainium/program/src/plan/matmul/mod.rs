//! `result[M, N] = lhs rhs`, of any size.
//!
//! The result is cut into blocks that stay in SBUF while K streams by in blocks of its own, each loaded while the one
//! before is multiplied. A tile of 128 rows of a block sums up a block of K in PSUM, all columns side by side in banks of
//! 512; where K has several blocks, their sums are added in SBUF, in f32, by the vector engine. Where K is one block,
//! columns of the right operand stay in SBUF while all rows of the left one stream by. The first rows of all have blocks of
//! K of their own, small ones, as nothing is multiplied before one is there.

mod blocks;
mod epilogue;
mod kernel;
mod stream;
mod sums;

pub use blocks::{Blocks, Lead};

use super::graph::{Graph, Kind};
use super::operand::Order;
use super::{Declined, chip, rows};
use crate::facts::chip::{Chip, Engine};
use crate::facts::memory::{MOVING_COLUMNS, PARTITIONS};
use crate::program::Program;
use crate::{place, rules, time};
use axe_package::DType;

/// Largest extent: positions in tensors stay far inside of 64 bits.
const MAX_EXTENT: i64 = 1 << 24;
/// Candidates are compared on sizes of at most so much: more repeats the same.
const COMPARED: i64 = 4096;

/// A product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul {
    /// M, K, N.
    pub sizes: [i64; 3],
    /// How the left operand lies: `[K, M]` or `[M, K]`.
    pub lhs: Order,
    /// How the right operand lies: `[K, N]` or `[N, K]`.
    pub rhs: Order,
    /// The type of both operands: f32, bf16 or f16.
    pub inputs: DType,
    /// The type of the result, a float; sums are f32.
    pub output: DType,
}

/// A product, or a batch of them, and what becomes of its sums before they leave the chip.
#[derive(Clone, Debug)]
pub struct Fused {
    /// One product of the batch.
    pub matmul: Matmul,
    /// How many there are, one below the other in memory.
    pub batch: i64,
    /// Whether all products of the batch have the same left and right operand.
    pub shared: [bool; 2],
    /// What is stored, over `batch * M` rows and N columns.
    pub graph: Graph,
}

/// The least seconds that the tensor engine needs: a pass of 128 x 128 for each tile, one column a cycle, 64 at least, and
/// four passes for f32.
#[must_use]
pub fn bound(matmul: &Matmul, chip: &Chip) -> f64 {
    let [m, k, n] = matmul.sizes.map(|size| size.max(0));
    let tiles = |size: i64| (size + PARTITIONS - 1) / PARTITIONS;
    let tail = n % MOVING_COLUMNS;
    let columns = n - tail + if tail > 0 { tail.max(64) } else { 0 };
    let passes = if matmul.inputs == DType::F32 {
        4.0
    } else {
        1.0
    };
    let cycles = (tiles(m) * tiles(k)) as f64 * columns as f64 * passes;
    chip.clock(Engine::Tensor)
        .map_or(0.0, |clock| cycles / clock)
}

impl Matmul {
    /// The program with the blocks that the cost model finds fastest.
    ///
    /// # Errors
    /// Sizes below 1 or above 2^24, other types, a chip that is not known; a product whose smallest block does not fit.
    pub fn plan(&self, name: &str, chip_name: &str) -> Result<Program, Declined> {
        self.alone().plan(name, chip_name)
    }

    /// The product alone: its sums are stored.
    fn alone(self) -> Fused {
        let mut graph = Graph::new(self.sizes[0], self.sizes[2]);
        let sums = graph.product();
        let value = graph.cast(sums, self.output);
        graph.output("result", Kind::Full, self.output, value);
        Fused {
            matmul: self,
            batch: 1,
            shared: [false; 2],
            graph,
        }
    }

    /// The program with given blocks, larger ones cut to the product's size.
    ///
    /// # Errors
    /// As [`Self::plan`]; blocks that are no multiples of their units, or that the rules or memories refuse.
    pub fn with_blocks(
        &self,
        name: &str,
        chip_name: &str,
        blocks: Blocks,
    ) -> Result<Program, Declined> {
        self.alone().with_blocks(name, chip_name, blocks)
    }
}

impl Fused {
    /// The program with the blocks that the cost model finds fastest.
    ///
    /// # Errors
    /// As [`Matmul::plan`]; types of what else is read or stored; a value a row that is stored.
    pub fn plan(&self, name: &str, chip_name: &str) -> Result<Program, Declined> {
        let chip = chip(chip_name)?;
        self.check()?;
        let compared = self.compared();
        let mut best: Option<(f64, Blocks)> = None;
        let mut why = None;
        for blocks in self.matmul.candidates() {
            // What fits depends on the whole product.
            if let Err(error) = place::place(&self.program(name, chip, blocks), chip) {
                why.get_or_insert_with(|| error.to_string());
                continue;
            }
            let Ok(timing) = time::simulate(&compared.program(name, chip, blocks)) else {
                continue;
            };
            if best.is_none_or(|(seconds, _)| timing.seconds < seconds) {
                best = Some((timing.seconds, blocks));
            }
        }
        let (_, blocks) = best.ok_or_else(|| {
            Declined::DoesNotFit(why.unwrap_or_else(|| "no block of the product is legal".into()))
        })?;
        Ok(self.program(name, chip, blocks))
    }

    /// The program with given blocks, larger ones cut to the product's size.
    ///
    /// # Errors
    /// As [`Self::plan`]; blocks that are no multiples of their units, or that the rules or memories refuse.
    pub fn with_blocks(
        &self,
        name: &str,
        chip_name: &str,
        blocks: Blocks,
    ) -> Result<Program, Declined> {
        let chip = chip(chip_name)?;
        self.check()?;
        blocks.check()?;
        let program = self.program(name, chip, blocks);
        if let Some(violation) = rules::check(&program).into_iter().next() {
            return Err(Declined::Invalid(violation.to_string()));
        }
        place::place(&program, chip).map_err(|error| Declined::DoesNotFit(error.to_string()))?;
        Ok(program)
    }

    /// A smaller one, whose times compare as this one's.
    fn compared(&self) -> Self {
        let sizes = self.matmul.sizes.map(|size| size.min(COMPARED));
        let mut graph = self.graph.clone();
        [graph.rows, graph.columns] = [sizes[0], sizes[2]];
        Self {
            matmul: Matmul {
                sizes,
                ..self.matmul
            },
            batch: 1,
            shared: self.shared,
            graph,
        }
    }

    fn check(&self) -> Result<(), Declined> {
        self.matmul.check()?;
        rows::check(&self.graph)?;
        let [m, _, n] = self.matmul.sizes;
        let space = [self.graph.rows, self.graph.columns];
        if !(1..=MAX_EXTENT).contains(&self.batch) || space != [self.batch * m, n] {
            return Err(Declined::Invalid(format!(
                "{} products of {m} rows and {n} columns, and a space of {space:?}",
                self.batch
            )));
        }
        let narrow = self
            .graph
            .outputs
            .iter()
            .find(|(tensor, _)| tensor.kind != Kind::Full);
        match narrow {
            Some((tensor, _)) => Err(Declined::Invalid(format!(
                "a product's kernel stores what has an element for each row and column, and '{}' has not",
                tensor.name
            ))),
            None => Ok(()),
        }
    }
}

impl Matmul {
    fn check(&self) -> Result<(), Declined> {
        if self
            .sizes
            .iter()
            .any(|size| !(1..=MAX_EXTENT).contains(size))
        {
            return Err(Declined::Invalid(format!(
                "a product of M, K, N = {:?}: expected extents from 1 to {MAX_EXTENT}",
                self.sizes
            )));
        }
        if !matches!(self.inputs, DType::F32 | DType::BF16 | DType::F16) {
            return Err(Declined::Invalid(format!(
                "expected operands of f32, bf16 or f16, got {}",
                self.inputs
            )));
        }
        if !matches!(self.output, DType::F32 | DType::BF16 | DType::F16) {
            return Err(Declined::Invalid(format!(
                "expected a result of f32, bf16 or f16, got {}",
                self.output
            )));
        }
        Ok(())
    }
}
