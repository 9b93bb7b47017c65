//! Mainloops: a tile's products along k, from global memory to sums in registers.

pub(super) mod mma;
pub(super) mod mma_scaled;
pub(super) mod operand;
pub(super) mod scales;
pub(super) mod wgmma;
pub(super) mod wgmma_scaled;
