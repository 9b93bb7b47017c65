//! Executes programs: every value as the engines compute it, and every rule that only an execution can break.
//!
//! Execution is in program order, which is what a program means; what may go wrong between engines is [`crate::sync`]'s.
//! Arithmetic is in f32 and results are rounded to the destination's type (ISA, "ALU arithmetic is fp32"). The 8-bit
//! float e4m3 is OCP's: the vendor's own variant, which ends at 240, is not distinguished.

mod arithmetic;
mod matrix;
pub mod memory;
mod movement;
mod special;

use crate::facts::memory::PARTITIONS;
use crate::program::{Instruction, Program, Role};
use crate::rules::Violation;
use crate::walk::{Event, Execution, Located, Ready, Refused};
use axe_package::DType;
use memory::Memory;
use std::collections::BTreeMap;
use std::fmt;

/// Elements of a tensor as bytes, row-major.
pub type Bytes = Vec<u8>;

/// A rule broken in an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is broken, and where.
    pub violation: Violation,
    /// Where the loops stood when it was found first.
    pub iteration: Vec<(String, i64)>,
    /// How often it was found.
    pub times: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.violation)?;
        for (index, (name, value)) in self.iteration.iter().enumerate() {
            write!(
                f,
                "{}{name} = {value}",
                if index == 0 { " at " } else { ", " }
            )?;
        }
        match self.times {
            0 | 1 => Ok(()),
            times => write!(f, ", and {} times more", times - 1),
        }
    }
}

/// What an execution gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results, in the order of the program's output buffers.
    pub outputs: Vec<Bytes>,
    /// What was found, in the order of its first occurrence.
    pub findings: Vec<Finding>,
}

/// Executes a program on inputs, in the order of its input buffers.
///
/// # Errors
/// A program that breaks a rule before it is executed, or inputs that do not fit it.
pub fn execute(program: &Program, inputs: &[Bytes]) -> Result<Outcome, Refused> {
    let ready = Ready::new(program)?;
    let mut machine = Machine::new(&ready, inputs)?;
    ready.walk(&mut |event| machine.event(event));
    let outputs = program
        .with_role(Role::Output)
        .map(|(index, _)| machine.memory.hbm(index).to_vec())
        .collect();
    let mut findings: Vec<Finding> = machine
        .findings
        .0
        .into_iter()
        .map(|(_, finding)| finding)
        .collect();
    findings.extend(unwritten_results(program, &machine.memory));
    Ok(Outcome { outputs, findings })
}

/// (R1) for the caller, who reads the results.
fn unwritten_results(program: &Program, memory: &Memory) -> Vec<Finding> {
    let finding = |(index, buffer): (usize, &crate::program::Buffer)| {
        let element = memory.unwritten(index, buffer.dtype)?;
        let violation = Violation {
            rule: "R1",
            message: format!(
                "expected a result that is written whole, got none at element {element}"
            ),
            subject: format!("'{}'", buffer.name),
            location: buffer.location.clone(),
        };
        Some(Finding {
            violation,
            iteration: Vec::new(),
            times: 1,
        })
    };
    program
        .with_role(Role::Output)
        .filter_map(finding)
        .collect()
}

/// The findings, one for each rule that an instruction breaks.
#[derive(Debug, Default)]
struct Findings(Vec<((usize, &'static str), Finding)>);

/// Kinds of findings that are kept.
const MOST_FINDINGS: usize = 200;

impl Findings {
    fn add(
        &mut self,
        program: &Program,
        execution: &Execution<'_>,
        rule: &'static str,
        message: String,
    ) {
        let key = (execution.instruction_number, rule);
        if let Some((_, known)) = self.0.iter_mut().find(|(at, _)| *at == key) {
            known.times += 1;
            return;
        }
        if self.0.len() < MOST_FINDINGS {
            let instruction: &Instruction = execution.instruction;
            let violation = Violation {
                rule,
                message,
                subject: instruction.op.name().into(),
                location: instruction.location.clone(),
            };
            let finding = Finding {
                violation,
                iteration: execution.iteration(program),
                times: 1,
            };
            self.0.push((key, finding));
        }
    }
}

/// A core that executes.
struct Machine<'a> {
    program: &'a Program,
    memory: Memory,
    findings: Findings,
    /// The scalar engine's accumulation registers.
    registers: Vec<f32>,
}

impl<'a> Machine<'a> {
    fn new(ready: &Ready<'a>, inputs: &[Bytes]) -> Result<Self, Refused> {
        let program = ready.program;
        let wanted: Vec<_> = program.with_role(Role::Input).collect();
        if wanted.len() != inputs.len() {
            return Err(Refused::Arguments(format!(
                "expected {} inputs, got {}",
                wanted.len(),
                inputs.len()
            )));
        }
        let mut given = BTreeMap::new();
        for ((index, buffer), bytes) in wanted.into_iter().zip(inputs) {
            if bytes.len() as i64 != buffer.bytes() {
                return Err(Refused::Arguments(format!(
                    "input '{}': expected {} bytes, got {}",
                    buffer.name,
                    buffer.bytes(),
                    bytes.len()
                )));
            }
            given.insert(index, bytes.clone());
        }
        Ok(Self {
            program,
            memory: Memory::new(program, ready.chip, given),
            findings: Findings::default(),
            registers: vec![f32::NAN; PARTITIONS as usize],
        })
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Alloc(buffer, byte) => {
                self.memory.forget(&self.program.buffers[buffer], byte);
            }
            Event::Invalid(execution, reasons) => {
                for (rule, message) in reasons {
                    self.findings.add(self.program, &execution, rule, message);
                }
            }
            Event::Execution(execution) => {
                let mut task = Task {
                    machine: self,
                    execution: &execution,
                };
                task.execute();
            }
        }
    }
}

/// One execution of one instruction on the machine.
struct Task<'m, 'a, 'e> {
    machine: &'m mut Machine<'a>,
    execution: &'e Execution<'e>,
}

