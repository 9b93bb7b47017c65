//! Loops that take parts of rows: no kernel has them where their readers read the rows that they are parts of.

use super::{Choices, Groups};
use crate::fuse::sliced::Sliced;
use crate::ir::Op;
use crate::ir::value::{identity, only_result};

impl<'c> Groups<'c> {
    /// Whether loops take parts of rows, which readers read where they lie, or else a kernel of its own.
    pub(super) fn slice(&mut self, op: Op<'c>, choices: &Choices<'_, 'c>) -> bool {
        let result = only_result(op).filter(|_| choices.loops);
        let sliced = result.filter(|value| Sliced::of(*value).is_some());
        // A product's kernel forms what comes of both halves of its columns, if it can.
        let of_memory = sliced.filter(|_| !self.side(op, choices));
        self.slices.extend(of_memory.map(identity));
        sliced.is_some()
    }
}
