//! Kernels of loops: what no operator of axe says, point by point.
//!
//! A `linalg.generic` on tensors becomes one on the memrefs of a kernel. The whole grid executes it: each point of its
//! parallel loops belongs to one thread, which runs the reductions. Inside a kernel the body is closed: scalars of the
//! function are arguments or computed again, `tensor.extract` is a `memref.load` whose indices are brought into their
//! extents, and `cf.assert` is gone.

mod close;
mod computed;
mod extremes;
mod fold;
mod gathered;
mod hoist;
mod inline;
mod loops;
mod merge;
mod pointwise;
mod ranges;
mod repeated;
mod repeats;
mod row_fold;
mod sides;
mod split;
mod through;
mod windows;

pub use fold::fold_bodies;
pub use gathered::reused_table;
pub(super) use inline::loops_around;
pub use inline::{PointsOfRows, inline_loops, is_inlined};
pub use loops::{maps, parallel, reductions};
pub use pointwise::{Pointwise, index_of_number, is_identity};
pub use repeated::read_repeated;
pub use repeats::repeats_to_loops;
pub use row_fold::{RowFold, row_folds};
pub use sides::join_sides;
pub use split::split_long;
pub use through::read_through;
pub use windows::unroll_windows;

pub use hoist::to_rows;

use super::operators::splat;
use super::reshape::extent_of;
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, walk};
use crate::{PassError, PassResult};
use axe_dialect::Typed;
use axe_dialect::ops::FillOp;
use loops::loop_extent;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, BlockRef};

/// The discardable attribute of a kernel's `linalg.generic` with the value that each result starts from: a number, or a
/// unit where it starts from what memory holds.
pub const INITIAL: &str = "initial";

/// Whether an operation is a structured operation on tensors that a kernel of loops executes.
#[must_use]
pub fn is_nest(op: Op<'_>) -> bool {
    name(op) == "linalg.generic" && op.result_count() > 0
}

/// What a result starts from.
#[derive(Clone, Copy, Debug)]
pub enum Start<'c> {
    /// Nothing: all of it is written, and none of it read.
    Nothing,
    /// This number, everywhere.
    Number(Attribute<'c>),
    /// The elements of the initial value.
    Memory,
}

/// A `linalg.generic` on tensors, read.
#[derive(Clone, Debug)]
pub struct Nest<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Tensors that are read, each once.
    pub reads: Vec<Val<'c>>,
    /// Scalars of the function that are passed.
    pub scalars: Vec<Val<'c>>,
    /// The initial value of each result.
    pub inits: Vec<Val<'c>>,
    /// What each result starts from.
    pub starts: Vec<Start<'c>>,
    /// For each loop, whether it is a reduction.
    pub reductions: Vec<bool>,
    /// The extent of each loop; [`DYNAMIC`] where known at run time only.
    pub extents: Vec<i64>,
    /// For each loop, an operand and its dimension that has the extent.
    sources: Vec<(Val<'c>, usize)>,
}

