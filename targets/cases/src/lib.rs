//! Random kernels in axe IR with their expected results.
//!
//! A case is a kernel over random shapes (ragged ones too), element types and layouts, with inputs and the
//! result that plain loops over f64 give for it. Nothing here knows how the compiler works: layouts are
//! made from the definition of a layout and from the PTX ISA's fragments. The same cases run in the
//! simulator and on a GPU.

mod array;
pub mod case;
mod chain;
pub mod coverage;
mod layouts;
mod maps;
pub mod planned;
mod product;
pub mod random;
pub mod roles;

pub use case::{Built, Case, Parameter};

/// The case of a seed.
#[must_use]
pub fn case(seed: u64) -> Case {
    match seed % 3 {
        0 => product::case(seed),
        _ => chain::case(seed),
    }
}
