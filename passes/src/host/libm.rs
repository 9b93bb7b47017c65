//! Functions as libm's of f64, rounded once: this is what other targets are compared with.
//!
//! Upstream takes some apart (`log1p` as `log(1 + x)`, `expm1` as `exp(x) - 1`, `fpowi` as products), and calls libm's functions of f32
//! for others, which are off by a unit or two in their last place. Those that most programs spend their time in (exp, log, tanh,
//! erf, sqrt) stay libm's of f32.

use super::ops::f64;
use super::scalar::convert;
use crate::error::PassResult;
use crate::ir::value::{name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, Op, Val, types, walk};
use melior::ir::ValueLike;
use melior::ir::attribute::{FlatSymbolRefAttribute, StringAttribute};
use melior::ir::operation::OperationLike;

/// The operations, and the functions of libm with how many operands they have (C17, 7.12).
const FUNCTIONS: [(&str, &str, usize); 19] = [
    ("math.log1p", "log1p", 1),
    ("math.expm1", "expm1", 1),
    ("math.log10", "log10", 1),
    ("math.sin", "sin", 1),
    ("math.cos", "cos", 1),
    ("math.tan", "tan", 1),
    ("math.asin", "asin", 1),
    ("math.acos", "acos", 1),
    ("math.atan", "atan", 1),
    ("math.sinh", "sinh", 1),
    ("math.cosh", "cosh", 1),
    ("math.asinh", "asinh", 1),
    ("math.acosh", "acosh", 1),
    ("math.atanh", "atanh", 1),
    ("math.cbrt", "cbrt", 1),
    ("math.erfc", "erfc", 1),
    ("math.atan2", "atan2", 2),
    ("math.powf", "pow", 2),
    ("math.fpowi", "pow", 2),
];

/// Replaces the operations below a module by calls.
///
/// # Errors
/// When building fails.
pub(super) fn call<'c>(module: Op<'c>) -> PassResult<'c> {
    for (operation, function, arity) in FUNCTIONS {
        let mut called = false;
        for op in walk::nested(module, &|_| true) {
            if name(op) == operation {
                called |= call_one(op, function)?;
            }
        }
        let known = |op: &Op<'c>| {
            let name = op.attribute("sym_name").ok();
            let name = name.and_then(|name| StringAttribute::try_from(name).ok());
            name.is_some_and(|name| name.value() == function)
        };
        let body = walk::blocks(module).first().copied();
        let Some(first) = body.filter(|_| called) else {
            continue;
        };
        if !walk::operations(first).iter().any(known) {
            declare(&Builder::at_end(first, module.location()), function, arity)?;
        }
    }
    Ok(())
}

/// Whether an operation on scalars became a call.
fn call_one<'c>(op: Op<'c>, function: &str) -> PassResult<'c, bool> {
    let (Some(result), values) = (only_result(op), operands(op)) else {
        return Ok(false);
    };
    // An integer of 64 bits may have no float.
    let exact = |value: &Val<'c>| {
        types::is_float(value.r#type())
            || types::bits(value.r#type()).is_some_and(|bits| bits <= 32)
    };
    if !types::is_float(result.r#type()) || !values.iter().all(exact) {
        return Ok(false);
    }
    let builder = Builder::before(op);
    let mut wide = Vec::new();
    for value in values {
        wide.push(convert(&builder, value, f64(&builder))?);
    }
    let callee = builder.attribute(|context| FlatSymbolRefAttribute::new(context, function).into());
    let called = builder.value("func.call", &wide, f64(&builder), &[("callee", callee)])?;
    replace_all_uses(result, convert(&builder, called, result.r#type())?);
    walk::erase(op);
    Ok(true)
}

fn declare<'c>(builder: &Builder<'c>, function: &str, arity: usize) -> PassResult<'c> {
    let text =
        |value: &str| builder.attribute(|context| StringAttribute::new(context, value).into());
    let f64 = f64(builder);
    let attributes = [
        ("sym_name", text(function)),
        ("sym_visibility", text("private")),
        (
            "function_type",
            builder.of_type(builder.function_type(&vec![f64; arity], &[f64])),
        ),
    ];
    let body = vec![melior::ir::Region::new()];
    builder
        .operation("func.func", &[], &[], &attributes, body)
        .map(drop)
}
