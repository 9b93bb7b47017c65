//! Rules of copies and fills.

use super::Checker;
use crate::facts::memory::QUADRANT;
use crate::program::{Op, Space, View};
use axe_package::DType;

pub(super) fn check(checker: &mut Checker<'_>) {
    match &checker.instruction.op {
        Op::DmaCopy { dst, src } => {
            let count = |view: &View| view.partitions().saturating_mul(view.free());
            let (to, from) = (count(dst), count(src));
            checker.expect(to == from, "CP1", || {
                format!(
                    "expected as many elements on both sides, got {to} in dst and {from} in src"
                )
            });
        }
        Op::TensorCopy { .. } => checker.same_shape(),
        Op::Memset { dst, value } => fill(checker, dst, *value),
        Op::TensorCopyPredicated {
            dst,
            src,
            predicate,
            ..
        } => predicated(checker, dst, src, predicate),
        Op::NcStreamShuffle { dst, src, mask } => shuffle(checker, dst, src, mask),
        _ => {}
    }
}

impl Checker<'_> {
    /// (O8), (O9) for all operands that are tiles of the destination's shape.
    pub(super) fn same_shape(&mut self) {
        let op = &self.instruction.op;
        let dst = op.dst();
        let (partitions, free) = (dst.partitions(), dst.free());
        for operand in op.operands().into_iter().skip(1) {
            if is_per_partition(operand.role) {
                continue;
            }
            let (p, f) = (operand.view.partitions(), operand.view.free());
            self.expect(p == partitions, "O8", || {
                format!(
                    "{}: expected {partitions} partitions as in dst, got {p}",
                    operand.role
                )
            });
            self.expect(f == free, "O9", || {
                format!(
                    "{}: expected {free} elements a partition as in dst, got {f}",
                    operand.role
                )
            });
        }
        self.per_partition(partitions);
    }

    /// (O8), (O11) for the operands that give one value to each partition.
    pub(super) fn per_partition(&mut self, partitions: i64) {
        let op = &self.instruction.op;
        for operand in op.operands() {
            if !is_per_partition(operand.role) || self.is_tile_operand(operand.role) {
                continue;
            }
            let (p, f) = (operand.view.partitions(), operand.view.free());
            let dtype = self.dtype(operand.view);
            self.expect(p == partitions, "O8", || {
                format!(
                    "{}: expected {partitions} partitions as in dst, got {p}",
                    operand.role
                )
            });
            let float = dtype == DType::F32 || (operand.role == "bias" && dtype.is_float());
            let rule = if operand.role == "bias" { "AC1" } else { "O11" };
            self.expect(f == 1 && float, rule, || {
                format!(
                    "{}: expected one f32 element a partition, got {f} of {dtype}",
                    operand.role
                )
            });
        }
    }

    /// Whether a role that gives one value to each partition elsewhere is a whole tile here.
    fn is_tile_operand(&self, role: &str) -> bool {
        role == "operand1" && matches!(self.instruction.op, Op::ScalarTensorTensor { .. })
    }
}

/// Whether the parameter of this name gives one value to each partition.
fn is_per_partition(role: &str) -> bool {
    matches!(
        role,
        "bias" | "scale" | "operand0" | "operand1" | "reduce_res" | "bound0" | "bound1" | "initial"
    )
}

fn fill(checker: &mut Checker<'_>, dst: &View, value: f64) {
    let dtype = checker.dtype(dst);
    let mut bytes = Vec::new();
    dtype.push_f64(value, &mut bytes);
    let kept = dtype.to_f64(&bytes) == Some(value);
    checker.expect(dtype.is_float() || kept, "CP5", || {
        format!("expected a value of {dtype}, got {value}")
    });
}

fn predicated(checker: &mut Checker<'_>, dst: &View, src: &View, predicate: &View) {
    checker.same_shape();
    let kind = checker.dtype(predicate);
    checker.expect(
        matches!(kind, DType::U8 | DType::U16 | DType::U32),
        "CP2",
        || format!("expected a predicate of u8, u16 or u32, got {kind}"),
    );
    let (from, to) = (checker.dtype(src), checker.dtype(dst));
    checker.expect(from == to, "CP3", || {
        format!("expected dst of {from}, got {to}")
    });
    let both = [src, predicate]
        .iter()
        .all(|view| view.space(checker.program) == Space::Psum);
    checker.expect(!both, "CP4", || {
        "expected src or predicate in SBUF, got both in PSUM".into()
    });
}

fn shuffle(checker: &mut Checker<'_>, dst: &View, src: &View, mask: &[i64]) {
    checker.same_shape();
    let sound = mask.len() as i64 == QUADRANT
        && mask
            .iter()
            .all(|entry| (0..QUADRANT).contains(entry) || *entry == 255);
    checker.expect(sound, "SH1", || {
        format!("expected {QUADRANT} entries of 0 to 31 or 255, got {mask:?}")
    });
    let (from, to) = (checker.dtype(src), checker.dtype(dst));
    let partitions = dst.partitions();
    checker.expect(partitions % QUADRANT == 0 && from == to, "SH2", || {
        format!("expected a multiple of {QUADRANT} partitions and one type, got {partitions}, {from} to {to}")
    });
}
