//! The tiles of a product's last turn, which are too few for the chip's multiprocessors: their depth is shared through memory
//! (stream-K with a turn for each tile that fills one; Osama et al., "Stream-K", 2023).
//!
//! The kernel goes through the tiles that fill turns as ever, then through the parts of the others, whose sums another
//! kernel adds up in order.

use super::cost::Problem;
use super::evaluate::{Needed, Origin};
use super::frame::{Frame, Operand, operand};
use super::gemm::{argument_types, count, persistent};
use super::group::Group;
use super::layouts::RowTile;
use super::parts::{BYTES, Sums, padded_row};
use super::product::Gemm;
use super::space::Kind;
use super::specialised::{Body, corner};
use super::wide::{MOST_PARTS, WideTile};
use crate::build::{Code, Kernel, launch};
use crate::facts::chip::Chip;
use axe_passes::PassResult;
use axe_passes::ir::{Builder, Val};

/// Parts of a tile that the cost model considers at most: their sums are written and read once each.
const MOST_OFFERED: i64 = 8;
/// Steps of a part at least, so that filling the ring is not most of it.
const LEAST_STEPS: i64 = 4;
/// Threads of a CTA that adds parts up.
const THREADS: i64 = 256;
/// Rows of its tile at most: a warpgroup's, which divide every tile's.
const ROWS: i64 = 64;

/// The tiles of the last turn, counted in those of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Tiles that fill turns.
    pub whole: i64,
    /// The others.
    pub rest: i64,
    /// Steps along k of a part.
    pub steps: i64,
}

impl Tail {
    /// The tail of a tile with parts for it; `None` where it has none, where no tile fills a turn or all do, or where a part
    /// would have no steps.
    pub(super) fn of(tile: WideTile, [m, n, k]: [i64; 3], chip: &Chip) -> Option<Self> {
        let alone = tile.split == 1 && tile.parts == 1 && !tile.swap;
        let (whole, rest) = whole_and_rest(tile, [m, n], chip);
        let all = count(k, tile.shape[2]);
        let steps = count(all, tile.tail);
        let possible = alone && (2..=MOST_PARTS).contains(&tile.tail) && whole > 0 && rest > 0;
        (possible && (tile.tail - 1).saturating_mul(steps) < all).then_some(Self {
            whole,
            rest,
            steps,
        })
    }

    /// The tile with the parts that fill the last turn, where there are some worth trying.
    pub(super) fn offered(tile: WideTile, problem: Problem, chip: &Chip) -> Option<WideTile> {
        let Problem { batch, m, n, k, .. } = problem;
        let (_, rest) = whole_and_rest(tile, [m, n], chip);
        let fill = chip.clusters(tile.ctas()) / rest.max(1);
        let long = count(k, tile.shape[2]) / LEAST_STEPS;
        let tail = fill.min(long).min(MOST_OFFERED);
        let shared = WideTile { tail, ..tile };
        (batch == 1 && Self::of(shared, [m, n, k], chip).is_some()).then_some(shared)
    }
}

/// The tiles that fill turns, and the others.
fn whole_and_rest(tile: WideTile, [m, n]: [i64; 2], chip: &Chip) -> (i64, i64) {
    let [high, wide] = tile.span();
    let tiles = count(m, high).saturating_mul(count(n, wide));
    let rest = tiles % chip.clusters(tile.ctas()).max(1);
    (tiles - rest, rest)
}

/// The tile of a CTA that adds parts up: columns that divide a tile's.
fn sums_tile(columns: i64) -> RowTile {
    let columns = 1 << columns.trailing_zeros().min(7);
    let vector = columns.min(16 / BYTES);
    let along = columns / vector;
    let across = (THREADS / along).min(ROWS);
    RowTile {
        rows: (2 * across).min(ROWS),
        columns,
        along,
        vector,
        across,
    }
}

/// A product with a tail.
pub(super) struct Tailed<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub tile: WideTile,
    pub tail: Tail,
    pub group: &'a Group<'c>,
    pub needed: &'a Needed<'c>,
    pub kinds: &'a [(Val<'c>, Kind)],
    /// The name of the kernel that multiplies.
    pub name: &'a str,
}

