//! Matrix products: a ring of tiles in shared memory, fragments, accumulators, and the epilogue on them.

use super::cost::{Tile, Unit};
use super::factors::Factors;
use super::layouts::Product;
use super::parts::Parts;
use super::pipeline::{Pipeline, Staged};
use super::product::Gemm;
use super::tail::{Tail, Tailed};
use super::variant::Variant;
use super::{Planner, choice, padded, plain, specialised};
use crate::facts::chip::{Chip, MOST_BLOCKS};
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Out, argument_types, launched};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::frame::{Frame, Operand};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::reshape::leading;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, DYNAMIC, Op, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::Type;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// Rows of tiles that a group of neighbouring CTAs covers, so that they share what they read in L2.
const RASTER_ROWS: i64 = 8;

/// Plans a matrix product with its epilogue.
///
/// # Errors
/// At the operator, when its extents, types or options are not supported.
pub(super) fn plan<'c>(
    planner: &Planner,
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
    fusion: &Fusion<'c>,
) -> PassResult<'c> {
    let mut gemm = Gemm::read(op, planner.chip)?;
    let choice = choice::choose(&mut gemm, &planner.plans, planner.chip)?;
    let batch = gemm.batch.map(|batch| [batch, gemm.m]);
    let shape = |kind| fusion.shape(gemm.n, batch, kind);
    let mut ins = Vec::new();
    for (value, extents) in [(gemm.a, gemm.extents_of_a()), (gemm.b, gemm.extents_of_b())] {
        ins.push(match choice.variant {
            Variant::Roles(_) if !gemm.takes_rows(&extents) => {
                padded::padded(frame, builder, value, &extents)?
            }
            _ => frame.operand(builder, value, &extents)?,
        });
    }
    if let Variant::Roles(tile) = choice.variant
        && tile.parts > 1
    {
        let name = frame.name("gemm");
        choice.report(&gemm, &name, planner);
        let parts = Parts {
            gemm: &gemm,
            tile,
            fusion,
            name: &name,
        };
        return parts.plan(planner, frame, builder, &ins);
    }
    if let Some(scales) = &gemm.scales {
        for scale in [scales.a, scales.b] {
            let shape = builder.tensor_of(scale)?.shape;
            ins.push(frame.operand(builder, scale, &shape)?);
        }
    }
    for (value, kind) in &fusion.inputs {
        ins.push(frame.operand(builder, *value, &shape(*kind))?);
    }
    let mut outs = Vec::new();
    for (value, kind) in &fusion.outputs {
        outs.push((*value, frame.out(builder, *value, &shape(*kind))?));
    }
    let name = frame.name("gemm");
    choice.report(&gemm, &name, planner);
    if let Variant::Roles(tile) = choice.variant
        && let Some(tail) = Tail::of(tile, [gemm.m, gemm.n, gemm.k], planner.chip)
    {
        let product = Parts {
            gemm: &gemm,
            tile,
            fusion,
            name: &name,
        };
        let tailed = Tailed { product, tail };
        return tailed.plan(planner, frame, builder, &ins, outs);
    }
    let mut kernel = Kernel::new(
        op.location(),
        frame.module,
        &argument_types(&ins, &fusion.scalars, &outs),
    );
    let grid = match choice.variant {
        Variant::Roles(tile) => {
            let body = specialised::Body {
                gemm: &gemm,
                tile,
                fusion,
                tail: None,
            };
            body.emit(&kernel, &ins, &outs)?;
            kernel.cluster = tile.ctas();
            kernel.finish(frame.module, &name, tile.threads())?;
            let tiles = grid(builder, &gemm, tile.span())?;
            persistent(builder, tiles, tile.ctas(), planner.chip)?
        }
        Variant::Warps(tile) => {
            let body = Body {
                gemm: &gemm,
                tile,
                product: &gemm.product(tile)?,
                fusion,
            };
            body.emit(&kernel, &ins, &outs)?;
            kernel.finish(frame.module, &name, tile.threads(gemm.unit))?;
            grid(builder, &gemm, [tile.shape[0], tile.shape[1]])?
        }
    };
    frame.launch(
        builder,
        &name,
        grid,
        &launched(&ins, &fusion.scalars),
        &outs,
    )
}

/// CTAs along x, y and z: all tiles of a product along x, products along z.
fn grid<'c>(
    builder: &Builder<'c>,
    gemm: &Gemm<'c>,
    [bm, bn]: [i64; 2],
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let columns = count(gemm.n, bn);
    let tiles = if gemm.m == DYNAMIC && gemm.batch.is_none() {
        let rows = code.ceil_div(leading(builder, gemm.result)?, bm)?;
        code.times(rows, columns)?
    } else {
        let tiles = count(gemm.m, bm).saturating_mul(columns);
        if tiles > i64::from(i32::MAX) {
            return Err(PassError::new(
                builder.location,
                format!("{tiles} tiles are more than a grid has"),
            ));
        }
        code.index(tiles)?
    };
    let batch = match gemm.batch {
        // The shape `[?, M, N]` of a batch has the leading extent of its outermost dimension, times the others.
        Some(DYNAMIC) => batch_extent(builder, gemm)?,
        Some(batch) if batch > MOST_BLOCKS => {
            return Err(PassError::new(
                builder.location,
                format!("a batch of {batch} is more than the 65535 of a grid"),
            ));
        }
        batch => code.index(batch.unwrap_or(1))?,
    };
    Ok([tiles, code.index(1)?, batch])
}

/// The grid of a kernel whose clusters go through the tiles: as many as there are multiprocessors for.
pub(super) fn persistent<'c>(
    builder: &Builder<'c>,
    [tiles, one, batch]: [Val<'c>; 3],
    cluster: i64,
    chip: &Chip,
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let all = code.mul(tiles, batch)?;
    let most = code.index(chip.clusters(cluster))?;
    let clusters = code.min(all, most)?;
    let blocks = if cluster == 1 {
        clusters
    } else {
        code.times(clusters, cluster)?
    };
    Ok([blocks, one, one])
}

