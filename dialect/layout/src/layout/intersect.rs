//! Intersections, as the dispatch of section 3.4 of the paper needs them: of iters, of lists of iters,
//! of whole layouts.

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Shard};
use crate::sumset::{self, Steps, gcd};
use crate::swizzle::Swizzle;

/// Addresses that are enumerated where two swizzles differ.
const MAX_ADDRESSES: i64 = 1 << 20;

fn check_extent(iter: &Iter) -> Result<()> {
    if iter.extent == DYNAMIC {
        return Err(Error::unsupported(
            "intersection of an iter of dynamic extent",
        ));
    }
    if iter.extent < 1 {
        return Err(Error::invalid(format!(
            "intersection: expected an extent of at least 1, got {}",
            iter.extent
        )));
    }
    Ok(())
}

impl Iter {
    /// The iter whose values are exactly those that both iters have, each seen as the set
    /// `{ i * s @ a : 0 <= i < e }` (section 3.4, "K Intersection").
    ///
    /// There always is one: both sets begin at 0, the common ones are multiples of the least common
    /// multiple of the strides. Iters on different axes, or in different directions, have 0 alone in
    /// common, an iter of extent 1. Iters with offsets are layouts: [`Layout::intersect`].
    ///
    /// # Errors
    /// `Unsupported` for a dynamic extent, `Invalid` for one below 1, `Overflow`.
    ///
    /// ```
    /// use axe_layout::{Axis, Iter};
    /// let p = Axis::new("P")?;
    /// let both = Iter::new(8, 4, p).intersect(&Iter::new(4, 6, p))?;
    /// assert_eq!(both, Iter::new(2, 12, p));
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        check_extent(self)?;
        check_extent(other)?;
        let reach = self.reach()?.min(other.reach()?);
        let none = Self::new(1, 0, self.axis);
        let same_way = self.stride.signum() * other.stride.signum() > 0;
        if self.axis != other.axis || !same_way || reach == 0 {
            return Ok(none);
        }
        // Strides of iters that move have a magnitude, as their reach has.
        let (s, t) = (self.stride.abs(), other.stride.abs());
        let Some(stride) = (s / gcd(s, t)).checked_mul(t) else {
            return Ok(none);
        };
        if stride > reach {
            return Ok(none);
        }
        let towards = stride * self.stride.signum();
        Ok(Self::new(reach / stride + 1, towards, self.axis))
    }

    /// The intersections of two lists, position by position, at those positions where both iters move
    /// along `axis`, with the position of each (section 3.4: the `K` iters of a matmul, both on `P`).
    ///
    /// That the sets agree does not say that the digits do: a dispatch that needs the same index at the
    /// same place also compares the iters.
    ///
    /// # Errors
    /// `Invalid` when the lists differ in length or, at a position, in extent; else as
    /// [`Iter::intersect`].
    pub fn intersect_each(a: &[Self], b: &[Self], axis: Axis) -> Result<Vec<(usize, Self)>> {
        if a.len() != b.len() {
            return Err(Error::Rank {
                what: "lists of iters to intersect",
                expected: a.len(),
                got: b.len(),
            });
        }
        let mut shared = Vec::new();
        for (at, (x, y)) in a.iter().zip(b).enumerate() {
            if x.extent != y.extent {
                return Err(Error::Size {
                    what: "extents of iters to intersect",
                    expected: x.extent,
                    got: y.extent,
                });
            }
            if x.axis == axis && y.axis == axis {
                shared.push((at, x.intersect(y)?));
            }
        }
        Ok(shared)
    }

    /// The largest selection of iters on `axis` that is one iter as a set (rules C0 to C2) and contains
    /// the one with the smallest stride: the positions, ascending, and that iter with a positive stride
    /// (section 3.4, "MN Intersection": what one instruction covers; the other iters become loops).
    ///
    /// Iters of extent 1 or stride 0 move nothing and are never selected. Nothing is selected when no
    /// iter moves along `axis`.
    ///
    /// # Errors
    /// `Unsupported` for a dynamic extent, `Invalid` for one below 1, `Overflow`.
    ///
    /// ```
    /// use axe_layout::{Axis, Iter};
    /// let f = Axis::new("F")?;
    /// let iters = [Iter::new(4, 64, f), Iter::new(2, 8, f), Iter::new(8, 1, f), Iter::new(4, 16, f)];
    /// assert_eq!(Iter::largest_run(&iters, f)?, Some((vec![0, 1, 2, 3], Iter::new(256, 1, f))));
    /// assert_eq!(Iter::largest_run(&iters[..3], f)?, Some((vec![1, 2], Iter::new(16, 1, f))));
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn largest_run(iters: &[Self], axis: Axis) -> Result<Option<(Vec<usize>, Self)>> {
        let mut moving: SmallVec<[(i64, usize, i64); 8]> = SmallVec::new();
        for (at, iter) in iters.iter().enumerate().filter(|(_, i)| i.axis == axis) {
            check_extent(iter)?;
            if iter.reach()? > 0 {
                moving.push((iter.stride.abs(), at, iter.extent));
            }
        }
        moving.sort_unstable();
        let Some(&(stride, ..)) = moving.first() else {
            return Ok(None);
        };
        // Without an iter that fits, no larger one can fit: the next multiple is missing for good. With
        // it, everything that fitted without it fits too. So taking all that fit is the largest choice.
        let (mut extent, mut taken) = (1_i64, Vec::new());
        for (step, at, count) in moving {
            if step % stride == 0 && step / stride <= extent {
                let more = (count - 1).checked_mul(step / stride);
                extent = more
                    .and_then(|more| extent.checked_add(more))
                    .ok_or_else(|| Error::overflow("the extent of a run"))?;
                taken.push(at);
            }
        }
        taken.sort_unstable();
        Ok(Some((taken, Self::new(extent, stride, axis))))
    }
}

