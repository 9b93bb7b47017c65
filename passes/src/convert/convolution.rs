//! Convolutions as products (im2col).
//!
//! A convolution reads one operand through windows: an element of it belongs to several places of the result. A copy in
//! which each of those is an element of its own is indexed by loops alone, and the convolution of the copy is a contraction,
//! which [`contraction`](super::contraction) makes a product of. Windows of one element (1 x 1 convolutions) need no copy.
//!
//! The copy has the order that the product wants: its batch, then rows and depth as the result and the filters have them.
//! It is worth making where each element of it is multiplied by several filters, and where the loops that it saves are
//! more than a launch; other convolutions stay loops, depthwise ones for instance.

mod copy;
mod reading;

use super::operands::fill_of;
use super::structured::Structured;
use super::term::terms;
use crate::error::PassResult;
use crate::generalize::generic::{Loops, generic};
use crate::ir::reshape::groups_without;
use crate::ir::value::{defined_by, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, inline, walk};
use copy::{copied, map_text};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use reading::{Index, Operand, Reading};
use std::fmt;

/// The least extents of a product that takes the place of loops: fewer filters, places or elements of a window would leave
/// most of a tile of the product empty.
const LEAST: i64 = 16;

/// Turns of a convolution's loops below which they are done in the time of one more launch: some 4 us, in which the 132
/// multiprocessors of an H200, at 1.8 GHz, issue 128 x 132 x 7200 lanes' instructions, some 30 a turn.
const TURNS_OF_A_LAUNCH: i64 = 1 << 22;

/// The most bytes of a copy.
const MOST_BYTES: i64 = 1 << 32;

/// What becomes of a convolution, for people.
pub(super) struct Decision {
    /// Extents of the product: its batch, M, N and K; [`DYNAMIC`] where known at run time only.
    extents: [i64; 4],
    outcome: Outcome,
}

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// As a product of the operands as they are.
    Direct,
    /// As a product of a copy, of so many elements where that is known.
    Copied(i64),
    /// As loops: why.
    Loops(&'static str),
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [batch, m, n, k] = self.extents.map(|extent| match extent {
            DYNAMIC => "?".to_owned(),
            extent => extent.to_string(),
        });
        write!(f, "{m} x {n} x {k}")?;
        if batch != "1" {
            write!(f, ", {batch} times")?;
        }
        match self.outcome {
            Outcome::Direct => write!(f, ": a product"),
            Outcome::Copied(DYNAMIC) => write!(f, ": a product, of a copy by windows"),
            Outcome::Copied(elements) => {
                write!(f, ": a product, of a copy by windows ({elements} elements)")
            }
            Outcome::Loops(why) => write!(f, ": loops, as {why}"),
        }
    }
}

/// Makes contractions of the convolutions below a module that are better as products, with copies in front of them; tells
/// `said` of each convolution.
///
/// # Errors
/// When building fails.
pub(super) fn expand<'c>(
    module: Op<'c>,
    entered: &impl Fn(Op<'c>) -> bool,
    said: &mut impl FnMut(Op<'c>, &Decision),
) -> PassResult<'c> {
    for op in walk::nested(module, entered) {
        if !name(op).starts_with("linalg.") || !super::takes_kernels(op) {
            continue;
        }
        let Some(reading) = Reading::of(op) else {
            continue;
        };
        let decision = decide(&reading);
        if matches!(decision.outcome, Outcome::Loops(_)) {
            said(op, &decision);
        } else if rewrite(&reading)? {
            said(op, &decision);
            walk::erase(op);
        }
    }
    Ok(())
}

/// Whether a convolution is better as a product.
fn decide(reading: &Reading<'_>) -> Decision {
    let product = |loops: &[usize]| {
        loops.iter().fold(1i64, |product, at| {
            match (product, reading.extents.get(*at).copied()) {
                (DYNAMIC, _) | (_, Some(DYNAMIC) | None) => DYNAMIC,
                (product, Some(extent)) => product.saturating_mul(extent),
            }
        })
    };
    let own: Vec<usize> = [&*reading.before, &*reading.after].concat();
    let [batch, m, n, k] =
        [&*reading.groups, &own, &*reading.filters, &*reading.summed].map(product);
    // What is not known is taken to be large.
    let times = |all: &[i64]| {
        let known = all.iter().filter(|extent| **extent != DYNAMIC);
        known.fold(1i64, |product, extent| product.saturating_mul(*extent))
    };
    let copies = match [batch, m, k].contains(&DYNAMIC) {
        true => DYNAMIC,
        false => times(&[batch, m, k]),
    };
    let is_small = |extent: i64| extent != DYNAMIC && extent < LEAST;
    let is_open = [batch, m, n, k].contains(&DYNAMIC);
    let outcome = if n < 2 {
        Outcome::Loops("each of its elements meets one filter")
    } else if reading.is_direct() {
        Outcome::Direct
    } else if is_small(n) {
        Outcome::Loops("few filters read each element of a copy")
    } else if is_small(m) || is_small(k) {
        Outcome::Loops("tiles of a product would be mostly empty")
    } else if !is_open && times(&[batch, m, n, k]) < TURNS_OF_A_LAUNCH {
        Outcome::Loops("they take less time than one more launch")
    } else if copies != DYNAMIC && copies.saturating_mul(reading.element_bytes) > MOST_BYTES {
        Outcome::Loops("a copy by windows would be larger than 4 GiB")
    } else {
        Outcome::Copied(copies)
    };
    Decision {
        extents: [batch, m, n, k],
        outcome,
    }
}