impl<'c> Tailed<'_, 'c> {
    /// Plans both kernels: `ins` are the factors, their scales, and what the epilogue reads.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        ins: &[Operand<'c>],
        outs: Vec<(Val<'c>, Operand<'c>)>,
    ) -> PassResult<'c> {
        let (sums, outs) = self.multiply(frame, builder, ins, outs)?;
        let inputs = ins.len().saturating_sub(self.needed.inputs.len());
        let inputs = ins.get(inputs..).unwrap_or_default();
        let ins: Vec<_> = std::iter::once(&sums).chain(inputs).cloned().collect();
        let types = argument_types(&ins, &self.needed.scalars, &outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        let [m, n, _] = self.tile.shape;
        let tile = sums_tile(n);
        let rows = m / tile.rows;
        let code = kernel.code;
        let block = code.block("x")?;
        let number = code.div(block, code.index(rows)?)?;
        let row = code.times(code.rem(block, code.index(rows)?)?, tile.rows)?;
        let column = code.times(code.block("y")?, tile.columns)?;
        let at = [code.add(code.times(number, m)?, row)?, column];
        let origin = self.origin(code, number, [row, column])?;
        let parts = Sums {
            gemm: self.gemm,
            parts: self.tile.tail,
            group: self.group,
            needed: self.needed,
            kinds: self.kinds,
        };
        parts.add(&kernel, tile, (&ins, &outs), (origin, at))?;
        let name = frame.name("sum");
        kernel.finish(frame.module, &name, tile.threads())?;
        let code = Code { builder: *builder };
        let blocks = self.tiles().saturating_mul(rows);
        let grid = [
            code.index(blocks)?,
            code.index(n / tile.columns)?,
            code.index(1)?,
        ];
        let tensors = ins.iter().map(|operand| operand.tensor);
        let ins: Vec<_> = tensors.chain(self.needed.scalars.iter().copied()).collect();
        frame.launch(builder, &name, grid, &ins, &outs)
    }

    /// The tiles of the tail.
    const fn tiles(&self) -> i64 {
        self.tail.rest * self.tile.cluster
    }

    /// The kernel that multiplies: the sums of the tail's parts, tile below tile, and the results with the other tiles in
    /// them.
    #[expect(clippy::type_complexity, reason = "what comes in goes out")]
    fn multiply(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        ins: &[Operand<'c>],
        mut outs: Vec<(Val<'c>, Operand<'c>)>,
    ) -> PassResult<'c, (Operand<'c>, Vec<(Val<'c>, Operand<'c>)>)> {
        let [m, n, _] = self.tile.shape;
        let rows = self.tiles().saturating_mul(m);
        let shape = [self.tile.tail, rows, padded_row(n)];
        let r#type = builder.tensor(&shape, self.gemm.accumulator)?;
        let empty = builder.value("tensor.empty", &[], r#type, &[])?;
        outs.push((self.gemm.result, operand(builder, empty, &shape)?));
        let types = argument_types(ins, &self.needed.scalars, &outs);
        let mut kernel = Kernel::new(builder.location, frame.module, &types);
        let body = Body {
            gemm: self.gemm,
            tile: self.tile,
            group: self.group,
            needed: self.needed,
            kinds: self.kinds,
            tail: Some(self.tail),
        };
        body.emit(&kernel, ins, &outs)?;
        kernel.cluster = self.tile.ctas();
        kernel.finish(frame.module, self.name, self.tile.threads())?;
        let code = Code { builder: *builder };
        let parts = self.tail.rest.saturating_mul(self.tile.tail);
        let pieces = code.index(self.tail.whole.saturating_add(parts))?;
        let one = code.index(1)?;
        let grid = persistent(builder, [pieces, one, one], self.tile.ctas(), frame.chip)?;
        let tensors = ins.iter().map(|operand| operand.tensor);
        let ins: Vec<_> = tensors.chain(self.needed.scalars.iter().copied()).collect();
        let inits: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch(builder, self.name, grid, &ins, &inits)?;
        for ((_, out), tensor) in outs.iter_mut().zip(results) {
            out.tensor = tensor;
        }
        let sums = outs.pop().ok_or_else(|| {
            crate::build::layout_error(builder.location, "a kernel has no sums of parts")
        })?;
        Ok((sums.1, outs))
    }

    /// Where a part of the tail's tile of this number is in the result.
    fn origin(
        &self,
        code: Code<'c>,
        number: Val<'c>,
        [row, column]: [Val<'c>; 2],
    ) -> PassResult<'c, Origin<'c>> {
        let tile = self.tile;
        let [high, wide] = tile.span();
        let (cluster, rank) = match tile.cluster {
            1 => (number, None),
            ctas => {
                let ctas = code.index(ctas)?;
                (code.div(number, ctas)?, Some(code.rem(number, ctas)?))
            }
        };
        let cluster = code.add(cluster, code.index(self.tail.whole)?)?;
        let counts = [
            code.index(count(self.gemm.m, high))?,
            code.index(count(self.gemm.n, wide))?,
        ];
        let at = code.tile_at(cluster, counts, (tile.order, tile.group))?;
        let [first_row, first_column] = corner(code, tile, at, rank)?;
        Ok(Origin {
            batch: None,
            row: code.add(first_row, row)?,
            column: code.add(first_column, column)?,
            limit: [code.index(self.gemm.m)?, code.index(self.gemm.n)?],
        })
    }
}
