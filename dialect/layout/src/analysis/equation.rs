//! Bounded linear equations: `sum digit * stride = target` with every digit in its interval.
//!
//! Places meet where such an equation has a solution. Largest strides are tried first: then few values
//! of a digit leave a rest that the others can reach, and that the divisor of their strides divides.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::sumset::gcd;

/// Rests that a search may look at.
const MAX_STATES: usize = 1 << 19;

/// One digit of an equation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// What one step adds; not 0.
    pub stride: i64,
    /// The smallest value of the digit.
    pub low: i64,
    /// The largest value of the digit.
    pub high: i64,
    /// Whether this digit is one of those of which one must not be 0.
    pub counts: bool,
}

/// Digits in the order of the terms that solve the equation; when `moved`, one that counts is not 0.
///
/// # Errors
/// `Unsupported` after half a million rests: strides that overlap without any structure.
pub(super) fn solve(terms: &[Term], target: i128, moved: bool) -> Result<Option<Vec<i64>>> {
    let mut order: Vec<usize> = (0..terms.len()).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(terms.get(k).map(|t| t.stride.unsigned_abs())));
    let levels: Vec<Level> = levels(order.iter().filter_map(|&k| terms.get(k)));
    let mut search = Search {
        levels: &levels,
        digits: vec![0; levels.len()],
        failed: HashSet::new(),
    };
    if !search.run(0, target, !moved)? {
        return Ok(None);
    }
    let mut digits = vec![0; terms.len()];
    for (&at, &digit) in order.iter().zip(&search.digits) {
        if let Some(slot) = digits.get_mut(at) {
            *slot = digit;
        }
    }
    Ok(Some(digits))
}

/// A term and what the terms after it can do.
struct Level {
    term: Term,
    /// The smallest and the largest sum of the terms after this one.
    rest_low: i128,
    rest_high: i128,
    /// The common divisor of the strides after this one; 0 for the last.
    divisor: i64,
    /// Whether a term after this one counts.
    rest_counts: bool,
}

fn levels<'a>(terms: impl DoubleEndedIterator<Item = &'a Term>) -> Vec<Level> {
    let (mut low, mut high, mut divisor, mut counts) = (0_i128, 0_i128, 0_i64, false);
    let mut levels: Vec<Level> = terms
        .rev()
        .map(|&term| {
            let level = Level {
                term,
                rest_low: low,
                rest_high: high,
                divisor,
                rest_counts: counts,
            };
            let ends = [term.low, term.high].map(|d| i128::from(d) * i128::from(term.stride));
            low += ends[0].min(ends[1]);
            high += ends[0].max(ends[1]);
            divisor = gcd(term.stride.abs(), divisor);
            counts |= term.counts;
            level
        })
        .collect();
    levels.reverse();
    levels
}

struct Search<'a> {
    levels: &'a [Level],
    digits: Vec<i64>,
    failed: HashSet<(usize, i128, bool)>,
}

impl Search<'_> {
    fn run(&mut self, at: usize, rest: i128, moved: bool) -> Result<bool> {
        let Some(level) = self.levels.get(at) else {
            return Ok(rest == 0 && moved);
        };
        if self.failed.contains(&(at, rest, moved)) {
            return Ok(false);
        }
        if self.failed.len() >= MAX_STATES {
            return Err(Error::unsupported(
                "an equation between strides that overlap without structure",
            ));
        }
        let term = level.term;
        if !(moved || term.counts || level.rest_counts) {
            return Ok(false);
        }
        let Some((mut digit, step, last)) = level.digits(rest) else {
            return Ok(self.fail(at, rest, moved));
        };
        while digit <= last {
            let moves = moved || term.counts && digit != 0;
            if moves || level.rest_counts {
                let left = rest - digit * i128::from(term.stride);
                if let Some(slot) = self.digits.get_mut(at) {
                    // Inside the interval of the digit, which is of 64 bits.
                    *slot = digit as i64;
                }
                if self.run(at + 1, left, moves)? {
                    return Ok(true);
                }
            }
            digit += step;
        }
        Ok(self.fail(at, rest, moved))
    }

    fn fail(&mut self, at: usize, rest: i128, moved: bool) -> bool {
        self.failed.insert((at, rest, moved));
        false
    }
}

