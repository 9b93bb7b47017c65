//! Rules of elementwise operations.

use super::Checker;
use crate::program::{Alu, Op, Space, View};

pub(super) fn check(checker: &mut Checker<'_>) {
    checker.same_shape();
    match &checker.instruction.op {
        Op::Activation {
            command, reduce, ..
        } => checker.expect(reduce.is_none() || command.is_some(), "AC2", || {
            "expected reduce_cmd with reduce_res, got none".into()
        }),
        Op::TensorTensor {
            dst,
            data1,
            data2,
            op,
        } => {
            checker.not_both_in_psum(("data1", data1), ("data2", data2));
            checker.types(&[*op], &[dst, data1, data2]);
        }
        Op::TensorScalar {
            dst,
            data,
            first,
            second,
        } => {
            let ops: Vec<_> = std::iter::once(first.op)
                .chain(second.as_ref().map(|step| step.op))
                .collect();
            checker.types(&ops, &[dst, data]);
        }
        Op::ScalarTensorTensor {
            dst,
            data,
            first,
            op1,
            operand1,
            ..
        } => {
            checker.not_both_in_psum(("data", data), ("operand1", operand1));
            checker.types(&[first.op, *op1], &[dst, data, operand1]);
        }
        Op::TensorTensorScan {
            dst,
            data0,
            data1,
            op0,
            op1,
            ..
        } => {
            checker.not_both_in_psum(("data0", data0), ("data1", data1));
            checker.types(&[*op0, *op1], &[dst, data0, data1]);
        }
        _ => {}
    }
}

impl Checker<'_> {
    /// (EW1).
    fn not_both_in_psum(&mut self, a: (&str, &View), b: (&str, &View)) {
        let in_psum = |view: &View| view.space(self.program) == Space::Psum;
        let both = in_psum(a.1) && in_psum(b.1);
        self.expect(!both, "EW1", || {
            format!("expected {} or {} in SBUF, got both in PSUM", a.0, b.0)
        });
    }

    /// (EW2), (EW3).
    pub(super) fn types(&mut self, ops: &[Alu], tiles: &[&View]) {
        let bitwise = ops.iter().filter(|op| op.is_bitwise()).count();
        self.expect(bitwise == 0 || bitwise == ops.len(), "EW2", || {
            let names: Vec<_> = ops.iter().map(|op| op.name()).collect();
            format!(
                "expected functions that are all arithmetic or all bitwise, got {}",
                names.join(" and ")
            )
        });
        let dtypes: Vec<_> = tiles.iter().map(|view| self.dtype(view)).collect();
        let integers = dtypes
            .iter()
            .all(|dtype| !dtype.is_float() && *dtype == dtypes[0]);
        self.expect(bitwise == 0 || integers, "EW3", || {
            let names: Vec<_> = dtypes.iter().map(|dtype| dtype.name()).collect();
            format!(
                "expected integers of one type for a bitwise function, got {}",
                names.join(", ")
            )
        });
    }
}