impl Layout {
    /// A layout whose places, over all its indices, are exactly the places that both layouts reach:
    /// replicas, offsets and swizzles included, and 0 on axes that a layout does not name.
    /// ([`Layout::storage`] drops axes first; section 3.4 intersects on the partition axis alone.)
    ///
    /// The shard of the answer has the axes in their order and on each the largest stride first; indices
    /// are its own, neither operand's. The places of a layout are the product of its places on each
    /// axis, so that every axis is decided by itself. The dynamic extent of one operand is as long as it takes.
    ///
    /// # Errors
    /// `None` when nothing is shared, and when the shared coordinates of an axis are no sum of
    /// progressions; `Unsupported` for two dynamic extents, and when sets without common structure have more
    /// than 2^20 points.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let a: Layout = "S[(4, 8) : (32@P, 1)]".parse()?;
    /// let b: Layout = "S[(128, 2) : (1@P, 4)] + 16@P".parse()?;
    /// assert_eq!(a.intersect(&b)?.to_string(), "S[(3, 2) : (32@P, 4)] + 32@P");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        match (self.is_dynamic(), other.is_dynamic()) {
            (true, true) => {
                return Err(Error::unsupported(
                    "intersection: both outermost extents are dynamic; fix one first",
                ));
            }
            (false, false) => {}
            _ => {
                let (a, b) = super::long_enough(self, other)?;
                return a.intersect(&b);
            }
        }
        let mut axes = self.axes();
        axes.extend(other.axes());
        let swizzle = self.common_swizzle(other);
        if swizzle.is_none() {
            axes.push(Axis::M);
        }
        axes.sort_unstable();
        axes.dedup();
        let (mut shard, mut offset) = (Shard::new(), Coord::new());
        for axis in axes {
            let met = if axis == Axis::M && swizzle.is_none() {
                meet_points(&self.addresses()?, &other.addresses()?)
            } else {
                meet(&self.places_on(axis), &other.places_on(axis))
            };
            let (from, steps) = met
                .map_err(|error| match error {
                    Error::None(reason) => Error::none(format!("intersection on {axis}: {reason}")),
                    other => other,
                })?
                .ok_or_else(|| Error::none(format!("intersection: nothing is shared on {axis}")))?;
            offset.set(axis, from);
            shard.extend(steps.iter().rev().map(|&(e, s)| Iter::new(e, s, axis)));
        }
        Self::new(shard, [], offset, swizzle.flatten())
    }

    /// A swizzle that has the effect of both layouts' own on all their addresses; none when there is no
    /// such by their structure.
    pub(crate) fn common_swizzle(&self, other: &Self) -> Option<Option<Swizzle>> {
        let effective = self.effective_swizzle();
        if effective == other.effective_swizzle() {
            return Some(effective);
        }
        (self.swizzle == other.swizzle).then_some(self.swizzle)
    }

    /// The coordinates on `axis` before the swizzle.
    fn places_on(&self, axis: Axis) -> Set {
        let iters = self.shard.iter().chain(&self.replica);
        let on_axis = iters.filter(|i| i.axis == axis && i.extent > 1 && i.stride != 0);
        let mut steps: Steps = on_axis.map(|i| (i.extent, i.stride.abs())).collect();
        sumset::saturate(&mut steps);
        let (from, _) = self.raw_range(axis);
        Set { from, steps }
    }

    /// The addresses on `m`, swizzled, ascending.
    fn addresses(&self) -> Result<Vec<i64>> {
        let raw = self.places_on(Axis::M);
        let points = sumset::points(&raw.steps, MAX_ADDRESSES).ok_or_else(|| {
            Error::unsupported(format!(
                "intersection of differently swizzled layouts with more than {MAX_ADDRESSES} addresses"
            ))
        })?;
        let swizzled = |p: i64| {
            let address = raw.from.wrapping_add(p);
            self.swizzle.map_or(address, |s| s.apply(address))
        };
        let mut addresses: Vec<i64> = points.into_iter().map(swizzled).collect();
        addresses.sort_unstable();
        Ok(addresses)
    }
}

