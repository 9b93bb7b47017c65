//! Arguments of blocks, which melior leaves to its users.

use crate::ir::Val;
use melior::ir::{BlockRef, Location, Type, TypeLike};
use mlir_sys as sys;

/// An argument of a block.
pub(super) fn argument<'c>(block: BlockRef<'c, 'c>, number: usize) -> Option<Val<'c>> {
    let number = isize::try_from(number).ok()?;
    // SAFETY: the position is below the number of arguments.
    unsafe {
        (number < sys::mlirBlockGetNumArguments(block.to_raw()))
            .then(|| Val::from_raw(sys::mlirBlockGetArgument(block.to_raw(), number)))
    }
}

/// All arguments of a block.
pub(super) fn arguments<'c>(block: BlockRef<'c, 'c>) -> Vec<Val<'c>> {
    (0..).map_while(|number| argument(block, number)).collect()
}

/// Adds an argument behind those that a block has.
pub(super) fn add_argument<'c>(
    block: BlockRef<'c, 'c>,
    r#type: Type<'c>,
    location: Location<'c>,
) -> Val<'c> {
    // SAFETY: block, type and location are valid and of one context.
    unsafe {
        Val::from_raw(sys::mlirBlockAddArgument(
            block.to_raw(),
            r#type.to_raw(),
            location.to_raw(),
        ))
    }
}
