//! `axe.grouped_gemm`: for each row of the result its group, found by the offsets, and one sum over K for each element.

use super::Lowering;
use super::gemm::{Matrix, agreed, side, sum_of};
use super::ops::{extract, fold, generate, number, sharpen};
use super::scalar::{convert, wide};
use crate::error::{PassError, PassResult};
use crate::ir::value::parts;
use crate::ir::{Builder, Int, Op, Val};
use axe_dialect::ops::GroupedGemmOp;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// The tensor of the products.
///
/// # Errors
/// When an operand cannot be read.
pub(super) fn gemm<'c>(
    lowering: &Lowering<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
) -> PassResult<'c, Val<'c>> {
    let gemm: GroupedGemmOp = parts(op)?;
    let (r#type, tensor) = (gemm.result.r#type(), builder.tensor_of(gemm.result)?);
    let missing = || PassError::new(op.location(), "a grouped product without its matrices");
    let (a, a_sizes) = Matrix::of(lowering, builder, gemm.a)?;
    let (b, b_sizes) = Matrix::of(lowering, builder, gemm.b)?;
    let groups = b_sizes.first().copied().ok_or_else(missing)?;
    let depth = agreed(side(&a_sizes, true), side(&b_sizes, gemm.trans_b)).ok_or_else(missing)?;
    let sizes = [side(&a_sizes, false), side(&b_sizes, !gemm.trans_b)];
    let sizes: Vec<_> = sizes.into_iter().flatten().collect();
    generate(
        builder,
        r#type,
        &sharpen(sizes, &tensor.shape),
        |inner, at| {
            let &[row, column] = at else {
                return Err(missing());
            };
            let ints = inner.ints();
            let before = bounds_up_to(inner, gemm.offsets, groups, row)?;
            let group = ints.sub(before, Int::Known(1))?;
            // Rows in front of the first group have the number -1, which is more than any without a sign.
            let inside = ints.below(group, groups)?;
            let group = ints.select(inside, group, Int::ZERO)?;
            let depth = ints.select(inside, depth, Int::ZERO)?;
            let zero = number(inner, wide(inner, tensor.element), 0.0)?;
            let total = sum_of(inner, depth, zero, |inner, k| {
                let of_b = match gemm.trans_b {
                    true => [group, column, k],
                    false => [group, k, column],
                };
                let x = a.element(inner, &[row, k], None)?;
                Ok([x, b.element(inner, &of_b, None)?])
            })?;
            convert(inner, total, tensor.element)
        },
    )
}

/// How many bounds of groups are at most this row. A bound is the largest offset so far.
fn bounds_up_to<'c>(
    builder: &Builder<'c>,
    offsets: Val<'c>,
    groups: Int<'c>,
    row: Int<'c>,
) -> PassResult<'c, Int<'c>> {
    let count = builder.ints().add(groups, Int::Known(1))?;
    let zero = builder.index(0)?;
    let found = fold(builder, count, &[zero, zero], |inner, at, carried| {
        let &[bound, before] = carried else {
            return Err(PassError::new(inner.location, "a loop lacks its bound"));
        };
        let ints = inner.ints();
        let offset = ints.cast(Int::Value(extract(inner, offsets, &[Int::Value(at)])?))?;
        let bound = ints.max(Int::Value(bound), offset)?;
        let one_more = ints.add(Int::Value(before), Int::Known(1))?;
        let before = ints.select(ints.less(row, bound)?, Int::Value(before), one_more)?;
        Ok(vec![ints.value(bound)?, ints.value(before)?])
    })?;
    Ok(found.get(1).copied().map_or(Int::ZERO, Int::Value))
}
