//! `result[M, N] = lhs rhs`, of any size.
//!
//! The result is cut into blocks that stay in SBUF while K streams by in blocks of its own, each loaded while the one
//! before is multiplied. A tile of 128 rows of a block sums up a block of K in PSUM, all columns side by side in banks of
//! 512; where K has several blocks, their sums are added in SBUF, in f32, by the vector engine. Where K is one block,
//! columns of the right operand stay in SBUF while all rows of the left one stream by.

use super::graph::{Form, Graph, Id, Kind};
use super::operand::{Operand, Order};
use super::values::{Area, Values, matrix, stored};
use super::{Declined, Part, chip, parts, rows};
use crate::facts::chip::{Chip, Engine};
use crate::facts::memory::{BANK_BYTES, MOVING_COLUMNS, PARTITIONS, PSUM_BYTES};
use crate::program::build::Tile;
use crate::program::{Alu, Builder, Expr, Program, Space, View};
use crate::{place, rules, time};
use axe_package::dtype::DType;
use std::collections::HashMap;

/// Banks of PSUM.
const BANKS: i64 = PSUM_BYTES / BANK_BYTES;
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

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Rows of a block of the result: a multiple of 128.
    pub m: i64,
    /// Columns of it: a multiple of 512, 2048 at most.
    pub n: i64,
    /// Depth of a block of K: a multiple of 128.
    pub k: i64,
    /// Where K has several blocks: whether the first and the last stand outside of the loop over them, which saves
    /// setting sums to 0 and a copy of them, and takes operand tiles of their own. Where K is one block: whether the first
    /// rows stand outside of the loop over rows, their tiles side by side.
    pub peeled: bool,
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
        let Blocks { m, n, k, .. } = blocks;
        let multiple = |value: i64, unit: i64| value > 0 && value % unit == 0;
        if !multiple(m, PARTITIONS)
            || !multiple(k, PARTITIONS)
            || !multiple(n, MOVING_COLUMNS)
            || n > 4 * MOVING_COLUMNS
        {
            return Err(Declined::Invalid(format!(
                "blocks of {m} x {k} x {n}: expected multiples of 128, 128 and 512, and at most 2048 columns"
            )));
        }
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

    fn program(&self, name: &str, chip: &'static Chip, blocks: Blocks) -> Program {
        let Matmul {
            sizes: [m, k, n],
            lhs,
            rhs,
            inputs,
            ..
        } = self.matmul;
        let mut b = Builder::new(name, chip.name);
        let mut operand = |at: usize, name, order: Order, columns| {
            let [rows, width] = order.shape(k, columns);
            let (count, batch_rows) = match self.shared[at] {
                true => (1, 0),
                false => (self.batch, rows),
            };
            Operand {
                name,
                tensor: b.input(name, &[count * rows, width], inputs),
                batch_rows,
                order,
                dtype: inputs,
            }
        };
        let (lhs, rhs) = (operand(0, "lhs", lhs, m), operand(1, "rhs", rhs, n));
        let tensors = rows::declared(&mut b, &self.graph);
        let results = self.graph.outputs.iter().map(|(tensor, _)| {
            let shape = rows::shape(&self.graph, tensor.kind);
            b.output(&tensor.name, &shape, stored(tensor.dtype))
        });
        let results = results.collect();
        let turned = [&lhs, &rhs]
            .iter()
            .filter(|operand| operand.turned_by_products(chip))
            .count();
        let kernel = Kernel {
            chip,
            lhs,
            rhs,
            graph: &self.graph,
            tensors,
            results,
            rows: m,
            depth: k,
            blocks,
            // Each operand that the tensor engine transposes has two banks.
            banks: BANKS - 2 * turned as i64,
        };
        let all = |b: &mut Builder, batch: &Expr| {
            parts(b, "n", (&0.into(), n, blocks.n), &mut |b, columns| {
                let lasting = rows::columns(b, &self.graph, &kernel.tensors, &columns.range());
                let at = At {
                    batch: batch.clone(),
                    rhs: (k <= blocks.k).then(|| kernel.resident(b, batch, &columns)),
                    lasting,
                };
                // The first rows wait for what stays: their tiles take in each chunk as it comes.
                let together = at.rhs.is_some() && blocks.peeled;
                let first = if together { m.min(blocks.m) } else { 0 };
                if together {
                    kernel.first(b, &at, first, &columns);
                }
                parts(
                    b,
                    "m",
                    (&first.into(), m - first, blocks.m),
                    &mut |b, rows| {
                        kernel.block(b, &at, &rows, &columns);
                    },
                );
            });
        };
        match self.batch {
            1 => all(&mut b, &0.into()),
            batch => b.repeat("batch", 0, batch, 1, |b, index| all(b, &index)),
        }
        b.finish()
    }
}