impl<'c> Nest<'c> {
    /// Reads the operation.
    ///
    /// # Errors
    /// At an operation whose loops, or whose body, no kernel can have.
    pub fn read(op: Op<'c>) -> PassResult<'c, Self> {
        let error = |why: &str| PassError::new(op.location(), format!("'{}' {why}", name(op)));
        let all = operands(op);
        let inputs = all.len().checked_sub(op.result_count());
        let inputs = inputs.ok_or_else(|| error("has fewer operands than results"))?;
        let (ins, inits) = all.split_at(inputs);
        let maps = maps(op).ok_or_else(|| error("has indexing maps that cannot be read"))?;
        let reductions = reductions(op);
        let mut nest = Self {
            op,
            reads: Vec::new(),
            scalars: Vec::new(),
            inits: inits.to_vec(),
            starts: Vec::new(),
            extents: Vec::new(),
            sources: Vec::new(),
            reductions,
        };
        for at in 0..nest.reductions.len() {
            let (extent, source) = loop_extent(&all, &maps, at)
                .ok_or_else(|| error("has a loop whose extent no operand has"))?;
            nest.extents.push(extent);
            nest.sources.push(source);
        }
        for value in &all {
            if TensorType::of_value(*value).is_some_and(|tensor| tensor.encoded) {
                return Err(error(
                    "has a tensor with an encoding: expected logical tensors",
                ));
            }
        }
        for value in ins {
            nest.reads_or_takes(*value)?;
        }
        nest.body()?;
        let starts = inits.iter().enumerate().map(|(number, init)| {
            let map = maps.get(inputs + number).copied();
            nest.start(inputs + number, *init, map)
        });
        nest.starts = starts.collect();
        if !nest.carries(maps.get(inputs..).unwrap_or_default()) {
            nest.keep_in_memory();
        }
        Ok(nest)
    }

    /// The loops that are shared out among threads, outermost first: those of the first result in its order, then others.
    #[must_use]
    pub fn parallel(&self) -> Vec<usize> {
        parallel(self.op, &self.reductions)
    }

    /// The extent of a loop as an index value.
    ///
    /// # Errors
    /// When building fails.
    pub fn extent(&self, builder: &Builder<'c>, at: usize) -> PassResult<'c, Val<'c>> {
        match (self.extents.get(at), self.sources.get(at)) {
            (Some(&DYNAMIC), Some(&(tensor, dim))) => extent_of(builder, tensor, dim),
            (Some(&extent), _) => builder.index(extent),
            _ => Err(PassError::new(builder.location, "a loop without an extent")),
        }
    }

    /// What the body reads from outside.
    fn body(&mut self) -> PassResult<'c> {
        let inside = inside(self.op);
        for op in walk::nested(self.op, &|_| true) {
            for (at, value) in operands(op).into_iter().enumerate() {
                if inside.contains(&identity(value)) {
                    continue;
                }
                let of_tensor =
                    at == 0 && ["tensor.extract", "tensor.dim"].contains(&name(op).as_str());
                if TensorType::of_value(value).is_some() && !of_tensor {
                    let message = format!(
                        "'{}' of a tensor has no form in the body of a kernel's loops: expected tensor.extract",
                        name(op)
                    );
                    return Err(PassError::new(op.location(), message));
                }
                self.reads_or_takes(value)?;
            }
            if !in_body(&name(op)) {
                let message = format!(
                    "'{}' has no form in the body of a kernel's loops: expected operations on scalars, tensor.extract, scf.if and scf.for",
                    name(op)
                );
                return Err(PassError::new(op.location(), message));
            }
        }
        Ok(())
    }

    /// Adds a tensor that is read, or what a scalar of the function depends on.
    fn reads_or_takes(&mut self, value: Val<'c>) -> PassResult<'c> {
        if TensorType::of_value(value).is_some() {
            if !self.reads.contains(&value) {
                self.reads.push(value);
            }
            return Ok(());
        }
        match defining(value).filter(|op| is_computed_again(*op)) {
            Some(op) => operands(op)
                .into_iter()
                .try_for_each(|operand| self.reads_or_takes(operand)),
            None => {
                if !self.scalars.contains(&value) {
                    self.scalars.push(value);
                }
                Ok(())
            }
        }
    }

    /// What a result starts from, of which the body has the argument of this number.
    fn start(&self, argument: usize, init: Val<'c>, map: Option<AffineMap<'c>>) -> Start<'c> {
        let body = walk::blocks(self.op).first().copied();
        let argument = body.and_then(|body| walk::block_arguments(body).get(argument).copied());
        let is_read = argument.is_some_and(crate::ir::value::is_used);
        let shape = TensorType::of_value(init)
            .map(|tensor| tensor.shape)
            .unwrap_or_default();
        if !map.is_some_and(|map| self.covers(map, &shape)) {
            return Start::Memory;
        }
        match (is_read, number(init)) {
            (false, _) => Start::Nothing,
            (true, Some(number)) => Start::Number(number),
            (true, None) => Start::Memory,
        }
    }

