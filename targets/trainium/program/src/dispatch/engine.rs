//! Single instructions on the engine that costs least.

use super::choose::seconds_of;
use crate::facts::chip::Engine;
use crate::program::{Builder, Function, Instruction, Op, View};
use crate::rules::engine::{engines, reaches};

/// `dst = src` of one shape, both on chip.
pub(super) fn copy(b: &mut Builder, dst: View, src: View) {
    let mut ops = vec![Op::TensorCopy {
        dst: dst.clone(),
        src: src.clone(),
    }];
    // The scalar engine goes through f32, which keeps floats alone.
    if b.dtype(&dst).is_float() && b.dtype(&src).is_float() {
        ops.push(Op::Activation {
            dst,
            data: src,
            function: Function::Copy,
            bias: None,
            scale: 1.0.into(),
            command: None,
            reduce: None,
        });
    }
    cheapest(b, ops);
}

/// `dst = number`.
pub(super) fn fill(b: &mut Builder, dst: View, value: f64) {
    cheapest(b, vec![Op::Memset { dst, value }]);
}

/// The one of several operations, all the same in effect, and the engine that cost least.
pub(super) fn cheapest(b: &mut Builder, ops: Vec<Op>) {
    let Some(chip) = b.program().chip() else {
        return;
    };
    let mut best: Option<(f64, Instruction)> = None;
    for op in ops {
        for engine in engines(&op, chip) {
            let reached = |operand: &crate::program::Operand<'_>| {
                reaches(engine, operand.view.space(b.program()), operand.writes)
            };
            if engine == Engine::Tensor || !op.operands().iter().all(reached) {
                continue;
            }
            let instruction = Instruction {
                op: op.clone(),
                engine,
                location: None,
            };
            let seconds = seconds_of(b, chip, &instruction);
            if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                best = Some((seconds, instruction));
            }
        }
    }
    if let Some((_, instruction)) = best {
        b.op_on(instruction.engine, instruction.op);
    }
}
