//! Contractions: sums of products become one `axe.gemm`.

use super::elementwise::loops_of;
use super::factor::{Factor, factor, fold};
use super::operands::{Space, transpose};
use super::reduction::initial_sum;
use super::structured::Structured;
use super::{Counts, unsupported};
use crate::error::PassResult;
use crate::ir::value::{name, operands};
use crate::ir::{Builder, DYNAMIC, Val, types};
use axe_dialect::ops::{CastOp, GemmOp};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

/// The loops of a contraction by their part in it, each in the order that operands are brought to.
#[derive(Clone, Debug)]
struct Parts {
    batch: Vec<usize>,
    m: Vec<usize>,
    n: Vec<usize>,
    k: Vec<usize>,
}

/// Converts a sum of products over the loops that the result lacks; `None` when the body is another
/// reduction, or when both operands have the same kept loops (that is a sum of an elementwise product).
///
/// # Errors
/// When a loop is missing from both operands, or building fails.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Option<Val<'c>>> {
    let Some((left, right)) = factors(op) else {
        return Ok(None);
    };
    let result = loops_of(op.result_map(0));
    if result.len() != op.result_map(0).len() {
        return Ok(None);
    }
    let (left, right) = (factor(builder, op, left)?, factor(builder, op, right)?);
    let (mut left, mut right) = fold(builder, &left, &right)?;
    let mut parts = parts(op, &left, &right, &result)?;
    if parts.m.is_empty() && parts.n.is_empty() {
        return Ok(None);
    }
    // The product whose transpose the result is: swapping the factors gives the result's own order.
    let first = |loops: &[usize]| {
        loops
            .first()
            .and_then(|at| result.iter().position(|have| have == at))
    };
    if first(&parts.n) < first(&parts.m) && first(&parts.n).is_some() {
        std::mem::swap(&mut left, &mut right);
        std::mem::swap(&mut parts.m, &mut parts.n);
    }
    gemm(builder, op, (left, right), &parts, &result, counts).map(Some)
}

/// The arguments that the body multiplies, when it adds their product to the running value. The operands
/// may be widened first: exactly, so that a gemm with the wide accumulator forms the same products.
fn factors<'c>(op: &Structured<'c>) -> Option<(usize, usize)> {
    if op.inputs.len() != 2 || op.inits.len() != 1 {
        return None;
    }
    let binary = |value: Val<'c>, names: [&str; 2]| {
        let inner = op
            .inner(value)
            .filter(|inner| names.contains(&name(*inner).as_str()))?;
        match operands(inner).as_slice() {
            &[left, right] => Some((left, right)),
            _ => None,
        }
    };
    let sum = binary(op.yielded(0)?, ["arith.addf", "arith.addi"])?;
    let product = match sum {
        (running, product) | (product, running) if op.is_running(running, 0) => product,
        _ => return None,
    };
    let (left, right) = binary(product, ["arith.mulf", "arith.muli"])?;
    let argument = |value: Val<'c>| match op.inner(value) {
        Some(inner) if ["arith.extf", "arith.extsi"].contains(&name(inner).as_str()) => {
            op.argument(inner.operand(0).ok()?)
        }
        Some(_) => None,
        None => op.argument(value),
    };
    let (left, right) = (argument(left)?, argument(right)?);
    (left.min(right) == 0 && left.max(right) == 1).then_some((left, right))
}

/// Sorts the loops into batch, M, N and K.
fn parts<'c>(
    op: &Structured<'c>,
    left: &Factor<'c>,
    right: &Factor<'c>,
    result: &[usize],
) -> PassResult<'c, Parts> {
    let mut parts = Parts {
        batch: Vec::new(),
        m: Vec::new(),
        n: Vec::new(),
        k: Vec::new(),
    };
    for at in result {
        match (left.loops.contains(at), right.loops.contains(at)) {
            (true, true) => parts.batch.push(*at),
            (true, false) => parts.m.push(*at),
            (false, true) => parts.n.push(*at),
            (false, false) => {
                return Err(unsupported(
                    op.op,
                    &format!("neither factor has its loop {at}"),
                ));
            }
        }
    }
    parts.k = left
        .loops
        .iter()
        .copied()
        .filter(|at| !result.contains(at))
        .collect();
    let agree = right
        .loops
        .iter()
        .all(|at| result.contains(at) || parts.k.contains(at));
    match agree && parts.k.iter().all(|at| right.loops.contains(at)) {
        true => Ok(parts),
        false => Err(unsupported(
            op.op,
            "it sums over a loop that one factor lacks",
        )),
    }
}

