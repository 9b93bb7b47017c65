//! `axe.scaled_gemm`: for each element of the result the sum over blocks of K, each with its scales, in f64, rounded
//! once.

use super::Lowering;
use super::gemm::{Matrix, agreed, side, sum_of};
use super::ops::{f64, fold, generate, number, sharpen};
use super::scalar::convert;
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::parts;
use crate::ir::{Builder, Op, Val};
use axe_dialect::ops::ScaledGemmOp;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// The tensor of the product.
///
/// # Errors
/// When an operand cannot be read.
pub(super) fn gemm<'c>(
    lowering: &Lowering<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
) -> PassResult<'c, Val<'c>> {
    let gemm: ScaledGemmOp = parts(op)?;
    let (r#type, tensor) = (gemm.result.r#type(), builder.tensor_of(gemm.result)?);
    let missing = || PassError::new(op.location(), "a scaled product has matrices and scales");
    let matrix = |value| Matrix::of(lowering, builder, value);
    let ((a, a_sizes), (b, b_sizes)) = (matrix(gemm.a)?, matrix(gemm.b)?);
    let ((scale_a, _), (scale_b, _)) = (matrix(gemm.scale_a)?, matrix(gemm.scale_b)?);
    let (block_n, block_k) = (gemm.block_n.max(1), gemm.block_k.max(1));
    let transposed = gemm.trans_scale_a;
    let depth = agreed(side(&a_sizes, true), side(&b_sizes, true)).ok_or_else(missing)?;
    let sizes: Vec<_> = [side(&a_sizes, false), side(&b_sizes, false)]
        .into_iter()
        .flatten()
        .collect();
    let ints = builder.ints();
    let blocks = ints.div(ints.add(depth, Int::Known(block_k - 1))?, block_k)?;
    let sum = f64(builder);
    generate(
        builder,
        r#type,
        &sharpen(sizes, &tensor.shape),
        |inner, at| {
            let &[row, column] = at else {
                return Err(missing());
            };
            let zero = number(inner, sum, 0.0)?;
            let total = fold(inner, blocks, &[zero], |inner, block, carried| {
                let first = inner.ints().mul(Int::Value(block), block_k)?;
                let sized = rest(inner, depth, first, block_k)?;
                let part = sum_of(inner, sized, number(inner, sum, 0.0)?, |inner, k| {
                    let k = inner.ints().add(first, k)?;
                    let x = a.element(inner, &[row, k], None)?;
                    Ok([x, b.element(inner, &[column, k], None)?])
                })?;
                let block = Int::Value(block);
                let of_row = if transposed {
                    [block, row]
                } else {
                    [row, block]
                };
                let x = convert(inner, scale_a.element(inner, &of_row, None)?, sum)?;
                let of_column = [inner.ints().div(column, block_n)?, block];
                let y = convert(inner, scale_b.element(inner, &of_column, None)?, sum)?;
                let scale = inner.value("arith.mulf", &[x, y], sum, &[])?;
                let scaled = inner.value("arith.mulf", &[part, scale], sum, &[])?;
                add(inner, carried, scaled)
            })?;
            convert(
                inner,
                total.first().copied().unwrap_or(zero),
                tensor.element,
            )
        },
    )
}

/// The carried sum and a term.
fn add<'c>(
    builder: &Builder<'c>,
    carried: &[Val<'c>],
    term: Val<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let sum = match carried.first() {
        Some(carried) => builder.value("arith.addf", &[*carried, term], term.r#type(), &[])?,
        None => term,
    };
    Ok(vec![sum])
}

/// What is left of `depth` from `first` on, `block` at most.
fn rest<'c>(
    builder: &Builder<'c>,
    depth: Int<'c>,
    first: Int<'c>,
    block: i64,
) -> PassResult<'c, Int<'c>> {
    let index = builder.index_type();
    let operands = [builder.ints().value(depth)?, builder.ints().value(first)?];
    let left = builder.value("arith.subi", &operands, index, &[])?;
    let operands = [left, builder.index(block)?];
    let rest = builder.value("arith.minui", &operands, index, &[])?;
    Ok(Int::Value(rest))
}
