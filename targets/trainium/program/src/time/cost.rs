//! What one instruction costs: the issue interval on its engine (ISA, cost of each instruction), or the time of a
//! transfer (DMA).

use crate::facts::chip::{Chip, Engine};
use crate::facts::dma;
use crate::program::view::Access;
use crate::program::{Alu, Op, Program, Space, View};
use axe_package::DType;

/// The least issue interval of the vector, scalar and gpsimd engines, in cycles (ISA).
const ISSUE: f64 = 64.0;
/// What reading the accumulation registers adds, in cycles (ISA `activation`).
const READ_REGISTERS: f64 = 64.0;
/// What gpsimd's instructions by index cost besides one cycle an element (ISA `iota`, `affine_select`).
const GPSIMD_START: f64 = 150.0;
/// A product of f32 takes four passes (ISA `nc_matmul`).
const F32_PASSES: f64 = 4.0;
/// `tensor_partition_reduce` has no documented cost; so many cycles an element and partition are assumed.
const PARTITION_REDUCE: f64 = 1.0;

/// What one execution of an instruction takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Seconds until its engine may start the next one; for DMA, of the engines that move it.
    pub seconds: f64,
    /// DMA engines that it uses.
    pub dma_engines: usize,
    /// Bytes that it moves by DMA.
    pub dma_bytes: f64,
    /// Cycles of the systolic array that its products need at least, were all of it used.
    pub product_cycles: f64,
}

/// The cost of an instruction whose operands name these elements, in the order of [`Op::operands`].
#[must_use]
pub fn cost(op: &Op, engine: Engine, program: &Program, chip: &Chip, accesses: &[&Access]) -> Cost {
    match chip.clock(engine) {
        None => transfer(op, program, chip, accesses),
        Some(clock) => Cost {
            seconds: Shape { program, chip }.cycles(op, engine) / clock,
            product_cycles: product_cycles(op),
            ..Cost::default()
        },
    }
}

/// Multiply-adds over those that the array makes a cycle.
fn product_cycles(op: &Op) -> f64 {
    match op {
        Op::NcMatmul {
            stationary, moving, ..
        } => (stationary.partitions() * stationary.free() * moving.free()) as f64 / (128.0 * 128.0),
        _ => 0.0,
    }
}

fn transfer(op: &Op, program: &Program, chip: &Chip, accesses: &[&Access]) -> Cost {
    let dst = op.dst();
    let size = |access: &Access| program.buffers[access.buffer].dtype.bytes() as i64;
    let elements = dst.partitions().saturating_mul(dst.free());
    let bytes = accesses
        .iter()
        .map(|access| elements.saturating_mul(size(access)))
        .max()
        .unwrap_or(0);
    let chunk = accesses
        .iter()
        .map(|access| row_bytes(access, size(access)))
        .min()
        .unwrap_or(1);
    let partitions = op
        .operands()
        .iter()
        .filter(|operand| operand.view.space(program) == Space::Sbuf)
        .map(|operand| operand.view.partitions())
        .min();
    let engines = partitions.map_or(dma::ENGINES, |count| {
        let share = (count + dma::PARTITIONS_PER_ENGINE - 1) / dma::PARTITIONS_PER_ENGINE;
        share.clamp(1, dma::ENGINES)
    });
    // A transpose by DMA reaches 90 % of the rate from HBM, 50 % from SBUF (A2).
    let turned = match op {
        Op::DmaTranspose { src, .. } if src.space(program) == Space::Hbm => 0.9,
        Op::DmaTranspose { .. } => 0.5,
        _ => dma::efficiency(chip, chunk),
    };
    let rate = chip.dma_bytes_per_second * engines as f64 / dma::ENGINES as f64 * turned;
    Cost {
        seconds: bytes as f64 / rate,
        dma_engines: engines as usize,
        dma_bytes: bytes as f64,
        ..Cost::default()
    }
}

/// Bytes of a partition, or of a row in HBM, that follow each other without a gap.
fn row_bytes(access: &Access, size: i64) -> i64 {
    let row = Access {
        axes: access.axes.iter().skip(1).copied().collect(),
        ..access.clone()
    };
    row.contiguous().saturating_mul(size)
}

struct Shape<'a> {
    program: &'a Program,
    chip: &'a Chip,
}

