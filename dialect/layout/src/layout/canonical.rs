//! The canonical form, and equality of maps.

use smallvec::SmallVec;

use super::blocks::Fused;
use super::measure::ENUMERATION_LIMIT;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};
use crate::sumset::{self, Steps};
use crate::swizzle::Swizzle;

/// Drops extents of 1 and merges neighbours (rules D0 and D1). Strides of 0 are kept on `m`: a digit
/// that moves nothing has no axis.
pub(crate) fn fuse(iters: &[Iter]) -> Shard {
    let mut fused = Shard::new();
    for iter in iters.iter().filter(|i| i.extent != 1) {
        push_fused(&mut fused, *iter);
    }
    fused
}

/// Appends an iter of an extent other than 1.
#[inline]
pub(crate) fn push_fused(fused: &mut Shard, mut iter: Iter) {
    if iter.stride == 0 {
        iter.axis = Axis::M;
    }
    if let Some(left) = fused.last_mut()
        && left.extent != DYNAMIC
        && left.axis == iter.axis
        && iter.extent.checked_mul(iter.stride) == Some(left.stride)
    {
        left.extent *= iter.extent;
        left.stride = iter.stride;
        return;
    }
    fused.push(iter);
}

/// The replicas on one axis as steps from their smallest point, and that point.
pub(crate) fn steps_on(replica: &[Iter], axis: Axis) -> (Steps, i64) {
    let mut steps = Steps::new();
    let mut low = 0_i64;
    for iter in replica {
        if iter.axis == axis && iter.extent > 1 && iter.stride != 0 {
            if iter.stride < 0 {
                low = low.wrapping_add((iter.extent - 1).wrapping_mul(iter.stride));
            }
            steps.push((iter.extent, iter.stride.abs()));
        }
    }
    (steps, low)
}

/// The axes of iters that move, sorted, each once.
pub(crate) fn moving_axes(iters: &[Iter]) -> SmallVec<[Axis; 8]> {
    let mut axes: SmallVec<[Axis; 8]> = iters
        .iter()
        .filter(|i| i.extent > 1 && i.stride != 0)
        .map(|i| i.axis)
        .collect();
    axes.sort_unstable();
    axes.dedup();
    axes
}

/// The axes on which replicas or offsets of either layout displace the shard, sorted, each once.
pub(crate) fn displaced_axes(a: &Layout, b: &Layout) -> SmallVec<[Axis; 8]> {
    let displaced = |of: &Layout| !(of.replica.is_empty() && of.offset.is_zero());
    if !displaced(a) && !displaced(b) {
        return SmallVec::new();
    }
    let mut axes = moving_axes(&a.replica);
    axes.extend(moving_axes(&b.replica));
    axes.extend(a.offset.iter().chain(b.offset.iter()).map(|(axis, _)| axis));
    axes.sort_unstable();
    axes.dedup();
    axes
}

/// The canonical replicas and offset.
pub(crate) fn canonical_replica(replica: &[Iter], offset: &Coord) -> (Replica, Coord) {
    let mut offset = offset.clone();
    let mut canonical = Replica::new();
    for axis in moving_axes(replica) {
        let (mut steps, low) = steps_on(replica, axis);
        sumset::canonicalize(&mut steps);
        canonical.extend(steps.iter().map(|&(e, s)| Iter::new(e, s, axis)));
        // Below the largest coordinate and above the smallest: it fits.
        offset.set(axis, offset.get(axis).wrapping_add(low));
    }
    (canonical, offset)
}

impl Layout {
    /// The canonical layout of the same map.
    ///
    /// Shard iters of extent 1 vanish and neighbours that continue each other merge; replicas become
    /// positive steps a sorted axis at a time, merged as far as possible. The swizzle becomes the least
    /// one under which the map is a layout: none where that does, else the one with the smallest period,
    /// and among those the one with the fewest bits, at the lowest position.
    ///
    /// Canonical forms are equal exactly when the maps are, with two exceptions. Replica sets that
    /// overlap themselves on one axis and have more than 4096 points, reach beyond 2^16 times the common
    /// divisor of their strides, or take more than 20,000 steps to search, are merged as far as rule C2
    /// goes. Swizzled layouts with more than 2^16 points inside of a period (strides that do not divide
    /// it, a dynamic extent inside of it) keep their swizzle without the bits that no address uses.
    /// [`Layout::equivalent`] still compares both.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let l: Layout = "S[(2, 4, 1, 8) : (32, 8, 5, 1)] + R[2 : -4@warp]".parse()?;
    /// assert_eq!(l.canonicalize().to_string(), "S[64 : 1] + R[2 : 4@warp] + -4@warp");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    #[must_use]
    pub fn canonicalize(&self) -> Self {
        self.canonical().0
    }

    /// The canonical form, and whether its swizzle is the least one.
    pub(crate) fn canonical(&self) -> (Self, bool) {
        let (replica, offset) = canonical_replica(&self.replica, &self.offset);
        let form = Self {
            shard: fuse(&self.shard),
            replica,
            offset,
            swizzle: self.effective_swizzle(),
        };
        match form.swizzle {
            None => (form, true),
            Some(swizzle) => match super::least_swizzle::rewrite(&form, swizzle) {
                Some(Some(least)) => (least, true),
                Some(None) => (form, true),
                None => (form, false),
            },
        }
    }

