//! Copies: on engines, by DMA, across partitions.

use super::access::fits;
use super::elementwise::on_chip;
use super::nest::{Part, Point, Sweep, boxes, sweep};
use super::partition::{may_start, refused, unit_run};
use super::problem::{Given, PLAIN, Problem, elements, partitions};
use super::reason::Reason;
use super::tiles::Tiles;
use super::{Region, engine};
use crate::facts::chip::{Engine, Generation};
use crate::facts::memory::{BANK_BYTES, PARTITIONS, QUADRANT};
use crate::program::{Builder, Op, Space};
use axe_layout::{Coord, Iter, Layout};
use axe_package::DType;

const D: usize = 0;
const S: usize = 1;
const BANK: i64 = BANK_BYTES / 4;

/// The digits of a copy. `follows`: replicas of `s` are read where the partitions of `d` are.
fn problem(b: &Builder, d: &Region, s: &Region, follows: bool) -> Result<Problem, Reason> {
    if d.shape != s.shape {
        let (d, s) = (&d.shape, &s.shape);
        return Err(Reason::Malformed(format!("expected s of {d:?}, got {s:?}")));
    }
    let given = [("d", d, true), ("s", s, false)].map(|(name, region, written)| Given {
        name,
        region,
        dims: (0..region.shape.len()).collect(),
        written,
        follows: follows && !written,
    });
    Problem::new(b, &given, &d.shape, PLAIN)
}

fn in_space(problem: &Problem, at: usize, space: Space) -> Result<(), Reason> {
    let operand = &problem.operands[at];
    match operand.space == space {
        true => Ok(()),
        false => Err(Reason::Memory {
            operand: operand.name,
            expected: space.name(),
            got: operand.space,
        }),
    }
}

/// By instructions of vector, scalar or gpsimd: each index is on the same partition of both.
pub(super) fn by_engine(b: &mut Builder, d: &Region, s: &Region) -> Result<(), Reason> {
    let problem = problem(b, d, s, true)?;
    on_chip(&problem)?;
    Tiles::new(&problem).append(b, &mut |b, _, mut views| {
        if let (Some(src), Some(dst)) = (views.pop(), views.pop()) {
            engine::copy(b, dst, src);
        }
        Ok(())
    })
}

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
            let few = || super::access::merged(&free).len();
            match dimensions {
                true => few() <= crate::facts::memory::FREE_DIMENSIONS,
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

/// A tile that lies as an operand of a problem does, dense along elements, without the dimensions that are left out.
/// Replicas on partitions are its own.
pub(super) fn tile_like(
    b: &mut Builder,
    problem: &Problem,
    (operand, space, dtype): (usize, Space, DType),
    shape: &[i64],
    keep: &dyn Fn(usize) -> bool,
) -> Result<Region, Reason> {
    let kept: Vec<_> = (problem.digits.iter())
        .filter(|digit| digit.dim.is_some_and(keep))
        .collect();
    let broken = |error: axe_layout::Error| Reason::Malformed(error.to_string());
    let (mut iters, mut stride) = (Vec::new(), 1i64);
    let (mut low, mut high) = (0i64, 0i64);
    for digit in kept.iter().rev() {
        let sign = if digit.falls { -1 } else { 1 };
        let p = sign * digit.steps[operand].p;
        if p == 0 {
            iters.push(Iter::new(digit.extent, stride, elements()));
            stride = stride.saturating_mul(digit.extent);
        } else {
            iters.push(Iter::new(digit.extent, p, partitions()));
            let far = p * (digit.extent - 1);
            (low, high) = (low + far.min(0), high + far.max(0));
        }
    }
    iters.reverse();
    let mut replicas = Vec::new();
    for digit in problem.digits.iter().filter(|digit| digit.dim.is_none()) {
        let p = digit.steps[operand].p;
        if p != 0 {
            replicas.push(Iter::new(digit.extent, p, partitions()));
            let far = p * (digit.extent - 1);
            (low, high) = (low + far.min(0), high + far.max(0));
        }
    }
    let offset = Coord::from_terms([(partitions(), -low)]).map_err(broken)?;
    let layout = Layout::new(iters, replicas, offset, None).map_err(broken)?;
    let count = high - low + 1;
    if count > PARTITIONS {
        return Err(Reason::Access {
            operand: problem.operands[operand].name,
            message: format!("expected at most {PARTITIONS} partitions, got {count}"),
        });
    }
    let tile = b.tile("staged", space, &[count, stride], dtype, 1);
    Ok(Region::new(tile.buffer(), shape, layout))
}

/// Through a tile of SBUF that lies as one of the two does: DMA on one side, an engine on the other.
pub(super) fn through_sbuf(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    like: usize,
) -> Result<(), Reason> {
    let problem = problem(b, d, s, true)?;
    let far = &problem.operands[like];
    if far.space != Space::Psum {
        return Err(Reason::Memory {
            operand: far.name,
            expected: "psum",
            got: far.space,
        });
    }
    let dtype = far.dtype;
    let tile = tile_like(b, &problem, (like, Space::Sbuf, dtype), &d.shape, &|_| true)?;
    let (first, second): (Move, Move) = match like {
        D => (by_dma, by_engine),
        _ => (by_engine, by_dma),
    };
    first(b, &tile, s)?;
    second(b, d, &tile)
}

/// What reads SBUF, of a copy of a source in PSUM.
pub(super) fn from_psum(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    then: &dyn Fn(&mut Builder, &Region, &Region) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let problem = problem(b, d, s, false)?;
    in_space(&problem, S, Space::Psum)?;
    let dtype = problem.operands[S].dtype;
    let tile = tile_like(b, &problem, (S, Space::Sbuf, dtype), &s.shape, &|_| true)?;
    by_engine(b, &tile, s)?;
    then(b, d, &tile)
}

type Move = fn(&mut Builder, &Region, &Region) -> Result<(), Reason>;

/// Who transposes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transposer {
    Tensor,
    Vector,
}

