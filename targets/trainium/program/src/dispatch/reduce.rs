//! Reductions: along elements, and along partitions.

use super::elementwise::on_chip;
use super::movement::{by_engine, tile_like};
use super::partition::unit_run;
use super::problem::{Given, Problem, elements, name_of};
use super::reason::Reason;
use super::tiles::Tiles;
use super::{Move, Region, engine, gemm};
use crate::facts::chip::Engine;
use crate::facts::memory::PSUM_BYTES;
use crate::program::{Accumulate, Alu, Builder, Function, Op, Reduction, Space, View};
use axe_layout::{Iter, Layout};
use axe_package::DType;
use std::ops::Range;

const D: usize = 0;
const S: usize = 1;
/// Dimensions of what is reduced are numbered.
const NAMES: &[&str] = &["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"];

/// A reduction: what it is of, over which dimensions, by which function.
#[derive(Clone, Copy)]
pub(super) struct Reduced<'a> {
    pub d: &'a Region,
    pub s: &'a Region,
    pub dims: &'a [usize],
    pub op: Alu,
}

/// Which instruction reduces along elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// `tensor_reduce`.
    Vector,
    /// The registers of `activation`, which add.
    Scalar,
}

impl Reduced<'_> {
    /// The dimensions that are left.
    fn kept(&self) -> Vec<usize> {
        let all = 0..self.s.shape.len();
        all.filter(|dim| !self.dims.contains(dim)).collect()
    }

    /// `d` without the dimensions that are reduced.
    pub fn short(&self) -> Result<Region, Reason> {
        let kept: Vec<i64> = self.kept().iter().map(|dim| self.s.shape[*dim]).collect();
        let same: Vec<i64> = (0..self.s.shape.len())
            .map(|dim| {
                if self.dims.contains(&dim) {
                    1
                } else {
                    self.s.shape[dim]
                }
            })
            .collect();
        if self.d.shape != kept && self.d.shape != same {
            return Err(Reason::Malformed(format!(
                "expected d of {kept:?} or {same:?}, got {:?}",
                self.d.shape
            )));
        }
        Ok(Region {
            shape: kept,
            ..self.d.clone()
        })
    }

    fn problem(&self, b: &Builder) -> Result<Problem, Reason> {
        let rank = self.s.shape.len();
        if self.dims.is_empty() || self.dims.iter().any(|dim| *dim >= rank) {
            return Err(Reason::Malformed(format!(
                "expected dimensions below {rank}, at least one, got {:?}",
                self.dims
            )));
        }
        let short = self.short()?;
        let given = [
            Given {
                name: "d",
                region: &short,
                dims: self.kept(),
                written: true,
                follows: false,
            },
            Given {
                name: "s",
                region: self.s,
                dims: (0..rank).collect(),
                written: false,
                follows: true,
            },
        ];
        let problem = Problem::new(b, &given, &self.s.shape, NAMES)?;
        on_chip(&problem)?;
        Ok(problem)
    }

    /// The digits of the dimensions that are reduced.
    fn digits(&self, problem: &Problem) -> Vec<usize> {
        let reduced = |dim: usize| self.dims.contains(&dim);
        (0..problem.digits.len())
            .filter(|at| problem.digits[*at].dim.is_some_and(reduced))
            .collect()
    }

    /// Along elements of each partition.
    pub fn along_elements(&self, b: &mut Builder, by: Along) -> Result<(), Reason> {
        let problem = self.problem(b)?;
        let reduced = self.digits(&problem);
        let on = reduced
            .iter()
            .find(|at| problem.digits[**at].steps[S].p != 0);
        if let Some(at) = on {
            let digit = &problem.digits[*at];
            return Err(Reason::OnePartitioned {
                dimension: name_of(NAMES, digit.dim).into(),
                extent: digit.extent,
                on: "s",
                off: "d",
            });
        }
        if by == Along::Scalar && (self.op != Alu::Add || problem.operands[D].dtype != DType::F32) {
            return Err(Reason::Malformed(
                "the scalar engine's registers add, in f32".into(),
            ));
        }
        let mut tiles = Tiles::new(&problem).reducing(reduced.clone());
        if by == Along::Scalar {
            tiles.free.clear();
        }
        let inside = tiles.reduced.clone();
        tiles.append(b, &mut |b, point, mut views| {
            let (Some(data), Some(dst)) = (views.pop(), views.pop()) else {
                return Ok(());
            };
            let axes = point.view(b, &problem, S, &[], &inside)?.axes.len() - 1;
            match by {
                _ if reduced.is_empty() => engine::copy(b, dst, data),
                Along::Scalar => registers(b, dst, data),
                Along::Vector => b.op_on(
                    Engine::Vector,
                    Op::TensorReduce {
                        dst,
                        data,
                        op: self.op,
                        axes,
                        negate: false,
                    },
                ),
            }
            Ok(())
        })
    }

    /// Along partitions, as a product with ones; elements are added in PSUM.
    pub fn by_ones(&self, b: &mut Builder, then: Move<'_>) -> Result<(), Reason> {
        if self.op != Alu::Add {
            return Err(Reason::Malformed("a product adds".into()));
        }
        let problem = self.problem(b)?;
        let operand = &problem.operands[S];
        if operand.space == Space::Psum {
            let dtype = operand.dtype;
            let tile = tile_like(b, &problem, (S, Space::Sbuf, dtype), &self.s.shape, &|_| {
                true
            })?;
            by_engine(b, &tile, self.s)?;
            return Reduced { s: &tile, ..*self }.by_ones(b, then);
        }
        let short = self.short()?;
        let d = &problem.operands[D];
        let direct = d.space == Space::Psum && d.dtype == DType::F32;
        let shape = short.shape.clone();
        let keep = |dim: usize| !self.dims.contains(&dim);
        let mark = b.mark();
        let sums = match direct {
            true => short.clone(),
            false => tile_like(b, &problem, (D, Space::Psum, DType::F32), &shape, &keep)?,
        };
        if b.program().buffers[sums.buffer].bytes() > PSUM_BYTES {
            b.rewind(mark);
            let halves = self.halves()?;
            return halves
                .iter()
                .try_for_each(|(d, s)| Reduced { d, s, ..*self }.by_ones(b, then));
        }
        self.products(b, &problem, &sums)?;
        match direct {
            true => Ok(()),
            false => then(b, &short, &sums),
        }
    }

    /// Two of it, of the largest dimension that is left.
    fn halves(&self) -> Result<Vec<(Region, Region)>, Reason> {
        let refuse = |error: axe_layout::Error| Reason::Layout {
            operand: "s",
            message: error.to_string(),
        };
        let kept = self.kept();
        let short = self.short()?;
        let largest = (0..kept.len()).max_by_key(|at| short.shape[*at]);
        let at = largest.filter(|at| short.shape[*at] > 1);
        let at = at.ok_or_else(|| Reason::Malformed("one index does not fit PSUM".into()))?;
        let extent = short.shape[at];
        let part = |region: &Region, dim: usize, range: Range<i64>| {
            let mut ranges: Vec<Range<i64>> =
                region.shape.iter().map(|extent| 0..*extent).collect();
            ranges[dim] = range;
            let layout = region
                .layout
                .slice(&region.shape, &ranges)
                .map_err(refuse)?;
            Ok(Region {
                shape: ranges.iter().map(|range| range.end - range.start).collect(),
                layout,
                ..region.clone()
            })
        };
        let half = |range: Range<i64>| {
            Ok((
                part(&short, at, range.clone())?,
                part(self.s, kept[at], range)?,
            ))
        };
        [0..extent / 2, extent / 2..extent]
            .into_iter()
            .map(half)
            .collect()
    }

    /// `sums = ones s`, in PSUM.
    fn products(&self, b: &mut Builder, problem: &Problem, sums: &Region) -> Result<(), Reason> {
        let (kept, reduced): (i64, i64) = (self.size(&self.kept()), self.size(self.dims));
        let dtype = problem.operands[S].dtype;
        let ones = tile_like(b, problem, (S, Space::Sbuf, dtype), &[1, reduced], &|dim| {
            self.dims.contains(&dim)
        })?;
        engine::fill(b, whole(b, ones.buffer), 1.0);
        let order: Vec<usize> = self.sorted_dims().into_iter().chain(self.kept()).collect();
        let turned = self.s.layout.permute_dims(&self.s.shape, &order);
        let turned = turned.map_err(|error| Reason::Malformed(error.to_string()))?;
        let rhs = Region {
            shape: vec![reduced, kept],
            layout: turned,
            ..self.s.clone()
        };
        let matrix = Region {
            shape: vec![1, kept],
            ..sums.clone()
        };
        let mark = b.mark();
        let operands = [&matrix, &ones, &rhs];
        let turns = [false, false];
        if let Err(first) = gemm::products(b, operands, turns, true, Accumulate::Never) {
            b.rewind(mark);
            let second = gemm::products(b, operands, turns, false, Accumulate::Never);
            second.map_err(|_| first)?;
        }
        Ok(())
    }

    fn sorted_dims(&self) -> Vec<usize> {
        let mut dims = self.dims.to_vec();
        dims.sort_unstable();
        dims
    }

    fn size(&self, dims: &[usize]) -> i64 {
        dims.iter().map(|dim| self.s.shape[*dim]).product()
    }

    /// Along partitions, on gpsimd: after what is along elements.
    pub fn on_gpsimd(&self, b: &mut Builder, then: Move<'_>) -> Result<(), Reason> {
        let problem = self.problem(b)?;
        let reduced = self.digits(&problem);
        let (across, along): (Vec<usize>, Vec<usize>) = reduced
            .iter()
            .partition(|at| problem.digits[**at].steps[S].p != 0);
        if across.is_empty() || along.is_empty() {
            return self.partitions_on_gpsimd(b);
        }
        // Each digit is a dimension of its own.
        let digits = (problem.digits.iter().enumerate()).filter(|(_, digit)| digit.dim.is_some());
        let shape: Vec<i64> = digits.clone().map(|(_, digit)| digit.extent).collect();
        let s = Region {
            shape: shape.clone(),
            ..self.s.clone()
        };
        let kept = |gone: &[usize]| -> Vec<i64> {
            let left = digits.clone().filter(|(at, _)| !gone.contains(at));
            left.map(|(_, digit)| digit.extent).collect()
        };
        let single = |region: Region| Region {
            shape: kept(&reduced),
            ..region
        };
        let partial = {
            let first = Reduced {
                s: &s,
                dims: &along,
                ..*self
            };
            let fine = Problem::new(b, &[first.source()], &shape, NAMES)?;
            let keep = |dim: usize| !along.contains(&dim);
            tile_like(b, &fine, (0, Space::Sbuf, DType::F32), &kept(&along), &keep)?
        };
        let first = Reduced {
            d: &partial,
            s: &s,
            dims: &along,
            ..*self
        };
        first.along_elements(b, Along::Vector)?;
        // Dimensions that are gone are not counted any more.
        let gone = |at: &usize| along.iter().filter(|gone| *gone < at).count();
        let left: Vec<usize> = across.iter().map(|at| at - gone(at)).collect();
        let d = single(self.short()?);
        let second = Reduced {
            d: &d,
            s: &partial,
            dims: &left,
            ..*self
        };
        let mark = b.mark();
        second.partitions_on_gpsimd(b).or_else(|_| {
            b.rewind(mark);
            second.through_row(b, then)
        })
    }

    /// What is reduced, as the only operand.
    fn source(&self) -> Given<'_> {
        Given {
            name: "s",
            region: self.s,
            dims: (0..self.s.shape.len()).collect(),
            written: false,
            follows: false,
        }
    }

    /// On gpsimd, to a row of one partition that is copied to where it belongs.
    pub fn through_row(&self, b: &mut Builder, then: Move<'_>) -> Result<(), Reason> {
        let short = self.short()?;
        let count: i64 = short.shape.iter().product();
        let row = b.tile("row", Space::Sbuf, &[1, count], DType::F32, 1);
        let layout = Layout::from_shard([Iter::new(count, 1, elements())]);
        let layout = layout.map_err(|error| Reason::Malformed(error.to_string()))?;
        let row = Region::new(row.buffer(), &short.shape, layout);
        Reduced { d: &row, ..*self }.partitions_on_gpsimd(b)?;
        then(b, &short, &row)
    }

    fn partitions_on_gpsimd(&self, b: &mut Builder) -> Result<(), Reason> {
        let problem = self.problem(b)?;
        let reduced = self.digits(&problem);
        let run = unit_run(&problem, S, reduced.iter().copied());
        if let Some(at) = reduced.iter().find(|at| !run.contains(at)) {
            let digit = &problem.digits[*at];
            return Err(Reason::OnePartitioned {
                dimension: name_of(NAMES, digit.dim).into(),
                extent: digit.extent,
                on: "no consecutive partitions",
                off: "d",
            });
        }
        let mut tiles = Tiles::new(&problem);
        tiles.free.retain(|at| !reduced.contains(at));
        tiles.run = run;
        tiles.single = Some(D);
        tiles.whole_run = true;
        tiles.append(b, &mut |b, _, mut views| {
            if let (Some(data), Some(dst)) = (views.pop(), views.pop()) {
                let op = self.op;
                b.op(Op::TensorPartitionReduce { dst, data, op });
            }
            Ok(())
        })
    }

    /// Through a tile that lies as `s` does, where `d` lies elsewhere; `then` copies it.
    pub fn through_tile(&self, b: &mut Builder, then: Move<'_>) -> Result<(), Reason> {
        let problem = self.problem(b)?;
        let short = self.short()?;
        let keep = |dim: usize| !self.dims.contains(&dim);
        let tile = tile_like(
            b,
            &problem,
            (S, Space::Sbuf, DType::F32),
            &short.shape,
            &keep,
        )?;
        let partial = Reduced { d: &tile, ..*self };
        partial.along_elements(b, Along::Vector)?;
        then(b, &short, &tile)
    }
}

/// All of a buffer on chip.
fn whole(b: &Builder, buffer: usize) -> View {
    let shape = b.program().buffers[buffer].shape.clone();
    let axis = |(of, size): (usize, &i64)| crate::program::Axis {
        of: Some(of),
        size: *size,
        step: 1,
    };
    View {
        buffer,
        origin: vec![0.into(); shape.len()],
        axes: shape.iter().enumerate().map(axis).collect(),
    }
}

/// Sums of the scalar engine's registers; what it writes besides is not read.
fn registers(b: &mut Builder, dst: View, data: View) {
    let dtype = b.dtype(&data);
    let shape = [data.partitions(), data.free()];
    let unread = b.tile("unread", Space::Sbuf, &shape, dtype, 2);
    b.op(Op::Activation {
        dst: unread.all(),
        data,
        function: Function::Copy,
        bias: None,
        scale: 1.0.into(),
        command: Some(Reduction::ResetReduce),
        reduce: Some(dst),
    });
}
