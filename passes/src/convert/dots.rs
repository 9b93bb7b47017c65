//! Products of vectors, each with one of its own: what is summed up of them is a reduction of rows, not a product of matrices with one row and one column.

use super::Counts;
use super::contraction::{accumulator, with_element};
use super::operands::transpose;
use super::structured::Structured;
use super::term::Term;
use super::units::Units;
use crate::build::Code;
use crate::error::PassResult;
use crate::ir::{Builder, Val, types};
use axe_dialect::Combiner;

/// Converts a sum of products of which neither side has a loop of several steps that the other lacks; none where the operands do not have all loops
/// but those of one step, or are no floats.
///
/// # Errors
/// When building fails.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    [left, right]: [&Term<'c>; 2],
    result: &[usize],
    counts: &mut Counts,
) -> PassResult<'c, Option<Val<'c>>> {
    let units = Units::of(builder, op, result, |_| true)?;
    let [own, other] = [left, right].map(|term| units.left_of(&term.loops));
    let kept = units.left_of(result);
    let same = own.len() == other.len() && other.iter().all(|at| own.contains(at));
    // Elements of tensors of the same loops are a reduction's own.
    let same = same && left.loops.iter().any(|at| !right.loops.contains(at));
    let are_plain = [left, right]
        .iter()
        .all(|term| term.is_operand() && term.shift().is_none());
    let Some(init) = op
        .inits
        .first()
        .filter(|_| are_plain && same && !units.loops.is_empty())
    else {
        return Ok(None);
    };
    let element = builder.tensor_of(*init)?.element;
    if !types::is_float(element) || !kept.iter().all(|at| own.contains(at)) {
        return Ok(None);
    }
    let wide = accumulator(builder, element);
    let mut factors = Vec::new();
    for term in [left, right] {
        let factor = units.dropped(builder, term.formed(builder, op, counts)?)?;
        let places = |at: &usize| factor.loops.iter().position(|have| have == at);
        let order: Vec<usize> = own.iter().filter_map(places).collect();
        let value = transpose(builder, factor.value, &order)?;
        factors.push(with_element(builder, value, wide)?);
    }
    let code = Code { builder: *builder };
    let shape = factors
        .first()
        .map(|value| builder.tensor_of(*value))
        .transpose()?;
    let mut shape = shape.map(|own| own.shape).unwrap_or_default();
    counts.maps += 1;
    let mut value = code.map(&factors, builder.tensor(&shape, wide)?, |inner, of| {
        inner.builder.value("arith.mulf", of, wide, &[])
    })?;
    for (dim, at) in own.iter().enumerate().rev() {
        if !kept.contains(at) {
            shape.remove(dim);
            let dim = i64::try_from(dim).unwrap_or(i64::MAX);
            counts.reductions += 1;
            value = code.reduce(Combiner::Add, value, dim, builder.tensor(&shape, wide)?)?;
        }
    }
    let value = with_element(builder, value, element)?;
    let own = own.iter().filter(|at| kept.contains(at));
    let own: Vec<_> = own.collect();
    let order: Vec<usize> = kept
        .iter()
        .filter_map(|at| own.iter().position(|have| *have == at))
        .collect();
    let value = transpose(builder, value, &order)?;
    units.added(builder, value).map(Some)
}
