//! Forward: where an index lives. Backward: which indices live at a point.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::measure::ENUMERATION_LIMIT;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::Layout;

impl Layout {
    /// The number of replica digits, counting points that coincide more than once.
    pub(crate) fn replica_count(&self) -> i64 {
        let moving = self.replica.iter().filter(|i| i.stride != 0);
        moving.map(|i| i.extent).product()
    }

    /// The linear logical index of `coord` in `shape`.
    ///
    /// # Errors
    /// `Invalid` when the shape is not admitted, the ranks differ or the coordinate lies outside.
    pub fn index_of(&self, shape: &[i64], coord: &[i64]) -> Result<i64> {
        self.check_shape(shape, "shape of a coordinate")?;
        if shape.len() != coord.len() {
            return Err(Error::Rank {
                what: "coordinate",
                expected: shape.len(),
                got: coord.len(),
            });
        }
        let mut index = 0_i64;
        for (k, (&extent, &c)) in shape.iter().zip(coord).enumerate() {
            if c < 0 || (extent != DYNAMIC && c >= extent) {
                return Err(Error::invalid(format!(
                    "coordinate: dimension {k} is {c}, expected 0 to {}",
                    extent.wrapping_sub(1)
                )));
            }
            let extent = if extent == DYNAMIC { 0 } else { extent };
            index = index
                .checked_mul(extent)
                .and_then(|i| i.checked_add(c))
                .ok_or_else(|| Error::overflow("a logical index"))?;
        }
        Ok(index)
    }

    /// `D(x) + O`: where index `x` lives, without replicas and before the swizzle.
    ///
    /// # Errors
    /// `Invalid` when `x` is no index of the layout; `Overflow` far out on a dynamic extent.
    pub fn origin(&self, x: i64) -> Result<Coord> {
        let size = self.size();
        if x < 0 || (size != DYNAMIC && x >= size) {
            return Err(Error::invalid(format!(
                "logical index: expected 0 to {}, got {x}",
                size.wrapping_sub(1)
            )));
        }
        let mut rest = x;
        let mut coord = self.offset.clone();
        for iter in self.shard.iter().rev() {
            let digit = if iter.extent == DYNAMIC {
                rest
            } else {
                let digit = rest % iter.extent;
                rest /= iter.extent;
                digit
            };
            if digit != 0 && iter.stride != 0 {
                let step = digit.checked_mul(iter.stride);
                let step = step.ok_or_else(|| Error::overflow("a coordinate"))?;
                let before = coord.get(iter.axis);
                // Fixed digits may leave the range on the way, but their sum is back in it, so that
                // wrapping is exact. A dynamic digit comes last and may really leave.
                let sum = if iter.extent == DYNAMIC {
                    let sum = before.checked_add(step);
                    sum.ok_or_else(|| Error::overflow("a coordinate"))?
                } else {
                    before.wrapping_add(step)
                };
                coord.set(iter.axis, sum);
            }
        }
        Ok(coord)
    }

    /// Calls `visit` with each point of `f(x)`; coinciding replicas are visited more than once. Nothing
    /// is allocated for layouts of up to eight iters of a kind on up to four axes.
    ///
    /// # Errors
    /// As [`Layout::origin`].
    pub fn visit_points(
        &self,
        x: i64,
        mut visit: impl FnMut(&Coord) -> ControlFlow<()>,
    ) -> Result<()> {
        let origin = self.origin(x)?;
        let moving = self
            .replica
            .iter()
            .filter(|i| i.extent > 1 && i.stride != 0);
        let moving: SmallVec<[Iter; 8]> = moving.copied().collect();
        let mut digits: SmallVec<[i64; 8]> = smallvec::smallvec![0; moving.len()];
        loop {
            let mut point = origin.clone();
            for (iter, digit) in moving.iter().zip(&digits) {
                let sum = point
                    .get(iter.axis)
                    .wrapping_add(digit.wrapping_mul(iter.stride));
                point.set(iter.axis, sum);
            }
            if let Some(swizzle) = self.swizzle {
                point.set(Axis::M, swizzle.apply(point.get(Axis::M)));
            }
            if visit(&point).is_break() {
                return Ok(());
            }
            let Some(at) = moving
                .iter()
                .zip(&digits)
                .rposition(|(iter, &digit)| digit + 1 < iter.extent)
            else {
                return Ok(());
            };
            digits[at] += 1;
            digits[at + 1..].fill(0);
        }
    }

