//! What a layout costs: aliasing, vector width, coalescing, bank conflicts, and the swizzle to choose.
//!
//! | question | function | answer |
//! | --- | --- | --- |
//! | do two indices share a place? | [`alias`] | two indices and the place, or none |
//! | do two layouts share a place? | [`overlap`] | an index of each and the place, or none |
//! | how wide may one access be? | [`vector_width`] | elements, bytes, alignment of every vector |
//! | how many sectors does a warp touch? | [`WarpAccess::sectors`] | 32-byte sectors, the fewest, efficiency |
//! | how often are banks asked twice? | [`WarpAccess::banks`] | passes, the fewest, conflicts |
//! | which swizzle avoids that? | [`choose_swizzle`] | a swizzle, or the proof that there is none |
//!
//! All answers are exact; where an exact one would cost too much the error is `Unsupported`.
//!
//! # Example: the tile that `ldmatrix` reads
//!
//! A tile of halves, 64 a row, is written by rows and read in 8x8 blocks: eight lanes ask for 16 bytes
//! each, one row apart. All eight lie in the same four banks. Three bits of the row, xored into the
//! place of the 16-byte chunk, spread them over all banks.
//!
//! ```
//! use axe_layout::Layout;
//! use axe_layout::analysis::{TileAccess, choose_swizzle};
//! let tile = Layout::row_major(&[128, 64])?;
//! let rows: Vec<Vec<i64>> = (0..8).map(|lane| vec![lane, 0]).collect();
//! let read = TileAccess::at(&tile, &[128, 64], &rows, 1, 8, 2)?;
//! let plain = read.warp(None)?.banks();
//! assert_eq!((plain.passes, plain.conflicts()), (8, 7));
//! let chosen = choose_swizzle(&tile, &[read])?;
//! assert!(chosen.is_free());
//! assert_eq!(chosen.swizzle.map(|s| s.to_string()).as_deref(), Some("Sw<3,3,3>"));
//! # Ok::<(), axe_layout::Error>(())
//! ```

mod access;
mod alias;
mod banks;
mod choose;
mod equation;
mod sectors;
mod vector;

pub use access::{TileAccess, WarpAccess, tile_accesses};
pub use alias::{Alias, Overlap, alias, coinciding_copies, is_injective, overlap};
pub use banks::{BANKS, BankCost, WORD_BYTES, bank_ways};
pub use choose::{Choice, choose_swizzle};
pub use sectors::{SECTOR_BYTES, SectorCost};
pub use vector::{VectorWidth, vector_width};
