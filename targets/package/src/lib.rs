//! The kernel package: machine code, its manifest, and tensors as `.npy` files.
//!
//! A [`Manifest`] says what a compiled function needs and does: inputs, outputs, buffers, kernels
//! and the steps that run them, with sizes as expressions over launch-time symbols. A [`Package`]
//! is a manifest with the files it refers to, on disk a tar file or a directory.
//! [`Manifest::bind`] finds the symbols' values from a caller's arguments and
//! [`Manifest::instantiate`] turns everything into concrete numbers. [`npy`], [`Tensor`] and
//! [`compare()`] are what running and checking a package needs on the host.
//!
//! The crate knows no GPU and no compiler: compilers write packages, the runtime and the
//! simulator read them.

mod bind;
mod compare;
mod container;
mod dtype;
mod expr;
mod instance;
mod kernel_check;
mod manifest;
pub mod npy;
mod tensor;
mod tensor_map;
mod tuned;
mod validate;
mod written;

pub use bind::{BindError, TensorType};
pub use compare::{CompareError, Mismatch, Report, Tolerance, compare, compare_written};
pub use container::{MANIFEST_FILE, Package, PackageError, sha256_hex};
pub use dtype::DType;
pub use expr::{Env, Expr, ExprError, ExprOp, SM_COUNT};
pub use instance::{ConcreteArg, ConcreteStep, Instance, InstanceError, Memory, Place, Role};
pub use kernel_check::MAX_PARAM_BYTES;
pub use manifest::*;
pub use npy::NpyError;
pub use tensor::{POISON, Random, Tensor, TensorError, dense_bytes};
pub use tensor_map::{
    Interleave, L2Promotion, OobFill, Swizzle, TensorMapDType, TensorMapError, TensorMapType,
};
pub use tuned::{Key, OperandOrder, Tuned, TunedDb, TunedError, TunedOp};
pub use validate::ManifestError;
pub use written::Unwritten;
