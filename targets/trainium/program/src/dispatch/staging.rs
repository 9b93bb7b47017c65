//! Sources brought to where the operator's result is.

use super::movement::tile_like;
use super::problem::{Given, PLAIN, Problem};
use super::reason::Reason;
use super::residue::Residue;
use super::{Region, copied};
use crate::facts::memory::{PARTITIONS, start_step};
use crate::program::{Builder, Space};
use axe_layout::{Axis, Iter, Layout};

/// Whether an operand begins at a partition where an instruction may.
fn begins(b: &Builder, problem: &Problem, at: usize) -> bool {
    let start = Residue::of(&problem.operands[at].partition, PARTITIONS, b.bounds());
    start.is_multiple(start_step(1))
}

/// A tile for each output, that lies as it does, or in its place as the first source on chip that has its shape.
///
/// # Errors
/// No operand of the shape is on chip.
pub(super) fn outputs(
    b: &mut Builder,
    outputs: &[Region],
    sources: &[Region],
) -> Result<Vec<Region>, Reason> {
    let tiles = outputs.iter().map(|d| {
        let on_chip = |region: &&Region| {
            let buffer = b.program().buffers.get(region.buffer);
            buffer.is_some_and(|buffer| buffer.space.has_partitions())
        };
        let like = std::iter::once(d)
            .chain(sources.iter().filter(|s| s.shape == d.shape))
            .find(on_chip);
        let like = like.ok_or(Reason::Memory {
            operand: "d",
            expected: "sbuf or psum",
            got: Space::Hbm,
        })?;
        let given = [Given {
            name: "d",
            region: like,
            dims: (0..like.shape.len()).collect(),
            written: false,
            follows: false,
        }];
        let problem = Problem::new(b, &given, &like.shape, PLAIN)?;
        let buffer = b.program().buffers.get(d.buffer);
        let dtype = buffer
            .ok_or_else(|| Reason::Malformed(format!("no buffer {}", d.buffer)))?
            .dtype;
        tile_like(b, &problem, (0, Space::Sbuf, dtype), &d.shape, &|_| true)
    });
    tiles.collect()
}

/// The sources of a map, each of which lies on the partitions of the first output: those that do not are copied to tiles
/// that do.
pub(super) fn sources(
    b: &mut Builder,
    outputs: &[Region],
    sources: &[Region],
) -> Result<Vec<Region>, Reason> {
    let Some(d) = outputs.first() else {
        return Ok(sources.to_vec());
    };
    sources.iter().map(|source| staged(b, d, source)).collect()
}

fn staged(b: &mut Builder, d: &Region, source: &Region) -> Result<Region, Reason> {
    let wide = widened(b, d, source)?;
    if wide.shape.len() != d.shape.len() {
        return Err(Reason::Malformed(format!(
            "expected a source of {} dimensions, got {:?}",
            d.shape.len(),
            wide.shape
        )));
    }
    let given = [(d, "d"), (&wide, "source")].map(|(region, name)| Given {
        name,
        region,
        dims: (0..region.shape.len()).collect(),
        written: name == "d",
        follows: name != "d",
    });
    let problem = Problem::new(b, &given, &d.shape, PLAIN)?;
    let same = problem
        .digits
        .iter()
        .all(|digit| digit.steps[0].p == digit.steps[1].p);
    if same && problem.operands[1].space != Space::Hbm && begins(b, &problem, 1) {
        return Ok(source.clone());
    }
    let dtype = problem.operands[1].dtype;
    let keep = |dim: usize| wide.shape[dim] == d.shape[dim];
    let tile = tile_like(b, &problem, (0, Space::Sbuf, dtype), &wide.shape, &keep)?;
    copied(b, &tile, &wide)?;
    Ok(tile)
}

/// The source with the dimensions that it repeats, where those are on partitions of the result.
fn widened(b: &Builder, d: &Region, source: &Region) -> Result<Region, Reason> {
    let given = [Given {
        name: "d",
        region: d,
        dims: (0..d.shape.len()).collect(),
        written: true,
        follows: false,
    }];
    let problem = Problem::new(b, &given, &d.shape, PLAIN)?;
    let partitioned = |dim: usize| {
        let mut digits = problem.digits.iter();
        digits.any(|digit| digit.dim == Some(dim) && digit.steps[0].p != 0)
    };
    let refuse = |error: axe_layout::Error| Reason::Layout {
        operand: "source",
        message: error.to_string(),
    };
    let grouped = source.layout.group(&source.shape).map_err(refuse)?;
    let (mut iters, mut shape) = (Vec::new(), Vec::new());
    for (dim, block) in grouped.blocks().enumerate() {
        let (own, all) = (source.shape[dim], d.shape.get(dim).copied().unwrap_or(1));
        let repeat = own == 1 && all != 1 && partitioned(dim);
        match repeat {
            true => iters.push(Iter::new(all, 0, Axis::M)),
            false => iters.extend_from_slice(block),
        }
        shape.push(if repeat { all } else { own });
    }
    let layout = Layout::new(
        iters,
        source.layout.replica().iter().copied(),
        source.layout.offset().clone(),
        None,
    );
    Ok(Region {
        shape,
        layout: layout.map_err(refuse)?,
        ..source.clone()
    })
}