/// Squares of partitions and elements exchanged, where what is on the partitions of one side is along elements of the
/// other.
pub(super) fn by_transposes(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    by: Transposer,
) -> Result<(), Reason> {
    let mut problem = problem(b, d, s, false)?;
    on_chip(&problem)?;
    let wrong = |operand: usize, expected: String| {
        Err(Reason::Type {
            operand: problem.operands[operand].name,
            expected,
            got: problem.operands[operand].dtype,
        })
    };
    let [to, from] = [D, S].map(|at| problem.operands[at].dtype);
    match by {
        Transposer::Tensor => {
            in_space(&problem, S, Space::Sbuf)?;
            if !from.is_float() || from == DType::F64 {
                return wrong(S, "a float of at most 32 bits".into());
            }
        }
        Transposer::Vector if to != from => return wrong(D, from.to_string()),
        Transposer::Vector => {}
    }
    let across = |from: usize, to: usize| {
        let digits = problem.digits.iter().enumerate();
        let crossing = digits
            .filter(move |(_, digit)| digit.steps[from].p != 0 && digit.steps[to].p == 0)
            .map(|(at, _)| at);
        unit_run(&problem, from, crossing)
    };
    let (rows, columns) = (across(S, D), across(D, S));
    let (rows, columns) = (problem.fuse(&rows), problem.fuse(&columns));
    let square = Square {
        rows,
        columns,
        problem,
        by,
    };
    if square.rows.is_empty() && square.columns.is_empty() {
        return Err(Reason::Malformed(
            "no index is on the partitions of one operand and along elements of the other".into(),
        ));
    }
    square.append(b)
}

struct Square {
    problem: Problem,
    /// On the partitions of `s`, and on those of `d`.
    rows: Vec<usize>,
    columns: Vec<usize>,
    by: Transposer,
}

impl Square {
    fn append(&self, b: &mut Builder) -> Result<(), Reason> {
        let problem = &self.problem;
        let inside = |at: &usize| self.rows.contains(at) || self.columns.contains(at);
        let loops: Vec<Sweep> = (0..problem.digits.len())
            .filter(|at| !inside(at))
            .map(|digit| Sweep {
                digit,
                unrolled: false,
            })
            .collect();
        sweep(b, problem, &loops, &Point::new(problem), &mut |b, point| {
            for rows in self.parts(b, point, S, &self.rows)? {
                let point = point.with(&self.rows, &rows);
                for columns in self.parts(b, &point, D, &self.columns)? {
                    let point = point.with(&self.columns, &columns);
                    self.one(b, &point)?;
                }
            }
            Ok(())
        })
    }

