//! Replica sets on one axis: sums of arithmetic progressions `{ i * s : 0 <= i < e }`.
//!
//! A set may have several descriptions, and rule C2 (absorb a progression into a finer one) does not
//! always end in the same one: `{3:2, 2:3, 2:6}` becomes `{6:2, 2:3}` or `{3:2, 4:3}`. Under the gap
//! condition (each stride exceeds the reach of the smaller ones) it does. Outside of it, sets are
//! compared as sets.

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// Progressions `(extent, stride)` with extents above 1 and positive strides.
pub(crate) type Steps = SmallVec<[(i64, i64); 8]>;

/// Points of a set; so many live without the heap.
pub(crate) type Points = SmallVec<[i64; 128]>;

/// Most points that are listed.
const POINT_LIMIT: i64 = 1 << 20;
/// Largest reach, in units of the common divisor, of sets that are searched as bits.
const BITS_LIMIT: i64 = 1 << 16;
/// Largest reach, in units of the common divisor, of sets that are made as bits: 8 MiB.
const DENSE_LIMIT: i64 = 1 << 26;
/// Most points of a set that is rewritten by search.
const REWRITE_LIMIT: i64 = 1 << 12;
/// Points that are few enough to add one by one.
const FEW: u32 = 64;
/// Most nodes of a search.
const NODE_LIMIT: usize = 20_000;

pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn common(steps: &Steps) -> i64 {
    steps.iter().fold(0, |g, &(_, s)| gcd(s, g))
}

pub(crate) fn reach(steps: &Steps) -> i64 {
    // The reach of valid replicas fits.
    steps.iter().fold(0_i64, |sum, &(e, s)| {
        sum.wrapping_add((e - 1).wrapping_mul(s))
    })
}

/// Rule C2 until nothing merges; strides ascend.
pub(crate) fn saturate(steps: &mut Steps) {
    steps.sort_unstable_by_key(|&(e, s)| (s, e));
    let mut i = 0;
    while i < steps.len() {
        let mut j = i + 1;
        let mut grown = false;
        while j < steps.len() {
            let ((e, s), (e2, s2)) = (steps[i], steps[j]);
            if s2 % s == 0 && s2 / s <= e {
                steps[i].0 = e + s2 / s * (e2 - 1);
                steps.remove(j);
                grown = true;
            } else {
                j += 1;
            }
        }
        if !grown {
            i += 1;
        }
    }
}

/// Whether every point has one description, which makes the saturated form unique.
fn has_gaps(steps: &Steps) -> bool {
    let mut below = 0_i64;
    for &(e, s) in steps {
        if s <= below {
            return false;
        }
        below += (e - 1) * s;
    }
    true
}

fn count(steps: &Steps) -> i64 {
    // The number of replicas of a valid layout fits; merging only makes it smaller.
    steps.iter().fold(1_i64, |n, &(e, _)| n.saturating_mul(e))
}

/// The points, ascending, each once; `None` when there may be more than `limit`.
pub(crate) fn points(steps: &Steps, limit: i64) -> Option<Points> {
    if count(steps) > limit {
        return None;
    }
    let mut points: Points = smallvec::smallvec![0];
    for &(e, s) in steps {
        let before = Points::from_slice(&points);
        points.clear();
        for i in 0..e {
            points.extend(before.iter().map(|p| p + i * s));
        }
        points.sort_unstable();
        points.dedup();
    }
    Some(points)
}

/// The set as bits, one for each multiple of `unit`; `None` when it reaches too far.
fn dense(steps: &Steps, unit: i64) -> Option<Vec<u64>> {
    let last = reach(steps) / unit;
    if last > DENSE_LIMIT {
        return None;
    }
    let mut words = vec![0_u64; last as usize / 64 + 1];
    words[0] = 1;
    for &(e, s) in steps {
        // All multiples below `have` are there.
        let mut have = 1;
        while have < e {
            let more = have.min(e - have);
            add_shifted(&mut words, (more * (s / unit)) as usize);
            have += more;
        }
    }
    Some(words)
}

