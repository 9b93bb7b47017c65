//! Tile and direct sum: two layouts on the interleaved domain.
//!
//! With shapes of equal rank, `x || y` interleaves the coordinates: dimension `k` of the result is
//! `left[k] * right[k]`, the left one outer. `tile` scales the left layout by the span of the right one
//! on every axis; the direct sum does not scale (paper, sections 2.3, C and F).

use smallvec::SmallVec;

use super::blocks::{Blocks, divide};
use super::group::cut_by_shape;
use super::measure::{Spans, shape_size};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};
use crate::swizzle::Swizzle;

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

/// Calls `take` with the segments of [`segments`] in turn, until it says no. Extents of at least 1
/// alone: false for all others.
#[inline]
pub(crate) fn each_segment(
    pairs: impl Iterator<Item = (i64, i64)>,
    mut take: impl FnMut(Side, i64) -> bool,
) -> bool {
    let mut segment = (Side::Left, 1_i64);
    for (l, r) in pairs {
        for (side, extent) in [(Side::Left, l), (Side::Right, r)] {
            if extent == 1 {
                continue;
            }
            if side == segment.0 {
                match segment.1.checked_mul(extent) {
                    Some(merged) if extent > 0 => segment.1 = merged,
                    _ => return false,
                }
            } else if extent > 0 && take(segment.0, segment.1) {
                segment = (side, extent);
            } else {
                return false;
            }
        }
    }
    take(segment.0, segment.1)
}

/// The two shards interleaved block by block, the left one's strides multiplied by `factor(axis)`:
/// `None` for what [`interleave`] must explain, and for dynamic extents.
fn weave(
    (left, left_shape): (&[Iter], &[i64]),
    (right, right_shape): (&[Iter], &[i64]),
    mut factor: impl FnMut(Axis) -> i64,
) -> Option<Shard> {
    let mut shard = Shard::new();
    let (mut left, mut right) = (Blocks::new(left), Blocks::new(right));
    let mut fits = left_shape.len() == right_shape.len();
    let pairs = left_shape.iter().copied().zip(right_shape.iter().copied());
    let woven = each_segment(pairs, |side, extent| match side {
        Side::Left => left.take(extent, |mut iter| {
            let scaled = iter.stride.checked_mul(factor(iter.axis));
            fits &= scaled.is_some();
            iter.stride = scaled.unwrap_or(0);
            shard.push(iter);
        }),
        Side::Right => right.take(extent, |iter| shard.push(iter)),
    });
    (woven && fits && left.is_done() && right.is_done()).then_some(shard)
}

/// The two shards interleaved block by block.
#[cold]
fn interleave(
    left: &[Iter],
    left_shape: &[i64],
    right: &[Iter],
    right_shape: &[i64],
) -> Result<Shard> {
    let segments = segments(left_shape, right_shape);
    let (left, left_seps) = cut_by_shape(left, &dims_of(&segments, Side::Left))?;
    let (right, right_seps) = cut_by_shape(right, &dims_of(&segments, Side::Right))?;
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
    let mut sum = right.clone();
    for (axis, value) in left.iter() {
        sum.add(axis, value)?;
    }
    Ok(sum)
}

/// `left * factor + right` on the tiling domain, where weaving does it.
fn scaled_sum(
    (left, left_shape): (&Layout, &[i64]),
    (right, right_shape): (&Layout, &[i64]),
    mut factor: impl FnMut(Axis) -> i64,
) -> Option<Layout> {
    let shard = weave(
        (&left.shard, left_shape),
        (&right.shard, right_shape),
        &mut factor,
    )?;
    let mut replica = Replica::new();
    for iter in &left.replica {
        let stride = if iter.extent == 1 { 0 } else { iter.stride };
        let stride = stride.checked_mul(factor(iter.axis))?;
        replica.push(Iter::new(iter.extent, stride, iter.axis));
    }
    replica.extend_from_slice(&right.replica);
    let mut offset = right.offset.clone();
    for (axis, value) in left.offset.iter() {
        offset.add(axis, value.checked_mul(factor(axis))?).ok()?;
    }
    Layout::from_parts(shard, replica, offset, None).ok()
}

/// `Ok` when copies `span` times as far apart as `outer` says start at multiples of the swizzle's period.
pub(crate) fn check_period(outer: &Layout, span: i64, swizzle: Swizzle) -> Result<()> {
    let moves = outer.shard.iter().chain(&outer.replica);
    let moves = moves.filter(|i| i.axis == Axis::M && i.extent != 1);
    let steps = moves.map(|i| i.stride).chain([outer.offset.get(Axis::M)]);
    // The low bits of a product are those of the wrapped one.
    let mut steps = steps.map(|step| step.wrapping_mul(span));
    match steps.find(|step| step & (swizzle.period() - 1) != 0) {
        None => Ok(()),
        Some(step) => Err(Error::unsupported(format!(
            "tile: copies of the inner layout are {step} addresses apart, no multiple of the \
             swizzle's period {}; the swizzle would differ from copy to copy",
            swizzle.period()
        ))),
    }
}

