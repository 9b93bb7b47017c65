//! Copies by DMA.

use super::Region;
use super::access::{fits, merged};
use super::movement::{D, S, problem};
use super::nest::{Part, Point, Sweep, boxes, sweep};
use super::partition::unit_run;
use super::problem::Problem;
use super::reason::Reason;
use crate::facts::memory::FREE_DIMENSIONS;
use crate::program::{Builder, Space};

/// By DMA, between HBM and SBUF, or across partitions of SBUF.
pub(super) fn by_dma(b: &mut Builder, d: &Region, s: &Region) -> Result<(), Reason> {
    let problem = problem(b, d, s, true)?;
    for operand in &problem.operands {
        if operand.space == Space::Psum {
            return Err(Reason::Memory {
                operand: operand.name,
                expected: "hbm or sbuf",
                got: Space::Psum,
            });
        }
    }
    Transfer::new(problem).append(b)
}

/// A copy by DMA: what both sides have on consecutive partitions, or one side has, is first; the rest is elements.
struct Transfer {
    problem: Problem,
    run: Vec<usize>,
    /// Operands whose partitions the run is.
    on: Vec<usize>,
    free: Vec<usize>,
    loops: Vec<Sweep>,
}

impl Transfer {
    fn new(mut problem: Problem) -> Self {
        let (run, on, free) = Self::inside(&problem);
        let (run, free) = (problem.fuse(&run), problem.fuse(&free));
        let mut transfer = Self {
            loops: Vec::new(),
            run,
            on,
            free,
            problem,
        };
        transfer.drop_dimensions();
        transfer
    }

    /// The digits on partitions, of which operands, and the digits along elements of both, outermost first.
    fn inside(problem: &Problem) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let moves = |at: usize, operand: usize| problem.digits[at].steps[operand].p != 0;
        let all = || 0..problem.digits.len();
        let both = |at: &usize| {
            let steps = &problem.digits[*at].steps;
            steps[D].p != 0 && steps[D].p == steps[S].p
        };
        let one = |operand: usize| {
            let digits = all().filter(move |at| moves(*at, operand) && !moves(*at, 1 - operand));
            unit_run(problem, operand, digits)
        };
        let runs = [
            (unit_run(problem, D, all().filter(both)), vec![D, S]),
            (one(D), vec![D]),
            (one(S), vec![S]),
        ];
        let size =
            |run: &[usize]| -> i64 { run.iter().map(|at| problem.digits[*at].extent).product() };
        let found = runs.into_iter().rev().max_by_key(|(run, _)| size(run));
        let (run, on) = found.unwrap_or_default();
        let mut free: Vec<usize> = all()
            .filter(|at| !run.contains(at) && !moves(*at, D) && !moves(*at, S))
            .collect();
        let reference = if problem.operands[S].space == Space::Hbm {
            S
        } else {
            D
        };
        free.sort_by_key(|at| {
            let steps = &problem.digits[*at].steps;
            std::cmp::Reverse((steps[reference].f.abs(), steps[1 - reference].f.abs()))
        });
        (run, on, free)
    }

    /// Makes loops of digits, the smallest ones, until no side has too many dimensions.
    fn drop_dimensions(&mut self) {
        let digits = &self.problem.digits;
        while !self.fits(&self.whole(), true) {
            let free = self.free.iter().enumerate();
            let Some((index, _)) = free.min_by_key(|(_, at)| digits[**at].extent) else {
                break;
            };
            self.free.remove(index);
        }
        self.loops = (0..digits.len())
            .filter(|at| !self.run.contains(at) && !self.free.contains(at))
            .map(|digit| Sweep {
                digit,
                unrolled: false,
            })
            .collect();
    }

    /// A point with all inside.
    fn whole(&self) -> Point {
        let mut point = Point::new(&self.problem);
        for at in self.run.iter().chain(&self.free) {
            point.size[*at] = self.problem.digits[*at].extent;
        }
        point
    }

    /// The digits along elements of an operand.
    fn along(&self, operand: usize) -> Vec<usize> {
        match self.on.contains(&operand) {
            true => self.free.clone(),
            false => self.run.iter().chain(&self.free).copied().collect(),
        }
    }

    /// Whether both sides are access patterns; by their dimensions alone where asked.
    fn fits(&self, point: &Point, dimensions: bool) -> bool {
        (0..2).all(|operand| {
            let free = point.free(&self.problem, operand, &self.along(operand));
            let few = || merged(&free).len();
            match dimensions {
                true => few() <= FREE_DIMENSIONS,
                false => fits(&self.problem.operands[operand], &free),
            }
        })
    }

    fn append(&self, b: &mut Builder) -> Result<(), Reason> {
        let problem = &self.problem;
        // DMA begins at any partition, so that the run is whole.
        let mut point = Point::new(problem);
        for at in &self.run {
            point.size[*at] = problem.digits[*at].extent;
        }
        sweep(b, problem, &self.loops, &point, &mut |b, point| {
            for free in self.free_parts(point)? {
                let point = point.with(&self.free, &free);
                let view = |operand: usize| {
                    let on: &[usize] = if self.on.contains(&operand) {
                        &self.run
                    } else {
                        &[]
                    };
                    point.view(b, problem, operand, on, &self.along(operand))
                };
                let (dst, src) = (view(D)?, view(S)?);
                b.dma_copy(dst, src);
            }
            Ok(())
        })
    }

    fn free_parts(&self, point: &Point) -> Result<Vec<Part>, Reason> {
        let extents: Vec<i64> = (self.free.iter())
            .map(|at| self.problem.digits[*at].extent)
            .collect();
        let parts = boxes(&extents, &|part| {
            self.fits(&point.with(&self.free, part), false)
        });
        parts.ok_or_else(|| Reason::Access {
            operand: "d",
            message: "no part of it is an access pattern of both sides".into(),
        })
    }
}
