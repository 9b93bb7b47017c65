//! Hardware facts: chips, and the fragment layouts of matrix instructions.

pub mod chip;
pub mod matrix;
pub mod rates;
pub mod wgmma;
