//! Slices: the layout of a box of a tensor, decided exactly.
//!
//! On a box, the induced map is a function `H` of the box's row-major index `u`, up to the replicas, which
//! a slice keeps: two translates of one finite set are equal only by a translation of zero, so that a
//! slice's own `D + O` must equal `H`. A function is some `D + O` exactly when its canonical shard can be
//! read off it, fastest digit first (the canonical form is unique, theorem A.8): the run
//! `H(0), H(1), ...` with a constant step ends where the digit carries, so its length is the digit's extent;
//! it divides the size, the step is on one axis, every later stretch repeats the run, and what the digit
//! leaves is such a function again.

use std::ops::Range;

use smallvec::SmallVec;

use super::blocks::{Blocks, divide, quotient_and_digit};
use super::{Grouped, Layout, Replica, Shard};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::swizzle::Swizzle;

/// Boxes whose map is read element by element have at most this many.
const MAX_READ: i64 = 1 << 22;

/// The values of a map on consecutive indices.
type Values = Vec<Coord>;

impl Layout {
    /// The layout of the box `region` of the shape: `f'(u) = f(u + begin)`, with the origin in the offset.
    ///
    /// Of a dynamic outermost dimension, `begin..end` is a box that the caller knows to lie inside, and
    /// the slice is right for every size that holds it; `begin..DYNAMIC` is the rest from `begin` on,
    /// again of dynamic extent.
    ///
    /// # Errors
    /// `Invalid` when the shape is not admitted, or the region is empty or outside; `None`, with the place
    /// where the map stops being one, when no layout describes the box: for a swizzled layout, none with
    /// its swizzle, and, unless replicas move along `m`, none without one. `Unsupported` for a box that
    /// wraps a digit and so must be read, when it has more than 2^22 elements (along the dimension that
    /// wraps; of the whole box where the shape does not group); and for the rest of a dynamic dimension
    /// in a shape that does not group. [`Layout::slice_cover`] cuts a box that has no slice.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let tile: Layout = "S[(8, 8) : (8, 1)]".parse()?;
    /// assert_eq!(tile.slice(&[8, 8], &[2..6, 4..8])?.to_string(), "S[(4, 4) : (8, 1)] + 20");
    /// // Elements 3 and 4 of rows of 4 are a row apart and not a step apart: no layout.
    /// let rows: Layout = "S[(4, 4) : (32, 1)]".parse()?;
    /// assert!(rows.slice(&[16], &[3..6]).is_err());
    /// assert_eq!(rows.slice(&[16], &[2..6])?.to_string(), "S[(2, 2) : (30, 1)] + 2");
    /// // Some rows, and all rows from the third on, of a tensor of any number of rows.
    /// use axe_layout::DYNAMIC;
    /// let any: Layout = "S[(?, 8) : (8, 1)]".parse()?;
    /// assert_eq!(any.slice(&[DYNAMIC, 8], &[2..6, 4..8])?.to_string(), "S[(4, 4) : (8, 1)] + 20");
    /// assert_eq!(any.slice(&[DYNAMIC, 8], &[2..DYNAMIC, 0..4])?.to_string(), "S[(?, 4) : (8, 1)] + 16");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn slice(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Self> {
        if let Some(slice) = self.slice_without_reading(shape, region) {
            return Ok(slice);
        }
        if self.is_dynamic() {
            return self.slice_dynamic(shape, region);
        }
        self.slice_by_reading(shape, region)
    }

    /// The slice where in each dimension the box covers fast digits whole and stays inside one slower
    /// digit: `None` for all others.
    fn slice_without_reading(&self, shape: &[i64], region: &[Range<i64>]) -> Option<Self> {
        if shape.len() != region.len() {
            return None;
        }
        let (mut shard, mut offset) = (Shard::new(), self.offset.clone());
        let mut blocks = Blocks::new(&self.shard);
        for (&extent, range) in shape.iter().zip(region) {
            let begin = shard.len();
            if range.start < 0 || range.start >= range.end || range.end > extent {
                return None;
            }
            if !blocks.take(extent, |iter| shard.push(iter)) {
                return None;
            }
            if range.end - range.start < extent {
                cut_block(&mut shard, begin, range, &mut offset)?;
            }
        }
        // Part of a valid map, so valid.
        blocks.is_done().then(|| Self {
            shard,
            replica: Replica::from_slice(&self.replica),
            offset,
            swizzle: self.swizzle,
        })
    }

    #[cold]
    pub(super) fn slice_by_reading(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Self> {
        self.check_region(shape, region)?;
        match self.slice_by_dimension(shape, region) {
            Some(Err(Error::None(reason))) => match self.slice_whole(shape, region) {
                // The reason that names a dimension says more.
                Err(Error::None(_)) if self.effective_swizzle().is_none() => {
                    Err(Error::none(reason))
                }
                other => other,
            },
            Some(other) => other,
            // That dimensions share an iter is no reason: the box may have a slice all the same.
            None => self.slice_whole(shape, region),
        }
    }

    pub(super) fn check_region(&self, shape: &[i64], region: &[Range<i64>]) -> Result<()> {
        if !self.admits(shape) {
            return Err(Error::invalid(format!(
                "{self} does not admit the shape {shape:?}"
            )));
        }
        if shape.len() != region.len() {
            return Err(Error::Rank {
                what: "region of a slice",
                expected: shape.len(),
                got: region.len(),
            });
        }
        for (dim, (&extent, range)) in shape.iter().zip(region).enumerate() {
            if range.start < 0 || range.start >= range.end || range.end > extent {
                return Err(Error::invalid(format!(
                    "dimension {dim}: expected a range inside 0..{extent}, got {}..{}",
                    range.start, range.end
                )));
            }
        }
        Ok(())
    }

    /// Slices each dimension by itself, where the layout groups by the shape.
    fn slice_by_dimension(&self, shape: &[i64], region: &[Range<i64>]) -> Option<Result<Self>> {
        match self.group(shape) {
            Ok(grouped) => Some(self.slice_grouped(&grouped, region)),
            Err(Error::None(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn slice_grouped(&self, grouped: &Grouped, region: &[Range<i64>]) -> Result<Self> {
        let mut shard = Shard::new();
        let mut offset = self.offset.clone();
        for (dim, (block, range)) in grouped.blocks().zip(region).enumerate() {
            let (iters, origin) = slice_block(block, range).map_err(|error| match error {
                Error::None(reason) => Error::none(format!(
                    "dimension {dim}, {}..{}: {reason}",
                    range.start, range.end
                )),
                other => other,
            })?;
            shard.extend_from_slice(&iters);
            for (axis, value) in origin.iter() {
                offset.add(axis, value)?;
            }
        }
        Self::from_parts(shard, self.replica.clone(), offset, self.swizzle)
    }

    /// Reads the whole box: for shapes that cut through iters, and for swizzled addresses that happen to
    /// be those of a layout without swizzle.
    fn slice_whole(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Self> {
        let values = self.read_box(shape, region)?;
        let part = |values: Values, swizzle: Option<Swizzle>| {
            let offset = values.first().cloned().unwrap_or_default();
            let shard = read_digits(values)?;
            Self::from_parts(shard, self.replica.clone(), offset, swizzle)
        };
        // A swizzle is one-to-one: with it, there is a slice exactly when there is one of the plain box.
        let Some(swizzle) = self.effective_swizzle() else {
            return part(values, self.swizzle);
        };
        let reason = match part(values.clone(), self.swizzle) {
            Err(Error::None(reason)) => reason,
            other => return other,
        };
        if self.replica.iter().any(|i| i.axis == Axis::M) {
            return Err(Error::none(format!("under {swizzle}, {reason}")));
        }
        let through = |mut value: Coord| {
            let address = swizzle.apply(value.get(Axis::M));
            value.set(Axis::M, address);
            value
        };
        let plain = part(values.into_iter().map(through).collect(), None);
        plain.map_err(|error| match error {
            Error::None(other) => {
                Error::none(format!("under {swizzle}, {reason}; without it, {other}"))
            }
            other => other,
        })
    }

    /// The origins of the box's elements, before the swizzle.
    fn read_box(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Values> {
        let extents: SmallVec<[i64; 8]> =
            region.iter().map(|range| range.end - range.start).collect();
        let size = checked_size(&extents)?;
        let mut values = Values::with_capacity(usize::try_from(size).unwrap_or(0));
        let mut coord: SmallVec<[i64; 8]> = region.iter().map(|range| range.start).collect();
        for _ in 0..size {
            values.push(self.origin(self.index_of(shape, &coord)?)?);
            for (at, range) in coord.iter_mut().zip(region).rev() {
                *at += 1;
                if *at < range.end {
                    break;
                }
                *at = range.start;
            }
        }
        Ok(values)
    }
}

fn checked_size(extents: &[i64]) -> Result<i64> {
    let size = extents
        .iter()
        .try_fold(1_i64, |size, &extent| size.checked_mul(extent));
    size.filter(|&size| size <= MAX_READ).ok_or_else(|| {
        Error::unsupported(format!(
            "a slice whose map must be read on more than {MAX_READ} elements"
        ))
    })
}

/// Cuts the iters from `begin` on, which are one dimension, down to `range` of it, where that needs no
/// reading; the origin goes to `offset`.
#[inline]
fn cut_block(
    shard: &mut Shard,
    begin: usize,
    range: &Range<i64>,
    offset: &mut Coord,
) -> Option<()> {
    let (mut start, mut length) = (range.start, range.end - range.start);
    let mut pivot = shard.len().checked_sub(1)?;
    while pivot > begin {
        let extent = shard.get(pivot)?.extent;
        let (Some(s), Some(l)) = (divide(start, extent), divide(length, extent)) else {
            break;
        };
        (start, length, pivot) = (s, l, pivot - 1);
    }
    for at in (begin..=pivot).rev() {
        let iter = shard.get_mut(at)?;
        let (rest, digit) = quotient_and_digit(start, iter.extent);
        if at == pivot {
            if digit + length > iter.extent {
                return None;
            }
            iter.extent = length;
        }
        offset
            .add(iter.axis, digit.checked_mul(iter.stride)?)
            .ok()?;
        start = rest;
    }
    if pivot > begin {
        shard.drain(begin..pivot);
    }
    Some(())
}

/// The iters and the origin of `range` in one dimension with the iters `block`.
pub(super) fn slice_block(block: &[Iter], range: &Range<i64>) -> Result<(Shard, Coord)> {
    let (mut start, mut length) = (range.start, range.end - range.start);
    // Fast digits that are covered whole from 0 stay as they are.
    let mut whole = block.len();
    while let Some(iter) = whole.checked_sub(1).and_then(|at| block.get(at)) {
        if start % iter.extent != 0 || length % iter.extent != 0 {
            break;
        }
        (start, length, whole) = (start / iter.extent, length / iter.extent, whole - 1);
    }
    let (outer, inner) = block.split_at(whole);
    let origin = evaluate(outer, start)?;
    // A stretch inside one digit needs no reading, however long.
    if let Some(last) = outer.last()
        && start % last.extent + length <= last.extent
    {
        let mut shard = Shard::new();
        shard.push(Iter::new(length, last.stride, last.axis));
        shard.extend_from_slice(inner);
        return Ok((shard, origin));
    }
    let size = checked_size(&[length])?;
    let values = (0..size)
        .map(|u| evaluate(outer, start + u))
        .collect::<Result<Values>>()?;
    let mut shard = read_digits(values)?;
    shard.extend_from_slice(inner);
    Ok((shard, origin))
}

/// `D(x)` of a list of iters.
fn evaluate(iters: &[Iter], mut x: i64) -> Result<Coord> {
    let mut point = Coord::new();
    for iter in iters.iter().rev() {
        let step = (x % iter.extent).checked_mul(iter.stride);
        point.add(
            iter.axis,
            step.ok_or_else(|| Error::overflow("a coordinate of a slice"))?,
        )?;
        x /= iter.extent;
    }
    Ok(point)
}

/// The shard iters of a function given by its values, less its value at 0.
fn read_digits(mut values: Values) -> Result<Shard> {
    let mut shard = Shard::new();
    let mut below = 1_i64;
    while values.len() > 1 {
        let (axis, step) = step_of(&values, below)?;
        let run = values
            .windows(2)
            .take_while(|pair| is_step(pair, axis, step))
            .count()
            + 1;
        if !values.len().is_multiple_of(run) {
            return Err(Error::none(format!(
                "steps of {step}@{axis} end after {run} places, which do not divide the {} places there are",
                values.len()
            )));
        }
        if let Some(at) = values
            .chunks(run)
            .position(|chunk| chunk.windows(2).any(|pair| !is_step(pair, axis, step)))
        {
            return Err(Error::none(format!(
                "the first {run} places are {step}@{axis} apart, and those from place {} on are not",
                at as i64 * run as i64 * below
            )));
        }
        let extent = i64::try_from(run).unwrap_or(i64::MAX);
        shard.push(Iter::new(extent, step, axis));
        below = below.saturating_mul(extent);
        values = values.into_iter().step_by(run).collect();
    }
    shard.reverse();
    Ok(shard)
}

/// The axis and length of the step from the first value to the second.
fn step_of(values: &[Coord], below: i64) -> Result<(Axis, i64)> {
    let [first, second, ..] = values else {
        return Ok((Axis::M, 0));
    };
    let mut moved = first
        .iter()
        .chain(second.iter())
        .map(|(axis, _)| axis)
        .filter(|&axis| first.get(axis) != second.get(axis));
    let Some(axis) = moved.next() else {
        return Ok((Axis::M, 0));
    };
    if let Some(other) = moved.find(|&other| other != axis) {
        return Err(Error::none(format!(
            "the step to place {below} is on two axes, {axis} and {other}"
        )));
    }
    let step = second.get(axis).checked_sub(first.get(axis));
    Ok((
        axis,
        step.ok_or_else(|| Error::overflow("a step of a slice"))?,
    ))
}

/// Whether the second value is one step from the first.
fn is_step(pair: &[Coord], axis: Axis, step: i64) -> bool {
    let [first, second] = pair else { return false };
    let mut moved = first.clone();
    moved.add(axis, step).is_ok() && moved == *second
}

#[cfg(test)]
// A region has one range a dimension, and some tensors have one dimension.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    /// All functions that a shard of at most three iters, with these extents and small strides, induces on `size`.
    fn some_layout_matches(values: &[Coord]) -> bool {
        let size = values.len() as i64;
        let origin = values[0].clone();
        let axes: Vec<Axis> = ["m", "lane"]
            .iter()
            .map(|name| Axis::new(name).unwrap())
            .collect();
        let at = |u: usize, axis: Axis| values[u].get(axis) - origin.get(axis);
        // Strides of a matching layout are the values at the powers of its radix, so only those are tried.
        let fits = |extents: &[i64]| {
            let mut weight = 1_i64;
            let mut iters = Vec::new();
            for &extent in extents {
                let place = weight as usize;
                let moved: Vec<Axis> = axes
                    .iter()
                    .copied()
                    .filter(|&axis| extent > 1 && at(place, axis) != 0)
                    .collect();
                match moved.as_slice() {
                    [] => iters.push((weight, extent, Axis::M, 0)),
                    [axis] => iters.push((weight, extent, *axis, at(place, *axis))),
                    _ => return false,
                }
                weight *= extent;
            }
            (0..size).all(|u| {
                axes.iter().all(|&axis| {
                    let sum: i64 = iters
                        .iter()
                        .filter(|i| i.2 == axis)
                        .map(|i| u / i.0 % i.1 * i.3)
                        .sum();
                    sum == at(u as usize, axis)
                })
            })
        };
        factorisations(size).iter().any(|extents| fits(extents))
    }

    fn factorisations(size: i64) -> Vec<Vec<i64>> {
        if size == 1 {
            return vec![vec![]];
        }
        let with = |first: i64| {
            factorisations(size / first)
                .into_iter()
                .map(move |rest| [vec![first], rest].concat())
        };
        (2..=size)
            .filter(|first| size % first == 0)
            .flat_map(with)
            .collect()
    }

    /// Every box of every layout of a small universe: a slice is found exactly when an independent search
    /// over all radices finds one, and has the box's map.
    #[test]
    fn a_slice_is_found_exactly_when_one_exists() {
        let (mut found, mut none) = (0, 0);
        for (a, b) in [(2, 6), (3, 4), (4, 3), (6, 2), (12, 1)] {
            for strides in [
                [1, 2],
                [6, 1],
                [3, 1],
                [0, 1],
                [1, 0],
                [-1, 4],
                [4, -2],
                [2, 2],
                [1, 12],
            ] {
                for axes in [["m", "m"], ["m", "lane"], ["lane", "m"]] {
                    let text = format!(
                        "S[({a}, {b}) : ({}@{}, {}@{})]",
                        strides[0], axes[0], strides[1], axes[1]
                    );
                    let layout = layout(&text);
                    for shape in [vec![12], vec![3, 4], vec![2, 6], vec![4, 3]] {
                        for region in regions(&shape) {
                            let exists = check_box(&layout, &shape, &region);
                            if exists { found += 1 } else { none += 1 }
                        }
                    }
                }
            }
        }
        assert!(found > 5000 && none > 500, "{found} {none}");
    }

    fn regions(shape: &[i64]) -> Vec<Vec<Range<i64>>> {
        let ranges = |extent: i64| {
            (0..extent).flat_map(move |start| (start + 1..=extent).map(move |end| start..end))
        };
        let mut all = vec![vec![]];
        for &extent in shape {
            all = all
                .iter()
                .flat_map(|head: &Vec<Range<i64>>| {
                    ranges(extent).map(move |r| [head.clone(), vec![r]].concat())
                })
                .collect();
        }
        all
    }

    fn check_box(layout: &Layout, shape: &[i64], region: &[Range<i64>]) -> bool {
        let extents: Vec<i64> = region.iter().map(|range| range.end - range.start).collect();
        let size: i64 = extents.iter().product();
        let values: Values = (0..size)
            .map(|mut u| {
                let mut coord = vec![0; extents.len()];
                for (k, extent) in extents.iter().enumerate().rev() {
                    coord[k] = u % extent + region[k].start;
                    u /= extent;
                }
                layout
                    .origin(layout.index_of(shape, &coord).unwrap())
                    .unwrap()
            })
            .collect();
        let exists = some_layout_matches(&values);
        match layout.slice(shape, region) {
            Ok(slice) => {
                assert!(
                    exists && slice.admits(&extents),
                    "{layout} {shape:?} {region:?}: {slice}"
                );
                for (u, value) in (0..).zip(&values) {
                    assert_eq!(
                        &slice.origin(u).unwrap(),
                        value,
                        "{layout} {shape:?} {region:?}: {slice}"
                    );
                }
            }
            Err(error) => assert!(!exists, "{layout} {shape:?} {region:?}: {error}"),
        }
        exists
    }

    #[test]
    fn huge_dimensions_are_not_read() {
        let large = layout("S[(1099511627776, 64) : (128, 1)]");
        let slice = large
            .slice(&[1 << 40, 64], &[5..(1 << 39) + 5, 8..16])
            .unwrap();
        assert_eq!(slice.to_string(), "S[(549755813888, 8) : (128, 1)] + 648");
        assert_eq!(
            large.slice(&[1 << 46], &[0..1 << 45]).unwrap().size(),
            1 << 45
        );
        assert!(large.slice(&[1 << 46], &[1..1 << 45]).is_err());
    }

    #[test]
    fn regions_outside_are_invalid() {
        let rows = layout("S[(4, 4) : (32, 1)]");
        for region in [
            vec![0..5, 0..4],
            vec![2..2, 0..4],
            vec![-1..2, 0..4],
            vec![0..4],
        ] {
            assert_eq!(
                rows.slice(&[4, 4], &region).unwrap_err().kind(),
                crate::Kind::Invalid
            );
        }
        assert_eq!(
            rows.slice(&[5, 4], &[0..1, 0..1]).unwrap_err().kind(),
            crate::Kind::Invalid
        );
    }
}
