//! Why a module could not be compiled or run.

use axe_context::ModuleError;
use axe_dialect::Diagnostic;
use axe_package::DType;
use thiserror::Error;

/// A failure of the CPU target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The text is no module, or a pass failed: the diagnostics.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The module has no such function or kernel.
    #[error("no {kind} '{name}' in the module; it has: {}", if .found.is_empty() { "none".into() } else { .found.join(", ") })]
    Unknown {
        /// What was asked for: `function` or `axe.kernel`.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names that there are.
        found: Vec<String>,
    },
    /// A function whose arguments or results have no form as a tensor.
    #[error(
        "'{function}': {what} {index} has type {found}: expected a ranked tensor, a dense memref or a scalar of a float or integer type"
    )]
    Type {
        /// The function.
        function: String,
        /// `argument` or `result`.
        what: &'static str,
        /// Its position.
        index: usize,
        /// Its type.
        found: String,
    },
    /// Another number of inputs.
    #[error("'{function}' takes {expected} inputs, got {got}")]
    Count {
        /// The function.
        function: String,
        /// The arguments of the function.
        expected: usize,
        /// The tensors given.
        got: usize,
    },
    /// An input of another type or shape.
    #[error("'{function}': input {index} is {expected}, got {got}")]
    Input {
        /// The function.
        function: String,
        /// Its position.
        index: usize,
        /// The type of the argument.
        expected: String,
        /// That of the tensor given.
        got: String,
    },
    /// A grid that no launch has.
    #[error("a grid of {0:?} blocks is not between 1 and 2^31 - 1 in each direction")]
    Grid([u64; 3]),
    /// Machine code could not be made.
    #[error("no machine code for '{function}'{}", if .undefined.is_empty() { String::new() } else { format!(": declared and not defined: {}", .undefined.join(", ")) })]
    Engine {
        /// The function.
        function: String,
        /// The functions that the module declares and does not define.
        undefined: Vec<String>,
    },
    /// LLVM's backend of the host has no instructions for it.
    #[error("{place}: error: LLVM makes no machine code of '{function}' for this host: {reason}")]
    Backend {
        /// Where the function is.
        place: String,
        /// The function.
        function: String,
        /// What LLVM says.
        reason: String,
    },
    /// A `cf.assert` did not hold.
    #[error("assertion failed in '{function}': {message}")]
    Assertion {
        /// The function that was called.
        function: String,
        /// The assertion's message.
        message: String,
    },
    /// A result that is not a dense tensor of the declared type.
    #[error("'{function}': result {index} is no {dtype} tensor that memory holds: sizes {sizes:?}")]
    Result {
        /// The function.
        function: String,
        /// Its position.
        index: usize,
        /// Its element type.
        dtype: DType,
        /// The sizes that the function gave.
        sizes: Vec<i64>,
    },
}

impl CpuError {
    /// Whether a call of what was compiled failed: another call of the same may succeed.
    #[must_use]
    pub const fn is_of_call(&self) -> bool {
        matches!(
            self,
            Self::Count { .. }
                | Self::Input { .. }
                | Self::Grid(_)
                | Self::Assertion { .. }
                | Self::Result { .. }
        )
    }

    /// What MLIR and the passes reported; nothing for other failures.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Module(error) => error.diagnostics(),
            _ => &[],
        }
    }
}