/// Where blocks are.
struct At {
    /// The product of the batch.
    batch: Expr,
    /// The right operand's columns over all of K, where they stay for all rows.
    rhs: Option<Tile>,
    /// Values with an element a column.
    lasting: HashMap<Id, Tile>,
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

    /// Blocks to compare; of those that reach beyond the product in a dimension, the first alone.
    fn candidates(&self) -> Vec<Blocks> {
        let [rows, depth, columns] = self.sizes;
        let upto = |size: i64, of: &[i64]| -> Vec<i64> {
            let enough = of.iter().position(|block| *block >= size);
            of.iter()
                .take(enough.map_or(of.len(), |at| at + 1))
                .copied()
                .collect()
        };
        let mut all = Vec::new();
        // Columns that stay over all of K while rows stream by.
        let whole = (depth + PARTITIONS - 1) / PARTITIONS * PARTITIONS;
        for m in upto(rows, &[128, 256, 512]) {
            for n in upto(columns, &[512, 1024, 1536, 2048]) {
                let with = |peeled| Blocks {
                    m,
                    n,
                    k: whole,
                    peeled,
                };
                all.extend([true, false].map(with));
            }
        }
        for m in upto(rows, &[1024, 2048]) {
            for n in upto(columns, &[1024, 2048]) {
                for k in [384, 512, 1024, 2048].into_iter().filter(|k| *k < depth) {
                    let with = |peeled| Blocks { m, n, k, peeled };
                    all.extend([true, false].map(with));
                }
            }
        }
        all
    }
}

/// What all blocks share.
struct Kernel<'a> {
    chip: &'static Chip,
    lhs: Operand,
    rhs: Operand,
    graph: &'a Graph,
    /// The graph's inputs.
    tensors: Vec<Tile>,
    /// What is stored.
    results: Vec<Tile>,
    /// M.
    rows: i64,
    /// K.
    depth: i64,
    blocks: Blocks,
    /// Banks of PSUM for sums.
    banks: i64,
}

