//! Modules of a caller's context.

use crate::{CompileError, Compiled, Options, Source, compile_with};
use axe_cpu::CpuError;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationPrintingFlags};

/// Compiles a module of any context, which is left as it is: its text goes to a context of the compiler's own, with
/// its locations, so that diagnostics name the places that the caller gave. `name` is what they call the module where
/// an operation has no place in a file.
///
/// # Errors
/// A module that does not verify, one with operations of dialects that the compiler does not know, and as
/// [`crate::compile`].
pub fn compile_module(
    module: &Module<'_>,
    name: &str,
    options: Options<'_>,
) -> Result<Compiled, CompileError> {
    let operation = module.as_operation();
    // Printing an operation that does not verify may read what is not there.
    if !operation.verify() {
        return Err(CpuError::Parse(format!("{name}: the module does not verify").into()).into());
    }
    let flags = OperationPrintingFlags::new().enable_debug_info(true, false);
    let text = operation
        .to_string_with_flags(flags)
        .map_err(|error| CpuError::Parse(error.to_string().into()))?;
    compile_with(Source { name, text: &text }, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_cpu::{context, parse};

    const ADD: &str = "func.func @add(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.add ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}";

    fn compiled(text: &str) -> Result<Compiled, CompileError> {
        crate::register();
        let context = context();
        let source = Source {
            name: "caller.mlir",
            text,
        };
        let module = parse(&context, source).unwrap();
        let before = module.as_operation().to_string();
        let options = Options {
            assemble: false,
            ..Options::for_target("sm_90a")
        };
        let compiled = compile_module(&module, "-", options);
        assert_eq!(module.as_operation().to_string(), before);
        compiled
    }

    #[test]
    fn a_module_of_another_context_compiles_and_stays() {
        let compiled = compiled(ADD).unwrap();
        assert_eq!(compiled.package.manifest().kernels.len(), 1);
        assert!(!compiled.decisions.is_empty());
    }

    #[test]
    fn what_is_wrong_is_located_where_the_caller_said() {
        let text = "func.func private @g(%a: tensor<64xf32>) -> tensor<64xf32>
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
  %s = call @g(%a) : (tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}";
        let error = compiled(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("caller.mlir:3:8"), "{error}");
    }
}
