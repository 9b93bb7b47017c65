//! Functional units: what an instruction computes, apart from who executes it and when.
//!
//! Units are pure. They take register values as `u32`/`u64` slices, one entry a lane, and memory as
//! [`Bytes`]; the executor decides who accesses what and when, and puts its race, bounds and
//! initialisation checks into its implementations of [`Bytes`].

pub mod approx;
pub mod convert;
pub mod float;
pub mod matrix;
pub mod mbarrier;
pub mod mma;
pub mod reduce;
pub mod scaled;
pub mod sparse;
pub mod swizzle;
pub mod tcgen05;
pub mod tensor_core;
pub mod tensor_map;
pub mod tensor_memory;
#[cfg(test)]
mod testing;
pub mod tma;
pub mod wgmma;
pub mod wmma;

use crate::fault::Fault;

/// Byte-addressed memory that a unit reads and writes; addresses are offsets within one space.
pub trait Bytes {
    /// Reads `out.len()` bytes from `addr`.
    ///
    /// # Errors
    /// The fault that the memory found: out of bounds, misaligned, unwritten or a race.
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault>;

    /// Writes `data` from `addr` on.
    ///
    /// # Errors
    /// The fault that the memory found: out of bounds, misaligned or a race.
    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault>;

    /// Says which warp of a warpgroup the next reads are for; `None`: all four.
    fn for_warp(&mut self, _warp: Option<usize>) {}
}
