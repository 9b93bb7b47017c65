//! One way to compute a matrix product: the tile, and how it is shared among CTAs and warps.
//!
//! What a kernel cannot be cannot be written: each mainloop has its own configuration, and a [`Wgmma`] is only had
//! through methods that give none for what does not go together.

mod budgets;
mod mma;
mod wgmma;
mod work;

pub(super) use budgets::shared_out;
pub use mma::Mma;
pub(super) use wgmma::{MOST_SPLITS, SPLITS};
pub use wgmma::{Store, Wgmma};
pub use work::{Cluster, Decomposition, Raster};

use super::knobs::Plan;
use std::fmt;

/// A configuration and its mainloop. Its text is the dictionary that `axe.plan` and the database of plans take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Config {
    /// One warp copies, warpgroups multiply.
    Wgmma(Wgmma),
    /// Every warp copies and multiplies; every thread, where products are scalar.
    Mma(Mma),
}

impl Config {
    /// Rows, columns and depth of its tile.
    #[must_use]
    pub const fn tile(self) -> [i64; 3] {
        match self {
            Self::Wgmma(config) => config.tile(),
            Self::Mma(config) => config.tile,
        }
    }

    /// CTAs that share each tile's depth through memory.
    #[must_use]
    pub const fn splits(self) -> i64 {
        match self {
            Self::Wgmma(config) => config.splits(),
            Self::Mma(config) => config.splits,
        }
    }

    /// The plan that asks for all of it.
    #[must_use]
    pub fn plan(self) -> Plan {
        match self {
            Self::Wgmma(config) => config.plan(),
            Self::Mma(config) => config.plan(),
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan().fmt(f)
    }
}
