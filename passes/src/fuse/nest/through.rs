//! Loops that take elements of a part of a tensor (`x[:, :-1]` of which a loss takes one a row): they take them of the tensor, and no kernel copies the part.

use super::inline::source_index;
use super::is_nest;
use crate::PassResult;
use crate::fuse::operators::is_reshape;
use crate::fuse::rewritten::Rewritten;
use crate::fuse::sliced::Part;
use crate::fuse::space::source;
use crate::generalize::generic::extract;
use crate::ir::inline::{Values, copy_operation};
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use melior::ir::operation::OperationLike;

/// Has loops read tensors of which others take parts. `ops` are operations of a block in order; they are given without those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn read_through<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut passed = Vec::new();
    let nests = ops.iter().filter(|op| is_nest(**op));
    // A part is itself such loops, whose tensor may be a part.
    for op in nests.flat_map(|op| walk::nested(*op, &|_| true)) {
        let all = operands(op);
        let (Some((&table, at)), "tensor.extract") = (all.split_first(), name(op).as_str()) else {
            continue;
        };
        let (Some(result), true) = (only_result(op), is_of_part(table)) else {
            continue;
        };
        let builder = Builder::before(op);
        let (from, at) = behind(&builder, table, at.to_vec())?;
        replace_all_uses(result, extract(&builder, from, &at)?);
        passed.extend(defining(table));
        walk::erase(op);
    }
    Ok(rewritten.without(passed))
}

/// Whether a tensor is a part of another, or a reshape of one.
fn is_of_part(value: Val<'_>) -> bool {
    let reshaped = || {
        defining(value)
            .filter(|op| is_reshape(*op))
            .and_then(source)
    };
    let is_known = TensorType::of_value(value).is_some_and(|own| !own.shape.contains(&DYNAMIC));
    is_known && (Part::of(value).is_some() || reshaped().is_some_and(is_of_part))
}

/// Where an element of such a tensor is in the one that it is a part of.
fn behind<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    at: Vec<Val<'c>>,
) -> PassResult<'c, (Val<'c>, Vec<Val<'c>>)> {
    if !is_of_part(value) {
        return Ok((value, at));
    }
    if let Some(part) = Part::of(value) {
        let at = indices(builder, part.taken, &at);
        let from = operands(part.taken).first().copied().unwrap_or(value);
        return behind(builder, from, at);
    }
    match defining(value).and_then(source) {
        Some(from) => {
            let at = source_index(builder, value, from, &at)?;
            behind(builder, from, at)
        }
        None => Ok((value, at)),
    }
}

/// The indices of an extraction that is all of a body, at an index of its loops.
fn indices<'c>(builder: &Builder<'c>, taken: Op<'c>, at: &[Val<'c>]) -> Vec<Val<'c>> {
    let mut values = Values::new();
    let body = taken.block().map_or_else(Vec::new, walk::operations);
    for op in body.into_iter().take_while(|op| *op != taken) {
        let dim = op.attribute("dim").ok().and_then(attribute::integer);
        let own = dim.and_then(|dim| at.get(usize::try_from(dim).ok()?).copied());
        match (own.filter(|_| name(op) == "linalg.index"), only_result(op)) {
            (Some(own), Some(result)) => {
                values.insert(identity(result), own);
            }
            _ => {
                copy_operation(builder, op, &mut values);
            }
        }
    }
    let taken = operands(taken).into_iter().skip(1);
    taken
        .map(|index| values.get(&identity(index)).copied().unwrap_or(index))
        .collect()
}
