//! Small rewrites: pack, unpack, storage, broadcast, axes fused and split.

use std::collections::BTreeMap;

use super::canonical::{fuse, push_fused};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};

fn check_count(num: i64, what: &'static str) -> Result<()> {
    if num >= 1 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what}: expected at least 1, got {num}"
    )))
}

impl Layout {
    /// The layout in units `num` times larger on `axis`: `num` neighbours of the innermost dimension,
    /// which must lie side by side on `axis` and start at a multiple of `num`, become one element.
    ///
    /// # Errors
    /// `Invalid` for `num < 1`; `None` when elements do not lie so, or when a stride or offset on
    /// `axis` is no multiple of `num`; `Unsupported` for a swizzle that moves inside the larger units.
    ///
    /// ```
    /// use axe_layout::{Axis, Layout};
    /// let bytes: Layout = "S[(8, 64) : (128, 1)] + 128".parse()?;
    /// assert_eq!(bytes.pack(4, Axis::M)?.to_string(), "S[(8, 16) : (32, 1)] + 32");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn pack(&self, num: i64, axis: Axis) -> Result<Self> {
        check_count(num, "elements to pack")?;
        if num == 1 {
            return Ok(self.clone());
        }
        let shard = packed_domain(&self.shard, num, axis)?;
        let divide = |value: i64| match value % num {
            0 => Ok(value / num),
            _ => Err(Error::none(format!(
                "no packing by {num}: {value} on axis {axis} is no multiple of it"
            ))),
        };
        let swizzle = match self.effective_swizzle() {
            Some(swizzle) if axis == Axis::M => Some(swizzle.in_units_of(num)?),
            other => other,
        };
        let mut packed = self.map_axis(shard, axis, divide)?;
        packed.swizzle = swizzle;
        packed.check_valid()?;
        Ok(packed)
    }

    /// The layout in units `num` times smaller on `axis`: each element becomes `num` neighbours of the
    /// innermost dimension, side by side on `axis`.
    ///
    /// # Errors
    /// `Invalid` for `num < 1`; `Overflow`; `Unsupported` for a swizzled axis when `num` is no power of
    /// two.
    pub fn unpack(&self, num: i64, axis: Axis) -> Result<Self> {
        check_count(num, "elements to unpack")?;
        if num == 1 {
            return Ok(self.clone());
        }
        let multiply = |value: i64| {
            let product = value.checked_mul(num);
            product.ok_or_else(|| Error::overflow(format!("an unpacked stride on axis {axis}")))
        };
        let mut layout = self.map_axis(self.shard.clone(), axis, multiply)?;
        layout.shard.push(Iter::new(num, 1, axis));
        layout.swizzle = match self.effective_swizzle() {
            Some(swizzle) if axis == Axis::M => Some(swizzle.in_parts_of(num)?),
            other => other,
        };
        layout.check_valid()?;
        Ok(layout)
    }

    /// Applies `change` to every stride and offset on `axis`.
    fn map_axis(
        &self,
        shard: Shard,
        axis: Axis,
        change: impl Fn(i64) -> Result<i64>,
    ) -> Result<Self> {
        let iter = |i: &Iter| {
            let stride = if i.axis != axis {
                i.stride
            } else if i.extent == 1 {
                0
            } else {
                change(i.stride)?
            };
            Ok(Iter::new(i.extent, stride, i.axis))
        };
        let mut offset = self.offset.clone();
        offset.set(axis, change(offset.get(axis))?);
        Ok(Self {
            shard: shard.iter().map(iter).collect::<Result<_>>()?,
            replica: self.replica.iter().map(iter).collect::<Result<_>>()?,
            offset,
            swizzle: None,
        })
    }

    /// The layout inside one thread: without the iters and offsets on `thread_axes`. Its domain is
    /// what one thread holds.
    ///
    /// # Errors
    /// None in practice: parts of a valid layout are valid.
    pub fn storage(&self, thread_axes: &[Axis]) -> Result<Self> {
        let stays = |i: &&Iter| !thread_axes.contains(&i.axis);
        let offset = self.offset.iter().filter(|(a, _)| !thread_axes.contains(a));
        Self::new(
            self.shard.iter().filter(stays).copied(),
            self.replica.iter().filter(stays).copied(),
            Coord::from_terms(offset)?,
            self.swizzle.filter(|_| !thread_axes.contains(&Axis::M)),
        )
    }

    /// The layout with a new digit of extent `num` and stride 0 on `axis` before shard iter
    /// `position`: a dimension along which nothing moves.
    ///
    /// # Errors
    /// `Invalid` for `num < 1`, a position beyond the end, or before a dynamic iter; `Overflow`.
    pub fn broadcast(&self, num: i64, position: usize, axis: Axis) -> Result<Self> {
        check_count(num, "extent of a broadcast")?;
        if position > self.shard.len() {
            return Err(Error::invalid(format!(
                "position of a broadcast: expected 0 to {}, got {position}",
                self.shard.len()
            )));
        }
        let mut layout = self.clone();
        layout.shard.insert(position, Iter::new(num, 0, axis));
        layout.check_valid()?;
        Ok(layout)
    }

    /// The layout with another replica digit: everything is copied `num` times, `stride` apart on
    /// `axis`.
    ///
    /// # Errors
    /// `Invalid` for `num < 1`; `Overflow`.
    pub fn replicate(&self, num: i64, stride: i64, axis: Axis) -> Result<Self> {
        let mut layout = self.clone();
        layout.replica.push(Iter::new(num, stride, axis));
        layout.check_valid()?;
        Ok(layout)
    }

    /// The layout in coarser axes: each axis `a` of `rules` becomes `scale` steps on its target. Terms
    /// that land on one axis add up; a target that has a rule of its own is not renamed again.
    ///
    /// # Errors
    /// `Overflow`; `Unsupported` for a swizzle when rules name the memory axis.
    ///
    /// ```
    /// use axe_layout::{Axis, Layout};
    /// use std::collections::BTreeMap;
    /// let (lane, warp, thread) = (Axis::new("lane")?, Axis::new("warp")?, Axis::new("thread")?);
    /// let l: Layout = "S[(4, 32) : (1@warp, 1@lane)] + 1@warp + 8@lane".parse()?;
    /// let fused = l.fuse_axes(&BTreeMap::from([(lane, (thread, 1)), (warp, (thread, 32))]))?;
    /// assert_eq!(fused.to_string(), "S[128 : 1@thread] + 40@thread");
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn fuse_axes(&self, rules: &BTreeMap<Axis, (Axis, i64)>) -> Result<Self> {
        let touches = |axis: Axis| {
            rules.contains_key(&axis) || rules.values().any(|(target, _)| *target == axis)
        };
        if self.effective_swizzle().is_some() && touches(Axis::M) {
            return Err(Error::unsupported("axes fused with a swizzled memory axis"));
        }
        let rename = |axis: Axis, value: i64| -> Result<(Axis, i64)> {
            let Some(&(target, scale)) = rules.get(&axis) else {
                return Ok((axis, value));
            };
            let scaled = value.checked_mul(scale);
            let scaled =
                scaled.ok_or_else(|| Error::overflow(format!("a stride on axis {target}")))?;
            Ok((target, scaled))
        };
        let iter = |i: &Iter| {
            let (axis, stride) = rename(i.axis, if i.extent == 1 { 0 } else { i.stride })?;
            Ok(Iter::new(i.extent, stride, axis))
        };
        let shard: Shard = self.shard.iter().map(iter).collect::<Result<_>>()?;
        let replica: Replica = self.replica.iter().map(iter).collect::<Result<_>>()?;
        let mut offset = Coord::new();
        for (axis, value) in self.offset.iter() {
            let (axis, value) = rename(axis, value)?;
            offset.add(axis, value)?;
        }
        Self::from_parts(fuse(&shard), replica, offset, self.swizzle)
    }
}

/// The shard with its innermost `num` indices, which must be steps of 1 on `axis`, made one.
fn packed_domain(shard: &[Iter], num: i64, axis: Axis) -> Result<Shard> {
    let mut fused = fuse(shard);
    match fused.last_mut() {
        Some(last)
            if last.axis == axis
                && last.stride == 1
                && last.extent != DYNAMIC
                && last.extent % num == 0 =>
        {
            last.extent /= num;
            last.stride = num;
        }
        _ => {
            return Err(Error::none(format!(
                "no packing by {num}: the innermost indices are no runs of {num} neighbours on axis {axis}"
            )));
        }
    }
    let mut packed = Shard::new();
    for iter in fused.iter().filter(|i| i.extent != 1) {
        push_fused(&mut packed, *iter);
    }
    Ok(packed)
}
