//! Which engine executes an operation, and which memory it reaches.

use super::Checker;
use crate::facts::chip::{Chip, Engine, Generation};
use crate::program::{Alu, Op, Program, Space, View};
use axe_package::DType;

/// The engines that execute an operation on a chip, whatever its operands.
#[must_use]
pub fn engines(op: &Op, chip: &Chip) -> Vec<Engine> {
    let trn2 = chip.is_at_least(Generation::Gen3);
    let scalar = |does: bool| {
        if does && chip.scalar_copies {
            Some(Engine::Scalar)
        } else {
            None
        }
    };
    match op {
        Op::NcMatmul { .. } => vec![Engine::Tensor],
        Op::NcTranspose { .. } => vec![Engine::Tensor, Engine::Vector],
        Op::DmaTranspose { .. } if !trn2 => vec![],
        Op::DmaTranspose { .. } | Op::DmaCopy { .. } => vec![Engine::Dma],
        Op::TensorCopy { .. } => [Engine::Vector, Engine::Gpsimd]
            .into_iter()
            .chain(scalar(true))
            .collect(),
        Op::Memset { .. } => vec![Engine::Vector, Engine::Gpsimd],
        Op::Activation { .. } => vec![Engine::Scalar],
        Op::TensorTensor { op: Alu::Power, .. } => vec![Engine::Gpsimd],
        Op::TensorTensor { .. } => vec![Engine::Vector, Engine::Gpsimd],
        Op::TensorScalar { first, second, .. } => {
            let ops = || std::iter::once(first.op).chain(second.as_ref().map(|step| step.op));
            if ops().any(|op| op == Alu::Power) {
                return vec![Engine::Gpsimd];
            }
            let linear = ops().all(|op| matches!(op, Alu::Add | Alu::Multiply));
            std::iter::once(Engine::Vector)
                .chain(scalar(linear))
                .collect()
        }
        Op::RangeSelect { .. } if !trn2 => vec![],
        Op::TensorPartitionReduce { .. } | Op::AffineSelect { .. } | Op::Iota { .. } => {
            vec![Engine::Gpsimd]
        }
        Op::TensorCopyPredicated { .. }
        | Op::NcStreamShuffle { .. }
        | Op::ScalarTensorTensor { .. }
        | Op::TensorReduce { .. }
        | Op::TensorScalarReduce { .. }
        | Op::Reciprocal { .. }
        | Op::RangeSelect { .. }
        | Op::BnStats { .. }
        | Op::BnAggr { .. }
        | Op::TensorTensorScan { .. }
        | Op::Max8 { .. }
        | Op::NcFindIndex8 { .. }
        | Op::NcMatchReplace8 { .. } => vec![Engine::Vector],
    }
}

/// Whether an engine reaches a space, for reading or for writing (A1; MIG: DMA does not reach PSUM).
#[must_use]
pub const fn reaches(engine: Engine, space: Space, writes: bool) -> bool {
    match engine {
        Engine::Tensor => matches!((space, writes), (Space::Sbuf, false) | (Space::Psum, true)),
        Engine::Vector | Engine::Scalar => matches!(space, Space::Sbuf | Space::Psum),
        Engine::Gpsimd => matches!(space, Space::Sbuf),
        Engine::Dma => matches!(space, Space::Hbm | Space::Sbuf),
    }
}

fn reaches_all(op: &Op, engine: Engine, program: &Program) -> bool {
    op.operands()
        .iter()
        .all(|operand| reaches(engine, operand.view.space(program), operand.writes))
}

/// The engine that NKI picks where the author names none: the first that executes the operation and reaches its operands;
/// gpsimd for 32-bit integers (ISA `tensor_tensor`). `None` when no engine of the chip executes it.
#[must_use]
pub fn default_engine(op: &Op, program: &Program, chip: &Chip) -> Option<Engine> {
    let engines = engines(op, chip);
    let dtype = |view: &View| program.buffers.get(view.buffer).map(|buffer| buffer.dtype);
    if let Op::TensorTensor { data1, data2, .. } = op {
        let integers = [data1, data2]
            .into_iter()
            .all(|view| matches!(dtype(view), Some(DType::I32 | DType::U32)));
        if integers && engines.contains(&Engine::Gpsimd) && reaches_all(op, Engine::Gpsimd, program)
        {
            return Some(Engine::Gpsimd);
        }
    }
    let reaching = engines
        .iter()
        .copied()
        .find(|engine| reaches_all(op, *engine, program));
    reaching.or(engines.first().copied())
}

pub(super) fn check(checker: &mut Checker<'_>) {
    let (op, engine, chip) = (
        &checker.instruction.op,
        checker.instruction.engine,
        checker.chip,
    );
    let allowed = engines(op, chip);
    if allowed.is_empty() {
        return checker.report("O7", format!("no engine of {} executes it", chip.name));
    }
    if !allowed.contains(&engine) {
        let names: Vec<_> = allowed.iter().map(|engine| engine.name()).collect();
        checker.report(
            "O7",
            format!(
                "expected engine {} on {}, got {engine}",
                names.join(" or "),
                chip.name
            ),
        );
        return;
    }
    for operand in op.operands() {
        let space = operand.view.space(checker.program);
        if !reaches(engine, space, operand.writes) {
            let verb = if operand.writes { "write" } else { "read" };
            checker.report(
                "O6",
                format!(
                    "{}: the {engine} engine does not {verb} {space}",
                    operand.role
                ),
            );
        }
    }
}
