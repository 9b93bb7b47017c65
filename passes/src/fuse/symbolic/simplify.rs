//! What front ends compute of sizes, as products of extents: `tensor.reshape`, whose shape is data, as a collapse and an expansion,
//! and integers and assertions about which there is nothing to ask.

use super::Symbols;
use super::infer::Extents;
use super::scalars::shape_of;
use crate::PassResult;
use crate::ir::value::{name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};

/// Rewrites a function that has some `tensor.reshape`, whose shape no launch can say: where all of a shape is known in extents, it
/// is a view. Extents of arguments that are used as one are asserted to be equal at its beginning.
///
/// # Errors
/// When an operation cannot be built.
pub fn simplify<'c>(func: Op<'c>) -> PassResult<'c> {
    let all = walk::blocks(func);
    let [block] = all.as_slice() else {
        return Ok(());
    };
    let ops = walk::operations(*block);
    if ops.iter().all(|op| name(*op) != "tensor.reshape") {
        return Ok(());
    }
    let Some(extents) = Extents::of(func, *block) else {
        return Ok(());
    };
    let symbols = extents.symbols();
    if let Some(first) = ops.first() {
        symbols.assert(&Builder::before(*first))?;
    }
    // Shapes are read of the integers that the function has, before others take their place.
    let (reshapes, others): (Vec<_>, Vec<_>) = ops
        .into_iter()
        .partition(|op| name(*op) == "tensor.reshape");
    for op in reshapes {
        replace(op, &extents, &symbols)?;
    }
    for op in others {
        number(op, &extents, &symbols)?;
    }
    // Users first: what is not read any more goes, and so do assertions that hold.
    for op in walk::operations(*block).into_iter().rev() {
        let holds = || {
            let condition = operands(op).first().copied();
            condition.and_then(|own| extents.number(own)) == Some(1)
        };
        let own = name(op);
        let is_scalar = own.starts_with("arith.") && op.region_count() == 0;
        if own == "cf.assert" && holds() || is_scalar && op.result_count() > 0 {
            walk::erase(op);
        }
    }
    Ok(())
}

/// Puts the product that an integer is in its place, where it is formed by other operations.
fn number<'c>(op: Op<'c>, extents: &Extents<'c>, symbols: &Symbols<'c>) -> PassResult<'c> {
    let plain = [
        "arith.constant",
        "arith.index_cast",
        "tensor.dim",
        "arith.cmpi",
    ];
    let own = name(op);
    let &[result] = results(op).as_slice() else {
        return Ok(());
    };
    let (true, Some(number), false) = (
        TensorType::of_value(result).is_none(),
        extents.number(result),
        plain.contains(&own.as_str()),
    ) else {
        return Ok(());
    };
    let builder = Builder::before(op);
    let r#type = result.r#type();
    let value = match (symbols.has(number), r#type.is_index()) {
        (true, true) => symbols.value(&builder, number)?,
        (true, false) => {
            let value = symbols.value(&builder, number)?;
            builder.value("arith.index_cast", &[value], r#type, &[])?
        }
        (false, _) => builder.constant(builder.parsed(&format!("{number} : {type}"))?)?,
    };
    replace_all_uses(result, value);
    Ok(())
}

fn replace<'c>(op: Op<'c>, extents: &Extents<'c>, symbols: &Symbols<'c>) -> PassResult<'c> {
    let (&[from, shape], builder) = (&operands(op)[..], Builder::before(op)) else {
        return Ok(());
    };
    let result = builder.result_of(op)?;
    let (Some(to), Some(own)) = (shape_of(extents, shape), extents.shape(from)) else {
        return Ok(());
    };
    let total = |shape: &[i64]| {
        shape
            .iter()
            .try_fold(1i64, |all, own| all.checked_mul(*own))
    };
    if total(&to) != total(own) || to.is_empty() || own.is_empty() {
        return Ok(());
    }
    let all = |rank: usize| vec![(0i64..).take(rank).collect::<Vec<_>>()];
    let flat = match own.len() {
        1 => from,
        rank => builder.collapse(from, &all(rank))?,
    };
    let types = builder.tensor_of(result)?.shape;
    let mut sizes = Vec::new();
    for (extent, number) in types.iter().zip(&to) {
        if *extent == DYNAMIC {
            sizes.push(symbols.value(&builder, *number)?);
        }
    }
    let own = match to.len() {
        1 => flat,
        rank => builder.expand(flat, &types, &all(rank), &sizes)?,
    };
    replace_all_uses(result, builder.with_type(own, result.r#type())?);
    walk::erase(op);
    Ok(())
}