impl Shape<'_> {
    fn dtype(&self, view: &View) -> DType {
        self.program.buffers[view.buffer].dtype
    }

    fn space(&self, view: &View) -> Space {
        view.space(self.program)
    }

    fn is_half(&self, view: &View) -> bool {
        matches!(self.dtype(view), DType::BF16 | DType::F16)
    }

    fn in_sbuf(&self, views: &[&View]) -> bool {
        views.iter().all(|view| self.space(view) == Space::Sbuf)
    }

    /// Whether the innermost elements of a view follow each other.
    fn contiguous(&self, view: &View) -> bool {
        let buffer = &self.program.buffers[view.buffer];
        view.axes.last().is_none_or(|axis| {
            axis.size == 1 || (axis.of == Some(buffer.shape.len() - 1) && axis.step == 1)
        })
    }

    /// Elements a cycle of `tensor_copy` and `tensor_scalar` on trn2's vector engine (A2, fast modes).
    fn copy_speed(&self, engine: Engine, dst: &View, src: &View) -> f64 {
        let fast = self.chip.fast_vector_modes && engine == Engine::Vector;
        match fast && self.is_half(dst) && self.is_half(src) {
            false => 1.0,
            true if !self.in_sbuf(&[dst, src]) => 2.0,
            true if self.contiguous(dst) && self.contiguous(src) => 4.0,
            true => 2.0,
        }
    }

    /// Cycles from this instruction to the next of the engine.
    fn cycles(&self, op: &Op, engine: Engine) -> f64 {
        let n = op
            .operands()
            .iter()
            .map(|operand| operand.view.free())
            .max()
            .unwrap_or(1) as f64;
        let issue = |cycles: f64| cycles.max(ISSUE);
        match op {
            Op::NcMatmul {
                stationary, moving, ..
            } => {
                let columns = (stationary.free() as f64)
                    .min(64.0)
                    .max(moving.free() as f64);
                let passes = if self.dtype(moving) == DType::F32 {
                    F32_PASSES
                } else {
                    1.0
                };
                columns * passes
            }
            Op::NcTranspose { data, .. } if engine == Engine::Tensor => {
                let passes = if self.dtype(data) == DType::F32 {
                    F32_PASSES
                } else {
                    1.0
                };
                (data.partitions() as f64).max((data.free() as f64).min(64.0)) * passes
            }
            Op::TensorCopy { dst, src } => issue(n / self.copy_speed(engine, dst, src)),
            Op::TensorScalar { dst, data, .. } => issue(n / self.copy_speed(engine, dst, data)),
            Op::Memset { dst, value } if *value == 0.0 && self.is_half(dst) => issue(n / 2.0),
            Op::TensorCopyPredicated { dst, src, .. } if self.in_sbuf(&[dst, src]) => {
                issue(2.0 * n)
            }
            Op::Activation { reduce, .. } => {
                issue(n)
                    + if reduce.is_some() {
                        READ_REGISTERS
                    } else {
                        0.0
                    }
            }
            Op::TensorTensor {
                dst,
                data1,
                data2,
                op,
            } => self.two_tiles(n, *op, dst, data1, data2),
            Op::ScalarTensorTensor {
                dst,
                data,
                first,
                op1,
                operand1,
                ..
            } => {
                let halves = [dst, data, operand1].iter().all(|view| self.is_half(view));
                let fused = first.op == Alu::Subtract && *op1 == Alu::Multiply;
                issue(if halves && fused { n } else { 2.0 * n })
            }
            Op::TensorReduce { dst, data, op, .. } => {
                let halves = self.is_half(dst) && self.is_half(data);
                let quick = matches!(op, Alu::Add | Alu::Maximum);
                issue(if halves && quick { n / 2.0 } else { n })
            }
            Op::TensorScalarReduce { .. } => issue(n) + READ_REGISTERS,
            Op::TensorPartitionReduce { data, .. } => {
                GPSIMD_START + PARTITION_REDUCE * n * data.partitions() as f64
            }
            Op::Reciprocal { .. } => issue(8.0 * n),
            Op::AffineSelect { .. } | Op::Iota { .. } => GPSIMD_START + n,
            Op::BnAggr { .. } => issue(13.0 * n / 3.0),
            Op::TensorTensorScan { .. } => issue(2.0 * n),
            Op::NcTranspose { .. }
            | Op::DmaTranspose { .. }
            | Op::DmaCopy { .. }
            | Op::Memset { .. }
            | Op::TensorCopyPredicated { .. }
            | Op::NcStreamShuffle { .. }
            | Op::RangeSelect { .. }
            | Op::BnStats { .. }
            | Op::Max8 { .. }
            | Op::NcFindIndex8 { .. }
            | Op::NcMatchReplace8 { .. } => issue(n),
        }
    }

    fn two_tiles(&self, n: f64, op: Alu, dst: &View, data1: &View, data2: &View) -> f64 {
        let all = [dst, data1, data2];
        let from_psum = !self.in_sbuf(&[data1, data2]);
        let halves = all.iter().all(|view| self.is_half(view));
        if self.chip.fast_vector_modes && halves && !from_psum {
            return n.max(ISSUE);
        }
        let linear = matches!(op, Alu::Add | Alu::Subtract | Alu::Multiply);
        let bf16 = all.iter().all(|view| self.dtype(view) == DType::BF16);
        let plain = self.in_sbuf(&all) && all.iter().all(|view| self.contiguous(view));
        match from_psum || (linear && bf16 && plain) {
            true => n.max(ISSUE),
            false => (2.0 * n).max(ISSUE),
        }
    }
}