    fn parts(
        &self,
        b: &Builder,
        point: &Point,
        operand: usize,
        digits: &[usize],
    ) -> Result<Vec<Part>, Reason> {
        let problem = &self.problem;
        let most = match self.by {
            Transposer::Tensor => PARTITIONS,
            Transposer::Vector => QUADRANT,
        };
        let extents: Vec<i64> = digits.iter().map(|at| problem.digits[*at].extent).collect();
        let parts = boxes(&extents, &|part| {
            let point = point.with(digits, part);
            let other = 1 - operand;
            point.count(digits) <= most
                && may_start(b, problem, operand, &point, digits)
                && fits(
                    &problem.operands[other],
                    &point.free(problem, other, digits),
                )
        });
        let dims: Vec<usize> = problem
            .digits
            .iter()
            .filter_map(|digit| digit.dim)
            .collect();
        parts.ok_or_else(|| refused(b, problem, &[operand], point, digits, &dims))
    }

    fn one(&self, b: &mut Builder, point: &Point) -> Result<(), Reason> {
        let problem = &self.problem;
        let data = point.view(b, problem, S, &self.rows, &self.columns)?;
        let dst = point.view(b, problem, D, &self.columns, &self.rows)?;
        if self.by == Transposer::Vector {
            b.op_on(Engine::Vector, Op::NcTranspose { dst, data });
            return Ok(());
        }
        let gen2 = (b.program().chip()).is_some_and(|chip| chip.generation == Generation::Gen2);
        let dtype = if gen2 { DType::F32 } else { b.dtype(&data) };
        if b.space(&dst) == Space::Psum && b.dtype(&dst) == dtype {
            b.op_on(Engine::Tensor, Op::NcTranspose { dst, data });
            return Ok(());
        }
        let shape = [data.free(), data.partitions()];
        let turned = b.tile("turned", Space::Psum, &shape, dtype, 2);
        b.op_on(
            Engine::Tensor,
            Op::NcTranspose {
                dst: turned.all(),
                data,
            },
        );
        engine::copy(b, dst, turned.all());
        Ok(())
    }
}

/// One partition to many: a product with ones.
pub(super) fn by_ones(b: &mut Builder, d: &Region, s: &Region) -> Result<(), Reason> {
    let problem = problem(b, d, s, false)?;
    on_chip(&problem)?;
    in_space(&problem, S, Space::Sbuf)?;
    let dtype = problem.operands[S].dtype;
    if !dtype.is_float() || dtype == DType::F64 {
        return Err(Reason::Type {
            operand: "s",
            expected: "a float of at most 32 bits".into(),
            got: dtype,
        });
    }
    let digits = || problem.digits.iter().enumerate();
    let still = digits()
        .filter(|(_, digit)| digit.steps[S].p == 0 && digit.steps[S].f == 0)
        .map(|(at, _)| at);
    let run = unit_run(&problem, D, still);
    if run.is_empty() {
        return Err(Reason::Malformed(
            "no index is on the partitions of d and nowhere in s".into(),
        ));
    }
    let count: i64 = run.iter().map(|at| problem.digits[*at].extent).product();
    let ones = b.tile("ones", Space::Sbuf, &[1, count.min(PARTITIONS)], dtype, 1);
    engine::fill(b, ones.all(), 1.0);
    let mut tiles = Tiles::new(&problem);
    tiles.run = run;
    tiles.most = BANK;
    tiles.single = Some(S);
    tiles.append(b, &mut |b, _, mut views| {
        let (Some(src), Some(dst)) = (views.pop(), views.pop()) else {
            return Ok(());
        };
        let (rows, columns) = (dst.partitions(), dst.free());
        let sums = b.tile("repeated", Space::Psum, &[rows, columns], DType::F32, 2);
        let stationary = ones.part([(0.into(), 1), (0.into(), rows)]);
        b.matmul(sums.all(), stationary, src);
        engine::copy(b, dst, sums.all());
        Ok(())
    })
}
