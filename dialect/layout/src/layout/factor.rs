//! Factors of tilings and direct sums: the converses of `tile` and `direct_sum`.

use smallvec::SmallVec;

use super::blocks::{Blocks, Fused, divide};
use super::canonical::{displaced_axes, fuse, push_fused, steps_on};
use super::group::cut_by_shape;
use super::measure::{Spans, shape_size};
use super::tile::{Side, check_period, check_ranks, each_segment, quotient, segments};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::{Layout, Replica, Shard};
use crate::sumset::{self, Steps};

/// The canonical shards of both factors, read off the blocks of the whole.
struct Parts {
    left: Shard,
    right: Shard,
}

/// Pushes the shard of the factor beside `known`, whose shape is `known_shape` and whose side is `side`,
/// out of a shard with the shape `shape`, to `factor`. `same` compares the iters of the known side with
/// those of `known`; `other` makes iters of the other side those of its factor. Blocks hold the fewest
/// iters, so that equal maps have equal iters. False, after some iters perhaps, for what does not fall
/// into blocks, or is no such shard.
#[inline]
fn quick_factor(
    factor: &mut Shard,
    (shard, shape): (&[Iter], &[i64]),
    (known, known_shape, side): (&[Iter], &[i64], Side),
    mut same: impl FnMut(Iter, Iter) -> bool,
    mut other: impl FnMut(Iter) -> Option<Iter>,
) -> bool {
    if shape.len() != known_shape.len() {
        return false;
    }
    let pairs = shape.iter().zip(known_shape).map(|(&whole, &part)| {
        // An extent of 0 is refused.
        let rest = if whole < 1 || part < 1 {
            0
        } else {
            divide(whole, part).unwrap_or(0)
        };
        match side {
            Side::Left => (part, rest),
            Side::Right => (rest, part),
        }
    });
    let (mut blocks, mut known) = (Blocks::new(shard), Blocks::new(known));
    let dealt = each_segment(pairs, |of, extent| {
        let mut need = extent;
        while need > 1 {
            let mut known_need = need;
            let Some(piece) = blocks.piece(&mut need) else {
                return false;
            };
            if of != side {
                match other(piece) {
                    Some(iter) => push_fused(factor, iter),
                    None => return false,
                }
            } else if !known
                .piece(&mut known_need)
                .is_some_and(|of_known| same(piece, of_known))
            {
                return false;
            }
        }
        true
    });
    dealt && blocks.is_done() && known.is_done()
}

/// Whether an outer shard with strides times `unit` is `scaled`, which is fused.
fn is_scaled(outer: &[Iter], mut unit: impl FnMut(Axis) -> Option<i64>, scaled: &[Iter]) -> bool {
    let mut scaled = scaled.iter();
    let equal = Fused::new(outer).all(|iter| {
        scaled
            .next()
            .is_some_and(|s| is_multiple(*s, iter, unit(iter.axis)))
    });
    equal && scaled.next().is_none()
}

/// Whether `scaled` is `iter` with its stride times `unit`.
#[inline]
fn is_multiple(scaled: Iter, iter: Iter, unit: Option<i64>) -> bool {
    (scaled.extent, scaled.axis) == (iter.extent, iter.axis)
        && unit.and_then(|unit| iter.stride.checked_mul(unit)) == Some(scaled.stride)
}

/// The span that the inner factor has to have on `axis`: spans multiply under tiling.
#[inline]
fn unit_of(spans: &mut Spans<'_>, outer_spans: &mut Spans<'_>, axis: Axis) -> Option<i64> {
    divide(spans.get(axis), outer_spans.get(axis))
}

/// Cuts a shard where two interleaved shapes meet, and deals the blocks out to both sides.
fn deal(shard: &[Iter], left: &[i64], right: &[i64]) -> Result<Parts> {
    let segments = segments(left, right);
    let dims: SmallVec<[i64; 8]> = segments.iter().map(|s| s.1).collect();
    let (iters, seps) = cut_by_shape(shard, &dims)?;
    let mut parts = Parts {
        left: Shard::new(),
        right: Shard::new(),
    };
    for ((side, _), ends) in segments.iter().zip(seps.windows(2)) {
        let block = iters.get(ends[0]..ends[1]).unwrap_or(&[]);
        let part = match side {
            Side::Left => &mut parts.left,
            Side::Right => &mut parts.right,
        };
        // Blocks hold no extents of 1.
        block.iter().for_each(|iter| push_fused(part, *iter));
    }
    Ok(parts)
}