    /// `f(x)`: the points of logical index `x`, sorted, each once.
    ///
    /// # Errors
    /// `Invalid` when `x` is no index of the layout; `Unsupported` beyond 2^20 replicas.
    pub fn points(&self, x: i64) -> Result<SmallVec<[Coord; 1]>> {
        let count = self.replica_count();
        if count > ENUMERATION_LIMIT {
            return Err(Error::unsupported(format!(
                "listing {count} replicas; at most {ENUMERATION_LIMIT} are listed"
            )));
        }
        let mut points = SmallVec::with_capacity(usize::try_from(count).unwrap_or(0));
        self.visit_points(x, |point| {
            points.push(point.clone());
            ControlFlow::Continue(())
        })?;
        points.sort_unstable();
        points.dedup();
        Ok(points)
    }

    /// `f^shape(coord)`: the points of `coord`, sorted, each once.
    ///
    /// # Errors
    /// As [`Layout::index_of`] and [`Layout::points`].
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let l: Layout = "S[(8, 4) : (4@lane, 1@lane)] + R[2 : 1@warp]".parse()?;
    /// let points = l.apply(&[8, 4], &[2, 3])?;
    /// let text: Vec<String> = points.iter().map(|p| p.to_string()).collect();
    /// assert_eq!(text, ["11@lane", "11@lane + 1@warp"]);
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn apply(&self, shape: &[i64], coord: &[i64]) -> Result<SmallVec<[Coord; 1]>> {
        self.points(self.index_of(shape, coord)?)
    }

    /// The logical indices that live at `point`, with some replica: none, one, or several. Ascending.
    ///
    /// # Errors
    /// `Unsupported` when all steps of a dynamic extent live there, or beyond 2^20 answers or 2^22 steps of
    /// search (strides that overlap without structure).
    ///
    /// ```
    /// use axe_layout::{Axis, Coord, Layout};
    /// let l: Layout = "S[(8, 4) : (4@lane, 1@lane)]".parse()?;
    /// let at = |lane| Coord::from_terms([(Axis::new("lane")?, lane)]);
    /// assert_eq!(l.invert(&at(11)?)?, [11]);
    /// assert!(l.invert(&at(32)?)?.is_empty());
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn invert(&self, point: &Coord) -> Result<Vec<i64>> {
        if let Some(outermost) = self.dynamic_iter() {
            return self.invert_dynamic(outermost, point);
        }
        let mut target = point.clone();
        if let Some(swizzle) = self.swizzle {
            target.set(Axis::M, swizzle.apply(target.get(Axis::M)));
        }
        let mut search = Inverse::new(self);
        for (axis, _) in target.iter().chain(self.offset.iter()) {
            let wanted = i128::from(target.get(axis)) - i128::from(self.offset.get(axis));
            if wanted != 0 && !search.want(axis, wanted) {
                return Ok(Vec::new());
            }
        }
        search.run(0, 0)?;
        search.found.sort_unstable();
        search.found.dedup();
        Ok(search.found)
    }
}

/// A digit to be chosen: `weight` is its share of the logical index, 0 for replicas.
struct Digit {
    extent: i64,
    stride: i64,
    axis: usize,
    weight: i64,
    /// What the digits after this one can still add on its axis.
    low: i128,
    high: i128,
    /// Greatest common divisor of the strides after this one on its axis.
    divisor: i64,
}

struct Inverse {
    axes: SmallVec<[Axis; 8]>,
    wanted: SmallVec<[i128; 8]>,
    digits: Vec<Digit>,
    found: Vec<i64>,
    steps: usize,
}

