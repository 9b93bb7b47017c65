//! `axe.gather`: for each row of the result the row of the table that data names, where there is one.

use super::Lowering;
use super::ops::{self, generate, number, sharpen};
use crate::error::{PassError, PassResult};
use crate::ir::value::parts;
use crate::ir::{Builder, Int, Op, TensorType, Val};
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
    let from = lowering.storage(builder, table)?;
    // In memory, or a tensor that the kernel forms.
    let in_memory = TensorType::of_value(rows).is_none();
    let numbers = in_memory.then(|| lowering.storage(builder, rows));
    let numbers = numbers.transpose()?;
    let extents = lowering.extents(builder, table)?;
    let (&count, columns) = extents.split_first().ok_or_else(missing)?;
    let mut sizes = match in_memory {
        true => lowering.extents(builder, rows)?,
        false => ops::extents(builder, rows)?,
    };
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
            let row = match &numbers {
                Some(numbers) => numbers.load(inner, &[row], Some(none))?,
                None => ops::extract(inner, rows, &[row])?,
            };
            let row = ints.cast(Int::Value(row))?;
            let row = match wrap {
                true => ints.wrapped(row, count)?,
                false => row,
            };
            let place = |row| -> Vec<_> {
                let columns = column.iter().copied();
                std::iter::once(row).chain(columns).collect()
            };
            if clamp {
                let row = ints.clamped(row, count)?;
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
