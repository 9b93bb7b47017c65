//! The axe dialect for melior: registration and safe wrappers.
//!
//! Linking this crate links the dialect: its C++ (dialect/ir), its C API (dialect/capi), and the C ABI
//! through which the C++ asks the algebra of [`axe_layout`] what a layout means ([`abi`]).
//!
//! ```no_run
//! use melior::{Context, dialect::DialectRegistry};
//! let registry = DialectRegistry::new();
//! axe_dialect::register(&registry);
//! let context = Context::new();
//! context.append_dialect_registry(&registry);
//! ```

pub mod abi;
mod attribute;
mod ffi;
mod memref;
mod source;
pub mod vocabulary;

pub use attribute::{
    Combiner, LayoutAttribute, Level, RasterOrder, SpaceAttribute, pipeline_type, slot_type,
    token_type,
};
pub use memref::{element_type, layout_of, memory_space, memref_type, strides_of, tensor_type};
pub use source::{Source, place};

use melior::dialect::{DialectHandle, DialectRegistry};

/// The handle of the axe dialect.
#[must_use]
pub fn handle() -> DialectHandle {
    // SAFETY: the function returns the handle of a dialect that is linked in.
    unsafe { DialectHandle::from_raw(ffi::mlirGetDialectHandle__axe__()) }
}

/// Adds the axe dialect to a registry.
pub fn register(registry: &DialectRegistry) {
    handle().insert_dialect(registry);
}

/// The operations of the dialect, generated from its ODS.
pub mod ops {
    #![allow(missing_docs, clippy::all)]
    melior::dialect! {
        name: "axe",
        files: ["AxeOps.td"],
        include_directory_env_vars: ["AXE_IR_DIR"],
    }
}