/// `set + {0, by}`, which has room.
fn add_shifted(words: &mut [u64], by: usize) {
    let (skip, shift) = (by / 64, by % 64);
    for to in (skip..words.len()).rev() {
        let mut part = words[to - skip] << shift;
        if shift > 0 && to > skip {
            part |= words[to - skip - 1] >> (64 - shift);
        }
        words[to] |= part;
    }
}

/// The points, ascending, each once; `None` when there are more than 2^20, or may be and reach far.
fn all_points(steps: &Steps) -> Option<Points> {
    points(steps, POINT_LIMIT).or_else(|| listed_by_bits(steps))
}

/// The points, ascending, each once; `None` when there are more than 2^20 or they reach far.
pub(crate) fn listed_by_bits(steps: &Steps) -> Option<Points> {
    let unit = common(steps).max(1);
    let words = dense(steps, unit)?;
    let count: i64 = words.iter().map(|w| i64::from(w.count_ones())).sum();
    if count > POINT_LIMIT {
        return None;
    }
    let ones = |(at, word): (usize, &u64)| {
        let word = *word;
        let bits = (0..64_i64).filter(move |b| word >> b & 1 == 1);
        bits.map(move |b| (at as i64 * 64 + b) * unit)
    };
    Some(words.iter().enumerate().flat_map(ones).collect())
}

/// Steps whose sums are exactly these numbers, which ascend from 0; `None` when there are none.
///
/// # Errors
/// `Unsupported` when the search takes too long.
pub(crate) fn of_points(points: &[i64]) -> Result<Option<Steps>> {
    // A sum of sets that are their own mirror images is one too.
    let last = points.last().copied().unwrap_or(0);
    let mirrored = points.iter().rev().map(|p| last - p);
    if !mirrored.eq(points.iter().copied()) {
        return Ok(None);
    }
    match nested(points) {
        Some(steps) => Ok(Some(steps)),
        None => Bits::divide(points, &[0]),
    }
}

/// The steps of a set whose numbers, in their order, count them as digits: no step reaches the next.
fn nested(points: &[i64]) -> Option<Steps> {
    let mut steps = Steps::new();
    let mut points = Points::from_slice(points);
    while let [0, step, ..] = points[..] {
        let multiples = (0_i64..).map(|k| k.checked_mul(step));
        let run = points
            .iter()
            .zip(multiples)
            .take_while(|(p, m)| Some(**p) == *m);
        let run = run.count();
        let even = |chunk: &[i64]| chunk.windows(2).all(|pair| pair[1] - pair[0] == step);
        if !points.len().is_multiple_of(run) || !points.chunks(run).all(even) {
            return None;
        }
        steps.push((run as i64, step));
        points = points.into_iter().step_by(run).collect();
    }
    (points[..] == [0]).then_some(steps)
}

/// The unique description of the set: saturated under the gap condition, else the first one that a
/// search over the set itself finds. Sets of more than 4096 points outside of the gap condition are
/// saturated only.
pub(crate) fn canonicalize(steps: &mut Steps) {
    saturate(steps);
    if has_gaps(steps) {
        return;
    }
    if let Some(points) = points(steps, REWRITE_LIMIT)
        && let Some(found) = Bits::divide(&points, &[0]).ok().flatten()
    {
        *steps = found;
    }
}

/// Whether two descriptions name the same set.
pub(crate) fn equal(mut a: Steps, mut b: Steps) -> Result<bool> {
    saturate(&mut a);
    saturate(&mut b);
    if a == b {
        return Ok(true);
    }
    if reach(&a) != reach(&b) || a.first().map(|x| x.1) != b.first().map(|x| x.1) {
        return Ok(false);
    }
    if common(&a) != common(&b) || has_gaps(&a) && has_gaps(&b) {
        return Ok(false);
    }
    if let (Some(a), Some(b)) = (points(&a, POINT_LIMIT), points(&b, POINT_LIMIT)) {
        return Ok(a == b);
    }
    if let Some(answer) = equal_in_halves(&a, &b).or_else(|| equal_in_halves(&b, &a)) {
        return answer;
    }
    let unit = common(&a);
    if let (Some(a), Some(b)) = (dense(&a, unit), dense(&b, unit)) {
        return Ok(a == b);
    }
    Err(Error::unsupported(
        "equality of self-overlapping replica sets with more than 2^20 points that reach beyond 2^26 units",
    ))
}

