//! Contexts, modules and pipelines for programs on melior that lower through Axe.
//!
//! [`context`] knows every dialect, pass and target of this build, [`parse`] reads a module, and [`run_passes`] runs passes
//! and pipelines on it by name. What is wrong is a [`ModuleError`], whose diagnostics are located records. Programs with
//! dialects of their own put them into a registry beside what [`register_all`] adds. Whole modules become kernel packages
//! by the crate `axe-compile`, which builds on this one.
//!
//! ```no_run
//! use axe_context::{Source, context, decisions, parse, run_passes};
//! let context = context();
//! let source = Source { name: "layer.mlir", text: "func.func @f() { return }" };
//! let mut module = parse(&context, source)?;
//! let pipeline = "canonicalize,axe-nvidia{target=sm_90a until=scheduled}";
//! let (done, decisions) = decisions(|| run_passes(&context, &mut module, pipeline));
//! for decision in &decisions {
//!     println!("{}: {}", decision.place, decision.message);
//! }
//! done?;
//! println!("{}", module.as_operation());
//! # Ok::<(), axe_context::ModuleError>(())
//! ```

mod error;
mod module;
mod registration;

pub use axe_dialect::diagnostic::{FilePosition, Severity, reported};
pub use axe_dialect::{Diagnostic, Diagnostics, Source};
pub use axe_passes::remark::{Kind as RemarkKind, Remark, collect as decisions};
pub use error::ModuleError;
pub use module::{parse, run_passes, set_parser_runner, transform};
pub use registration::{context, register_all, register_all_raw};