impl Inverse {
    fn new(layout: &Layout) -> Self {
        let mut axes: SmallVec<[Axis; 8]> = SmallVec::new();
        let mut digits = Vec::new();
        let mut weight = layout.size();
        let shard = layout.shard.iter().map(|i| {
            weight /= i.extent;
            (*i, weight)
        });
        let replica = layout.replica.iter().map(|i| (*i, 0));
        for (iter, weight) in shard.chain(replica).filter(|(i, _)| i.extent > 1) {
            if iter.stride == 0 && weight == 0 {
                continue;
            }
            let axis = axes
                .iter()
                .position(|a| *a == iter.axis)
                .unwrap_or_else(|| {
                    axes.push(iter.axis);
                    axes.len() - 1
                });
            digits.push(Digit {
                extent: iter.extent,
                stride: iter.stride,
                axis,
                weight,
                low: 0,
                high: 0,
                divisor: 0,
            });
        }
        // The largest strides first: then few values of a digit leave a reachable rest. Broadcast
        // digits last: every value of theirs is an answer.
        digits.sort_by_key(|d| (d.stride == 0, d.axis, std::cmp::Reverse(d.stride.abs())));
        for k in (0..digits.len()).rev() {
            let axis = digits[k].axis;
            if let Some(next) = digits[k + 1..].iter().find(|d| d.axis == axis) {
                let last = i128::from(next.extent - 1) * i128::from(next.stride);
                let (low, high) = (next.low + last.min(0), next.high + last.max(0));
                let divisor = crate::sumset::gcd(next.stride.abs(), next.divisor);
                (digits[k].low, digits[k].high, digits[k].divisor) = (low, high, divisor);
            }
        }
        Self {
            wanted: smallvec::smallvec![0; axes.len()],
            axes,
            digits,
            found: Vec::new(),
            steps: 0,
        }
    }

    /// False when nothing moves along `axis`.
    fn want(&mut self, axis: Axis, value: i128) -> bool {
        match self.axes.iter().position(|a| *a == axis) {
            Some(at) => {
                self.wanted[at] = value;
                true
            }
            None => false,
        }
    }

    fn run(&mut self, at: usize, index: i64) -> Result<()> {
        self.steps += 1;
        if self.steps > 1 << 22 || self.found.len() as i64 > ENUMERATION_LIMIT {
            return Err(Error::unsupported(
                "inverse: more than 2^20 indices live there, or the strides overlap without structure",
            ));
        }
        let Some(digit) = self.digits.get(at) else {
            if self.wanted.iter().all(|w| *w == 0) {
                self.found.push(index);
            }
            return Ok(());
        };
        let (axis, stride) = (digit.axis, i128::from(digit.stride));
        let (weight, divisor) = (digit.weight, i128::from(digit.divisor));
        let wanted = self.wanted[axis];
        for value in digit.values(wanted) {
            let rest = wanted - i128::from(value) * stride;
            if divisor != 0 && rest % divisor != 0 {
                continue;
            }
            self.wanted[axis] = rest;
            self.run(at + 1, index + value * weight)?;
        }
        self.wanted[axis] = wanted;
        Ok(())
    }
}

impl Digit {
    /// The values that leave a rest within reach of the digits to come.
    fn values(&self, wanted: i128) -> std::ops::Range<i64> {
        let stride = i128::from(self.stride);
        if stride == 0 {
            return 0..self.extent;
        }
        // low <= wanted - value * stride <= high
        let (from, to) = (wanted - self.high, wanted - self.low);
        let (from, to) = if stride > 0 { (from, to) } else { (-to, -from) };
        let size = stride.abs();
        let first = -(-from).div_euclid(size);
        let last = to.div_euclid(size);
        let clamp = |v: i128| v.clamp(0, i128::from(self.extent)) as i64;
        clamp(first)..clamp(last + 1)
    }
}
