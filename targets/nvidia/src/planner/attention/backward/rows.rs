//! What is formed row by row, before the kernel of gradients and after it: memory sets the pace of both.

use super::super::memory::{Strides, View};
use super::{Problem, of_matrices, of_rows};
use crate::planner::problem::count;
use crate::planner::row_tile::RowTile;
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// Threads of a CTA.
const THREADS: i64 = 128;
/// Elements of a thread beside each other: 16 bytes of 16-bit ones.
const VECTOR: i64 = 8;
/// Vectors of a thread.
const VECTORS: i64 = 4;

/// Both kernels: CTAs of as many rows, each of one problem.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    problem: Problem,
    rows: i64,
}

/// The rows of a CTA.
struct Own<'c> {
    batch: Val<'c>,
    at: [Val<'c>; 2],
}

impl Rows {
    pub(super) fn new(problem: &Problem) -> Self {
        let widest = problem.depth.max(problem.columns);
        Self {
            problem: *problem,
            rows: THREADS * VECTOR / widest * VECTORS,
        }
    }

    /// Threads of a CTA, and CTAs.
    pub(super) fn grid(self) -> (i64, i64) {
        let tiles = count(self.problem.rows, self.rows);
        (THREADS, self.problem.batch.saturating_mul(tiles))
    }

    fn registers<'c>(self, code: Code<'c>, columns: i64) -> PassResult<'c, Registers> {
        let along = columns / VECTOR;
        let tile = RowTile {
            rows: self.rows,
            columns,
            along,
            vector: VECTOR,
            across: THREADS / along,
        };
        let layout = tile.layout();
        let layout = layout.map_err(|error| layout_error(code.builder.location, error))?;
        registers(code, [self.rows, columns], layout)
    }

    fn own<'c>(self, code: Code<'c>) -> PassResult<'c, Own<'c>> {
        let (cta, tiles) = (code.block("x")?, count(self.problem.rows, self.rows));
        let tiles = code.index(tiles)?;
        let row = code.times(code.rem(cta, tiles)?, self.rows)?;
        Ok(Own {
            batch: code.div(cta, tiles)?,
            at: [row, code.index(0)?],
        })
    }

    /// `D = rowsum(dO O)`, and zeros: arguments are O, dO, D and dQ's sums.
    pub(super) fn products<'c>(self, kernel: &Kernel<'c>, gradient: &Strides) -> PassResult<'c> {
        let code = kernel.code;
        let &[result, of_result, sums, zeros] = kernel.arguments.as_slice() else {
            return Err(layout_error(code.builder.location, "four arguments"));
        };
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let Problem { columns, depth, .. } = self.problem;
        let own = self.own(code)?;
        let tile = self.registers(code, columns)?;
        let load = |view: View<'c>, memref| {
            let from = view.boxed(code, own.batch, own.at, tile.shape)?;
            let element = axe_dialect::element_type(melior::ir::ValueLike::r#type(&memref));
            let value = code.load(from, tile.r#type(code, Kind::Full, element)?)?;
            code.cast(value, tile.r#type(code, Kind::Full, f32)?)
        };
        let a = load(
            of_matrices(&self.problem, columns).view(code, result)?,
            result,
        )?;
        let b = load(gradient.view(code, of_result)?, of_result)?;
        let full = tile.r#type(code, Kind::Full, f32)?;
        let product = code.map(&[a, b], full, |code, own| {
            code.builder.value("arith.mulf", own, f32, &[])
        })?;
        let sum = code.reduce(
            Combiner::Add,
            product,
            1,
            tile.r#type(code, Kind::Row, f32)?,
        )?;
        let to = of_rows(&self.problem).view(code, sums)?;
        code.store(sum, to.boxed(code, own.batch, own.at, tile.shape)?)?;

        let tile = self.registers(code, depth)?;
        let zero = code.scalar(f32, Number::Of(0))?;
        let zero = code.fill(zero, tile.r#type(code, Kind::Full, f32)?)?;
        let to = of_matrices(&self.problem, depth).view(code, zeros)?;
        code.store(zero, to.boxed(code, own.batch, own.at, tile.shape)?)
    }

    /// dQ of its sums, times a number, in its own type.
    pub(super) fn queries<'c>(
        self,
        kernel: &Kernel<'c>,
        strides: &Strides,
        (scale, element): (f64, Type<'c>),
    ) -> PassResult<'c> {
        let code = kernel.code;
        let &[sums, to] = kernel.arguments.as_slice() else {
            return Err(layout_error(code.builder.location, "two arguments"));
        };
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let own = self.own(code)?;
        let tile = self.registers(code, self.problem.depth)?;
        let full = tile.r#type(code, Kind::Full, f32)?;
        let view = of_matrices(&self.problem, self.problem.depth).view(code, sums)?;
        let value = code.load(view.boxed(code, own.batch, own.at, tile.shape)?, full)?;
        let value = scaled(code, value, scale)?;
        let narrow = code.cast(value, tile.r#type(code, Kind::Full, element)?)?;
        let to = strides.view(code, to)?;
        code.store(narrow, to.boxed(code, own.batch, own.at, tile.shape)?)
    }
}

/// A register tensor of f32 times a number.
pub(super) fn scaled<'c>(code: Code<'c>, value: Val<'c>, scale: f64) -> PassResult<'c, Val<'c>> {
    let r#type = melior::ir::ValueLike::r#type(&value);
    code.map(&[value], r#type, |code, own| {
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let scale = code.builder.constant(code.builder.float(f32, scale))?;
        let operands = [own, &[scale]].concat();
        code.builder.value("arith.mulf", &operands, f32, &[])
    })
}
