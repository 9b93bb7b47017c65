//! Product: a layout repeated as another one says, without overlap.

use super::compose::{compose_parts, composition};
use super::inverse::complement;
use super::layout::CuteLayout;
use super::tiler::{Tiler, by_mode, zipped};
use crate::error::{Error, Result};

/// `(A, complement(A, size(A) * cosize(B)) o B)`: the block, and how its copies lie.
fn repeat(a: &CuteLayout, b: &CuteLayout) -> Result<CuteLayout> {
    CuteLayout::concat([a.clone(), composition(&places(a, b)?, b)?])
}

/// Where copies of `a` may lie, as many as `b` reaches: `complement(A, size(A) * cosize(B))`, and further where
/// padding inside of `a` takes room (CuTe's would overlap there).
fn places(a: &CuteLayout, b: &CuteLayout) -> Result<CuteLayout> {
    let overflow = || Error::overflow("the cosize of a CuTe product");
    let mut room = a.size().checked_mul(b.cosize()).ok_or_else(overflow)?;
    loop {
        let places = complement(a, room)?;
        if places.size() >= b.cosize() {
            return Ok(places);
        }
        room = room.checked_mul(2).ok_or_else(overflow)?;
    }
}

/// Each mode `M` of `a` that the tiler reaches becomes `(block, copies)`; with a layout as the tiler
/// the result is `(a, copies)`.
///
/// # Errors
/// As [`complement`] and [`composition`]; `Invalid` when the tiler has too many modes.
pub fn logical_product(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    by_mode(a, tiler, &repeat)
}

/// `((M, N, ..), (CopiesM, CopiesN, .., beyond))`.
///
/// # Errors
/// As [`logical_product`].
pub fn zipped_product(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (block, copies) = zipped(a, tiler, &repeat)?;
    CuteLayout::concat([block, copies])
}

/// `((M, N, ..), CopiesM, CopiesN, .., beyond)`.
///
/// # Errors
/// As [`logical_product`].
pub fn tiled_product(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (block, copies) = zipped(a, tiler, &repeat)?;
    CuteLayout::concat([block].into_iter().chain(copies.modes()))
}

/// `(M, N, .., CopiesM, CopiesN, .., beyond)`.
///
/// # Errors
/// As [`logical_product`].
pub fn flat_product(a: &CuteLayout, tiler: &Tiler) -> Result<CuteLayout> {
    let (block, copies) = zipped(a, tiler, &repeat)?;
    CuteLayout::concat(block.modes().into_iter().chain(copies.modes()))
}

/// Mode by mode `(block, copies)`: the copies of `a` stand side by side as `b` orders them. The shorter
/// of the two gets modes `1:0`.
///
/// # Errors
/// As [`complement`] and [`composition`].
pub fn blocked_product(a: &CuteLayout, b: &CuteLayout) -> Result<CuteLayout> {
    let pairs = paired_modes(a, b)?.into_iter();
    let modes: Result<Vec<_>> = pairs.map(|(m, n)| CuteLayout::concat([m, n])).collect();
    CuteLayout::concat(modes?)
}

/// Mode by mode `(copies, block)`: the copies of `a` are interleaved, as `b` orders them. The modes of a
/// pair are kept apart, as CuTe does from version 3.8 on; [`super::coalesce_by_mode`] merges them.
///
/// # Errors
/// As [`complement`] and [`composition`].
pub fn raked_product(a: &CuteLayout, b: &CuteLayout) -> Result<CuteLayout> {
    let pairs = paired_modes(a, b)?.into_iter();
    let modes: Result<Vec<_>> = pairs.map(|(m, n)| CuteLayout::concat([n, m])).collect();
    CuteLayout::concat(modes?)
}

fn paired_modes(a: &CuteLayout, b: &CuteLayout) -> Result<Vec<(CuteLayout, CuteLayout)>> {
    let rank = a.rank().max(b.rank());
    let copies = compose_parts(&places(a, b)?, &padded(b, rank)?)?;
    Ok(padded(a, rank)?.into_iter().zip(copies).collect())
}

/// The modes of `layout`, with `1:0` appended up to `rank`.
fn padded(layout: &CuteLayout, rank: usize) -> Result<Vec<CuteLayout>> {
    let mut modes = layout.modes();
    modes.resize(rank.max(modes.len()), CuteLayout::new(1, 0)?);
    Ok(modes)
}