impl Layout {
    /// The layout with every coordinate multiplied by `factor(axis)`.
    pub(crate) fn scaled(&self, mut factor: impl FnMut(Axis) -> i64) -> Result<Self> {
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
        if let Some(sum) = scaled_sum((left, left_shape), (right, right_shape), |_| 1) {
            return Ok(sum);
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
    /// The span of a swizzled `inner` is that of its addresses before the swizzle, and every copy is
    /// swizzled as `inner` is. Where copies start at multiples of the swizzle's period that is the
    /// swizzle over the whole tiling, which the result carries as it is. Where copies are shorter, the
    /// bits that tell them apart must not be xored into their addresses: the result carries the part of
    /// the swizzle that acts inside of one copy, possibly none. [`Layout::compose_tile`] is the other
    /// operation: the swizzle of `inner` over the whole.
    ///
    /// # Errors
    /// As [`Layout::direct_sum`]; `Unsupported` for a swizzled outer layout, and when copies do not
    /// start at multiples of the period of what the swizzle does inside of one.
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
        let (tiled, span) = Self::plain_tile(outer, outer_shape, inner, inner_shape)?;
        let Some(effective) = inner.effective_swizzle() else {
            return Ok(match inner.swizzle {
                Some(written) if check_period(outer, span, written).is_ok() => {
                    tiled.with_swizzle(Some(written))
                }
                _ => tiled,
            });
        };
        let written = inner.swizzle.unwrap_or(effective);
        if check_period(outer, span, written).is_ok() {
            return Ok(tiled.with_swizzle(Some(written)));
        }
        check_period(outer, span, effective)?;
        Ok(tiled.with_swizzle(Some(effective)))
    }

    /// [`Layout::tile`] without the swizzle of `inner`, and the span of `inner` on `m`.
    fn plain_tile(
        outer: &Self,
        outer_shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
    ) -> Result<(Self, i64)> {
        if outer.effective_swizzle().is_some() {
            return Err(Error::unsupported("tile: the outer layout is swizzled"));
        }
        inner.check_static("the inner layout of a tiling")?;
        let mut spans = Spans::new(inner);
        let (left, right) = ((outer, outer_shape), (inner, inner_shape));
        let tiled = match scaled_sum(left, right, |axis| spans.get(axis)) {
            Some(tiled) => tiled,
            None => {
                let scaled = outer.scaled(|axis| spans.get(axis))?;
                let plain = inner.clone().with_swizzle(None);
                Self::direct_sum(&scaled, outer_shape, &plain, inner_shape)?
            }
        };
        Ok((tiled, spans.get(Axis::M)))
    }

    /// The swizzle of `inner` over the tiling of the plain layouts, `swizzle o (outer (x) inner)`: what
    /// tiling a swizzled atom means to TIRx (`ComposeLayout.tile`) and to CuTe (`tile_to_shape` of a
    /// composed layout). The bits that tell copies apart are xored too, so that copies may differ;
    /// [`Layout::tile`] is the same where copies start at multiples of the swizzle's period.
    ///
    /// # Errors
    /// As [`Layout::direct_sum`]; `Unsupported` for a swizzled outer layout.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// // Four rows are half a period: the copies of `tile` start anew, those of `compose_tile` go on.
    /// let atom: Layout = "Sw<3,3,3> o S[(4, 64) : (64, 1)]".parse()?;
    /// let rows: Layout = "S[(4, 1) : (1, 1)]".parse()?;
    /// let whole = Layout::compose_tile(&rows, &[4, 1], &atom, &[4, 64])?;
    /// assert_eq!(whole.canonicalize().to_string(), "Sw<3,3,3> o S[1024 : 1]");
    /// let copies = Layout::tile(&rows, &[4, 1], &atom, &[4, 64])?;
    /// assert_eq!(copies.canonicalize().to_string(), "Sw<2,3,3> o S[1024 : 1]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn compose_tile(
        outer: &Self,
        outer_shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
    ) -> Result<Self> {
        let (tiled, _) = Self::plain_tile(outer, outer_shape, inner, inner_shape)?;
        Ok(tiled.with_swizzle(inner.swizzle))
    }

    /// The layout repeated over `to_shape`, copies in row-major order on the memory axis, its swizzle
    /// over the whole.
    ///
    /// # Errors
    /// `Invalid` unless `current_shape` is admitted and divides `to_shape` dimension by dimension;
    /// otherwise as [`Layout::compose_tile`].
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
        Self::compose_tile(&outer, &counts, self, current_shape)
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
        .map(|(k, (w, p))| match divide(*w, *p) {
            Some(times) => Ok(times),
            None => Err(Error::invalid(format!(
                "{what}: dimension {k} is {w}, expected a multiple of {p}"
            ))),
        })
        .collect()
}
