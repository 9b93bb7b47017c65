//! Reductions of dimensions that are not neighbours, as several; of dimensions of extent 1, as reshapes.

use super::runs;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::space::source;
use axe_passes::ir::reshape::groups_without;
use axe_passes::ir::value::{defining, name, only_result, replace_all_uses};
use axe_passes::ir::{Builder, Op, attribute, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Splits reductions of dimensions that are not neighbours into one a run of neighbours, the innermost first. Where all
/// reduced dimensions have extent 1 there is nothing to combine. What is left of them, each of one run.
///
/// # Errors
/// When an operation cannot be built.
pub(in crate::planner) fn split_reductions<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let mut left = Vec::new();
    for &op in ops.iter().filter(|op| name(**op) == ops::REDUCE) {
        let mut next = Some(op);
        while let Some(op) = next {
            next = split_reduction(op, &mut left)?;
        }
    }
    Ok(left)
}

/// One step of [`split_reductions`]: the reduction that is left to split, if any.
fn split_reduction<'c>(op: Op<'c>, left: &mut Vec<Op<'c>>) -> PassResult<'c, Option<Op<'c>>> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
    let (Some(from), Some(result), Some(dims)) = (source(op), only_result(op), dims) else {
        return Ok(None);
    };
    let builder = Builder::before(op);
    let tensor = builder.tensor_of(from)?;
    let runs = runs(&tensor.shape, |dim| dims.contains(&dim));
    if !runs.iter().any(|(_, reduced)| *reduced) {
        let dropped: Vec<bool> = (0i64..)
            .zip(&tensor.shape)
            .map(|(dim, _)| dims.contains(&dim))
            .collect();
        let value = builder.collapse(from, &groups_without(&dropped))?;
        let value = builder.with_type(value, result.r#type())?;
        replace_all_uses(result, value);
        walk::erase(op);
        return Ok(None);
    }
    if runs.iter().filter(|(_, reduced)| *reduced).count() < 2 {
        left.push(op);
        return Ok(None);
    }
    let (outer, inner) = last_run(&tensor.shape, &dims);
    let [middle, last] = in_two(op, (&outer, &inner))?;
    left.push(middle);
    Ok(Some(last))
}

/// A reduction as two, along the second of these dimensions and then along the first.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn in_two<'c>(
    op: Op<'c>,
    (outer, inner): (&[i64], &[i64]),
) -> PassResult<'c, [Op<'c>; 2]> {
    let builder = Builder::before(op);
    let missing = |what| layout_error(op.location(), what);
    let from = source(op).zip(only_result(op));
    let (from, result) = from.ok_or_else(|| missing("a reduction has no result"))?;
    let tensor = builder.tensor_of(from)?;
    let kept: Vec<i64> = (0i64..)
        .zip(&tensor.shape)
        .filter(|(dim, _)| !inner.contains(dim))
        .map(|(_, extent)| *extent)
        .collect();
    let combiner = op.attribute("combiner");
    let combiner = combiner.map_err(|_| missing("a reduction has no combiner"))?;
    let step = |from, dims: &[i64], r#type| {
        let attributes = [("combiner", combiner), ("dims", builder.i64s(dims))];
        builder.value(ops::REDUCE, &[from], r#type, &attributes)
    };
    let middle = step(from, inner, builder.tensor(&kept, tensor.element)?)?;
    let last = step(middle, outer, result.r#type())?;
    replace_all_uses(result, last);
    walk::erase(op);
    let made = defining(middle).zip(defining(last));
    let (middle, last) =
        made.ok_or_else(|| layout_error(builder.location, "a reduction has no operator"))?;
    Ok([middle, last])
}

/// Dimensions of several runs of neighbours: those before the last run, and its own.
pub(super) fn last_run(shape: &[i64], dims: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let mut start = i64::MAX;
    let all: Vec<_> = (0i64..).zip(shape).collect();
    for (dim, extent) in all.into_iter().rev() {
        match (*extent == 1, dims.contains(&dim)) {
            (false, false) if start < i64::MAX => break,
            (false, true) => start = dim,
            _ => {}
        }
    }
    dims.iter().partition(|dim| **dim < start)
}
