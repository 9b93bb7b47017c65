//! Why a schedule does not take an operator.

use std::fmt;

/// Why a schedule does not take an operator, or what is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline(String);

impl Decline {
    /// A decline with its reason: expected, got, which operand.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Decline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Decline {}
