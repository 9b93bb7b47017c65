//! Parts of a function's results, computed without the rest.
//!
//! Each result becomes a slice of itself, and slices move up through what computes them: a block of a matrix product
//! takes the rows and columns that meet in it. What slices cannot move through is computed whole.

use crate::compile::{PIPELINE, assert_dimensions, find};
use crate::error::CpuError;
use crate::program::Program;
use axe_context::{ModuleError, Source, context, parse};
use axe_package::Tensor;
use axe_passes::ir::value::{name, operands};
use axe_passes::ir::{Builder, Op, TensorType, Val, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::TypeAttribute;
use melior::ir::operation::{OperationLike, OperationMutLike};
use melior::ir::{Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// A box of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Its first element.
    pub origin: Vec<u64>,
    /// Its extents.
    pub shape: Vec<u64>,
}

unsafe extern "C" {
    fn axeBubbleUpSlices(operation: sys::MlirOperation) -> bool;
}

/// Runs a function for parts of its results, one entry a result; none for one that is not wanted.
///
/// # Errors
/// As for [`Program::compile`] and [`Program::run`], and parts that do not fit the results.
pub fn run_parts<'s>(
    source: impl Into<Source<'s>>,
    function: &str,
    inputs: &[Tensor],
    parts: &[Option<Part>],
) -> Result<Vec<Option<Tensor>>, CpuError> {
    let context = context();
    let module = parse(&context, source)?;
    assert_dimensions(&module)?;
    let op = find(&module, "func.func", "function", function)?;
    narrow(op, parts).map_err(ModuleError::from)?;
    // SAFETY: the operation is live, and nothing holds on to what is below it.
    if !unsafe { axeBubbleUpSlices(op.to_raw()) } {
        let message = format!("the slices of '{function}' move without an end");
        return Err(ModuleError::Passes(message.into()).into());
    }
    let program = Program::lowered(&context, module, function, PIPELINE)?;
    let mut results = program.run(inputs)?.into_iter();
    let wanted = parts
        .iter()
        .map(|part| part.as_ref().and_then(|_| results.next()));
    Ok(wanted.collect())
}

/// Makes a function return parts of what it returned.
fn narrow<'c>(function: Op<'c>, parts: &[Option<Part>]) -> PassResult<'c> {
    let wrong = |message: String| PassError::new(function.location(), message);
    let all = walk::blocks(function);
    let [body] = all.as_slice() else {
        return Err(wrong("expected a function of one block".into()));
    };
    let end = walk::operations(*body).pop();
    let Some(end) = end.filter(|op| name(*op) == "func.return") else {
        return Err(wrong("expected a function that returns".into()));
    };
    let values = operands(end);
    if values.len() != parts.len() {
        let (parts, values) = (parts.len(), values.len());
        return Err(wrong(format!("{parts} parts of {values} results")));
    }
    let builder = Builder::before(end);
    let mut slices = Vec::new();
    for (value, part) in values.into_iter().zip(parts) {
        if let Some(part) = part {
            slices
                .push(slice(&builder, value, part).ok_or_else(|| {
                    wrong(format!("{part:?} is no part of {}", value.r#type()))
                })??);
        }
    }
    let results: Vec<_> = slices.iter().map(ValueLike::r#type).collect();
    builder.operation("func.return", &slices, &[], &[], Vec::new())?;
    walk::erase(end);
    let r#type = builder.function_type(&argument_types(function), &results);
    // SAFETY: the operation is live, and no other reference to it is used while this one is.
    let mut changed =
        unsafe { melior::ir::operation::OperationRefMut::from_raw(function.to_raw()) };
    changed.set_attribute("function_type", TypeAttribute::new(r#type).into());
    Ok(())
}

/// A part of a tensor; none where it is not one.
fn slice<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    part: &Part,
) -> Option<PassResult<'c, Val<'c>>> {
    let signed = |numbers: &[u64]| {
        let all = numbers.iter().map(|number| i64::try_from(*number).ok());
        all.collect::<Option<Vec<_>>>()
    };
    let whole = TensorType::of_value(value)?;
    let (origin, shape) = (signed(&part.origin)?, signed(&part.shape)?);
    if whole.shape.len() != shape.len() || origin.len() != shape.len() {
        return None;
    }
    let made = builder.tensor(&shape, whole.element);
    let ones = vec![1; shape.len()];
    let attributes = [
        ("static_offsets", builder.i64s(&origin)),
        ("static_sizes", builder.i64s(&shape)),
        ("static_strides", builder.i64s(&ones)),
        builder.segments(&[1, 0, 0, 0]),
    ];
    Some(made.and_then(|made| builder.value("tensor.extract_slice", &[value], made, &attributes)))
}

/// The types of a function's arguments.
fn argument_types<'c>(function: Op<'c>) -> Vec<Type<'c>> {
    let found = function.attribute("function_type").ok();
    let found = found.and_then(|attribute| TypeAttribute::try_from(attribute).ok());
    let Some(found) = found.map(|attribute| attribute.value().to_raw()) else {
        return Vec::new();
    };
    // SAFETY: a function's type is one of functions, and positions are below the count.
    unsafe {
        let count = sys::mlirFunctionTypeGetNumInputs(found);
        (0..count)
            .map(|at| Type::from_raw(sys::mlirFunctionTypeGetInput(found, at)))
            .collect()
    }
}
