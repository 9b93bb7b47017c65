//! Matrix products whose depth several CTAs share through memory: one kernel writes each part's sums, another adds them
//! up in order and goes on with the epilogue.
//!
//! For results of few tiles and long sums: clusters share a tile's depth without a second kernel, but between eight CTAs at
//! most.

use super::Planner;
use super::gemm::{count, persistent};
use super::layouts::RowTile;
use super::product::Gemm;
use super::specialised::{self, convert};
use super::tiles::elementwise_tile;
use super::wide::WideTile;
use crate::facts::chip::{LINE_BYTES, MOST_BLOCKS};
use axe_passes::build::{Code, Kernel, launch, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Out, argument_types, launched};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::frame::{Frame, Operand, operand};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, Val};
use axe_passes::{PassError, PassResult};
use std::collections::HashMap;

/// Bytes of a sum.
pub(super) const BYTES: i64 = 4;

/// Elements of a row of sums, so that each begins with a line.
pub(super) const fn padded_row(columns: i64) -> i64 {
    count(columns.saturating_mul(BYTES), LINE_BYTES).saturating_mul(LINE_BYTES / BYTES)
}

/// A product in parts.
pub(super) struct Parts<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub tile: WideTile,
    pub fusion: &'a Fusion<'c>,
    /// The name of the kernel that multiplies.
    pub name: &'a str,
}

