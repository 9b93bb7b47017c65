//! Division: a layout split into tiles and the rest.

use super::compose::compose_parts;
use super::inverse::covering_complement;
use super::layout::CuteLayout;
use super::tiler::{Tiler, by_mode, zipped};
use crate::error::Result;

/// `A o (B, complement(B, size(A)))`: the tile that `B` picks, and how the tiles repeat.
fn divide(a: &CuteLayout, b: &CuteLayout) -> Result<CuteLayout> {
    let rest = covering_complement(b, a.size())?;
    CuteLayout::concat(compose_parts(a, &[b.clone(), rest])?)
}

/// Each mode `M` of `a` that the tiler reaches becomes `(tile, rest)`: `((TileM, RestM), ..)`.
///
/// # Errors
/// As [`complement`](super::complement) and [`composition`](super::composition), `None` also where the tiles
/// do not make up all of `a`; `Invalid` when the tiler has too many modes.
pub fn logical_divide(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    by_mode(a, tiler, &divide)
}

/// `((TileM, TileN, ..), (RestM, RestN, .., beyond))`.
///
/// # Errors
/// As [`logical_divide`].
pub fn zipped_divide(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (tile, rest) = zipped(a, tiler, &divide)?;
    CuteLayout::concat([tile, rest])
}

/// `((TileM, TileN, ..), RestM, RestN, .., beyond)`.
///
/// # Errors
/// As [`logical_divide`].
pub fn tiled_divide(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (tile, rest) = zipped(a, tiler, &divide)?;
    CuteLayout::concat([tile].into_iter().chain(rest.modes()))
}

/// `(TileM, TileN, .., RestM, RestN, .., beyond)`.
///
/// # Errors
/// As [`logical_divide`].
pub fn flat_divide(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (tile, rest) = zipped(a, tiler, &divide)?;
    CuteLayout::concat(tile.modes().into_iter().chain(rest.modes()))
}
