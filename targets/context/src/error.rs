//! Why a module was not read or not lowered.

use axe_dialect::{Diagnostic, Diagnostics};
use axe_passes::PassError;
use thiserror::Error;

/// Why a module was not read or not lowered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The text is no module; the diagnostics.
    #[error("the module does not parse:\n{0}")]
    Parse(Diagnostics),
    /// A pass is not known or failed; the diagnostics.
    #[error("the module does not compile:\n{0}")]
    Passes(Diagnostics),
}

impl ModuleError {
    /// What was reported, in order, each followed by its notes.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Parse(all) | Self::Passes(all) => &all.0,
        }
    }
}

impl From<PassError<'_>> for ModuleError {
    fn from(error: PassError<'_>) -> Self {
        Self::Passes(error.into())
    }
}
