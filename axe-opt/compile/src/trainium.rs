//! Kernels of the trn dialect as programs.

use crate::{CompileError, Source};
use axe_context::{context, parse, run_passes};
use axe_trn::program::Program;

/// The programs of a module's `trn.kernel`s, in order.
///
/// # Errors
/// The diagnostics of MLIR, and the operation of a kernel that has no form in a program.
pub fn trainium_programs<'s>(source: impl Into<Source<'s>>) -> Result<Vec<Program>, CompileError> {
    let context = context();
    let module = parse(&context, source)?;
    axe_trainium::read::kernels(&module).map_err(|failure| CompileError::host(&[failure]))
}

/// A module's kernels for a chip of Trainium, in the trn dialect, with the functions that launch them.
///
/// # Errors
/// The diagnostics of MLIR, and a target that is no chip of Trainium.
pub fn trainium_kernels<'s>(
    source: impl Into<Source<'s>>,
    chip: &str,
) -> Result<String, CompileError> {
    let toolchain = axe_targets::toolchain(chip).filter(|toolchain| toolchain.has_programs());
    let toolchain = toolchain.ok_or_else(|| {
        CompileError::Function(format!(
            "expected a chip of Trainium, trn1 or trn2, got {chip}"
        ))
    })?;
    let context = context();
    let mut module = parse(&context, source)?;
    run_passes(&context, &mut module, &toolchain.pipeline(chip))?;
    Ok(module.as_operation().to_string())
}
