//! Compiled maps: a logical index to its coordinate on one axis, for loops over many indices.

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::swizzle::Swizzle;

/// Coordinates of the innermost digits that are tabulated; 2 KiB, a small part of a first-level cache.
const TABLE_LIMIT: i64 = 256;

/// One term of the affine form: `((x / divisor) % modulus) * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The product of the extents further in.
    pub divisor: i64,
    /// The extent of the digit; redundant on the outermost digit, whose quotient is always below it.
    pub modulus: i64,
    /// What one step of the digit adds on the axis; never 0.
    pub stride: i64,
}

/// `x -> D(x) + O` on one axis, xored by the swizzle on `m`, compiled for evaluation.
///
/// ```
/// use axe_layout::{Axis, Layout, address::AddressMap};
/// let l: Layout = "S[(4, 2) : (1, 8)] + 3".parse()?;
/// let map = AddressMap::new(&l, Axis::M)?;
/// assert_eq!(map.get(3)?, 12);
/// assert_eq!(map.iter().collect::<Vec<_>>(), [3, 11, 4, 12, 5, 13, 6, 14]);
/// # Ok::<(), axe_layout::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressMap {
    /// Merged digits, innermost first; strides of 0 keep the place of digits on other axes.
    digits: SmallVec<[Digit; 8]>,
    constant: i64,
    swizzle: Option<Swizzle>,
    size: i64,
    /// What the innermost `tabled` digits add, for all their values.
    table: Vec<i64>,
    tabled: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    extent: i64,
    stride: i64,
}

impl AddressMap {
    /// Compiles the coordinate of `layout` on `axis`.
    ///
    /// # Errors
    /// `Unsupported` when the outermost extent is dynamic or replicas move along `axis` (an index then
    /// has several coordinates).
    pub fn new(layout: &Layout, axis: Axis) -> Result<Self> {
        layout.check_static("address map")?;
        let moves = |i: &&crate::Iter| i.axis == axis && i.extent > 1 && i.stride != 0;
        if layout.replica().iter().any(|i| moves(&i)) {
            return Err(Error::unsupported(format!(
                "address map: replicas on axis {axis} give an index several coordinates"
            )));
        }
        let mut digits: SmallVec<[Digit; 8]> = SmallVec::new();
        for iter in layout.shard().iter().rev().filter(|i| i.extent > 1) {
            let stride = if iter.axis == axis { iter.stride } else { 0 };
            match digits.last_mut() {
                Some(last) if last.extent.checked_mul(last.stride) == Some(stride) => {
                    last.extent = last.extent.wrapping_mul(iter.extent);
                }
                _ => digits.push(Digit {
                    extent: iter.extent,
                    stride,
                }),
            }
        }
        let (table, tabled) = tabulate(&digits);
        Ok(Self {
            digits,
            constant: layout.offset().get(axis),
            swizzle: layout
                .swizzle()
                .filter(|s| axis == Axis::M && !s.is_identity()),
            size: layout.size(),
            table,
            tabled,
        })
    }

    /// The number of logical indices.
    #[must_use]
    pub const fn size(&self) -> i64 {
        self.size
    }

    /// The constant of the affine form: the offset on the axis.
    #[must_use]
    pub const fn constant(&self) -> i64 {
        self.constant
    }

    /// What is applied to the affine form's value, when anything is.
    #[must_use]
    pub const fn swizzle(&self) -> Option<Swizzle> {
        self.swizzle
    }

    /// The terms of the affine form, outermost first, as few as merging of digits leaves. Their sum
    /// plus [`AddressMap::constant`], then [`AddressMap::swizzle`], is the coordinate. Sums wrap: partial
    /// sums may leave 64 bits, the whole sum does not.
    #[must_use]
    pub fn terms(&self) -> Vec<Term> {
        let mut divisor = 1_i64;
        let mut terms = Vec::with_capacity(self.digits.len());
        for digit in &self.digits {
            if digit.stride != 0 {
                terms.push(Term {
                    divisor,
                    modulus: digit.extent,
                    stride: digit.stride,
                });
            }
            // At most the size of the layout, which fits.
            divisor = divisor.wrapping_mul(digit.extent);
        }
        terms.reverse();
        terms
    }