fn batch_extent<'c>(builder: &Builder<'c>, gemm: &Gemm<'c>) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(gemm.result)?.shape;
    let inner: i64 = shape.iter().skip(1).rev().skip(2).product();
    let code = Code { builder: *builder };
    let outer = leading(builder, gemm.result)?;
    if inner == 1 {
        Ok(outer)
    } else {
        code.times(outer, inner)
    }
}

/// `extent / by`, rounded up.
pub(super) const fn count(extent: i64, by: i64) -> i64 {
    let by = if by < 1 { 1 } else { by };
    extent / by + (extent % by != 0) as i64
}

/// The body of the kernel.
struct Body<'a, 'c> {
    gemm: &'a Gemm<'c>,
    tile: Tile,
    product: &'a Product,
    fusion: &'a Fusion<'c>,
}

/// How a tile's products are formed.
enum Products<'c> {
    /// From a ring of tiles in shared memory.
    Ring(Pipeline<'c>),
    /// Of A and B, whose blocks have scales, from global memory.
    Plain(Factors<'c>, [Argument<'c>; 2]),
}

impl<'c> Body<'_, 'c> {
    fn emit(&self, kernel: &Kernel<'c>, ins: &[Operand<'c>], outs: &[Out<'c>]) -> PassResult<'c> {
        let code = kernel.code;
        let [bm, bn, _] = self.tile.shape;
        let Arguments {
            operands,
            inputs,
            scalars,
            outputs,
        } = Arguments::of(kernel, ins, self.fusion, outs);
        let mut operands = operands.into_iter();
        let (Some(a), Some(b)) = (operands.next(), operands.next()) else {
            return Err(layout_error(
                code.builder.location,
                "a product has two operands",
            ));
        };
        let scales = Factors::take(&self.gemm.scales, &mut operands);
        let registers = registers(code, [bm, bn], self.product.d.clone())?;
        let origin = self.origin(code, &a)?;
        let products = match scales {
            Some(factors) => Products::Plain(factors, [a, b]),
            None => Products::Ring(self.pipeline(code, [a, b], origin.clone())?),
        };
        let mut evaluator = Evaluator {
            code,
            registers: &registers,
            columns: self.gemm.n,
            arguments: &inputs,
            scalars: &scalars,
            origin,
            known: HashMap::new(),
        };
        let start = self.start(&mut evaluator, &registers)?;
        let sum = match products {
            Products::Ring(pipeline) => pipeline.emit(code, start)?,
            Products::Plain(factors, operands) => {
                let plain = plain::Plain {
                    tile: self.tile,
                    product: self.product,
                    registers: &registers,
                    factors: &factors,
                    origin: &evaluator.origin,
                    depth: self.gemm.k,
                };
                plain.emit(code, &operands, start)?
            }
        };
        let result = self.convert(
            code,
            &registers,
            sum,
            code.builder.tensor_of(self.gemm.result)?.element,
        )?;
        evaluator.known.clear();
        evaluator
            .known
            .insert((identity(self.gemm.result), Kind::Full), result);
        for ((value, kind), to) in self.fusion.outputs.iter().zip(&outputs) {
            evaluator.store(*value, *kind, to)?;
        }
        Ok(())
    }

    /// The tile of this CTA. Tiles are taken in groups of [`RASTER_ROWS`] rows, column by column in a group.
    fn origin(&self, code: Code<'c>, a: &Argument<'c>) -> PassResult<'c, Origin<'c>> {
        let [bm, bn, _] = self.tile.shape;
        let block = code.block("x")?;
        let m = self.gemm.m;
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
        Ok(Origin {
            batch: self.gemm.batch.map(|_| code.block("z")).transpose()?,
            row: code.times(row, bm)?,
            column: code.times(column, bn)?,
            limit: [rows, code.index(self.gemm.n)?],
        })
    }

    fn pipeline(
        &self,
        code: Code<'c>,
        [a, b]: [Argument<'c>; 2],
        origin: Origin<'c>,
    ) -> PassResult<'c, Pipeline<'c>> {
        let (gemm, [bm, bn, depth]) = (self.gemm, self.tile.shape);
        let staged = Staged {
            element: gemm.element,
            stages: self.tile.stages,
            depth,
            step: gemm.step(self.tile),
        };
        let a = staged.path(code, a, gemm.trans_a, bm, &self.product.a)?;
        let b = staged.path(code, b, !gemm.trans_b, bn, &self.product.b)?;
        Ok(Pipeline {
            staged,
            paths: [a, b],
            origin,
            tiles: count(gemm.k, depth),
            transposed: [gemm.trans_a, gemm.trans_b],
            ahead: gemm.unit != Unit::Scalar,
        })
    }

    fn start(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        registers: &Registers,
    ) -> PassResult<'c, Val<'c>> {
        let code = evaluator.code;
        match self.gemm.start {
            Some(start) => {
                let value = evaluator.value(start, Kind::Full)?;
                self.convert(code, registers, value, self.gemm.accumulator)
            }
            None => {
                let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
                code.fill(
                    zero,
                    registers.r#type(code, Kind::Full, self.gemm.accumulator)?,
                )
            }
        }
    }

    fn convert(
        &self,
        code: Code<'c>,
        registers: &Registers,
        value: Val<'c>,
        element: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if code.builder.tensor_of(value)?.element == element {
            return Ok(value);
        }
        let r#type = registers.r#type(code, Kind::Full, element)?;
        code.builder.value("axe.cast", &[value], r#type, &[])
    }
}
