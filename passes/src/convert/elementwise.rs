//! Operations without reductions: maps, casts, broadcasts, transposes.

use super::operands::{Space, align};
use super::scalar::{arguments, evaluate};
use super::simple::restore_units;
use super::structured::{Index, Structured};
use super::{Counts, Replacements, unsupported};
use crate::error::PassResult;
use crate::ir::value::identity;
use crate::ir::{Builder, Val};

/// Converts each used result on its own.
///
/// # Errors
/// When a result does not have every loop, or the body has no form in axe.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    counts: &mut Counts,
) -> PassResult<'c, Replacements<'c>> {
    op.convert_used(|number| result(builder, op, number, counts))
}

/// The loops that index the dimensions of a map, in order.
pub(super) fn loops_of(map: &[Index]) -> Vec<usize> {
    map.iter()
        .filter_map(|index| match index {
            Index::Loop(at) => Some(*at),
            Index::Zero => None,
        })
        .collect()
}

fn result<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    number: usize,
    counts: &mut Counts,
) -> PassResult<'c, Val<'c>> {
    let order = loops_of(op.result_map(number));
    if order.len() != op.reductions.len() {
        return Err(unsupported(
            op.op,
            "a result does not have every parallel loop",
        ));
    }
    let space = Space::new(op, order)?;
    let Some(root) = op.yielded(number) else {
        return Err(unsupported(op.op, "its body yields too few values"));
    };
    let slice = op.slice(root)?;
    let mut of = Vec::new();
    for (argument, value) in arguments(op, &slice, root) {
        if let Some(operand) = op.operand(argument) {
            of.push((value, align(builder, &space, operand)?));
        }
    }
    of.dedup_by_key(|(value, _)| identity(*value));
    let value = evaluate(builder, op, &space, root, &of, counts)?;
    restore_units(builder, op, number, &space, value)
}
