//! Aliasing: two indices in one place, two layouts in one place.

use std::collections::HashMap;

use super::equation::{Term, solve};
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::{Layout, long_enough};
use crate::swizzle::Swizzle;

/// Addresses that are enumerated where two swizzles differ.
const MAX_ADDRESSES: i64 = 1 << 20;

/// Two logical indices that share a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// One index.
    pub first: i64,
    /// Another one.
    pub second: i64,
    /// A place of both.
    pub point: Coord,
}

/// A place that two layouts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// An index of the first layout that lives there.
    pub first: i64,
    /// An index of the second layout that lives there.
    pub second: i64,
    /// The place.
    pub point: Coord,
}

/// Two different indices `x`, `y` whose sets of places meet, `f(x)` and `f(y)` not disjoint; `None` when
/// there are none, so that writing any index leaves all others as they are.
///
/// Copies of one index may coincide; [`coinciding_copies`] asks for that.
///
/// # Errors
/// `Unsupported` for a dynamic extent. The question contains the subset-sum problem, so that no method
/// is known to be fast always: strides that overlap without any structure are `Unsupported` when the
/// search on an axis has failed at 2^19 different rests. Strides that divide each other, or that are
/// larger than what the smaller ones reach, as in every layout that code uses, need a handful.
///
/// ```
/// use axe_layout::{Layout, analysis::alias};
/// let rows: Layout = "S[(4, 8) : (8, 1)]".parse()?;
/// assert_eq!(alias(&rows)?, None);
/// let halo: Layout = "S[(4, 10) : (8, 1)]".parse()?;
/// let found = alias(&halo)?.unwrap();
/// assert_eq!(halo.points(found.first)?, halo.points(found.second)?);
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn alias(layout: &Layout) -> Result<Option<Alias>> {
    layout.check_static("aliasing")?;
    // A digit that moves nothing.
    let still = |i: &&Iter| i.stride == 0 && i.extent > 1;
    if let Some(at) = layout.shard().iter().position(|i| still(&i)) {
        let digits = Digits::unit(at);
        return digits.alias(layout).map(Some);
    }
    let mut undecided = None;
    for axis in layout.axes() {
        match difference(layout, axis, true) {
            Ok(Some(digits)) => return digits.alias(layout).map(Some),
            Ok(None) => {}
            Err(error) => undecided = Some(error),
        }
    }
    undecided.map_or(Ok(None), Err)
}

/// Whether no two indices share a place: [`alias`] finds none.
///
/// # Errors
/// As [`alias`].
pub fn is_injective(layout: &Layout) -> Result<bool> {
    alias(layout).map(|found| found.is_none())
}

