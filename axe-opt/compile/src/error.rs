//! Why a module did not become a package.

use axe_cpu::CpuError;
use axe_dialect::place;
use axe_package::PackageError;
use axe_passes::PassError;
use thiserror::Error;

/// Why a module did not become a package.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The target's name is not known.
    #[error("unknown target `{0}`: expected cpu or one of {1}")]
    Target(String, String),
    /// The module does not parse or verify, or a pass failed: the diagnostics.
    #[error("{0}")]
    Module(String),
    /// The module has no function of that name, or several and none was named.
    #[error("{0}")]
    Function(String),
    /// The host function has an operation that a package cannot hold.
    #[error("the module has no form as a package:\n{location}: error: {message}")]
    Host {
        /// Where: `file.mlir:3:5`.
        location: String,
        /// What was expected.
        message: String,
    },
    /// ptxas refused the code.
    #[error("ptxas: {0}")]
    Ptxas(String),
    /// ptxas assembled the code and gave up the overlap that it is written for: its messages, with advice.
    #[error("ptxas gave up what makes the kernel fast:\n{0}")]
    Losses(String),
    /// The code has an instruction that ptxas compiles wrongly.
    #[error(
        "ptxas 13.3 compiles `{0}` wrongly where a quotient by a constant has 0 subtracted: expected an index that is no difference of quotients"
    )]
    Miscompiled(String),
    /// The code calls a function that nothing defines.
    #[error(
        "the kernels call `{0}`, which nothing defines: an operation has no form on this target"
    )]
    Unresolved(String),
    /// A kernel has results and writes none of them.
    #[error(
        "kernel `{0}` writes nothing: it has results, and its code has no store. It executes what is undefined, such as a division of integers by zero, on every path"
    )]
    Silent(String),
    /// What was put together is not a package.
    #[error(transparent)]
    Package(#[from] PackageError),
}

impl From<CpuError> for CompileError {
    fn from(error: CpuError) -> Self {
        Self::Module(error.to_string())
    }
}

impl From<PassError<'_>> for CompileError {
    fn from(error: PassError<'_>) -> Self {
        Self::Host {
            location: place(error.location),
            message: error.message,
        }
    }
}
