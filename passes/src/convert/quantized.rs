//! Products of bytes with zero points.
//!
//! `sum of (a - za)(b - zb)` is `sum of a b - zb sum of a - za sum of b + K za zb`, exactly, as sums of i32 wrap: the product of the
//! bytes themselves, which tensor cores form, and what its epilogue adds. An unsigned byte is a signed one with its highest
//! bit flipped, plus 128: `za` becomes `za - 128`.

use super::Counts;
use super::factor::Factor;
use super::operands::{Space, spread};
use super::structured::{Index, Structured};
use crate::error::PassResult;
use crate::ir::value::defined_by;
use crate::ir::{Builder, DYNAMIC, Val};
use axe_dialect::Combiner;
use axe_dialect::ops::{self, CastOp, ReduceOp};
use melior::ir::Type;
use melior::ir::attribute::IntegerAttribute;

/// What a value is more than the signed byte that stands for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift<'c> {
    /// What is subtracted, an i32.
    pub(super) zero: Option<Val<'c>>,
    /// Whether the byte has no sign.
    pub(super) unsigned: bool,
}

/// The points of a product.
pub(super) struct Points<'a, 'c> {
    /// The operation.
    pub(super) op: &'a Structured<'c>,
    /// The loops of the result, in order.
    pub(super) result: &'a [usize],
    /// The loops that are summed over.
    pub(super) summed: &'a [usize],
}

/// The factor with the highest bit of its bytes flipped: unsigned ones as signed, less 128.
///
/// # Errors
/// When building fails.
pub(super) fn signed<'c>(
    builder: &Builder<'c>,
    factor: Factor<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Factor<'c>> {
    let tensor = builder.tensor_of(factor.value)?;
    let (region, arguments, body) = builder.region(&[tensor.element]);
    let highest = body.constant(IntegerAttribute::new(tensor.element, -128).into())?;
    let byte = arguments.first().copied().unwrap_or(highest);
    let flipped = body.value("arith.xori", &[byte, highest], tensor.element, &[])?;
    body.operation(ops::YIELD, &[flipped], &[], &[], Vec::new())?;
    let result = builder.tensor(&tensor.shape, tensor.element)?;
    counts.maps += 1;
    let map = builder.operation(ops::MAP, &[factor.value], &[result], &[], vec![region])?;
    Ok(Factor {
        value: builder.result_of(map)?,
        loops: factor.loops,
    })
}

/// The product of the values, from that of the bytes: of each side the factor of its bytes, and what it is more.
///
/// # Errors
/// When building fails.
pub(super) fn corrected<'c>(
    builder: &Builder<'c>,
    points: &Points<'_, 'c>,
    product: Val<'c>,
    [left, right]: [(&Factor<'c>, Option<Shift<'c>>); 2],
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let element = builder.tensor_of(product)?.element;
    let space = Space::new(points.op, points.result.to_vec())?;
    let (mut inputs, mut shifts) = (vec![product], Vec::new());
    // The sums of each side are subtracted as often as the other's zero point says.
    for (factor, shift) in [(left.0, right.1), (right.0, left.1)] {
        if let Some(shift) = shift {
            inputs.push(sums(builder, points, &space, factor, element)?);
            shifts.push(shift);
            counts.reductions += 1;
        }
    }
    let depth = depth(builder, points, element)?;
    let (region, arguments, body) = builder.region(&vec![element; inputs.len()]);
    let Some((&first, sums)) = arguments.split_first() else {
        return Ok(product);
    };
    let (mut value, mut zeros) = (first, Vec::new());
    for (sum, shift) in sums.iter().zip(shifts) {
        let zero = shift.point(&body, element)?;
        let part = body.value("arith.muli", &[*sum, zero], element, &[])?;
        value = body.value("arith.subi", &[value, part], element, &[])?;
        zeros.push(zero);
    }
    if let &[one, other] = zeros.as_slice() {
        let both = body.value("arith.muli", &[one, other], element, &[])?;
        let whole = body.value("arith.muli", &[both, inside(&body, depth)?], element, &[])?;
        value = body.value("arith.addi", &[value, whole], element, &[])?;
    }
    body.operation(ops::YIELD, &[value], &[], &[], Vec::new())?;
    counts.maps += 1;
    let result = builder.tensor(&space.shape, element)?;
    let map = builder.operation(ops::MAP, &inputs, &[result], &[], vec![region])?;
    builder.result_of(map)
}

impl<'c> Shift<'c> {
    /// The zero point of the signed byte, in the body of a map.
    fn point(self, body: &Builder<'c>, element: Type<'c>) -> PassResult<'c, Val<'c>> {
        let number = |value| body.constant(IntegerAttribute::new(element, value).into());
        let zero = match self.zero {
            Some(zero) => inside(body, zero)?,
            None => number(0)?,
        };
        match self.unsigned {
            true => body.value("arith.subi", &[zero, number(128)?], element, &[]),
            false => Ok(zero),
        }
    }
}

/// A scalar in the body of a map: a constant again, another as it is.
fn inside<'c>(body: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    match defined_by(value, "arith.constant") {
        Some(constant) => body.result_of(body.clone_of(constant)),
        None => Ok(value),
    }
}

/// The sums of a factor's bytes over the product's depth, at every point of the result.
fn sums<'c>(
    builder: &Builder<'c>,
    points: &Points<'_, 'c>,
    space: &Space<'c>,
    factor: &Factor<'c>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(factor.value)?.shape;
    let wide = builder.tensor(&shape, element)?;
    let wide = builder.operator_value(&CastOp::operands(factor.value), wide, &[])?;
    let loops = || (0i64..).zip(&factor.loops).zip(&shape);
    let summed = |at: &usize| points.summed.contains(at);
    let dims: Vec<i64> = loops()
        .filter(|((_, at), _)| summed(at))
        .map(|((dim, _), _)| dim)
        .collect();
    let kept = || loops().filter(|((_, at), _)| !summed(at));
    let extents: Vec<i64> = kept().map(|(_, extent)| *extent).collect();
    let map: Vec<Index> = kept().map(|((_, at), _)| Index::Loop(*at)).collect();
    let attributes = [
        (
            "combiner",
            builder.attribute(|context| Combiner::Add.attribute(context)),
        ),
        ("dims", builder.i64s(&dims)),
    ];
    let result = builder.tensor(&extents, element)?;
    let sums = builder.operator_value(&ReduceOp::operands(wide), result, &attributes)?;
    spread(builder, space, (sums, &map))
}

/// How many products each sum has, as a scalar.
fn depth<'c>(
    builder: &Builder<'c>,
    points: &Points<'_, 'c>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let space = Space::new(points.op, points.summed.to_vec())?;
    let known = space.shape.iter().filter(|extent| **extent != DYNAMIC);
    // Modulo 2^32, as all sums here.
    let known = known.fold(1i64, |product, extent| product.wrapping_mul(*extent));
    let known = i64::from(known as i32);
    let mut depth = builder.constant(IntegerAttribute::new(element, known).into())?;
    let all: Vec<usize> = (0..space.shape.len()).collect();
    for size in space.sizes(builder, &all)? {
        let size = builder.value("arith.index_cast", &[size], element, &[])?;
        depth = builder.value("arith.muli", &[depth, size], element, &[])?;
    }
    Ok(depth)
}
