//! Slices of a dynamic outermost dimension.
//!
//! A box whose end is known lies inside every size that holds it, so that its slice is that of the layout
//! fixed to the smallest such size. The rest from `begin` on has no end, and is decided on the digits. Fast
//! digits that `begin` is a multiple of stay as they are. When nothing but the dynamic digit is left, it
//! starts later. Otherwise `begin` lies inside a digit `(e, s)`, at `b`: after `e - b` places comes a carry,
//! and then one every `e` places. A digit's runs have one length, so `e = 2b`, and the carries of a digit
//! are alike, so that the digit before is the dynamic one `(?, t)`: the rest is `(?, t), (2, t - b s), (b, s)`.

use std::ops::Range;

use super::slice::slice_block;
use super::{Layout, Shard};
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};

impl Layout {
    /// [`Layout::slice`] of a layout with a dynamic outermost extent.
    #[cold]
    pub(super) fn slice_dynamic(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Self> {
        self.check_shape(shape, "shape of a slice")?;
        let (Some((_, rest)), Some((first, others))) = (shape.split_first(), region.split_first())
        else {
            return Err(wrong_rank(shape, region));
        };
        if rest.len() != others.len() {
            return Err(wrong_rank(shape, region));
        }
        if first.end == DYNAMIC {
            return self.slice_open(shape, region);
        }
        // Admitted: the rest of the shape divides the rest of the layout.
        let inside: i64 = self.shard.iter().skip(1).map(|i| i.extent).product();
        let inside = inside / rest.iter().product::<i64>();
        let steps = first.end.max(1).div_euclid(inside) + i64::from(first.end % inside != 0);
        let overflow = || Error::overflow("the size of the smallest layout that holds a slice");
        let mut fixed = self.clone();
        if let Some(iter) = fixed.shard.first_mut() {
            iter.extent = steps;
        }
        fixed.check_valid()?;
        let mut fixed_shape = shape.to_vec();
        if let Some(extent) = fixed_shape.first_mut() {
            *extent = steps.checked_mul(inside).ok_or_else(overflow)?;
        }
        fixed.slice(&fixed_shape, region)
    }

    /// The slice of all from `region[0].start` on.
    fn slice_open(&self, shape: &[i64], region: &[Range<i64>]) -> Result<Self> {
        let grouped = self.group(shape).map_err(|error| match error {
            Error::None(reason) => Error::unsupported(format!(
                "a slice without an end in a shape that does not group: {reason}"
            )),
            other => other,
        })?;
        let (mut shard, mut offset) = (Shard::new(), self.offset.clone());
        for (k, ((block, range), &extent)) in grouped.blocks().zip(region).zip(shape).enumerate() {
            let sound =
                range.start >= 0 && (k == 0 || range.start < range.end && range.end <= extent);
            if !sound {
                return Err(Error::invalid(format!(
                    "dimension {k}: expected a range inside the dimension, got {}..{}",
                    range.start, range.end
                )));
            }
            let (iters, origin) = if k == 0 {
                open_block(block, range.start)?
            } else {
                slice_block(block, range)?
            };
            shard.extend_from_slice(&iters);
            for (axis, value) in origin.iter() {
                offset.add(axis, value)?;
            }
        }
        Self::from_parts(shard, self.replica.clone(), offset, self.swizzle)
    }
}

fn wrong_rank(shape: &[i64], region: &[Range<i64>]) -> Error {
    Error::Rank {
        what: "region of a slice",
        expected: shape.len(),
        got: region.len(),
    }
}

/// Whether the first iters, so many after the outermost, go on as they come: they are one digit with it.
fn linear(block: &[Iter], inner: usize) -> bool {
    let one = |outer: &Iter, inner: &Iter| {
        inner.extent.checked_mul(inner.stride) == Some(outer.stride)
            && (inner.axis == outer.axis || inner.stride == 0 && outer.stride == 0)
    };
    let mut pairs = block.windows(2).take(inner);
    pairs.all(|pair| matches!(pair, [a, b] if one(a, b)))
}

/// The iters and the origin of a dynamic dimension from `start` on.
fn open_block(block: &[Iter], mut start: i64) -> Result<(Shard, Coord)> {
    let product = |a: i64, b: i64| {
        let product = a.checked_mul(b);
        product.ok_or_else(|| Error::overflow("a coordinate of a slice"))
    };
    let Some((dynamic, mut digits)) = block.split_first() else {
        return Err(Error::unsupported("a slice without a dynamic digit"));
    };
    let mut whole = Shard::new();
    while let Some((last, before)) = digits.split_last().filter(|(i, _)| start % i.extent == 0) {
        (start, digits) = (start / last.extent, before);
        whole.insert(0, *last);
    }
    let mut shard = Shard::from_slice(&[*dynamic]);
    let mut origin = Coord::new();
    let Some((pivot, before)) = digits.split_last() else {
        origin.add(dynamic.axis, product(start, dynamic.stride)?)?;
        shard.extend_from_slice(&whole);
        return Ok((shard, origin));
    };
    let (turns, digit) = (start / pivot.extent, start % pivot.extent);
    let passed = product(digit, pivot.stride)?;
    if linear(block, digits.len()) {
        origin.add(pivot.axis, product(start, pivot.stride)?)?;
        shard.extend_from_slice(digits);
        shard.extend_from_slice(&whole);
        return Ok((shard, origin));
    }
    let chained = linear(block, before.len());
    let (step, half) = (before.last().unwrap_or(dynamic), pivot.extent == 2 * digit);
    let axis = if passed == 0 { step.axis } else { pivot.axis };
    let one_axis = step.stride == 0 || step.axis == axis;
    if !(chained && half && one_axis) {
        return Err(Error::none(format!(
            "dimension 0, from {}: carries out of iter {pivot} come first after {} places and then every {}",
            start,
            pivot.extent - digit,
            pivot.extent
        )));
    }
    let carry = step.stride.checked_sub(passed);
    let carry = carry.ok_or_else(|| Error::overflow("a step of a slice"))?;
    origin.add(step.axis, product(turns, step.stride)?)?;
    origin.add(pivot.axis, passed)?;
    shard.extend_from_slice(before);
    shard.push(Iter::new(2, carry, axis));
    shard.push(Iter::new(digit, pivot.stride, pivot.axis));
    shard.extend_from_slice(&whole);
    Ok((shard, origin))
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, clippy::reversed_empty_ranges)]
mod tests {
    use super::*;
    use crate::tests::parse;
    use crate::{Kind, oracle};

