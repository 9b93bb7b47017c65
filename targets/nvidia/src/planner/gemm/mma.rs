//! A product whose warps all copy and multiply: `mma.sync`, and scalar multiply-adds.

use super::grid;
use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::config::Mma;
use crate::planner::epilogue::Epilogue;
use crate::planner::epilogue::by_row::Together;
use crate::planner::layouts::{Product, matrix_product, scalar_product};
use crate::planner::mainloop::mma::{Ring, Staged};
use crate::planner::mainloop::mma_scaled::Plain;
use crate::planner::mainloop::scales::BlockScales;
use crate::planner::problem::{Unit, count};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::registers;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{DYNAMIC, Val};
use melior::ir::operation::OperationLike;

/// Rows of tiles that a group of neighbouring CTAs covers, so that they share what they read in L2.
const RASTER_ROWS: i64 = 8;

/// Shared memory that reductions in an epilogue take, in bytes.
const SCRATCH_BYTES: i64 = 4096;

/// The kernel of a product.
pub(super) struct MmaKernel<'a, 'c> {
    gemm: &'a Gemm<'c>,
    config: Mma,
    fusion: &'a Fusion<'c>,
    chip: &'a Chip,
    /// The register tensors of one step.
    product: Product,
}

/// What a CTA computes.
struct Work<'c> {
    /// The tile.
    origin: Origin<'c>,
    /// The part of its depth, where several CTAs share it.
    part: Option<Val<'c>>,
}

/// How a tile's products are formed.
enum Mainloop<'c> {
    /// From a ring of tiles in shared memory.
    Ring(Ring<'c>),
    /// Of A and B, whose blocks have scales, from global memory.
    Scaled(BlockScales<'c>, [Argument<'c>; 2]),
}

impl<'a, 'c> MmaKernel<'a, 'c> {
    /// A kernel of this configuration.
    ///
    /// # Errors
    /// When warps and the instruction do not divide the tile.
    pub(super) fn new(
        gemm: &'a Gemm<'c>,
        config: Mma,
        fusion: &'a Fusion<'c>,
        chip: &'a Chip,
    ) -> PassResult<'c, Self> {
        let [m, n, _] = config.tile;
        // Floats of 8 bits are widened in registers.
        let atom = match gemm.scales {
            Some(_) => Unit::Half.atom(),
            None => gemm.unit.atom(),
        };
        let product = match atom {
            Some(atom) => matrix_product(config.tile, config.warps, atom)
                .and_then(|_| matrix_product([m, n, atom.k], config.warps, atom)),
            None => scalar_product(config.tile, config.warps),
        };
        let failed = |error| layout_error(gemm.op.location(), error);
        Ok(Self {
            gemm,
            config,
            fusion,
            chip,
            product: product.map_err(failed)?,
        })
    }
}

