//! Walking and erasing operations.

use super::value::{is_used, results};
use super::{Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, BlockRef, RegionLike};
use mlir_sys as sys;

/// The blocks of an operation's regions, in order.
#[must_use]
pub fn blocks<'c>(op: Op<'c>) -> Vec<BlockRef<'c, 'c>> {
    let mut found = Vec::new();
    for region in op.regions() {
        let mut next = region.first_block();
        while let Some(block) = next {
            found.push(block);
            next = block.next_in_region();
        }
    }
    found
}

/// The operations of a block, the terminator included. Taken before any is changed, so that a pass may
/// add and erase while it goes through them.
#[must_use]
pub fn operations<'c>(block: BlockRef<'c, 'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    let mut next = block.first_operation();
    while let Some(op) = next {
        found.push(op);
        next = op.next_in_block();
    }
    found
}

/// The arguments of a block.
#[must_use]
pub fn block_arguments<'c>(block: BlockRef<'c, 'c>) -> Vec<Val<'c>> {
    (0..block.argument_count())
        // SAFETY: the position is below the count.
        .map(|at| unsafe { Val::from_raw(sys::mlirBlockGetArgument(block.to_raw(), at as isize)) })
        .collect()
}

/// The operations below `op`, each before those of its regions; `enter` says whose regions to go into.
#[must_use]
pub fn nested<'c>(op: Op<'c>, enter: &impl Fn(Op<'c>) -> bool) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    for inner in blocks(op).into_iter().flat_map(operations) {
        found.push(inner);
        if enter(inner) {
            found.extend(nested(inner, enter));
        }
    }
    found
}

/// Erases an operation none of whose results is used; false, and nothing done, when one is.
pub fn erase(op: Op<'_>) -> bool {
    let dead = results(op).into_iter().all(|result| !is_used(result));
    if dead {
        // SAFETY: no use of the operation's results is left.
        unsafe { sys::mlirOperationDestroy(op.to_raw()) };
    }
    dead
}

/// Erases the operations below `op` that `removable` allows and that nothing uses, users first, so that a
/// dead chain goes as a whole. Returns how many.
pub fn erase_dead<'c>(
    op: Op<'c>,
    enter: &impl Fn(Op<'c>) -> bool,
    removable: &impl Fn(Op<'c>) -> bool,
) -> usize {
    let mut erased = 0;
    for inner in blocks(op)
        .into_iter()
        .flat_map(|block| operations(block).into_iter().rev())
    {
        if removable(inner) && erase(inner) {
            erased += 1;
        } else if enter(inner) {
            erased += erase_dead(inner, enter, removable);
        }
    }
    erased
}
