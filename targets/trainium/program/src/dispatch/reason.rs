//! Why an operator on tiles is not taken.

use crate::program::Space;
use crate::rules::Violation;
use axe_package::DType;
use std::fmt;

/// Why one schedule does not take an operator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // the fields are what the messages print
pub enum Reason {
    /// The operands do not belong together, whatever their layouts.
    #[error("{0}")]
    Malformed(String),
    /// An operand is in a memory that the schedule does not reach.
    #[error("{operand}: expected it in {expected}, got {got}")]
    Memory {
        operand: &'static str,
        expected: &'static str,
        got: Space,
    },
    /// An operand has elements that the schedule does not take.
    #[error("{operand}: expected elements of {expected}, got {got}")]
    Type {
        operand: &'static str,
        expected: String,
        got: DType,
    },
    /// A layout that says nothing about the memory that its buffer is in.
    #[error("{operand}: {message}")]
    Layout {
        operand: &'static str,
        message: String,
    },
    /// The layouts divide a dimension at places that have no common refinement.
    #[error("dimension {dimension}: {message}")]
    Straddles { dimension: String, message: String },
    /// One digit of an index moves along partitions in two operands, by different steps.
    #[error(
        "{dimension}: a digit of {extent} moves by {steps} partitions: the same index is not on the same partition"
    )]
    PartitionOrder {
        dimension: String,
        extent: i64,
        steps: String,
    },
    /// A digit moves along partitions in one operand and not in another.
    #[error("{dimension}: a digit of {extent} is on the partitions of {on} and not of {off}")]
    OnePartitioned {
        dimension: String,
        extent: i64,
        on: &'static str,
        off: &'static str,
    },
    /// Parts of an operand begin at partitions where none may.
    #[error(
        "{operand}: parts of {count} partitions begin at {start}, expected a multiple of {step}"
    )]
    Start {
        operand: &'static str,
        count: i64,
        start: String,
        step: i64,
    },
    /// An access that no view of the buffer names.
    #[error("{operand}: {message}")]
    Access {
        operand: &'static str,
        message: String,
    },
    /// An operator that the schedule is made of is declined.
    #[error(transparent)]
    Part(Box<Declined>),
    /// It takes longer than the schedule that was chosen.
    #[error("{:.2} us one after the other, the one chosen {:.2} us", seconds * 1e6, least * 1e6)]
    Slower { seconds: f64, least: f64 },
    /// What the schedule would append breaks a rule.
    #[error("{0}")]
    Rule(Violation),
}

/// Why an operator is declined: a reason for each schedule that was tried.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Declined {
    /// The operator.
    pub operator: &'static str,
    /// The schedules, and why not.
    pub reasons: Vec<(&'static str, Reason)>,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no schedule takes it", self.operator)?;
        for (schedule, reason) in &self.reasons {
            write!(f, "; {schedule}: {reason}")?;
        }
        Ok(())
    }
}
