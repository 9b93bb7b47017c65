//! A permutation as data: its dimensions, and the box of them that a CTA moves.

use super::unaligned::Unaligned;
use super::vectors::Few;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES};
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, elementwise_tile, power_of_two, tile_of_vectors, vector};
use crate::vocabulary::WARP;
use axe_passes::PassError;
use axe_passes::PassResult;
use axe_passes::ir::{DYNAMIC, Op};
use melior::ir::operation::OperationLike;

/// Rows and columns of the tiles that are transposed through shared memory.
const SQUARE: i64 = 64;
/// The same of large tensors, and the threads of a CTA then. Measured: 8192 x 8192 of f16 takes 67.5 us, 73.4 in tiles of 64, a copy 65.5.
/// Words are moved by as many threads in tiles of 64, too: 8192 x 4096 of f32 takes 66.5 us, 69.4 by 128 threads, 33,520 x 1000 70.4 and 83.7.
const LARGE: (i64, i64) = (128, 512);
/// Bytes of a row of the larger tiles, at most, where they are moved in vectors. Of words that are moved one by one, 33,521 x 1001 take
/// 79.2 us in the larger tiles, 94.2 in those of 64, 91.2 by 512 threads.
const LARGE_BYTES: i64 = 256;
/// Tiles that are enough for all multiprocessors several times.
const MANY_TILES: i64 = 1024;
/// The part of a tensor's elements that the larger tiles may have beyond it, more than the smaller ones.
const BEYOND: i64 = 16;
/// Bytes of a row of a tile that stays along rows, at most: two or more lines of 128 bytes.
const ROW_BYTES: i64 = 512;
/// A permutation of dimensions, as kernels see it: without extents of 1, and with dimensions that stay neighbours as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::planner::single) struct Permutation {
    /// Extents of the source.
    pub(super) from: Vec<i64>,
    /// Extents of the result.
    pub(super) to: Vec<i64>,
    /// For each dimension of the result, that of the source.
    order: Vec<usize>,
    /// Extents of a CTA's box, of the result's dimensions.
    pub(super) boxes: Vec<i64>,
    /// Rows and columns of the tile that goes through shared memory.
    pub(super) side: i64,
    /// How far apart the box's elements are in that tile, by the result's dimensions: rows of the source's innermost dimensions, each of
    /// so many elements.
    pub(super) strides: Vec<i64>,
    pub(super) pitch: i64,
    /// The box in registers: its elements in the order of either side, in rows of the innermost dimensions there.
    pub(in crate::planner::single) tile: RowTile,
    /// Whether each thread permutes the elements that it has ([`super::vectors`]).
    pub(super) few: Option<Few>,
    /// Whether vectors of both sides are parts of no row ([`super::unaligned`]).
    pub(super) unaligned: Option<Unaligned>,
}

