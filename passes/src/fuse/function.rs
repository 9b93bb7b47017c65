//! A function whose operators become kernels.

use super::frame::Frame;
use super::group::Group;
use super::groups::Groups;
use super::operators::{is_operator, is_reshape};
use super::reshape::{check_tensors, leading};
use crate::ir::value::{defined_by, defining, identity, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use crate::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef};
use mlir_sys as sys;
use std::collections::HashMap;

/// What a target does with a function's operators.
pub trait Kernels<'c> {
    /// Rewrites operators before they are grouped.
    ///
    /// # Errors
    /// At an operator that is not supported.
    fn prepare(&self, ops: &[Op<'c>]) -> PassResult<'c>;

    /// Adds the kernels of a group, and launches them at the builder's place.
    ///
    /// # Errors
    /// At an operator that cannot be planned.
    fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c>;
}

/// Plans the kernels of a module's functions; how many there are.
///
/// # Errors
/// At the operator that cannot be planned.
pub fn plan<'c>(module: OperationRef<'c, 'c>, kernels: &impl Kernels<'c>) -> PassResult<'c, usize> {
    let Some(body) = walk::blocks(module).first().copied() else {
        return Ok(0);
    };
    let mut count = 0;
    for func in walk::operations(body) {
        if name(func) == "func.func" {
            count += plan_function(body, func, kernels)?;
        }
    }
    Ok(count)
}

/// The start of the names of a function's kernels.
fn prefix(func: Op<'_>) -> String {
    func.attribute("sym_name")
        .ok()
        .and_then(|name| StringAttribute::try_from(name).ok())
        .map_or_else(|| "kernel".to_owned(), |name| name.value().to_owned())
}

fn plan_function<'c>(
    module: BlockRef<'c, 'c>,
    func: Op<'c>,
    kernels: &impl Kernels<'c>,
) -> PassResult<'c, usize> {
    let mut frame = Frame {
        module,
        prefix: prefix(func),
        kernels: 0,
        stored: HashMap::new(),
    };
    let blocks = walk::blocks(func);
    let Some(block) = blocks.first() else {
        return Ok(0);
    };
    let ops = walk::operations(*block);
    check(func, &ops)?;
    if !ops.iter().any(|op| is_operator(*op)) {
        return Ok(0);
    }
    kernels.prepare(&ops)?;
    let ops = walk::operations(*block);
    extents(&ops)?;
    let mut launches = Groups::of(&ops).launches().into_iter().peekable();
    for (number, &op) in ops.iter().enumerate() {
        while let Some((group, outputs)) = launches.next_if(|(group, _)| group.position.0 <= number)
        {
            let mut builder = Builder::before(op);
            let Some(first) = group.owned.first() else {
                continue;
            };
            builder.location = first.location();
            kernels.plan(&mut frame, &builder, &group, &outputs)?;
        }
        if !is_operator(op) && !is_reshape(op) {
            read_stored(&mut frame, op)?;
        }
    }
    walk::erase_dead(func, &|_| false, &|op| {
        is_operator(op) || name(op).starts_with("tensor.") || name(op) == "arith.constant"
    });
    Ok(frame.kernels)
}

/// Checks that every operator is in the function's only block and has tensors that a kernel can take.
fn check<'c>(func: Op<'c>, ops: &[Op<'c>]) -> PassResult<'c> {
    for op in walk::nested(func, &|op| !name(op).starts_with("axe.")) {
        if is_operator(op) && !ops.contains(&op) {
            return Err(PassError::new(
                op.location(),
                "expected operators in the function's first block, and not in regions of it",
            ));
        }
        if is_operator(op) {
            check_tensors(op)?;
        }
    }
    Ok(())
}

/// Gives every `tensor.dim` the extent that its tensor's producers have, so that extents do not wait for
/// kernels.
fn extents<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for &op in ops.iter().filter(|op| name(**op) == "tensor.dim") {
        let (&[tensor, dim], &[result]) = (&operands(op)[..], &results(op)[..]) else {
            continue;
        };
        let dynamic = TensorType::of_value(tensor)
            .is_some_and(|tensor| tensor.shape.first() == Some(&DYNAMIC));
        let made = defining(tensor).is_some_and(|op| is_operator(op) || is_reshape(op));
        let zero = defined_by(dim, "arith.constant")
            .and_then(|op| op.attribute("value").ok())
            .and_then(attribute::integer)
            == Some(0);
        if dynamic && made && zero {
            replace_all_uses(result, leading(&Builder::before(op), tensor)?);
        }
    }
    Ok(())
}

/// Gives an operation outside the kernels what launches stored.
fn read_stored<'c>(frame: &mut Frame<'c>, op: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    for (at, value) in (0..).zip(operands(op)) {
        let stored = frame.resolve(&builder, value)?;
        if identity(stored) != identity(value) {
            // SAFETY: the position is that of an operand, and the types agree.
            unsafe { sys::mlirOperationSetOperand(op.to_raw(), at, stored.to_raw()) };
        }
    }
    Ok(())
}
