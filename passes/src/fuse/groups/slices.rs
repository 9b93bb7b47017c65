//! Loops that take parts of rows, or rows of tables: no kernel has them where their readers read these where they lie.

use super::{Choices, Groups};
use crate::fuse::group::{Group, Root};
use crate::fuse::lookup::Lookup;
use crate::fuse::sliced::Sliced;
use crate::fuse::space::Kind;
use crate::ir::value::{identity, only_result};
use crate::ir::{Op, Val};

impl<'c> Groups<'c> {
    /// Whether loops take parts of rows, or rows of a table, which readers read where they lie, or else a kernel of its own.
    pub(super) fn slice(&mut self, op: Op<'c>, choices: &Choices<'_, 'c>) -> bool {
        let result = only_result(op).filter(|_| choices.loops);
        let is_taken = |value: &Val<'c>| {
            Sliced::of(*value).is_some()
                || Sliced::in_blocks(*value, None).is_some()
                || Lookup::of(*value).is_some()
        };
        let sliced = result.filter(is_taken);
        // A product's kernel forms what comes of both halves of its columns, if it can.
        let of_memory = sliced.filter(|_| !self.side(op, choices));
        self.slices.extend(of_memory.map(identity));
        sliced.is_some()
    }

    /// A group of tiles that reads rows where they lie which are to be stored: its kernel has them in registers.
    pub(super) fn reads_rows_of(&self, value: Val<'c>) -> Option<usize> {
        let is_taken = self.slices.contains(&identity(value));
        let reads =
            |group: &Group<'c>| matches!(group.root, Root::Tiles) && group.reads_rows_of(value);
        is_taken
            .then(|| self.groups.iter().position(reads))
            .flatten()
    }

    /// Has such a group store them.
    pub(super) fn stores_too(&mut self, at: usize, op: Op<'c>, value: Val<'c>) {
        self.slices.remove(&identity(value));
        self.owner.insert(identity(value), at);
        if let Some(group) = self.groups.get_mut(at) {
            group.owned.push(op);
            group.formed.insert((identity(value), Kind::Full));
        }
    }
}
