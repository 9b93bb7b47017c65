//! Functions of math that upstream's conversions leave: classes of floats, clamps, a sine and a cosine at once.

use crate::error::PassResult;
use crate::ir::value::{name, operands, replace_all_uses, results};
use crate::ir::{Builder, Op, Val, pattern, walk};
use melior::ir::ValueLike;

/// Replaces the operations below a module that work on scalars.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn expand<'c>(module: Op<'c>) -> PassResult<'c> {
    for op in walk::nested(module, &|_| true) {
        let Some(values) = expanded(op)? else {
            continue;
        };
        for (result, value) in results(op).into_iter().zip(values) {
            replace_all_uses(result, value);
        }
        walk::erase(op);
    }
    Ok(())
}

/// What stands for the results of an operation; `None` where it stays.
fn expanded<'c>(op: Op<'c>) -> PassResult<'c, Option<Vec<Val<'c>>>> {
    let (name, operands) = (name(op), operands(op));
    let (builder, Some(x)) = (Builder::before(op), operands.first().copied()) else {
        return Ok(None);
    };
    if !crate::ir::types::is_float(x.r#type()) {
        return Ok(None);
    }
    let one = |name, operands: &[Val<'c>]| builder.value(name, operands, x.r#type(), &[]);
    Ok(match (name.as_str(), operands.as_slice()) {
        ("math.clampf", &[x, least, most]) => {
            let above = one("arith.maximumf", &[x, least])?;
            Some(vec![one("arith.minimumf", &[above, most])?])
        }
        ("math.sincos", &[x]) => Some(vec![one("math.sin", &[x])?, one("math.cos", &[x])?]),
        _ => pattern::class(&builder, &name, x)?.map(|class| vec![class]),
    })
}