/// The smallest point of the replicas on `axis`, offset included, and the steps from there.
fn set_on(layout: &Layout, axis: Axis) -> (Steps, i64) {
    let (steps, low) = steps_on(&layout.replica, axis);
    (steps, layout.offset.get(axis).wrapping_add(low))
}

fn push_steps(replica: &mut Replica, steps: &Steps, axis: Axis) {
    replica.extend(steps.iter().map(|&(e, s)| Iter::new(e, s, axis)));
}

fn no_factor(reason: impl std::fmt::Display) -> Error {
    Error::none(format!("no factor: {reason}"))
}

fn minus(a: i64, b: i64) -> Result<i64> {
    a.checked_sub(b).ok_or_else(|| Error::overflow("an offset"))
}

fn check_static(layouts: [&Layout; 2]) -> Result<()> {
    layouts
        .into_iter()
        .try_for_each(|layout| layout.check_static("factoring"))
}

fn check_unswizzled(layouts: [&Layout; 2]) -> Result<()> {
    if layouts
        .iter()
        .all(|layout| layout.effective_swizzle().is_none())
    {
        return Ok(());
    }
    Err(Error::unsupported("factoring: a layout is swizzled"))
}

/// The iter with its stride divided by `span`.
#[inline]
fn unscaled(mut iter: Iter, span: i64) -> Option<Iter> {
    if span == 1 {
        return Some(iter);
    }
    if iter.stride % span != 0 {
        return None;
    }
    iter.stride /= span;
    Some(iter)
}

#[cold]
fn no_unit(spans: &mut Spans<'_>, outer_spans: &mut Spans<'_>, axis: Axis) -> Error {
    let (span, outer_span) = (spans.get(axis), outer_spans.get(axis));
    no_factor(format!(
        "the span {span} on axis {axis} is no multiple of the outer span {outer_span}"
    ))
}

