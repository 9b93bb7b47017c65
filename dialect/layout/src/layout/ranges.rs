//! Validity: every number that a layout can produce fits 64 bits.

use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::Layout;

fn size(iters: &[Iter], what: &'static str) -> Result<i64> {
    iters
        .iter()
        .try_fold(1_i64, |n, i| n.checked_mul(i.extent))
        .ok_or_else(|| Error::overflow(what))
}

fn check_extents(iters: &[Iter], what: &'static str, dynamic_first: bool) -> Result<()> {
    for (k, iter) in iters.iter().enumerate() {
        if iter.extent == DYNAMIC && k == 0 && dynamic_first {
            continue;
        }
        if iter.extent == DYNAMIC {
            return Err(Error::invalid(format!(
                "{what} iter {k}: only the first shard iter may have a dynamic extent"
            )));
        }
        if iter.extent < 1 {
            return Err(Error::invalid(format!(
                "{what} iter {k}: expected an extent of at least 1, got {}",
                iter.extent
            )));
        }
    }
    Ok(())
}

impl Layout {
    /// `Ok` when the layout is well-formed; every constructor ends here.
    #[inline]
    pub(crate) fn check_valid(&self) -> Result<()> {
        if self.is_plainly_valid() {
            return Ok(());
        }
        self.check_parts()
    }

    /// One pass that knows most layouts to be valid: nothing dynamic, and even the sum of all steps over
    /// all axes fits.
    fn is_plainly_valid(&self) -> bool {
        let mut total = 1_i64;
        let mut add = |iters: &[Iter]| -> Option<i64> {
            iters.iter().try_fold(1_i64, |size, iter| {
                let steps = iter.extent.checked_sub(1).filter(|&steps| steps >= 0)?;
                let reach = iter.stride.checked_abs()?.checked_mul(steps)?;
                total = total.checked_add(reach)?;
                size.checked_mul(iter.extent)
            })
        };
        let sizes = add(&self.shard).and(add(&self.replica));
        let mut offsets = self.offset.iter();
        let total = offsets.try_fold(total, |sum, (_, v)| sum.checked_add(v.checked_abs()?));
        sizes.and(total).is_some()
    }

    #[cold]
    fn check_parts(&self) -> Result<()> {
        check_extents(&self.shard, "shard", true)?;
        check_extents(&self.replica, "replica", false)?;
        let fixed = match self.shard.split_first() {
            Some((first, rest)) if first.extent == DYNAMIC => rest,
            _ => &self.shard[..],
        };
        size(fixed, "the number of logical indices")?;
        size(&self.replica, "the number of replicas")?;
        if self
            .shard
            .iter()
            .chain(&self.replica)
            .any(|i| i.stride == i64::MIN)
        {
            return Err(Error::overflow("the magnitude of a stride"));
        }
        self.check_each_axis(fixed.len())
    }

    fn check_each_axis(&self, fixed: usize) -> Result<()> {
        let fixed = &self.shard[self.shard.len() - fixed..];
        for axis in self.axes() {
            let overflow = || Error::overflow(format!("a coordinate or the span on axis {axis}"));
            let (mut low, mut high) = (i128::from(self.offset.get(axis)), 0_i128);
            high += low;
            for iter in fixed.iter().chain(&self.replica).filter(|i| i.axis == axis) {
                // Factors are below 2^63 in magnitude, so the product fits 127 bits; the sum is
                // checked at once.
                let last = i128::from(iter.extent - 1) * i128::from(iter.stride);
                low = low.checked_add(last.min(0)).ok_or_else(overflow)?;
                high = high.checked_add(last.max(0)).ok_or_else(overflow)?;
            }
            let fits = |x: i128| i64::try_from(x).is_ok();
            if !(fits(low) && fits(high) && fits(high - low + 1)) {
                return Err(overflow());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Axis, Coord, Iter, Kind, Layout};

    fn m(extent: i64, stride: i64) -> Iter {
        Iter::new(extent, stride, Axis::M)
    }

    #[test]
    fn extents_below_one_are_invalid() {
        for extent in [0, -1, i64::MIN + 1] {
            let error = Layout::from_shard([m(extent, 1)]).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
        }
        let error = Layout::from_shard([m(2, 1), m(crate::DYNAMIC, 1)]).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
    }

    #[test]
    fn sizes_and_spans_beyond_64_bits_overflow() {
        let cases = [
            Layout::from_shard([m(1 << 32, 0), m(1 << 31, 0)]),
            Layout::from_shard([m(2, i64::MAX)]),
            Layout::from_shard([m(2, i64::MAX - 1), m(2, -2)]),
            Layout::from_shard([m(2, i64::MIN)]),
            Layout::from_shard([m(2, 1 << 62)])
                .and_then(|l| l.with_offset(Coord::from_terms([(Axis::M, 1 << 62)])?)),
        ];
        for case in cases {
            assert_eq!(case.unwrap_err().kind(), Kind::Overflow);
        }
        let wide = Layout::from_shard([m(2, i64::MAX - 1)]).unwrap();
        assert!(
            wide.clone()
                .with_offset(Coord::from_terms([(Axis::M, 1)]).unwrap())
                .is_ok()
        );
        assert!(
            wide.with_offset(Coord::from_terms([(Axis::M, 2)]).unwrap())
                .is_err()
        );
    }

    #[test]
    fn axes_do_not_share_a_bound() {
        let lane = Axis::new("lane").unwrap();
        let far = i64::MAX - 1;
        assert!(Layout::from_shard([m(2, far), Iter::new(2, far, lane)]).is_ok());
    }
}
