//! Splitting an axis into an outer and an inner one, with carries.

use super::canonical::{moving_axes, steps_on};
use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};
use crate::sumset::{self, Steps};

/// An iter on the axis that is split, as iters on both halves.
fn halves(iter: &Iter, outer: Axis, inner: Axis, extent: i64) -> Result<Shard> {
    let (e, s) = (iter.extent, iter.stride);
    if e == 1 || s == 0 {
        return Ok(Shard::from_slice(&[Iter::new(e, 0, inner)]));
    }
    if s % extent == 0 {
        return Ok(Shard::from_slice(&[Iter::new(e, s / extent, outer)]));
    }
    let size = s.abs();
    let fits = e != DYNAMIC
        && (e - 1)
            .checked_mul(size)
            .is_some_and(|reach| reach < extent);
    if fits {
        return Ok(Shard::from_slice(&[Iter::new(e, s, inner)]));
    }
    if extent % size == 0 && e != DYNAMIC && e % (extent / size) == 0 {
        let inside = extent / size;
        let step = s.signum();
        return Ok(Shard::from_slice(&[
            Iter::new(e / inside, step, outer),
            Iter::new(inside, s, inner),
        ]));
    }
    Err(Error::none(format!(
        "no split: iter {iter} moves by {s}, which carries from {inner} into {outer} of extent {extent} at \
         places that no digits describe"
    )))
}

impl Layout {
    /// The layout with coordinate `c` on `axis` written as `c / extent` on `outer` and `c mod extent` on
    /// `inner`: the converse of [`Layout::fuse_axes`]. An iter may straddle and become two; an offset
    /// may carry.
    ///
    /// # Errors
    /// `Invalid` for `extent < 1` or when the result's axes occur already; `None` when digits add up
    /// across a multiple of `extent`, so that no sum of digits describes the halves; `Unsupported` for
    /// the swizzled memory axis.
    ///
    /// ```
    /// use axe_layout::{Axis, Layout};
    /// let [lane, warp, thread] = ["lane", "warp", "thread"].map(Axis::new);
    /// let l: Layout = "S[64 : 1@thread] + 32@thread".parse()?;
    /// let split = l.split_axes(thread?, warp?, lane?, 32)?;
    /// assert_eq!(split.to_string(), "S[(2, 32) : (1@warp, 1@lane)] + 1@warp");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn split_axes(&self, axis: Axis, outer: Axis, inner: Axis, extent: i64) -> Result<Self> {
        self.check_split(axis, outer, inner, extent)?;
        let offset = self.offset.get(axis);
        let (steps, low) = steps_on(&self.replica, axis);
        let from = offset.wrapping_add(low);
        let (mut steps, mut shard) = (steps, Shard::new());
        sumset::saturate(&mut steps);
        for iter in &super::canonical::fuse(&self.shard) {
            if iter.axis == axis && iter.stride != 0 {
                shard.extend(halves(iter, outer, inner, extent)?);
            } else {
                shard.push(*iter);
            }
        }
        let mut replica: Replica = self
            .replica
            .iter()
            .filter(|i| i.axis != axis)
            .copied()
            .collect();
        let (mut ones, mut tens) = (Steps::new(), Steps::new());
        for &(e, s) in &steps {
            for half in halves(&Iter::new(e, s, axis), outer, inner, extent)? {
                let part = if half.axis == outer {
                    &mut tens
                } else {
                    &mut ones
                };
                part.push((half.extent, half.stride));
                replica.push(half);
            }
        }
        // Digits on the inner axis must not carry: every sum of theirs stays in one block.
        let mut rest = self.offset.clone();
        rest.set(axis, 0);
        rest.add(outer, from.div_euclid(extent))?;
        rest.add(inner, from.rem_euclid(extent))?;
        let split = Self::from_parts(shard, replica, rest, self.swizzle)?;
        let (least, most) = split.raw_range(inner);
        if least < 0 || most >= extent {
            return Err(Error::none(format!(
                "no split: coordinates on {inner} would run from {least} to {most}, beyond 0 to {}, and carry \
                 into {outer} at places that no digits describe",
                extent - 1
            )));
        }
        Ok(split)
    }

    fn check_split(&self, axis: Axis, outer: Axis, inner: Axis, extent: i64) -> Result<()> {
        if extent < 1 || outer == inner {
            return Err(Error::invalid(format!(
                "split of axis {axis}: expected an extent of at least 1 and two axes, got {extent}, {outer}, {inner}"
            )));
        }
        if self.effective_swizzle().is_some() && [axis, outer, inner].contains(&Axis::M) {
            return Err(Error::unsupported("splitting the swizzled memory axis"));
        }
        let occurs = |a: Axis| {
            a != axis
                && (moving_axes(&self.shard).contains(&a)
                    || moving_axes(&self.replica).contains(&a)
                    || self.offset.get(a) != 0)
        };
        if let Some(taken) = [outer, inner].into_iter().find(|a| occurs(*a)) {
            return Err(Error::invalid(format!(
                "split of axis {axis}: axis {taken} occurs in the layout already"
            )));
        }
        Ok(())
    }
}
