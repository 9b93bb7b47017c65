//! CPU target: axe IR as host loops, run by MLIR's execution engine.
//!
//! [`run`] takes a module as text, at any level that the pipeline `--axe-cpu` takes (linalg, logical axe, kernels with
//! their launches), and gives the results of one of its functions. [`launch`] runs one `axe.kernel` on a grid. Both
//! compile; [`Program`] keeps what was compiled and runs it again. The layouts of modules may name the axes of any target of
//! this build ([`axe_context::context`]).

mod assertion;
mod compile;
mod descriptor;
mod engine;
mod error;
mod guard;
mod kernel;
mod part;
mod program;
mod recovery;
mod signature;
mod symbols;

pub use axe_context::{ModuleError, Source};
pub use compile::assert_dimensions;
pub use error::CpuError;
pub use guard::exit_where_the_parser_crashes;
pub use kernel::launch;
pub use part::{Part, run_parts};
pub use program::{Program, run};
pub use recovery::{Recovery, set_recovery};
pub use signature::{Signature, ValueType, dtype};