impl Permutation {
    /// The plan of a transpose of elements of so many bytes.
    ///
    /// # Errors
    /// At an operator whose permutation is none of its source's dimensions.
    pub(in crate::planner::single) fn new<'c>(
        op: Op<'c>,
        shape: &[i64],
        permutation: &[i64],
        bytes: i64,
    ) -> PassResult<'c, Self> {
        Self::of(shape, permutation, bytes)
            .ok_or_else(|| PassError::new(op.location(), "its permutation cannot be read"))
    }

    pub(super) fn of(shape: &[i64], permutation: &[i64], bytes: i64) -> Option<Self> {
        let order: Vec<usize> = permutation
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect::<Option<_>>()?;
        let kept: Vec<usize> = (0..shape.len()).filter(|dim| shape[*dim] != 1).collect();
        let rank = |dim: usize| kept.iter().position(|kept| *kept == dim);
        let from: Vec<i64> = kept.iter().map(|dim| shape[*dim]).collect();
        let order: Vec<usize> = order.into_iter().filter_map(rank).collect();
        let (mut from, mut order) = merged(&from, &order);
        // A matrix at least, so that there is a tile.
        while from.len() < 2 {
            from.insert(0, 1);
            order = std::iter::once(0)
                .chain(order.iter().map(|dim| dim + 1))
                .collect();
        }
        let to: Vec<i64> = order
            .iter()
            .map(|dim| from.get(*dim).copied())
            .collect::<Option<_>>()?;
        let mut plan = Self {
            boxes: vec![1; to.len()],
            strides: vec![1; to.len()],
            side: SQUARE,
            pitch: SQUARE,
            from,
            to,
            order,
            tile: elementwise_tile(SQUARE, bytes),
            few: None,
            unaligned: None,
        };
        if plan.keeps_rows() {
            plan.take_rows(bytes);
        } else if let Some(few) = Few::of(&plan, bytes) {
            plan.boxes = few.boxes(plan.to.len());
            plan.tile = few.tile();
            plan.few = Some(few);
        } else if let Some(unaligned) = Unaligned::of(&plan, bytes) {
            plan.tile = unaligned.tile();
            plan.unaligned = Some(unaligned);
        } else {
            plan.take_square(bytes);
        }
        Some(plan)
    }

    /// Whether the innermost dimension stays in its place.
    pub(super) fn keeps_rows(&self) -> bool {
        self.order.last() == Some(&self.order.len().saturating_sub(1))
    }

    /// For each dimension of the result, that of the source.
    pub(super) fn order(&self) -> Vec<i64> {
        let dims = self.order.iter();
        dims.filter_map(|dim| i64::try_from(*dim).ok()).collect()
    }

    /// Rows of the innermost dimension, and as many along the longest other one as fill the threads.
    fn take_rows(&mut self, bytes: i64) {
        let last = self.to.len().saturating_sub(1);
        let length = |dim: &usize| match self.to.get(*dim) {
            Some(&DYNAMIC) => i64::MAX,
            extent => extent.copied().unwrap_or(1),
        };
        let other = (0..last).max_by_key(length).unwrap_or(0);
        let most = (ROW_BYTES / bytes.max(1)).max(1);
        let columns = power_of_two(length(&last).min(most));
        let tile = tile_of_vectors(columns, vector(length(&last), bytes), bytes);
        let rows = power_of_two(length(&other).min(SQUARE * SQUARE / columns));
        self.tile = RowTile {
            rows: rows.max(tile.across),
            ..tile
        };
        self.boxes[last] = self.tile.columns;
        self.boxes[other] = self.tile.rows;
    }

    /// The result's dimensions from the innermost one outwards, as the result has them and as the source has.
    pub(super) fn inner_first(&self) -> [Vec<usize>; 2] {
        let rank = self.to.len();
        let in_result = |dim: usize| self.order.iter().position(|of| *of == dim);
        let by_source = (0..rank).rev().filter_map(in_result);
        [(0..rank).rev().collect(), by_source.collect()]
    }

    /// As much of the dimensions that are innermost before and after as has rows of as many elements on both sides.
    fn take_square(&mut self, bytes: i64) {
        let by_element = self.is_by_element(bytes);
        let (large, mut threads) = LARGE;
        if bytes < BANK_BYTES {
            threads = elementwise_tile(SQUARE, bytes).threads();
        }
        self.boxes = self.square(SQUARE).0;
        let may_be = match by_element {
            true => bytes == BANK_BYTES,
            false => bytes * large <= LARGE_BYTES,
        };
        if may_be && self.fills_large() {
            (self.side, threads) = LARGE;
        }
        (self.boxes, self.strides) = self.square(self.side);
        self.pitch = self.side;
        let vector = (ACCESS_BYTES / bytes.max(1)).max(1);
        let (along, vector) = match by_element {
            true => (WARP, 1),
            // A whole row: 33,520 x 1000 of f32 takes 83.6 us, 91.9 with half of one.
            false => ((self.side / vector).min(WARP), vector),
        };
        self.tile = RowTile {
            rows: self.side,
            columns: self.side,
            along,
            vector,
            across: threads / along,
        };
        if by_element {
            self.pitch = self.side + BANK_BYTES / bytes;
            let of_rows = self
                .strides
                .iter_mut()
                .filter(|stride| **stride >= self.side);
            of_rows.for_each(|stride| *stride = *stride / self.side * self.pitch);
        }
    }

    /// Whether larger tiles are many, and have few elements more beyond the tensor.
    fn fills_large(&self) -> bool {
        let (side, _) = LARGE;
        let tiles = |boxes: &[i64]| {
            let along = self.to.iter().zip(boxes);
            along.fold(1i64, |all, (extent, part)| {
                all.saturating_mul(count(*extent, *part))
            })
        };
        let (small, large) = (tiles(&self.boxes), tiles(&self.square(side).0));
        let [of_small, of_large] = [SQUARE, side].map(|side| side * side);
        let within = small.saturating_mul(of_small);
        !self.to.contains(&DYNAMIC)
            && large >= MANY_TILES
            && large.saturating_mul(of_large) <= within.saturating_add(within / BEYOND)
    }

    /// The box of a square tile, and how far apart its elements are in it.
    fn square(&self, side: i64) -> (Vec<i64>, Vec<i64>) {
        let [by_result, by_source] = self.inner_first();
        let read = by_source.first().copied().unwrap_or(0);
        let written = self.filled(side, &by_result, &[read]);
        let taken: Vec<usize> = written.iter().map(|(dim, _)| *dim).collect();
        let read = self.filled(side, &by_source, &taken);
        let (mut boxes, mut strides) = (vec![1; self.to.len()], vec![1; self.to.len()]);
        let mut next = 1;
        for (dim, extent) in read.into_iter().chain(written) {
            (boxes[dim], strides[dim]) = (extent, next);
            next *= extent;
        }
        (boxes, strides)
    }

    /// Whether rows of a side begin anywhere: lanes then move neighbours, one element each. Words of several elements are no words of memory
    /// where these begin inside of one; of whole words, lanes that had vectors of them would move what is apart. Measured: 33,521 x 1001 of f32
    /// took 213 us so.
    fn is_by_element(&self, bytes: i64) -> bool {
        let multiple = match bytes {
            BANK_BYTES => ACCESS_BYTES,
            _ => BANK_BYTES,
        };
        let whole = |rows: &[i64]| match rows.last() {
            Some(&DYNAMIC) | None => false,
            Some(columns) => columns.saturating_mul(bytes) % multiple == 0,
        };
        bytes <= BANK_BYTES && (!whole(&self.from) || !whole(&self.to))
    }

    /// Dimensions and their extents in a box of `side` elements, from the innermost one outwards: whole ones, then a
    /// part of one, none of them one of `others`.
    fn filled(&self, side: i64, dims: &[usize], others: &[usize]) -> Vec<(usize, i64)> {
        let free = dims.iter().take_while(|dim| !others.contains(dim));
        let (mut boxes, mut left): (Vec<(usize, i64)>, i64) = (Vec::new(), side);
        for &dim in free {
            let extent = self.to.get(dim).copied().unwrap_or(1);
            let whole = extent != DYNAMIC && extent < left && left % extent == 0;
            boxes.push((dim, if whole { extent } else { left }));
            left = if whole { left / extent } else { 1 };
            if left == 1 {
                return boxes;
            }
        }
        // All of them are less than a tile, whose elements beyond them are left out.
        if let Some((_, outermost)) = boxes.last_mut() {
            *outermost *= left;
        }
        boxes
    }

    /// Tiles along each dimension of the result.
    pub(super) fn counts(&self) -> Vec<i64> {
        let along = |(extent, part): (&i64, &i64)| match *extent {
            DYNAMIC => DYNAMIC,
            extent => count(extent, *part),
        };
        self.to.iter().zip(&self.boxes).map(along).collect()
    }

    /// What belongs to a dimension of the result, by dimensions of the source.
    pub(super) fn at_source<T: Copy>(&self, of: &[T]) -> Vec<T> {
        let dims = 0..self.order.len();
        dims.filter_map(|dim| self.order.iter().position(|from| *from == dim))
            .filter_map(|at| of.get(at).copied())
            .collect()
    }
}

