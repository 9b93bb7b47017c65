//! Elementwise operations and reductions.

use super::{Task, Values};
use crate::facts::chip::Engine;
use crate::program::{Alu, Op, Reduction, Scalar, Step};
use axe_package::DType;

/// A value for each partition.
enum PerRow {
    Number(f32),
    Column(Values),
}

impl PerRow {
    fn of_row(&self, row: usize) -> f32 {
        match self {
            PerRow::Number(value) => *value,
            PerRow::Column(values) => values.of_row(row),
        }
    }
}

impl Task<'_, '_, '_> {
    fn per_row(&mut self, scalar: &Scalar, role: &str) -> PerRow {
        match scalar {
            Scalar::Number(value) => PerRow::Number(*value as f32),
            Scalar::Tile(_) => PerRow::Column(self.values(role)),
        }
    }

    /// `data op operand` for every element.
    fn step(&mut self, data: &mut Values, step: &Step, role: &str) {
        let operand = self.per_row(&step.operand, role);
        let columns = data.columns.max(1);
        for (row, values) in data.data.chunks_exact_mut(columns).enumerate() {
            let with = operand.of_row(row);
            for value in values {
                *value = match step.reverse {
                    false => step.op.apply(*value, with),
                    true => step.op.apply(with, *value),
                };
            }
        }
    }

    pub(super) fn activation(&mut self) {
        let Op::Activation {
            function,
            scale,
            command,
            ..
        } = &self.execution.instruction.op
        else {
            return;
        };
        let mut data = self.values("data");
        let scale = self.per_row(scale, "scale");
        let bias = match self.operand("bias") {
            Some(_) => PerRow::Column(self.values("bias")),
            None => PerRow::Number(0.0),
        };
        let columns = data.columns.max(1);
        let mut outside = None;
        for (row, values) in data.data.chunks_exact_mut(columns).enumerate() {
            let (scale, bias) = (scale.of_row(row), bias.of_row(row));
            for value in values {
                let argument = *value * scale + bias;
                if !function.accepts(argument) {
                    outside.get_or_insert((row, argument));
                }
                *value = function.apply(argument);
            }
        }
        if let Some((row, argument)) = outside {
            let (low, high) = function.range();
            self.report("R4", format!("expected arguments of {function} from {low:e} to {high:e}, got {argument:e} in partition {row}"));
        }
        self.put("dst", &data.data);
        self.accumulate(*command, &data);
    }

    fn accumulate(&mut self, command: Option<Reduction>, data: &Values) {
        let Some(command) = command else {
            return;
        };
        let Some(first) = self
            .operand("dst")
            .map(|dst| dst.partition + dst.access.partition)
        else {
            return;
        };
        let mut sums = Vec::new();
        for row in 0..data.rows() {
            let Some(register) = self.machine.registers.get_mut(first as usize + row) else {
                continue;
            };
            if command == Reduction::ResetReduce {
                *register = 0.0;
            }
            *register += data.row(row).iter().sum::<f32>();
            sums.push(*register);
        }
        self.put("reduce_res", &sums);
    }

    pub(super) fn elementwise(&mut self) {
        let instruction = self.execution.instruction;
        match &instruction.op {
            Op::TensorTensor { op, .. } => self.two_tiles(*op, instruction.engine),
            Op::TensorScalar { first, second, .. } => self.one_tile(first, second.as_ref()),
            Op::ScalarTensorTensor {
                first,
                op1,
                reverse1,
                ..
            } => {
                let mut data = self.values("data");
                self.step(&mut data, first, "operand0");
                let other = self.values("operand1");
                for (value, with) in data.data.iter_mut().zip(other.data) {
                    *value = match reverse1 {
                        false => op1.apply(*value, with),
                        true => op1.apply(with, *value),
                    };
                }
                self.put("dst", &data.data);
            }
            Op::Reciprocal { .. } => {
                let data = self.values("data");
                let inverse: Vec<f32> = data.data.iter().map(|value| 1.0 / value).collect();
                self.put("dst", &inverse);
            }
            Op::TensorTensorScan {
                initial, op0, op1, ..
            } => {
                let (data0, data1) = (self.values("data0"), self.values("data1"));
                let initial = self.per_row(initial, "initial");
                let mut out = Vec::with_capacity(data0.data.len());
                for row in 0..data0.rows() {
                    let mut state = initial.of_row(row);
                    for (a, b) in data0.row(row).iter().zip(data1.row(row)) {
                        state = op1.apply(op0.apply(state, *a), *b);
                        out.push(state);
                    }
                }
                self.put("dst", &out);
            }
            _ => {}
        }
    }

    fn two_tiles(&mut self, op: Alu, engine: Engine) {
        if op.is_bitwise() {
            let ((bits, a), (_, b)) = (self.bits("data1"), self.bits("data2"));
            let results: Vec<_> = a
                .iter()
                .zip(b)
                .filter_map(|(a, b)| op.apply_bits(*a, b, bits))
                .collect();
            return self.put_bits(&results, bits);
        }
        // gpsimd computes in 32-bit integers (ISA `tensor_tensor`), the other engines in f32.
        let integers = ["data1", "data2", "dst"].iter().all(|role| {
            self.operand(role)
                .is_some_and(|operand| matches!(self.dtype(operand), DType::I32 | DType::U32))
        });
        if engine == Engine::Gpsimd && integers && integer(op, 0, 0).is_some() {
            return self.two_integer_tiles(op);
        }
        let (a, b) = (self.values("data1"), self.values("data2"));
        let results: Vec<f32> = a
            .data
            .iter()
            .zip(b.data)
            .map(|(a, b)| op.apply(*a, b))
            .collect();
        self.put("dst", &results);
    }

    fn two_integer_tiles(&mut self, op: Alu) {
        let ((from, _, a), (_, _, b)) = (self.raw("data1"), self.raw("data2"));
        let Some(to) = self.operand("dst").map(|dst| self.dtype(dst)) else {
            return;
        };
        let exact = |bytes: &[u8]| from.to_f64(bytes).unwrap_or(0.0) as i64;
        let mut bytes = Vec::with_capacity(a.len());
        for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
            let value = integer(op, exact(a), exact(b)).unwrap_or(0);
            // Saturated sums and products of 32-bit integers are exact in f64 where they are kept.
            to.push_f64(value as f64, &mut bytes);
        }
        self.store("dst", &bytes);
    }

    fn one_tile(&mut self, first: &Step, second: Option<&Step>) {
        if first.op.is_bitwise() {
            let (bits, mut data) = self.bits("data");
            for step in std::iter::once(first).chain(second) {
                let Scalar::Number(with) = step.operand else {
                    return;
                };
                let with = with as i64 as u32;
                for value in &mut data {
                    let (a, b) = if step.reverse {
                        (with, *value)
                    } else {
                        (*value, with)
                    };
                    *value = step.op.apply_bits(a, b, bits).unwrap_or(0);
                }
            }
            return self.put_bits(&data, bits);
        }
        let mut data = self.values("data");
        self.step(&mut data, first, "operand0");
        if let Some(second) = second {
            self.step(&mut data, second, "operand1");
        }
        self.put("dst", &data.data);
    }

    fn put_bits(&mut self, values: &[u32], bits: u32) {
        let size = (bits / 8) as usize;
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes().into_iter().take(size))
            .collect();
        self.store("dst", &bytes);
    }

    pub(super) fn reduction(&mut self) {
        match &self.execution.instruction.op {
            Op::TensorReduce {
                op,
                axes,
                negate,
                data,
                ..
            } => {
                let reduced = data.axes.iter().rev().take(*axes);
                let length: i64 = reduced.map(|axis| axis.size).product();
                self.along_rows(*op, length as usize, *negate);
            }
            Op::TensorScalarReduce {
                first, reduce_op, ..
            } => {
                let mut data = self.values("data");
                self.step(&mut data, first, "operand0");
                self.put("dst", &data.data);
                let results: Vec<f32> = (0..data.rows())
                    .map(|row| fold(*reduce_op, data.row(row)))
                    .collect();
                self.put("reduce_res", &results);
            }
            Op::TensorPartitionReduce { op, .. } => self.over_partitions(*op),
            _ => {}
        }
    }

    /// Reduces each so many elements that follow each other.
    fn along_rows(&mut self, op: Alu, length: usize, negate: bool) {
        if op.is_bitwise() {
            let (bits, data) = self.bits("data");
            let combine = |a, b: &u32| op.apply_bits(a, *b, bits).unwrap_or(0);
            let results: Vec<u32> = data
                .chunks_exact(length)
                .map(|chunk| chunk.iter().skip(1).fold(chunk[0], combine))
                .collect();
            return self.put_bits(&results, bits);
        }
        let values = self.values("data");
        let sign = if negate { -1.0 } else { 1.0 };
        let chunks = values.data.chunks_exact(length);
        let results: Vec<f32> = chunks.map(|chunk| fold(op, chunk) * sign).collect();
        self.put("dst", &results);
    }

    /// Reduces each column.
    fn over_partitions(&mut self, op: Alu) {
        if op.is_bitwise() {
            let columns = self.operand("data").map_or(1, |data| {
                let free = data.access.axes.iter().skip(1);
                free.map(|axis| axis.size as usize).product()
            });
            let (bits, data) = self.bits("data");
            let combine = |a, b| op.apply_bits(a, b, bits).unwrap_or(0);
            return self.put_bits(&by_columns(data.chunks_exact(columns), combine), bits);
        }
        let data = self.values("data");
        let rows = (0..data.rows()).map(|row| data.row(row));
        let results = by_columns(rows, |a, b| op.apply(a, b));
        self.put("dst", &results);
    }
}

/// Rows combined into one, element by element.
fn by_columns<'r, T: Copy + 'r>(
    mut rows: impl Iterator<Item = &'r [T]>,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut results = rows.next().unwrap_or_default().to_vec();
    for row in rows {
        for (result, value) in results.iter_mut().zip(row) {
            *result = combine(*result, *value);
        }
    }
    results
}

fn fold(op: Alu, values: &[f32]) -> f32 {
    let (first, rest) = values.split_first().unwrap_or((&f32::NAN, &[]));
    rest.iter().fold(*first, |a, b| op.apply(a, *b))
}

/// The functions that gpsimd computes in integers; `None` for the others.
fn integer(op: Alu, a: i64, b: i64) -> Option<i64> {
    match op {
        Alu::Add => Some(a.saturating_add(b)),
        Alu::Subtract => Some(a.saturating_sub(b)),
        Alu::Multiply => Some(a.saturating_mul(b)),
        Alu::Maximum => Some(a.max(b)),
        Alu::Minimum => Some(a.min(b)),
        _ => None,
    }
}
