//! Plans that say little: how many registers, which elements.

use crate::plan::Decline;
use crate::state::site::Site;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declines a plan that is not the one that would be made: for what has no enumeration of its own.
pub(super) fn expect<P: PartialEq + fmt::Debug>(plan: &P, planned: &P) -> Result<(), Decline> {
    match plan == planned {
        true => Ok(()),
        false => Err(Decline::new(format!("expected {planned:?}, got {plan:?}"))),
    }
}

/// As many registers of each thread, one by one.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Registers {
    /// How many there are.
    pub registers: i64,
}

impl Registers {
    /// As many as the result has.
    ///
    /// # Errors
    /// When it is no register tensor.
    pub(super) fn of_result(site: Site<'_, '_>) -> Result<Self, Decline> {
        let registers = site.result()?.registers();
        Ok(Self { registers })
    }

    /// Declines another number than is planned.
    pub(super) fn expect(&self, planned: &Self) -> Result<(), Decline> {
        match self == planned {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "expected {} registers, got {}",
                planned.registers, self.registers
            ))),
        }
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} registers a thread, one by one", self.registers)
    }
}

/// Element by element of a box, by the threads in turn.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Elements {
    /// The box.
    pub shape: Vec<i64>,
}

impl Elements {
    /// Declines another box than is there.
    pub(super) fn expect(&self, shape: &[i64]) -> Result<(), Decline> {
        match self.shape == shape {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "expected elements of {shape:?}, got {:?}",
                self.shape
            ))),
        }
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "for x in t, t + threads, ..: one element of {:?}",
            self.shape
        )
    }
}

/// What is one instruction, or as many as there are groups.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instruction {}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "one instruction")
    }
}