/// The same permutation with dimensions that are neighbours on both sides as one.
fn merged(from: &[i64], order: &[usize]) -> (Vec<i64>, Vec<usize>) {
    let joins = |pair: &[usize]| match *pair {
        [a, b] => b == a + 1 && from[a] != DYNAMIC && from[b] != DYNAMIC,
        _ => false,
    };
    let joined: Vec<usize> = (order.windows(2).filter(|pair| joins(pair)))
        .filter_map(|pair| pair.get(1).copied())
        .collect();
    let first = |dim: &usize| !joined.contains(dim);
    let mut extents: Vec<i64> = Vec::new();
    for (dim, &extent) in from.iter().enumerate() {
        match extents.last_mut() {
            Some(last) if !first(&dim) => *last = last.saturating_mul(extent),
            _ => extents.push(extent),
        }
    }
    let number = |dim: usize| (0..dim).filter(first).count();
    let order = order.iter().filter(|dim| first(dim));
    (extents, order.map(|dim| number(*dim)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], permutation: &[i64]) -> Permutation {
        Permutation::of(shape, permutation, 2).unwrap()
    }

    #[test]
    fn boxes_have_rows_of_both_sides() {
        let plain = plan(&[200, 120], &[1, 0]);
        assert!(!plain.keeps_rows());
        assert_eq!((plain.boxes, plain.strides), (vec![64, 64], vec![1, 64]));
        let cycle = plan(&[3, 5, 7], &[2, 0, 1]);
        assert_eq!(cycle.to, [7, 15]);
        assert_eq!(cycle.at_source(&[70, 30]), [30, 70]);
        let short = plan(&[32, 16, 64, 32, 64], &[0, 4, 2, 1, 3]);
        assert_eq!(short.to, [32, 64, 64, 16, 32]);
        assert_eq!(short.boxes, [1, 64, 1, 2, 32]);
        assert_eq!(short.strides, [1, 1, 1, 2048, 64]);
        assert_eq!(short.counts(), [32, 1, 64, 8, 1]);
        let small = plan(&[3, 2, 5], &[2, 1, 0]);
        assert_eq!(small.boxes.iter().product::<i64>(), SQUARE * SQUARE);
    }

    #[test]
    fn rows_that_begin_anywhere_are_moved_by_element() {
        for (shape, along, pitch) in [
            ([200, 120], 8, 64),
            ([200, 122], 8, 64),
            ([200, 121], 32, 66),
            ([201, 120], 32, 66),
            ([DYNAMIC, 120], 32, 66),
        ] {
            let plan = plan(&shape, &[1, 0]);
            assert_eq!(plan.unaligned, None, "{shape:?}");
            assert_eq!((plan.tile.along, plan.pitch), (along, pitch), "{shape:?}");
            assert_eq!(plan.strides, [1, pitch]);
            assert_eq!(plan.tile.threads(), 128);
        }
    }

    #[test]
    fn large_tensors_have_large_tiles() {
        for (shape, order, bytes, side) in [
            (&[8192, 8192][..], &[1, 0][..], 2, 128),
            (&[4096, 4096], &[1, 0], 2, 128),
            (&[4096, 4096], &[1, 0], 1, 128),
            (&[4096, 4096], &[1, 0], 4, 64),
            (&[4096, 4096], &[1, 0], 8, 64),
            (&[2048, 4096], &[1, 0], 2, 64),
            (&[64, 96, 128, 96], &[2, 3, 0, 1], 2, 128),
            (&[262_144, 64], &[1, 0], 2, 64),
        ] {
            let plan = Permutation::of(shape, order, bytes).unwrap();
            assert_eq!((plan.side, plan.pitch), (side, side), "{shape:?} {bytes}");
            assert_eq!(plan.boxes, [side, side], "{shape:?} {bytes}");
            let many = side == 128 || bytes >= BANK_BYTES;
            assert_eq!(plan.tile.threads() == 512, many, "{shape:?} {bytes}");
            assert_eq!(plan.tile.rows % plan.tile.across, 0);
        }
    }

    #[test]
    fn large_matrices_of_unaligned_rows_are_moved_in_vectors() {
        let of = |shape: &[i64], order: &[i64], bytes| {
            let plan = Permutation::of(shape, order, bytes).unwrap();
            plan.unaligned.is_some()
        };
        for shape in [[67_041, 1001], [1001, 67_041], [65_537, 1000], [160, 129]] {
            assert!(of(&shape, &[1, 0], 2), "{shape:?}");
            assert!(!of(&shape, &[1, 0], 4), "{shape:?}");
        }
        assert!(of(&[8192, 8194], &[1, 0], 2));
        for shape in [[8192, 8192], [8192, 8200], [159, 1001], [1001, 127]] {
            assert!(!of(&shape, &[1, 0], 2), "{shape:?}");
        }
        assert!(of(&[4, 1024, 1023], &[0, 2, 1], 2));
        assert!(!of(&[4, 1023, 1023], &[0, 2, 1], 2));
        assert!(!of(&[4, 1024, 1023], &[1, 2, 0], 2));
    }

    #[test]
    fn dimensions_that_stay_neighbours_are_one() {
        let pairs = plan(&[64, 96, 128, 96], &[2, 3, 0, 1]);
        assert_eq!(
            (pairs.from, pairs.to),
            (vec![6144, 12_288], vec![12_288, 6144])
        );
        let dynamic = plan(&[DYNAMIC, 4, 6, 8], &[2, 0, 1, 3]);
        assert_eq!(dynamic.from, [DYNAMIC, 4, 6, 8]);
        let same = plan(&[4, 6, 8], &[0, 1, 2]);
        assert_eq!((same.from, same.to), (vec![1, 192], vec![1, 192]));
    }

    #[test]
    fn rows_that_stay_are_moved_whole() {
        let heads = plan(&[2, 64, 1, 4, 32], &[0, 3, 2, 1, 4]);
        assert_eq!(
            (heads.from.clone(), heads.to.clone()),
            (vec![2, 64, 4, 32], vec![2, 4, 64, 32])
        );
        assert!(heads.keeps_rows());
        assert_eq!(heads.boxes, [1, 1, 64, 32]);
        let back = plan(&[2, 8, 2048, 128], &[0, 2, 1, 3]);
        assert_eq!(
            (back.to, back.boxes),
            (vec![2, 2048, 8, 128], vec![1, 32, 1, 128])
        );
    }
}
