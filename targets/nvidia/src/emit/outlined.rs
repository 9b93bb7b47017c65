//! Functions of a kernel: code that is there once and is called.

use super::emitter::Emitter;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::dispatch::record;
use axe_passes::ir::{Builder, Val, attribute};
use melior::ir::operation::{OperationMutLike, OperationRefMut};
use melior::ir::{Attribute, Type};

/// A call of a function.
///
/// # Errors
/// When it cannot be built.
pub(in crate::emit) fn call<'c>(
    builder: Builder<'c>,
    callee: Attribute<'c>,
    arguments: &[Val<'c>],
    result: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let count = i32::try_from(arguments.len()).unwrap_or(0);
    let none = builder.attribute(|context| attribute::i32s(context, &[]));
    let attributes = [
        ("callee", callee),
        builder.segments(&[count, 0]),
        ("op_bundle_sizes", none),
    ];
    builder.value("llvm.call", arguments, result, &attributes)
}

/// The name of a function with these arguments and this result, which returns what `body` emits: of a new one, or of one with the same
/// instructions.
///
/// # Errors
/// Those of `body`, and when an operation cannot be built.
pub(in crate::emit) fn outlined<'c>(
    emitter: &mut Emitter<'c>,
    stem: &str,
    (arguments, result): (&[Type<'c>], Type<'c>),
    body: impl FnOnce(&mut Emitter<'c>, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
) -> PassResult<'c, Attribute<'c>> {
    let outer = emitter.builder;
    let (region, values, inner) = outer.region(arguments);
    emitter.builder = inner;
    let formed = body(emitter, &values);
    let returned = formed.and_then(|formed| emitter.effect("llvm.return", &[formed]));
    emitter.builder = outer;
    returned?;
    let signature = types::llvm_function(outer, arguments, Some(result));
    let attributes = [
        ("sym_name", outer.parsed(&format!("{stem:?}"))?),
        ("function_type", outer.of_type(signature)),
        ("linkage", outer.parsed("#llvm.linkage<internal>")?),
        ("no_inline", outer.unit()),
    ];
    let module = emitter
        .module
        .ok_or_else(|| emitter.error("expected a module"))?;
    let module = Builder::at_end(module, outer.location);
    let made = module.operation("llvm.func", &[], &[], &attributes, vec![region])?;
    let text = made.to_string();
    if let Some(callee) = emitter.functions.get(&text) {
        // SAFETY: nothing names the function yet.
        unsafe { mlir_sys::mlirOperationDestroy(made.to_raw()) };
        return Ok(*callee);
    }
    let kernel = record::symbol(emitter.kernel.op).unwrap_or_default();
    let own = format!("{kernel}_{stem}{}", emitter.functions.len());
    let (name, callee) = (
        outer.parsed(&format!("{own:?}"))?,
        outer.parsed(&format!("@{own:?}"))?,
    );
    // SAFETY: the operation is live, and no other reference to it is used while this one is.
    unsafe { OperationRefMut::from_raw(made.to_raw()) }.set_attribute("sym_name", name);
    emitter.functions.insert(text, callee);
    Ok(callee)
}
