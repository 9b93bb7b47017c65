//! A shard read from the left: fused on the way, and cut where dimensions end.
//!
//! Cuts from the left and from the right are at the same places: a cut after `n` of `N` indices leaves
//! `N / n` inside, and a chain of divisors is one from either end.

use crate::axis::Axis;
use crate::iter::{DYNAMIC, Iter};

/// `n / d` when `d` divides `n`, for `n >= 0` and `d >= 1`. Powers of two need no division.
#[inline]
pub(crate) fn divide(n: i64, d: i64) -> Option<i64> {
    if d & (d - 1) == 0 {
        return (n & (d - 1) == 0).then(|| n >> d.trailing_zeros());
    }
    let quotient = n / d;
    (quotient * d == n).then_some(quotient)
}

/// `n / d` and `n % d`, for `n >= 0` and `d >= 1`.
#[inline]
pub(crate) fn quotient_and_digit(n: i64, d: i64) -> (i64, i64) {
    if d & (d - 1) == 0 {
        return (n >> d.trailing_zeros(), n & (d - 1));
    }
    (n / d, n % d)
}

/// The iters of a shard without extents of 1, neighbours merged (rules D0 and D1), outermost first.
/// Strides of 0 are on `m`: a digit that moves nothing has no axis.
pub(crate) struct Fused<'a>(&'a [Iter]);

impl<'a> Fused<'a> {
    #[inline]
    pub(crate) fn new(shard: &'a [Iter]) -> Self {
        Self(shard)
    }
}

impl Iterator for Fused<'_> {
    type Item = Iter;

    #[inline]
    fn next(&mut self) -> Option<Iter> {
        let mut fused = loop {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            if first.extent != 1 {
                break *first;
            }
        };
        while let Some((next, rest)) = self.0.split_first() {
            if next.extent != 1 {
                let continues = next.extent.checked_mul(next.stride) == Some(fused.stride)
                    && (next.axis == fused.axis || next.stride == 0)
                    && fused.extent != DYNAMIC;
                if !continues {
                    break;
                }
                // At most the size of the layout, which fits.
                fused.extent *= next.extent;
                fused.stride = next.stride;
            }
            self.0 = rest;
        }
        if fused.stride == 0 {
            fused.axis = Axis::M;
        }
        Some(fused)
    }
}

/// A shard handed out in blocks of iters.
pub(crate) struct Blocks<'a> {
    fused: Fused<'a>,
    /// What the last block left of an iter; extent 1 when it left nothing.
    left: Iter,
}

impl<'a> Blocks<'a> {
    #[inline]
    pub(crate) fn new(shard: &'a [Iter]) -> Self {
        Self {
            fused: Fused::new(shard),
            left: Iter::new(1, 0, Axis::M),
        }
    }

    /// Hands the fewest iters of the next `extent` indices to `emit`. False, after some iters perhaps,
    /// when there are none: an iter straddles the end, the shard ends before, or extents are dynamic or
    /// below 1.
    #[inline]
    pub(crate) fn take(&mut self, extent: i64, mut emit: impl FnMut(Iter)) -> bool {
        let mut need = extent;
        while need > 1 {
            match self.piece(&mut need) {
                Some(piece) => emit(piece),
                None => return false,
            }
        }
        need == 1
    }

    /// The first of the fewest iters of the next `need > 1` indices; `need` becomes what it leaves.
    /// `None` where [`Blocks::take`] says no.
    #[inline(always)]
    pub(crate) fn piece(&mut self, need: &mut i64) -> Option<Iter> {
        if self.left.extent == 1 {
            match self.fused.next() {
                // A dynamic extent is negative.
                Some(next) if next.extent > 0 => self.left = next,
                _ => return None,
            }
        }
        let mut piece = self.left;
        if piece.extent <= *need {
            *need = divide(*need, piece.extent)?;
            self.left.extent = 1;
        } else {
            let rest = divide(piece.extent, *need)?;
            piece.extent = *need;
            piece.stride = piece.stride.wrapping_mul(rest);
            (self.left.extent, *need) = (rest, 1);
        }
        Some(piece)
    }

    /// Whether all iters are handed out.
    #[inline]
    pub(crate) fn is_done(&mut self) -> bool {
        self.left.extent == 1 && self.fused.next().is_none()
    }
}
