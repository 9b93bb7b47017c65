//! One swizzle for each map: the least one under which a swizzled layout's map is a layout.
//!
//! A swizzle moves bits below its period alone, so that digits in steps of the period move past it, past
//! every swizzle of a smaller period too. What is left inside of the period is listed, and each smaller
//! swizzle is tried: the map is a layout under it when the addresses that it takes back are digits times
//! strides. Digits are read off the addresses, as their canonical form is unique (paper, theorem A.8).

use smallvec::SmallVec;

use super::canonical::{canonical_replica, fuse, steps_on};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};
use crate::sumset::{self, Steps};
use crate::swizzle::Swizzle;

/// Most points inside of a period.
const MAX_POINTS: i64 = 1 << 16;

/// A layout with less of a swizzle than `swizzle`, which is that of the canonical `form`, and the same
/// map: the least one, `Some(None)` where `form` has it, `None` where that is not decided.
pub(super) fn rewrite(form: &Layout, swizzle: Swizzle) -> Option<Option<Layout>> {
    let bits = address_bits(form, swizzle);
    if bits.is_some_and(|bits| is_whole(bits, swizzle)) {
        return Some(None);
    }
    let inside = Inside::new(form, swizzle)?;
    for candidate in std::iter::once(None).chain(smaller(swizzle).map(Some)) {
        if bits.is_some_and(|bits| !are_digits(bits, swizzle, candidate)) {
            continue;
        }
        if let Some(found) = inside.under(candidate)? {
            return Some(Some(found));
        }
    }
    Some(None)
}

/// The bits below the period that the shard sets, one for each bit of a digit, where addresses there are the
/// offset with some of these bits set: extents and strides are powers of two, no two digits share a bit with
/// each other or the offset, and no replica moves below the period.
///
/// The swizzled address is then affine over F2 in the bits of the index.
fn address_bits(form: &Layout, swizzle: Swizzle) -> Option<i64> {
    let below = swizzle.period() - 1;
    let low = |iter: &&Iter| iter.axis == Axis::M && iter.stride & below != 0;
    if form.replica.iter().any(|iter| low(&iter)) {
        return None;
    }
    let offset = form.offset.get(Axis::M) & below;
    let mut bits = 0_i64;
    for iter in form.shard.iter().filter(low) {
        let (extent, stride) = (iter.extent, iter.stride);
        if extent < 1 || stride < 1 || extent & (extent - 1) != 0 || stride & (stride - 1) != 0 {
            return None;
        }
        // Places of a valid layout fit.
        let digit = (extent - 1).wrapping_mul(stride) & below;
        if (bits | offset) & digit != 0 {
            return None;
        }
        bits |= digit;
    }
    Some(bits)
}

/// Whether both bits of each pair that the swizzle combines are set one by one. The swizzle is the least one
/// then: to part the images of such a pair, another one has to combine the same two bits, and one that does so
/// for all pairs is no smaller.
fn is_whole(bits: i64, swizzle: Swizzle) -> bool {
    let field = ((1_i64 << swizzle.bits()) - 1) << swizzle.base();
    let pairs = field | field << swizzle.shift();
    bits & pairs == pairs
}

/// Whether addresses that are affine over F2 are sums of digits when the candidate takes the swizzle back: if
/// and only if no two bits of the index change the same bit of the address. (Where they do, setting both adds
/// twice what they share, a sum of different powers of two with signs, which is not 0.)
fn are_digits(bits: i64, swizzle: Swizzle, candidate: Option<Swizzle>) -> bool {
    let (mut left, mut taken) = (bits, 0_i64);
    while left != 0 {
        let image = swizzle.apply(left & left.wrapping_neg());
        let image = candidate.map_or(image, |candidate| candidate.apply(image));
        if taken & image != 0 {
            return false;
        }
        taken |= image;
        left &= left - 1;
    }
    true
}

/// The swizzles of at most the period of `of`, in ascending order of period, bits and position, up to `of`.
fn smaller(of: Swizzle) -> impl Iterator<Item = Swizzle> {
    let top = of.bits() + of.base() + of.shift();
    let all = (2..=top).flat_map(|top| {
        (1..=top / 2).flat_map(move |bits| {
            (0..=top - 2 * bits).flat_map(move |base| {
                let shift = top - bits - base;
                [true, false]
                    .into_iter()
                    .filter_map(move |inner| Swizzle::new(bits, base, shift, inner).ok())
            })
        })
    });
    all.take_while(move |candidate| *candidate != of)
}

