//! Copies by the tensor memory accelerator: a descriptor of global memory, and boxes of it.
//!
//! The plan reads two layouts (paper, section 3.4 and appendix F). Each iter of the global memory's
//! dimensions is a dimension of the descriptor. The shared tile is grouped by the same digits, and the box
//! is the largest part of it that the accelerator can write: its innermost digit is contiguous, and every
//! further dimension follows densely. What is left of the shared layout, whichever way its digits are
//! strided, is a direct sum of that box with a loop over boxes.

mod boxes;
mod check;
mod digits;
mod map;
mod swizzle;

pub use boxes::{Coordinate, TmaBox};
pub use map::TensorMap;
pub use swizzle::TmaSwizzle;

use super::Decline;
use axe_layout::{Axis, Iter, Layout};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The mark of a global memory's outermost extent that is known at run time.
const DYNAMIC: i64 = i64::MIN;
/// Bytes that divide strides, the base address and a box's row (`globalStrides`, `globalAddress`).
pub const GRANULE: i64 = 16;

/// Global memory, as a kernel's argument or a view of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Extents; the outermost is `i64::MIN` when it is known at run time.
    pub shape: Vec<i64>,
    /// The iters of each dimension on `m`, in elements, outermost first.
    pub dims: Vec<Vec<Iter>>,
    /// The dimension that each dimension of the tile is.
    pub kept: Vec<usize>,
    /// What divides the tile's run-time origin along each dimension; 0 for an origin of zero.
    pub divisors: Vec<i64>,
}

/// A copy between a tile of global memory and shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TmaPlan {
    /// The descriptor.
    pub map: TensorMap,
    /// The boxes, each one instruction.
    pub boxes: Vec<TmaBox>,
}

impl TmaPlan {
    /// The plan of a tile of `shape` at a run-time origin of `global`, whose place in shared memory is
    /// `shared` (on `m`, in elements, from an address that its swizzle's period divides).
    ///
    /// # Errors
    /// The rule of the accelerator that the layouts do not meet.
    pub fn new(
        global: &Global,
        shape: &[i64],
        shared: &Layout,
        element: &str,
        bytes: i64,
    ) -> Result<Self, Decline> {
        let swizzle = TmaSwizzle::of(shared.swizzle(), bytes)?;
        let mut digits = digits::of(global, shape, bytes)?;
        digits::place(&mut digits, shared)?;
        let (ordered, extents) = boxes::largest(digits, swizzle, bytes)?;
        let map = map::describe(&ordered, &extents, element, bytes, swizzle)?;
        let plan = Self {
            boxes: boxes::all(
                &ordered,
                &extents,
                shared.offset().get(Axis::M),
                swizzle,
                bytes,
            )?,
            map,
        };
        plan.check(global, shape, shared, bytes)?;
        Ok(plan)
    }

    /// Checks a plan that someone wrote: as [`TmaPlan::check`], and the accelerator's limits.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(
        &self,
        global: &Global,
        shape: &[i64],
        shared: &Layout,
        element: &str,
        bytes: i64,
    ) -> Result<(), Decline> {
        // What declines memory of which no plan is made.
        digits::of(global, shape, bytes)?;
        if self.map.element != element {
            return Err(Decline::new(format!(
                "a tensor map of {}, for elements of {element}",
                self.map.element
            )));
        }
        if TmaSwizzle::of(shared.swizzle(), bytes)? != self.map.swizzle {
            return Err(Decline::new(format!(
                "the tensor map has the swizzle {}, and the shared tile another",
                self.map.swizzle
            )));
        }
        let rank = global.shape.len();
        let mut coordinates = self.boxes.iter().flat_map(|each| &each.coordinates);
        if coordinates.any(|coordinate| coordinate.dim >= rank) {
            return Err(Decline::new(format!(
                "the memory has the dimensions x0 to x{}",
                rank.saturating_sub(1)
            )));
        }
        self.map.check_limits()?;
        boxes::check_limits(&self.boxes, &self.map, bytes)?;
        self.check(global, shape, shared, bytes)
    }
}

impl fmt::Display for TmaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tensor map {{{}}}", self.map.attributes())?;
        for each in &self.boxes {
            let coordinates: Vec<_> = each.coordinates.iter().map(ToString::to_string).collect();
            writeln!(
                f,
                "box [{}] <-> shared + {}",
                coordinates.join(", "),
                each.shared
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