/// Whether two choices of the replica digits are one displacement, so that an index has fewer copies
/// than the product of the replica extents.
///
/// # Errors
/// As [`alias`].
pub fn coinciding_copies(layout: &Layout) -> Result<bool> {
    let still = |i: &Iter| i.stride == 0 && i.extent > 1;
    if layout.replica().iter().any(still) {
        return Ok(true);
    }
    let copies = Layout::empty().with_replica(layout.replica().iter().copied())?;
    for axis in copies.axes() {
        if difference(&copies, axis, false)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Differences of digits, one for each iter; what `x` and `y` and their replicas differ by.
struct Digits {
    shard: HashMap<usize, i64>,
    replica: HashMap<usize, i64>,
}

impl Digits {
    fn unit(at: usize) -> Self {
        Self {
            shard: HashMap::from([(at, 1)]),
            replica: HashMap::new(),
        }
    }

    fn alias(&self, layout: &Layout) -> Result<Alias> {
        let part = |of: &HashMap<usize, i64>, sign: i64| -> HashMap<usize, i64> {
            let positive = of.iter().map(|(&k, &d)| (k, (d * sign).max(0)));
            positive.collect()
        };
        let (x, r) = (part(&self.shard, 1), part(&self.replica, 1));
        Ok(Alias {
            first: index(layout, &x),
            second: index(layout, &part(&self.shard, -1)),
            point: point(layout, &x, &r)?,
        })
    }
}

/// Digits on `axis` with the sum 0, one of the shard (or of the replicas) not 0.
fn difference(layout: &Layout, axis: Axis, of_shard: bool) -> Result<Option<Digits>> {
    let (mut terms, mut places) = (Vec::new(), Vec::new());
    for (shard, at, iter) in moving(layout, axis) {
        terms.push(Term {
            stride: iter.stride,
            low: 1 - iter.extent,
            high: iter.extent - 1,
            counts: shard == of_shard,
        });
        places.push((shard, at));
    }
    Ok(solve(&terms, 0, true)?.map(|found| collect(&places, &found, 1)))
}

fn collect(places: &[(bool, usize)], found: &[i64], sign: i64) -> Digits {
    let part = |of: bool| {
        let mine = places
            .iter()
            .zip(found)
            .filter(|((shard, _), _)| *shard == of);
        mine.map(|((_, at), &d)| (*at, d * sign)).collect()
    };
    Digits {
        shard: part(true),
        replica: part(false),
    }
}

/// The iters that move along `axis`: whether of the shard, position, iter.
fn moving(layout: &Layout, axis: Axis) -> impl Iterator<Item = (bool, usize, Iter)> + '_ {
    let shard = layout.shard().iter().enumerate();
    let replica = layout.replica().iter().enumerate();
    shard
        .map(|(at, iter)| (true, at, *iter))
        .chain(replica.map(|(at, iter)| (false, at, *iter)))
        .filter(move |(_, _, i)| i.axis == axis && i.extent > 1 && i.stride != 0)
}

fn index(layout: &Layout, digits: &HashMap<usize, i64>) -> i64 {
    layout.shard().iter().enumerate().fold(0, |x, (at, iter)| {
        x * iter.extent + digits.get(&at).copied().unwrap_or(0)
    })
}

fn point(
    layout: &Layout,
    shard: &HashMap<usize, i64>,
    replica: &HashMap<usize, i64>,
) -> Result<Coord> {
    let mut point = layout.origin(index(layout, shard))?;
    for (at, iter) in layout.replica().iter().enumerate() {
        let digit = replica.get(&at).copied().unwrap_or(0);
        // Between the smallest and the largest coordinate, sums may wrap on the way only.
        let sum = point
            .get(iter.axis)
            .wrapping_add(digit.wrapping_mul(iter.stride));
        point.set(iter.axis, sum);
    }
    if let Some(swizzle) = layout.swizzle() {
        point.set(Axis::M, swizzle.apply(point.get(Axis::M)));
    }
    Ok(point)
}

/// A place where an index of `a` and one of `b` live, offsets, replicas and swizzles included; `None`
/// when the images are disjoint. A dynamic extent is as long as it takes.
///
/// # Errors
/// `Unsupported` for dynamic extents of both along `m` under different swizzles, for strides that overlap without structure (2^19 rests, see
/// [`alias`]), and where swizzles differ and both layouts have more than 2^20 addresses.
///
/// ```
/// use axe_layout::{Layout, analysis::overlap};
/// let even: Layout = "S[64 : 2]".parse()?;
/// let odd: Layout = "S[64 : 2] + 1".parse()?;
/// let three: Layout = "S[64 : 3]".parse()?;
/// assert_eq!(overlap(&even, &odd)?, None);
/// assert!(overlap(&odd, &three)?.is_some());
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn overlap(a: &Layout, b: &Layout) -> Result<Option<Overlap>> {
    if a.is_dynamic() || b.is_dynamic() {
        let (a, b) = long_enough(a, b)?;
        return overlap(&a, &b);
    }
    let mut axes = a.axes();
    axes.extend(b.axes());
    axes.sort_unstable();
    axes.dedup();
    let apart = a.common_swizzle(b).is_none();
    if apart {
        // An offset of 0 on m names no axis, but a swizzle moves that address too.
        axes.retain(|axis| *axis != Axis::M);
        axes.push(Axis::M);
    }
    let (mut mine, mut its) = (Digits::none(), Digits::none());
    let mut undecided = None;
    for axis in axes {
        let met = if axis == Axis::M && apart {
            meet_swizzled(a, b)
        } else {
            meet(a, b, axis)
        };
        match met {
            Ok(None) => return Ok(None),
            Ok(Some((x, y))) => {
                mine.extend(x);
                its.extend(y);
            }
            Err(error) => undecided = Some(error),
        }
    }
    if let Some(error) = undecided {
        return Err(error);
    }
    Ok(Some(Overlap {
        first: index(a, &mine.shard),
        second: index(b, &its.shard),
        point: point(a, &mine.shard, &mine.replica)?,
    }))
}

impl Digits {
    fn none() -> Self {
        Self {
            shard: HashMap::new(),
            replica: HashMap::new(),
        }
    }

    fn extend(&mut self, other: Self) {
        self.shard.extend(other.shard);
        self.replica.extend(other.replica);
    }
}

/// The digits of an iter list as terms: values of the digits times `sign`.
fn digits_of(layout: &Layout, axis: Axis, sign: i64) -> (Vec<Term>, Vec<(bool, usize)>) {
    let term = |iter: Iter| Term {
        stride: iter.stride,
        low: ((iter.extent - 1) * sign).min(0),
        high: ((iter.extent - 1) * sign).max(0),
        counts: false,
    };
    let all = moving(layout, axis).map(|(shard, at, iter)| (term(iter), (shard, at)));
    all.unzip()
}

fn meet(a: &Layout, b: &Layout, axis: Axis) -> Result<Option<(Digits, Digits)>> {
    let (mut terms, mine) = digits_of(a, axis, 1);
    let (more, its) = digits_of(b, axis, -1);
    terms.extend(more);
    let target = i128::from(b.offset().get(axis)) - i128::from(a.offset().get(axis));
    let found = solve(&terms, target, false)?;
    Ok(found.map(|found| {
        let (x, y) = found.split_at(mine.len());
        (collect(&mine, x, 1), collect(&its, y, -1))
    }))
}

/// On `m` under different swizzles: the addresses of the layout with fewer of them one by one.
fn meet_swizzled(a: &Layout, b: &Layout) -> Result<Option<(Digits, Digits)>> {
    let count = |l: &Layout| {
        let extents = moving(l, Axis::M).map(|(_, _, i)| i.extent);
        extents.fold(1_i64, i64::saturating_mul)
    };
    if count(b) < count(a) {
        let found = meet_swizzled(b, a)?;
        return Ok(found.map(|(x, y)| (y, x)));
    }
    if count(a) > MAX_ADDRESSES {
        return Err(Error::unsupported(format!(
            "overlap of differently swizzled layouts with more than {MAX_ADDRESSES} addresses"
        )));
    }
    let (mine, places) = digits_of(a, Axis::M, 1);
    let (its, its_places) = digits_of(b, Axis::M, 1);
    let through = |swizzle: Option<Swizzle>, v: i64| swizzle.map_or(v, |s| s.apply(v));
    for x in 0..count(a) {
        let mut rest = x;
        let mut address = a.offset().get(Axis::M);
        let mut digits = Vec::with_capacity(mine.len());
        for term in &mine {
            let extent = term.high + 1;
            address = address.wrapping_add((rest % extent).wrapping_mul(term.stride));
            digits.push(rest % extent);
            rest /= extent;
        }
        let raw = through(b.swizzle(), through(a.swizzle(), address));
        let target = i128::from(raw) - i128::from(b.offset().get(Axis::M));
        if let Some(found) = solve(&its, target, false)? {
            let x = collect(&places, &digits, 1);
            return Ok(Some((x, collect(&its_places, &found, 1))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::oracle;
    use crate::tests::{check, parse};

    fn agrees(layout: &Layout) {
        let map = oracle::map(layout);
        let places: usize = map.iter().map(BTreeSet::len).sum();
        let distinct: BTreeSet<_> = map.iter().flatten().collect();
        let found = alias(layout).unwrap_or_else(|e| panic!("{layout}: {e}"));
        assert_eq!(found.is_none(), places == distinct.len(), "{layout}");
        if let Some(Alias {
            first,
            second,
            point,
        }) = found
        {
            assert_ne!(first, second, "{layout}");
            for x in [first, second] {
                let x = usize::try_from(x).unwrap();
                assert!(
                    map[x].contains(&oracle::point_of(&point)),
                    "{layout} at {x}"
                );
            }
        }
        let copies: i64 = layout.replica().iter().map(|i| i.extent).product();
        let all = oracle::replica_points(layout.replica()).len();
        let coincide = coinciding_copies(layout).unwrap();
        assert_eq!(coincide, i64::try_from(all).unwrap() < copies, "{layout}");
    }

    #[test]
    fn aliases_are_those_of_the_definition() {
        check(300, |choices| agrees(&choices.layout()));
    }

    /// All layouts of two shard iters and a replica on one axis, with small numbers of either sign.
    #[test]
    fn a_small_universe_complete() {
        let strides = [-4_i64, -2, -1, 0, 1, 2, 3, 6];
        for e1 in 1..5_i64 {
            for e2 in 1..5_i64 {
                for s1 in strides {
                    for s2 in strides {
                        for (r, t) in [(1, 1), (2, 1), (3, -2), (2, 8), (2, 0)] {
                            let on_m = |e, s| Iter::new(e, s, Axis::M);
                            let shard = Layout::from_shard([on_m(e1, s1), on_m(e2, s2)]);
                            agrees(&shard.unwrap().with_replica([on_m(r, t)]).unwrap());
                        }
                    }
                }
            }
        }
    }

    fn overlaps(a: &Layout, b: &Layout) {
        let places = |l: &Layout| {
            let map = oracle::map(l).into_iter().enumerate();
            let mut places: BTreeMap<oracle::Point, BTreeSet<usize>> = BTreeMap::new();
            for (x, points) in map {
                for point in points {
                    places.entry(point).or_default().insert(x);
                }
            }
            places
        };
        let (mine, its) = (places(a), places(b));
        let meet = mine.keys().any(|p| its.contains_key(p));
        let found = overlap(a, b).unwrap_or_else(|e| panic!("{a} and {b}: {e}"));
        assert_eq!(found.is_some(), meet, "{a} and {b}");
        if let Some(Overlap {
            first,
            second,
            point,
        }) = found
        {
            let point = oracle::point_of(&point);
            let has = |places: &BTreeMap<oracle::Point, BTreeSet<usize>>, x: i64| {
                let x = usize::try_from(x).unwrap();
                places.get(&point).is_some_and(|all| all.contains(&x))
            };
            assert!(
                has(&mine, first) && has(&its, second),
                "{a} and {b} at {point:?}"
            );
        }
    }

    #[test]
    fn overlaps_are_those_of_the_definition() {
        check(300, |choices| {
            let (a, b) = (choices.layout(), choices.layout());
            let points = |l: &Layout| l.size() * l.replica_count();
            if points(&a).max(points(&b)) > 1024 {
                return;
            }
            overlaps(&a, &b);
            overlaps(&a, &a);
        });
    }

    #[test]
    fn swizzles_permute_what_they_share() {
        for (a, b) in [
            ("Sw<2,2,2> o S[64 : 1]", "S[64 : 1]"),
            ("Sw<2,2,2> o S[4 : 1] + 16", "S[4 : 1] + 16"),
            ("Sw<2,2,2> o S[4 : 1] + 16", "S[4 : 1] + 20"),
            ("Sw<2,2,2> o S[4 : 1] + 16", "Sw<2,2,2> o S[4 : 1] + 20"),
            ("Sw<1,0,1> o S[] + 2", "S[]"),
            ("Sw<1,0,1> o S[] + 2", "S[] + 3"),
        ] {
            overlaps(&parse(a), &parse(b));
        }
    }

    #[test]
    fn kernels_do_not_alias() {
        for text in [
            "S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]",
            "Sw<3,3,3> o S[(128, 2, 64) : (64, 8192, 1)]",
            "S[(1048576, 1048576) : (1048576, 1)] + R[8 : 1099511627776]",
        ] {
            assert!(is_injective(&parse(text)).unwrap(), "{text}");
        }
        assert!(!is_injective(&parse("S[(16, 64) : (0, 1)]")).unwrap());
        assert!(!is_injective(&parse("S[4 : 1] + R[2 : 2]")).unwrap());
        assert_eq!(
            alias(&parse("S[(?, 4)]")).unwrap_err().kind(),
            crate::Kind::Unsupported
        );
    }
}
