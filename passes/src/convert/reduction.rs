//! Reductions: `axe.reduce` of what the body combines, and of the initial value when it matters.

use super::elementwise::loops_of;
use super::operands::{Operand, Space, align, fill, spread, uniform};
use super::scalar::{arguments, evaluate, unexpected};
use super::simple::restore_units;
use super::structured::Structured;
use super::{Counts, Replacements, unsupported};
use crate::error::PassResult;
use crate::ir::value::{defined_by, name, operands};
use crate::ir::{Builder, Op, Val, attribute, combiner, types};
use axe_dialect::Combiner;
use axe_dialect::ops::{self, CastOp, ReduceOp};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// Converts each used result on its own: the index of an argmax that nobody reads costs nothing.
///
/// # Errors
/// When a body is not one combining operation on its running value.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Replacements<'c>> {
    op.convert_used(|number| result(builder, op, number, counts))
}

/// Whether a scalar is the value that a combiner leaves every other unchanged with.
pub(super) fn is_neutral(combiner: Combiner, value: Val<'_>) -> bool {
    let Some(constant) =
        defined_by(value, "arith.constant").and_then(|op| op.attribute("value").ok())
    else {
        return false;
    };
    if let Some(float) = attribute::float(constant) {
        return match combiner {
            Combiner::Add => float == 0.0,
            Combiner::Mul => float == 1.0,
            Combiner::Max => float == f64::NEG_INFINITY,
            Combiner::Min => float == f64::INFINITY,
            _ => false,
        };
    }
    let (Some(integer), Some(bits)) = (attribute::integer(constant), types::bits(value.r#type()))
    else {
        return false;
    };
    let least = 1i64
        .checked_shl(bits.saturating_sub(1))
        .map(i64::wrapping_neg);
    match combiner {
        Combiner::Add | Combiner::Or | Combiner::Xor | Combiner::MaxUI => integer == 0,
        Combiner::Mul => integer == 1,
        // An i1 of all ones reads as 1 or as -1.
        Combiner::And | Combiner::MinUI => integer == -1 || (bits == 1 && integer == 1),
        Combiner::Max => bits > 1 && Some(integer) == least,
        Combiner::Min => bits > 1 && least.is_some_and(|least| integer == !least),
    }
}

/// The combiner of an operation. What prefers numbers to NaN combines numbers alone ([`numbers`]).
fn combiner_of(name: &str) -> Option<Combiner> {
    match name {
        "arith.maxnumf" => Some(Combiner::Max),
        "arith.minnumf" => Some(Combiner::Min),
        _ => combiner::of_operation(name),
    }
}

/// What is combined with an infinity, which changes nothing, in the place of each NaN: for `arith.maxnumf` and `minnumf`.
fn numbers<'c>(
    builder: &Builder<'c>,
    source: Val<'c>,
    combiner: Combiner,
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let tensor = builder.tensor_of(source)?;
    let (region, arguments, body) = builder.region(&[tensor.element]);
    let infinity = match combiner {
        Combiner::Max => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    };
    let infinity = body.constant(body.float(tensor.element, infinity))?;
    let value = arguments.first().copied().unwrap_or(infinity);
    let integer = |bits| builder.r#type(|context| IntegerType::new(context, bits).into());
    // `arith.cmpf uno`.
    let predicate = IntegerAttribute::new(integer(64), 14).into();
    let is_nan = body.value(
        "arith.cmpf",
        &[value, value],
        integer(1),
        &[("predicate", predicate)],
    )?;
    let number = body.value(
        "arith.select",
        &[is_nan, infinity, value],
        tensor.element,
        &[],
    )?;
    body.operation(ops::YIELD, &[number], &[], &[], Vec::new())?;
    counts.maps += 1;
    let result = builder.tensor(&tensor.shape, tensor.element)?;
    let map = builder.operation(ops::MAP, &[source], &[result], &[], vec![region])?;
    builder.result_of(map)
}

/// The combining operation of a result: itself, what it is, and what it combines the running value with.
fn combining<'c>(
    op: &Structured<'c>,
    number: usize,
) -> PassResult<'c, (Op<'c>, Combiner, Val<'c>)> {
    let root = op.yielded(number);
    let known = root
        .and_then(|root| op.inner(root))
        .and_then(|inner| Some((inner, combiner_of(&name(inner))?)));
    let expected =
        "a body that yields a sum, product, maximum, minimum, and, or or xor of its running value";
    let Some((inner, combiner)) = known else {
        return Err(unexpected(op, expected, root));
    };
    let combined = match operands(inner).as_slice() {
        &[value, running] | &[running, value]
            if op.is_running(running, number) && !op.is_running(value, number) =>
        {
            value
        }
        _ => return Err(unexpected(op, expected, root)),
    };
    Ok((inner, combiner, combined))
}

