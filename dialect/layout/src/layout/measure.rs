//! Sizes: shapes that are admitted, spans, cosizes, strides.

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::iter::DYNAMIC;
use crate::layout::Layout;

/// Points that an exact answer may enumerate.
pub(crate) const ENUMERATION_LIMIT: i64 = 1 << 20;

/// The product of the extents of `shape`, each at least 1.
pub(crate) fn shape_size(shape: &[i64]) -> Result<i64> {
    let mut size = 1_i64;
    for &extent in shape {
        if extent < 1 {
            let got = if extent == DYNAMIC {
                "a dynamic one".to_owned()
            } else {
                extent.to_string()
            };
            return Err(Error::invalid(format!(
                "shape: expected extents of at least 1, got {got}"
            )));
        }
        size = size
            .checked_mul(extent)
            .ok_or_else(|| Error::overflow("the size of a shape"))?;
    }
    Ok(size)
}

/// The spans of a layout before its swizzle, each computed when it is asked for the first time.
pub(crate) struct Spans<'a> {
    of: &'a Layout,
    known: SmallVec<[(Axis, i64); 4]>,
}

impl<'a> Spans<'a> {
    #[inline]
    pub(crate) fn new(of: &'a Layout) -> Self {
        Self {
            of,
            known: SmallVec::new(),
        }
    }

    /// `1 + sum (e-1)*|s|` over the iters on `axis`.
    #[inline]
    pub(crate) fn get(&mut self, axis: Axis) -> i64 {
        if let Some(&(_, span)) = self.known.iter().find(|(a, _)| *a == axis) {
            return span;
        }
        let mut span = 1_i64;
        for iters in [&self.of.shard[..], &self.of.replica[..]] {
            for iter in iters.iter().filter(|i| i.axis == axis && i.extent > 1) {
                // The span of a valid layout fits.
                let reach = (iter.extent - 1).wrapping_mul(iter.stride.wrapping_abs());
                span = span.wrapping_add(reach);
            }
        }
        self.known.push((axis, span));
        span
    }
}

impl Layout {
    /// Whether `shape` is admitted: its size is the size of the domain.
    ///
    /// A dynamic layout admits shapes whose first extent is [`DYNAMIC`] when their static rest divides
    /// its own, so that every number of outermost steps is a whole number of rows of `shape`.
    #[must_use]
    pub fn admits(&self, shape: &[i64]) -> bool {
        let (Some((&DYNAMIC, rest)), true) = (shape.split_first(), self.is_dynamic()) else {
            return !self.is_dynamic() && shape_size(shape).is_ok_and(|size| size == self.size());
        };
        let inner: i64 = self.shard.iter().skip(1).map(|i| i.extent).product();
        shape_size(rest).is_ok_and(|size| inner % size == 0)
    }

    /// `Ok` when `shape` is admitted, else an error that names both sizes.
    pub(crate) fn check_shape(&self, shape: &[i64], what: &'static str) -> Result<()> {
        if self.admits(shape) {
            return Ok(());
        }
        let got = match shape.split_first() {
            Some((&DYNAMIC, rest)) => shape_size(rest).map(|_| DYNAMIC)?,
            _ => shape_size(shape)?,
        };
        if self.is_dynamic() || got == DYNAMIC {
            return Err(Error::invalid(format!(
                "{what}: a dynamic outermost extent must be first in both layout and shape, and the \
                 rest of the shape must divide the rest of the layout"
            )));
        }
        Err(Error::Size {
            what,
            expected: self.size(),
            got,
        })
    }

    /// `Ok` unless the outermost extent is dynamic.
    pub(crate) fn check_static(&self, what: &'static str) -> Result<()> {
        if self.is_dynamic() {
            return Err(Error::unsupported(format!(
                "{what}: the outermost extent is dynamic; fix it first"
            )));
        }
        Ok(())
    }

    /// The smallest and the largest coordinate on `axis`, before the swizzle.
    pub(crate) fn raw_range(&self, axis: Axis) -> (i64, i64) {
        let offset = self.offset.get(axis);
        let iters = self.shard.iter().chain(&self.replica);
        // Both ends fit for every valid layout.
        iters
            .filter(|i| i.axis == axis && i.extent != DYNAMIC)
            .map(|i| (i.extent - 1).wrapping_mul(i.stride))
            .fold((offset, offset), |(low, high), last| {
                (
                    low.wrapping_add(last.min(0)),
                    high.wrapping_add(last.max(0)),
                )
            })
    }

    /// The span on `axis` before the swizzle: `1 + sum (e-1)*|s|`.
    pub(crate) fn raw_span(&self, axis: Axis) -> i64 {
        let (low, high) = self.raw_range(axis);
        high.wrapping_sub(low).wrapping_add(1)
    }

    fn check_bounded(&self, axis: Axis) -> Result<()> {
        match self.shard.first() {
            Some(i) if i.extent == DYNAMIC && i.axis == axis && i.stride != 0 => {
                Err(Error::unsupported(format!(
                    "the extent on axis {axis}: the outermost extent is dynamic; fix it first"
                )))
            }
            _ => Ok(()),
        }
    }

