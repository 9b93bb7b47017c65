//! Text to a module, a module to LLVM's dialect, with diagnostics as text.

use crate::error::CpuError;
use crate::guard;
use axe_dialect::Source;
use axe_dialect::diagnostic::reported;
use axe_passes::ir::value::name;
use axe_passes::ir::{Op, walk};
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use melior::pass::PassManager;
use melior::utility::{
    parse_pass_pipeline, register_all_dialects, register_all_llvm_translations, register_all_passes,
};
use std::sync::Once;

/// A context with all dialects and with axe, loaded.
#[must_use]
pub fn context() -> Context {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register_all_passes();
        axe_passes::register();
        axe_passes::abi::register_passes();
    });
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    axe_dialect::register(&registry);
    let context = Context::new_with_registry(&registry, false);
    context.load_all_available_dialects();
    register_all_llvm_translations(&context);
    context
}

/// The module of a text.
///
/// # Errors
/// The diagnostics, located in the source's file, when it does not parse or verify.
pub fn parse<'c, 's>(
    context: &'c Context,
    source: impl Into<Source<'s>>,
) -> Result<Module<'c>, CpuError> {
    let source = source.into();
    if source.text.contains('\0') {
        return Err(CpuError::Parse(
            "the text contains a NUL character".to_owned().into(),
        ));
    }
    reported(context, || guard::parse(source, context)).map_err(CpuError::Parse)
}

/// The pipeline that lowers a module to LLVM's dialect.
pub(crate) const PIPELINE: &str = "axe-cpu";

/// Runs passes, as `--pass-pipeline` takes them, on a module.
///
/// # Errors
/// [`CpuError::Compile`] when a pass is not known or fails.
pub fn run_passes(
    context: &Context,
    module: &mut Module<'_>,
    passes: &str,
) -> Result<(), CpuError> {
    let manager = PassManager::new(context);
    let pipeline = format!("builtin.module({})", passes.replace('\0', " "));
    parse_pass_pipeline(manager.as_operation_pass_manager(), &pipeline)
        .map_err(|error| CpuError::Compile(error.to_string().into()))?;
    reported(context, || manager.run(module).ok()).map_err(CpuError::Compile)
}

/// Asserts that dynamic dimensions agree which operations of a module take for equal
/// ([`axe_passes::agreement`]).
///
/// # Errors
/// [`CpuError::Compile`] when an operation cannot be built.
pub fn assert_dimensions(module: &Module<'_>) -> Result<(), CpuError> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let root = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    axe_passes::agreement::assert_dimensions(root).map_err(|error| CpuError::Compile(error.into()))
}

/// The text of a module after passes, separated by commas: `convert-linalg-to-axe,axe-plan-kernels`.
///
/// # Errors
/// [`CpuError::Parse`] when the text does not parse or verify; [`CpuError::Compile`] when a pass is not known or fails.
pub fn transform(text: &str, passes: &str) -> Result<String, CpuError> {
    let context = context();
    let mut module = parse(&context, text)?;
    run_passes(&context, &mut module, passes)?;
    Ok(module.as_operation().to_string())
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
