//! Tile and direct sum: two layouts on the interleaved domain.
//!
//! With shapes of equal rank, `x || y` interleaves the coordinates: dimension `k` of the result is
//! `left[k] * right[k]`, the left one outer. `tile` scales the left layout by the span of the right one
//! on every axis; the direct sum does not scale (paper, sections 2.3, C and F).

use smallvec::SmallVec;

use super::group::group_iters;
use super::measure::shape_size;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};

/// Which factor a segment of the interleaved domain belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The interleaved domain as alternating segments: extents of 1 say nothing, and neighbours of one
/// side are one dimension, so that shapes need not be groupable where nothing comes between.
pub(crate) fn segments(left: &[i64], right: &[i64]) -> SmallVec<[(Side, i64); 8]> {
    let mut segments: SmallVec<[(Side, i64); 8]> = SmallVec::new();
    for (&l, &r) in left.iter().zip(right) {
        for (side, extent) in [(Side::Left, l), (Side::Right, r)] {
            match segments.last_mut() {
                _ if extent == 1 => {}
                Some((last, merged)) if *last == side => {
                    if *merged != DYNAMIC {
                        *merged *= extent;
                    }
                }
                _ => segments.push((side, extent)),
            }
        }
    }
    segments
}

/// The extents of one side's segments.
fn dims_of(segments: &[(Side, i64)], side: Side) -> SmallVec<[i64; 8]> {
    let own = segments.iter().filter(|(s, _)| *s == side);
    own.map(|&(_, extent)| extent).collect()
}

pub(crate) fn check_ranks(left: &[i64], right: &[i64], what: &'static str) -> Result<()> {
    if left.len() == right.len() {
        return Ok(());
    }
    Err(Error::Rank {
        what,
        expected: left.len(),
        got: right.len(),
    })
}

/// The two shards interleaved block by block.
fn interleave(
    left: &[Iter],
    left_shape: &[i64],
    right: &[Iter],
    right_shape: &[i64],
) -> Result<Shard> {
    let segments = segments(left_shape, right_shape);
    let (left, left_seps) = group_iters(left, &dims_of(&segments, Side::Left))?;
    let (right, right_seps) = group_iters(right, &dims_of(&segments, Side::Right))?;
    let mut left_blocks = left_seps.windows(2);
    let mut right_blocks = right_seps.windows(2);
    let mut shard = Shard::new();
    for (side, _) in &segments {
        let (iters, ends) = match side {
            Side::Left => (&left, left_blocks.next()),
            Side::Right => (&right, right_blocks.next()),
        };
        shard.extend_from_slice(ends.and_then(|e| iters.get(e[0]..e[1])).unwrap_or(&[]));
    }
    Ok(shard)
}

fn sum_of_offsets(left: &Coord, right: &Coord) -> Result<Coord> {
    Coord::from_terms(left.iter().chain(right.iter()))
}

impl Layout {
    /// The layout with every coordinate multiplied by `factor(axis)`.
    pub(crate) fn scaled(&self, factor: impl Fn(Axis) -> i64) -> Result<Self> {
        let overflow = |axis: Axis| Error::overflow(format!("a scaled stride on axis {axis}"));
        let mut shard = Shard::from_slice(&self.shard);
        let mut replica = Replica::from_slice(&self.replica);
        for iter in shard.iter_mut().chain(&mut replica) {
            // A digit that moves nothing may have any stride.
            let stride = if iter.extent == 1 { 0 } else { iter.stride };
            let stride = stride.checked_mul(factor(iter.axis));
            iter.stride = stride.ok_or_else(|| overflow(iter.axis))?;
        }
        let mut offset = Coord::new();
        for (axis, value) in self.offset.iter() {
            let value = value.checked_mul(factor(axis));
            offset.set(axis, value.ok_or_else(|| overflow(axis))?);
        }
        Ok(Self {
            shard,
            replica,
            offset,
            swizzle: None,
        })
    }