fn result<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    number: usize,
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let (inner, combiner, combined) = combining(op, number)?;
    let kept = loops_of(op.result_map(number));
    let space = Space::new(op, order(op, &kept))?;
    let source = combined_values(builder, op, &space, combined, counts)?;
    let source = match name(inner).ends_with("numf") {
        true => numbers(builder, source, combiner, counts)?,
        false => source,
    };
    let dims: Vec<usize> = (0..space.order.len())
        .filter(|at| {
            space
                .order
                .get(*at)
                .is_some_and(|loop_| !kept.contains(loop_))
        })
        .collect();
    let element = builder.tensor_of(source)?.element;
    let wide = widened(builder, combiner, element);
    let reduced = reduce(builder, combiner, cast(builder, source, wide)?, &dims, wide)?;
    let reduced = cast(builder, reduced, element)?;
    counts.reductions += 1;
    let rest = Space::new(op, kept)?;
    let value = with_initial(
        builder,
        op,
        number,
        &rest,
        (inner, combiner),
        reduced,
        counts,
    )?;
    restore_units(builder, op, number, &rest, value)
}

/// The loops in an order in which those of the result are as the result has them.
fn order(op: &Structured<'_>, kept: &[usize]) -> Vec<usize> {
    let all = 0..op.reductions.len();
    match kept.is_sorted() {
        true => all.collect(),
        false => kept
            .iter()
            .copied()
            .chain(all.filter(|at| !kept.contains(at)))
            .collect(),
    }
}

/// The tensor of the values that are combined, of the space's shape.
fn combined_values<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    space: &Space<'c>,
    combined: Val<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let slice = op.slice(combined)?;
    let (mut of, mut whole) = (Vec::new(), false);
    for (argument, value) in arguments(op, &slice, combined) {
        if argument >= op.inputs.len() {
            return Err(unsupported(
                op.op,
                "its body reads the running value more than once",
            ));
        }
        if let Some(operand) = op.operand(argument) {
            whole |= loops_of(operand.1).len() == space.order.len();
            of.push((value, align(builder, space, operand)?));
        }
    }
    if !whole
        && of
            .iter()
            .any(|(_, operand)| matches!(operand, Operand::Tensor(_)))
    {
        return Err(unsupported(
            op.op,
            &too_many_loops(op, space, &of, combined),
        ));
    }
    evaluate(builder, op, space, combined, &of, counts)
}

/// Why a body is not evaluated at each point: which operands it combines there, and with what.
fn too_many_loops<'c>(
    op: &Structured<'c>,
    space: &Space<'c>,
    of: &[(Val<'c>, Operand<'c>)],
    combined: Val<'c>,
) -> String {
    let tensors = of
        .iter()
        .filter(|(_, operand)| matches!(operand, Operand::Tensor(_)));
    let what = match op.inner(combined) {
        Some(inner) => format!("'{}'", name(inner)),
        None => "an operand".to_owned(),
    };
    format!(
        "it combines over {} loops, and none of the {} tensors that its body reads has all of them: \
         each value would be computed at every point. Only a sum of products of two terms, each of tensors \
         that the other does not read, is a matrix product; its body combines the results of {what}. Compute \
         each term by an operation of its own, or write the sum as a product",
        space.order.len(),
        tensors.count(),
    )
}

