//! Loops over digits, and the boxes of digits that one instruction covers.

use super::access::{self, Free};
use super::problem::{Problem, name_of};
use super::reason::Reason;
use crate::program::{Builder, Expr, View};

/// Digits of an operator at one point of its loops: where each one stands, and how much of it is inside.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub at: Vec<Expr>,
    pub size: Vec<i64>,
}

/// A loop over a digit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    pub digit: usize,
    /// Written out, so that starts are numbers.
    pub unrolled: bool,
}

/// What is appended for a point.
pub(super) type Body<'a> = dyn FnMut(&mut Builder, &Point) -> Result<(), Reason> + 'a;

impl Point {
    /// The first indices.
    pub fn new(problem: &Problem) -> Self {
        Self {
            at: vec![0.into(); problem.digits.len()],
            size: vec![1; problem.digits.len()],
        }
    }

    /// With a box of some digits inside: where each begins, and its size.
    pub fn with(&self, digits: &[usize], part: &[(i64, i64)]) -> Self {
        let mut point = self.clone();
        for (digit, (begin, size)) in digits.iter().zip(part) {
            point.at[*digit] = (*begin).into();
            point.size[*digit] = *size;
        }
        point
    }

    /// Where an operand begins: its partition and its element.
    pub fn start(&self, problem: &Problem, operand: usize) -> (Expr, Expr) {
        let begin = &problem.operands[operand];
        let (mut p, mut f) = (begin.partition.clone(), begin.free.clone());
        for (digit, at) in problem.digits.iter().zip(&self.at) {
            let step = digit.steps[operand];
            p = p.plus(at.clone().times(step.p));
            f = f.plus(at.clone().times(step.f));
        }
        (p, f)
    }

    /// How digits move the elements of an operand.
    pub fn free(&self, problem: &Problem, operand: usize, digits: &[usize]) -> Vec<Free> {
        let free = |digit: &usize| {
            let step = problem.digits[*digit].steps[operand].f;
            (self.size[*digit], step)
        };
        digits.iter().map(free).collect()
    }

    /// The product of the sizes of digits.
    pub fn count(&self, digits: &[usize]) -> i64 {
        digits.iter().map(|digit| self.size[*digit]).product()
    }

    /// The view of an operand with some digits on its partitions, consecutive ones, and others along its elements.
    pub fn view(
        &self,
        b: &Builder,
        problem: &Problem,
        operand: usize,
        partitions: &[usize],
        free: &[usize],
    ) -> Result<View, Reason> {
        let (p, f) = self.start(problem, operand);
        let axes = self.free(problem, operand, free);
        let count = self.count(partitions);
        access::view(b, &problem.operands[operand], (&p, count), &f, &axes)
    }
}

/// Appends `body` for every value of the digits, in loops.
pub(super) fn sweep(
    b: &mut Builder,
    problem: &Problem,
    loops: &[Sweep],
    point: &Point,
    body: &mut Body<'_>,
) -> Result<(), Reason> {
    let Some((first, rest)) = loops.split_first() else {
        return body(b, point);
    };
    run(b, problem, *first, 0, &mut |b, at| {
        let mut point = point.clone();
        point.at[first.digit] = at;
        sweep(b, problem, rest, &point, body)
    })
}

/// As [`sweep`]; the first point is told apart from the others.
pub(super) fn sweep_first(
    b: &mut Builder,
    problem: &Problem,
    loops: &[Sweep],
    point: &Point,
    body: &mut dyn FnMut(&mut Builder, &Point, bool) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let Some((first, rest)) = loops.split_first() else {
        return body(b, point, true);
    };
    sweep_first(b, problem, rest, point, body)?;
    run(b, problem, *first, 1, &mut |b, at| {
        let mut point = point.clone();
        point.at[first.digit] = at;
        sweep(b, problem, rest, &point, &mut |b, point| {
            body(b, point, false)
        })
    })
}

