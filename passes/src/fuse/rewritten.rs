//! Operations of a block whose operators a rewrite replaces: those that are left, in order, without those that nothing reads.

use super::operators::{has, is_reshape};
use crate::ir::value::{defining, operands, results, users};
use crate::ir::{Op, walk};
use axe_dialect::ops::Trait;
use melior::ir::BlockRef;
use melior::ir::operation::OperationLike;

/// The operations of a block that a rewrite is about, as they were before.
pub(super) struct Rewritten<'c> {
    block: Option<BlockRef<'c, 'c>>,
    others: Vec<Op<'c>>,
}

impl<'c> Rewritten<'c> {
    /// Before anything of these operations is replaced.
    pub(super) fn of(ops: &[Op<'c>]) -> Self {
        let block = ops.first().and_then(|op| op.block());
        let mut others = block.map_or_else(Vec::new, walk::operations);
        others.retain(|op| !ops.contains(op));
        Self { block, others }
    }

    /// Erases what was replaced and what only that read; the operations that are left, with those that are new.
    pub(super) fn without(self, replaced: Vec<Op<'c>>) -> Vec<Op<'c>> {
        let mut left = self.block.map_or_else(Vec::new, walk::operations);
        left.retain(|op| !self.others.contains(op));
        erase_unread(&mut left, replaced);
        left
    }
}

/// Erases those of some operations that nothing reads, and what only they read, as far as these are `left`, which are left without them.
pub(super) fn erase_unread<'c>(left: &mut Vec<Op<'c>>, mut unread: Vec<Op<'c>>) {
    while let Some(op) = unread.pop() {
        // What is erased already is not in there.
        let is_dead =
            left.contains(&op) && results(op).into_iter().all(|own| users(own).is_empty());
        if is_dead {
            let read = operands(op).into_iter().filter_map(defining);
            unread.extend(read.filter(|op| has(*op, Trait::Logical) || is_reshape(*op)));
            left.retain(|own| *own != op);
            walk::erase(op);
        }
    }
}
