//! What is done element by element on chip: the largest tiles in which all operands have the same index on the same
//! partition.

use super::access::{fits, merged};
use super::nest::{Part, Point, Sweep, boxes, sweep};
use super::partition::{may_start, refused, unit_run};
use super::problem::{Problem, Step};
use super::reason::Reason;
use crate::facts::memory::FREE_DIMENSIONS;
use crate::program::{Builder, View};

/// Digits inside an instruction, and loops.
pub(super) struct Tiles {
    pub problem: Problem,
    /// On the partitions of all operands, outermost first.
    pub run: Vec<usize>,
    /// Along elements of all operands, outermost first.
    pub free: Vec<usize>,
    /// Along elements of all operands but the first, which has one for all of them.
    pub reduced: Vec<usize>,
    /// The operand that is read on one partition, and does not move with the run.
    pub single: Option<usize>,
    /// Whether the run is in one instruction.
    pub whole_run: bool,
    /// Elements of a partition at most.
    pub most: i64,
}

/// What is appended for a tile: the digits' point, and a view of each operand.
pub(super) type Fill<'a> = dyn FnMut(&mut Builder, &Point, Vec<View>) -> Result<(), Reason> + 'a;

impl Tiles {
    /// All digits that may be inside.
    pub fn new(problem: &Problem) -> Self {
        Self::with_free(problem, |_| true)
    }

    /// As [`Tiles::new`], with some digits along elements alone.
    pub fn with_free(problem: &Problem, inside: impl Fn(usize) -> bool) -> Self {
        let digits = || problem.digits.iter().enumerate();
        let same = digits()
            .filter(|(_, digit)| digit.steps.iter().all(|step| step.p == digit.steps[0].p))
            .map(|(at, _)| at);
        let run = unit_run(problem, 0, same);
        let still = |steps: &[Step]| steps.iter().all(|step| step.p == 0);
        let mut free: Vec<usize> = digits()
            .filter(|(at, digit)| still(&digit.steps) && inside(*at))
            .map(|(at, _)| at)
            .collect();
        let order = |at: &usize| {
            let steps = &problem.digits[*at].steps;
            std::cmp::Reverse((steps[0].f, steps.iter().map(|step| step.f.abs()).max()))
        };
        free.sort_by_key(order);
        let mut tiles = Self {
            problem: problem.clone(),
            run,
            free,
            reduced: Vec::new(),
            single: None,
            whole_run: false,
            most: i64::MAX,
        };
        tiles.drop_dimensions();
        tiles
    }

    /// Makes digits those that the first operand has one element for.
    pub fn reducing(mut self, digits: Vec<usize>) -> Self {
        self.free.retain(|at| !digits.contains(at));
        self.reduced = digits;
        let digits = &self.problem.digits;
        let far = |at: &usize| digits[*at].steps.iter().map(|step| step.f.abs()).max();
        self.reduced.sort_by_key(|at| std::cmp::Reverse(far(at)));
        self.drop_dimensions();
        self
    }

    /// The digits on the partitions of an operand, and along its elements.
    fn inside(&self, operand: usize) -> (Vec<usize>, Vec<usize>) {
        let run = match self.single == Some(operand) {
            true => Vec::new(),
            false => self.run.clone(),
        };
        let more: &[usize] = if operand > 0 { &self.reduced } else { &[] };
        (run, self.free.iter().chain(more).copied().collect())
    }

    /// Makes loops of digits, the smallest ones, until no operand has too many dimensions.
    fn drop_dimensions(&mut self) {
        let extent = |at: &usize| self.problem.digits[*at].extent;
        let mut free = self.free.clone();
        let too_many = |free: &[usize]| {
            (0..self.problem.operands.len()).any(|operand| {
                let more: &[usize] = if operand > 0 { &self.reduced } else { &[] };
                let all = free.iter().chain(more);
                let step = |at: &usize| self.problem.digits[*at].steps[operand].f;
                let all: Vec<_> = all.map(|at| (extent(at), step(at))).collect();
                merged(&all).len() > FREE_DIMENSIONS
            })
        };
        while too_many(&free) {
            let smallest = free.iter().enumerate();
            let Some((index, _)) = smallest.min_by_key(|(_, at)| extent(at)) else {
                break;
            };
            free.remove(index);
        }
        self.free = free;
    }

    fn loops(&self) -> Vec<Sweep> {
        let all = [&self.run, &self.free, &self.reduced];
        (0..self.problem.digits.len())
            .filter(|at| !all.iter().any(|inside| inside.contains(at)))
            .map(|digit| Sweep {
                digit,
                unrolled: false,
            })
            .collect()
    }

    /// Appends `fill` for every tile.
    pub fn append(mut self, b: &mut Builder, fill: &mut Fill<'_>) -> Result<(), Reason> {
        self.run = self.problem.fuse(&self.run);
        self.free = self.problem.fuse(&self.free);
        let problem = &self.problem;
        let mut point = Point::new(problem);
        for at in &self.reduced {
            point.size[*at] = problem.digits[*at].extent;
        }
        let loops = self.loops();
        sweep(b, problem, &loops, &point, &mut |b, point| {
            for run in self.run_parts(b, point)? {
                let point = point.with(&self.run, &run);
                for free in self.free_parts(&point)? {
                    let point = point.with(&self.free, &free);
                    let view = |at| {
                        let (run, free) = self.inside(at);
                        point.view(b, problem, at, &run, &free)
                    };
                    let views = (0..problem.operands.len())
                        .map(view)
                        .collect::<Result<_, _>>()?;
                    fill(b, &point, views)?;
                }
            }
            Ok(())
        })
    }

    fn extents(&self, digits: &[usize]) -> Vec<i64> {
        let extent = |at: &usize| self.problem.digits[*at].extent;
        digits.iter().map(extent).collect()
    }

    fn run_parts(&self, b: &Builder, point: &Point) -> Result<Vec<Part>, Reason> {
        let problem = &self.problem;
        let operands: Vec<usize> = (0..problem.operands.len()).collect();
        let parts = boxes(&self.extents(&self.run), &|part| {
            let point = point.with(&self.run, part);
            let starts = |at: &usize| may_start(b, problem, *at, &point, &self.inside(*at).0);
            operands.iter().all(starts)
        });
        let dims: Vec<usize> = (0..problem.digits.len())
            .filter_map(|at| problem.digits[at].dim)
            .collect();
        match parts {
            Some(parts) if parts.len() == 1 || !self.whole_run => Ok(parts),
            _ => Err(refused(b, problem, &operands, point, &self.run, &dims)),
        }
    }

    fn free_parts(&self, point: &Point) -> Result<Vec<Part>, Reason> {
        let problem = &self.problem;
        let parts = boxes(&self.extents(&self.free), &|part| {
            let point = point.with(&self.free, part);
            let fits = |(at, operand)| fits(operand, &point.free(problem, at, &self.inside(at).1));
            point.count(&self.free) <= self.most && problem.operands.iter().enumerate().all(fits)
        });
        parts.ok_or_else(|| Reason::Access {
            operand: problem.operands[0].name,
            message: "no part of it is an access pattern of all operands".into(),
        })
    }
}