/// The numbers `from + { sums of the steps }`.
#[derive(Clone, Debug)]
struct Set {
    from: i64,
    steps: Steps,
}

impl Set {
    fn reach(&self) -> i64 {
        sumset::reach(&self.steps)
    }

    /// The stride and last number when the set is one progression.
    fn progression(&self) -> Option<(i64, i64)> {
        match self.steps[..] {
            [] => Some((1, self.from)),
            [(e, s)] => Some((s, self.from + (e - 1) * s)),
            _ => None,
        }
    }

    /// Whether a progression contains all of `other`.
    fn contains(&self, other: &Self) -> bool {
        let Some((stride, last)) = self.progression() else {
            return false;
        };
        let apart = i128::from(other.from) - i128::from(self.from);
        apart >= 0
            && apart % i128::from(stride) == 0
            && other.from + other.reach() <= last
            && other.steps.iter().all(|(_, s)| s % stride == 0)
    }

    /// Whether the steps of `other`, and such of the others as lead to its first number, are among the
    /// steps of this set, which then contains it.
    fn has_steps_of(&self, other: &Self) -> bool {
        let Some(rest) = sumset::without(&self.steps, &other.steps) else {
            return false;
        };
        let apart = other.from.checked_sub(self.from);
        let sums = sumset::points(&rest, MAX_ADDRESSES);
        sums.zip(apart)
            .is_some_and(|(sums, apart)| sums.binary_search(&apart).is_ok())
    }

    /// The parts below `unit` and in units of it, counted from a multiple of `unit`.
    fn split(&self, unit: i64) -> Option<(Self, Self)> {
        let (low, high) = sumset::split_at_unit(&self.steps, unit)?;
        let low = Self {
            from: self.from.rem_euclid(unit),
            steps: low,
        };
        let high = Self {
            from: self.from.div_euclid(unit),
            steps: high.into_iter().map(|(e, s)| (e, s / unit)).collect(),
        };
        let below = low.from.checked_add(low.reach());
        below.is_some_and(|last| last < unit).then_some((low, high))
    }
}

/// A set, none when it is empty.
type Met = Option<(i64, Steps)>;

/// The numbers of both sets, as one.
fn meet(a: &Set, b: &Set) -> Result<Met> {
    let disjoint = a.from > b.from + b.reach() || b.from > a.from + a.reach();
    if disjoint {
        return Ok(None);
    }
    if a.contains(b) {
        return Ok(Some((b.from, b.steps.clone())));
    }
    if b.contains(a) {
        return Ok(Some((a.from, a.steps.clone())));
    }
    if a.has_steps_of(b) {
        return Ok(Some((b.from, b.steps.clone())));
    }
    if b.has_steps_of(a) {
        return Ok(Some((a.from, a.steps.clone())));
    }
    if let (Some(x), Some(y)) = (a.progression(), b.progression()) {
        return Ok(meet_progressions((a.from, x), (b.from, y)));
    }
    if let Some(found) = meet_by_digits(a, b) {
        return Ok(found);
    }
    let list = |set: &Set| -> Result<Vec<i64>> {
        let points = sumset::points(&set.steps, MAX_ADDRESSES).ok_or_else(|| {
            Error::unsupported(format!(
                "intersection of sets of more than {MAX_ADDRESSES} points"
            ))
        })?;
        Ok(points.into_iter().map(|p| p + set.from).collect())
    };
    meet_points(&list(a)?, &list(b)?)
}

