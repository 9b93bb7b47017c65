//! One way to compute a matrix product: by roles and wgmma, or by warps alone.

use super::cost::{self, Problem, Tile};
use super::wide::{KFirst, WideTile};
use crate::facts::chip::Chip;
use std::fmt;

/// A tile and its kernel. Its text is the dictionary that `axe.plan` and the database of plans take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// One warp copies, warpgroups multiply.
    Roles(WideTile),
    /// Every warp copies and multiplies; every thread, where products are scalar.
    Warps(Tile),
}

impl Variant {
    /// Rows, columns and depth of its tile.
    #[must_use]
    pub const fn tile(self) -> [i64; 3] {
        match self {
            Self::Roles(tile) => tile.shape,
            Self::Warps(tile) => tile.shape,
        }
    }

    /// Clocks that the product is predicted to take.
    #[must_use]
    pub fn cost(self, problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
        match self {
            Self::Roles(tile) => tile.cost(problem, k_first, chip),
            Self::Warps(tile) => cost::cost(problem, tile, chip),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roles(tile) => write!(f, "{tile}"),
            Self::Warps(tile) => {
                let [m, n, k] = tile.shape;
                let (rows, columns) = (tile.grid.rows, tile.grid.columns);
                write!(
                    f,
                    "{{kernel = \"mma\", tile = array<i64: {m}, {n}, {k}>, warps = array<i64: {rows}, {columns}>, stages = {} : i64}}",
                    tile.stages
                )
            }
        }
    }
}