/// A loop over a digit from `begin` on.
fn run(
    b: &mut Builder,
    problem: &Problem,
    sweep: Sweep,
    begin: i64,
    body: &mut dyn FnMut(&mut Builder, Expr) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let digit = &problem.digits[sweep.digit];
    if sweep.unrolled || digit.extent - begin < 2 {
        return (begin..digit.extent).try_for_each(|at| body(b, at.into()));
    }
    let mut result = Ok(());
    let name = name_of(problem.names, digit.dim);
    b.repeat(name, begin, digit.extent, 1, |b, at| result = body(b, at));
    result
}

/// A box of digits: where each begins, and its size.
pub(super) type Part = Vec<(i64, i64)>;

/// Whether a box that begins so far from the first index may be one instruction's.
pub(super) type Legal<'a> = dyn Fn(&[(i64, i64)]) -> bool + 'a;

/// The digits, outermost first, as boxes that are legal: as much as may be of the outermost digit with the others whole,
/// else one index of it at a time. `None` where one element alone is not legal.
pub(super) fn boxes(extents: &[i64], legal: &Legal<'_>) -> Option<Vec<Part>> {
    fn cut(extents: &[i64], outer: &Part, legal: &Legal<'_>, found: &mut Vec<Part>) -> Option<()> {
        let whole = |rest: &[i64], outer: &Part| -> Part {
            let all = rest.iter().map(|extent| (0, *extent));
            outer.iter().copied().chain(all).collect()
        };
        let Some((extent, rest)) = extents.split_first() else {
            return legal(outer).then(|| found.push(outer.clone()));
        };
        let mut at = 0;
        while at < *extent {
            let try_size = |size: i64| {
                let mut part = outer.clone();
                part.push((at, size));
                let part = whole(rest, &part);
                legal(&part).then_some(part)
            };
            match largest(*extent - at, &|size| try_size(size).is_some()) {
                0 => {
                    let mut part = outer.clone();
                    part.push((at, 1));
                    cut(rest, &part, legal, found)?;
                    at += 1;
                }
                size => {
                    found.extend(try_size(size));
                    at += size;
                }
            }
            if found.len() > MOST_BOXES {
                return None;
            }
        }
        Some(())
    }
    let mut found = Vec::new();
    cut(extents, &Part::new(), legal, &mut found)?;
    Some(found)
}

/// Instructions that are written out at most, where no loop repeats them.
const MOST_BOXES: usize = 512;

/// The largest size up to `most` that is legal; 0 when none is. Sizes are not monotonous: 64 partitions may begin where 33
/// may not. Above what every limit but that of elements allows, powers of two are tried.
fn largest(most: i64, legal: &dyn Fn(i64) -> bool) -> i64 {
    let mut size = most;
    while size > MOST_TRIED {
        if legal(size) {
            return size;
        }
        size = (1i64 << 62 >> (size - 1).leading_zeros().saturating_sub(1)).min(size - 1);
    }
    (1..=size).rev().find(|size| legal(*size)).unwrap_or(0)
}

/// Up to this size each is tried.
const MOST_TRIED: i64 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_the_largest_from_the_first_index_on() {
        // Up to 512 at a time, none across a multiple of 512, from 256 on.
        let legal = |part: &[(i64, i64)]| {
            let begin = 256 + part[0].0 * 10 + part[1].0;
            let size = (part[0].1 - 1) * 10 + part[1].1;
            begin / 512 == (begin + size - 1) / 512
        };
        let found = boxes(&[64, 10], &legal).unwrap();
        let covered: i64 = found.iter().map(|part| part[0].1 * part[1].1).sum();
        assert_eq!(covered, 640);
        assert_eq!(found[0], [(0, 25), (0, 10)]);
        assert_eq!(found[1], [(25, 1), (0, 6)]);
        assert_eq!(found[2], [(25, 1), (6, 4)]);
        assert!(boxes(&[2, 3], &|_| false).is_none());
        assert_eq!(boxes(&[], &|_| true), Some(vec![vec![]]));
    }
}
