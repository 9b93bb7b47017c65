//! What is asked of a module before it is lowered to LLVM's dialect.

use crate::error::CpuError;
use axe_context::ModuleError;
use axe_passes::ir::value::name;
use axe_passes::ir::{Op, walk};
use melior::ir::Module;
use melior::ir::operation::OperationLike;

/// The pipeline that lowers a module to LLVM's dialect.
pub(crate) const PIPELINE: &str = "axe-cpu";

/// Asserts that dynamic dimensions agree which operations of a module take for equal
/// ([`axe_passes::agreement`]).
///
/// # Errors
/// When an operation cannot be built.
pub fn assert_dimensions(module: &Module<'_>) -> Result<(), ModuleError> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let root = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    Ok(axe_passes::agreement::assert_dimensions(root)?)
}

/// The operations of a module's body.
pub(crate) fn body<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let module = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    walk::blocks(module)
        .into_iter()
        .flat_map(walk::operations)
        .collect()
}

/// The symbols of a kind, with their operations.
pub(crate) fn symbols<'c>(module: &Module<'c>, kind: &str) -> Vec<(String, Op<'c>)> {
    let all = body(module).into_iter().filter(|op| name(*op) == kind);
    all.filter_map(|op| {
        let symbol = op.attribute("sym_name").ok()?;
        let symbol = melior::ir::attribute::StringAttribute::try_from(symbol).ok()?;
        Some((symbol.value().to_owned(), op))
    })
    .collect()
}

/// The functions that a module declares and does not define.
pub(crate) fn undefined(module: &Module<'_>) -> Vec<String> {
    let functions = symbols(module, "func.func").into_iter();
    functions
        .filter(|(_, op)| walk::blocks(*op).is_empty())
        .map(|(symbol, _)| symbol)
        .collect()
}

/// The operation of a symbol.
///
/// # Errors
/// The symbols that there are, when it is not one of them.
pub(crate) fn find<'c>(
    module: &Module<'c>,
    operation: &str,
    kind: &'static str,
    wanted: &str,
) -> Result<Op<'c>, CpuError> {
    let all = symbols(module, operation);
    let found = all
        .iter()
        .find(|(symbol, _)| symbol == wanted)
        .map(|(_, op)| *op);
    found.ok_or_else(|| CpuError::Unknown {
        kind,
        name: wanted.to_owned(),
        found: all.into_iter().map(|(symbol, _)| symbol).collect(),
    })
}