    /// Whether no result is indexed by a reduction: a thread then carries all of them.
    fn carries(&self, outs: &[AffineMap<'c>]) -> bool {
        let reductions = self.reductions.iter().enumerate();
        let mut reduced = reductions
            .filter(|(_, reduced)| **reduced)
            .map(|(at, _)| at);
        reduced.all(|at| {
            let indices = |map: &AffineMap<'c>| {
                (0..map.result_count())
                    .filter_map(|at| map.result(at).ok())
                    .collect::<Vec<_>>()
            };
            !outs
                .iter()
                .flat_map(indices)
                .any(|index| index.is_function_of_dim(at))
        })
    }

    /// What is read starts from memory.
    fn keep_in_memory(&mut self) {
        for start in &mut self.starts {
            if matches!(start, Start::Number(_)) {
                *start = Start::Memory;
            }
        }
    }

    /// Whether a result with this map has every element written, by one thread each.
    fn covers(&self, map: AffineMap<'c>, shape: &[i64]) -> bool {
        let mut seen = Vec::new();
        (0..map.result_count()).all(|at| match map.result(at) {
            Ok(index) if index.is_dim() => {
                let dim = index.dim_position();
                let own = !seen.contains(&dim) && self.reductions.get(dim) == Some(&false);
                seen.push(dim);
                own
            }
            Ok(index) => index.is_constant() && shape.get(at) == Some(&1),
            Err(_) => false,
        })
    }
}

/// The number that all elements of a tensor have, where its producer says so: a fill, a constant, or loops that yield it.
fn number<'c>(value: Val<'c>) -> Option<Attribute<'c>> {
    let constant = |scalar: Val<'c>| {
        let op = defining(scalar).filter(|op| name(*op) == "arith.constant")?;
        op.attribute("value").ok()
    };
    if let Some(fill) = FillOp::defining(value) {
        return constant(fill.value);
    }
    let op = defining(value)?;
    if !is_nest(op) {
        return splat(op);
    }
    let number = results(op).iter().position(|result| *result == value)?;
    let body = walk::blocks(op).first().copied()?;
    let yielded = walk::operations(body).last().map(|last| operands(*last))?;
    let yielded = *yielded.get(number)?;
    let argument = walk::block_arguments(body)
        .iter()
        .position(|argument| *argument == yielded);
    match argument {
        Some(at) => operands(op).get(at).copied().and_then(constant),
        None => constant(yielded),
    }
}

/// Whether an operation of the function that computes scalars is done again in a kernel that reads them.
fn is_computed_again(op: Op<'_>) -> bool {
    let name = name(op);
    let scalar = ["arith.", "math.", "index."]
        .iter()
        .any(|dialect| name.starts_with(dialect));
    (scalar && op.region_count() == 0) || name == "tensor.extract"
}

/// Whether an operation of this name has a form in a body.
fn in_body(name: &str) -> bool {
    let known = ["arith.", "math.", "index."]
        .iter()
        .any(|dialect| name.starts_with(dialect));
    let others = [
        "linalg.index",
        "linalg.yield",
        "tensor.extract",
        "tensor.dim",
        "cf.assert",
        "scf.if",
        "scf.for",
        "scf.yield",
    ];
    known || others.contains(&name)
}

/// The values that are defined in an operation's regions.
fn inside(op: Op<'_>) -> Vec<usize> {
    walk::blocks(op).into_iter().flat_map(inside_of).collect()
}

fn inside_of(block: BlockRef<'_, '_>) -> Vec<usize> {
    let mut found: Vec<_> = walk::block_arguments(block)
        .into_iter()
        .map(identity)
        .collect();
    for op in walk::operations(block) {
        found.extend(results(op).into_iter().map(identity));
        found.extend(inside(op));
    }
    found
}
