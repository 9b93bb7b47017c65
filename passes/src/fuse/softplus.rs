//! Hyperbolic tangents of a softplus, `tanh(log(1 + e^x))`, as quotients (the activation mish is `x` times that).
//!
//! With `e = e^x`, `e^(2 log(1 + e)) - 1 = (1 + e)^2 - 1 = e (e + 2)`, so that the tangent is `n / (n + 2)` with `n = e (e + 2)`: one
//! exponential, where it was two and a logarithm. Nothing cancels: a relative error of `e` is at most as large in the result, and
//! four roundings come to it, 2 units in the last place. 16-bit floats are widened. `e` is at most 2^30, of which the result is 1
//! in f64 too, and `n` no infinity; of minus infinity the result is 0, and NaN stays.
//!
//! torch's softplus is `x` itself above a threshold. From 20 the tangents of both are 1 in f64 too.

use super::element::Element;
use super::rewritten::Rewritten;
use super::wide_sums::mapped;
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, name, only_result, operands, replace_all_uses};
use crate::ir::walk::{block_arguments, blocks, nested};
use crate::ir::{Builder, Op, TensorType, Val, attribute, types, walk};
use crate::precision::constant;
use axe_dialect::ops;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The largest exponential that counts.
const MOST: f64 = 1_073_741_824.0;
/// From where the tangent is 1, in f64 too.
const FAR: f64 = 20.0;
/// `ogt`, `oge`, `ugt` and `uge` of `arith.cmpf`.
const GREATER: [i64; 4] = [2, 3, 9, 10];

/// Rewrites such tangents in maps. `ops` are operations of a block in order; they are given with those that are new, and without
/// those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn rewrite<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for &map in ops.iter().filter(|op| name(**op) == ops::MAP) {
        let all = nested(map, &|_| true).into_iter();
        for tanh in all.filter(|op| name(*op) == "math.tanh") {
            if let Some(x) = argument(map, tanh) {
                replaced.extend(replace(map, tanh, x)?);
            }
        }
        walk::erase_dead(map, &|_| false, &|op| {
            ["arith.", "math."]
                .iter()
                .any(|own| name(op).starts_with(own))
        });
    }
    Ok(rewritten.without(replaced))
}

/// `x` of a tangent in a map's body, where it is one of the softplus of `x` and has the type of that.
fn argument<'c>(map: Op<'c>, tanh: Op<'c>) -> Option<Element<'c>> {
    let of = Element::inside(operands(tanh).first().copied()?, map).resolved();
    let x = match of.operands_of("arith.select").as_deref() {
        Some(&[is_far, own, near]) => {
            let x = softplus(near)?;
            (own.is(x) && is_beyond(is_far, x)).then_some(x)?
        }
        _ => softplus(of)?,
    };
    let element = |value: Val<'c>| match TensorType::of_value(value) {
        Some(tensor) => tensor.element,
        None => value.r#type(),
    };
    (element(x.value) == element(only_result(tanh)?)).then_some(x)
}

/// `x` of `log(1 + e^x)`.
fn softplus(element: Element<'_>) -> Option<Element<'_>> {
    let exponential = *element.operands_of("math.log1p")?.first()?;
    exponential.operands_of("math.exp")?.first().copied()
}

/// Whether a condition is that `x` is above a number from which the tangent is 1.
fn is_beyond(condition: Element<'_>, x: Element<'_>) -> bool {
    let predicate = defining(condition.value).and_then(|op| op.attribute("predicate").ok());
    let is_greater = predicate.and_then(attribute::integer);
    let is_greater = is_greater.is_some_and(|own| GREATER.contains(&own));
    match condition.operands_of("arith.cmpf").as_deref() {
        Some(&[own, than]) => {
            is_greater && own.is(x) && constant(than.value).is_some_and(|than| than >= FAR)
        }
        _ => false,
    }
}

/// Forms the tangent of `x` where that is at hand: in the map's body, or of a tensor in the place of a map that is the tangent
/// alone. The map, where nothing reads it any more.
fn replace<'c>(map: Op<'c>, tanh: Op<'c>, x: Element<'c>) -> PassResult<'c, Option<Op<'c>>> {
    let Some(result) = only_result(tanh) else {
        return Ok(None);
    };
    if let Some(x) = in_body(map, x) {
        replace_all_uses(result, quotient(&Builder::before(tanh), x)?);
        walk::erase(tanh);
        return Ok(None);
    }
    let shape = |value| TensorType::of_value(value).map(|own| own.shape);
    let alone = only_result(map).filter(|all| mapped(*all, "math.tanh").is_some());
    let Some(all) = alone.filter(|all| shape(*all) == shape(x.value)) else {
        return Ok(None);
    };
    let code = Code {
        builder: Builder::before(map),
    };
    let value = code.map(&[x.value], all.r#type(), |inner, of| {
        quotient(&inner.builder, of[0])
    })?;
    replace_all_uses(all, value);
    Ok(Some(map))
}

/// The scalar that an element is in a map's body.
fn in_body<'c>(map: Op<'c>, x: Element<'c>) -> Option<Val<'c>> {
    if x.is_inside(map) {
        return Some(x.value);
    }
    let at = operands(map).into_iter().position(|own| own == x.value)?;
    let block = blocks(map).first().copied()?;
    block_arguments(block).get(at).copied()
}

/// `n / (n + 2)` with `n = e (e + 2)` and `e = e^x`.
fn quotient<'c>(builder: &Builder<'c>, x: Val<'c>) -> PassResult<'c, Val<'c>> {
    let own = x.r#type();
    let is_narrow = types::bits(own) < Some(32);
    let wide = match is_narrow {
        true => builder.r#type(|context| Type::float32(context)),
        false => own,
    };
    let value = |name: &str, operands: &[Val<'c>]| builder.value(name, operands, wide, &[]);
    let number = |value| builder.constant(builder.float(wide, value));
    let x = match is_narrow {
        true => value("arith.extf", &[x])?,
        false => x,
    };
    let power = value("math.exp", &[x])?;
    let power = value("arith.minimumf", &[power, number(MOST)?])?;
    let two = number(2.0)?;
    let more = value("arith.addf", &[power, two])?;
    let over = value("arith.mulf", &[power, more])?;
    let under = value("arith.addf", &[over, two])?;
    // Both are in the range of approximations, which have no branches: 2 units in the last place.
    let approximate = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
    let quotient = builder.value("arith.divf", &[over, under], wide, &approximate)?;
    match is_narrow {
        true => builder.value("arith.truncf", &[quotient], own, &[]),
        false => Ok(quotient),
    }
}
