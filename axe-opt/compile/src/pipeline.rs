//! Contexts, modules and passes for programs that do more than compile whole modules.

use crate::{CompileError, Source, register};
use melior::Context;
use melior::ir::Module;

/// A context with all upstream dialects and Axe's, loaded, with every target registered.
#[must_use]
pub fn context() -> Context {
    register();
    axe_cpu::context()
}

/// The module of a text.
///
/// # Errors
/// The diagnostics, located in the source's file.
pub fn parse<'c, 's>(
    context: &'c Context,
    source: impl Into<Source<'s>>,
) -> Result<Module<'c>, CompileError> {
    Ok(axe_cpu::parse(context, source)?)
}

/// Runs passes and pipelines on a module, as `--pass-pipeline` takes them inside of `builtin.module(...)`:
/// `axe-nvidia{target=sm_90a until=scheduled}`.
///
/// # Errors
/// A pass that is not known, and the diagnostics of one that fails.
pub fn run_passes(
    context: &Context,
    module: &mut Module<'_>,
    passes: &str,
) -> Result<(), CompileError> {
    Ok(axe_cpu::run_passes(context, module, passes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_lowered_step_by_step() {
        let context = context();
        let text = "func.func @f(%a: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.exp ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}";
        let mut module = parse(&context, text).unwrap();
        run_passes(
            &context,
            &mut module,
            "axe-nvidia{target=sm_90a until=scheduled}",
        )
        .unwrap();
        assert!(module.as_operation().to_string().contains("axe.kernel"));
        assert!(parse(&context, "func.func @f(").is_err());
        assert!(run_passes(&context, &mut module, "no-such-pass").is_err());
    }
}
