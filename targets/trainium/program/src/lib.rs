//! Trainium programs as plain data: what the hardware is, what a program may be, what it does, how long it takes, and how
//! it is written in NKI. No MLIR, no LLVM.
//!
//! * [`facts`]: the hardware's numbers, each with its source;
//! * [`program`]: kernels as data, and a builder for them;
//! * [`rules`]: what the documentation forbids;
//! * [`plan`]: programs for products of any size;
//! * [`dispatch`]: instructions for operators on tiles whose layouts are given;
//! * `place`: bytes of SBUF and banks of PSUM for buffers;
//! * [`walk`]: a program as it executes;
//! * [`run`]: its values, with every rule that only an execution can break;
//! * [`sync`]: the semaphores between engines, and what is wrong without one;
//! * [`time`]: how long it takes, and pictures of that;
//! * [`nki`]: its source in both generations of NKI;
//! * [`kernels`]: the vendor's matrix products, for which times are published.

pub mod dispatch;
pub mod facts;
pub mod kernels;
pub mod nki;
mod place;
pub mod plan;
pub mod program;
pub mod rules;
pub mod run;
pub mod sync;
pub mod time;
pub mod walk;

pub use place::DoesNotFit;
