//! `axe.gather`: for each row of the result the row of the table that data names, where there is one.

use super::Lowering;
use super::ops::{generate, number, sharpen};
use crate::error::{PassError, PassResult};
use crate::ir::value::parts;
use crate::ir::{Builder, Int, Op, Val};
use axe_dialect::ops::GatherOp;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// The tensor of the rows.
///
/// # Errors
/// When storage cannot be followed.
pub(super) fn gather<'c>(
    lowering: &Lowering<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
) -> PassResult<'c, Val<'c>> {
    let GatherOp {
        table,
        rows,
        pad,
        wrap,
        clamp,
        result,
        ..
    } = parts(op)?;
    let missing = || PassError::new(op.location(), "a gather without rows");
    let (r#type, tensor) = (result.r#type(), builder.tensor_of(result)?);
    let (from, numbers) = (
        lowering.storage(builder, table)?,
        lowering.storage(builder, rows)?,
    );
    let extents = lowering.extents(builder, table)?;
    let (&count, columns) = extents.split_first().ok_or_else(missing)?;
    let mut sizes = lowering.extents(builder, rows)?;
    sizes.extend_from_slice(columns);
    generate(
        builder,
        r#type,
        &sharpen(sizes, &tensor.shape),
        |inner, at| {
            let (&row, column) = at.split_first().ok_or_else(missing)?;
            let ints = inner.ints();
            // Where a slice has no number, it names no row.
            let none = number(inner, axe_dialect::element_type(rows.r#type()), -1.0)?;
            let row = ints.cast(Int::Value(numbers.load(inner, &[row], Some(none))?))?;
            let row = match wrap {
                true => ints.wrapped(row, count)?,
                false => row,
            };
            let place = |row| -> Vec<_> {
                let columns = column.iter().copied();
                std::iter::once(row).chain(columns).collect()
            };
            if clamp {
                let last = ints.sub(count, Int::Known(1))?;
                let row = ints.max(ints.min(row, last)?, Int::Known(0))?;
                return from.load(inner, &place(row), None);
            }
            inner.choose(
                ints.below(row, count)?,
                |inner| from.load(inner, &place(row), pad),
                |inner| match pad {
                    Some(pad) => Ok(pad),
                    None => number(inner, tensor.element, 0.0),
                },
            )
        },
    )
}
