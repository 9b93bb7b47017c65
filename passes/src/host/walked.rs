//! Blocks, arguments and segments, which melior leaves to its users.

use crate::error::{PassError, PassResult};
use crate::ir::{Op, Val};
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::operation::OperationLike;
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

/// How many operands each of the `N` groups of an operation has.
///
/// # Errors
/// When the operation does not say.
pub(super) fn segments<'c, const N: usize>(op: Op<'c>) -> PassResult<'c, [usize; N]> {
    let sizes = op
        .attribute("operandSegmentSizes")
        .ok()
        .and_then(|attribute| DenseI32ArrayAttribute::try_from(attribute).ok())
        .and_then(|array| {
            (0..array.len())
                .map(|at| {
                    array
                        .element(at)
                        .ok()
                        .and_then(|size| usize::try_from(size).ok())
                })
                .collect::<Option<Vec<_>>>()
        });
    sizes
        .and_then(|sizes| sizes.try_into().ok())
        .ok_or_else(|| PassError::new(op.location(), "the groups of operands cannot be read"))
}
