//! Contractions: sums of products become one `axe.gemm`, those of two vectors ([`super::dots`]) a reduction.

use super::elementwise::loops_of;
use super::factor::{Factor, fold};
use super::operands::{Space, extent_of, transpose};
use super::quantized::{self, Points};
use super::reduction::initial_sum;
use super::structured::Structured;
use super::term::{Term, terms};
use super::units::Units;
use super::{Counts, dots, unsupported};
use crate::error::PassResult;
use crate::ir::reshape::groups_without;
use crate::ir::{Builder, DYNAMIC, Val, types};
use axe_dialect::ops::{CastOp, GemmOp};
use melior::ir::Type;

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
    let Some([left, right]) = terms(op) else {
        return Ok(None);
    };
    let result = loops_of(op.result_map(0));
    if result.len() != op.result_map(0).len() || !is_product(&left, &right, &result, |_| true) {
        return Ok(None);
    }
    let is_wide = |at: usize| extent_of(op, at).is_none_or(|(extent, _)| extent != 1);
    if !is_product(&left, &right, &result, is_wide) {
        let dots = dots::convert(builder, op, [&left, &right], &result, counts)?;
        if dots.is_some() {
            return Ok(dots);
        }
    }
    // A reduction of rows forms what the body computes where it is summed up; a product would write it out first.
    let whole = |term: &Term<'c>| term.loops.len() == op.reductions.len();
    if !(left.is_operand() && right.is_operand()) && (whole(&left) || whole(&right)) {
        return Ok(None);
    }
    let formed = |term: &Term<'c>, counts: &mut Counts| term.formed(builder, op, counts);
    let (mut whole_left, mut whole_right) = (formed(&left, counts)?, formed(&right, counts)?);
    let is_shifted = left.shift().is_some() || right.shift().is_some();
    let units = match is_shifted {
        true => Units::default(),
        false => Units::of(builder, op, &result, |at| {
            whole_left.loops.contains(at) && whole_right.loops.contains(at)
        })?,
    };
    if !units.loops.is_empty() {
        whole_left = units.dropped(builder, whole_left)?;
        whole_right = units.dropped(builder, whole_right)?;
    }
    let result = units.left_of(&result);
    let (factor_left, factor_right) = fold(builder, &whole_left, &whole_right)?;
    let parts = parts(op, &factor_left, &factor_right, &result)?;
    let (parts, factors) = in_order(parts, factor_left, factor_right, &result);
    let value = gemm(builder, op, factors, &parts, &result, counts)?;
    if !is_shifted {
        return units.added(builder, value).map(Some);
    }
    let sides = [(&whole_left, left.shift()), (&whole_right, right.shift())];
    let points = Points {
        op,
        result: &result,
        summed: &parts.k,
    };
    quantized::corrected(builder, &points, value, sides, counts).map(Some)
}

/// Whether each side has a loop of the result that the other lacks, or one of them does, of loops of which that holds.
fn is_product(
    left: &Term<'_>,
    right: &Term<'_>,
    result: &[usize],
    holds: impl Fn(usize) -> bool,
) -> bool {
    let own = |a: &Term<'_>, b: &Term<'_>| {
        let mut loops = a.loops.iter().filter(|at| result.contains(at));
        loops.any(|at| !b.loops.contains(at) && holds(*at))
    };
    own(left, right) || own(right, left)
}

/// The product whose transpose the result is: swapping the factors gives the result's own order.
fn in_order<'c>(
    mut parts: Parts,
    mut left: Factor<'c>,
    mut right: Factor<'c>,
    result: &[usize],
) -> (Parts, (Factor<'c>, Factor<'c>)) {
    let first = |loops: &[usize]| {
        loops
            .first()
            .and_then(|at| result.iter().position(|have| have == at))
    };
    if first(&parts.n) < first(&parts.m) && first(&parts.n).is_some() {
        std::mem::swap(&mut left, &mut right);
        std::mem::swap(&mut parts.m, &mut parts.n);
    }
    (parts, (left, right))
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
        .expand(value, &shape, &groups_without(&unit), &sizes)
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
pub(super) fn accumulator<'c>(builder: &Builder<'c>, element: Type<'c>) -> Type<'c> {
    match types::bits(element) {
        Some(bits) if bits < 32 && types::is_float(element) => {
            builder.r#type(|context| Type::float32(context))
        }
        _ => element,
    }
}

/// A tensor with its elements converted; the value itself when they have the type.
///
/// # Errors
/// When building fails.
pub(super) fn with_element<'c>(
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
