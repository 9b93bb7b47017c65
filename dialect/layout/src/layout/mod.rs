//! The layout `L = (D, R, O)`, with a swizzle on the memory axis.

mod blocks;
mod canonical;
mod cover;
mod dynamic;
mod evaluate;
mod factor;
mod group;
mod intersect;
mod least_swizzle;
mod measure;
mod ranges;
mod reshape;
mod slice;
mod slice_dynamic;
mod split;
mod tile;

pub(crate) use canonical::steps_on;
pub(crate) use dynamic::long_enough;
pub(crate) use least_swizzle::layout_of;

pub use group::{Boundaries, Grouped, GroupedMany};

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::coord::Offset;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::swizzle::Swizzle;

/// Shard iters; eight live without the heap.
pub type Shard = SmallVec<[Iter; 8]>;
/// Replica iters; four live without the heap.
pub type Replica = SmallVec<[Iter; 8]>;

/// An Axe layout: `f(x) = { D(x) + r + O | r in R }`, xored by the swizzle on axis `m`.
///
/// `D` unflattens the logical index row-major into digits, one an iter, and adds `digit * stride` on
/// the iter's axis. `R` is a set of displacements, `O` one integer an axis. Values are valid by
/// construction: extents are at least 1, the number of indices, the number of replicas and every
/// coordinate fit 64 bits. `==` compares the structure; [`Layout::equivalent`](crate::Layout) compares
/// the maps.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    pub(crate) shard: Shard,
    pub(crate) replica: Replica,
    pub(crate) offset: Offset,
    pub(crate) swizzle: Option<Swizzle>,
}

impl Clone for Layout {
    /// A copy of the bytes: the derived clone copies iter by iter.
    #[inline]
    fn clone(&self) -> Self {
        self.with_shard_iters(Shard::from_slice(&self.shard))
    }
}

impl Layout {
    /// A layout from its parts.
    ///
    /// # Errors
    /// `Invalid` for an extent below 1 (a [`DYNAMIC`] one is allowed first in the shard); `Overflow`
    /// when the number of indices or replicas, or a coordinate or span, does not fit 64 bits.
    pub fn new(
        shard: impl IntoIterator<Item = Iter>,
        replica: impl IntoIterator<Item = Iter>,
        offset: Offset,
        swizzle: Option<Swizzle>,
    ) -> Result<Self> {
        let (shard, replica) = (shard.into_iter().collect(), replica.into_iter().collect());
        Self::from_parts(shard, replica, offset, swizzle)
    }

    /// [`Layout::new`] on lists that are there already.
    #[inline]
    pub(crate) fn from_parts(
        shard: Shard,
        replica: Replica,
        offset: Offset,
        swizzle: Option<Swizzle>,
    ) -> Result<Self> {
        let layout = Self {
            shard,
            replica,
            offset,
            swizzle,
        };
        layout.check_valid()?;
        Ok(layout)
    }

    /// A layout of shard iters alone.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn from_shard(shard: impl IntoIterator<Item = Iter>) -> Result<Self> {
        Self::new(shard, [], Offset::new(), None)
    }

    /// `shape` with one stride a dimension, on the memory axis, as NumPy and memref have it.
    ///
    /// # Errors
    /// `Invalid` when the ranks differ, else as [`Layout::new`].
    pub fn strided(shape: &[i64], strides: &[i64]) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::Rank {
                what: "strides of a strided layout",
                expected: shape.len(),
                got: strides.len(),
            });
        }
        let iters = shape.iter().zip(strides);
        Self::from_shard(iters.map(|(&extent, &stride)| Iter::new(extent, stride, Axis::M)))
    }

    /// Dense row-major storage of `shape` on the memory axis; the outermost extent may be [`DYNAMIC`].
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn row_major(shape: &[i64]) -> Result<Self> {
        let mut stride = 1_i64;
        let mut iters: Shard = SmallVec::with_capacity(shape.len());
        for (k, &extent) in shape.iter().enumerate().rev() {
            iters.push(Iter::new(extent, stride, Axis::M));
            if k > 0 {
                stride = stride
                    .checked_mul(extent)
                    .ok_or_else(|| Error::overflow("the size of a row-major layout"))?;
            }
        }
        iters.reverse();
        Self::from_shard(iters)
    }

    /// The layout of one element at the origin.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same layout with `replica` instead of its replicas.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_replica(mut self, replica: impl IntoIterator<Item = Iter>) -> Result<Self> {
        self.replica = replica.into_iter().collect();
        self.check_valid()?;
        Ok(self)
    }

    /// The same layout with `offset` instead of its offset.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_offset(mut self, offset: Offset) -> Result<Self> {
        self.offset = offset;
        self.check_valid()?;
        Ok(self)
    }

    /// The same layout with `swizzle` instead of its swizzle.
    #[must_use]
    pub fn with_swizzle(mut self, swizzle: Option<Swizzle>) -> Self {
        self.swizzle = swizzle;
        self
    }

    /// The shard iters `D`, outermost first.
    #[must_use]
    pub fn shard(&self) -> &[Iter] {
        &self.shard
    }

    /// The replica iters `R`.
    #[must_use]
    pub fn replica(&self) -> &[Iter] {
        &self.replica
    }

    /// The offset `O`.
    #[must_use]
    pub fn offset(&self) -> &Offset {
        &self.offset
    }

    /// The swizzle of the memory axis.
    #[must_use]
    pub fn swizzle(&self) -> Option<Swizzle> {
        self.swizzle
    }

    /// True when the outermost extent is [`DYNAMIC`].
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.shard.first().is_some_and(|i| i.extent == DYNAMIC)
    }

    /// `E_D`, the number of logical indices; [`DYNAMIC`] when the outermost extent is.
    #[must_use]
    pub fn size(&self) -> i64 {
        if self.is_dynamic() {
            return DYNAMIC;
        }
        // A validated layout's product fits.
        self.shard.iter().map(|i| i.extent).product()
    }

    /// The axes that occur in shard, replica or offset, sorted, each once.
    #[must_use]
    pub fn axes(&self) -> SmallVec<[Axis; 8]> {
        let iters = self.shard.iter().chain(&self.replica).map(|i| i.axis);
        let mut axes: SmallVec<[Axis; 8]> =
            iters.chain(self.offset.iter().map(|(a, _)| a)).collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }
}
