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

mod abi;
mod attribute;
pub mod diagnostic;
mod ffi;
mod memref;
mod operation;
mod source;
pub mod text;
pub mod vocabulary;

pub use attribute::{
    Combiner, LayoutAttribute, Level, RasterOrder, SpaceAttribute, pipeline_type, slot_type,
    token_type,
};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use memref::{element_type, layout_of, memory_space, memref_type, strides_of, tensor_type};
pub use operation::{Op, Operands, Typed, Val};
pub use source::{Parsing, Source, file_position, place};

use melior::dialect::{DialectHandle, DialectRegistry};

/// The handle of the axe dialect.
#[must_use]
pub fn handle() -> DialectHandle {
    // SAFETY: the function returns the handle of a dialect that is linked in.
    unsafe { DialectHandle::from_raw(ffi::mlirGetDialectHandle__axe__()) }
}

/// The handle of torch-mlir's dialect `tm_tensor`, as far as its modules are read: for contexts in which torch-mlir has not registered its own.
#[must_use]
pub fn tm_tensor() -> DialectHandle {
    // SAFETY: the function returns the handle of a dialect that is linked in.
    unsafe { DialectHandle::from_raw(ffi::mlirGetDialectHandle__axe_tm_tensor__()) }
}

/// Adds the axe dialect to a registry.
pub fn register(registry: &DialectRegistry) {
    handle().insert_dialect(registry);
}

/// The operations of the dialect, generated from its ODS: their names, what they are ([`Trait`](ops::Trait)), and the
/// parts of each, by name.
///
/// ```no_run
/// use axe_dialect::{Op, Typed, ops};
/// fn depth_first(op: Op<'_>) -> bool {
///     ops::GemmOp::of(op).is_some_and(|gemm| gemm.trans_a)
/// }
/// ```
pub mod ops {
    use crate::attribute::{Combiner, Level, RasterOrder};
    use crate::operation::{
        Arity, Groups, Op, Operands, Typed, Val, integer, integers, is_named, text,
    };
    use melior::ir::Attribute;
    use melior::ir::operation::OperationLike;

    include!(concat!(env!("OUT_DIR"), "/ops.rs"));

    /// Whether the operation of this name has a trait.
    #[must_use]
    pub fn has(name: &str, r#trait: Trait) -> bool {
        traits(name).contains(&r#trait)
    }
}
