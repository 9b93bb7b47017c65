//! `result[M, N] = lhs rhs`, of any size.
//!
//! The result is cut into blocks that stay in SBUF while K streams by in blocks of its own, each loaded while the one
//! before is multiplied. A tile of 128 rows of a block sums up a block of K in PSUM, all columns side by side in banks of
//! 512; where K has several blocks, their sums are added in SBUF, in f32, by the vector engine.

use super::operand::{Operand, Order};
use super::{Declined, Part, chip, parts};
use crate::facts::chip::{Chip, Engine};
use crate::facts::memory::{BANK_BYTES, MOVING_COLUMNS, PARTITIONS, PSUM_BYTES};
use crate::program::build::Tile;
use crate::program::{Alu, Builder, Expr, Program, Space, View};
use crate::{place, rules, time};
use axe_package::dtype::DType;

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
    /// setting sums to 0 and a copy of them, and takes operand tiles of their own.
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
        let chip = chip(chip_name)?;
        self.check()?;
        let compared = Self {
            sizes: self.sizes.map(|size| size.min(COMPARED)),
            ..*self
        };
        let mut best: Option<(f64, Blocks)> = None;
        let mut why = None;
        for blocks in self.candidates() {
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
        for m in upto(rows, &[1024, 2048]) {
            for n in upto(columns, &[1024, 2048]) {
                for k in upto(depth, &[384, 512, 1024, 2048]) {
                    let blocks = Blocks {
                        m,
                        n,
                        k,
                        peeled: true,
                    };
                    all.push(blocks);
                    if k < depth {
                        all.push(Blocks {
                            peeled: false,
                            ..blocks
                        });
                    }
                }
            }
        }
        all
    }

    fn program(&self, name: &str, chip: &'static Chip, blocks: Blocks) -> Program {
        let [m, k, n] = self.sizes;
        let mut b = Builder::new(name, chip.name);
        let mut operand = |name, order: Order, columns| Operand {
            name,
            tensor: b.input(name, &order.shape(k, columns), self.inputs),
            order,
            dtype: self.inputs,
        };
        let (lhs, rhs) = (operand("lhs", self.lhs, m), operand("rhs", self.rhs, n));
        let result = b.output("result", &[m, n], self.output);
        let turned = [&lhs, &rhs]
            .iter()
            .filter(|operand| operand.turned_by_products(chip))
            .count();
        let kernel = Kernel {
            chip,
            lhs,
            rhs,
            result,
            output: self.output,
            depth: k,
            blocks,
            // Each operand that the tensor engine transposes has two banks.
            banks: BANKS - 2 * turned as i64,
        };
        parts(&mut b, "n", (&0.into(), n, blocks.n), &mut |b, columns| {
            parts(b, "m", (&0.into(), m, blocks.m), &mut |b, rows| {
                kernel.block(b, &rows, &columns)
            });
        });
        b.finish()
    }
}

/// What all blocks share.
struct Kernel {
    chip: &'static Chip,
    lhs: Operand,
    rhs: Operand,
    result: Tile,
    output: DType,
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

impl Kernel {
    /// A block of the result.
    fn block(&self, b: &mut Builder, rows: &Part, columns: &Part) {
        let (depth, unit) = (self.depth, self.blocks.k);
        if depth <= unit {
            return self.products(b, (&0.into(), depth), rows, columns, Sums::All);
        }
        let tiles = (rows.size + PARTITIONS - 1) / PARTITIONS;
        let shape = [rows.size.min(PARTITIONS), tiles, columns.size];
        let sums = b.tile("sums", Space::Sbuf, &shape, DType::F32, 1);
        if self.blocks.peeled {
            self.peeled(b, rows, columns, &sums);
        } else {
            self.rolled(b, rows, columns, &sums);
        }
    }