impl Layout {
    /// The outer factor `C` with `self = C (x) inner`, if there is one. The shape of `C` is
    /// `shape / inner_shape`.
    ///
    /// The two factors never overlap on an axis, since `C` moves in units of the span of `inner`; so
    /// the answer is unique as a map, and `None` is a proof.
    ///
    /// # Errors
    /// `Invalid` when shapes are not admitted or `inner_shape` does not divide `shape`; `None` with
    /// the reason when there is no outer factor; `Unsupported` for a dynamic inner layout, for swizzled ones
    /// unless the factor of the plain layouts tiles to the whole, and for replica sets that overlap themselves and have more
    /// than 2^20 points, or whose parts reach beyond 2^16 times the common divisor of their strides or
    /// take more than 20,000 steps to search.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let tiled: Layout = "S[(2, 8, 2, 4) : (2@warp, 4@lane, 1@warp, 1@lane)]".parse()?;
    /// let atom: Layout = "S[(8, 4) : (4@lane, 1@lane)]".parse()?;
    /// let outer = tiled.tile_of(&[16, 8], &atom, &[8, 4])?;
    /// assert_eq!(outer.to_string(), "S[4 : 1@warp]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn tile_of(&self, shape: &[i64], inner: &Self, inner_shape: &[i64]) -> Result<Self> {
        if self.is_dynamic() && !inner.is_dynamic() {
            return self.tile_of_dynamic(shape, inner, inner_shape);
        }
        let mut spans = Spans::new(inner);
        if (self.swizzle.is_some() || inner.swizzle.is_some())
            && !self.keeps_swizzle_of(inner, spans.get(Axis::M))
            && check_unswizzled([self, inner]).is_err()
        {
            return self.swizzled_outer(shape, inner, inner_shape);
        }
        self.plain_outer(shape, inner, inner_shape, &mut spans)
    }

    /// Where the swizzles differ as they act: the factor of the plain layouts, if it tiles to `self`.
    #[cold]
    fn swizzled_outer(&self, shape: &[i64], inner: &Self, inner_shape: &[i64]) -> Result<Self> {
        let undecided = || {
            Error::unsupported(
                "factoring: a layout is swizzled, and the factor of the plain layouts does not tile to it",
            )
        };
        let outer = match self.plain_outer(shape, inner, inner_shape, &mut Spans::new(inner)) {
            Err(Error::None(_)) => return Err(undecided()),
            other => other?,
        };
        let outer_shape = quotient(shape, inner_shape, "shape of the tiling")?;
        let tiled = Self::tile(&outer, &outer_shape, inner, inner_shape);
        match tiled.and_then(|tiled| tiled.equivalent(self)) {
            Ok(true) => Ok(outer),
            _ => Err(undecided()),
        }
    }

    /// [`Layout::tile_of`] without swizzles.
    fn plain_outer(
        &self,
        shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
        spans: &mut Spans<'_>,
    ) -> Result<Self> {
        check_static([self, inner])?;
        let mut outer = Self::default();
        if !quick_factor(
            &mut outer.shard,
            (&self.shard, shape),
            (&inner.shard, inner_shape, Side::Right),
            |own, of_inner| own == of_inner,
            |iter| unscaled(iter, spans.get(iter.axis)),
        ) {
            outer.shard = self.outer_shard(shape, inner, inner_shape, spans)?;
        }
        let displaced = displaced_axes(self, inner);
        for &axis in &displaced {
            let span = spans.get(axis);
            let ((all, all_low), (own, own_low)) = (set_on(self, axis), set_on(inner, axis));
            let distance = minus(all_low, own_low)?;
            if distance % span != 0 {
                return Err(no_factor(format!(
                    "offsets on axis {axis} differ by {distance}, no multiple of the inner span {span}"
                )));
            }
            outer.offset.set(axis, distance / span);
            let (low, high) = sumset::split_digit(&all, span)?;
            if !sumset::equal(low, own)? {
                return Err(no_factor(format!(
                    "the replicas on axis {axis} are not those of the inner layout, repeated"
                )));
            }
            push_steps(&mut outer.replica, &high, axis);
        }
        // Nothing of it is larger than in the whole, but where offsets were subtracted.
        if !displaced.is_empty() {
            outer.check_valid()?;
        }
        Ok(outer)
    }

    /// The shard of the outer factor of a tiling by `inner`, or why there is none.
    #[cold]
    fn outer_shard(
        &self,
        shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
        spans: &mut Spans<'_>,
    ) -> Result<Shard> {
        self.check_shape(shape, "shape of the tiling")?;
        inner.check_shape(inner_shape, "shape of the inner layout")?;
        let outer_shape = quotient(shape, inner_shape, "shape of the tiling")?;
        let mut parts = deal(&self.shard, &outer_shape, inner_shape)?;
        if parts.right != fuse(&inner.shard) {
            return Err(no_factor(
                "the inner blocks of the shard are not the inner layout's",
            ));
        }
        for iter in &mut parts.left {
            let (axis, span) = (iter.axis, spans.get(iter.axis));
            *iter = unscaled(*iter, span).ok_or_else(|| {
                no_factor(format!(
                    "outer iter {iter} moves by no multiple of the inner span {span} on axis {axis}"
                ))
            })?;
        }
        Ok(parts.left)
    }

    /// When both carry the same swizzle, and copies may start at multiples of its period only, the
    /// factor of the plain layouts is the factor. `span` is that of `inner` on `m`.
    fn keeps_swizzle_of(&self, inner: &Self, span: i64) -> bool {
        match (self.effective_swizzle(), inner.effective_swizzle()) {
            (Some(a), Some(b)) => a == b && span % a.period() == 0,
            _ => false,
        }
    }

    /// The inner factor `C` with `self = outer (x) C`, if there is one. The shape of `C` is
    /// `shape / outer_shape`.
    ///
    /// Spans multiply under tiling, so the span of `C` is known before `C` is; where `outer` does not
    /// move along an axis, everything on it belongs to `C`. A swizzle of the whole is that of `C`.
    ///
    /// # Errors
    /// As [`Layout::tile_of`]; `Unsupported` for a swizzled outer layout, and for a swizzled whole when
    /// the factor of the plain layouts does not exist or cannot carry the swizzle.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let tiled: Layout = "S[(2, 8, 2, 4) : (2@warp, 4@lane, 1@warp, 1@lane)]".parse()?;
    /// let warps: Layout = "S[(2, 2) : (2@warp, 1@warp)]".parse()?;
    /// let atom = tiled.tile_of_outer(&[16, 8], &warps, &[2, 2])?;
    /// assert_eq!(atom.to_string(), "S[32 : 1@lane]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn tile_of_outer(&self, shape: &[i64], outer: &Self, outer_shape: &[i64]) -> Result<Self> {
        check_static([self, outer])?;
        let swizzle = match (self.effective_swizzle(), outer.effective_swizzle()) {
            (swizzle, None) => swizzle,
            _ => {
                return Err(Error::unsupported(
                    "factoring: the outer layout is swizzled",
                ));
            }
        };
        let mut inner = Self::default();
        let found = self.plain_inner(shape, outer, outer_shape, &mut inner);
        let Some(swizzle) = swizzle else {
            return found.map(|()| inner);
        };
        // Tiling carries a swizzle of the inner factor to the whole, where copies keep to its period.
        let undecided = |reason: &dyn std::fmt::Display| {
            Error::unsupported(format!("factoring a swizzled layout: {reason}"))
        };
        match found {
            Err(Error::None(reason)) => return Err(undecided(&reason)),
            other => other?,
        }
        inner.swizzle = Some(swizzle);
        if inner.effective_swizzle() != Some(swizzle) {
            return Err(undecided(
                &"the inner factor has no addresses for the whole swizzle",
            ));
        }
        check_period(outer, inner.raw_span(Axis::M), swizzle)?;
        Ok(inner)
    }

    /// [`Layout::tile_of_outer`] without swizzles.
    ///
    /// When the outer blocks are those of `outer`, and the outer replicas too, times the unit that the
    /// spans give, then what is left has that unit as its span: no check is needed.
    fn plain_inner(
        &self,
        shape: &[i64],
        outer: &Self,
        outer_shape: &[i64],
        inner: &mut Self,
    ) -> Result<()> {
        let (mut spans, mut outer_spans) = (Spans::new(self), Spans::new(outer));
        // Most outer layouts have one axis.
        let first = outer.shard.first().map_or(Axis::M, |iter| iter.axis);
        let mut last = (first, unit_of(&mut spans, &mut outer_spans, first));
        let mut unit = |axis| {
            if axis != last.0 {
                last = (axis, unit_of(&mut spans, &mut outer_spans, axis));
            }
            last.1
        };
        if !quick_factor(
            &mut inner.shard,
            (&self.shard, shape),
            (&outer.shard, outer_shape, Side::Left),
            |own, of_outer| is_multiple(own, of_outer, unit(of_outer.axis)),
            Some,
        ) {
            inner.shard = self.inner_shard(shape, outer, outer_shape)?;
        }
        let displaced = displaced_axes(self, outer);
        for &axis in &displaced {
            let unit = unit_of(&mut spans, &mut outer_spans, axis);
            let unit = unit.ok_or_else(|| no_unit(&mut spans, &mut outer_spans, axis))?;
            let ((all, all_low), (own, own_low)) = (set_on(self, axis), set_on(outer, axis));
            let moved = own_low.checked_mul(unit);
            let moved = moved.ok_or_else(|| Error::overflow("a scaled offset"))?;
            inner.offset.set(axis, minus(all_low, moved)?);
            let (low, high) = sumset::split_digit(&all, unit)?;
            if !sumset::equal(high, own)? {
                return Err(no_factor(format!(
                    "the replicas on axis {axis} are not those of the outer layout, scaled by {unit}"
                )));
            }
            push_steps(&mut inner.replica, &low, axis);
        }
        // As for the outer factor.
        if !displaced.is_empty() {
            inner.check_valid()?;
        }
        Ok(())
    }

    /// The shard of the inner factor of a tiling of `outer`, or why there is none.
    #[cold]
    fn inner_shard(&self, shape: &[i64], outer: &Self, outer_shape: &[i64]) -> Result<Shard> {
        self.check_shape(shape, "shape of the tiling")?;
        outer.check_shape(outer_shape, "shape of the outer layout")?;
        let inner_shape = quotient(shape, outer_shape, "shape of the tiling")?;
        let parts = deal(&self.shard, outer_shape, &inner_shape)?;
        let (mut spans, mut outer_spans) = (Spans::new(self), Spans::new(outer));
        for axis in outer.axes() {
            if unit_of(&mut spans, &mut outer_spans, axis).is_none() {
                return Err(no_unit(&mut spans, &mut outer_spans, axis));
            }
        }
        let unit = |axis| unit_of(&mut spans, &mut outer_spans, axis);
        if is_scaled(&outer.shard, unit, &parts.left) {
            return Ok(parts.right);
        }
        Err(no_factor(
            "the outer blocks of the shard are not the outer layout's, scaled by the inner span",
        ))
    }

    /// The left factor `C` with `self = C + right` on the tiling domain, where `interleaved_shape` lists
    /// the extents of both sides in turn: `left[0], right[0], left[1], right[1], ..`.
    ///
    /// # Errors
    /// `Invalid` when shapes disagree; `None` with the reason when there is no such factor;
    /// `Unsupported` for swizzled or dynamic layouts and for replica sets too large to search, as in
    /// [`Layout::tile_of`].
    pub fn direct_sum_of_right(
        &self,
        interleaved_shape: &[i64],
        right: &Self,
        right_shape: &[i64],
    ) -> Result<Self> {
        self.summand(interleaved_shape, right, right_shape, Side::Right)
    }

    /// The right factor `C` with `self = left + C` on the tiling domain; see
    /// [`Layout::direct_sum_of_right`].
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let sum: Layout = "S[(2, 2, 2, 2) : (2, 8, 1, 4)]".parse()?;
    /// let grid: Layout = "S[(2, 2) : (2, 1)]".parse()?;
    /// let atom = sum.direct_sum_of_left(&[2, 2, 2, 2], &grid, &[2, 2])?;
    /// assert_eq!(atom.to_string(), "S[4 : 4]");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn direct_sum_of_left(
        &self,
        interleaved_shape: &[i64],
        left: &Self,
        left_shape: &[i64],
    ) -> Result<Self> {
        self.summand(interleaved_shape, left, left_shape, Side::Left)
    }

    fn summand(
        &self,
        interleaved: &[i64],
        known: &Self,
        known_shape: &[i64],
        side: Side,
    ) -> Result<Self> {
        check_static([self, known])?;
        check_unswizzled([self, known])?;
        shape_size(interleaved)?;
        self.check_shape(interleaved, "interleaved shape")?;
        known.check_shape(known_shape, "shape of the known factor")?;
        let pairs = interleaved.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(Error::invalid(format!(
                "interleaved shape: expected two extents a dimension, got {} in all",
                interleaved.len()
            )));
        }
        let left: SmallVec<[i64; 8]> = pairs.clone().map(|p| p[0]).collect();
        let right: SmallVec<[i64; 8]> = pairs.map(|p| p[1]).collect();
        let own = if side == Side::Left { &left } else { &right };
        check_ranks(own, known_shape, "shape of the known factor")?;
        if own[..] != *known_shape {
            return Err(Error::invalid(format!(
                "shape of the known factor: the interleaved shape has {own:?}, got {known_shape:?}"
            )));
        }
        let parts = deal(&self.shard, &left, &right)?;
        let (mine, other) = match side {
            Side::Left => (parts.left, parts.right),
            Side::Right => (parts.right, parts.left),
        };
        if mine != fuse(&known.shard) {
            return Err(no_factor(
                "the known factor's blocks of the shard differ from it",
            ));
        }
        let (mut replica, mut offset) = (Replica::new(), Coord::new());
        for axis in displaced_axes(self, known) {
            let ((all, all_low), (own, own_low)) = (set_on(self, axis), set_on(known, axis));
            offset.set(axis, minus(all_low, own_low)?);
            push_steps(&mut replica, &sumset::divide(&all, &own)?, axis);
        }
        Self::from_parts(other, replica, offset, None)
    }
}
