//! Functions near zero that upstream takes apart: `log1p` as `log(1 + x)` and `expm1` as `exp(x) - 1`, which lose all
//! digits of a small `x`. Here they are libm's, in f64, rounded once.

use super::ops::f64;
use super::scalar::convert;
use crate::error::PassResult;
use crate::ir::value::{name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, Op, types, walk};
use melior::ir::ValueLike;
use melior::ir::attribute::{FlatSymbolRefAttribute, StringAttribute};
use melior::ir::operation::OperationLike;

/// The operations and the functions of libm (C11, 7.12.6.3 and 7.12.6.9).
const FUNCTIONS: [(&str, &str); 2] = [("math.log1p", "log1p"), ("math.expm1", "expm1")];

/// Replaces the operations below a module by calls.
///
/// # Errors
/// When building fails.
pub(super) fn call<'c>(module: Op<'c>) -> PassResult<'c> {
    for (operation, function) in FUNCTIONS {
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
            declare(&Builder::at_end(first, module.location()), function)?;
        }
    }
    Ok(())
}

/// Whether an operation on scalars became a call.
fn call_one<'c>(op: Op<'c>, function: &str) -> PassResult<'c, bool> {
    let (Some(result), Some(&value)) = (only_result(op), operands(op).first()) else {
        return Ok(false);
    };
    if !types::is_float(value.r#type()) {
        return Ok(false);
    }
    let builder = Builder::before(op);
    let wide = convert(&builder, value, f64(&builder))?;
    let callee = builder.attribute(|context| FlatSymbolRefAttribute::new(context, function).into());
    let called = builder.value("func.call", &[wide], f64(&builder), &[("callee", callee)])?;
    replace_all_uses(result, convert(&builder, called, value.r#type())?);
    walk::erase(op);
    Ok(true)
}

fn declare<'c>(builder: &Builder<'c>, function: &str) -> PassResult<'c> {
    let text =
        |value: &str| builder.attribute(|context| StringAttribute::new(context, value).into());
    let f64 = f64(builder);
    let attributes = [
        ("sym_name", text(function)),
        ("sym_visibility", text("private")),
        (
            "function_type",
            builder.of_type(builder.function_type(&[f64], &[f64])),
        ),
    ];
    let body = vec![melior::ir::Region::new()];
    builder
        .operation("func.func", &[], &[], &attributes, body)
        .map(drop)
}