    /// The direct sum on the tiling domain: `f(x || y) = left(x) + right(y)`.
    ///
    /// # Errors
    /// `Invalid` when the shapes differ in rank or are not admitted; `None` when a dimension of a
    /// factor ends inside an iter that cannot be split there; `Unsupported` for swizzled factors and a
    /// dynamic right factor; `Overflow`.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// // A 4x4 block pattern, row-major, of strided 2x2 atoms: no tiling gives it.
    /// let grid: Layout = "S[(2, 2) : (2, 1)]".parse()?;
    /// let atom: Layout = "S[(2, 2) : (8, 4)]".parse()?;
    /// let sum = Layout::direct_sum(&grid, &[2, 2], &atom, &[2, 2])?;
    /// assert_eq!(sum.to_string(), "S[(2, 2, 2, 2) : (2, 8, 1, 4)]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn direct_sum(
        left: &Self,
        left_shape: &[i64],
        right: &Self,
        right_shape: &[i64],
    ) -> Result<Self> {
        left.check_shape(left_shape, "shape of the left factor")?;
        right.check_shape(right_shape, "shape of the right factor")?;
        check_ranks(left_shape, right_shape, "shapes of a direct sum")?;
        right.check_static("the inner factor")?;
        if left.effective_swizzle().is_some() || right.effective_swizzle().is_some() {
            return Err(Error::unsupported(
                "direct sum: a factor is swizzled, and a sum under a swizzle is not the sum of swizzled parts",
            ));
        }
        let shard = interleave(&left.shard, left_shape, &right.shard, right_shape)?;
        let mut replica = Replica::from_slice(&left.replica);
        replica.extend_from_slice(&right.replica);
        let offset = sum_of_offsets(&left.offset, &right.offset)?;
        Self::from_parts(shard, replica, offset, None)
    }

    /// The Kronecker product `outer (x) inner`: each element of `outer` becomes a copy of `inner`,
    /// `f(x || y) = outer(x) * span(inner) + inner(y)` on every axis.
    ///
    /// A swizzle of `inner` becomes the swizzle of the whole when copies start at multiples of its
    /// period, see [`Layout::compose_tile`].
    ///
    /// # Errors
    /// As [`Layout::direct_sum`]; `Unsupported` for a swizzled outer layout.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let warps: Layout = "S[(2, 2) : (2@warp, 1@warp)]".parse()?;
    /// let atom: Layout = "S[(8, 4) : (4@lane, 1@lane)]".parse()?;
    /// let tiled = Layout::tile(&warps, &[2, 2], &atom, &[8, 4])?;
    /// assert_eq!(tiled.to_string(), "S[(2, 8, 2, 4) : (2@warp, 4@lane, 1@warp, 1@lane)]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn tile(
        outer: &Self,
        outer_shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
    ) -> Result<Self> {
        let Some(swizzle) = inner.effective_swizzle() else {
            if outer.effective_swizzle().is_some() {
                return Err(Error::unsupported("tile: the outer layout is swizzled"));
            }
            inner.check_static("the inner layout of a tiling")?;
            let reaches = inner.raw_reaches();
            let scaled = outer.scaled(|axis| reaches.get(axis) + 1)?;
            return Self::direct_sum(&scaled, outer_shape, inner, inner_shape);
        };
        let plain = inner.clone().with_swizzle(None);
        let tiled = Self::tile(outer, outer_shape, &plain, inner_shape)?;
        let span = plain.raw_span(Axis::M);
        let scaled = outer.scaled(|axis| if axis == Axis::M { span } else { 1 })?;
        let moves = scaled.shard.iter().chain(&scaled.replica);
        let mut steps = moves
            .filter(|i| i.axis == Axis::M)
            .map(|i| i.stride)
            .chain([scaled.offset.get(Axis::M)]);
        if let Some(step) = steps.find(|s| s % swizzle.period() != 0) {
            return Err(Error::unsupported(format!(
                "tile: copies of the inner layout are {step} addresses apart, no multiple of the \
                 swizzle's period {}; the swizzle would differ from copy to copy",
                swizzle.period()
            )));
        }
        Ok(tiled.with_swizzle(Some(swizzle)))
    }

    /// [`Layout::tile`] for a swizzled inner layout: the result carries the swizzle. The span of
    /// `inner` is that of its addresses before the swizzle.
    ///
    /// # Errors
    /// As [`Layout::tile`]; `Unsupported` when copies do not start at multiples of the swizzle's period.
    pub fn compose_tile(
        outer: &Self,
        outer_shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
    ) -> Result<Self> {
        Self::tile(outer, outer_shape, inner, inner_shape)
    }

    /// The layout repeated over `to_shape`, copies in row-major order on the memory axis.
    ///
    /// # Errors
    /// `Invalid` unless `current_shape` is admitted and divides `to_shape` dimension by dimension;
    /// otherwise as [`Layout::tile`].
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let atom: Layout = "Sw<3,3,3> o S[(8, 64) : (64, 1)]".parse()?;
    /// let tile = atom.tile_to(&[128, 128], &[8, 64])?;
    /// assert_eq!(tile.to_string(), "Sw<3,3,3> o S[(16, 8, 2, 64) : (1024, 64, 512, 1)]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn tile_to(&self, to_shape: &[i64], current_shape: &[i64]) -> Result<Self> {
        let counts = quotient(to_shape, current_shape, "shape to tile to")?;
        let outer = Self::row_major(&counts)?;
        Self::tile(&outer, &counts, self, current_shape)
    }
}

/// `whole / part`, dimension by dimension.
pub(crate) fn quotient(
    whole: &[i64],
    part: &[i64],
    what: &'static str,
) -> Result<SmallVec<[i64; 8]>> {
    check_ranks(whole, part, what)?;
    shape_size(whole)?;
    shape_size(part)?;
    let pairs = whole.iter().zip(part).enumerate();
    pairs
        .map(|(k, (w, p))| match w % p {
            0 => Ok(w / p),
            _ => Err(Error::invalid(format!(
                "{what}: dimension {k} is {w}, expected a multiple of {p}"
            ))),
        })
        .collect()
}