/// The elements of an operand: rows are partitions.
#[derive(Clone, Debug)]
struct Values {
    /// Elements in a partition.
    columns: usize,
    /// Row-major.
    data: Vec<f32>,
}

impl Values {
    fn rows(&self) -> usize {
        self.data.len() / self.columns.max(1)
    }

    fn row(&self, index: usize) -> &[f32] {
        &self.data[index * self.columns..(index + 1) * self.columns]
    }

    /// The element of a per-partition operand.
    fn of_row(&self, index: usize) -> f32 {
        self.data
            .get(index * self.columns)
            .copied()
            .unwrap_or(f32::NAN)
    }
}

impl<'e> Task<'_, '_, 'e> {
    fn execute(&mut self) {
        use crate::program::Op;
        match &self.execution.instruction.op {
            Op::NcMatmul { accumulate, .. } => self.product(*accumulate),
            Op::NcTranspose { .. } | Op::DmaTranspose { .. } => self.transpose(),
            Op::DmaCopy { .. } | Op::TensorCopy { .. } => self.copy(),
            Op::Memset { value, .. } => self.fill(*value),
            Op::TensorCopyPredicated { reverse, .. } => self.predicated(*reverse),
            Op::NcStreamShuffle { mask, .. } => self.shuffle(mask),
            Op::Activation { .. } => self.activation(),
            Op::TensorTensor { .. }
            | Op::TensorScalar { .. }
            | Op::ScalarTensorTensor { .. }
            | Op::Reciprocal { .. }
            | Op::TensorTensorScan { .. } => self.elementwise(),
            Op::TensorReduce { .. }
            | Op::TensorScalarReduce { .. }
            | Op::TensorPartitionReduce { .. } => self.reduction(),
            Op::AffineSelect { .. }
            | Op::RangeSelect { .. }
            | Op::Iota { .. }
            | Op::BnStats { .. }
            | Op::BnAggr { .. }
            | Op::Max8 { .. }
            | Op::NcFindIndex8 { .. }
            | Op::NcMatchReplace8 { .. } => self.special(),
        }
    }

    fn report(&mut self, rule: &'static str, message: String) {
        self.machine
            .findings
            .add(self.machine.program, self.execution, rule, message);
    }

    /// The operand of this role.
    fn operand(&self, role: &str) -> Option<&'e Located> {
        self.execution
            .operands
            .iter()
            .find(|operand| operand.role == role)
    }

    fn dtype(&self, operand: &Located) -> DType {
        self.machine.program.buffers[operand.access.buffer].dtype
    }

    /// The bytes of an operand's elements in order, after a report of what was not written.
    fn raw(&mut self, role: &str) -> (DType, usize, Bytes) {
        let Some(operand) = self.operand(role) else {
            return (DType::F32, 1, Vec::new());
        };
        let dtype = self.dtype(operand);
        let columns = operand
            .access
            .axes
            .iter()
            .skip(1)
            .map(|axis| axis.size as usize)
            .product();
        let (bytes, missing) = self.machine.memory.read(operand, dtype);
        if let Some((partition, element)) = missing {
            let buffer = &self.machine.program.buffers[operand.access.buffer];
            let message = match buffer.space.has_partitions() {
                true => format!(
                    "{role}: '{}' was not written at partition {partition}, element {element}",
                    buffer.name
                ),
                false => format!(
                    "{role}: '{}' was not written at element {element}",
                    buffer.name
                ),
            };
            self.report("R1", message);
        }
        (dtype, columns, bytes)
    }

    /// The values of an operand in f32.
    fn values(&mut self, role: &str) -> Values {
        let (dtype, columns, bytes) = self.raw(role);
        Values {
            columns,
            data: memory::decode(dtype, &bytes),
        }
    }

    /// The values of an operand as the bits of integers.
    fn bits(&mut self, role: &str) -> (u32, Vec<u32>) {
        let (dtype, _, bytes) = self.raw(role);
        let size = dtype.bytes();
        let bits = bytes
            .chunks_exact(size)
            .map(|chunk| {
                chunk
                    .iter()
                    .rev()
                    .fold(0u32, |word, byte| (word << 8) | u32::from(*byte))
            })
            .collect();
        (size as u32 * 8, bits)
    }

    /// Writes raw elements to an operand.
    fn store(&mut self, role: &str, bytes: &[u8]) {
        if let Some(operand) = self.operand(role) {
            let dtype = self.dtype(operand);
            self.machine.memory.write(operand, dtype, bytes, false);
        }
    }

    /// Writes values to an operand, rounded to its type.
    fn put(&mut self, role: &str, values: &[f32]) {
        if let Some(operand) = self.operand(role) {
            let bytes = memory::encode(self.dtype(operand), values);
            self.store(role, &bytes);
        }
    }
}