/// Shard digits between two that the swizzle does not concern, and how many indices they have.
struct Segment {
    /// Extents and strides, outermost first.
    digits: SmallVec<[(i64, i64); 4]>,
    size: i64,
}

/// The shard: what the swizzle does not concern, and segments of what it does.
enum Piece {
    Past(Iter),
    Inside(Segment),
}

/// A layout with the digits inside of the swizzle's period apart.
struct Inside<'a> {
    form: &'a Layout,
    swizzle: Swizzle,
    pieces: SmallVec<[Piece; 6]>,
    /// The replica steps past the period, on `m`.
    past: Steps,
    /// The replica's points inside of the period, ascending from 0; one at least.
    points: SmallVec<[i64; 8]>,
}

/// An extent and a stride.
type Digit = (i64, i64);

/// `(extent, stride)` in steps of the period, and below it; the part inside is whole where a number of
/// steps that makes up the period does not divide the extent.
fn cut(extent: i64, stride: i64, period: i64) -> (Option<Digit>, Option<Digit>) {
    if stride % period == 0 {
        return (Some((extent, stride)), None);
    }
    let steps = period >> stride.trailing_zeros();
    match stride.checked_mul(steps) {
        Some(step) if extent > steps && extent % steps == 0 => {
            (Some((extent / steps, step)), Some((steps, stride)))
        }
        _ => (None, Some((extent, stride))),
    }
}

impl<'a> Inside<'a> {
    fn new(form: &'a Layout, swizzle: Swizzle) -> Option<Self> {
        let period = swizzle.period();
        let mut pieces = SmallVec::new();
        let mut count = 1_i64;
        for iter in &form.shard {
            if iter.axis != Axis::M || iter.stride == 0 {
                pieces.push(Piece::Past(*iter));
                continue;
            }
            let (past, inside) = cut(iter.extent, iter.stride, period);
            pieces.extend(past.map(|(e, s)| Piece::Past(Iter::new(e, s, Axis::M))));
            let Some((extent, stride)) = inside else {
                continue;
            };
            count = count
                .checked_mul(extent)
                .filter(|&n| extent != DYNAMIC && n <= MAX_POINTS)?;
            push(&mut pieces, extent, stride);
        }
        let (mut past, mut low) = (Steps::new(), Steps::new());
        // Canonical replicas start at their least point.
        for &(extent, stride) in &steps_on(&form.replica, Axis::M).0 {
            let (out, inside) = cut(extent, stride, period);
            past.extend(out);
            low.extend(inside);
        }
        let points = sumset::points(&low, (MAX_POINTS / count).max(1))?;
        let points = SmallVec::from_slice(&points);
        Some(Self {
            form,
            swizzle,
            pieces,
            past,
            points,
        })
    }

    /// The address of an index inside of the period, of its least replica, before the swizzle. A small layout
    /// stays off the heap: nothing is listed.
    fn address(&self, mut index: i64) -> i64 {
        let mut address = self.form.offset.get(Axis::M);
        for &(extent, stride) in self.segments().rev().flat_map(|s| s.digits.iter().rev()) {
            // A sum of digits of a valid layout fits.
            address = address.wrapping_add((index % extent).wrapping_mul(stride));
            index /= extent;
        }
        address
    }

    fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Past(_) => None,
            Piece::Inside(segment) => Some(segment),
        })
    }

    /// The least place of an index inside of the period under `candidate`.
    fn place(&self, index: i64, candidate: Option<Swizzle>) -> i64 {
        let address = self.address(index);
        let places = self.points.iter().map(|point| {
            let place = self.swizzle.apply(address.wrapping_add(*point));
            candidate.map_or(place, |candidate| candidate.apply(place))
        });
        places.min().unwrap_or(0)
    }

    /// The places of an index from the least one on, ascending.
    fn copies(&self, index: i64, candidate: Option<Swizzle>) -> SmallVec<[i64; 8]> {
        let least = self.place(index, candidate);
        let address = self.address(index);
        let places = self.points.iter().map(|point| {
            let place = self.swizzle.apply(address.wrapping_add(*point));
            candidate
                .map_or(place, |candidate| candidate.apply(place))
                .wrapping_sub(least)
        });
        let mut places: SmallVec<[i64; 8]> = places.collect();
        places.sort_unstable();
        places
    }

    /// The layout with the same map and the swizzle `candidate`; `Some(None)` where there is none, `None`
    /// where that is not decided.
    fn under(&self, candidate: Option<Swizzle>) -> Option<Option<Layout>> {
        let first = self.place(0, candidate);
        let copies = self.copies(0, candidate);
        let mut weight: i64 = self.segments().map(|s| s.size).product();
        let size = weight;
        let mut found: SmallVec<[Shard; 4]> = SmallVec::new();
        for segment in self.segments() {
            weight /= segment.size;
            let place = |index: i64| self.place(index * weight, candidate).wrapping_sub(first);
            let Some(digits) = digits(segment.size, place) else {
                return Some(None);
            };
            found.push(digits);
        }
        let same = |index: i64| {
            self.place(index, candidate).wrapping_sub(first) == sum(&found, index)
                && (copies.len() == 1 || self.copies(index, candidate) == copies)
        };
        if !(0..size).all(same) {
            return Some(None);
        }
        let Some(steps) = sumset::of_points(&copies).ok()? else {
            return Some(None);
        };
        Some(self.assemble(candidate, first, found, &steps))
    }

    fn assemble(
        &self,
        candidate: Option<Swizzle>,
        first: i64,
        found: SmallVec<[Shard; 4]>,
        steps: &Steps,
    ) -> Option<Layout> {
        let mut found = found.into_iter();
        let mut shard = Shard::new();
        for piece in &self.pieces {
            match piece {
                Piece::Past(iter) => shard.push(*iter),
                Piece::Inside(_) => shard.extend(found.next()?),
            }
        }
        let others = self.form.replica.iter().filter(|iter| iter.axis != Axis::M);
        let on_m = self
            .past
            .iter()
            .chain(steps)
            .map(|&(e, s)| Iter::new(e, s, Axis::M));
        let replica: Replica = others.copied().chain(on_m).collect();
        let mut offset = self.form.offset.clone();
        offset.set(Axis::M, first);
        let (replica, offset) = canonical_replica(&replica, &offset);
        Layout::from_parts(fuse(&shard), replica, offset, candidate).ok()
    }
}

/// One more digit of the last segment, or of a new one.
fn push(pieces: &mut SmallVec<[Piece; 6]>, extent: i64, stride: i64) {
    match pieces.last_mut() {
        Some(Piece::Inside(segment)) => {
            segment.digits.push((extent, stride));
            segment.size *= extent;
        }
        _ => pieces.push(Piece::Inside(Segment {
            digits: SmallVec::from_slice(&[(extent, stride)]),
            size: extent,
        })),
    }
}

/// The digits, outermost first, that the places of `0..size` can only have: from the innermost one out,
/// each as long as its multiples go on.
fn digits(size: i64, place: impl Fn(i64) -> i64) -> Option<Shard> {
    let mut digits = Shard::new();
    let mut weight = 1_i64;
    while weight < size {
        let stride = place(weight);
        let goes_on = |k: &i64| place(k * weight) == k.wrapping_mul(stride);
        let extent = 2 + (2..size / weight).take_while(goes_on).count() as i64;
        let extent = extent.min(size / weight);
        if size / weight % extent != 0 {
            return None;
        }
        digits.push(Iter::new(extent, stride, Axis::M));
        weight *= extent;
    }
    digits.reverse();
    Some(digits)
}

/// The layout of places on `axis`, one for each logical index from 0 on, where digits describe them.
pub(crate) fn layout_of(axis: Axis, places: &[i64]) -> Option<Layout> {
    let first = *places.first()?;
    let size = i64::try_from(places.len()).ok()?;
    let place = |index: i64| {
        let place = usize::try_from(index)
            .ok()
            .and_then(|index| places.get(index));
        place.map_or(0, |place| place.wrapping_sub(first))
    };
    let mut shard = digits(size, place)?;
    if !(0..size).all(|index| place(index) == sum(std::slice::from_ref(&shard), index)) {
        return None;
    }
    shard.iter_mut().for_each(|iter| iter.axis = axis);
    let offset = Coord::from_terms([(axis, first)]).ok()?;
    Layout::from_parts(shard, Replica::new(), offset, None).ok()
}

/// The sum of the digits of `index` times their strides.
fn sum(segments: &[Shard], mut index: i64) -> i64 {
    let mut sum = 0_i64;
    for iter in segments.iter().rev().flat_map(|s| s.iter().rev()) {
        sum = sum.wrapping_add((index % iter.extent).wrapping_mul(iter.stride));
        index /= iter.extent;
    }
    sum
}
