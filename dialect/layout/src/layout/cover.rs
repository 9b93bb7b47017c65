//! Covers: a box without a slice as disjoint boxes that have one.

use std::collections::HashMap;
use std::ops::Range;

use super::Layout;
use super::slice::slice_block;
use crate::error::{Error, Result};
use crate::iter::Iter;

/// Longest dimension of which every interval is tried.
const MAX_SEARCH: i64 = 256;
/// Longest interval that is tried in place of two.
const MAX_JOINED: i64 = 1 << 16;
/// Most boxes inside of a box that is cut where its shape does not group.
const MAX_BOXES: i64 = 1 << 14;

/// One range a dimension.
type Region = Vec<Range<i64>>;

impl Layout {
    /// Disjoint boxes that make up `region` and have a slice each, with their slices: one box when the
    /// region itself has a slice.
    ///
    /// Where the layout groups by the shape, each dimension is cut by itself, and the boxes are the
    /// product, in row-major order: into the fewest intervals that have a slice, when the range is at
    /// most 256 long. Longer ranges are cut where a digit carries: before and after the whole turns of
    /// each digit, at most `2 n - 1` intervals for a dimension of `n` iters. Where the layout does not
    /// group, the box is cut right through, and its parts again, into the fewest parts that this gives.
    ///
    /// # Errors
    /// `Invalid` as in [`Layout::slice`]; `Unsupported` for a dynamic outermost extent and, where the
    /// shape does not group, for a region that has more than 2^14 boxes inside.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// // Rows of 64 in steps of 128: from the middle of one to the middle of another.
    /// let rows: Layout = "S[(64, 64) : (128, 1)]".parse()?;
    /// let cover = rows.slice_cover(&[4096], &[3..4001])?;
    /// let parts: Vec<String> = cover.iter().map(|(r, l)| format!("{r:?} {l}")).collect();
    /// assert_eq!(parts, [
    ///     "[3..64] S[61 : 1] + 3",
    ///     "[64..3968] S[(61, 64) : (128, 1)] + 128",
    ///     "[3968..4001] S[33 : 1] + 7936",
    /// ]);
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn slice_cover(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Vec<(Region, Self)>> {
        self.check_static("a cover of slices")?;
        self.check_region(shape, region)?;
        if let Ok(whole) = self.slice(shape, region) {
            return Ok(vec![(region.to_vec(), whole)]);
        }
        let boxes = match self.group(shape) {
            Ok(grouped) => {
                let blocks = grouped.blocks().zip(region);
                blocks.fold(vec![Region::new()], |boxes, (block, range)| {
                    extended(&boxes, &intervals(block, range))
                })
            }
            Err(Error::None(_)) => Cuts::new(self, shape, region)?.boxes(region)?,
            Err(other) => return Err(other),
        };
        let with_slice = |part: Region| self.slice(shape, &part).map(|slice| (part, slice));
        boxes.into_iter().map(with_slice).collect()
    }
}

/// Each box with each interval as its next dimension.
fn extended(boxes: &[Region], intervals: &[Range<i64>]) -> Vec<Region> {
    let with = |part: &Region| {
        let add =
            |interval: &Range<i64>| [part.as_slice(), std::slice::from_ref(interval)].concat();
        intervals.iter().map(add).collect::<Vec<_>>()
    };
    boxes.iter().flat_map(with).collect()
}

/// Intervals that make up `range` and have a slice each, of the dimension with the iters `block`.
fn intervals(block: &[Iter], range: &Range<i64>) -> Vec<Range<i64>> {
    if slice_block(block, range).is_ok() {
        return vec![range.clone()];
    }
    if range.end - range.start <= MAX_SEARCH {
        return fewest(block, range);
    }
    let mut joined: Vec<Range<i64>> = Vec::new();
    for part in by_turns(block, range) {
        match joined.last_mut() {
            Some(last)
                if part.end - last.start <= MAX_JOINED
                    && slice_block(block, &(last.start..part.end)).is_ok() =>
            {
                last.end = part.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}

/// Before the whole turns of the last digit, those, and after them.
fn by_turns(block: &[Iter], range: &Range<i64>) -> Vec<Range<i64>> {
    let Some((last, outer)) = block.split_last().filter(|(_, outer)| !outer.is_empty()) else {
        return vec![range.clone()];
    };
    let turn = last.extent;
    // Inside of the dimension, whose size fits.
    let (first, end) = ((range.start + turn - 1) / turn, range.end / turn);
    if first > end {
        return vec![range.clone()];
    }
    let whole = if first < end {
        by_turns(outer, &(first..end))
    } else {
        Vec::new()
    };
    let whole = whole.into_iter().map(|r| r.start * turn..r.end * turn);
    std::iter::once(range.start..first * turn)
        .chain(whole)
        .chain(std::iter::once(end * turn..range.end))
        .filter(|part| part.start < part.end)
        .collect()
}

/// The fewest intervals, by trying all.
fn fewest(block: &[Iter], range: &Range<i64>) -> Vec<Range<i64>> {
    let places = usize::try_from(range.end - range.start).unwrap_or(0);
    // best[k]: the number of intervals that make up the first k places, and the start of the last one.
    let mut best: Vec<(usize, usize)> = vec![(0, 0)];
    for end in 1..=places {
        let has_slice = |start: usize| {
            let (from, to) = (start as i64, end as i64);
            slice_block(block, &(range.start + from..range.start + to)).is_ok()
        };
        // One place alone always has a slice.
        let mut choice = (usize::MAX, end - 1);
        for (start, &(count, _)) in best.iter().enumerate() {
            if count + 1 < choice.0 && has_slice(start) {
                choice = (count + 1, start);
            }
        }
        best.push(choice);
    }
    let mut intervals = Vec::new();
    let mut end = places;
    while let Some(&(_, start)) = best.get(end).filter(|_| end > 0) {
        intervals.push(range.start + start as i64..range.start + end as i64);
        end = start;
    }
    intervals.reverse();
    intervals
}

/// A search for the fewest boxes that cuts right through a box and its parts give.
struct Cuts<'a> {
    layout: &'a Layout,
    shape: &'a [i64],
    /// The number of boxes of a part, and the dimension and the place where it is cut first.
    best: HashMap<Region, (usize, Option<(usize, i64)>)>,
}

impl<'a> Cuts<'a> {
    fn new(layout: &'a Layout, shape: &'a [i64], region: &[Range<i64>]) -> Result<Self> {
        let inside = region.iter().try_fold(1_i64, |count, range| {
            let length = range.end - range.start;
            let ranges = length.checked_add(1)?.checked_mul(length)? / 2;
            count
                .checked_mul(ranges)
                .filter(|&count| count <= MAX_BOXES)
        });
        if inside.is_none() {
            return Err(Error::unsupported(format!(
                "a cover in a shape that does not group: the region has more than {MAX_BOXES} boxes inside"
            )));
        }
        Ok(Self {
            layout,
            shape,
            best: HashMap::new(),
        })
    }

    /// The number of boxes of a part.
    fn count(&mut self, part: &[Range<i64>]) -> Result<usize> {
        if let Some(&(count, _)) = self.best.get(part) {
            return Ok(count);
        }
        let mut choice = match self.layout.slice(self.shape, part) {
            Ok(_) => (1, None),
            Err(Error::None(_)) => (usize::MAX, None),
            Err(other) => return Err(other),
        };
        for (dim, range) in part.iter().enumerate() {
            for at in range.start + 1..range.end {
                if choice.0 <= 2 {
                    break;
                }
                let [low, high] = halves(part, dim, at);
                let count = self.count(&low)?.saturating_add(self.count(&high)?);
                if count < choice.0 {
                    choice = (count, Some((dim, at)));
                }
            }
        }
        self.best.insert(part.to_vec(), choice);
        Ok(choice.0)
    }

    /// The boxes of a part, in the order of the cuts.
    fn boxes(&mut self, part: &[Range<i64>]) -> Result<Vec<Region>> {
        self.count(part)?;
        let Some(&(_, Some((dim, at)))) = self.best.get(part) else {
            return Ok(vec![part.to_vec()]);
        };
        let [low, high] = halves(part, dim, at);
        let mut boxes = self.boxes(&low)?;
        boxes.extend(self.boxes(&high)?);
        Ok(boxes)
    }
}

/// A box cut at a place of one dimension.
fn halves(part: &[Range<i64>], dim: usize, at: i64) -> [Region; 2] {
    let (mut low, mut high) = (part.to_vec(), part.to_vec());
    if let (Some(low), Some(high)) = (low.get_mut(dim), high.get_mut(dim)) {
        (low.end, high.start) = (at, at);
    }
    [low, high]
}

#[cfg(test)]
// A region has one range a dimension, and some tensors have one dimension.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use crate::oracle;
    use crate::tests::{check, parse};

    /// The boxes are disjoint, inside, complete, and their slices are theirs.
    fn covers(layout: &Layout, shape: &[i64], region: &[Range<i64>]) -> usize {
        let cover = layout.slice_cover(shape, region);
        let cover = cover.unwrap_or_else(|e| panic!("{layout} {shape:?} {region:?}: {e}"));
        let mut seen = std::collections::BTreeSet::new();
        for (part, slice) in &cover {
            let pairs: Vec<(i64, i64)> = part.iter().map(|r| (r.start, r.end)).collect();
            let extents: Vec<i64> = part.iter().map(|r| r.end - r.start).collect();
            assert_eq!(
                oracle::map(slice),
                oracle::region(layout, shape, &pairs),
                "{layout} {shape:?} {part:?}"
            );
            for x in 0..extents.iter().product() {
                let inside = oracle::unflatten(&extents, x);
                let at: Vec<i64> = inside.iter().zip(part).map(|(u, r)| u + r.start).collect();
                assert!(at.iter().zip(region).all(|(c, r)| r.contains(c)));
                assert!(seen.insert(at), "{layout} {shape:?} {region:?}: twice");
            }
        }
        let volume: i64 = region.iter().map(|r| r.end - r.start).product();
        assert_eq!(i64::try_from(seen.len()), Ok(volume));
        cover.len()
    }

    #[test]
    fn the_fewest_intervals() {
        let rows = parse("S[(4, 4) : (32, 1)] + R[2 : 256]");
        assert_eq!(covers(&rows, &[16], &[3..9]), 3);
        assert_eq!(covers(&rows, &[16], &[4..12]), 1);
        let steps = parse("S[(4, 4) : (32, 1)]");
        assert_eq!(covers(&steps, &[4, 4], &[0..3, 1..3]), 1);
    }

    #[test]
    fn long_ranges_are_cut_where_digits_carry() {
        let deep = parse("S[(8, 8, 8) : (1000, 100, 1)]");
        assert_eq!(covers(&deep, &[512], &[3..501]), 5);
        assert_eq!(covers(&deep, &[512], &[8..505]), 4);
        assert_eq!(covers(&deep, &[512], &[0..448]), 1);
        let huge = parse("S[(1048576, 1048576) : (2097152, 1)]");
        let cover = huge.slice_cover(&[1 << 40], &[5..(1 << 40) - 7]).unwrap();
        let lengths = cover.iter().map(|(part, _)| part[0].end - part[0].start);
        let row = 1 << 20;
        assert_eq!(
            lengths.collect::<Vec<_>>(),
            [row - 5, row * (row - 2), row - 7]
        );
    }

    #[test]
    fn shapes_that_do_not_group_are_cut_right_through() {
        let rows = parse("S[(2, 3) : (10, 1)]");
        assert!(rows.group(&[3, 2]).is_err());
        assert_eq!(covers(&rows, &[3, 2], &[0..3, 0..1]), 2);
        assert_eq!(covers(&rows, &[3, 2], &[0..3, 0..2]), 1);
        check(200, |c| {
            let layout = c.plain_layout();
            if layout.size() > 36 {
                return;
            }
            let shape = c.shape(layout.size());
            let region: Vec<_> = c.region(&shape).into_iter().map(|(b, e)| b..e).collect();
            let count = covers(&layout, &shape, &region);
            assert_eq!(count == 1, layout.slice(&shape, &region).is_ok());
        });
        let large = parse("S[(1000, 3) : (10, 1)]");
        let error = large.slice_cover(&[3, 1000], &[0..3, 0..999]).unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Unsupported);
    }
}