/// A factor as `[batch..., rows, columns]` or `[batch..., columns, rows]`, and whether it is the latter. A
/// transpose is built only when neither is its order; several loops of a part become one dimension.
fn operand<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    factor: &Factor<'c>,
    (batch, rows, columns): (&[usize], &[usize], &[usize]),
) -> PassResult<'c, (Val<'c>, bool)> {
    let plain = [batch, rows, columns].concat();
    let swapped = factor.loops == [batch, columns, rows].concat() && factor.loops != plain;
    let wanted = if swapped { factor.loops.clone() } else { plain };
    let dims: Vec<usize> = wanted
        .iter()
        .filter_map(|at| factor.loops.iter().position(|have| have == at))
        .collect();
    let value = transpose(builder, factor.value, &dims)?;
    let (first, second) = if swapped {
        (columns, rows)
    } else {
        (rows, columns)
    };
    let value = builder.collapse(value, &grouped(batch.len(), &[first.len(), second.len()]))?;
    if !first.is_empty() && !second.is_empty() {
        return Ok((value, swapped));
    }
    // A vector is a matrix with an extent of 1.
    let mut shape = builder.tensor_of(value)?.shape;
    let at = if first.is_empty() {
        batch.len()
    } else {
        batch.len() + 1
    };
    shape.insert(at, 1);
    let unit: Vec<bool> = (0..shape.len()).map(|dim| dim == at).collect();
    let kept: Vec<usize> = wanted.iter().filter_map(|at| space.position(*at)).collect();
    let sizes = space.sizes(builder, &kept)?;
    builder
        .expand(
            value,
            &shape,
            &crate::ir::reshape::groups_without(&unit),
            &sizes,
        )
        .map(|value| (value, swapped))
}

/// One group for each of `single` dimensions, then groups of the given lengths; empty ones are left out.
fn grouped(single: usize, lengths: &[usize]) -> Vec<Vec<i64>> {
    let mut next = 0i64;
    let lengths = std::iter::repeat_n(&1, single)
        .chain(lengths)
        .filter(|length| **length > 0);
    lengths
        .map(|length| {
            let group = (next..).take(*length).collect::<Vec<_>>();
            next = next.saturating_add(i64::try_from(*length).unwrap_or(i64::MAX));
            group
        })
        .collect()
}

/// The type that the gemm accumulates in: f32 for narrower floats, whose own sums nobody wants.
fn accumulator<'c>(builder: &Builder<'c>, element: Type<'c>) -> Type<'c> {
    match types::bits(element) {
        Some(bits) if bits < 32 && types::is_float(element) => {
            builder.r#type(|context| Type::float32(context))
        }
        _ => element,
    }
}

/// A tensor with its elements converted; the value itself when they have the type.
fn with_element<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let tensor = builder.tensor_of(value)?;
    match tensor.element == element {
        true => Ok(value),
        false => {
            let result = builder.tensor(&tensor.shape, element)?;
            builder.operator_value(&CastOp::operands(value), result, &[])
        }
    }
}

