//! Benchmarks against a vendor's library, in one process and on the same data: what `axe bench` and `axe tune` are made of.
//!
//! `gemm::Bench` measures one [`case::Case`]: cuBLASLt's algorithms and all packages that compute
//! the product, ours and those of rivals, are checked, then hold a `contest`. `suite` names sets of shapes, `packages`
//! finds packages in a folder, `document` is what is written, `table` what is
//! printed, `plot` draws it.

pub mod case;
mod check;
pub(crate) mod compare;
pub(crate) mod contest;
pub(crate) mod cublaslt;
pub(crate) mod document;
pub(crate) mod fill;
pub(crate) mod gemm;
pub(crate) mod operands;
pub(crate) mod packages;
pub(crate) mod plot;
pub mod problem;
pub(crate) mod reference;
mod result;
pub(crate) mod runner;
pub(crate) mod stats;
pub(crate) mod suite;
pub(crate) mod table;
pub(crate) mod truth;
pub(crate) mod weights;