    /// The coordinate of index `x`.
    ///
    /// # Errors
    /// `Invalid` when `x` is no index of the layout.
    pub fn get(&self, x: i64) -> Result<i64> {
        self.check_range(x, 1)?;
        let mut rest = x;
        let mut sum = self.constant;
        for digit in &self.digits {
            // A valid layout's coordinates fit; partial sums may leave the range and come back.
            sum = sum.wrapping_add((rest % digit.extent).wrapping_mul(digit.stride));
            rest /= digit.extent;
        }
        Ok(self.swizzle.map_or(sum, |s| s.apply(sum)))
    }

    /// Writes the coordinates of `first .. first + out.len()`.
    ///
    /// # Errors
    /// `Invalid` when the range leaves the layout; nothing is written then.
    pub fn fill(&self, first: i64, out: &mut [i64]) -> Result<()> {
        let count = i64::try_from(out.len()).map_err(|_| Error::overflow("a length"))?;
        self.check_range(first, count)?;
        let mut walk = Walk::new(self, first);
        let mut out = out;
        while !out.is_empty() {
            let left = usize::try_from(walk.left()).unwrap_or(usize::MAX);
            let (run, rest) = out.split_at_mut(left.min(out.len()));
            walk.write(run);
            walk.next_block();
            out = rest;
        }
        Ok(())
    }

    /// All coordinates, in the order of the index.
    #[must_use]
    pub fn iter(&self) -> Addresses<'_> {
        Addresses {
            walk: Walk::new(self, 0),
            remaining: self.size,
        }
    }

    fn check_range(&self, first: i64, count: i64) -> Result<()> {
        let inside = first >= 0 && first.checked_add(count).is_some_and(|end| end <= self.size);
        if inside {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "address map: {count} indices from {first} are not inside of 0 to {}",
            self.size.wrapping_sub(1)
        )))
    }
}

impl<'a> IntoIterator for &'a AddressMap {
    type Item = i64;
    type IntoIter = Addresses<'a>;

    fn into_iter(self) -> Addresses<'a> {
        self.iter()
    }
}

/// The sums of the innermost digits, as many as fit the table, and how many those are.
fn tabulate(digits: &[Digit]) -> (Vec<i64>, usize) {
    let mut table = vec![0_i64];
    let mut size = 1_i64;
    for (k, digit) in digits.iter().enumerate() {
        match size.checked_mul(digit.extent) {
            Some(next) if next <= TABLE_LIMIT => size = next,
            _ => return (table, k),
        }
        let steps = (0..digit.extent).map(|i| i.wrapping_mul(digit.stride));
        table = steps
            .flat_map(|step| table.iter().map(move |low| low.wrapping_add(step)))
            .collect();
    }
    (table, digits.len())
}

/// An odometer over blocks: a block is the table, or a run along the innermost digit when that digit
/// alone is longer than the table.
#[derive(Clone, Debug)]
struct Walk<'a> {
    map: &'a AddressMap,
    outer: &'a [Digit],
    values: SmallVec<[i64; 8]>,
    base: i64,
    at: i64,
    block: i64,
    step: i64,
}

impl<'a> Walk<'a> {
    fn new(map: &'a AddressMap, first: i64) -> Self {
        let (block, step, inner) = match map.digits.first() {
            Some(digit) if map.tabled == 0 => (digit.extent, digit.stride, 1),
            _ => (i64::try_from(map.table.len()).unwrap_or(1), 0, map.tabled),
        };
        let outer = map.digits.get(inner..).unwrap_or_default();
        let mut rest = first / block;
        let mut base = map.constant;
        let mut values = SmallVec::with_capacity(outer.len());
        for digit in outer {
            let value = rest % digit.extent;
            rest /= digit.extent;
            base = base.wrapping_add(value.wrapping_mul(digit.stride));
            values.push(value);
        }
        Self {
            map,
            outer,
            values,
            base,
            at: first % block,
            block,
            step,
        }
    }

    /// Elements that the block still has.
    fn left(&self) -> i64 {
        self.block - self.at
    }

