//! Tiles along a row: blocks along y, or along x before all others where a grid has not so many along y.

use crate::facts::chip::MOST_BLOCKS;
use axe_passes::build::Code;
use axe_passes::ir::Val;
use axe_passes::{PassError, PassResult};

/// How many tiles a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns(pub i64);

impl Columns {
    /// Whether they are along x.
    pub(super) fn are_folded(self) -> bool {
        self.0 > MOST_BLOCKS
    }

    /// The grid, with `others` blocks beside the tiles of a row; `known` of them are known when compiling.
    ///
    /// # Errors
    /// More blocks than a grid has along x.
    pub(super) fn grid<'c>(
        self,
        code: Code<'c>,
        others: Val<'c>,
        known: i64,
    ) -> PassResult<'c, [Val<'c>; 3]> {
        let along_x = if self.are_folded() { self.0 } else { 1 };
        if known.saturating_mul(along_x) > i64::from(i32::MAX) {
            let what = format!("{known} x {} tiles are more than a grid has", self.0);
            return Err(PassError::new(code.builder.location, what));
        }
        let one = code.index(1)?;
        match self.are_folded() {
            true => Ok([code.times(others, self.0)?, one, one]),
            false => Ok([others, code.index(self.0)?, one]),
        }
    }

    /// This block's number along the row, and that of the others.
    pub(super) fn place<'c>(self, code: Code<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let block = code.block("x")?;
        if !self.are_folded() {
            return Ok([code.block("y")?, block]);
        }
        let columns = code.index(self.0)?;
        Ok([code.rem(block, columns)?, code.div(block, columns)?])
    }
}
