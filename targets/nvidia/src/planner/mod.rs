//! Kernels from logical operators: `--axe-plan-kernels`.
//!
//! What enters: functions of logical axe operators on tensors. What remains: the same functions with one
//! `axe.launch` a group of operators, reshapes of its operands and results, and one `axe.kernel` a group.
//!
//! * [`space`]: how tensors lie in the matrix that a group works on;
//! * [`group`]: which operators share a kernel;
//! * [`layouts`] and [`cost`]: register tensors, shared memory, tiles, without any IR;
//! * [`evaluate`]: the operators of a group on one tile;
//! * [`budgets`]: the registers of roles;
//! * [`gemm`], [`specialised`], [`pieces`], [`scaled`], [`plain`], [`tiles`], [`single`]: the kernels;
//! * [`padded`], [`parts`], [`tail`]: kernels before a product's own, and after it;
//! * [`entries`], [`choice`], [`tuned`], [`offered`], [`search`], [`variant`]: where the plan of a product comes from, and
//!   what a tuner tries;
//! * [`widen`]: products of 8-bit floats where no instruction takes them;
//! * [`frame`]: the function around them.

mod budgets;
mod choice;
pub mod cost;
mod entries;
mod evaluate;
mod factors;
mod frame;
mod gemm;
mod group;
pub mod layouts;
mod offered;
mod padded;
mod panels;
mod parts;
mod pieces;
mod pipeline;
mod plain;
mod product;
mod scaled;
pub mod search;
mod single;
mod space;
mod specialised;
mod split;
mod tail;
pub mod tiles;
mod time;
mod tuned;
pub mod variant;
pub mod wide;
mod widen;

pub use scaled::Blocks;
pub use tuned::products;

use crate::facts::chip::Chip;
use axe_passes::ir::value::{identity, name, operands, replace_all_uses, results};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val, walk};
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult};
use frame::Frame;
use group::{Group, Groups, Root};
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;
use std::sync::Arc;

/// Plans the kernels of a module.
///
/// # Errors
/// At the operator that cannot be planned.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let Some(body) = walk::blocks(module).first().copied() else {
        return Ok(());
    };
    let plans = tuned::plans(module, pass.option("tuned"))?;
    let explain = pass.flag("explain");
    for func in walk::operations(body) {
        if name(func) == "func.func" {
            let plans = Arc::clone(&plans);
            let frame = Frame {
                module: body,
                chip,
                plans,
                explain,
                prefix: prefix(func),
                kernels: 0,
                stored: HashMap::new(),
            };
            let kernels = plan_function(func, frame)?;
            pass.count("num-kernels", kernels);
        }
    }
    Ok(())
}

/// Whether this is an operator that becomes part of a kernel.
fn is_operator(op: Op<'_>) -> bool {
    const NAMES: [&str; 8] = [
        "axe.map",
        "axe.cast",
        "axe.reduce",
        "axe.broadcast",
        "axe.fill",
        "axe.transpose",
        "axe.gemm",
        "axe.scaled_gemm",
    ];
    NAMES.contains(&name(op).as_str())
}

/// The start of the names of a function's kernels.
fn prefix(func: Op<'_>) -> String {
    func.attribute("sym_name")
        .ok()
        .and_then(|name| StringAttribute::try_from(name).ok())
        .map_or_else(|| "kernel".to_owned(), |name| name.value().to_owned())
}

fn plan_function<'c>(func: Op<'c>, mut frame: Frame<'c>) -> PassResult<'c, usize> {
    let blocks = walk::blocks(func);
    let Some(block) = blocks.first() else {
        return Ok(0);
    };
    let ops = walk::operations(*block);
    check(func, &ops)?;
    if !ops.iter().any(|op| is_operator(*op)) {
        return Ok(0);
    }
    single::split_reductions(&ops)?;
    widen::widen(&ops, frame.chip)?;
    let ops = walk::operations(*block);
    extents(&ops)?;
    let mut launches = Groups::of(&ops).launches().into_iter().peekable();
    for (number, &op) in ops.iter().enumerate() {
        while let Some((group, outputs)) = launches.next_if(|(group, _)| group.position.0 <= number)
        {
            plan_group(&mut frame, op, &group, &outputs)?;
        }
        if !is_operator(op) && !group::is_reshape(op) {
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
            frame::check_tensors(op)?;
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
        let made = axe_passes::ir::value::defining(tensor)
            .is_some_and(|op| is_operator(op) || group::is_reshape(op));
        let zero = axe_passes::ir::value::defined_by(dim, "arith.constant")
            .and_then(|op| op.attribute("value").ok())
            .and_then(axe_passes::ir::attribute::integer)
            == Some(0);
        if dynamic && made && zero {
            replace_all_uses(result, frame::leading(&Builder::before(op), tensor)?);
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

/// Plans the kernel of a group and launches it in front of `before`.
fn plan_group<'c>(
    frame: &mut Frame<'c>,
    before: Op<'c>,
    group: &Group<'c>,
    outputs: &[Val<'c>],
) -> PassResult<'c> {
    let mut builder = Builder::before(before);
    let Some(first) = group.owned.first() else {
        return Ok(());
    };
    builder.location = first.location();
    match group.root {
        Root::Gemm(op) => gemm::plan(frame, &builder, op, group, outputs),
        Root::Tiles => tiles::plan(frame, &builder, *first, group, outputs),
        Root::Single(op) => single::plan(frame, &builder, op),
    }
}
