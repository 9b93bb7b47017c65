//! `--axe-simplify-gathers`: gathers whose indices are computed of loops' indices and constants alone.
//!
//! Front ends name the elements that they take in roundabout ways: nearest upsampling divides an index in f32 and rounds it, group
//! normalisation takes a scale for each channel by tensors of constants. Each index is evaluated at all points ([`values`]). Where it
//! is a sum of digits of the loops' indices ([`digits`]), the gather has those, and where elements are taken in the order in which they
//! lie, it is a reshape.

mod digits;
mod values;

use crate::error::PassResult;
use crate::fuse::nest::{maps, reductions};
use crate::fuse::reshape::reshape;
use crate::generalize::generic::{elementwise, extract};
use crate::ir::value::{defining, name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Int, Op, TensorType, Val, walk};
use crate::registry::PassContext;
use digits::{Digit, Sum, digits};
use values::Body;

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    let mut simplified = 0;
    for op in walk::nested(module, &|op| name(op) != "linalg.generic") {
        if let Some(gather) = Gather::of(op) {
            gather.replace()?;
            simplified += 1;
        }
    }
    pass.count("num-simplified", simplified);
    Ok(())
}

/// Loops whose body takes one element of a tensor.
struct Gather<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
    indices: Indices,
}

/// How the elements that are taken lie.
enum Indices {
    /// In order: the result is a reshape.
    Ordered,
    /// For each dimension of the tensor a number, and digits of loops' indices.
    Digits(Vec<(i64, Vec<(usize, Digit)>)>),
}

impl<'c> Gather<'c> {
    /// Reads a gather; none where it is another operation, or is best as it is.
    fn of(op: Op<'c>) -> Option<Self> {
        let result = only_result(op).filter(|_| name(op) == "linalg.generic")?;
        let shape = shape_of(result)?;
        let all_maps = maps(op)?;
        let (out, inputs) = all_maps.split_last()?;
        let is_own = |at: usize| {
            let index = out.result(at);
            index.is_ok_and(|index| index.is_dim() && index.dim_position() == at)
        };
        let in_order = out.result_count() == shape.len() && (0..shape.len()).all(is_own);
        if !in_order || reductions(op).contains(&true) || out.dim_count() != shape.len() {
            return None;
        }
        let block = walk::blocks(op).first().copied()?;
        let mut inner = walk::operations(block);
        let yielded = inner.pop().map(operands)?;
        let taken = inner.iter().filter(|own| name(**own) == "tensor.extract");
        let (&[value], &[taken]) = (&yielded[..], &taken.collect::<Vec<_>>()[..]) else {
            return None;
        };
        let all = operands(*taken);
        let (from, at) = all.split_first()?;
        let outside = !defining(*from).is_some_and(|own| inner.contains(&own));
        if only_result(*taken) != Some(value) || !outside {
            return None;
        }
        let body = Body::new(op, inputs, &shape);
        let mut sums = Vec::new();
        for (index, extent) in at.iter().zip(shape_of(*from)?) {
            let sum = Sum::of(&body.values(*index)?)?;
            let [least, most] = sum.range();
            if least < 0 || most >= extent {
                return None;
            }
            sums.push(sum);
        }
        let indices = match is_ordered(&sums, &shape_of(*from)?, &shape) {
            true => Indices::Ordered,
            false if at.iter().any(|index| body.is_roundabout(*index)) => {
                Indices::Digits(sums.iter().map(of_loops).collect::<Option<_>>()?)
            }
            false => return None,
        };
        Some(Self {
            op,
            from: *from,
            result,
            indices,
        })
    }

    fn replace(&self) -> PassResult<'c> {
        let builder = Builder::before(self.op);
        let tensor = builder.tensor_of(self.result)?;
        let made = match &self.indices {
            Indices::Ordered => reshape(&builder, self.from, &tensor.shape, None)?,
            Indices::Digits(all) => elementwise(&builder, &tensor, &[], |inner, at| {
                let mut index = Vec::new();
                for (first, digits) in all {
                    index.push(formed(inner, at, *first, digits)?);
                }
                extract(inner, self.from, &index)
            })?,
        };
        replace_all_uses(self.result, made);
        walk::erase(self.op);
        Ok(())
    }
}

/// The static extents of a tensor without an encoding.
fn shape_of(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    let known = !tensor.encoded && !tensor.shape.contains(&DYNAMIC) && !tensor.shape.contains(&0);
    known.then_some(tensor.shape)
}

/// Whether indices name all elements of a tensor in the order in which loops of these extents take them.
fn is_ordered(sums: &[Sum], from: &[i64], extents: &[i64]) -> bool {
    let elements = |shape: &[i64]| {
        shape
            .iter()
            .try_fold(1i64, |all, own| all.checked_mul(*own))
    };
    let strides = |shape: &[i64]| -> Vec<i64> {
        let behind = |at: usize| shape.iter().skip(at + 1).product();
        (0..shape.len()).map(behind).collect()
    };
    if elements(from).is_none() || elements(from) != elements(extents) {
        return false;
    }
    let (of_source, of_loops) = (strides(from), strides(extents));
    let first: i64 = sums
        .iter()
        .zip(&of_source)
        .map(|(sum, stride)| sum.first * stride)
        .sum();
    let place = |at: usize, turn: usize| -> i64 {
        let of = |sum: &Sum| sum.loops.get(at).and_then(|own| own.get(turn)).copied();
        let all = sums.iter().zip(&of_source);
        all.map(|(sum, stride)| of(sum).unwrap_or(0) * stride).sum()
    };
    let mut loops = extents.iter().zip(of_loops).enumerate();
    first == 0
        && loops.all(|(at, (extent, stride))| {
            let mut turns = (0..*extent).filter_map(|turn| usize::try_from(turn).ok());
            turns.all(|turn| i64::try_from(turn).is_ok_and(|own| place(at, turn) == own * stride))
        })
}

/// An index as a number and digits of loops.
fn of_loops(sum: &Sum) -> Option<(i64, Vec<(usize, Digit)>)> {
    let mut all = Vec::new();
    for (at, values) in sum.loops.iter().enumerate() {
        all.extend(digits(values)?.into_iter().map(|digit| (at, digit)));
    }
    Some((sum.first, all))
}

/// The value of a sum of digits.
fn formed<'c>(
    builder: &Builder<'c>,
    at: &[Val<'c>],
    first: i64,
    digits: &[(usize, Digit)],
) -> PassResult<'c, Val<'c>> {
    let ints = builder.ints();
    let mut sum = Int::Known(first);
    for (of, digit) in digits {
        let Some(index) = at.get(*of) else { continue };
        let mut value = ints.div(Int::Value(*index), digit.block)?;
        if let Some(extent) = digit.extent {
            value = ints.rem(value, extent)?;
        }
        sum = ints.add(sum, ints.mul(value, digit.stride)?)?;
    }
    ints.value(sum)
}
