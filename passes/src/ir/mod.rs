//! Reading and building IR: what melior leaves to its users.
//!
//! A pass holds its operation for as long as it runs, so the helpers give operations and values the
//! lifetime of the context; an erased operation must not be used again, as in MLIR itself.

pub mod attribute;
pub mod build;
pub mod combiner;
pub mod facts;
pub mod reshape;
pub mod types;
pub mod value;
pub mod walk;

pub use build::Builder;
pub use types::{DYNAMIC, TensorType};

use melior::ir::{OperationRef, Value};

/// An operation of the module that the pass holds.
pub type Op<'c> = OperationRef<'c, 'c>;
/// A value of the module that the pass holds.
pub type Val<'c> = Value<'c, 'c>;
