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
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

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

/// What is given of rows, as it lies in memory.
pub(super) struct Before<'a> {
    /// dO.
    pub gradient: &'a Strides,
    /// O; one problem after another, where it is none.
    pub result: Option<&'a Strides>,
    /// D.
    pub products: Option<&'a Strides>,
    /// Logarithms of sums, and the factor and the offset of those for powers of two.
    pub logs: Option<(&'a Strides, [f64; 2])>,
    /// Whether rows of weights of 0 have any logarithm: then they have one of which weights are 0.
    pub empty_is_zero: bool,
}

impl Before<'_> {
    /// Tensors that the kernel reads.
    fn reads(&self) -> usize {
        let of_products = if self.products.is_some() { 1 } else { 2 };
        of_products + usize::from(self.logs.is_some())
    }
}

/// The rows of a CTA.
struct Own<'c> {
    batch: Val<'c>,
    at: [Val<'c>; 2],
}

impl Rows {
    pub(super) fn new(problem: &Problem) -> Self {
        let widest = problem.depth.max(problem.columns);
        let of_vectors = THREADS * VECTOR * VECTORS / widest;
        // Whole turns of the threads over the rows of each tensor.
        let [depth, columns] = [problem.depth, problem.columns].map(across);
        Self {
            problem: *problem,
            rows: (1 << of_vectors.ilog2()).max(depth).max(columns),
        }
    }

    /// Threads of a CTA, and CTAs.
    pub(super) fn grid(self) -> (i64, i64) {
        let tiles = count(self.problem.rows, self.rows);
        (THREADS, self.problem.batch.saturating_mul(tiles))
    }

