//! Kernels of the trn dialect as programs.

use crate::{CompileError, Source};
use axe_trn::program::Program;

/// The programs of a module's `trn.kernel`s, in order.
///
/// # Errors
/// The diagnostics of MLIR, and the operation of a kernel that has no form in a program.
pub fn trainium_programs<'s>(source: impl Into<Source<'s>>) -> Result<Vec<Program>, CompileError> {
    axe_targets::register();
    let context = axe_cpu::context();
    axe_trainium::add_to(&context);
    let module = axe_cpu::parse(&context, source)?;
    axe_trainium::read::kernels(&module).map_err(|failure| CompileError::host(&[failure]))
}
