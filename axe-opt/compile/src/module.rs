//! Modules of a caller's context.

use crate::{CompileError, Compiled, Options, Source, compile_read};
use axe_context::{ModuleError, reported};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationPrintingFlags};

/// Where MLIR's bytecode may want to begin: resources in it are aligned to what their producer said, at most a page.
const ALIGNMENT: usize = 4096;

/// Compiles a module of any context, which is left as it is: a copy of it, as MLIR's bytecode, goes to a context of the
/// compiler's own, with its locations, so that diagnostics name the places that the caller gave. `name` is what they call
/// the module where an operation has no place in a file. The module as text is in the package, as its source.
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
    // Writing an operation that does not verify may read what is not there.
    if !operation.verify() {
        let message = format!("{name}: the module does not verify");
        return Err(ModuleError::Parse(message.into()).into());
    }
    let flags = OperationPrintingFlags::new().enable_debug_info(true, false);
    let text = operation
        .to_string_with_flags(flags)
        .map_err(|error| ModuleError::Parse(error.to_string().into()))?;
    let code = Aligned::new(&operation.write_bytecode());
    let source = Source { name, text: &text };
    compile_read(source, |context| code.read(context), options)
}

/// Bytes that begin at a multiple of [`ALIGNMENT`].
struct Aligned {
    room: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut room = Vec::<u8>::with_capacity(bytes.len() + ALIGNMENT);
        let start = room.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        room.resize(start, 0);
        room.extend_from_slice(bytes);
        Self { room, start }
    }

    /// The module that the bytes are.
    fn read<'c>(&self, context: &'c Context) -> Result<Module<'c>, ModuleError> {
        let bytes = &self.room[self.start..];
        let text = mlir_sys::MlirStringRef {
            data: bytes.as_ptr().cast(),
            length: bytes.len(),
        };
        // SAFETY: the context and the bytes are live; what is read is the caller's.
        let read = || unsafe {
            Module::from_option_raw(mlir_sys::mlirModuleCreateParse(context.to_raw(), text))
        };
        reported(context, read).map_err(ModuleError::Parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_context::{context, parse};

    const ADD: &str = "func.func @add(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.add ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}";

    fn compiled(text: &str) -> Result<Compiled, CompileError> {
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
    fn resources_come_along() {
        let text = "func.func @add(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense_resource<weights> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.add ins(%a, %c : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
{-# dialect_resources: { builtin: { weights: \"0x400000000000803F000000400000404000008040\" } } #-}";
        let package = compiled(text).unwrap().package;
        let weights: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
        let mut files = package.files();
        assert!(files.any(|(_, bytes)| bytes == weights));
    }

    #[test]
    fn dialects_that_are_not_known_are_named() {
        let context = Context::new();
        context.set_allow_unregistered_dialects(true);
        let module = Module::parse(&context, "\"mine.op\"() : () -> ()").unwrap();
        let options = Options::for_target("sm_90a");
        let error = compile_module(&module, "-", options).map(|_| ());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("mine"), "{error}");
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
