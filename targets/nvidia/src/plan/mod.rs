//! Plans: what a schedule decided for one operator, as plain data.

pub mod bulk;
pub mod copy;
pub mod gather;
pub mod ldmatrix;
pub mod lifetime;
pub mod mma;
pub mod owner;
pub mod pipeline;
pub mod reduce;
pub mod shuffle;
pub mod tma;
pub mod transfer;
pub mod wgmma;

use std::fmt;

/// Why a schedule does not take an operator.
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

pub(crate) use axe_passes::ir::facts::gcd;