    fn peeled(&self, b: &mut Builder, rows: &Part, columns: &Part, sums: &Tile) {
        let (depth, unit) = (self.depth, self.blocks.k);
        self.products(b, (&0.into(), unit), rows, columns, Sums::First(sums));
        let last = (depth - 1) / unit;
        match last {
            1 => {}
            2 => self.products(b, (&unit.into(), unit), rows, columns, Sums::Middle(sums)),
            _ => b.repeat("k", 1, last, 1, |b, k| {
                self.products(b, (&k.times(unit), unit), rows, columns, Sums::Middle(sums));
            }),
        }
        let begin = last * unit;
        self.products(
            b,
            (&begin.into(), depth - begin),
            rows,
            columns,
            Sums::Last(sums),
        );
    }

    fn rolled(&self, b: &mut Builder, rows: &Part, columns: &Part, sums: &Tile) {
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
                self.products(b, (&k.at, k.size), rows, columns, Sums::Middle(sums));
            },
        );
        tiles(b, "ms", &mut |b, tile| {
            let out = self.out(b, &tile, columns);
            b.copy(out.all(), kept(sums, &tile, columns));
            self.write(b, &out, &tile, rows, columns);
        });
    }

    /// The products of a block of K.
    fn products(
        &self,
        b: &mut Builder,
        (k0, k): (&Expr, i64),
        rows: &Part,
        columns: &Part,
        sums: Sums<'_>,
    ) {
        let lhs = self.lhs.tile(b, k, rows.size);
        let rhs = self.rhs.tile(b, k, columns.size);
        for (operand, to, part) in [(&self.lhs, &lhs, rows), (&self.rhs, &rhs, columns)] {
            if operand.order == Order::KMinor {
                operand.load_turned(b, self.chip, to, (k0, k), (&part.at, part.size));
            }
        }
        let direct = |operand: &Operand| operand.order == Order::KMajor;
        if direct(&self.lhs) || direct(&self.rhs) {
            // Chunk by chunk, so that the first products need not wait for the last chunk.
            parts(b, "load", (k0, k, PARTITIONS), &mut |b, chunk| {
                for (operand, to, part) in [(&self.lhs, &lhs, rows), (&self.rhs, &rhs, columns)] {
                    if direct(operand) {
                        operand.load_chunk(b, to, &chunk, part.range());
                    }
                }
            });
        }
        parts(
            b,
            "mt",
            (&0.into(), rows.size, PARTITIONS),
            &mut |b, tile| {
                let summed = self.sum(b, [&lhs, &rhs], k, &tile, columns.size);
                self.store(b, &summed, &tile, rows, columns, sums);
            },
        );
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
        });
        psum
    }

    fn store(
        &self,
        b: &mut Builder,
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
            Sums::All => {
                let out = self.out(b, tile, columns);
                b.copy(out.all(), psum.all());
                self.write(b, &out, tile, rows, columns);
            }
            Sums::Last(sums) => {
                let out = self.out(b, tile, columns);
                b.tensor_tensor(out.all(), kept(sums, tile, columns), psum.all(), Alu::Add);
                self.write(b, &out, tile, rows, columns);
            }
        }
    }

    /// A tile of the result.
    fn out(&self, b: &mut Builder, tile: &Part, columns: &Part) -> Tile {
        b.tile(
            "out",
            Space::Sbuf,
            &[tile.size, columns.size],
            self.output,
            2,
        )
    }

    fn write(&self, b: &mut Builder, out: &Tile, tile: &Part, rows: &Part, columns: &Part) {
        let at = rows.at.clone().plus(tile.at.clone());
        b.dma_copy(
            self.result.part([(at, tile.size), columns.range()]),
            out.all(),
        );
    }
}

/// The sums of a tile of rows.
fn kept(sums: &Tile, tile: &Part, columns: &Part) -> View {
    sums.part([
        (0.into(), tile.size),
        (tile.index.clone(), 1),
        (0.into(), columns.size),
    ])
}
