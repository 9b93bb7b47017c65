//! Text to a module, and passes on it, with diagnostics as values.

use crate::{ModuleError, context};
use axe_dialect::diagnostic::reported;
use axe_dialect::{Parsing, Source};
use melior::Context;
use melior::ir::Module;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;
use std::sync::OnceLock;

/// Calls the parser for the file of this name.
type ParserRunner = fn(&mut Parsing, &str);

static RUNNER: OnceLock<ParserRunner> = OnceLock::new();

/// Has [`parse`] call MLIR's parser through this function, for the whole process: for drivers that outlive a crash of it.
/// The first one stays.
pub fn set_parser_runner(runner: ParserRunner) {
    RUNNER.get_or_init(|| runner);
}

/// The module of a text.
///
/// # Errors
/// The diagnostics, located in the source's file, when it does not parse or verify.
pub fn parse<'c, 's>(
    context: &'c Context,
    source: impl Into<Source<'s>>,
) -> Result<Module<'c>, ModuleError> {
    let source = source.into();
    if source.text.contains('\0') {
        let message = "the text contains a NUL character".to_owned();
        return Err(ModuleError::Parse(message.into()));
    }
    let parsed = || match RUNNER.get() {
        Some(runner) => source.parse_by(context, |parsing| runner(parsing, source.name)),
        None => source.parse(context),
    };
    reported(context, parsed).map_err(ModuleError::Parse)
}

/// Runs passes and pipelines on a module, as `--pass-pipeline` takes them inside of `builtin.module(...)`:
/// `canonicalize,axe-nvidia{target=sm_90a until=scheduled}`.
///
/// # Errors
/// A pass or an option that is not known, and the diagnostics of a pass that fails.
pub fn run_passes(
    context: &Context,
    module: &mut Module<'_>,
    passes: &str,
) -> Result<(), ModuleError> {
    let manager = PassManager::new(context);
    let pipeline = format!("builtin.module({})", passes.replace('\0', " "));
    parse_pass_pipeline(manager.as_operation_pass_manager(), &pipeline)
        .map_err(|error| ModuleError::Passes(error.to_string().into()))?;
    reported(context, || manager.run(module).ok()).map_err(ModuleError::Passes)
}

/// The text of a module after passes, in a context of its own.
///
/// # Errors
/// As [`parse`] and [`run_passes`].
pub fn transform<'s>(source: impl Into<Source<'s>>, passes: &str) -> Result<String, ModuleError> {
    let context = context();
    let mut module = parse(&context, source)?;
    run_passes(&context, &mut module, passes)?;
    Ok(module.as_operation().to_string())
}
