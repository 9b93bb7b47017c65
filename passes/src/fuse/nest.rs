//! Kernels of loops: what no operator of axe says, point by point.
//!
//! A `linalg.generic` on tensors becomes one on the memrefs of a kernel. The whole grid executes it: each point of its
//! parallel loops belongs to one thread, which runs the reductions. Inside a kernel the body is closed: scalars of the
//! function are arguments or computed again, `tensor.extract` is a `memref.load` whose indices are brought into their
//! extents, and `cf.assert` is gone.

use super::operators::splat;
use super::reshape::extent_of;
use crate::build::Kernel;
use crate::ir::value::{defining, identity, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, walk};
use crate::{PassError, PassResult};
use axe_dialect::Typed;
use axe_dialect::ops::FillOp;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{AffineMap, Attribute, RegionLike, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;

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

    /// Adds the operation to a kernel whose arguments are the tensors that are read, the scalars and the results.
    ///
    /// # Errors
    /// When building fails.
    pub fn emit(&self, kernel: &Kernel<'c>) -> PassResult<'c, Op<'c>> {
        let builder = &kernel.code.builder;
        let mut values: inline::Values<'c> = self
            .reads
            .iter()
            .chain(&self.scalars)
            .zip(&kernel.arguments)
            .map(|(value, argument)| (identity(*value), *argument))
            .collect();
        let outs = kernel
            .arguments
            .get(self.reads.len() + self.scalars.len()..);
        let outs = outs.unwrap_or_default();
        let copy = builder.clone_of(self.op);
        let region = melior::ir::Region::new();
        // SAFETY: both regions are live; the copy's is left empty, and the copy goes with it.
        unsafe {
            sys::mlirRegionTakeBody(
                region.to_raw(),
                sys::mlirOperationGetRegion(copy.to_raw(), 0),
            );
        }
        walk::erase(copy);
        // SAFETY: the block lives in the region, and the region in the operation that it is given to.
        let block = region
            .first_block()
            .map(|block| unsafe { melior::ir::BlockRef::from_raw(block.to_raw()) });
        let block = block.ok_or_else(|| PassError::new(builder.location, "expected a body"))?;
        let (ins, kept) = self.close(block, &mut values)?;
        let operands: Vec<_> = ins.iter().chain(outs).copied().collect();
        let sizes = [
            i32::try_from(ins.len()).unwrap_or(0),
            i32::try_from(outs.len()).unwrap_or(0),
        ];
        let keep = |key: &str| {
            let all = self
                .op
                .attribute(key)
                .ok()
                .and_then(attribute::elements)
                .unwrap_or_default();
            all.into_iter()
                .enumerate()
                .filter(|(at, _)| key != "indexing_maps" || kept.contains(at))
                .map(|(_, one)| one.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let attributes = [
            (
                "indexing_maps",
                builder.parsed(&format!("[{}]", keep("indexing_maps")))?,
            ),
            (
                "iterator_types",
                builder.parsed(&format!("[{}]", keep("iterator_types")))?,
            ),
            builder.segments(&sizes),
            (
                INITIAL,
                builder.parsed(&format!("[{}]", self.initial().join(", ")))?,
            ),
        ];
        builder.operation("linalg.generic", &operands, &[], &attributes, vec![region])
    }

    fn initial(&self) -> Vec<String> {
        let text = |start: &Start<'c>| match start {
            Start::Number(number) => number.to_string(),
            Start::Nothing | Start::Memory => "unit".to_owned(),
        };
        self.starts.iter().map(text).collect()
    }

    /// Closes a copy of the body: what it reads from outside is an argument of the kernel, or computed in it. Gives the
    /// memrefs of the inputs, and the positions of the operands that stay: scalars go into the body.
    fn close(
        &self,
        block: melior::ir::BlockRef<'c, 'c>,
        values: &mut inline::Values<'c>,
    ) -> PassResult<'c, (Vec<Val<'c>>, Vec<usize>)> {
        let own = walk::operations(block);
        let Some(&first) = own.first() else {
            return Err(PassError::new(self.op.location(), "expected a body"));
        };
        let all = operands(self.op);
        let (mut ins, mut kept, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        let inputs = all.len() - self.inits.len();
        let arguments = walk::block_arguments(block);
        for (at, (value, argument)) in all.iter().zip(arguments).enumerate() {
            if at >= inputs {
                kept.push(at);
            } else if TensorType::of_value(*value).is_some() {
                kept.push(at);
                ins.extend(values.get(&identity(*value)).copied());
            } else {
                replace_all_uses(
                    argument,
                    self.value(&Builder::before(first), *value, values)?,
                );
                gone.push(at);
            }
        }
        for at in gone.into_iter().rev() {
            // SAFETY: the argument has no use left.
            unsafe {
                sys::mlirBlockEraseArgument(
                    melior::ir::BlockLike::to_raw(&block),
                    u32::try_from(at).unwrap_or(0),
                )
            };
        }
        let inside = inside_of(block);
        for op in nested(&own) {
            for value in operands(op) {
                let scalar = TensorType::of_value(value).is_none();
                if scalar && !inside.contains(&identity(value)) {
                    self.value(&Builder::before(first), value, values)?;
                }
            }
        }
        for op in nested(&own) {
            self.close_operation(op, values)?;
        }
        Ok((ins, kept))
    }

    /// What a scalar of the function is in the kernel, computed at the builder's place where it is no argument.
    fn value(
        &self,
        builder: &Builder<'c>,
        value: Val<'c>,
        values: &mut inline::Values<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if let Some(known) = values.get(&identity(value)) {
            return Ok(*known);
        }
        let Some(op) = defining(value).filter(|op| is_computed_again(*op)) else {
            // A value of the kernel already.
            return Ok(value);
        };
        for operand in operands(op) {
            if TensorType::of_value(operand).is_none() {
                self.value(builder, operand, values)?;
            }
        }
        let copy = inline::copy_operation(builder, op, values);
        let copied = builder.result_of(copy)?;
        if name(copy) == "tensor.extract" {
            let loaded = self.load(copy, values)?;
            values.insert(identity(value), loaded);
            return Ok(loaded);
        }
        Ok(copied)
    }

    /// An operation of the body on values of the kernel.
    fn close_operation(&self, op: Op<'c>, values: &inline::Values<'c>) -> PassResult<'c> {
        match name(op).as_str() {
            // What it would say of the program, the CPU target says.
            "cf.assert" => {
                walk::erase(op);
            }
            "tensor.extract" => {
                own_operands(op, values);
                self.load(op, values)?;
            }
            "tensor.dim" => {
                own_operands(op, values);
                let builder = Builder::before(op);
                let extent =
                    builder.value("memref.dim", &operands(op), builder.index_type(), &[])?;
                replace_all_uses(builder.result_of(op)?, extent);
                walk::erase(op);
            }
            _ => own_operands(op, values),
        }
        Ok(())
    }

    /// Puts a load in the place of a `tensor.extract`, with indices that are in their extents whatever they were.
    fn load(&self, op: Op<'c>, values: &inline::Values<'c>) -> PassResult<'c, Val<'c>> {
        let builder = Builder::before(op);
        let all = operands(op);
        let Some((&source, index)) = all.split_first() else {
            return Err(PassError::new(op.location(), "expected a tensor"));
        };
        let memref = values.get(&identity(source)).copied().unwrap_or(source);
        let shape = crate::ir::types::shape(memref.r#type()).unwrap_or_default();
        let mut operands = vec![memref];
        for (dim, (at, extent)) in index.iter().zip(&shape).enumerate() {
            operands.push(self.clamped(&builder, *at, (memref, dim, *extent))?);
        }
        let result = builder.result_of(op)?;
        let loaded = builder.value("memref.load", &operands, result.r#type(), &[])?;
        replace_all_uses(result, loaded);
        walk::erase(op);
        Ok(loaded)
    }

    fn clamped(
        &self,
        builder: &Builder<'c>,
        at: Val<'c>,
        (memref, dim, extent): (Val<'c>, usize, i64),
    ) -> PassResult<'c, Val<'c>> {
        if self.is_below(at, extent) {
            return Ok(at);
        }
        let index = builder.index_type();
        let extent = match extent {
            DYNAMIC => {
                let dim = builder.index(i64::try_from(dim).unwrap_or(0))?;
                builder.value("memref.dim", &[memref, dim], index, &[])?
            }
            extent => builder.index(extent)?,
        };
        let last = builder.value("arith.subi", &[extent, builder.index(1)?], index, &[])?;
        let at = builder.value("arith.minsi", &[at, last], index, &[])?;
        builder.value("arith.maxsi", &[at, builder.index(0)?], index, &[])
    }

    /// Whether an index is known to be in an extent.
    fn is_below(&self, at: Val<'c>, extent: i64) -> bool {
        let Some(op) = defining(at) else { return false };
        let number = |key| op.attribute(key).ok().and_then(attribute::integer);
        match name(op).as_str() {
            "linalg.index" => {
                let own = number("dim").and_then(|dim| usize::try_from(dim).ok());
                let own = own.and_then(|dim| self.extents.get(dim).copied());
                own.is_some_and(|own| own != DYNAMIC && own <= extent)
            }
            "arith.constant" => number("value").is_some_and(|at| (0..extent).contains(&at)),
            _ => false,
        }
    }
}

/// The loops that are no reductions: those of the first result in its order, then others.
#[must_use]
pub fn parallel(op: Op<'_>, reductions: &[bool]) -> Vec<usize> {
    let segments = op.attribute("operandSegmentSizes").ok();
    let segments = segments
        .and_then(|sizes| melior::ir::attribute::DenseI32ArrayAttribute::try_from(sizes).ok());
    let inputs = segments
        .and_then(|sizes| sizes.element(0).ok())
        .and_then(|size| usize::try_from(size).ok());
    let maps = maps(op).unwrap_or_default();
    let mut order = Vec::new();
    if let Some(map) = inputs.and_then(|inputs| maps.get(inputs)) {
        for at in 0..map.result_count() {
            if let Ok(index) = map.result(at)
                && index.is_dim()
                && !order.contains(&index.dim_position())
            {
                order.push(index.dim_position());
            }
        }
    }
    for at in 0..reductions.len() {
        if !order.contains(&at) {
            order.push(at);
        }
    }
    order.retain(|at| reductions.get(*at) == Some(&false));
    order
}

/// The indexing maps.
#[must_use]
pub fn maps<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    let maps = attribute::elements(op.attribute("indexing_maps").ok()?)?;
    let maps = maps
        .into_iter()
        .map(attribute::affine_map)
        .collect::<Option<Vec<_>>>()?;
    maps.iter()
        .all(|map| map.symbol_count() == 0)
        .then_some(maps)
}

/// For each loop, whether it is a reduction.
#[must_use]
pub fn reductions(op: Op<'_>) -> Vec<bool> {
    let kinds = op
        .attribute("iterator_types")
        .ok()
        .and_then(attribute::elements);
    let kinds = kinds.unwrap_or_default().into_iter();
    kinds
        .map(|kind| !kind.to_string().contains("parallel"))
        .collect()
}

/// The extent of a loop, static where an operand says so, and the operand and dimension to ask for it.
fn loop_extent<'c>(
    all: &[Val<'c>],
    maps: &[AffineMap<'c>],
    at: usize,
) -> Option<(i64, (Val<'c>, usize))> {
    let mut found = None;
    for (value, map) in all.iter().zip(maps).rev() {
        let Some(tensor) = crate::ir::types::shape(value.r#type()) else {
            continue;
        };
        for (dim, extent) in tensor.into_iter().enumerate() {
            let index = map.result(dim).ok()?;
            if index.is_dim() && index.dim_position() == at {
                if extent != DYNAMIC {
                    return Some((extent, (*value, dim)));
                }
                found = found.or(Some((extent, (*value, dim))));
            }
        }
    }
    found
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

/// Operations and those below them, in order.
fn nested<'c>(own: &[Op<'c>]) -> Vec<Op<'c>> {
    let all = own
        .iter()
        .flat_map(|op| std::iter::once(*op).chain(walk::nested(*op, &|_| true)));
    all.collect()
}

/// The values that are defined in an operation's regions.
fn inside(op: Op<'_>) -> Vec<usize> {
    walk::blocks(op).into_iter().flat_map(inside_of).collect()
}

fn inside_of(block: melior::ir::BlockRef<'_, '_>) -> Vec<usize> {
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

/// Puts values of the kernel in the place of an operation's own operands.
fn own_operands<'c>(op: Op<'c>, values: &HashMap<usize, Val<'c>>) {
    for (at, value) in operands(op).into_iter().enumerate() {
        if let Some(new) = values.get(&identity(value)) {
            // SAFETY: the operation is live, and no other reference to it is used while this one is.
            unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_operand(at, *new);
        }
    }
}
