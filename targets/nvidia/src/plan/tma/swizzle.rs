//! The swizzle modes of the accelerator.

use super::Decline;
use axe_layout::Swizzle;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How 16-byte chunks move in shared memory (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TmaSwizzle {
    /// They do not.
    #[serde(rename = "none")]
    None,
    /// Within 32 bytes.
    #[serde(rename = "32B")]
    B32,
    /// Within 64 bytes.
    #[serde(rename = "64B")]
    B64,
    /// Within 128 bytes.
    #[serde(rename = "128B")]
    B128,
}

impl TmaSwizzle {
    /// The mode of a shared layout's swizzle on elements of so many bytes.
    pub(super) fn of(swizzle: Option<Swizzle>, bytes: i64) -> Result<Self, Decline> {
        let Some(swizzle) = swizzle else {
            return Ok(Self::None);
        };
        // In bytes, all modes leave 16 bytes together and take their bits from 128 bytes up.
        let base = i64::from(swizzle.base()) + i64::from(bytes.trailing_zeros());
        match (swizzle.bits(), base, swizzle.shift(), swizzle.inner()) {
            (1, 4, 3, true) => Ok(Self::B32),
            (2, 4, 3, true) => Ok(Self::B64),
            (3, 4, 3, true) => Ok(Self::B128),
            _ => Err(Decline::new(format!(
                "the accelerator has no swizzle {swizzle} on elements of {bytes} bytes: expected 1 to 3 bits that move 16 bytes by rows of 128"
            ))),
        }
    }

    /// The bytes within which chunks move.
    pub(super) fn span(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Elements from one row of a box of so many to the next: a narrower one leaves the rest of a swizzle's row as it is (CUDA C++
    /// Programming Guide, "Swizzle Modes").
    pub(super) fn pitch(self, row: i64, bytes: i64) -> i64 {
        self.span().map_or(row, |span| row.max(span / bytes))
    }

    /// The address that a byte of a box has, by PTX ISA 9.7.9.27.1.2 ("Swizzling Modes").
    pub(super) fn apply(self, address: i64) -> i64 {
        match self.span() {
            None => address,
            Some(span) => address ^ ((address >> 7 & (span / 16 - 1)) << 4),
        }
    }
}

impl fmt::Display for TmaSwizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span() {
            None => f.write_str("none"),
            Some(span) => write!(f, "{span}B"),
        }
    }
}