    fn registers<'c>(self, code: Code<'c>, columns: i64) -> PassResult<'c, Registers> {
        let across = across(columns);
        let tile = RowTile {
            rows: self.rows,
            columns,
            along: THREADS / across,
            vector: VECTOR,
            across,
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

    /// `D = rowsum(dO O)`, or that which is given, zeros, and logarithms that are given. Arguments are O and dO, or D; logarithms; D,
    /// dQ's sums, and logarithms as the kernel of gradients reads them.
    pub(super) fn before<'c>(self, kernel: &Kernel<'c>, given: &Before<'_>) -> PassResult<'c> {
        let code = kernel.code;
        let all = kernel.arguments.as_slice();
        let lost = || layout_error(code.builder.location, "a kernel has its arguments");
        let (ins, outs) = all.split_at_checked(given.reads()).ok_or_else(lost)?;
        let &[sums, zeros, ref logs @ ..] = outs else {
            return Err(lost());
        };
        let own = self.own(code)?;
        let products = match (given.products, ins) {
            (Some(strides), &[products, ..]) => self.value(code, &own, (strides, products))?,
            (None, &[result, of_result, ..]) => {
                self.products(code, &own, given, [result, of_result])?
            }
            _ => return Err(lost()),
        };
        self.store_value(code, &own, (products, sums))?;
        if let (Some((strides, scale)), Some(from), Some(to)) =
            (given.logs, ins.last(), logs.first())
        {
            let value = self.value(code, &own, (strides, *from))?;
            let value = along(code, value, scale, given.empty_is_zero)?;
            self.store_value(code, &own, (value, *to))?;
        }
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let tile = self.registers(code, self.problem.depth)?;
        let zero = code.scalar(f32, Number::Of(0))?;
        let zero = code.fill(zero, tile.r#type(code, Kind::Full, f32)?)?;
        let to = of_matrices(&self.problem, self.problem.depth).view(code, zeros)?;
        code.store(zero, to.boxed(code, own.batch, own.at, tile.shape)?)
    }

    /// `rowsum(dO O)`.
    fn products<'c>(
        self,
        code: Code<'c>,
        own: &Own<'c>,
        given: &Before<'_>,
        [result, of_result]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let columns = self.problem.columns;
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let tile = self.registers(code, columns)?;
        let full = tile.r#type(code, Kind::Full, f32)?;
        let load = |view: View<'c>, memref: Val<'c>| {
            let from = view.boxed(code, own.batch, own.at, tile.shape)?;
            let element = axe_dialect::element_type(memref.r#type());
            let value = code.load(from, tile.r#type(code, Kind::Full, element)?)?;
            code.cast(value, full)
        };
        let formed = of_matrices(&self.problem, columns);
        let a = load(given.result.unwrap_or(&formed).view(code, result)?, result)?;
        let b = load(given.gradient.view(code, of_result)?, of_result)?;
        let product = code.map(&[a, b], full, |code, own| {
            code.builder.value("arith.mulf", own, f32, &[])
        })?;
        let row = tile.r#type(code, Kind::Row, f32)?;
        code.reduce(Combiner::Add, product, 1, row)
    }

    /// The tile that values of rows are read and written by.
    fn value_tile<'c>(self, code: Code<'c>) -> PassResult<'c, Registers> {
        self.registers(code, self.problem.columns)
    }

    /// A value of each row of a tensor, in f32.
    fn value<'c>(
        self,
        code: Code<'c>,
        own: &Own<'c>,
        (strides, memref): (&Strides, Val<'c>),
    ) -> PassResult<'c, Val<'c>> {
        let tile = self.value_tile(code)?;
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let element = axe_dialect::element_type(memref.r#type());
        let from = strides.view(code, memref)?;
        let from = from.boxed(code, own.batch, own.at, tile.shape)?;
        let value = code.load(from, tile.r#type(code, Kind::Row, element)?)?;
        match element == f32 {
            true => Ok(value),
            false => code.cast(value, tile.r#type(code, Kind::Row, f32)?),
        }
    }

    fn store_value<'c>(
        self,
        code: Code<'c>,
        own: &Own<'c>,
        (value, memref): (Val<'c>, Val<'c>),
    ) -> PassResult<'c> {
        let tile = self.value_tile(code)?;
        let to = of_rows(&self.problem).view(code, memref)?;
        code.store(value, to.boxed(code, own.batch, own.at, tile.shape)?)
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

/// Rows that the threads have at a time: as many threads as a power of two share one.
const fn across(columns: i64) -> i64 {
    let vectors = columns / VECTOR;
    THREADS / (1 << vectors.trailing_zeros())
}

/// `factor * value + offset` of a register tensor of f32; infinity for what is no number, or minus infinity, where that is of a row whose
/// weights are 0.
fn along<'c>(
    code: Code<'c>,
    value: Val<'c>,
    [factor, offset]: [f64; 2],
    empty_is_zero: bool,
) -> PassResult<'c, Val<'c>> {
    code.map(&[value], value.r#type(), |code, own| {
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let mut operands = own.to_vec();
        for constant in [factor, offset] {
            operands.push(code.builder.constant(code.builder.float(f32, constant))?);
        }
        let builder = code.builder;
        let own = builder.value("math.fma", &operands, f32, &[])?;
        if !empty_is_zero {
            return Ok(own);
        }
        let number = |value| builder.constant(builder.float(f32, value));
        let [least, most] = [f64::NEG_INFINITY, f64::INFINITY].map(number);
        // Ordered, so that NaN is not greater.
        let predicate = [("predicate", builder.parsed("2 : i64")?)];
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        let is_number = builder.value("arith.cmpf", &[own, least?], bit, &predicate)?;
        code.choose(is_number, [own, most?])
    })
}

/// A register tensor of f32 times a number.
pub(super) fn scaled<'c>(code: Code<'c>, value: Val<'c>, scale: f64) -> PassResult<'c, Val<'c>> {
    let r#type = value.r#type();
    code.map(&[value], r#type, |code, own| {
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let scale = code.builder.constant(code.builder.float(f32, scale))?;
        let operands = [own, &[scale]].concat();
        code.builder.value("arith.mulf", &operands, f32, &[])
    })
}
