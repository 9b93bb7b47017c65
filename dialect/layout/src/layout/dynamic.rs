//! Questions about layouts whose outermost extent is dynamic, answered for every extent.

use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::Layout;

/// Two primes in place of a dynamic extent: what is found for both, with the extent where it was, is found
/// for every extent.
const PRIMES: [i64; 2] = [10_007, 10_009];

impl Layout {
    /// The outermost iter, when its extent is dynamic.
    pub(crate) fn dynamic_iter(&self) -> Option<Iter> {
        self.shard.first().copied().filter(|_| self.is_dynamic())
    }

    /// The layout with so many outermost steps.
    pub(crate) fn with_outermost(&self, extent: i64) -> Result<Self> {
        let mut shard = self.shard.clone();
        if let Some(first) = shard.first_mut().filter(|_| self.is_dynamic()) {
            first.extent = extent;
        }
        Self::from_parts(
            shard,
            self.replica.clone(),
            self.offset.clone(),
            self.swizzle,
        )
    }

    /// How far coordinates on `axis` may lie apart, those of the dynamic extent and of the swizzle aside.
    pub(crate) fn static_reach(&self, axis: Axis) -> i128 {
        let (low, high) = self.raw_range(axis);
        let moved = match self.effective_swizzle() {
            Some(swizzle) if axis == Axis::M => i128::from(swizzle.period()),
            _ => 0,
        };
        i128::from(low).abs().max(i128::from(high).abs()) + moved
    }

    /// [`Layout::invert`] of a dynamic layout: so many outermost steps that no further one comes back.
    pub(super) fn invert_dynamic(&self, outermost: Iter, point: &Coord) -> Result<Vec<i64>> {
        if outermost.stride == 0 {
            let found = self.with_outermost(1)?.invert(point)?;
            return match found[..] {
                [] => Ok(found),
                _ => Err(Error::unsupported(
                    "inverse: each of the dynamic outermost steps lives there",
                )),
            };
        }
        let wanted = i128::from(point.get(outermost.axis)).abs();
        // Twice: the point may be swizzled back by as much as the layout is swizzled.
        let reach = wanted + 2 * self.static_reach(outermost.axis);
        let steps = reach / i128::from(outermost.stride).abs() + 1;
        let steps =
            i64::try_from(steps).map_err(|_| Error::overflow("a number of outermost steps"))?;
        self.with_outermost(steps)?.invert(point)
    }

    /// [`Layout::tile_of`] of a dynamic layout: the factor for primes in place of the extent, where it is the
    /// same for both and tiles to the layout.
    pub(super) fn tile_of_dynamic(
        &self,
        shape: &[i64],
        inner: &Self,
        inner_shape: &[i64],
    ) -> Result<Self> {
        self.check_shape(shape, "shape of the tiling")?;
        let product = |extents: &[i64]| extents.iter().try_fold(1_i64, |n, &e| n.checked_mul(e));
        let overflow = || Error::overflow("a number of outermost steps");
        let below: i64 = self.shard.iter().skip(1).map(|iter| iter.extent).product();
        let (rest, part) = (
            shape.get(1..).unwrap_or(&[]),
            inner_shape.first().copied().unwrap_or(1),
        );
        let rest = product(rest).ok_or_else(overflow)?;
        let mut found: Vec<Self> = Vec::new();
        for prime in PRIMES {
            // A whole number of rows of the shape, and of those of the inner shape.
            let steps = prime.checked_mul(part.max(1)).ok_or_else(overflow)?;
            let rows = steps.checked_mul(below / rest).ok_or_else(overflow)?;
            let sized: Vec<i64> = std::iter::once(rows)
                .chain(shape.iter().skip(1).copied())
                .collect();
            let outer = self
                .with_outermost(steps)?
                .tile_of(&sized, inner, inner_shape)?;
            found.extend(outer.with_dynamic(prime));
        }
        let outer_shape: Option<Vec<i64>> = shape
            .iter()
            .zip(inner_shape)
            .map(|(&whole, &part)| {
                if whole == DYNAMIC {
                    Some(DYNAMIC)
                } else {
                    whole.checked_div(part)
                }
            })
            .collect();
        let [first, second] = &found[..] else {
            return Err(undecided());
        };
        let again = Self::tile(first, &outer_shape.unwrap_or_default(), inner, inner_shape);
        if first == second
            && again
                .and_then(|again| again.equivalent(self))
                .unwrap_or(false)
        {
            return Ok(first.clone());
        }
        Err(undecided())
    }

    /// The layout with a dynamic extent in place of the outermost one, when that has the factor `prime`.
    fn with_dynamic(mut self, prime: i64) -> Option<Self> {
        let first = self
            .shard
            .first_mut()
            .filter(|iter| iter.extent % prime == 0)?;
        first.extent = DYNAMIC;
        Some(self)
    }
}

fn undecided() -> Error {
    Error::unsupported("factoring: the dynamic extent is not outermost in the factor")
}

/// Both layouts with so many outermost steps in place of a dynamic extent that they share a place if they do
/// for any extents.
///
/// # Errors
/// `Unsupported` when both are dynamic on `m` and differently swizzled; `Overflow`.
pub(crate) fn long_enough(a: &Layout, b: &Layout) -> Result<(Layout, Layout)> {
    let dynamic = (a.dynamic_iter(), b.dynamic_iter());
    if let (Some(x), Some(y)) = dynamic
        && x.axis == y.axis
        && x.axis == Axis::M
        && a.common_swizzle(b).is_none()
    {
        return Err(Error::unsupported(
            "overlap: both layouts are dynamic along m, under different swizzles",
        ));
    }
    let enough = |of: &Layout, own: Option<Iter>, other: Option<Iter>| -> Result<Layout> {
        let Some(own) = own.filter(|own| own.stride != 0) else {
            return of.with_outermost(1);
        };
        let reach = 2 * (a.static_reach(own.axis) + b.static_reach(own.axis));
        let mut steps = reach / i128::from(own.stride).abs() + 1;
        if let Some(other) = other.filter(|other| other.axis == own.axis) {
            // Where both go on, a common place comes again after a common multiple of their strides.
            steps += i128::from(other.stride).abs();
        }
        let steps =
            i64::try_from(steps).map_err(|_| Error::overflow("a number of outermost steps"))?;
        of.with_outermost(steps)
    };
    Ok((
        enough(a, dynamic.0, dynamic.1)?,
        enough(b, dynamic.1, dynamic.0)?,
    ))
}