fn gemm<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    (left, right): (Factor<'c>, Factor<'c>),
    parts: &Parts,
    result: &[usize],
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let all = Space::new(op, (0..op.reductions.len()).collect())?;
    let (batch, m, n, k) = (&*parts.batch, &*parts.m, &*parts.n, &*parts.k);
    let (mut a, trans_a) = operand(builder, &all, &left, (batch, m, k))?;
    let (mut b, trans_b) = operand(builder, &all, &right, (batch, k, n))?;
    let Some(init) = op.inits.first() else {
        return Err(unsupported(op.op, "it has no initial value"));
    };
    let element = builder.tensor_of(*init)?.element;
    let wide = accumulator(builder, element);
    if builder.tensor_of(a)?.element != builder.tensor_of(b)?.element {
        (a, b) = (
            with_element(builder, a, wide)?,
            with_element(builder, b, wide)?,
        );
    }
    let order = [batch, m, n].concat();
    let space = Space::new(op, order.clone())?;
    let acc = match initial_sum(builder, op, &space)? {
        Some(initial) => {
            let initial = with_element(builder, initial, wide)?;
            Some(matrix(builder, &space, initial, parts)?)
        }
        None => None,
    };
    let flags = [("trans_a", trans_a), ("trans_b", trans_b)];
    let flags: Vec<_> = flags
        .iter()
        .filter(|(_, set)| *set)
        .map(|(flag, _)| (*flag, builder.unit()))
        .collect();
    let shape = matrix_shape(&space, parts);
    let operands = GemmOp::operands(a, b, acc);
    let product = builder.operator_value(&operands, builder.tensor(&shape, wide)?, &flags)?;
    counts.gemms += 1;
    let value = unmatrix(builder, &space, product, parts)?;
    let value = with_element(builder, value, element)?;
    let back: Vec<usize> = result
        .iter()
        .filter_map(|at| order.iter().position(|have| have == at))
        .collect();
    transpose(builder, value, &back)
}

/// The shape of the product: the batch, then M and N as one extent each.
fn matrix_shape(space: &Space<'_>, parts: &Parts) -> Vec<i64> {
    let extent = |at: &usize| {
        space
            .position(*at)
            .and_then(|at| space.shape.get(at))
            .copied()
            .unwrap_or(DYNAMIC)
    };
    let product = |loops: &Vec<usize>| {
        loops
            .iter()
            .map(extent)
            .fold(1, |product: i64, extent| match (product, extent) {
                (DYNAMIC, _) | (_, DYNAMIC) => DYNAMIC,
                // MLIR refuses tensors whose extents overflow before this pass sees them.
                (product, extent) => product.saturating_mul(extent),
            })
    };
    parts
        .batch
        .iter()
        .map(extent)
        .chain([product(&parts.m), product(&parts.n)])
        .collect()
}

/// A tensor over `batch, M..., N...` as one of the product's shape.
fn matrix<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    value: Val<'c>,
    parts: &Parts,
) -> PassResult<'c, Val<'c>> {
    let value = builder.collapse(
        value,
        &grouped(parts.batch.len(), &[parts.m.len(), parts.n.len()]),
    )?;
    if !parts.m.is_empty() && !parts.n.is_empty() {
        return Ok(value);
    }
    let all: Vec<usize> = (0..space.shape.len()).collect();
    let shape = matrix_shape(space, parts);
    let sizes = space.sizes(builder, &all)?;
    builder.expand(
        value,
        &shape,
        &crate::ir::reshape::groups_without(&units(parts)),
        &sizes,
    )
}

/// Which dimensions of the product stand for no loop.
fn units(parts: &Parts) -> Vec<bool> {
    parts
        .batch
        .iter()
        .map(|_| false)
        .chain([parts.m.is_empty(), parts.n.is_empty()])
        .collect()
}

/// The product as a tensor over `batch, M..., N...`.
fn unmatrix<'c>(
    builder: &Builder<'c>,
    space: &Space<'c>,
    value: Val<'c>,
    parts: &Parts,
) -> PassResult<'c, Val<'c>> {
    let value = if units(parts).contains(&true) {
        builder.collapse(value, &crate::ir::reshape::groups_without(&units(parts)))?
    } else {
        value
    };
    let all: Vec<usize> = (0..space.shape.len()).collect();
    let groups = grouped(parts.batch.len(), &[parts.m.len(), parts.n.len()]);
    let sizes = if groups.len() == space.shape.len() {
        Vec::new()
    } else {
        space.sizes(builder, &all)?
    };
    builder.expand(value, &space.shape, &groups, &sizes)
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn groups_follow_each_other() {
        assert_eq!(grouped(1, &[2, 1]), [vec![0], vec![1, 2], vec![3]]);
        assert_eq!(grouped(0, &[0, 2]), [vec![0, 1]]);
    }
}