/// Two progressions `(first, (stride, last))`: the Chinese remainder theorem.
fn meet_progressions(a: (i64, (i64, i64)), b: (i64, (i64, i64))) -> Met {
    let ((from, (s, last)), (other, (t, its_last))) = (a, b);
    let (s, t) = (i128::from(s), i128::from(t));
    let apart = i128::from(other) - i128::from(from);
    let (common, inverse) = gcd_inverse(s, t);
    if apart % common != 0 {
        return None;
    }
    // from + s * k = other modulo t
    let modulus = t / common;
    let k = (apart / common).rem_euclid(modulus) * inverse.rem_euclid(modulus) % modulus;
    let stride = s * modulus;
    let first = i128::from(from) + s * k;
    let low = i128::from(from.max(other));
    let first = first + (low - first).max(0).div_euclid(stride) * stride;
    let first = if first < low { first + stride } else { first };
    let last = i128::from(last.min(its_last));
    if first > last {
        return None;
    }
    let extent = (last - first) / stride + 1;
    // Between the ends of both, so that the numbers fit.
    let mut steps = Steps::new();
    if extent > 1 {
        steps.push((extent as i64, stride as i64));
    }
    Some((first as i64, steps))
}

/// The common divisor of `a` and `b`, and the inverse of `a` by it modulo `b` by it.
fn gcd_inverse(a: i128, b: i128) -> (i128, i128) {
    let (mut r, mut s) = ((a, b), (1_i128, 0_i128));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        s = (s.1, s.0 - q * s.1);
    }
    (r.0, s.0)
}

/// Both sets cut at one unit: the low and the high digits meet by themselves. None when no cut leaves
/// two smaller questions that have answers; enumeration decides then.
fn meet_by_digits(a: &Set, b: &Set) -> Option<Met> {
    let mut units: SmallVec<[i64; 8]> = a.steps.iter().chain(&b.steps).map(|x| x.1).collect();
    units.sort_unstable();
    units.dedup();
    for unit in units.into_iter().filter(|&u| u > 1) {
        let (Some((low_a, high_a)), Some((low_b, high_b))) = (a.split(unit), b.split(unit)) else {
            continue;
        };
        let whole = |high: &Set| high.steps.is_empty() && high.from == 0;
        if whole(&high_a) && whole(&high_b) {
            continue;
        }
        let (low, high) = match (meet(&low_a, &low_b), meet(&high_a, &high_b)) {
            (Ok(None), _) | (_, Ok(None)) => return Some(None),
            (Ok(Some(low)), Ok(Some(high))) => (low, high),
            _ => continue,
        };
        let mut steps = low.1;
        // Inside of both sets, so that the numbers fit.
        steps.extend(high.1.into_iter().map(|(e, s)| (e, s * unit)));
        sumset::saturate(&mut steps);
        // A multiple of the unit may lie below 64 bits, and the number itself does not.
        let from = i128::from(high.0) * i128::from(unit) + i128::from(low.0);
        return Some(Some((from as i64, steps)));
    }
    None
}

/// The numbers that two ascending lists share.
fn meet_points(a: &[i64], b: &[i64]) -> Result<Met> {
    let shared: Vec<i64> = a
        .iter()
        .copied()
        .filter(|p| b.binary_search(p).is_ok())
        .collect();
    let Some(&from) = shared.first() else {
        return Ok(None);
    };
    // Below the sum of two spans, which may leave 64 bits only where swizzles reach far apart.
    let relative = shared.iter().map(|p| p.checked_sub(from));
    let relative: Option<Vec<i64>> = relative.collect();
    let relative = relative.ok_or_else(|| Error::overflow("an intersection"))?;
    let steps = sumset::of_points(&relative)?
        .ok_or_else(|| Error::none("what is shared is no sum of progressions"))?;
    Ok(Some((from, steps)))
}

#[cfg(test)]
#[path = "intersect_tests.rs"]
mod tests;