impl<'c> Parts<'_, 'c> {
    /// Plans both kernels.
    ///
    /// # Errors
    /// When an operation cannot be built, or rows are too long for a grid.
    pub(super) fn plan(
        &self,
        planner: &Planner,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        factors: &[Operand<'c>],
    ) -> PassResult<'c> {
        let sums = self.multiply(planner, frame, builder, factors)?;
        let shape = |kind| self.fusion.shape(self.gemm.n, None, kind);
        let mut ins = vec![sums];
        for (value, kind) in &self.fusion.inputs {
            ins.push(frame.operand(builder, *value, &shape(*kind))?);
        }
        let mut outs = Vec::new();
        for (value, kind) in &self.fusion.outputs {
            outs.push((*value, frame.out(builder, *value, &shape(*kind))?));
        }
        let types = argument_types(&ins, &self.fusion.scalars, &outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        let tile = elementwise_tile(self.gemm.n, BYTES);
        let code = kernel.code;
        let origin = Origin {
            batch: None,
            row: code.times(code.block("x")?, tile.rows)?,
            column: code.times(code.block("y")?, tile.columns)?,
            limit: [code.index(self.gemm.m)?, code.index(self.gemm.n)?],
        };
        let at = [origin.row, origin.column];
        let parts = self.tile.parts;
        self.add(&kernel, (tile, parts), (&ins, &outs), (origin, at))?;
        let name = frame.name("sum");
        kernel.finish(frame.module, &name, tile.threads())?;
        let ins = launched(&ins, &self.fusion.scalars);
        frame.launch(builder, &name, self.grid(builder, tile)?, &ins, &outs)
    }

    /// The kernel that multiplies: the sums of each part, in rows that begin with a line.
    fn multiply(
        &self,
        planner: &Planner,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        factors: &[Operand<'c>],
    ) -> PassResult<'c, Operand<'c>> {
        let Gemm { m, n, .. } = *self.gemm;
        let shape = [self.tile.parts, m, padded_row(n)];
        let r#type = builder.tensor(&shape, self.gemm.accumulator)?;
        let sums = operand(
            builder,
            builder.value("tensor.empty", &[], r#type, &[])?,
            &shape,
        )?;
        let outs = [(self.gemm.result, sums.clone())];
        let mut kernel = Kernel::new(
            builder.location,
            frame.module,
            &argument_types(factors, &[], &outs),
        );
        let stored = vec![(self.gemm.result, Kind::Full)];
        let body = specialised::Body {
            gemm: self.gemm,
            tile: self.tile,
            fusion: &Fusion::storing(self.fusion.total, Some(n), stored),
            tail: None,
        };
        body.emit(&kernel, factors, &outs)?;
        kernel.cluster = self.tile.ctas();
        kernel.finish(frame.module, self.name, self.tile.threads())?;
        let [high, across] = self.tile.span();
        let tiles = count(m, high)
            .saturating_mul(count(n, across))
            .saturating_mul(self.tile.parts);
        let code = Code { builder: *builder };
        let one = code.index(1)?;
        let grid = [code.index(tiles)?, one, one];
        let grid = persistent(builder, grid, self.tile.ctas(), planner.chip)?;
        let ins: Vec<_> = factors.iter().map(|operand| operand.tensor).collect();
        let results = launch(builder, self.name, grid, &ins, &[sums.tensor])?;
        match results.as_slice() {
            &[tensor] => Ok(Operand { tensor, ..sums }),
            _ => Err(layout_error(builder.location, "a launch lacks its result")),
        }
    }

    /// Tiles of rows along x, of columns along y.
    fn grid(&self, builder: &Builder<'c>, tile: RowTile) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let y = count(self.gemm.n, tile.columns);
        if y > MOST_BLOCKS {
            let what = format!("rows of {} elements are more than a grid has", self.gemm.n);
            return Err(PassError::new(builder.location, what));
        }
        let x = code.index(count(self.gemm.m, tile.rows))?;
        Ok([x, code.index(y)?, code.index(1)?])
    }
}

impl<'c> Parts<'_, 'c> {
    /// Adds up so many parts, `[parts, rows, columns]`, and forms the epilogue, of a tile with its place in the result and in
    /// the sums.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn add(
        &self,
        kernel: &Kernel<'c>,
        (tile, parts): (RowTile, i64),
        (ins, outs): (&[Operand<'c>], &[Out<'c>]),
        (origin, at): (Origin<'c>, [Val<'c>; 2]),
    ) -> PassResult<'c> {
        let code = kernel.code;
        let location = code.builder.location;
        let layout = tile
            .layout()
            .map_err(|error| layout_error(location, error))?;
        let registers = registers(code, [tile.rows, tile.columns], layout)?;
        let Arguments {
            operands,
            inputs,
            scalars,
            outputs,
        } = Arguments::of(kernel, ins, self.fusion, outs);
        let [sums] = operands.as_slice() else {
            return Err(layout_error(location, "a kernel lacks its sums"));
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
        let mut sum = None;
        if let Some(start) = self.gemm.start {
            let start = evaluator.value(start, Kind::Full)?;
            sum = Some(convert(&evaluator, start, self.gemm.accumulator)?);
        }
        for part in 0..parts {
            let own = self.part(code, &registers, sums, (part, at))?;
            sum = Some(match sum {
                None => own,
                Some(sum) => Fold::PRODUCT.merge(code, self.gemm.accumulator, sum, own)?,
            });
        }
        let sum = sum.ok_or_else(|| layout_error(location, "a product of no parts"))?;
        let result = self.gemm.result;
        let sum = convert(&evaluator, sum, code.builder.tensor_of(result)?.element)?;
        evaluator.known.clear();
        evaluator.known.insert((identity(result), Kind::Full), sum);
        for ((value, kind), to) in self.fusion.outputs.iter().zip(&outputs) {
            evaluator.store(*value, *kind, to)?;
        }
        Ok(())
    }

    /// A tile of one part's sums.
    fn part(
        &self,
        code: Code<'c>,
        registers: &Registers,
        sums: &Argument<'c>,
        (part, [row, column]): (i64, [Val<'c>; 2]),
    ) -> PassResult<'c, Val<'c>> {
        let at = [code.index(part)?, row, column];
        let from = code.global_box(sums.memref, &sums.extents, &at, &registers.shape)?;
        let r#type = registers.r#type(code, Kind::Full, self.gemm.accumulator)?;
        code.load(from, r#type)
    }
}
