//! Why a module did not become a package.

use axe_context::ModuleError;
use axe_cpu::CpuError;
use axe_dialect::{Diagnostic, Diagnostics};
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
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// What the host does not compile or run: the target `cpu`, and the reference.
    #[error(transparent)]
    Host(#[from] CpuError),
    /// The module has no function of that name, or several and none was named.
    #[error("{0}")]
    Function(String),
    /// The host function has operations that a package cannot hold: where each is, and what was expected.
    #[error("the module has no form as a package:\n{0}")]
    HostFunction(Diagnostics),
    /// The target's assembler refused the code, or gave up what the code is written for.
    #[error(transparent)]
    Assembler(Box<dyn std::error::Error + Send + Sync>),
    /// What was put together is not a package.
    #[error(transparent)]
    Package(#[from] PackageError),
}

impl CompileError {
    /// A target that this build does not have.
    pub(crate) fn unknown_target(target: &str) -> Self {
        Self::Target(target.to_owned(), axe_targets::chips().join(", "))
    }

    /// The operations of a host function that a package cannot hold.
    pub(crate) fn host(failures: &[PassError<'_>]) -> Self {
        let all = failures.iter().cloned().map(Diagnostics::from);
        Self::HostFunction(Diagnostics(all.flat_map(|each| each.0).collect()))
    }

    /// What was reported of places in the module; nothing for failures that have none.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Module(error) => error.diagnostics(),
            Self::Host(error) => error.diagnostics(),
            Self::HostFunction(all) => &all.0,
            _ => &[],
        }
    }
}
