//! Copies across partitions by the tensor and the vector engine: transposes, and one partition to many.

use super::access::fits;
use super::elementwise::on_chip;
use super::gemm::BANK;
use super::movement::{D, S, in_space, problem};
use super::nest::{Part, Point, Sweep, boxes, sweep};
use super::partition::{may_start, refused, unit_run};
use super::problem::Problem;
use super::reason::Reason;
use super::tiles::Tiles;
use super::{Region, engine};
use crate::facts::chip::{Engine, Generation};
use crate::facts::memory::{PARTITIONS, QUADRANT};
use crate::program::{Builder, Op, Space};
use axe_package::DType;

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