    /// Every open and closed range of every small dynamic layout: open ones against long finite slices.
    #[test]
    fn a_dynamic_slice_is_found_exactly_when_one_exists() {
        let (mut found, mut none) = (0, 0);
        let strides = ["0", "1", "2", "3", "4", "-2", "6", "1@lane"];
        for extents in [[1, 4], [2, 2], [3, 2]] {
            for a in strides {
                for b in strides {
                    for c in strides {
                        let [e, f] = extents;
                        let dynamic = parse(&format!("S[(?, {e}, {f}) : ({a}, {b}, {c})] + 7"));
                        for start in 0..2 * e * f {
                            check_ranges(&dynamic, e * f, start, &mut found, &mut none);
                        }
                    }
                }
            }
        }
        assert!(found > 1000 && none > 1000, "{found} {none}");
    }

    fn check_ranges(dynamic: &Layout, inside: i64, start: i64, found: &mut u32, none: &mut u32) {
        let mut fixed = dynamic.clone();
        fixed.shard[0].extent = 12;
        let size = 12 * inside;
        for end in start + 1..start + 5 {
            let form = |slice: Result<Layout>| slice.ok().map(|l| l.canonicalize());
            assert_eq!(
                form(dynamic.slice(&[DYNAMIC], &[start..end])),
                form(fixed.slice(&[size], &[start..end]))
            );
        }
        // Long enough for every digit to come back, in twice as many outermost steps as the shape of a form.
        let end = start + 8 * inside;
        let finite = fixed.slice(&[size], &[start..end]);
        match dynamic.slice(&[DYNAMIC], &[start..DYNAMIC]) {
            Ok(slice) => {
                *found += 1;
                assert!(slice.is_dynamic());
                for u in 0..8 * inside {
                    assert_eq!(
                        oracle::points(&slice, u),
                        oracle::points(dynamic, u + start)
                    );
                }
            }
            Err(error) => {
                *none += 1;
                assert_eq!(error.kind(), Kind::None, "{dynamic} from {start}: {error}");
                assert!(finite.is_err(), "{dynamic} from {start}: {error}");
            }
        }
    }

    #[test]
    fn dynamic_slices_of_shapes() {
        let rows = parse("S[(?, 64) : (64, 1)]");
        let shape = [DYNAMIC, 4, 16];
        let slice = rows.slice(&shape, &[5..DYNAMIC, 1..2, 0..8]).unwrap();
        assert_eq!(slice.to_string(), "S[(?, 1, 8) : (64, 16, 1)] + 336");
        assert_eq!(
            rows.slice(&shape, &[3..7, 0..4, 0..16])
                .unwrap()
                .canonicalize()
                .to_string(),
            "S[256 : 1] + 192"
        );
        for bad in [
            vec![-1..DYNAMIC, 0..4, 0..16],
            vec![2..2, 0..4, 0..16],
            vec![3..1, 0..4, 0..16],
            vec![0..DYNAMIC, 0..5, 0..16],
            vec![0..DYNAMIC, 0..4],
            vec![0..DYNAMIC, 0..4, 0..DYNAMIC],
            vec![],
        ] {
            assert_eq!(
                rows.slice(&shape, &bad).unwrap_err().kind(),
                Kind::Invalid,
                "{bad:?}"
            );
        }
        let far = rows.slice(&shape, &[0..i64::MAX, 0..4, 0..16]).unwrap_err();
        assert_eq!(far.kind(), Kind::Overflow);
        assert_eq!(
            rows.slice(&[64], &[0..4]).unwrap_err().kind(),
            Kind::Invalid
        );
    }
}
