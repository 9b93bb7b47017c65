//! Permutations by which a few neighbours on one side come to lie apart on the other: pixel shuffles, and images whose channels are the
//! innermost dimension. A thread has vectors of both sides in its registers, where it permutes their elements; nothing goes through
//! shared memory, whose square tiles such short rows would fill in part.

use super::plan::Permutation;
use crate::facts::chip::ACCESS_BYTES;
use crate::planner::layouts::layout;
use crate::planner::row_tile::RowTile;
use axe_layout::{Layout, Result};
use axe_passes::ir::DYNAMIC;

/// Elements of the short dimensions, at most: beyond them a thread's vectors of the side that they are innermost on are too far apart.
const MOST: i64 = 8;
/// Threads of a CTA.
const THREADS: i64 = 128;
/// Bytes of a thread, unless its vectors have more.
const KEPT_BYTES: i64 = 64;
/// Bytes of the shorter of two vectors, at least: a warp moves two lines at once.
const LEAST_BYTES: i64 = 8;

/// Such a permutation, by dimensions of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Few {
    /// The dimension that is innermost on the side where the short ones are not.
    wide: usize,
    /// Elements of it that a thread has next to each other.
    vector: i64,
    /// Threads along it.
    along: i64,
    /// The short dimensions, innermost first, with their extents.
    short: Vec<(usize, i64)>,
    /// Another dimension, the threads along it, and how many of its elements each has.
    other: Option<(usize, [i64; 2])>,
    /// Whether the short dimensions are innermost in the result, not in the source.
    gathers: bool,
}

impl Few {
    /// Reads a permutation of elements of so many bytes; none where neither side ends in a few elements.
    pub(super) fn of(plan: &Permutation, bytes: i64) -> Option<Self> {
        let [by_result, by_source] = plan.inner_first();
        let (gathers, (wide, short)) = match between(plan, &by_result, &by_source) {
            Some(found) => (true, found),
            None => (false, between(plan, &by_source, &by_result)?),
        };
        let elements: i64 = short.iter().map(|(_, extent)| extent).product();
        let most = (ACCESS_BYTES / bytes.max(1)).max(1);
        let vector = match most % elements {
            0 => (most / elements).max(LEAST_BYTES / bytes.max(1)).max(1),
            _ => most,
        };
        let extent = plan
            .to
            .get(wide)
            .copied()
            .filter(|extent| *extent != DYNAMIC && extent % vector == 0)?;
        let taken = |dim: usize| dim == wide || short.iter().any(|(own, _)| *own == dim);
        let length = |dim: &usize| match plan.to.get(*dim) {
            Some(&DYNAMIC) => i64::MAX,
            extent => extent.copied().unwrap_or(1),
        };
        let other = (0..plan.to.len())
            .filter(|dim| !taken(*dim))
            .max_by_key(length);
        let lanes = |extent: i64, most: i64| {
            let threads = [128, 64, 32, 16, 8, 4, 2, 1];
            threads
                .into_iter()
                .find(|threads| *threads <= extent.min(most))
                .unwrap_or(1)
        };
        let along = match other {
            Some(_) => lanes(extent / vector, THREADS),
            None => THREADS,
        };
        let other = other.map(|dim| {
            let each = (KEPT_BYTES / (vector * elements * bytes).max(1)).max(1);
            let across = THREADS / along;
            (dim, [across, lanes(length(&dim) / across, each)])
        });
        Some(Self {
            wide,
            vector,
            along,
            short,
            other,
            gathers,
        })
    }

    /// The extents of a CTA's box in the result.
    pub(super) fn boxes(&self, rank: usize) -> Vec<i64> {
        let extent = |dim| match self.other {
            _ if dim == self.wide => self.along * self.vector,
            Some((other, [threads, each])) if other == dim => threads * each,
            _ => self
                .short
                .iter()
                .find(|(own, _)| *own == dim)
                .map_or(1, |(_, extent)| *extent),
        };
        (0..rank).map(extent).collect()
    }

    /// The threads, and the elements of the wide dimension that they have.
    pub(super) const fn tile(&self) -> RowTile {
        let [across, each] = match self.other {
            Some((_, counts)) => counts,
            None => [1, 1],
        };
        RowTile {
            rows: across * each,
            columns: self.along * self.vector,
            along: self.along,
            vector: self.vector,
            across,
        }
    }

