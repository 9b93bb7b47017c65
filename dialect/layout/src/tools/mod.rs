//! What a compiler engineer reaches for: tables, pictures, and the JSON Lines evaluator.
//!
//! The `axe-layout` binary and `axe layout` are thin shells around this module.

pub mod banks;
#[cfg(feature = "cli")]
pub mod cli;
pub mod eval;
pub mod grid;
pub mod html;
mod legend;
mod paint;
pub mod palette;
pub(crate) mod relayout;
pub mod svg;
pub mod table;

#[cfg(test)]
mod tests;

pub use eval::{answer, serve};
pub use grid::{Colouring, Grid};