/// Where all strides from some place on are multiples of a number `unit` above the reach of the smaller
/// ones, every point is `low + unit * high` in one way, and the halves are compared by themselves.
fn equal_in_halves(a: &Steps, b: &Steps) -> Option<Result<bool>> {
    for at in 1..a.len() {
        let (low, high) = a.split_at(at);
        let (low, high) = (Steps::from(low), Steps::from(high));
        let unit = common(&high);
        if unit <= reach(&low) {
            continue;
        }
        if let Some((other_low, other_high)) = split_at_unit(b, unit) {
            return Some(match equal(low, other_low) {
                Ok(true) => equal(high, other_high),
                other => other,
            });
        }
    }
    None
}

/// The steps inside `0..unit` and those that are multiples of it, when the set is exactly their sum.
pub(crate) fn split_at_unit(steps: &Steps, unit: i64) -> Option<(Steps, Steps)> {
    let (mut low, mut high) = (Steps::new(), Steps::new());
    for &(e, s) in steps {
        if s % unit == 0 {
            high.push((e, s));
        } else if (e - 1) * s < unit {
            low.push((e, s));
        } else if unit % s == 0 && e % (unit / s) == 0 {
            low.push((unit / s, s));
            high.push((e / (unit / s), unit));
        } else {
            return None;
        }
    }
    (reach(&low) < unit).then_some((low, high))
}

/// For a set that must be `{ low + unit * high }` with `low < unit`: the descriptions of both parts.
///
/// # Errors
/// `None` when the set is no such sum; `Unsupported` when it is too large to tell.
pub(crate) fn split_digit(steps: &Steps, unit: i64) -> Result<(Steps, Steps)> {
    let mut steps = steps.clone();
    saturate(&mut steps);
    let scaled = |high: Steps| high.into_iter().map(|(e, s)| (e, s / unit)).collect();
    if let Some((low, high)) = split_at_unit(&steps, unit) {
        return Ok((low, scaled(high)));
    }
    let Some(points) = all_points(&steps) else {
        return Err(Error::unsupported(
            "factoring a replica set of more than 2^20 points",
        ));
    };
    let low: Vec<i64> = points.iter().copied().take_while(|&p| p < unit).collect();
    let mut high: Vec<i64> = points.iter().map(|p| p / unit).collect();
    high.dedup();
    let product = high
        .iter()
        .flat_map(|h| low.iter().map(move |l| h * unit + l));
    if !product.eq(points.iter().copied()) {
        return Err(Error::none(format!(
            "the replica set is no sum of a set below {unit} and a set of multiples of {unit}"
        )));
    }
    match (Bits::divide(&low, &[0])?, Bits::divide(&high, &[0])?) {
        (Some(low), Some(high)) => Ok((low, high)),
        _ => Err(Error::none(
            "a factor of the replica set is no sum of progressions",
        )),
    }
}

/// The steps `q` with `known + q = whole` as sets.
///
/// # Errors
/// `None` when there are none; `Unsupported` when the sets are too large to tell.
pub(crate) fn divide(whole: &Steps, known: &Steps) -> Result<Steps> {
    if known.is_empty() {
        return Ok(whole.clone());
    }
    if let Some(rest) = without(whole, known) {
        return Ok(rest);
    }
    let (mut whole, mut known) = (whole.clone(), known.clone());
    saturate(&mut whole);
    saturate(&mut known);
    if let Some(rest) = without(&whole, &known) {
        return Ok(rest);
    }
    let unit = common(&whole);
    if reach(&known) > reach(&whole) || unit == 0 || common(&known) % unit != 0 {
        return Err(Error::none(
            "the replica set is no sum of the known replicas and others",
        ));
    }
    if let Some(rest) = divide_progression(&whole, &known) {
        return Ok(rest);
    }
    let (Some(all), Some(some)) = (all_points(&whole), all_points(&known)) else {
        return Err(Error::unsupported(
            "factoring a replica set of more than 2^20 points",
        ));
    };
    Bits::divide(&all, &some)?
        .ok_or_else(|| Error::none("the replica set is no sum of the known replicas and others"))
}