    /// Writes the next elements of this block.
    fn write(&self, run: &mut [i64]) {
        if self.map.tabled == 0 && self.block > 1 {
            let mut value = self.base.wrapping_add(self.at.wrapping_mul(self.step));
            for slot in run.iter_mut() {
                *slot = value;
                value = value.wrapping_add(self.step);
            }
        } else {
            let at = usize::try_from(self.at).unwrap_or(usize::MAX);
            let table = self.map.table.get(at..).unwrap_or_default();
            for (slot, low) in run.iter_mut().zip(table) {
                *slot = self.base.wrapping_add(*low);
            }
        }
        if let Some(swizzle) = self.map.swizzle {
            run.iter_mut().for_each(|slot| *slot = swizzle.apply(*slot));
        }
    }

    fn next_block(&mut self) {
        self.at = 0;
        for (digit, value) in self.outer.iter().zip(&mut self.values) {
            *value += 1;
            self.base = self.base.wrapping_add(digit.stride);
            if *value < digit.extent {
                return;
            }
            *value = 0;
            let whole = digit.extent.wrapping_mul(digit.stride);
            self.base = self.base.wrapping_sub(whole);
        }
    }
}

/// The coordinates of an [`AddressMap`], in the order of the index.
#[derive(Clone, Debug)]
pub struct Addresses<'a> {
    walk: Walk<'a>,
    remaining: i64,
}

impl Iterator for Addresses<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.remaining == 0 {
            return None;
        }
        let mut one = [0];
        self.walk.write(&mut one);
        self.remaining -= 1;
        self.walk.at += 1;
        if self.walk.at == self.walk.block {
            self.walk.next_block();
        }
        let [address] = one;
        Some(address)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.remaining) {
            Ok(count) => (count, Some(count)),
            Err(_) => (usize::MAX, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{check, parse};

    fn expected(layout: &Layout, axis: Axis, x: i64) -> i64 {
        let raw = layout.origin(x).unwrap().get(axis);
        let swizzle = layout.swizzle().filter(|_| axis == Axis::M);
        swizzle.map_or(raw, |s| s.apply(raw))
    }

    fn agrees(layout: &Layout, axis: Axis, first: i64) {
        let map = AddressMap::new(layout, axis).unwrap();
        let want: Vec<i64> = (0..layout.size())
            .map(|x| expected(layout, axis, x))
            .collect();
        assert_eq!(map.iter().collect::<Vec<_>>(), want, "{layout}");
        let mut out = vec![0; want.len() - usize::try_from(first).unwrap()];
        map.fill(first, &mut out).unwrap();
        assert_eq!(out, want[usize::try_from(first).unwrap()..], "{layout}");
        for (x, want) in (0..).zip(&want) {
            assert_eq!(map.get(x).unwrap(), *want);
            let sum = map.terms().iter().fold(map.constant(), |sum, t| {
                sum + x / t.divisor % t.modulus * t.stride
            });
            assert_eq!(map.swizzle().map_or(sum, |s| s.apply(sum)), *want);
        }
    }

    #[test]
    fn agrees_with_the_layout() {
        check(300, |choices| {
            let layout = choices.layout();
            let layout = layout.with_replica([]).unwrap();
            let first = i64::from(choices.below(256)) % layout.size();
            for axis in layout.axes() {
                agrees(&layout, axis, first);
            }
            agrees(&layout, Axis::M, first);
        });
    }

    #[test]
    fn agrees_on_long_runs_and_swizzled_tiles() {
        for text in [
            "S[(3, 600) : (1000, 1)] + 7",
            "S[(600, 3) : (-1, 1000)]",
            "Sw<3,3,3> o S[(16, 8, 64) : (512, 64, 1)]",
            "Sw<3,3,3> o S[(32, 2, 64) : (64, 2048, 1)]",
        ] {
            agrees(&parse(text), Axis::M, 5);
        }
    }

    #[test]
    fn bad_ranges_and_replicas_are_errors() {
        let map = AddressMap::new(&parse("S[(4, 2) : (1, 8)]"), Axis::M).unwrap();
        assert!(map.get(8).is_err() && map.get(-1).is_err());
        assert!(map.fill(1, &mut [0; 8]).is_err() && map.fill(i64::MAX, &mut [0; 8]).is_err());
        assert!(map.fill(8, &mut []).is_ok());
        assert!(AddressMap::new(&parse("S[2 : 1] + R[2 : 4]"), Axis::M).is_err());
    }
}
