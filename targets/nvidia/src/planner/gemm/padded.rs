//! Operands whose rows no tensor map takes, as those of a copy whose rows begin with a line.
//!
//! Strides of a tensor map are multiples of 16 bytes. Reading an operand of other rows once and writing it again takes
//! less than multiplying without the tensor memory accelerator, unless the product is small.

use crate::facts::chip::{LINE_BYTES, MOST_BLOCKS};
use crate::planner::family::Launch;
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, tile_of_vectors, vector};
use axe_passes::build::{Code, Kernel, Number, launch, layout_error};
use axe_passes::fuse::frame::{Frame, Operand, operand};
use axe_passes::fuse::reshape::{element_bytes, leading_of, reshape};
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};

/// A copy of the operand of these extents, whose rows are filled up with zeros.
///
/// # Errors
/// When rows are too long for a grid, or an operation cannot be built.
pub(super) fn padded<'c>(
    Launch { frame, builder, .. }: &mut Launch<'_, 'c>,
    value: Val<'c>,
    extents: &[i64],
) -> PassResult<'c, Operand<'c>> {
    let builder = *builder;
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
        // What rows of the source are made of.
        tile: tile_of_vectors(wide, vector(columns, bytes), bytes),
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
