//! The body of loops in a kernel: closed, so that it reads nothing but the kernel's arguments.

use super::{INITIAL, Nest, Start, inside_of, is_computed_again, ranges};
use crate::build::Kernel;
use crate::ir::value::{defining, identity, name, operands, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Int, Op, Predicate, TensorType, Val, attribute, inline, walk};
use crate::{PassError, PassResult};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Attribute, BlockLike, BlockRef, Region, RegionLike, ValueLike};
use mlir_sys as sys;

impl<'c> Nest<'c> {
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
        let (region, block) = self.copied(builder)?;
        let (ins, kept) = self.close(block, &mut values)?;
        let operands: Vec<_> = ins.iter().chain(outs).copied().collect();
        let sizes = [
            i32::try_from(ins.len()).unwrap_or(0),
            i32::try_from(outs.len()).unwrap_or(0),
        ];
        let attributes = [
            (
                "indexing_maps",
                self.kept(builder, "indexing_maps", |at| kept.contains(&at))?,
            ),
            (
                "iterator_types",
                self.kept(builder, "iterator_types", |_| true)?,
            ),
            builder.segments(&sizes),
            (
                INITIAL,
                builder.parsed(&format!("[{}]", self.initial().join(", ")))?,
            ),
        ];
        builder.operation("linalg.generic", &operands, &[], &attributes, vec![region])
    }

    /// A copy of the body.
    fn copied(&self, builder: &Builder<'c>) -> PassResult<'c, (Region<'c>, BlockRef<'c, 'c>)> {
        let copy = builder.clone_of(self.op);
        let region = Region::new();
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
            .map(|block| unsafe { BlockRef::from_raw(block.to_raw()) });
        let block = block.ok_or_else(|| PassError::new(builder.location, "expected a body"))?;
        Ok((region, block))
    }

    /// The elements of an array attribute at the positions that are wanted.
    fn kept(
        &self,
        builder: &Builder<'c>,
        key: &str,
        wanted: impl Fn(usize) -> bool,
    ) -> PassResult<'c, Attribute<'c>> {
        let all = self.op.attribute(key).ok().and_then(attribute::elements);
        let all = all.unwrap_or_default().into_iter().enumerate();
        let texts = all
            .filter(|(at, _)| wanted(*at))
            .map(|(_, one)| one.to_string());
        builder.parsed(&format!("[{}]", texts.collect::<Vec<_>>().join(", ")))
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
        block: BlockRef<'c, 'c>,
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
            unsafe { sys::mlirBlockEraseArgument(block.to_raw(), u32::try_from(at).unwrap_or(0)) };
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

    /// Puts a load in the place of a `tensor.extract`, with indices that are in their extents whatever they were. A tensor that
    /// turns out to have no elements has a zero wherever it is read.
    fn load(&self, op: Op<'c>, values: &inline::Values<'c>) -> PassResult<'c, Val<'c>> {
        let builder = Builder::before(op);
        let all = operands(op);
        let Some((&source, index)) = all.split_first() else {
            return Err(PassError::new(op.location(), "expected a tensor"));
        };
        let memref = values.get(&identity(source)).copied().unwrap_or(source);
        let shape = crate::ir::types::shape(memref.r#type()).unwrap_or_default();
        let mut operands = vec![memref];
        let mut empty = Vec::new();
        for (dim, (at, extent)) in index.iter().zip(&shape).enumerate() {
            let inside = ranges::is_below(&self.extents, *at, op, *extent);
            operands.push(match inside {
                true => *at,
                false => clamped(&builder, *at, (memref, dim, *extent))?,
            });
            if [0, DYNAMIC].contains(extent) && !inside {
                let ints = builder.ints();
                let extent = Int::of(extent_of(&builder, (memref, dim, *extent))?);
                empty.push(ints.compare(Predicate::Equal, extent, Int::ZERO)?);
            }
        }
        let result = builder.result_of(op)?;
        let element = result.r#type();
        let load = |builder: &Builder<'c>| builder.value("memref.load", &operands, element, &[]);
        let either = |a: PassResult<'c, Val<'c>>, b: PassResult<'c, Val<'c>>| {
            let (a, b) = (a?, b?);
            builder.value("arith.ori", &[a, b], a.r#type(), &[])
        };
        let none = empty.into_iter().map(Ok).reduce(either);
        let loaded = match none {
            Some(none) => builder.choose(none?, |builder| builder.zero(element), load)?,
            None => load(&builder)?,
        };
        replace_all_uses(result, loaded);
        walk::erase(op);
        Ok(loaded)
    }
}

/// An index brought into its extent.
fn clamped<'c>(
    builder: &Builder<'c>,
    at: Val<'c>,
    (memref, dim, extent): (Val<'c>, usize, i64),
) -> PassResult<'c, Val<'c>> {
    let index = builder.index_type();
    let extent = extent_of(builder, (memref, dim, extent))?;
    let last = builder.value("arith.subi", &[extent, builder.index(1)?], index, &[])?;
    let at = builder.value("arith.minsi", &[at, last], index, &[])?;
    builder.value("arith.maxsi", &[at, builder.index(0)?], index, &[])
}

/// The extent of a dimension of a memref.
fn extent_of<'c>(
    builder: &Builder<'c>,
    (memref, dim, extent): (Val<'c>, usize, i64),
) -> PassResult<'c, Val<'c>> {
    if extent != DYNAMIC {
        return builder.index(extent);
    }
    let dim = builder.index(i64::try_from(dim).unwrap_or(0))?;
    builder.value("memref.dim", &[memref, dim], builder.index_type(), &[])
}

/// Operations and those below them, in order.
fn nested<'c>(own: &[Op<'c>]) -> Vec<Op<'c>> {
    let all = own
        .iter()
        .flat_map(|op| std::iter::once(*op).chain(walk::nested(*op, &|_| true)));
    all.collect()
}

/// Puts values of the kernel in the place of an operation's own operands.
fn own_operands<'c>(op: Op<'c>, values: &inline::Values<'c>) {
    for (at, value) in operands(op).into_iter().enumerate() {
        if let Some(new) = values.get(&identity(value)) {
            // SAFETY: the operation is live, and no other reference to it is used while this one is.
            unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_operand(at, *new);
        }
    }
}
