//! Benchmarks against a vendor's library, in one process and on the same data.
//!
//! [`gemm::Bench`] measures one [`case::Case`]: cuBLASLt's algorithms and all packages that compute
//! the product, ours and those of rivals, are checked, then hold a [`contest`]. [`suite`] names sets of shapes, [`packages`]
//! finds packages in a folder, [`document`] is what is written, [`table`] what is
//! printed, [`plot`] draws it.

pub mod case;
mod check;
pub mod compare;
pub mod contest;
pub mod cublaslt;
pub mod document;
pub mod fill;
pub mod gemm;
pub mod operands;
pub mod packages;
pub mod plot;
pub mod problem;
pub mod reference;
mod result;
pub mod runner;
pub mod stats;
pub mod suite;
pub mod table;
pub mod truth;
pub mod weights;
