//! Loops that read tables at numbers which a broadcast repeats (`torch.gather` of whole rows): they read each number where it is, and no kernel writes all of
//! its copies.

use super::{Nest, is_nest, maps, reductions};
use crate::PassResult;
use crate::fuse::operators::dims_of;
use crate::fuse::rewritten::Rewritten;
use crate::fuse::space::source;
use crate::ir::value::{defining, name, operands};
use crate::ir::{Builder, Op, Val, walk};
use axe_dialect::ops;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{AffineMap, ValueLike};
use mlir_sys as sys;

/// Gives such loops what is repeated. `ops` are operations of a block in order; they are given without those that nothing reads any more.
///
/// # Errors
/// When an attribute cannot be built.
pub fn read_repeated<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for op in ops.iter().filter(|op| reads_tables(**op)) {
        while let Some((at, broadcast)) = repeated(*op) {
            read_source(*op, at, broadcast)?;
            replaced.push(broadcast);
        }
    }
    Ok(rewritten.without(replaced))
}

/// Whether a body takes elements of tensors, at each point of its result: what no input says of extents, that does.
fn reads_tables(op: Op<'_>) -> bool {
    let inside = || walk::nested(op, &|_| true).into_iter();
    let is_pointwise = is_nest(op) && !reductions(op).contains(&true);
    is_pointwise && inside().any(|inner| name(inner) == "tensor.extract") && Nest::read(op).is_ok()
}

/// An input of loops that a broadcast gives, each of whose dimensions has a loop or one place.
fn repeated<'c>(op: Op<'c>) -> Option<(usize, Op<'c>)> {
    let all = operands(op);
    let inputs = all.len().checked_sub(op.result_count())?;
    let mut inputs = all.into_iter().take(inputs).enumerate();
    inputs.find_map(|(at, value): (usize, Val<'c>)| {
        let broadcast = defining(value).filter(|own| name(*own) == ops::BROADCAST)?;
        kept(op, at, broadcast).map(|_| (at, broadcast))
    })
}

/// The map of an input's source.
fn kept<'c>(op: Op<'c>, at: usize, broadcast: Op<'c>) -> Option<String> {
    let map: AffineMap<'c> = *maps(op)?.get(at)?;
    let added = dims_of(broadcast)?;
    let kept = (0..map.result_count())
        .filter(|dim| i64::try_from(*dim).is_ok_and(|dim| !added.contains(&dim)));
    let kept = kept.map(|dim| map.result(dim).ok().map(|index| index.to_string()));
    let kept: Vec<_> = kept.collect::<Option<_>>()?;
    let dims: Vec<_> = (0..map.dim_count()).map(|dim| format!("d{dim}")).collect();
    Some(format!(
        "affine_map<({}) -> ({})>",
        dims.join(", "),
        kept.join(", ")
    ))
}

/// Has loops read what a broadcast repeats.
fn read_source<'c>(op: Op<'c>, at: usize, broadcast: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    let all = maps(op).unwrap_or_default();
    let own = kept(op, at, broadcast);
    let written = all.iter().enumerate().map(|(number, map)| match &own {
        Some(own) if number == at => own.clone(),
        _ => format!("affine_map<{map}>"),
    });
    let written: Vec<_> = written.collect();
    let written = builder.parsed(&format!("[{}]", written.join(", ")))?;
    let (Some(from), Ok(position)) = (source(broadcast), isize::try_from(at)) else {
        return Ok(());
    };
    // SAFETY: the operation is live, the position is that of an input, whose elements have the type that they had, and nothing else refers to its
    // attributes.
    unsafe {
        sys::mlirOperationSetOperand(op.to_raw(), position, from.to_raw());
        OperationRefMut::from_raw(op.to_raw()).set_attribute("indexing_maps", written);
    }
    Ok(())
}
