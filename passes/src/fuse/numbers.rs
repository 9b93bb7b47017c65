//! Numbers of rows and pages, as bodies of loops form them.

use crate::ir::value::{defining, name, operands};
use crate::ir::{Val, attribute};
use melior::ir::operation::OperationLike;

/// The loop that a value is the index of.
pub(super) fn loop_of(value: Val<'_>) -> Option<usize> {
    let op = defining(value).filter(|op| name(*op) == "linalg.index")?;
    let dim = op.attribute("dim").ok().and_then(attribute::integer)?;
    usize::try_from(dim).ok()
}

/// The integer that a value is.
pub(super) fn constant(value: Val<'_>) -> Option<i64> {
    let op = defining(value).filter(|op| name(*op) == "arith.constant")?;
    op.attribute("value").ok().and_then(attribute::integer)
}

/// What the number of one of so many rows or pages is read from, and whether one that is negative counts from the last on. Numbers that are
/// brought into their range are as they are: a kernel does that, too.
pub(super) fn number<'c>(value: Val<'c>, count: i64) -> Option<(Val<'c>, bool)> {
    let Some(op) = defining(value) else {
        return Some((value, false));
    };
    let of = operands(op);
    let is = |value: &Val<'c>, number| constant(*value) == Some(number);
    match (name(op).as_str(), of.as_slice()) {
        ("arith.index_cast" | "arith.extsi", &[own]) => number(own, count),
        ("arith.maxsi", [own, least]) if is(least, 0) => number(*own, count),
        ("arith.minsi", [own, most]) if is(most, count - 1) => number(*own, count),
        ("arith.select", &[condition, moved, own]) => {
            let (below, sum) = (defining(condition)?, defining(moved)?);
            let less = below
                .attribute("predicate")
                .ok()
                .and_then(attribute::integer)
                == Some(2);
            let wraps = less
                && matches!(operands(below).as_slice(), [x, zero] if *x == own && is(zero, 0))
                && name(below) == "arith.cmpi"
                && name(sum) == "arith.addi"
                && matches!(operands(sum).as_slice(), [x, by] if *x == own && is(by, count));
            let (from, twice) = number(own, count)?;
            (wraps && !twice).then_some((from, true))
        }
        _ => None,
    }
}