    /// The swizzle without the bits that no address of this layout uses; `None` when it moves nothing.
    pub(crate) fn effective_swizzle(&self) -> Option<Swizzle> {
        let swizzle = self.swizzle.filter(|s| !s.is_identity())?;
        let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
        // Bits are read from `from` upwards.
        let from = if swizzle.inner() { base + shift } else { base };
        let moves = || {
            let iters = self.shard.iter().chain(&self.replica);
            iters.filter(|i| i.axis == Axis::M && i.extent != 1)
        };
        // Terms that are multiples of 2^(from + bits) leave the bits read as they are.
        let above = 1_i64 << (from + bits);
        let mut low = self.offset.get(Axis::M) & (above - 1);
        let mut high = low;
        let mut common = low;
        for iter in moves().filter(|i| i.stride & (above - 1) != 0) {
            if iter.extent == DYNAMIC {
                return Some(swizzle);
            }
            let last = (iter.extent - 1).checked_mul(iter.stride)?;
            let ends = low
                .checked_add(last.min(0))
                .zip(high.checked_add(last.max(0)));
            let Some((next_low, next_high)) = ends else {
                return Some(swizzle);
            };
            (low, high) = (next_low, next_high);
            common |= iter.stride;
        }
        let mut kept = bits;
        if low >= 0 {
            while kept > 0 && high < 1 << (from + kept - 1) {
                kept -= 1;
            }
        }
        let unread = (common.trailing_zeros().min(62).saturating_sub(from)).min(kept);
        if kept == unread {
            return None;
        }
        Swizzle::new(kept - unread, base + unread, shift, swizzle.inner())
            .ok()
            .or(Some(swizzle))
    }

    /// Whether both layouts induce the same map: for every logical index the same set of points.
    ///
    /// A finite set is no translate of itself, so the maps agree exactly when the shards agree and the
    /// replica sets agree from their smallest points, an axis at a time.
    ///
    /// # Errors
    /// `Unsupported` when replicas on one axis overlap themselves in a way that no rule here decides,
    /// the product of their extents is above 2^20, and they reach beyond 2^26 times the common divisor
    /// of their strides; and when layouts with different swizzles agree on 2^20 points and have more.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let a: Layout = "S[4 : 1] + R[(3, 2, 2) : (2, 3, 6)]".parse()?;
    /// let b: Layout = "S[(2, 2) : (2, 1)] + R[(6, 2) : (2, 3)]".parse()?;
    /// assert!(a.equivalent(&b)?);
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn equivalent(&self, other: &Self) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        if self.size() != other.size() {
            return Ok(false);
        }
        let swizzles = (self.effective_swizzle(), other.effective_swizzle());
        if swizzles.0 != swizzles.1 {
            return self.equal_under_swizzles(other);
        }
        if !Fused::new(&self.shard).eq(Fused::new(&other.shard)) {
            return Ok(false);
        }
        self.replicas_equal(other)
    }

    fn replicas_equal(&self, other: &Self) -> Result<bool> {
        let mut undecided = None;
        for axis in displaced_axes(self, other) {
            let (mine, my_low) = steps_on(&self.replica, axis);
            let (its, its_low) = steps_on(&other.replica, axis);
            let mine_from = self.offset.get(axis).wrapping_add(my_low);
            let its_from = other.offset.get(axis).wrapping_add(its_low);
            if mine_from != its_from {
                return Ok(false);
            }
            match sumset::equal(mine, its) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => undecided = Some(error),
            }
        }
        undecided.map_or(Ok(true), Err)
    }

    /// Layouts with different swizzles: by their canonical forms, else point by point.
    fn equal_under_swizzles(&self, other: &Self) -> Result<bool> {
        let ((mine, my_least), (its, its_least)) = (self.canonical(), other.canonical());
        if mine.swizzle == its.swizzle {
            return mine.equivalent(&its);
        }
        if my_least && its_least {
            return Ok(false);
        }
        self.equal_by_points(other)
    }

    /// Layouts with different swizzles: point by point, or a counterexample among the first points.
    fn equal_by_points(&self, other: &Self) -> Result<bool> {
        self.check_static("equality of differently swizzled layouts")?;
        other.check_static("equality of differently swizzled layouts")?;
        let size = self.size();
        let replicas = self.replica_count().max(other.replica_count());
        let affordable = (ENUMERATION_LIMIT / replicas).max(1);
        // Powers of two reach every digit, so that a difference is usually found at once.
        let few = (0..62).map(|k| 1_i64 << k).take_while(|&x| x < size);
        for x in few.chain(0..size.min(affordable)) {
            if self.points(x)? != other.points(x)? {
                return Ok(false);
            }
        }
        if size > affordable {
            return Err(Error::unsupported(format!(
                "equality of differently swizzled layouts beyond {ENUMERATION_LIMIT} points"
            )));
        }
        Ok(true)
    }
}