/// The multiset difference.
pub(crate) fn without(whole: &Steps, known: &Steps) -> Option<Steps> {
    let mut rest = whole.clone();
    for step in known {
        let at = rest.iter().position(|s| s == step)?;
        rest.remove(at);
    }
    Some(rest)
}

/// One progression divided by a shorter one of the same stride.
fn divide_progression(whole: &Steps, known: &Steps) -> Option<Steps> {
    let ([(e, s)], [(e2, s2)]) = (&whole[..], &known[..]) else {
        return None;
    };
    (s == s2 && e2 < e).then(|| {
        let mut rest = Steps::new();
        let (blocks, tail) = (e / e2, e % e2);
        if blocks > 1 {
            rest.push((blocks, e2 * s));
        }
        if tail > 0 {
            rest.push((2, tail * s));
        }
        rest
    })
}

/// The steps that a search has taken.
type Taken = SmallVec<[i64; 32]>;

/// A set of multiples of `unit`, one bit each.
struct Bits {
    words: SmallVec<[u64; 8]>,
}

impl Bits {
    fn new(points: &[i64], unit: i64, reach: i64) -> Self {
        let mut words = smallvec::smallvec![0_u64; reach as usize / 64 + 1];
        for p in points {
            let at = (p / unit) as usize;
            words[at / 64] |= 1 << (at % 64);
        }
        Self { words }
    }

    fn has(&self, at: i64) -> bool {
        let at = at as usize;
        self.words
            .get(at / 64)
            .is_some_and(|w| w >> (at % 64) & 1 == 1)
    }

    /// The points `p` with `p + by` in the set.
    fn down(&self, by: i64) -> Self {
        let (skip, shift) = (by as usize / 64, by as usize % 64);
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        let down = |at: usize| {
            let high = if shift == 0 {
                0
            } else {
                word(at + skip + 1) << (64 - shift)
            };
            word(at + skip) >> shift | high
        };
        Self {
            words: (0..self.words.len()).map(down).collect(),
        }
    }

