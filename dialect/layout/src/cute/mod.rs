//! CuTe layouts: nested `shape:stride`, their algebra, and the way to and from Axe.
//!
//! A CuTe layout maps a coordinate to an integer. Its shape and its stride are congruent nests of
//! integers; coordinates run **column-major** (the leftmost mode is the fastest), so one layout is also
//! a function of one integer:
//!
//! ```
//! use axe_layout::cute::CuteLayout;
//! let a: CuteLayout = "(4,(2,3)):(3,(1,12))".parse()?;
//! assert_eq!((a.size(), a.cosize()), (24, 35));
//! assert_eq!(a.apply(5)?, 1 * 3 + 1 * 1 + 0 * 12);
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! The operations follow CuTe's definitions and return results of CuTe's shape, with three
//! differences, all on the side of the definitions:
//!
//! * [`composition`] is `R(c) = A(B(c))` or an error. CuTe checks divisibility only in part and then
//!   truncates (`(4,2):(1,6) o 4:3` gives `4:3`, which is wrong at 2); here such a question has no
//!   answer and says why. Where CuTe's conditions fail although a layout exists, it is found.
//! * [`complement`] and [`left_inverse`] refuse overlapping strides, and divisions refuse tiles that do
//!   not make up the whole, instead of rounding.
//! * Numbers beyond 64 bits are errors.
//!
//! Outside its domain a layout goes on in its last mode (`4:2` maps 7 to 14), as in CuTe; composition,
//! division and product rely on it.
//!
//! | file | operations |
//! | --- | --- |
//! | `nest` | nests of integers |
//! | `layout` | [`CuteLayout`]: size, cosize, apply |
//! | `notation` | parse and print |
//! | `coalesce` | [`coalesce`], [`coalesce_by_mode`], [`filter`] |
//! | `compose` | [`composition`], [`composition_by_mode`] |
//! | `inverse` | [`complement`], [`right_inverse`], [`left_inverse`] |
//! | `divide`, `product` | the four divisions and the six products, by [`Tiler`]s |
//! | `partition` | [`tile_to_shape`], [`make_layout_tv`], [`partition_tv`] |
//! | `recast` | [`upcast`], [`downcast`], [`recast()`] |
//! | `composed` | [`ComposedLayout`]: a swizzle after an offset after a layout |
//! | `axe` | to and from [`crate::Layout`] |

mod axe;
mod coalesce;
mod compose;
mod composed;
mod divide;
mod inverse;
mod layout;
mod nest;
mod notation;
mod partition;
mod product;
mod recast;
mod search;
mod tiler;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use axe::{from_axe, from_axe_linear, to_axe, to_axe_linear};
pub use coalesce::{coalesce, coalesce_by_mode, filter};
pub use compose::{composition, composition_by_mode};
pub use composed::ComposedLayout;
pub use divide::{flat_divide, logical_divide, tiled_divide, zipped_divide};
pub use inverse::{complement, left_inverse, right_inverse};
pub use layout::CuteLayout;
pub use nest::Nest;
pub use partition::{make_layout_tv, partition_tv, tile_to_shape};
pub use product::{
    blocked_product, flat_product, logical_product, raked_product, tiled_product, zipped_product,
};
pub use recast::{downcast, recast, upcast};
pub use tiler::Tiler;
