//! Compiled maps: a logical index to its coordinate on one axis, for loops over many indices.

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::swizzle::Swizzle;

/// Coordinates of the innermost digits that are tabulated; 2 KiB, a small part of a first-level cache.
const TABLE_LIMIT: i64 = 256;
/// A longer innermost digit has no table when no divisor of it makes one of at least this size.
const TABLE_MIN: i64 = 32;
/// Coordinates that the iterator writes ahead.
const AHEAD: usize = 64;

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
    /// What the innermost digits add, for all their values; empty where a block is a `run`.
    table: Vec<i64>,
    /// The digits of a block's number, innermost first.
    outer: SmallVec<[Digit; 8]>,
    run: Digit,
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
        let (table, run, outer) = tabulate(&digits);
        Ok(Self {
            digits,
            constant: layout.offset().get(axis),
            swizzle: layout
                .swizzle()
                .filter(|s| axis == Axis::M && !s.is_identity()),
            size: layout.size(),
            table,
            outer,
            run,
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
        Walk::new(self, first).fill(out);
        Ok(())
    }

    /// All coordinates, in the order of the index.
    #[must_use]
    pub fn iter(&self) -> Addresses<'_> {
        Addresses {
            walk: Walk::new(self, 0),
            ahead: [0; AHEAD],
            at: AHEAD,
            rest: self.size,
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

/// The sums of the innermost digits, as many as fit the table, the last one in part perhaps; and the
/// digits of what is left. A long innermost digit that has no fitting divisor is a run without a table.
fn tabulate(digits: &[Digit]) -> (Vec<i64>, Digit, SmallVec<[Digit; 8]>) {
    let mut table = vec![0_i64];
    let (mut size, mut outer) = (1_i64, SmallVec::new());
    for (k, digit) in digits.iter().enumerate() {
        let part = if outer.is_empty() {
            largest_divisor(digit.extent, TABLE_LIMIT / size)
        } else {
            1
        };
        if k == 0 && part < TABLE_MIN && part < digit.extent {
            return (
                Vec::new(),
                *digit,
                SmallVec::from_slice(digits.get(1..).unwrap_or_default()),
            );
        }
        let steps = (0..part).map(|i| i.wrapping_mul(digit.stride));
        table = steps
            .flat_map(|step| table.iter().map(move |low| low.wrapping_add(step)))
            .collect();
        size *= part;
        if part < digit.extent {
            outer.push(Digit {
                extent: digit.extent / part,
                stride: digit.stride.wrapping_mul(part),
            });
        }
    }
    let run = Digit {
        extent: size,
        stride: 0,
    };
    (table, run, outer)
}

/// The largest divisor of `n >= 1` up to `limit >= 1`.
fn largest_divisor(n: i64, limit: i64) -> i64 {
    let divides = |d: &i64| n % d == 0;
    (1..=limit.min(n)).rev().find(divides).unwrap_or(1)
}

/// An odometer over blocks: a block is the table, or a run along the innermost digit.
#[derive(Clone, Debug)]
struct Walk<'a> {
    map: &'a AddressMap,
    values: SmallVec<[i64; 8]>,
    base: i64,
    at: i64,
}

impl<'a> Walk<'a> {
    fn new(map: &'a AddressMap, first: i64) -> Self {
        let mut rest = first / map.run.extent;
        let mut base = map.constant;
        let mut values = SmallVec::with_capacity(map.outer.len());
        for digit in &map.outer {
            let value = rest % digit.extent;
            rest /= digit.extent;
            base = base.wrapping_add(value.wrapping_mul(digit.stride));
            values.push(value);
        }
        Self {
            map,
            values,
            base,
            at: first % map.run.extent,
        }
    }

    /// Writes the next coordinates; after the last index come those of the first again.
    fn fill(&mut self, mut out: &mut [i64]) {
        let block = self.map.run.extent;
        while !out.is_empty() {
            let left = usize::try_from(block - self.at).unwrap_or(usize::MAX);
            let (part, rest) = out.split_at_mut(left.min(out.len()));
            self.write(part);
            // At most what the block has left.
            self.at += part.len() as i64;
            if self.at == block {
                self.next_block();
            }
            out = rest;
        }
    }

    /// Writes the next elements of this block.
    fn write(&self, part: &mut [i64]) {
        if self.map.table.is_empty() {
            let step = self.map.run.stride;
            let mut value = self.base.wrapping_add(self.at.wrapping_mul(step));
            for slot in part.iter_mut() {
                *slot = value;
                value = value.wrapping_add(step);
            }
        } else {
            let at = usize::try_from(self.at).unwrap_or(usize::MAX);
            let table = self.map.table.get(at..).unwrap_or_default();
            for (slot, low) in part.iter_mut().zip(table) {
                *slot = self.base.wrapping_add(*low);
            }
        }
        if let Some(swizzle) = self.map.swizzle {
            part.iter_mut()
                .for_each(|slot| *slot = swizzle.apply(*slot));
        }
    }

    fn next_block(&mut self) {
        self.at = 0;
        for (digit, value) in self.map.outer.iter().zip(&mut self.values) {
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
    /// Coordinates from `at` to the end come next: written by the block, they cost little.
    ahead: [i64; AHEAD],
    at: usize,
    /// Coordinates after those.
    rest: i64,
}

impl Addresses<'_> {
    /// Writes more ahead, in place of what is there; false at the end.
    fn refill(&mut self) -> bool {
        let count = usize::try_from(self.rest).map_or(AHEAD, |rest| rest.min(AHEAD));
        self.at = AHEAD - count;
        self.rest -= count as i64;
        self.walk
            .fill(self.ahead.get_mut(self.at..).unwrap_or_default());
        count > 0
    }

    #[cold]
    fn next_refilled(&mut self) -> Option<i64> {
        if self.refill() { self.next() } else { None }
    }

    fn ahead(&self) -> &[i64] {
        self.ahead.get(self.at..).unwrap_or_default()
    }
}

impl Iterator for Addresses<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        match self.ahead.get(self.at) {
            Some(&address) => {
                self.at += 1;
                Some(address)
            }
            None => self.next_refilled(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = usize::try_from(self.rest).ok();
        match count.and_then(|rest| rest.checked_add(AHEAD - self.at)) {
            Some(count) => (count, Some(count)),
            None => (usize::MAX, None),
        }
    }

    /// Skips without evaluating what is skipped.
    fn nth(&mut self, n: usize) -> Option<i64> {
        let ahead = AHEAD - self.at;
        if n < ahead {
            self.at += n;
            return self.next();
        }
        let skipped = i64::try_from(n - ahead).unwrap_or(i64::MAX).min(self.rest);
        (self.at, self.rest) = (AHEAD, self.rest - skipped);
        let map = self.walk.map;
        self.walk = Walk::new(map, map.size - self.rest);
        self.next()
    }

    fn fold<A, F: FnMut(A, i64) -> A>(mut self, start: A, mut step: F) -> A {
        let mut sum = self.ahead().iter().copied().fold(start, &mut step);
        while self.refill() {
            sum = self.ahead().iter().copied().fold(sum, &mut step);
        }
        sum
    }
}

impl std::iter::FusedIterator for Addresses<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{check, parse};

    fn expected(layout: &Layout, axis: Axis, x: i64) -> i64 {
        let raw = layout.origin(x).unwrap().get(axis);
        let swizzle = layout.swizzle().filter(|_| axis == Axis::M);
        swizzle.map_or(raw, |s| s.apply(raw))
    }

    /// One by one, folded, from the middle on, by steps, and how many are left.
    fn iterates(map: &AddressMap, want: &[i64], first: usize) {
        let mut iter = map.iter();
        for (x, next) in want.iter().enumerate().take(first) {
            assert_eq!(iter.size_hint().0, want.len() - x);
            assert_eq!(iter.next(), Some(*next));
        }
        let rest = iter.clone().fold(Vec::new(), |mut rest, address| {
            rest.push(address);
            rest
        });
        assert_eq!(rest, want[first..]);
        let mut skipped = map.iter();
        assert_eq!(skipped.nth(first), want.get(first).copied());
        assert_eq!(skipped.size_hint().0, want.len() - first - 1);
        assert!(skipped.eq(want[first + 1..].iter().copied()));
        let every: Vec<i64> = map.iter().step_by(first + 1).collect();
        let strided = want.iter().copied().step_by(first + 1);
        assert_eq!(every, strided.collect::<Vec<_>>());
        let mut end = map.iter();
        assert_eq!(end.nth(want.len()), None);
        assert_eq!((end.next(), end.size_hint()), (None, (0, Some(0))));
    }

    fn agrees(layout: &Layout, axis: Axis, first: i64) {
        let map = AddressMap::new(layout, axis).unwrap();
        let want: Vec<i64> = (0..layout.size())
            .map(|x| expected(layout, axis, x))
            .collect();
        assert_eq!(map.iter().collect::<Vec<_>>(), want, "{layout}");
        iterates(&map, &want, usize::try_from(first).unwrap());
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
            "S[(3, 257) : (1000, -2)] + 7",
            "S[514 : 3]",
            "S[(5, 514) : (1@lane, 3)]",
            "S[(257, 2, 3) : (6, 1, 1@lane)]",
            "S[1024 : 4]",
            "S[(1021, 2) : (1, 5000)]",
            "S[]",
            "Sw<3,3,3> o S[(16, 8, 64) : (512, 64, 1)]",
            "Sw<3,3,3> o S[(32, 2, 64) : (64, 2048, 1)]",
        ] {
            let layout = parse(text);
            agrees(&layout, Axis::M, 5.min(layout.size() - 1));
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