    /// The points, ascending, when there are at most `limit`.
    fn few(&self, limit: u32) -> Option<Points> {
        let count: u32 = self.words.iter().map(|w| w.count_ones()).sum();
        if count > limit {
            return None;
        }
        let ones = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64_i64)
                .filter(move |b| word >> b & 1 == 1)
                .map(move |b| at as i64 * 64 + b)
        };
        Some(self.words.iter().enumerate().flat_map(ones).collect())
    }

    fn last(&self) -> i64 {
        let top = self.words.iter().enumerate().rfind(|(_, w)| **w != 0);
        top.map_or(0, |(at, w)| {
            at as i64 * 64 + 63 - i64::from(w.leading_zeros())
        })
    }

    /// Whether `whole` may be `self` and some of `rest` added up: all that is left at once is one of
    /// `rest`, and where one of both has few points, together they reach all of `whole`.
    fn may_become(&self, whole: &Self, rest: &Self) -> bool {
        if !rest.has(whole.last() - self.last()) {
            return false;
        }
        let (points, other) = match (self.few(FEW), rest.few(FEW)) {
            (Some(points), _) => (points, rest),
            (None, Some(points)) => (points, self),
            _ => return true,
        };
        let mut reached = Self {
            words: smallvec::smallvec![0; whole.words.len()],
        };
        for by in points {
            if let Some(moved) = other.step(by, whole) {
                reached
                    .words
                    .iter_mut()
                    .zip(&moved.words)
                    .for_each(|(r, m)| *r |= m);
            }
        }
        reached.words == whole.words
    }

    /// `self + {0, by}`, or `None` when it leaves `whole`.
    fn step(&self, by: i64, whole: &Self) -> Option<Self> {
        let (skip, shift) = (by as usize / 64, by as usize % 64);
        let mut words = self.words.clone();
        for (at, &word) in self.words.iter().enumerate().filter(|(_, w)| **w != 0) {
            let parts = [
                word << shift,
                if shift == 0 { 0 } else { word >> (64 - shift) },
            ];
            for (k, part) in parts.into_iter().enumerate().filter(|(_, p)| *p != 0) {
                let to = at + skip + k;
                if part & !whole.words.get(to)? != 0 {
                    return None;
                }
                words[to] |= part;
            }
        }
        Some(Self { words })
    }

    /// The smallest point of `whole` that `self` lacks.
    fn missing(&self, whole: &Self) -> Option<i64> {
        let pairs = self.words.iter().zip(&whole.words).enumerate();
        pairs
            .map(|(at, (mine, all))| (at, all & !mine))
            .find(|(_, rest)| *rest != 0)
            .map(|(at, rest)| at as i64 * 64 + i64::from(rest.trailing_zeros()))
    }

    /// The first multiset of steps, in ascending order, whose sum with `known` is `whole`; a function
    /// of the sets alone. A progression of extent `e` is `e - 1` equal steps.
    fn divide(whole: &[i64], known: &[i64]) -> Result<Option<Steps>> {
        let unit = whole.iter().fold(0, |g, &p| gcd(p, g)).max(1);
        let reach = whole.last().copied().unwrap_or(0) / unit;
        if known.iter().any(|k| k % unit != 0) {
            return Ok(None);
        }
        if reach > BITS_LIMIT {
            return Err(Error::unsupported(
                "a search in replica sets that reach beyond 65536 units",
            ));
        }
        if known.last().is_some_and(|&k| k / unit > reach) {
            return Ok(None);
        }
        let all = Self::new(whole, unit, reach);
        let start = Self::new(known, unit, reach);
        if start.words.iter().zip(&all.words).any(|(k, a)| k & !a != 0) {
            return Ok(None);
        }
        let mut nodes = 0;
        let mut taken = Taken::new();
        let rest = known.iter().fold(Self::new(whole, unit, reach), |rest, k| {
            let moved = all.down(k / unit);
            let both = rest.words.iter().zip(&moved.words).map(|(r, m)| r & m);
            Self {
                words: both.collect(),
            }
        });
        if !start.search(&rest, &all, 1, &mut taken, &mut nodes)? {
            return Ok(None);
        }
        let mut steps = Steps::new();
        for by in taken {
            match steps.last_mut() {
                Some((e, s)) if *s == by * unit => *e += 1,
                _ => steps.push((2, by * unit)),
            }
        }
        Ok(Some(steps))
    }

    /// Takes steps in ascending order until `self` is `all`; `rest` are the points that can be added to
    /// all of `self`, what the steps to come add up to among them.
    fn search(
        &self,
        rest: &Self,
        all: &Self,
        from: i64,
        taken: &mut Taken,
        nodes: &mut usize,
    ) -> Result<bool> {
        let Some(missing) = self.missing(all) else {
            return Ok(true);
        };
        if !self.may_become(all, rest) {
            return Ok(false);
        }
        for by in (from..=missing).filter(|&by| rest.has(by)) {
            *nodes += 1;
            if *nodes > NODE_LIMIT {
                return Err(Error::unsupported("a long search in replica sets"));
            }
            let Some(next) = self.step(by, all) else {
                continue;
            };
            let moved = rest.down(by);
            let both = rest.words.iter().zip(&moved.words).map(|(r, m)| r & m);
            let next_rest = Self {
                words: both.collect(),
            };
            taken.push(by);
            if next.words != self.words && next.search(&next_rest, all, by, taken, nodes)? {
                return Ok(true);
            }
            taken.pop();
        }
        Ok(false)
    }
}
