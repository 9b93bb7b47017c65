//! Reductions of the rows of one tensor, moved to where the first of them is: they become one kernel, which reads it once.

use super::operators::{is_reshape, is_widening};
use super::space::{Cut, source};
use super::strided::rows_of;
use crate::ir::value::{defining, name};
use crate::ir::{Op, Val, walk};
use axe_dialect::ops;
use melior::ir::operation::OperationLike;
use mlir_sys as sys;

/// What a value is in memory: that which it is a reshape of, or a conversion to a wider type.
pub(super) fn stored(mut value: Val<'_>) -> Val<'_> {
    let same = |op: &Op<'_>| is_reshape(*op) || name(*op) == ops::CAST && is_widening(*op);
    while let Some(from) = defining(value).filter(same).and_then(source) {
        value = from;
    }
    value
}

/// Moves these reductions of a block behind its first one of the same rows, where what they reduce is at hand there.
pub fn gather(reductions: &[Op<'_>]) {
    let Some(block) = reductions.first().and_then(|op| op.block()) else {
        return;
    };
    let mut firsts: Vec<(Val<'_>, Cut, Op<'_>)> = Vec::new();
    for op in walk::operations(block) {
        let Some((from, cut)) = source(op).zip(rows_of(op)) else {
            continue;
        };
        let own = stored(from);
        let first = firsts
            .iter()
            .find(|(value, of, _)| (*value, *of) == (own, cut));
        match first {
            Some((_, _, first))
                if reductions.contains(&op) && is_before(defining(from), *first) =>
            {
                // SAFETY: both are live operations of one block, and the moved one's operand stays in front of it.
                unsafe { sys::mlirOperationMoveAfter(op.to_raw(), first.to_raw()) };
            }
            Some(_) => {}
            None => firsts.push((own, cut, op)),
        }
    }
}

/// Whether an operation, if there is one, is in front of another of its block or in none that this one is in.
fn is_before(op: Option<Op<'_>>, other: Op<'_>) -> bool {
    op.is_none_or(|op| {
        op.block() != other.block() || {
            // SAFETY: both are live operations of one block.
            unsafe { sys::mlirOperationIsBeforeInBlock(op.to_raw(), other.to_raw()) }
        }
    })
}
