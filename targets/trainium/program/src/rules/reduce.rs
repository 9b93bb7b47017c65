//! Rules of reductions.

use super::Checker;
use crate::program::{Alu, Op, View};

pub(super) fn check(checker: &mut Checker<'_>) {
    match &checker.instruction.op {
        Op::TensorReduce {
            dst,
            data,
            op,
            axes,
            ..
        } => {
            let plain = matches!(op, Alu::Add | Alu::Multiply | Alu::Maximum | Alu::Minimum)
                || matches!(op, Alu::LogicalAnd | Alu::LogicalOr | Alu::LogicalXor)
                || matches!(op, Alu::BitwiseAnd | Alu::BitwiseOr | Alu::BitwiseXor);
            checker.kind(*op, plain);
            checker.types(&[*op], &[dst, data]);
            last_dimensions(checker, dst, data, *axes);
        }
        Op::TensorScalarReduce { reduce_op, .. } => {
            checker.same_shape();
            let plain = matches!(
                reduce_op,
                Alu::Add | Alu::Multiply | Alu::Maximum | Alu::Minimum
            );
            checker.kind(*reduce_op, plain);
        }
        Op::TensorPartitionReduce { dst, data, op } => {
            let plain = matches!(
                op,
                Alu::Add | Alu::Maximum | Alu::BitwiseAnd | Alu::BitwiseOr
            );
            checker.kind(*op, plain);
            checker.types(&[*op], &[dst, data]);
            let (got, free) = ((dst.partitions(), dst.free()), data.free());
            checker.expect(got == (1, free), "RD2", || {
                format!("expected dst of 1 x {free}, got {} x {}", got.0, got.1)
            });
        }
        _ => {}
    }
}

impl Checker<'_> {
    /// (RD3).
    fn kind(&mut self, op: Alu, admitted: bool) {
        self.expect(admitted, "RD3", || {
            format!("no reduction of this kind is by {op}")
        });
    }
}

fn last_dimensions(checker: &mut Checker<'_>, dst: &View, data: &View, axes: usize) {
    let free = data.axes.len().saturating_sub(1);
    checker.expect((1..=free).contains(&axes), "RD1", || {
        format!("expected 1 to {free} dimensions to reduce, got {axes}")
    });
    let kept = data.axes.len().saturating_sub(axes).max(1);
    let left: i64 = data
        .axes
        .iter()
        .take(kept)
        .skip(1)
        .map(|axis| axis.size)
        .product();
    let (got, partitions) = ((dst.partitions(), dst.free()), data.partitions());
    checker.expect(got == (partitions, left), "RD2", || {
        format!(
            "expected dst of {partitions} x {left}, got {} x {}",
            got.0, got.1
        )
    });
}
