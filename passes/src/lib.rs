//! Target-neutral passes of the axe dialect.
//!
//! A pass is declared in cpp/Passes.td (options, statistics, documentation) and does its work in the
//! Rust function of the same name, found through [`registry`].

pub mod abi;
pub mod agreement;
mod boxes;
pub mod build;
pub mod check;
mod convert;
pub mod dispatch;
pub mod error;
pub mod fuse;
mod gathers;
mod generalize;
mod host;
pub mod ir;
mod layouts;
mod nested;
pub mod pipeline;
mod powers;
pub mod precision;
pub mod registry;
pub mod remark;
pub mod signless;
mod slice;
pub mod speculation;
pub mod target;
mod tile;

pub use error::{PassError, PassResult};

/// Registers the bodies of all target-neutral passes.
pub fn register() {
    registry::register("convert-linalg-to-axe", convert::run);
    registry::register("axe-generalize", generalize::run);
    registry::register("axe-simplify-powers", powers::run);
    registry::register("axe-simplify-gathers", gathers::run);
    registry::register("axe-canonicalize-layouts", layouts::canonicalize::run);
    registry::register("axe-print-layouts", layouts::print::run);
    registry::register("axe-slice", slice::run);
    registry::register("axe-tile", tile::run);
    registry::register("axe-lower-to-host", host::run);
    pipeline::register(&host::pipeline::PIPELINE);
    registry::register("axe-plan-kernels", target::plan_kernels);
    registry::register("axe-dispatch-schedules", target::dispatch_schedules);
    registry::register("axe-lower-schedules", target::lower_schedules);
    registry::register("axe-verify-schedules", target::verify_schedules);
    registry::register("axe-verify-code", target::verify_code);
}
