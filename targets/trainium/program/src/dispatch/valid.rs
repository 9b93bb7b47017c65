//! What is in use of regions, as boxes of digits.
//!
//! A number of indices from the first on is a staircase of digits: 1000 of `(8, 128)` are 7 whole rows and 104 of another,
//! or 8 rows of 104 and 7 of the other 24. Partitions shall begin at the first, so that a digit on partitions is cut by
//! what lies inside of it, and others by whole steps.

use super::Region;
use super::problem::partitions;
use super::reason::Reason;
use axe_layout::{Iter, Layout};
use std::ops::Range;

/// A region, and the operator's dimension that each of its own is.
pub(super) type Given<'a> = (&'a Region, Vec<usize>);

/// An operator on a box: which box it is in each of the operator's dimensions, and the parts of the regions.
pub(super) type One<'a> = dyn FnMut(&[usize], &[Region]) -> Result<(), Reason> + 'a;

/// A box of a dimension's digits.
type Part = Vec<Range<i64>>;

/// Calls `one` for each box of what is in use; the last dimension goes fastest.
///
/// # Errors
/// Regions that do not have the same in use, layouts without a common refinement, and what `one` says.
pub(super) fn each(given: &[Given<'_>], rank: usize, one: &mut One<'_>) -> Result<(), Reason> {
    let whole = |region: &Region| region.extents() == region.shape.as_slice();
    if given.iter().all(|(region, _)| whole(region)) {
        let regions: Vec<Region> = given.iter().map(|(region, _)| (*region).clone()).collect();
        return one(&vec![0; rank], &regions);
    }
    let mut blocks = Vec::new();
    for (region, dims) in given {
        check(region, dims, rank)?;
        let grouped = region.layout.group(&region.shape).map_err(refuse)?;
        let own: Vec<Vec<Iter>> = grouped.blocks().map(<[Iter]>::to_vec).collect();
        blocks.push(own);
    }
    let dims: Vec<Vec<Part>> = (0..rank)
        .map(|dim| parts_of(given, &mut blocks, dim))
        .collect::<Result<_, _>>()?;
    let mut at = vec![0; rank];
    loop {
        let regions: Result<Vec<Region>, Reason> = (given.iter().zip(&blocks))
            .map(|(given, blocks)| part(given, blocks, &dims, &at))
            .collect();
        one(&at, &regions?)?;
        let Some(next) = (0..rank).rev().find(|dim| at[*dim] + 1 < dims[*dim].len()) else {
            return Ok(());
        };
        at[next] += 1;
        at[next + 1..].fill(0);
    }
}

fn check(region: &Region, dims: &[usize], rank: usize) -> Result<(), Reason> {
    let (used, shape) = (region.extents(), &region.shape);
    let sound = used.len() == shape.len()
        && dims.len() == shape.len()
        && dims.iter().all(|dim| *dim < rank)
        && used
            .iter()
            .zip(shape)
            .all(|(used, all)| (1..=*all).contains(used));
    match sound {
        true => Ok(()),
        false => Err(Reason::Malformed(format!(
            "expected 1 to {shape:?} indices in use, got {used:?}"
        ))),
    }
}

fn refuse(error: axe_layout::Error) -> Reason {
    Reason::Layout {
        operand: "what is in use",
        message: error.to_string(),
    }
}

/// The boxes of a dimension, and the iters of all regions that have it, cut alike: no boxes where it is in use whole.
fn parts_of(
    given: &[Given<'_>],
    blocks: &mut [Vec<Vec<Iter>>],
    dim: usize,
) -> Result<Vec<Part>, Reason> {
    // Of each region, its dimension; one index is paired with all of another region's.
    let mut own: Vec<(usize, usize)> = Vec::new();
    let (mut used, mut whole) = (1, true);
    for (at, (region, dims)) in given.iter().enumerate() {
        let Some(place) = dims.iter().position(|own| *own == dim) else {
            continue;
        };
        let extent = region.extents()[place];
        if extent == 1 && region.shape[place] == 1 {
            continue;
        }
        if !own.is_empty() && extent != used {
            return Err(Reason::Malformed(format!(
                "expected {used} indices in use of dimension {dim}, got {extent}"
            )));
        }
        used = extent;
        whole &= extent == region.shape[place];
        own.push((at, place));
    }
    if whole {
        return Ok(vec![Part::new()]);
    }
    let mut weights: Vec<i64> = vec![1];
    for (at, place) in &own {
        let mut weight = 1;
        for iter in blocks[*at][*place].iter().skip(1).rev() {
            weight *= iter.extent;
            weights.push(weight);
        }
    }
    weights.sort_unstable();
    weights.dedup();
    if let Some(pair) = weights.windows(2).find(|pair| pair[1] % pair[0] != 0) {
        return Err(Reason::Straddles {
            dimension: dim.to_string(),
            message: format!(
                "digits of {} and {} have no common refinement",
                pair[0], pair[1]
            ),
        });
    }
    let mut moving = vec![false; weights.len()];
    for (at, place) in &own {
        let cut = refined(&blocks[*at][*place], &weights, used);
        for (moves, iter) in moving.iter_mut().zip(&cut) {
            *moves |= iter.axis == partitions() && iter.stride != 0;
        }
        blocks[*at][*place] = cut;
    }
    // Outermost first.
    let mut extents: Vec<i64> = weights.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let last = weights.last().copied().unwrap_or(1);
    extents.push((used - 1) / last + 1);
    extents.reverse();
    let digits: Vec<(i64, bool)> = extents.into_iter().zip(moving).collect();
    Ok(below(&digits, used))
}

/// A block cut at these weights, outermost first; its outermost digit is as long as what is in use needs.
fn refined(block: &[Iter], weights: &[i64], used: i64) -> Vec<Iter> {
    let mut cut = Vec::new();
    let mut weight = 1;
    let mut ends = weights.iter().skip(1).copied().chain([i64::MAX]).peekable();
    for (index, iter) in block.iter().enumerate().rev() {
        let mut left = *iter;
        loop {
            let end = ends.peek().copied().unwrap_or(i64::MAX);
            let outermost = index == 0;
            if !outermost && weight * left.extent < end {
                break;
            }
            let inside = match end {
                i64::MAX => (used - 1) / weight + 1,
                end => end / weight,
            };
            cut.push(Iter::new(inside, left.stride, left.axis));
            ends.next();
            weight *= inside;
            left.stride = left.stride.wrapping_mul(inside);
            left.extent = (left.extent / inside).max(1);
            if end == i64::MAX || (!outermost && left.extent == 1) {
                break;
            }
        }
    }
    cut.reverse();
    cut
}

/// The boxes of the indices below `count`. Digits are outermost first, each with whether it moves partitions.
fn below(digits: &[(i64, bool)], count: i64) -> Vec<Part> {
    let Some(((_, on_partitions), inner)) = digits.split_first() else {
        return vec![Part::new()];
    };
    let weight: i64 = inner.iter().map(|(extent, _)| extent).product();
    let (steps, rest) = (count / weight, count % weight);
    let whole: Part = inner.iter().map(|(extent, _)| 0..*extent).collect();
    match rest {
        0 => over(0..steps, vec![whole]),
        _ if *on_partitions => {
            let mut found = over(0..steps + 1, below(inner, rest));
            found.extend(over(0..steps, above(inner, rest)));
            found
        }
        _ => {
            let mut found = over(0..steps, vec![whole]);
            found.extend(over(steps..steps + 1, below(inner, rest)));
            found
        }
    }
}

/// The boxes of the indices from `count` on.
fn above(digits: &[(i64, bool)], count: i64) -> Vec<Part> {
    let Some(((extent, on_partitions), inner)) = digits.split_first() else {
        return Vec::new();
    };
    let weight: i64 = inner.iter().map(|(extent, _)| extent).product();
    let (steps, rest) = (count / weight, count % weight);
    let whole: Part = inner.iter().map(|(extent, _)| 0..*extent).collect();
    match rest {
        0 => over(steps..*extent, vec![whole]),
        _ if *on_partitions => {
            let mut found = over(steps..*extent, above(inner, rest));
            found.extend(over(steps + 1..*extent, below(inner, rest)));
            found
        }
        _ => {
            let mut found = over(steps + 1..*extent, vec![whole]);
            found.extend(over(steps..steps + 1, above(inner, rest)));
            found
        }
    }
}

/// Boxes inside of some steps of an outer digit; none of no steps.
fn over(steps: Range<i64>, inner: Vec<Part>) -> Vec<Part> {
    let with = |part: Part| std::iter::once(steps.clone()).chain(part).collect();
    match steps.is_empty() {
        true => Vec::new(),
        false => inner.into_iter().map(with).collect(),
    }
}

/// The part of a region in a box of each dimension.
fn part(
    (region, dims): &Given<'_>,
    blocks: &[Vec<Iter>],
    boxes: &[Vec<Part>],
    at: &[usize],
) -> Result<Region, Reason> {
    let mut offset = region.layout.offset().clone();
    let (mut iters, mut shape) = (Vec::new(), Vec::new());
    for ((dim, block), extent) in dims.iter().zip(blocks).zip(&region.shape) {
        let ranges = &boxes[*dim][at[*dim]];
        if ranges.len() != block.len() || *extent == 1 {
            iters.extend_from_slice(block);
            shape.push(*extent);
            continue;
        }
        let mut count = 1;
        for (iter, range) in block.iter().zip(ranges) {
            let size = range.end - range.start;
            iters.push(Iter::new(size, iter.stride, iter.axis));
            offset
                .add(iter.axis, range.start * iter.stride)
                .map_err(refuse)?;
            count *= size;
        }
        shape.push(count);
    }
    let replica = region.layout.replica().iter().copied();
    let layout = Layout::new(iters, replica, offset, region.layout.swizzle()).map_err(refuse)?;
    Ok(Region {
        shape,
        layout,
        valid: None,
        ..(*region).clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every index once.
    #[test]
    fn boxes_are_what_is_in_use() {
        for flags in 0..8 {
            let digits: Vec<(i64, bool)> = [3, 4, 5]
                .iter()
                .enumerate()
                .map(|(at, extent)| (*extent, flags >> at & 1 == 1))
                .collect();
            for count in 1..=60 {
                let index = |i: i64, j: i64, k: i64| (i * 4 + j) * 5 + k;
                let mut found = Vec::new();
                for part in below(&digits, count) {
                    let [a, b, c] = [0, 1, 2].map(|at: usize| part[at].clone());
                    for i in a {
                        for j in b.clone() {
                            found.extend(c.clone().map(|k| index(i, j, k)));
                        }
                    }
                }
                found.sort_unstable();
                assert_eq!(found, (0..count).collect::<Vec<_>>(), "{digits:?} {count}");
            }
        }
    }

    #[test]
    fn partitions_begin_at_the_first() {
        assert_eq!(
            below(&[(8, false), (128, true)], 1000),
            [[0..7, 0..128], [7..8, 0..104]]
        );
        assert_eq!(
            below(&[(32, true), (128, false)], 2055),
            [[0..17, 0..7], [0..16, 7..128]]
        );
    }
}
