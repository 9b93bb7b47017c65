//! Operands whose rows no tensor map takes, as those of a copy whose rows begin with a line.
//!
//! Strides of a tensor map are multiples of 16 bytes. Reading an operand of other rows once and writing it again takes
//! less than multiplying without the tensor memory accelerator, unless the product is small.

use super::cost::Problem;
use super::gemm::count;
use super::layouts::RowTile;
use super::tiles::elementwise_tile;
use crate::facts::chip::{LINE_BYTES, MOST_BLOCKS};
use axe_passes::build::{Code, Kernel, Number, launch, layout_error};
use axe_passes::fuse::frame::{Frame, Operand, operand};
use axe_passes::fuse::reshape::{element_bytes, leading_of, reshape};
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};

/// Multiply-adds from which on a copy pays: two more launches take some microseconds.
const WORTH: i64 = 1 << 25;
/// The length of sums from which on it pays for smaller products, whose warps take as long for each step.
const LONG: i64 = 1024;
/// Rows of a tile at the least, whether the result has them or not.
const LEAST_ROWS: i64 = 16;

/// Columns from which on products of so few rows keep all multiprocessors reading: then a copy, which reads and writes B
/// before it is read again, takes longer (5 x 29569 x 2693: 142 us on an H200, and 90 without).
const MANY_COLUMNS: i64 = 1 << 14;

/// Whether copies of the operands that need one pay.
pub(super) fn pays(problem: Problem) -> bool {
    if problem.m.saturating_mul(problem.batch) <= LEAST_ROWS && problem.n >= MANY_COLUMNS {
        return false;
    }
    let rows = problem.m.max(LEAST_ROWS).saturating_mul(problem.batch);
    let products = rows.saturating_mul(problem.n).saturating_mul(problem.k);
    products >= WORTH || problem.k >= LONG
}

/// A copy of the operand of these extents, whose rows are filled up with zeros.
///
/// # Errors
/// When rows are too long for a grid, or an operation cannot be built.
pub(super) fn padded<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    value: Val<'c>,
    extents: &[i64],
) -> PassResult<'c, Operand<'c>> {
    let Some((&columns, outer)) = extents.split_last() else {
        return Err(layout_error(builder.location, "an operand without rows"));
    };
    let rows = match outer.contains(&DYNAMIC) {
        true => DYNAMIC,
        false => outer.iter().product(),
    };
    let from = frame.operand(builder, value, &[rows, columns])?;
    let element = builder.tensor_of(from.tensor)?.element;
    let bytes = element_bytes(element);
    let wide = count(columns.saturating_mul(bytes), LINE_BYTES).saturating_mul(LINE_BYTES / bytes);
    let count_of = |shape: &[i64]| match shape.first() {
        Some(&DYNAMIC) => leading_of(builder, value, shape).map(Some),
        _ => Ok(None),
    };
    let dynamic = count_of(&[rows, columns])?;
    let sizes: Vec<_> = dynamic.into_iter().collect();
    let r#type = builder.tensor(&[rows, wide], element)?;
    let to = builder.value("tensor.empty", &sizes, r#type, &[])?;
    let copy = Copy {
        from,
        to: operand(builder, to, &[rows, wide])?,
        tile: elementwise_tile(wide, bytes),
    };
    let name = copy.kernel(frame, builder)?;
    let grid = copy.grid(builder, dynamic)?;
    let copies = launch(builder, &name, grid, &[copy.from.tensor], &[copy.to.tensor])?;
    let &[copy] = copies.as_slice() else {
        return Err(layout_error(builder.location, "a launch lacks its result"));
    };
    let shape: Vec<_> = outer.iter().copied().chain([wide]).collect();
    let copy = reshape(builder, copy, &shape, count_of(extents)?)?;
    operand(builder, copy, &shape)
}

/// Rows of one length to rows of another.
struct Copy<'c> {
    from: Operand<'c>,
    to: Operand<'c>,
    tile: RowTile,
}

impl<'c> Copy<'c> {
    /// The kernel of the copy; its name.
    fn kernel(&self, frame: &mut Frame<'c>, builder: &Builder<'c>) -> PassResult<'c, String> {
        let location = builder.location;
        let kernel = Kernel::new(location, frame.module, &[self.from.memref, self.to.memref]);
        let &[source, target] = kernel.arguments.as_slice() else {
            return Err(layout_error(location, "a kernel lacks its arguments"));
        };
        let code = kernel.code;
        let RowTile { rows, columns, .. } = self.tile;
        let at = [
            code.times(code.block("x")?, rows)?,
            code.times(code.block("y")?, columns)?,
        ];
        let element = builder.tensor_of(self.from.tensor)?.element;
        let layout = self.tile.layout();
        let layout = layout.map_err(|error| layout_error(location, error))?;
        let piece = code.load_padded(
            code.global_box(source, &self.from.shape, &at, &[rows, columns])?,
            code.scalar(element, Number::Of(0))?,
            code.fragment(&[rows, columns], element, &layout)?,
        )?;
        let to = code.global_box(target, &self.to.shape, &at, &[rows, columns])?;
        code.store(piece, to)?;
        let name = frame.name("pad");
        kernel.finish(frame.module, &name, self.tile.threads())?;
        Ok(name)
    }

    /// Tiles of rows along x, of columns along y.
    fn grid(
        &self,
        builder: &Builder<'c>,
        dynamic: Option<Val<'c>>,
    ) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let extent = |at: usize| self.to.shape.get(at).copied().unwrap_or(1);
        let y = count(extent(1), self.tile.columns);
        if y > MOST_BLOCKS {
            let what = format!("rows of {} elements are more than a grid has", extent(1));
            return Err(PassError::new(builder.location, what));
        }
        let x = match dynamic {
            Some(rows) => code.ceil_div(rows, self.tile.rows)?,
            None => code.index(count(extent(0), self.tile.rows))?,
        };
        Ok([x, code.index(y)?, code.index(1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::Unit;
    use super::*;

    fn problem(batch: i64, m: i64, n: i64, k: i64) -> Problem {
        Problem {
            batch,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        }
    }

    #[test]
    fn copies_pay_for_large_products() {
        assert!(pays(problem(1, 999, 1001, 1003)));
        assert!(!pays(problem(1, 64, 64, 511)) && pays(problem(1, 17, 128, 2053)));
        // One row multiplies as much as a tile's 16.
        assert!(pays(problem(1, 1, 4001, 4003)));
        assert!(pays(problem(64, 100, 100, 101)));
        assert!(pays(problem(i64::MAX, i64::MAX, i64::MAX, 3)));
        // Reading B three times takes longer than reading it by elements.
        assert!(!pays(problem(1, 5, 29_569, 2693)) && pays(problem(1, 17, 29_569, 2693)));
    }
}
