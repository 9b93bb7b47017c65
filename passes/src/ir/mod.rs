//! Reading and building IR: what melior leaves to its users.
//!
//! A pass holds its operation for as long as it runs, so the helpers give operations and values the
//! lifetime of the context; an erased operation must not be used again, as in MLIR itself.

pub mod attribute;
pub mod build;
pub mod combiner;
pub mod facts;
pub mod float8;
pub mod inline;
pub mod int;
pub mod pattern;
pub mod reshape;
pub mod types;
pub mod value;
pub mod walk;

pub use build::Builder;
pub use int::{Int, Ints, Predicate};
pub use types::{DYNAMIC, TensorType};

pub use axe_dialect::{Op, Val};
