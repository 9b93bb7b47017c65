//! `axe.launch`: loops over the grid that call the kernel's function, once a block.

use super::Lowering;
use super::ops::{dynamic_sizes, extents, extract, nest};
use super::scalar::poison;
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::{defined_by, parts, replace_all_uses};
use crate::ir::{Builder, Op, TensorType, Val};
use axe_dialect::element_type;
use axe_dialect::ops::LaunchOp;
use melior::ir::attribute::FlatSymbolRefAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

impl<'c> Lowering<'c> {
    /// Builds the calls of a launch and puts what they wrote in the place of its results.
    ///
    /// # Errors
    /// When the kernel is not one of this module, or an operand is not its argument on the host.
    pub(super) fn launch(&self, op: Op<'c>) -> PassResult<'c> {
        let builder = Builder::before(op);
        let launch: LaunchOp = parts(op)?;
        let target = FlatSymbolRefAttribute::try_from(launch.kernel).ok();
        let found = target.and_then(|symbol| self.kernels.get_key_value(symbol.value()));
        let Some((symbol, kernel)) = found else {
            return Err(PassError::new(
                op.location(),
                "the CPU target launches kernels of axe.kernel in the same module",
            )
            .note("a kernel that axe-lower-schedules has lowered for a GPU no longer runs on the host"));
        };
        let mut passed = Vec::new();
        for (value, wanted) in launch.inputs.iter().zip(&kernel.arguments) {
            passed.push(input(&builder, *value, *wanted)?);
        }
        let mut written = Vec::new();
        let rest = kernel.arguments.iter().skip(launch.inputs.len());
        for (value, wanted) in launch.outputs.iter().zip(rest) {
            let tensor = TensorType::of_value(*value).is_some();
            let buffer = if tensor {
                output(&builder, *value, *wanted)?
            } else {
                input(&builder, *value, *wanted)?
            };
            passed.push(buffer);
            written.extend(tensor.then_some((buffer, value.r#type())));
        }
        let grid = [launch.grid_x, launch.grid_y, launch.grid_z];
        call(&builder, symbol, &passed, grid)?;
        for ((buffer, r#type), result) in written.into_iter().zip(launch.results) {
            let unit = builder.unit();
            let attributes = [("restrict", unit), ("writable", unit)];
            let value = builder.value("bufferization.to_tensor", &[buffer], r#type, &attributes)?;
            replace_all_uses(result, value);
        }
        Ok(())
    }
}

/// What a kernel reads: a scalar, a memref of its type, or the memory of a tensor.
fn input<'c>(builder: &Builder<'c>, value: Val<'c>, wanted: Type<'c>) -> PassResult<'c, Val<'c>> {
    if value.r#type() == wanted {
        return Ok(value);
    }
    if TensorType::of_value(value).is_some() {
        let attributes = [("read_only", builder.unit())];
        return builder.value("bufferization.to_buffer", &[value], wanted, &attributes);
    }
    Err(PassError::new(
        builder.location,
        format!(
            "the CPU target passes tensors, scalars and dense memrefs: expected {wanted} or its tensor, got {}",
            value.r#type()
        ),
    ))
}

/// Memory of its own for what a kernel writes, with the value that it had before; a pattern where it had none.
fn output<'c>(builder: &Builder<'c>, value: Val<'c>, wanted: Type<'c>) -> PassResult<'c, Val<'c>> {
    let extents = extents(builder, value)?;
    let sizes = dynamic_sizes(builder, wanted, &extents)?;
    let count = i32::try_from(sizes.len()).unwrap_or(i32::MAX);
    let buffer = builder.value(
        "memref.alloc",
        &sizes,
        wanted,
        &[builder.segments(&[count, 0])],
    )?;
    let pattern = match defined_by(value, "tensor.empty") {
        Some(_) => Some(poison(builder, element_type(wanted))?),
        None => None,
    };
    nest(builder, &extents, &mut |inner, at| {
        let before = match pattern {
            Some(pattern) => pattern,
            None => extract(inner, value, at)?,
        };
        let mut operands = vec![before, buffer];
        for index in at {
            operands.push(inner.ints().value(*index)?);
        }
        inner
            .operation("memref.store", &operands, &[], &[], Vec::new())
            .map(drop)
    })?;
    Ok(buffer)
}

/// One call a block, z outermost.
fn call<'c>(
    builder: &Builder<'c>,
    symbol: &str,
    passed: &[Val<'c>],
    [x, y, z]: [Val<'c>; 3],
) -> PassResult<'c> {
    let callee = builder.attribute(|context| FlatSymbolRefAttribute::new(context, symbol).into());
    nest(
        builder,
        &[Int::of(z), Int::of(y), Int::of(x)],
        &mut |inner, at| {
            let mut operands = passed.to_vec();
            for index in at.iter().rev() {
                operands.push(inner.ints().value(*index)?);
            }
            operands.extend([x, y, z]);
            inner
                .operation(
                    "func.call",
                    &operands,
                    &[],
                    &[("callee", callee)],
                    Vec::new(),
                )
                .map(drop)
        },
    )
}