/// Puts a contraction in the place of a convolution; false where its body is no sum of products.
fn rewrite<'c>(reading: &Reading<'c>) -> PassResult<'c, bool> {
    let op = reading.op;
    let builder = Builder::before(op);
    let mut inputs = reading.inputs.clone();
    if !reading.is_direct() {
        let order = reading.order_of_copy();
        replace_input(&builder, reading, &mut inputs, reading.windows, &order)?;
    }
    // Filters for each place of the batch that comes first in the result: a copy of filters is less than one of the result.
    if !reading.before.is_empty() && !reading.after.is_empty() && reading.copies_filters() {
        let order = reading.order_of_filters();
        replace_input(&builder, reading, &mut inputs, reading.filter, &order)?;
    }
    let (Some(&init), Some(&result)) = (operands(op).last(), results(op).first()) else {
        return Ok(false);
    };
    let units: Vec<bool> = reading
        .result
        .iter()
        .map(|at| reading.is_unit(*at))
        .collect();
    let start = without_units(&builder, init, &units)?;
    let made = contraction(&builder, reading, &inputs, start)?;
    let Ok(structured) = Structured::read(made) else {
        walk::erase(made);
        return Ok(false);
    };
    if terms(&structured).is_none() {
        walk::erase(made);
        return Ok(false);
    }
    let whole = builder.tensor_of(result)?.shape;
    let value = builder.result_of(made)?;
    let sizes = sizes(&builder, init, &whole)?;
    let value = builder.expand(value, &whole, &groups_without(&units), &sizes)?;
    replace_all_uses(result, builder.with_type(value, result.r#type())?);
    Ok(true)
}

/// An initial value without dimensions of extent 1. One that is filled stays one that is seen to be filled.
fn without_units<'c>(
    builder: &Builder<'c>,
    init: Val<'c>,
    units: &[bool],
) -> PassResult<'c, Val<'c>> {
    let filled = defined_by(init, "linalg.fill").and_then(|fill| fill.operand(0).ok());
    let Some(value) = filled.filter(|_| units.contains(&true)) else {
        return builder.collapse(init, &groups_without(units));
    };
    let shape = builder.tensor_of(init)?.shape;
    let sizes = sizes(builder, init, &shape)?;
    let kept = shape.iter().zip(units).filter(|(_, unit)| !**unit);
    let kept: Vec<i64> = kept.map(|(extent, _)| *extent).collect();
    fill_of(builder, value, &kept, &sizes)
}

/// Puts a copy, with a dimension for each loop of `order`, in an input's place.
fn replace_input<'c>(
    builder: &Builder<'c>,
    reading: &Reading<'c>,
    inputs: &mut [Operand<'c>],
    number: usize,
    order: &[usize],
) -> PassResult<'c> {
    if let Some(input) = inputs.get_mut(number) {
        let value = copied(builder, reading, input, order)?;
        let map = order.iter().map(|at| Index::of_loop(*at)).collect();
        *input = Operand { value, map };
    }
    Ok(())
}

/// The convolution's sums over these inputs, without loops of one turn.
fn contraction<'c>(
    builder: &Builder<'c>,
    reading: &Reading<'c>,
    inputs: &[Operand<'c>],
    start: Val<'c>,
) -> PassResult<'c, Op<'c>> {
    let loops = reading.kept();
    let result: Vec<Index> = reading
        .result
        .iter()
        .filter(|at| !reading.is_unit(**at))
        .map(|at| Index::of_loop(*at))
        .collect();
    let maps = inputs.iter().map(|input| &input.map).chain([&result]);
    let maps: Vec<_> = maps.map(|map| map_text(reading, map, &loops)).collect();
    let kind = |at: &usize| match reading.result.contains(at) {
        true => "parallel",
        false => "reduction",
    };
    let kinds = loops.iter().map(kind).collect();
    let r#type = start.r#type();
    let values: Vec<_> = inputs.iter().map(|input| input.value).collect();
    let elements: Vec<_> = values
        .iter()
        .chain([&start])
        .map(|value| match TensorType::of_value(*value) {
            Some(tensor) => tensor.element,
            None => value.r#type(),
        })
        .collect();
    let (region, arguments, inner) = builder.region(&elements);
    if let Some(block) = walk::blocks(reading.op).first() {
        let yielded = inline::copy(&inner, *block, &arguments);
        inner.operation("linalg.yield", &yielded, &[], &[], Vec::new())?;
    }
    let loops = Loops { maps, kinds };
    generic(builder, &loops, (&values, start), (r#type, region))
}

/// The dynamic extents of a tensor's shape.
fn sizes<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Vec<Val<'c>>> {
    let dynamic = shape
        .iter()
        .enumerate()
        .filter(|(_, extent)| **extent == DYNAMIC);
    dynamic
        .map(|(dim, _)| builder.extent(tensor, dim))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_name_the_product() {
        let decision = |extents, outcome| Decision { extents, outcome }.to_string();
        assert_eq!(
            decision([1, 64, 32, 27], Outcome::Copied(1728)),
            "64 x 32 x 27: a product, of a copy by windows (1728 elements)"
        );
        assert_eq!(
            decision([4, DYNAMIC, 32, 27], Outcome::Direct),
            "? x 32 x 27, 4 times: a product"
        );
    }
}
