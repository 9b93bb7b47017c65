//! Functions that are declared: their types must have a form on the host.

use crate::error::{PassError, PassResult};
use crate::ir::value::name;
use crate::ir::{Op, attribute, types, walk};
use crate::signless::signature;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Type, TypeLike};
use mlir_sys as sys;

/// Refuses declarations of functions on memory that only kernels have. MLIR's conversion says an error of them, and goes on.
///
/// # Errors
/// At such a declaration.
pub(super) fn check<'c>(module: Op<'c>) -> PassResult<'c> {
    for op in walk::nested(module, &|op| !name(op).starts_with("func.")) {
        if name(op) != "func.func" || !walk::blocks(op).is_empty() {
            continue;
        }
        let signature = signature(op).unwrap_or_default();
        if let Some(found) = signature.iter().flatten().find(|found| has_space(**found)) {
            let message =
                format!("a function of the host takes no '{found}': its memory is a kernel's");
            return Err(PassError::new(op.location(), message));
        }
    }
    Ok(())
}

/// Whether a memref is in a memory space that LLVM has no number for.
fn has_space(r#type: Type<'_>) -> bool {
    if !types::is_memref(r#type) {
        return false;
    }
    // SAFETY: the accessor is called on a memref; it gives null, or an attribute of the type's context.
    unsafe {
        let space = sys::mlirMemRefTypeGetMemorySpace(r#type.to_raw());
        !space.ptr.is_null() && attribute::integer(Attribute::from_raw(space)).is_none()
    }
}