    /// `max - min + 1` of the map on `axis`; 1 where the axis does not occur (definition 2.5).
    ///
    /// # Errors
    /// `Unsupported` when a dynamic extent moves along `axis`, or on a swizzled memory axis with more
    /// than 2^20 points.
    pub fn span(&self, axis: Axis) -> Result<i64> {
        self.check_bounded(axis)?;
        match self.effective_swizzle() {
            Some(_) if axis == Axis::M => {
                let (low, high) = self.swizzled_range()?;
                let span = high.checked_sub(low).and_then(|d| d.checked_add(1));
                span.ok_or_else(|| Error::overflow("a span"))
            }
            _ => Ok(self.raw_span(axis)),
        }
    }

    fn swizzled_range(&self) -> Result<(i64, i64)> {
        let mut ends: Option<(i64, i64)> = None;
        self.each_address(|address| {
            let (low, high) = ends.unwrap_or((address, address));
            ends = Some((low.min(address), high.max(address)));
        })?;
        Ok(ends.unwrap_or((0, 0)))
    }

    /// Calls `visit` with every address on `m`, swizzled, possibly several times.
    fn each_address(&self, mut visit: impl FnMut(i64)) -> Result<()> {
        let iters = self.shard.iter().chain(&self.replica);
        let on_m: Vec<(i64, i64)> = iters
            .filter(|i| i.axis == Axis::M && i.stride != 0)
            .map(|i| (i.extent, i.stride))
            .collect();
        let count = on_m
            .iter()
            .try_fold(1_i64, |n, (e, _)| n.checked_mul(*e))
            .filter(|&n| n <= ENUMERATION_LIMIT);
        let Some(count) = count else {
            return Err(Error::unsupported(
                "the span of a swizzled layout with more than 2^20 points",
            ));
        };
        for x in 0..count {
            let mut rest = x;
            let mut address = self.offset.get(Axis::M);
            for (extent, stride) in &on_m {
                address += rest % extent * stride;
                rest /= extent;
            }
            visit(self.swizzle.map_or(address, |s| s.apply(address)));
        }
        Ok(())
    }

    /// The number of coordinates on `axis` counted from 0 that the map needs, offset included: a
    /// buffer of so many elements holds everything. With a swizzle the last block is counted whole as
    /// far as the swizzle may move an element inside it.
    ///
    /// # Errors
    /// `Invalid` when a coordinate is negative; `Unsupported` when a dynamic extent moves along
    /// `axis`; `Overflow`.
    pub fn cosize(&self, axis: Axis) -> Result<i64> {
        self.check_bounded(axis)?;
        let (low, high) = self.raw_range(axis);
        if low < 0 {
            return Err(Error::invalid(format!(
                "cosize: the layout reaches down to {low} on axis {axis}, below 0"
            )));
        }
        let overflow = || Error::overflow("a cosize");
        let count = high.checked_add(1).ok_or_else(overflow)?;
        match self.effective_swizzle() {
            Some(swizzle) if axis == Axis::M => {
                // Bits from `unit` upwards stay as they are.
                let low_bits = swizzle.base() + swizzle.bits();
                let unit = if swizzle.inner() {
                    1_i64 << low_bits
                } else {
                    swizzle.period()
                };
                let blocks = high / unit + 1;
                blocks.checked_mul(unit).ok_or_else(overflow)
            }
            _ => Ok(count),
        }
    }

    /// One stride a dimension of `shape`, for layouts that are plain strided storage on `m`: the
    /// offset is not included.
    ///
    /// # Errors
    /// `Invalid` when `shape` is not admitted; `None` with the reason when the layout has a swizzle,
    /// replicas, another axis, or a dimension that no single stride describes.
    pub fn strides(&self, shape: &[i64]) -> Result<Vec<i64>> {
        self.check_shape(shape, "shape of strides")?;
        if self.effective_swizzle().is_some() {
            return Err(Error::none("no strides: the layout is swizzled"));
        }
        let canonical = self.canonicalize();
        if !canonical.replica.is_empty() {
            return Err(Error::none("no strides: the layout has replicas"));
        }
        let grouped = canonical.group(shape)?;
        let iters = grouped.layout.shard();
        let mut strides = vec![0; shape.len()];
        for (k, (stride, ends)) in strides
            .iter_mut()
            .zip(grouped.seps.windows(2))
            .enumerate()
            .rev()
        {
            *stride = match iters.get(ends[0]..ends[1]) {
                Some([]) => continue,
                Some([iter]) if iter.axis == Axis::M => iter.stride,
                Some([iter]) => {
                    let axis = iter.axis;
                    return Err(Error::none(format!(
                        "no strides: dimension {k} moves along axis {axis}"
                    )));
                }
                _ => {
                    return Err(Error::none(format!(
                        "no strides: dimension {k} needs several iters"
                    )));
                }
            };
        }
        fill_unit_strides(shape, &mut strides);
        Ok(strides)
    }
}

/// Extents of 1 get the stride that dense storage would give them; it is never used.
fn fill_unit_strides(shape: &[i64], strides: &mut [i64]) {
    let mut next = 1_i64;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        if extent == 1 {
            *stride = next;
        }
        next = stride.saturating_mul(extent.max(1));
    }
}