impl Level {
    /// The first digit, the step and the last digit of those that leave a rest which the others reach
    /// as far as bounds and divisors tell.
    fn digits(&self, rest: i128) -> Option<(i128, i128, i128)> {
        let stride = i128::from(self.term.stride);
        let (low, high) = (i128::from(self.term.low), i128::from(self.term.high));
        // rest_low <= rest - digit * stride <= rest_high
        let (from, to) = (rest - self.rest_high, rest - self.rest_low);
        let (from, to) = if stride > 0 { (from, to) } else { (-to, -from) };
        let size = stride.abs();
        let first = low.max(-(-from).div_euclid(size));
        let last = high.min(to.div_euclid(size));
        // digit * stride = rest modulo the divisor of the others.
        let divisor = i128::from(self.divisor);
        let common = gcd_wide(size, divisor);
        if rest % common != 0 {
            return None;
        }
        if divisor == 0 {
            let digit = rest / stride;
            return (first <= digit && digit <= last).then_some((digit, 1, digit));
        }
        let step = divisor / common;
        let inverse = inverse((stride / common).rem_euclid(step), step);
        let residue = (rest / common).rem_euclid(step) * inverse % step;
        let first = first + (residue - first).rem_euclid(step);
        (first <= last).then_some((first, step, last))
    }
}

fn gcd_wide(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd_wide(b, a % b) }
}

/// The inverse of `a` modulo `m`, both coprime; 0 modulo 1.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut r, mut s) = ((m, a), (0_i128, 1_i128));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        s = (s.1, s.0 - q * s.1);
    }
    s.0.rem_euclid(m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brute(terms: &[Term], target: i128, moved: bool) -> bool {
        let Some((first, rest)) = terms.split_first() else {
            return target == 0 && !moved;
        };
        (first.low..=first.high).any(|d| {
            let left = target - i128::from(d) * i128::from(first.stride);
            brute(rest, left, moved && !(first.counts && d != 0))
        })
    }

    proptest! {
        #[test]
        fn solves_exactly_what_has_a_solution(
            terms in prop::collection::vec((-12_i64..12, -3_i64..3, 0_i64..4, any::<bool>()), 0..5),
            target in -30_i128..30,
            moved: bool,
        ) {
            let terms: Vec<Term> = terms
                .into_iter()
                .map(|(s, low, wide, counts)| Term {
                    stride: if s == 0 { 12 } else { s },
                    low,
                    high: low + wide,
                    counts,
                })
                .collect();
            let found = solve(&terms, target, moved).unwrap();
            prop_assert_eq!(found.is_some(), brute(&terms, target, moved));
            if let Some(digits) = found {
                let sum: i64 = terms.iter().zip(&digits).map(|(t, d)| t.stride * d).sum();
                prop_assert_eq!(i128::from(sum), target);
                prop_assert!(terms.iter().zip(&digits).all(|(t, &d)| t.low <= d && d <= t.high));
                prop_assert!(!moved || terms.iter().zip(&digits).any(|(t, &d)| t.counts && d != 0));
            }
        }
    }

    #[test]
    fn large_coprime_strides_need_no_enumeration() {
        let term = |stride: i64, high: i64| Term {
            stride,
            low: -high,
            high,
            counts: true,
        };
        let (a, b) = ((1_i64 << 30) + 1, 1_i64 << 30);
        assert_eq!(
            solve(&[term(a, b - 1), term(b, b - 1)], 0, true).unwrap(),
            None
        );
        assert!(solve(&[term(a, b), term(b, a)], 0, true).unwrap().is_some());
    }
}