/// The type that elements are combined in: sums and products of 16-bit floats are formed in f32 and rounded once, as a matrix
/// product's are.
fn widened<'c>(builder: &Builder<'c>, combiner: Combiner, element: Type<'c>) -> Type<'c> {
    let narrow = types::is_float(element) && types::bits(element) == Some(16);
    match combiner {
        Combiner::Add | Combiner::Mul if narrow => builder.r#type(|context| Type::float32(context)),
        _ => element,
    }
}

/// A tensor with elements of another type.
fn cast<'c>(builder: &Builder<'c>, source: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
    let tensor = builder.tensor_of(source)?;
    if tensor.element == to {
        return Ok(source);
    }
    let result = builder.tensor(&tensor.shape, to)?;
    builder.operator_value(&CastOp::operands(source), result, &[])
}

fn reduce<'c>(
    builder: &Builder<'c>,
    combiner: Combiner,
    source: Val<'c>,
    dims: &[usize],
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(source)?.shape;
    let kept: Vec<i64> = shape
        .iter()
        .enumerate()
        .filter(|(at, _)| !dims.contains(at))
        .map(|(_, extent)| *extent)
        .collect();
    let dims: Vec<i64> = dims
        .iter()
        .filter_map(|dim| i64::try_from(*dim).ok())
        .collect();
    let attributes = [
        (
            "combiner",
            builder.attribute(|context| combiner.attribute(context)),
        ),
        ("dims", builder.i64s(&dims)),
    ];
    let result = builder.tensor(&kept, element)?;
    builder.operator_value(&ReduceOp::operands(source), result, &attributes)
}

/// Combines what was reduced with the initial value, unless that is neutral.
fn with_initial<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    number: usize,
    space: &Space<'c>,
    (inner, combiner): (Op<'c>, Combiner),
    reduced: Val<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let argument = op.inputs.len() + number;
    let Some(init) = op.operand(argument) else {
        return Ok(reduced);
    };
    let initial = align(builder, space, init)?;
    if let Operand::Scalar(value) = initial
        && is_neutral(combiner, value)
    {
        return Ok(reduced);
    }
    let tensors: Vec<Val<'c>> = match initial {
        Operand::Tensor(tensor) => vec![reduced, tensor],
        Operand::Scalar(_) => vec![reduced],
    };
    let element = builder.tensor_of(reduced)?.element;
    let (region, arguments, body) = builder.region(&vec![element; tensors.len()]);
    let (Some(left), right) = (arguments.first(), arguments.get(1)) else {
        return Ok(reduced);
    };
    let right = match (initial, right) {
        (Operand::Scalar(value), _) => match defined_by(value, "arith.constant") {
            Some(constant) => body.result_of(body.clone_of(constant))?,
            None => value,
        },
        (Operand::Tensor(_), Some(right)) => *right,
        (Operand::Tensor(_), None) => return Ok(reduced),
    };
    let sum = body.value(&name(inner), &[*left, right], element, &[])?;
    body.operation(ops::YIELD, &[sum], &[], &[], Vec::new())?;
    counts.maps += 1;
    let result = builder.tensor(&space.shape, element)?;
    let reduced = builder.operation(ops::MAP, &tensors, &[result], &[], vec![region])?;
    builder.result_of(reduced)
}

/// Whether the initial value of a sum is zero.
///
/// # Errors
/// When building fails.
pub(super) fn starts_from_zero<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
) -> PassResult<'c, bool> {
    let init = op.operand(op.inputs.len());
    let all = init.map(|(init, _)| uniform(builder, init)).transpose()?;
    Ok(all
        .flatten()
        .is_some_and(|value| is_neutral(Combiner::Add, value)))
}

/// The initial value of a sum as a tensor of the space's shape; `None` when it is zero.
///
/// # Errors
/// When building fails.
pub(super) fn initial_sum<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    space: &Space<'c>,
) -> PassResult<'c, Option<Val<'c>>> {
    let Some(init) = op.operand(op.inputs.len()) else {
        return Ok(None);
    };
    match align(builder, space, init)? {
        Operand::Scalar(value) if is_neutral(Combiner::Add, value) => Ok(None),
        Operand::Scalar(value) => fill(builder, space, value).map(Some),
        Operand::Tensor(_) => spread(builder, space, init).map(Some),
    }
}