/// What becomes of the sums of a block of K.
#[derive(Clone, Copy)]
enum Sums<'a> {
    /// They are all: to the result.
    All,
    /// The first ones: kept.
    First(&'a Tile),
    /// Added to those that are kept.
    Middle(&'a Tile),
    /// Added to those that are kept, to the result.
    Last(&'a Tile),
}

impl Kernel<'_> {
    /// A block of the result.
    fn block(&self, b: &mut Builder, at: &At, rows: &Part, columns: &Part) {
        let (depth, unit) = (self.depth, self.blocks.k);
        if depth <= unit {
            return self.products(b, at, (&0.into(), depth), rows, columns, Sums::All);
        }
        let tiles = (rows.size + PARTITIONS - 1) / PARTITIONS;
        let shape = [rows.size.min(PARTITIONS), tiles, columns.size];
        let sums = b.tile("sums", Space::Sbuf, &shape, DType::F32, 1);
        if self.blocks.peeled {
            self.peeled(b, at, rows, columns, &sums);
        } else {
            self.rolled(b, at, rows, columns, &sums);
        }
    }

    /// Columns of the right operand over all of K.
    fn resident(&self, b: &mut Builder, batch: &Expr, columns: &Part) -> Tile {
        let tile = self.rhs.tile(b, self.depth, columns.size, 1);
        let (k, range) = ((&0.into(), self.depth), (&columns.at, columns.size));
        match self.rhs.order {
            Order::KMinor => self.rhs.load_turned(b, self.chip, &tile, batch, k, range),
            Order::KMajor => parts(b, "kr", (k.0, k.1, PARTITIONS), &mut |b, chunk| {
                self.rhs
                    .load_chunk(b, &tile, batch, &chunk, columns.range());
            }),
        }
        tile
    }

    /// The first rows of a block of columns that stays: tiles side by side in PSUM, as many as there are banks for.
    fn first(&self, b: &mut Builder, at: &At, size: i64, columns: &Part) {
        let rows = Part {
            at: 0.into(),
            index: 0.into(),
            size,
        };
        let lhs = self.lhs.tile(b, self.depth, size, 2);
        self.load(b, at, (&0.into(), self.depth), &[(&self.lhs, &lhs, &rows)]);
        let Some(rhs) = &at.rhs else { return };
        let banks = (columns.size + MOVING_COLUMNS - 1) / MOVING_COLUMNS;
        let together = (self.banks / banks).max(1) * PARTITIONS;
        for begin in (0..size).step_by(together as usize) {
            let end = size.min(begin + together);
            let tiles: Vec<(Part, Tile)> = (begin..end)
                .step_by(PARTITIONS as usize)
                .map(|at| {
                    let part = Part {
                        at: at.into(),
                        index: (at / PARTITIONS).into(),
                        size: PARTITIONS.min(end - at),
                    };
                    let shape = [part.size, columns.size];
                    let psum = b.tile("psum", Space::Psum, &shape, DType::F32, 1);
                    (part, psum)
                })
                .collect();
            parts(
                b,
                "kf",
                (&0.into(), self.depth, PARTITIONS),
                &mut |b, chunk| {
                    for (tile, psum) in &tiles {
                        self.multiply(b, psum, [&lhs, rhs], &chunk, tile, columns.size);
                    }
                },
            );
            for (tile, psum) in &tiles {
                self.store(b, at, psum, tile, &rows, columns, Sums::All);
            }
        }
    }

    fn peeled(&self, b: &mut Builder, at: &At, rows: &Part, columns: &Part, sums: &Tile) {
        let (depth, unit) = (self.depth, self.blocks.k);
        self.products(b, at, (&0.into(), unit), rows, columns, Sums::First(sums));
        let last = (depth - 1) / unit;
        match last {
            1 => {}
            2 => self.products(
                b,
                at,
                (&unit.into(), unit),
                rows,
                columns,
                Sums::Middle(sums),
            ),
            _ => b.repeat("k", 1, last, 1, |b, k| {
                self.products(
                    b,
                    at,
                    (&k.times(unit), unit),
                    rows,
                    columns,
                    Sums::Middle(sums),
                );
            }),
        }
        let begin = last * unit;
        self.products(
            b,
            at,
            (&begin.into(), depth - begin),
            rows,
            columns,
            Sums::Last(sums),
        );
    }

    fn rolled(&self, b: &mut Builder, at: &At, rows: &Part, columns: &Part, sums: &Tile) {
        let tiles = |b: &mut Builder, name: &str, fill: &mut dyn FnMut(&mut Builder, Part)| {
            parts(b, name, (&0.into(), rows.size, PARTITIONS), fill);
        };
        tiles(b, "mz", &mut |b, tile| {
            b.memset(kept(sums, &tile, columns), 0.0)
        });
        parts(
            b,
            "k",
            (&0.into(), self.depth, self.blocks.k),
            &mut |b, k| {
                self.products(b, at, (&k.at, k.size), rows, columns, Sums::Middle(sums));
            },
        );
        tiles(b, "ms", &mut |b, tile| {
            self.finish(b, at, (None, Some(sums)), &tile, rows, columns);
        });
    }

    /// The products of a block of K.
    fn products(
        &self,
        b: &mut Builder,
        at: &At,
        (k0, k): (&Expr, i64),
        rows: &Part,
        columns: &Part,
        sums: Sums<'_>,
    ) {
        let lhs = self.lhs.tile(b, k, rows.size, 2);
        let rhs = match &at.rhs {
            Some(resident) => resident.clone(),
            None => self.rhs.tile(b, k, columns.size, 2),
        };
        let mut loaded = vec![(&self.lhs, &lhs, rows)];
        if at.rhs.is_none() {
            loaded.push((&self.rhs, &rhs, columns));
        }
        self.load(b, at, (k0, k), &loaded);
        parts(
            b,
            "mt",
            (&0.into(), rows.size, PARTITIONS),
            &mut |b, tile| {
                let summed = self.sum(b, [&lhs, &rhs], k, &tile, columns.size);
                self.store(b, at, &summed, &tile, rows, columns, sums);
            },
        );
    }

    /// Loads operands of a block of K, transposed where they lie the other way.
    fn load(
        &self,
        b: &mut Builder,
        at: &At,
        (k0, k): (&Expr, i64),
        loaded: &[(&Operand, &Tile, &Part)],
    ) {
        let (turned, direct): (Vec<_>, Vec<_>) = loaded
            .iter()
            .partition(|(operand, ..)| operand.order == Order::KMinor);
        for (operand, to, part) in turned {
            operand.load_turned(b, self.chip, to, &at.batch, (k0, k), (&part.at, part.size));
        }
        if !direct.is_empty() {
            // Chunk by chunk, so that the first products need not wait for the last chunk.
            parts(b, "load", (k0, k, PARTITIONS), &mut |b, chunk| {
                for (operand, to, part) in &direct {
                    operand.load_chunk(b, to, &at.batch, &chunk, part.range());
                }
            });
        }
    }

    /// Adds the products of a chunk of K to the sums of a tile of rows, bank by bank.
    fn multiply(
        &self,
        b: &mut Builder,
        psum: &Tile,
        [lhs, rhs]: [&Tile; 2],
        chunk: &Part,
        tile: &Part,
        columns: i64,
    ) {
        for begin in (0..columns).step_by(MOVING_COLUMNS as usize) {
            let size = MOVING_COLUMNS.min(columns - begin);
            let of_chunk = |operand: &Tile, range| {
                operand.part([(0.into(), chunk.size), (chunk.index.clone(), 1), range])
            };
            b.matmul(
                psum.part([(0.into(), tile.size), (begin.into(), size)]),
                of_chunk(lhs, tile.range()),
                of_chunk(rhs, (begin.into(), size)),
            );
        }
    }

    /// Sums of one tile of rows in PSUM.
    fn sum(
        &self,
        b: &mut Builder,
        [lhs, rhs]: [&Tile; 2],
        k: i64,
        tile: &Part,
        columns: i64,
    ) -> Tile {
        let banks = (columns + MOVING_COLUMNS - 1) / MOVING_COLUMNS;
        let copies = (self.banks / banks).clamp(1, 4);
        let psum = b.tile(
            "psum",
            Space::Psum,
            &[tile.size, columns],
            DType::F32,
            copies,
        );
        parts(b, "kt", (&0.into(), k, PARTITIONS), &mut |b, chunk| {
            self.multiply(b, &psum, [lhs, rhs], &chunk, tile, columns);
        });
        psum
    }

    #[allow(clippy::too_many_arguments)] // where a tile is, in three loops
    fn store(
        &self,
        b: &mut Builder,
        at: &At,
        psum: &Tile,
        tile: &Part,
        rows: &Part,
        columns: &Part,
        sums: Sums<'_>,
    ) {
        match sums {
            Sums::First(sums) => b.copy(kept(sums, tile, columns), psum.all()),
            Sums::Middle(sums) => {
                let into = || kept(sums, tile, columns);
                b.tensor_tensor(into(), into(), psum.all(), Alu::Add);
            }
            Sums::All => self.finish(b, at, (Some(psum), None), tile, rows, columns),
            Sums::Last(sums) => self.finish(b, at, (Some(psum), Some(sums)), tile, rows, columns),
        }
    }

    /// Forms what is stored of the sums of a tile of rows: of PSUM, of those that are kept, or of both.
    fn finish(
        &self,
        b: &mut Builder,
        at: &At,
        (psum, sums): (Option<&Tile>, Option<&Tile>),
        tile: &Part,
        rows: &Part,
        columns: &Part,
    ) {
        let outs: Vec<Tile> = (self.graph.outputs.iter())
            .map(|(tensor, _)| {
                let shape = [tile.size, columns.size];
                b.tile("out", Space::Sbuf, &shape, stored(tensor.dtype), 2)
            })
            .collect();
        let product = at.batch.clone().times(self.rows);
        let row = product.plus(rows.at.clone()).plus(tile.at.clone());
        // Temporaries are as wide as a bank; a conversion alone needs none.
        let unit = match self.plain() {
            true => columns.size,
            false => MOVING_COLUMNS,
        };
        for begin in (0..columns.size).step_by(unit.max(1) as usize) {
            let piece = (Expr::from(begin), unit.min(columns.size - begin));
            let area = Area {
                rows: (row.clone(), tile.size),
                columns: (columns.at.clone().plus(begin), piece.1),
            };
            let mut values = Values::new(self.graph, &self.tensors, area, 2);
            for (id, column) in &at.lasting {
                values.know(*id, matrix(column, &(0.into(), tile.size), &piece));
            }
            let parts = [
                psum.map(|psum| matrix(psum, &(0.into(), tile.size), &piece)),
                sums.map(|sums| kept_piece(sums, tile, &piece)),
            ];
            self.settle(b, &mut values, parts, (tile, &piece), &outs);
        }
        for (result, out) in self.results.iter().zip(&outs) {
            b.dma_copy(
                result.part([(row.clone(), tile.size), columns.range()]),
                out.all(),
            );
        }
    }

    /// The value that is stored where that is the sums alone, in some type.
    fn plain(&self) -> bool {
        let is_sums = |id: Id| match self.graph.node(id).form {
            Form::Product => true,
            Form::Cast(of) => matches!(self.graph.node(of).form, Form::Product),
            _ => false,
        };
        self.graph.outputs.iter().all(|(_, id)| is_sums(*id))
    }

    /// Forms a piece of what is stored.
    fn settle(
        &self,
        b: &mut Builder,
        values: &mut Values<'_>,
        parts: [Option<View>; 2],
        (tile, piece): (&Part, &(Expr, i64)),
        outs: &[Tile],
    ) {
        let out = |at: usize| matrix(&outs[at], &(0.into(), tile.size), piece);
        let sums = match parts {
            [Some(psum), Some(kept)] if self.plain() && outs.len() == 1 => {
                return b.tensor_tensor(out(0), kept, psum, Alu::Add);
            }
            [Some(psum), Some(kept)] => {
                let whole = b.tile("sum", Space::Sbuf, &[tile.size, piece.1], DType::F32, 2);
                b.tensor_tensor(whole.all(), kept, psum, Alu::Add);
                whole.all()
            }
            [Some(one), None] | [None, Some(one)] => one,
            [None, None] => return,
        };
        if let Some(id) = self.graph.product_id() {
            values.know(id, sums.clone());
        }
        for (at, (_, id)) in self.graph.outputs.iter().enumerate() {
            match self.plain() {
                true => b.copy(out(at), sums.clone()),
                false => {
                    values.value_in(b, *id, Some(out(at)));
                }
            }
        }
    }
}

/// A piece of the sums of a tile of rows.
fn kept_piece(sums: &Tile, tile: &Part, piece: &(Expr, i64)) -> View {
    sums.part([
        (0.into(), tile.size),
        (tile.index.clone(), 1),
        piece.clone(),
    ])
}

/// The sums of a tile of rows.
fn kept(sums: &Tile, tile: &Part, columns: &Part) -> View {
    sums.part([
        (0.into(), tile.size),
        (tile.index.clone(), 1),
        (0.into(), columns.size),
    ])
}
