//! One kernel on a grid, without a function that launches it.

use crate::compile::find;
use crate::error::CpuError;
use crate::program::Program;
use axe_context::{ModuleError, context, parse};
use axe_dialect::ops::{self, LaunchOp};
use axe_package::Tensor;
use axe_passes::PassResult;
use axe_passes::ir::value::results;
use axe_passes::ir::{Builder, Op, types, walk};
use melior::ir::attribute::{FlatSymbolRefAttribute, StringAttribute, TypeAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Module, Type, TypeLike};
use mlir_sys as sys;

/// Runs the `axe.kernel` named `kernel` on a grid of `x * y * z` blocks, and gives what its memory holds afterwards:
/// one tensor for each argument that is a memref, in order. Scalars are passed as tensors of rank 0.
///
/// # Errors
/// When the text is no module, the kernel is not in it, an argument does not fit, or a pass fails.
pub fn launch(
    text: &str,
    kernel: &str,
    grid: [u64; 3],
    arguments: &[Tensor],
) -> Result<Vec<Tensor>, CpuError> {
    let blocks = grid.map(|extent| i64::from(i32::try_from(extent).unwrap_or(0)));
    if blocks.contains(&0) {
        return Err(CpuError::Grid(grid));
    }
    let context = context();
    let module = parse(&context, text)?;
    let op = find(&module, ops::KERNEL, ops::KERNEL, kernel)?;
    let function = format!("axe_cpu_launch_{kernel}");
    launcher(&module, op, kernel, &function, blocks).map_err(ModuleError::from)?;
    Program::of(&context, module, &function)?.run(arguments)
}

/// The types of a kernel's arguments, a tensor for each memref.
fn passed<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c, Vec<Type<'c>>> {
    let r#type = op
        .attribute("function_type")
        .ok()
        .and_then(|attribute| TypeAttribute::try_from(attribute).ok())
        .map(|attribute| attribute.value())
        // SAFETY: the type is valid.
        .filter(|found| unsafe { sys::mlirTypeIsAFunction(found.to_raw()) });
    let Some(r#type) = r#type else {
        return Ok(Vec::new());
    };
    // SAFETY: the type is a function's, and positions are below the count.
    let all = unsafe {
        let inputs = 0..sys::mlirFunctionTypeGetNumInputs(r#type.to_raw());
        inputs.map(|at| Type::from_raw(sys::mlirFunctionTypeGetInput(r#type.to_raw(), at)))
    };
    all.map(|found: Type<'c>| match types::shape(found) {
        Some(shape) => builder.tensor(&shape, axe_dialect::element_type(found)),
        None => Ok(found),
    })
    .collect()
}

/// Adds a function that launches a kernel and returns all that it may write.
fn launcher<'c>(
    module: &Module<'c>,
    op: Op<'c>,
    kernel: &str,
    function: &str,
    grid: [i64; 3],
) -> PassResult<'c> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let root = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    let Some(block) = walk::blocks(root).first().copied() else {
        return Ok(());
    };
    let builder = Builder::at_end(block, op.location());
    let inputs = passed(&builder, op)?;
    let tensors: Vec<_> = inputs
        .iter()
        .copied()
        .filter(|found| types::shape(*found).is_some())
        .collect();
    let (region, arguments, inner) = builder.region(&inputs);
    let [x, y, z] = grid.map(|extent| inner.index(extent));
    let operands = LaunchOp::operands(x?, y?, z?, &[], &arguments);
    let target = inner.attribute(|context| FlatSymbolRefAttribute::new(context, kernel).into());
    let launch = inner.operator(&operands, &tensors, &[("kernel", target)])?;
    inner.operation("func.return", &results(launch), &[], &[], Vec::new())?;
    let text =
        |value: &str| builder.attribute(|context| StringAttribute::new(context, value).into());
    let r#type = builder.function_type(&inputs, &tensors);
    let attributes = [
        ("sym_name", text(function)),
        ("function_type", TypeAttribute::new(r#type).into()),
    ];
    builder.operation("func.func", &[], &[], &attributes, vec![region])?;
    Ok(())
}
