//! Control flow around tensors: the host function of a package is a list of launches.
//!
//! A loop whose bounds are known is unrolled. Both sides of a branch are computed, and each result chosen element by element:
//! what is on tensors has no effects. Other control flow stays, and is refused where a package is made.

use crate::error::PassResult;
use crate::generalize::generic::{elementwise, extract};
use crate::ir::value::{defined_by, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, walk};
use melior::ir::ValueLike;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

/// Copies of loops' bodies in a function at the most.
const MOST_COPIES: i64 = 1024;

/// Unrolls loops and flattens branches of a module's functions.
///
/// # Errors
/// When building fails.
pub(super) fn flatten<'c>(module: Op<'c>) -> PassResult<'c> {
    let functions = walk::blocks(module).into_iter().flat_map(walk::operations);
    for function in functions.filter(|op| name(*op) == "func.func") {
        let mut left = MOST_COPIES;
        // What is copied out of a loop or a branch may be one itself.
        while flatten_one(function, &mut left)? {}
    }
    Ok(())
}

/// Takes `cf.assert` out of the bodies of structured operations: a kernel has no way to fail, and the CPU target reports it.
pub(super) fn forget_assertions(module: Op<'_>) {
    let all = walk::nested(module, &|_| true).into_iter();
    for op in all.filter(|op| name(*op).starts_with("linalg.")) {
        for block in walk::blocks(op) {
            let asserts = walk::operations(block).into_iter();
            for assert in asserts.filter(|op| name(*op) == "cf.assert") {
                walk::erase(assert);
            }
        }
    }
}

fn flatten_one<'c>(function: Op<'c>, left: &mut i64) -> PassResult<'c, bool> {
    for op in walk::blocks(function)
        .into_iter()
        .flat_map(walk::operations)
    {
        let done = match name(op).as_str() {
            "scf.for" if is_on_tensors(op) => unroll(op, left)?,
            "scf.if" if is_on_tensors(op) => choose(op)?,
            _ => false,
        };
        if done {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether tensors come out of an operation, and nothing else does: its body computes and has no effects.
fn is_on_tensors(op: Op<'_>) -> bool {
    let tensor = |value: Val<'_>| TensorType::of_value(value).is_some();
    let pure = |op: Op<'_>| {
        let name = name(op);
        let dialects = ["linalg.", "tensor.", "arith.", "math.", "index.", "scf."];
        dialects.iter().any(|dialect| name.starts_with(dialect)) && name != "scf.while"
    };
    let whole = |op: Op<'_>| !name(op).starts_with("linalg.");
    results(op).into_iter().any(tensor)
        && walk::nested(op, &|inner| whole(inner))
            .into_iter()
            .all(pure)
}

/// Unrolls a loop of which the bounds are known; false where they are not, or the copies would be too many.
fn unroll<'c>(op: Op<'c>, left: &mut i64) -> PassResult<'c, bool> {
    let all = operands(op);
    let (Some(&[low, high, step]), Some(body)) =
        (all.first_chunk(), walk::blocks(op).first().copied())
    else {
        return Ok(false);
    };
    let (Some(first), Some(end), Some(by)) = (constant(low), constant(high), constant(step)) else {
        return Ok(false);
    };
    let span = end.checked_sub(first).map_or(i64::MAX, |span| span.max(0));
    let turns = if by > 0 {
        span / by + i64::from(span % by != 0)
    } else {
        i64::MAX
    };
    if turns > *left {
        return Ok(false);
    }
    *left -= turns;
    let builder = Builder::before(op);
    let mut carried = all.get(3..).unwrap_or_default().to_vec();
    for turn in 0..turns {
        let at = IntegerAttribute::new(low.r#type(), first + turn * by);
        let arguments: Vec<_> = std::iter::once(builder.constant(at.into())?)
            .chain(carried)
            .collect();
        carried = inline::copy(&builder, body, &arguments);
    }
    for (result, value) in results(op).into_iter().zip(carried) {
        replace_all_uses(result, value);
    }
    walk::erase(op);
    Ok(true)
}

/// Computes both sides of a branch and chooses; false where a result's extents may depend on the side.
fn choose<'c>(op: Op<'c>) -> PassResult<'c, bool> {
    let (&[condition], &[then, otherwise]) = (&operands(op)[..], &walk::blocks(op)[..]) else {
        return Ok(false);
    };
    let open = |value: Val<'c>| {
        TensorType::of_value(value).is_some_and(|tensor| tensor.shape.contains(&DYNAMIC))
    };
    if results(op).into_iter().any(open) {
        return Ok(false);
    }
    let builder = Builder::before(op);
    let sides = [then, otherwise].map(|side| inline::copy(&builder, side, &[]));
    let [first, second] = &sides;
    for ((result, a), b) in results(op).into_iter().zip(first).zip(second) {
        let chosen = match TensorType::of_value(result) {
            Some(tensor) => elementwise(&builder, &tensor, &[], |inner, at| {
                let operands = [condition, extract(inner, *a, at)?, extract(inner, *b, at)?];
                inner.value("arith.select", &operands, tensor.element, &[])
            })?,
            None => builder.value("arith.select", &[condition, *a, *b], result.r#type(), &[])?,
        };
        replace_all_uses(result, chosen);
    }
    walk::erase(op);
    Ok(true)
}

fn constant(value: Val<'_>) -> Option<i64> {
    let op = defined_by(value, "arith.constant")?;
    op.attribute("value").ok().and_then(attribute::integer)
}
