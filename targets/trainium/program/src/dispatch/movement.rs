//! Copies on engines, and through tiles of SBUF.

use super::dma::by_dma;
use super::elementwise::on_chip;
use super::problem::{Given, PLAIN, Problem, elements, partitions};
use super::reason::Reason;
use super::tiles::Tiles;
use super::{Move, Region, engine};
use crate::facts::memory::PARTITIONS;
use crate::program::{Builder, Space};
use axe_layout::{Coord, Iter, Layout};
use axe_package::DType;

/// Numbers of the operands of a copy.
pub(super) const D: usize = 0;
pub(super) const S: usize = 1;

/// The digits of a copy. `follows`: replicas of `s` are read where the partitions of `d` are.
pub(super) fn problem(
    b: &Builder,
    d: &Region,
    s: &Region,
    follows: bool,
) -> Result<Problem, Reason> {
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

pub(super) fn in_space(problem: &Problem, at: usize, space: Space) -> Result<(), Reason> {
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
    let (first, second): (Move<'_>, Move<'_>) = match like {
        D => (&by_dma, &by_engine),
        _ => (&by_engine, &by_dma),
    };
    first(b, &tile, s)?;
    second(b, d, &tile)
}

/// What reads SBUF, of a copy of a source in PSUM.
pub(super) fn from_psum(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    then: Move<'_>,
) -> Result<(), Reason> {
    let problem = problem(b, d, s, false)?;
    in_space(&problem, S, Space::Psum)?;
    let dtype = problem.operands[S].dtype;
    let tile = tile_like(b, &problem, (S, Space::Sbuf, dtype), &s.shape, &|_| true)?;
    by_engine(b, &tile, s)?;
    then(b, d, &tile)
}
