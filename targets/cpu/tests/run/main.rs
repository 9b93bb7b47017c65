//! Modules compiled for the host and run: exported models against numpy, kernels and operators against plain Rust.

mod errors;
mod kernels;
mod models;
mod operators;
mod planned;
mod sources;

use std::path::PathBuf;

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