    /// The box in registers, in the order of the source and in that of the result: elements that are neighbours there are in
    /// consecutive registers. `dims` has the box's dimensions, by numbers of the result's, outermost first.
    pub(super) fn layout(&self, dims: &[usize], of_result: bool) -> Result<Layout> {
        let elements: i64 = self.short.iter().map(|(_, extent)| extent).product();
        // On one side the short dimensions are the innermost, on the other the wide one.
        let (wide, mut stride) = match of_result == self.gathers {
            true => (elements, 1),
            false => (1, self.vector),
        };
        let mut short = Vec::new();
        for (dim, extent) in &self.short {
            short.push((*dim, *extent, stride));
            stride *= extent;
        }
        let mut parts = Vec::new();
        for dim in dims {
            if *dim == self.wide {
                parts.push((self.along, 1, "thread"));
                parts.push((self.vector, wide, "reg"));
            } else if let Some((_, extent, stride)) = short.iter().find(|(own, ..)| own == dim) {
                parts.push((*extent, *stride, "reg"));
            } else if let Some((_, [across, each])) = self.other.filter(|(other, _)| other == dim) {
                parts.push((each, self.vector * elements, "reg"));
                parts.push((across, self.along, "thread"));
            }
        }
        layout(&parts, &[])
    }
}

/// The dimension that is innermost on one side, and those that are inside it on the other, where they are few elements.
fn between(
    plan: &Permutation,
    on: &[usize],
    other: &[usize],
) -> Option<(usize, Vec<(usize, i64)>)> {
    let wide = *other.first()?;
    let inside: Vec<_> = on.iter().take_while(|dim| **dim != wide).copied().collect();
    let extents = inside.iter().map(|dim| plan.to.get(*dim).copied());
    let extents = extents.collect::<Option<Vec<_>>>()?;
    let known = extents.iter().all(|extent| (1..=MOST).contains(extent));
    let elements = extents
        .iter()
        .fold(1i64, |all, extent| all.saturating_mul(*extent));
    (known && (2..=MOST).contains(&elements))
        .then(|| (wide, inside.into_iter().zip(extents).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], permutation: &[i64], bytes: i64) -> Permutation {
        Permutation::of(shape, permutation, bytes).unwrap()
    }

    #[test]
    fn a_pixel_shuffle_moves_vectors_of_both_sides() {
        // The result's dimensions: images, rows, rows of a pixel, columns, columns of a pixel.
        let shuffle = plan(&[64, 16, 2, 2, 128, 128], &[0, 1, 4, 2, 5, 3], 2);
        let few = shuffle.few.clone().unwrap();
        assert!(few.gathers);
        assert_eq!((few.vector, few.along), (4, 32));
        assert_eq!(few.short, [(4, 2)]);
        assert_eq!(shuffle.to, [1024, 128, 2, 128, 2]);
        assert_eq!(shuffle.boxes, [16, 1, 1, 128, 2]);
        let back = plan(&[64, 16, 128, 2, 128, 2], &[0, 1, 3, 5, 2, 4], 2);
        let few = back.few.clone().unwrap();
        assert!(!few.gathers);
        assert_eq!((few.vector, few.along), (4, 32));
        assert_eq!(back.boxes.iter().product::<i64>(), 16 * 256);
    }

    #[test]
    fn channels_of_images_are_few() {
        let planes = plan(&[50_176, 3], &[1, 0], 2);
        let few = planes.few.clone().unwrap();
        assert_eq!((few.vector, few.along, few.other), (8, 128, None));
        assert_eq!(planes.boxes, [3, 1024]);
        // Sixteen channels fill a quarter of a row of a square tile.
        assert!(plan(&[50_176, 16], &[1, 0], 2).few.is_none());
        // Rows that vectors do not divide.
        assert!(plan(&[50_177, 3], &[1, 0], 2).few.is_none());
        assert!(plan(&[DYNAMIC, 3], &[1, 0], 2).few.is_none());
    }

    #[test]
    fn neighbours_of_either_side_are_in_consecutive_registers() {
        let few = plan(&[4, 8, 2, 64], &[0, 1, 3, 2], 2).few.unwrap();
        // The source's dimensions by numbers of the result's: a batch of 32, pairs, 64 columns.
        let source = few.layout(&[0, 2, 1], false).unwrap();
        let result = few.layout(&[0, 1, 2], true).unwrap();
        let register = |layout: &Layout, at: i64| {
            let point = &layout.points(at).unwrap()[0];
            point.get(axe_layout::Axis::new("reg").unwrap())
        };
        for at in 0..few.vector {
            assert_eq!(register(&source, at), at);
        }
        for at in 0..few.vector * 2 {
            assert_eq!(register(&result, at), at);
        }
    }
}
