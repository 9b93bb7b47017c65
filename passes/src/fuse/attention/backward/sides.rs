//! A product of gradients, by its two operands: weights, or what is formed of them, and another.

use crate::fuse::attention::index::{self, Index, Place, Var};
use crate::fuse::attention::product;
use crate::fuse::attention::read::static_shape;
use crate::ir::value::only_result;
use crate::ir::{Op, Val};
use axe_dialect::Typed;
use axe_dialect::ops::GemmOp;

/// A product as `sum_over weights(outer, over) other(over, free)`.
pub(super) struct Sides<'c> {
    pub gemm: GemmOp<'c>,
    /// Whether the weights are operand A.
    pub weights_are_a: bool,
    pub outer: i64,
    pub over: i64,
    pub free: i64,
}

impl<'c> Sides<'c> {
    pub(super) fn of(op: Op<'c>, weights_are_a: bool) -> Option<Self> {
        let gemm = GemmOp::of(op).filter(|gemm| gemm.acc.is_none_or(product::is_zero))?;
        let result = static_shape(only_result(op)?)?;
        let &[.., m, n] = result.as_slice() else {
            return None;
        };
        let [outer, free] = if weights_are_a { [m, n] } else { [n, m] };
        Some(Self {
            over: product::depth(&gemm)?,
            gemm,
            weights_are_a,
            outer,
            free,
        })
    }

    /// Problems, and the index of each dimension of them.
    pub(super) fn batch(&self) -> Option<(i64, Place)> {
        let result = static_shape(only_result(self.gemm.op)?)?;
        let shape = result.get(..result.len().checked_sub(2)?)?;
        let total = shape
            .iter()
            .try_fold(1i64, |total, own| total.checked_mul(*own))?;
        Some((
            total,
            index::regrouped(&[index::whole(Var::Batch, total)], shape)?,
        ))
    }

    /// The weights (or the other operand), and the place of an element.
    pub(super) fn operand(
        &self,
        weights: bool,
        own: Index,
        over: Index,
    ) -> Option<(Val<'c>, Place)> {
        let (_, batch) = self.batch()?;
        let (value, over_first) = match weights == self.weights_are_a {
            true => (self.gemm.a, self.gemm.trans_a),
            false => (self.gemm.b, !self.gemm.trans_b),
        };
        let last = if over_first { [over, own] } else { [own, over] };
        Some((value, [batch, last.to_vec()].concat()))
    }
}