impl<'c> MmaKernel<'_, 'c> {
    /// Emits the kernel's body.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn emit(
        &self,
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c> {
        let code = kernel.code;
        let [bm, bn, _] = self.config.tile;
        let arguments = Arguments::of(kernel, ins, self.fusion, outs);
        let (epilogue, mut operands) = Epilogue::of(self.gemm, self.fusion, arguments);
        let (Some(a), Some(b)) = (operands.next(), operands.next()) else {
            let what = "a product has two operands";
            return Err(layout_error(code.builder.location, what));
        };
        let scales = BlockScales::take(&self.gemm.scales, &mut operands);
        let registers = registers(code, [bm, bn], self.product.d.clone())?;
        let work @ Work { part, .. } = self.work(code, &a)?;
        let mainloop = match scales {
            Some(scales) => Mainloop::Scaled(scales, [a, b]),
            None => Mainloop::Ring(self.ring(code, [a, b], &work)?),
        };
        let mut evaluator = epilogue.evaluator(code, &registers, work.origin);
        // What the sums of parts start from is the other kernel's to add.
        let start = match part {
            None => epilogue.start(&mut evaluator)?,
            Some(_) => None,
        };
        let start = match start {
            Some(start) => start,
            None => self.zeros(&evaluator)?,
        };
        let sum = match mainloop {
            Mainloop::Ring(ring) => ring.emit(code, start)?,
            Mainloop::Scaled(scales, operands) => {
                let plain = Plain {
                    config: self.config,
                    product: &self.product,
                    registers: &registers,
                    scales: &scales,
                    origin: &evaluator.origin,
                    depth: self.gemm.k,
                };
                plain.emit(code, &operands, start)?
            }
        };
        let Some(part) = part else {
            let ring = self.config.shared_bytes(element_bytes(self.gemm.element));
            let together = Together {
                threads: self.config.threads(self.gemm.unit),
                free: self.chip.shared_bytes - ring - SCRATCH_BYTES,
            };
            return epilogue.store(&mut evaluator, sum, Some(together));
        };
        let at = [part, evaluator.origin.row, evaluator.origin.column];
        epilogue.keep(code, &registers.shape, at, sum)
    }

    /// The work of this CTA. Tiles are taken in groups of [`RASTER_ROWS`] rows, column by column in a group; parts of their depth
    /// along z.
    fn work(&self, code: Code<'c>, a: &Argument<'c>) -> PassResult<'c, Work<'c>> {
        let [bm, bn, _] = self.config.tile;
        let m = self.gemm.m;
        let (block, batch) = self.place(code)?;
        let rows = code.leading(a.memref, m)?;
        let columns = count(self.gemm.n, bn);
        let (row, column) = if columns == 1 {
            (block, code.index(0)?)
        } else if m != DYNAMIC && count(m, bm) <= RASTER_ROWS {
            let tiles = code.index(count(m, bm))?;
            (code.rem(block, tiles)?, code.div(block, tiles)?)
        } else {
            let tiles = code.ceil_div(rows, bm)?;
            let width = code.index(RASTER_ROWS * columns)?;
            let first = code.times(code.div(block, width)?, RASTER_ROWS)?;
            let high = code.min(code.sub(tiles, first)?, code.index(RASTER_ROWS)?)?;
            let inside = code.rem(block, width)?;
            (
                code.add(first, code.rem(inside, high)?)?,
                code.div(inside, high)?,
            )
        };
        let origin = Origin {
            batch,
            row: code.times(row, bm)?,
            column: code.times(column, bn)?,
            limit: [rows, code.index(self.gemm.n)?],
        };
        let part = match self.config.splits {
            1 => None,
            _ => Some(code.block("z")?),
        };
        Ok(Work { origin, part })
    }

    /// The number of the CTA's tile in its product, and that of the product in its batch.
    fn place(&self, code: Code<'c>) -> PassResult<'c, (Val<'c>, Option<Val<'c>>)> {
        let [bm, bn, _] = self.config.tile;
        let block = code.block("x")?;
        if !grid::is_folded(self.gemm.batch) {
            let batch = self.gemm.batch.map(|_| code.block("z")).transpose()?;
            return Ok((block, batch));
        }
        // The products of a batch have a known number of rows.
        let tiles = count(self.gemm.m, bm).saturating_mul(count(self.gemm.n, bn));
        let tiles = code.index(tiles)?;
        Ok((code.rem(block, tiles)?, Some(code.div(block, tiles)?)))
    }

    fn ring(
        &self,
        code: Code<'c>,
        [a, b]: [Argument<'c>; 2],
        work: &Work<'c>,
    ) -> PassResult<'c, Ring<'c>> {
        let (gemm, [bm, bn, depth]) = (self.gemm, self.config.tile);
        // How deep fragments are: what one instruction of the tensor cores contracts, or the tile.
        let step = gemm.unit.atom().map_or(depth, |atom| atom.k);
        let staged = Staged {
            element: gemm.element,
            stages: self.config.stages,
            depth,
            step,
            threads: self.config.threads(gemm.unit),
        };
        let problem = gemm.problem();
        let alone = self
            .config
            .staged(problem, problem.row_alignments(gemm.k_first()));
        // Scalar products wait for a tile before they load its fragments, and have nothing to form meanwhile.
        let ahead = gemm.unit != Unit::Scalar;
        let [of_a, of_b] = alone.map(|elements| ahead && elements > 0);
        let a = staged.path(code, a, (gemm.trans_a, of_a), bm, &self.product.a)?;
        let b = staged.path(code, b, (!gemm.trans_b, of_b), bn, &self.product.b)?;
        let tiles = self.config.steps(gemm.k);
        let first = work.part.map(|part| code.times(part, tiles));
        Ok(Ring {
            staged,
            paths: [a, b],
            origin: work.origin.clone(),
            tiles,
            first: first.transpose()?,
            transposed: [gemm.trans_a, gemm.trans_b],
            ahead,
        })
    }

    /// What the sums start from where that is nothing.
    fn zeros(&self, evaluator: &Evaluator<'_, 'c>) -> PassResult<'c, Val<'c>> {
        let (code, accumulator) = (evaluator.code, self.gemm.accumulator);
        let zero = code.scalar(accumulator, Number::Of(0))?;
        let r#type = evaluator.registers.r#type(code, Kind::Full, accumulator)?;
        code.fill(zero, r#type)
    }
}
