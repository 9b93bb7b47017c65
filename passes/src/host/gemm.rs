//! `axe.gemm`: one sum over K for each element of the result, in f64 (integers in the result's type), rounded once.

use super::Lowering;
use super::ops::{extents, extract, fold, generate, number, sharpen};
use super::scalar::{convert, wide};
use super::storage::Storage;
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::parts;
use crate::ir::{Builder, Op, Val, types};
use axe_dialect::ops::GemmOp;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// A matrix operand: a tensor, or storage.
pub(super) enum Matrix<'c> {
    /// A tensor.
    Tensor(Val<'c>),
    /// Storage; elements outside its bounds are zero.
    Memory(Storage<'c>),
}

impl<'c> Matrix<'c> {
    /// The operand that a value is, and its extents.
    ///
    /// # Errors
    /// When it is storage that cannot be followed.
    pub(super) fn of(
        lowering: &Lowering<'c>,
        builder: &Builder<'c>,
        value: Val<'c>,
    ) -> PassResult<'c, (Self, Vec<Int<'c>>)> {
        if types::is_memref(value.r#type()) {
            let storage = lowering.storage(builder, value)?;
            return Ok((Self::Memory(storage), lowering.extents(builder, value)?));
        }
        Ok((Self::Tensor(value), extents(builder, value)?))
    }

    /// The element at an index, or `pad` (zero when absent) where storage has none.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn element(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
        pad: Option<Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Tensor(tensor) => extract(builder, *tensor, at),
            Self::Memory(storage) => storage.load(builder, at, pad),
        }
    }
}

/// The batch indices with a row and a column, exchanged when the operand is transposed.
fn place<'c>(batch: &[Int<'c>], row: Int<'c>, column: Int<'c>, transposed: bool) -> Vec<Int<'c>> {
    let pair = if transposed {
        [column, row]
    } else {
        [row, column]
    };
    batch.iter().copied().chain(pair).collect()
}

/// The extent of the rows or columns of a matrix operand.
pub(super) fn side<'c>(extents: &[Int<'c>], column: bool) -> Option<Int<'c>> {
    let back = if column { 1 } else { 2 };
    extents
        .len()
        .checked_sub(back)
        .and_then(|at| extents.get(at))
        .copied()
}

/// The extent that two operands share: the one that is known, when one is.
pub(super) fn agreed<'c>(a: Option<Int<'c>>, b: Option<Int<'c>>) -> Option<Int<'c>> {
    match (a, b) {
        (Some(Int::Value(_)), Some(Int::Known(known))) => Some(Int::Known(known)),
        (one, other) => one.or(other),
    }
}

/// The tensor of the product.
///
/// # Errors
/// When an operand cannot be read.
pub(super) fn gemm<'c>(
    lowering: &Lowering<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
) -> PassResult<'c, Val<'c>> {
    let gemm: GemmOp = parts(op)?;
    let (r#type, tensor) = (gemm.result.r#type(), builder.tensor_of(gemm.result)?);
    let missing = || PassError::new(op.location(), "a matrix product without two matrices");
    let (trans_a, trans_b) = (gemm.trans_a, gemm.trans_b);
    let (a, a_sizes) = Matrix::of(lowering, builder, gemm.a)?;
    let (b, b_sizes) = Matrix::of(lowering, builder, gemm.b)?;
    let depth = agreed(side(&a_sizes, !trans_a), side(&b_sizes, trans_b)).ok_or_else(missing)?;
    let mut sizes = a_sizes.clone();
    sizes.truncate(a_sizes.len().saturating_sub(2));
    sizes.extend(side(&a_sizes, trans_a));
    sizes.extend(side(&b_sizes, !trans_b));
    let sizes = sharpen(sizes, &tensor.shape);
    generate(builder, r#type, &sizes, |inner, at| {
        let [batch @ .., row, column] = at else {
            return Err(missing());
        };
        let sum = wide(inner, tensor.element);
        let start = match gemm.acc {
            Some(accumulator) => convert(inner, extract(inner, accumulator, at)?, sum)?,
            None => number(inner, sum, 0.0)?,
        };
        let total = sum_of(inner, depth, start, |inner, k| {
            let x = a.element(inner, &place(batch, *row, k, trans_a), None)?;
            let y = b.element(inner, &place(batch, k, *column, trans_b), None)?;
            Ok([x, y])
        })?;
        convert(inner, total, tensor.element)
    })
}

/// `start` and so many products of the two factors that `factors` reads, in the type of `start`.
///
/// # Errors
/// When building fails.
pub(super) fn sum_of<'c>(
    builder: &Builder<'c>,
    depth: Int<'c>,
    start: Val<'c>,
    factors: impl FnOnce(&Builder<'c>, Int<'c>) -> PassResult<'c, [Val<'c>; 2]>,
) -> PassResult<'c, Val<'c>> {
    let sum = start.r#type();
    let (times, plus) = match types::is_float(sum) {
        true => ("arith.mulf", "arith.addf"),
        false => ("arith.muli", "arith.addi"),
    };
    let total = fold(builder, depth, &[start], |inner, k, carried| {
        let [x, y] = factors(inner, Int::Value(k))?;
        let (x, y) = (convert(inner, x, sum)?, convert(inner, y, sum)?);
        let product = inner.value(times, &[x, y], sum, &[])?;
        let carried = carried.first().copied().unwrap_or(start);
        let next = inner.value(plus, &[carried, product], sum, &[])?;
        Ok(vec![next])
    })?;
    Ok(total.first().copied().unwrap_or(start))
}
