//! The Axe layout algebra: shard, replica and offset over named axes.
//!
//! A [`Layout`] says where each element of a tensor lives: on which devices, warps, lanes and registers,
//! and at which address. It is a triple `(D, R, O)`. The **shard** `D` is a list of iters `(e, s, a)`:
//! the logical index `x` is unflattened row-major into digits below the extents `e`, and each digit moves
//! by the stride `s` on the axis `a`. The **replica** `R` is a list of iters whose digits take all their
//! values at once: copies. The **offset** `O` moves everything. So `f(x) = { D(x) + r + O | r in R }`.
//!
//! # Reading a layout
//!
//! The accumulator of a 16x8 `mma` has rows in two halves of 8, and pairs of columns. Element (9, 3) is
//! index 75, digits 1, 1, 1, 1: lane 4 + 1, register 2 + 1.
//!
//! ```
//! use axe_layout::{Axis, Coord, Layout};
//! let (lane, reg) = (Axis::new("lane")?, Axis::new("reg")?);
//! let c: Layout = "S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]".parse()?;
//! let at = c.apply(&[16, 8], &[9, 3])?;
//! assert_eq!(at[..], [Coord::from_terms([(lane, 5), (reg, 3)])?]);
//! assert_eq!(c.invert(&at[0])?, [75]);
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! # One map, one form
//!
//! Many lists of iters are one map. [`Layout::canonicalize`] gives the representative, and
//! [`Layout::equivalent`] compares the maps. Layouts have no shape of their own: [`Layout::group`] cuts the
//! iters where the dimensions of a shape end.
//!
//! ```
//! use axe_layout::Layout;
//! let a: Layout = "S[(4, 2, 8) : (16, 8, 1)]".parse()?;
//! assert_eq!(a.canonicalize().to_string(), "S[64 : 1]");
//! let b = a.canonicalize().group(&[16, 4])?.layout;
//! assert_eq!(b.to_string(), "S[(16, 4) : (4, 1)]");
//! assert!(a.equivalent(&b)?);
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! # Building large from small, and back
//!
//! [`Layout::tile`] puts a copy of an inner layout at every element of an outer one, and
//! [`Layout::tile_of`] finds the outer one again, or proves that there is none.
//!
//! ```
//! use axe_layout::{Kind, Layout};
//! let warps: Layout = "S[(2, 2) : (2@warp, 1@warp)]".parse()?;
//! let atom: Layout = "S[(8, 4) : (4@lane, 1@lane)]".parse()?;
//! let tiled = Layout::tile(&warps, &[2, 2], &atom, &[8, 4])?;
//! assert_eq!(tiled.to_string(), "S[(2, 8, 2, 4) : (2@warp, 4@lane, 1@warp, 1@lane)]");
//! assert!(tiled.tile_of(&[16, 8], &atom, &[8, 4])?.equivalent(&warps)?);
//! let other: Layout = "S[(8, 4) : (1@lane, 8@lane)]".parse()?;
//! let none = tiled.tile_of(&[16, 8], &other, &[8, 4]).unwrap_err();
//! assert_eq!(none.kind(), Kind::None);
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! # What an access costs
//!
//! [`analysis`] says whether indices alias, how wide an access may be, which sectors and banks a warp
//! asks, and which swizzle frees its accesses of conflicts. Shared memory tiles of 128 bytes a row, read
//! in 8x8 blocks:
//!
//! ```
//! use axe_layout::Layout;
//! use axe_layout::analysis::{tile_accesses, vector_width};
//! let tile: Layout = "Sw<3,3,3> o S[(64, 64) : (64, 1)]".parse()?;
//! assert_eq!(vector_width(&tile, &[64, 64], 1, 16, 16)?.bytes, 16);
//! let (lane, reg) = (axe_layout::Axis::new("lane")?, axe_layout::Axis::new("reg")?);
//! let rows: Layout = "S[(8, 8) : (1@lane, 1@reg)]".parse()?;
//! let block = tile.slice(&[64, 64], &[8..16, 16..24])?;
//! let reads = tile_accesses(&rows, (lane, reg), &block, None, 2)?;
//! assert_eq!(reads[0].warp(None)?.banks().conflicts(), 7);
//! assert_eq!(reads[0].warp(tile.swizzle())?.banks().conflicts(), 0);
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! # Where answers end
//!
//! No operation panics, wraps or guesses; an [`Error`] has one of four [`Kind`]s. `None` is a proof that
//! there is no answer, `Unsupported` says that this library does not decide the question. Questions about
//! shards are decided by their digits, whatever their size. The bounds are where maps have to be listed:
//!
//! | question | decided, and beyond `Unsupported` |
//! |---|---|
//! | slice of a box that wraps a digit | 2^22 elements along the dimension that wraps |
//! | cover by slices | any size where the shape groups (fewest up to 256 a dimension), else 2^14 boxes inside |
//! | equality, other swizzles | a difference always; agreement up to 2^20 points |
//! | equality, replicas that overlap themselves | extents of a product up to 2^20, or a reach of 2^26 units |
//! | one canonical form of such replicas | 4096 points, a reach of 2^16 units |
//! | factors of such replicas | 2^20 points, parts that reach 2^16 units |
//! | aliasing, overlap | strides with structure always; without, 2^19 rests on an axis |
//! | points of an index, indices at a point | 2^20 answers |
//! | intersection | strides with structure always; without, 2^20 points |
//! | span on a swizzled axis | 2^20 addresses |
//! | choice of a swizzle | 2^18 elements |

pub mod address;
pub mod analysis;
mod axis;
mod coord;
pub mod cute;
mod error;
pub mod generate;
mod iter;
mod json;
mod layout;
pub mod linear;
pub mod oracle;
pub mod sharding;
mod sumset;
mod swizzle;
#[cfg(test)]
mod tests;
mod text;
pub mod tools;

pub use axis::{Axis, WARP};
pub use coord::{Coord, Offset};
pub use error::{Error, Kind, Result};
pub use iter::{DYNAMIC, Iter};
pub use json::LayoutParts;
pub use layout::{Boundaries, Grouped, GroupedMany, Layout, Replica, Shard};
pub use swizzle::Swizzle;
