//! What the documentation forbids, as checks of programs.
//!
//! The verifier of the `trn` dialect, the simulator and the NKI printer ask the same functions. What depends on a loop's
//! index, or on what a program did before, is checked where the program is executed ([`crate::run`]).

pub mod buffer;
pub mod catalogue;
mod elementwise;
pub mod engine;
pub mod matrix;
mod movement;
pub mod operand;
mod reduce;
mod special;

use crate::facts::chip::Chip;
use crate::program::{Instruction, Location, Op, Program, View, structure};
use std::fmt;

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's number ([`catalogue`]).
    pub rule: &'static str,
    /// What was expected, and what it is.
    pub message: String,
    /// What breaks it: an operation's name, or a buffer's.
    pub subject: String,
    /// Where that is in the source.
    pub location: Option<Location>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{}: ({}) {}", self.subject, self.rule, self.message)
    }
}

/// Collects what one instruction breaks.
pub(crate) struct Checker<'a> {
    pub program: &'a Program,
    pub chip: &'a Chip,
    pub instruction: &'a Instruction,
    found: Vec<Violation>,
}

impl<'a> Checker<'a> {
    /// Notes a violation.
    pub fn report(&mut self, rule: &'static str, message: impl Into<String>) {
        self.found.push(Violation {
            rule,
            message: message.into(),
            subject: self.instruction.op.name().into(),
            location: self.instruction.location.clone(),
        });
    }

    /// Notes a violation unless `holds`.
    pub fn expect(&mut self, holds: bool, rule: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.report(rule, message());
        }
    }

    /// The element type of a view.
    pub fn dtype(&self, view: &View) -> axe_package::DType {
        self.program
            .buffers
            .get(view.buffer)
            .map_or(axe_package::DType::F32, |buffer| buffer.dtype)
    }
}

/// Everything in a program that breaks a rule whatever its loops' indices are; a malformed program gives nothing
/// ([`structure::check`] says so).
#[must_use]
pub fn check(program: &Program) -> Vec<Violation> {
    let Some(chip) = program.chip() else {
        return Vec::new();
    };
    if structure::check(program).is_err() {
        return Vec::new();
    }
    let mut found = buffer::check(program, chip);
    program.instructions(&mut |instruction, _| {
        found.extend(check_instruction(program, chip, instruction));
    });
    found
}

/// Everything that one instruction breaks. Its views name buffers of the program.
#[must_use]
pub fn check_instruction(
    program: &Program,
    chip: &Chip,
    instruction: &Instruction,
) -> Vec<Violation> {
    let mut checker = Checker {
        program,
        chip,
        instruction,
        found: Vec::new(),
    };
    operand::check(&mut checker);
    engine::check(&mut checker);
    match &instruction.op {
        Op::NcMatmul { .. } | Op::NcTranspose { .. } | Op::DmaTranspose { .. } => {
            matrix::check(&mut checker);
        }
        Op::DmaCopy { .. }
        | Op::TensorCopy { .. }
        | Op::Memset { .. }
        | Op::TensorCopyPredicated { .. }
        | Op::NcStreamShuffle { .. } => movement::check(&mut checker),
        Op::Activation { .. }
        | Op::TensorTensor { .. }
        | Op::TensorScalar { .. }
        | Op::ScalarTensorTensor { .. }
        | Op::Reciprocal { .. }
        | Op::TensorTensorScan { .. } => elementwise::check(&mut checker),
        Op::TensorReduce { .. }
        | Op::TensorScalarReduce { .. }
        | Op::TensorPartitionReduce { .. } => reduce::check(&mut checker),
        Op::AffineSelect { .. }
        | Op::RangeSelect { .. }
        | Op::Iota { .. }
        | Op::BnStats { .. }
        | Op::BnAggr { .. }
        | Op::Max8 { .. }
        | Op::NcFindIndex8 { .. }
        | Op::NcMatchReplace8 { .. } => special::check(&mut checker),
    }
    checker.found
}
