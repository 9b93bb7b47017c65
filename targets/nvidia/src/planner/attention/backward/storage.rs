//! What the kernel of gradients reads and writes: its arguments, rings in shared memory, and registers whose columns consumers share.

use super::super::config::BYTES;
use super::super::memory::{Ring, View};
use super::config::{CONSUMERS, Problem, ROWS};
use super::{Tensors, of_matrices, of_rows};
use crate::planner::layouts::layout;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::ir::Val;
use melior::ir::Type;

/// A ring of blocks of rows, with a value of each row beside them.
pub(super) struct Rows<'c> {
    pub ring: Ring<'c>,
    values: Values<'c>,
    /// The first of its values' stages.
    first: i64,
}

/// Values of rows, of one ring or of several: storage begins at multiples of 1024 bytes, and a stage's values are 256.
#[derive(Clone, Copy)]
pub(super) struct Values<'c> {
    all: Val<'c>,
    stage: Type<'c>,
}

impl<'c> Values<'c> {
    /// Those of so many stages.
    pub(super) fn new(code: Code<'c>, stages: i64) -> PassResult<'c, Self> {
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let failed = |error| layout_error(code.builder.location, error);
        let all = Layout::strided(&[stages, ROWS], &[ROWS, 1]).map_err(failed)?;
        let one = Layout::strided(&[ROWS], &[1]).map_err(failed)?;
        Ok(Self {
            all: code.alloc(&[stages, ROWS], f32, &all)?,
            stage: code.memref(&[ROWS], f32, &one, Some("shared"))?,
        })
    }
}

impl<'c> Rows<'c> {
    /// A ring of so many stages, of these columns in pieces of some, whose values are its own, or those of all rings from a stage on.
    pub(super) fn new(
        code: Code<'c>,
        stages: i64,
        [columns, span]: [i64; 2],
        element: Type<'c>,
        values: Option<(Values<'c>, i64)>,
    ) -> PassResult<'c, Self> {
        let ring = Ring::in_pieces(code, stages, ([ROWS, columns], span), element)?;
        let (values, first) = match values {
            Some(own) => own,
            None => (Values::new(code, stages)?, 0),
        };
        Ok(Self {
            ring,
            values,
            first,
        })
    }

    /// The values of a stage.
    pub(super) fn values(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let stage = match self.first {
            0 => stage,
            first => code.add(stage, code.index(first)?)?,
        };
        let origin = [stage, code.index(0)?];
        code.slice(self.values.all, &origin, self.values.stage)
    }

    /// Brings a block, and a value of each row, of these tensors.
    pub(super) fn bring(
        &self,
        code: Code<'c>,
        [matrix, values]: [&View<'c>; 2],
        batch: Val<'c>,
        row: Val<'c>,
    ) -> PassResult<'c> {
        let (slot, stage) = code.acquire(self.ring.pipeline)?;
        let at = [row, code.index(0)?];
        let shape = self.ring.shape;
        let from = matrix.boxed(code, batch, at, shape)?;
        code.copy_signal(from, self.ring.stage(code, stage)?, slot, false)?;
        let from = values.boxed(code, batch, at, shape)?;
        code.copy_signal(from, self.values(code, stage)?, slot, false)?;
        code.commit_slot(self.ring.pipeline, slot)
    }
}

/// The kernel's arguments, but for what scores read.
pub(super) struct Views<'c> {
    pub queries: View<'c>,
    pub keys: View<'c>,
    pub values: View<'c>,
    pub gradient: View<'c>,
    pub sums: View<'c>,
    pub products: View<'c>,
    pub of_queries: View<'c>,
    pub of_keys: View<'c>,
    pub of_values: View<'c>,
}

/// The most columns of a swizzle's span, 128 bytes or a half or a quarter of them, whose whole numbers are a block's columns, and of
/// which a consumer's part is a whole number too, or lies in one.
pub(super) const fn span(columns: i64, part: i64) -> i64 {
    let mut width = 128 / BYTES;
    while columns % width != 0 || part % width != 0 && width % part != 0 {
        width /= 2;
    }
    width
}

/// The accumulators of 64 rows, whose columns the consumers share.
pub(super) fn beside(columns: i64) -> axe_layout::Result<Layout> {
    let all = [
        (4, 1, "warp"),
        (2, 2, "reg"),
        (8, 4, "lane"),
        (CONSUMERS, 4, "warp"),
        (columns / 8 / CONSUMERS, 4, "reg"),
        (4, 1, "lane"),
        (2, 1, "reg"),
    ];
    layout(&all, &[])
}

pub(super) fn views<'c>(
    kernel: &Kernel<'c>,
    tensors: &Tensors,
    problem: &Problem,
) -> PassResult<'c, Views<'c>> {
    let code = kernel.code;
    let lost = || layout_error(code.builder.location, "nine arguments");
    let &[
        queries,
        keys,
        values,
        gradient,
        sums,
        products,
        ref rest @ ..,
    ] = kernel.arguments.as_slice()
    else {
        return Err(lost());
    };
    // What scores read stands between.
    let &[.., of_queries, of_keys, of_values] = rest else {
        return Err(lost());
    };
    let [_, to_keys, to_values] = &tensors.results;
    let of_rows = of_rows(problem);
    Ok(Views {
        queries: tensors.queries.view(code, queries)?,
        keys: tensors.keys.view(code, keys)?,
        values: tensors.values.view(code, values)?,
        gradient: tensors.gradient.view(code, gradient)?,
        sums: of_rows.view(code, sums)?,
        products: of_rows.view(code, products)?,
        of_queries: of_matrices(problem, problem.depth).view(code, of_queries)?,
        of_keys: to_keys.view(code, of_keys)?,
        of_values: to_values.view(code, of_values)?,
    })
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn parts_of_columns_are_whole_spans_or_lie_in_one() {
        let expected = [(32, 32), (64, 64), (96, 16), (128, 64)];
        for (columns, width) in expected {
            assert_eq!(span(columns, columns / 2), width, "{columns}");
        }
        for (columns, width) in [(16, 16), (48, 16), (96, 32), (112, 16), (128, 64)] {
            assert_eq!(span(columns, columns), width, "{columns}");
        }
    }
}
