//! What signs the elements of values have, as far as the operations that form them say.

use super::{LOOP_BOUNDS, combiner, constant, constant_integer, element, memory};
use crate::ir::value::{argument_number, defining, identity, name, operands, parent, results};
use crate::ir::walk::{blocks, operations};
use crate::ir::{Op, Val, attribute, types};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;
use std::collections::HashSet;

/// `olt`, `ole`, `ult` and `ule` of `arith.cmpf`.
const LESS: [i64; 4] = [4, 5, 11, 12];
/// `ogt`, `oge`, `ugt` and `uge`.
const GREATER: [i64; 4] = [2, 3, 9, 10];
/// Operations that are followed to what is at most zero.
const DEEPEST: usize = 16;

/// Whether a difference is of what is at most zero and what is not negative: it is as far from zero as both are together.
pub(super) fn is_away_from_zero(difference: Op<'_>) -> bool {
    match operands(difference)[..] {
        [from, less] => is_not_positive(from, DEEPEST) && is_not_negative(less),
        _ => false,
    }
}

/// Whether no element of a value is above zero.
fn is_not_positive(value: Val<'_>, most: usize) -> bool {
    if let Some(number) = constant(value) {
        return number <= 0.0;
    }
    let of = |value: &Val<'_>| most > 0 && is_not_positive(*value, most - 1);
    let Some(op) = defining(value) else {
        return read_by_map(value).is_some_and(|from| of(&from));
    };
    let all = operands(op);
    match name(op).as_str() {
        "arith.minimumf" | "arith.minnumf" => all.iter().any(of),
        "arith.negf" => all.iter().all(|value| is_not_negative(*value)),
        "arith.extf" | "arith.truncf" | ops::BROADCAST | ops::FILL => all.first().is_some_and(of),
        "arith.select" => match all[..] {
            [condition, yes, no] => {
                (of(&yes) || says_below(condition, yes, true))
                    && (of(&no) || says_below(condition, no, false))
            }
            _ => false,
        },
        ops::MAP => {
            let last = blocks(op).first().and_then(|body| operations(*body).pop());
            last.is_some_and(|last| operands(last).iter().all(of))
        }
        _ => false,
    }
}

/// Whether a condition that holds, or does not, says that a value is at most zero, or no number.
fn says_below(condition: Val<'_>, value: Val<'_>, holds: bool) -> bool {
    let Some(op) = defining(condition).filter(|op| name(*op) == "arith.cmpf") else {
        return false;
    };
    let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
    let (Some(predicate), &[a, b]) = (predicate, &operands(op)[..]) else {
        return false;
    };
    let is_zero = |own: Val<'_>| constant(repeated(own)).is_some_and(|own| own == 0.0);
    let (below, above) = match (a == value && is_zero(b), b == value && is_zero(a)) {
        (true, _) => (LESS, GREATER),
        (_, true) => (GREATER, LESS),
        _ => return false,
    };
    let wanted = if holds { below } else { above };
    wanted.contains(&predicate)
}

/// What a value of a map's body is an element of, and repeats.
fn repeated(value: Val<'_>) -> Val<'_> {
    let from = match defining(value) {
        None => read_by_map(value),
        Some(op) if [ops::BROADCAST, ops::FILL].contains(&name(op).as_str()) => {
            operands(op).first().copied()
        }
        Some(_) => None,
    };
    from.map_or(value, repeated)
}

/// The tensor that an argument of a map's body is an element of.
fn read_by_map(argument: Val<'_>) -> Option<Val<'_>> {
    let around = parent(argument).filter(|op| name(*op) == ops::MAP)?;
    operands(around).get(argument_number(argument)?).copied()
}

/// Whether no element of a value is below zero, as far as the operations that form it say.
#[must_use]
pub fn is_not_negative(value: Val<'_>) -> bool {
    holds(value, &mut HashSet::new())
}

/// Whether a scalar is a sum of a number of at least one and of what is not negative.
#[must_use]
pub fn is_at_least_one(value: Val<'_>) -> bool {
    let of = |at: Val<'_>, other: Val<'_>| {
        constant(at).is_some_and(|at| at >= 1.0) && is_not_negative(other)
    };
    match defining(value).map(|op| (name(op), operands(op))) {
        Some((name, all)) if name == "arith.addf" => match all[..] {
            [a, b] => of(a, b) || of(b, a),
            _ => false,
        },
        _ => false,
    }
}

/// All of what a value is formed of has to hold: what is being looked at, in a loop, holds as far as that is concerned.
pub(super) fn holds<'c>(value: Val<'c>, seen: &mut HashSet<usize>) -> bool {
    if !seen.insert(identity(value)) {
        return true;
    }
    if let Some(number) = constant(value) {
        return number >= 0.0;
    }
    let Some(op) = defining(value) else {
        return argument_holds(value, seen);
    };
    let all = operands(op);
    let mut every = |values: &[Val<'c>]| values.iter().all(|value| holds(*value, seen));
    match name(op).as_str() {
        "math.exp" | "math.exp2" | "math.sqrt" | "math.rsqrt" | "math.absf" | "arith.uitofp" => {
            true
        }
        "arith.mulf" if all.first() == all.get(1) => true,
        "math.fpowi"
            if all
                .get(1)
                .copied()
                .and_then(constant_integer)
                .is_some_and(|n| n % 2 == 0) =>
        {
            true
        }
        "arith.mulf" | "arith.divf" | "arith.addf" | "arith.maximumf" | "arith.minimumf"
        | "arith.extf" | "arith.truncf" => every(&all),
        "arith.select" => every(all.get(1..).unwrap_or(&[])),
        "math.log1p" => every(&all),
        ops::BROADCAST | ops::EXTRACT_SLICE | ops::TRANSPOSE | ops::FILL => {
            every(all.get(..1).unwrap_or(&[]))
        }
        ops::COPY => all.first().is_some_and(|from| memory::holds(*from, seen)),
        ops::CAST => {
            let from = all.first().copied();
            from.is_some_and(|from| element(from).is_some_and(types::is_float) && holds(from, seen))
        }
        ops::ALL_GATHER => {
            let at = results(op).iter().position(|result| *result == value);
            at.and_then(|at| all.get(at))
                .is_some_and(|from| holds(*from, seen))
        }
        ops::MASK => match (all.first(), all.last()) {
            (Some(&source), Some(&other)) => every(&[source, other]),
            _ => false,
        },
        ops::REDUCE => {
            let keeps = [Combiner::Add, Combiner::Mul, Combiner::Max, Combiner::Min];
            combiner(op).is_some_and(|own| keeps.contains(&own)) && every(&all)
        }
        ops::MAP => {
            let last = blocks(op).first().and_then(|body| operations(*body).pop());
            last.is_some_and(|last| operands(last).iter().all(|value| holds(*value, seen)))
        }
        "scf.for" => {
            let at = results(op).iter().position(|result| *result == value);
            at.is_some_and(|at| carried_holds(op, at, seen))
        }
        _ => false,
    }
}

/// The same for the argument of a map's or a loop's body.
fn argument_holds<'c>(argument: Val<'c>, seen: &mut HashSet<usize>) -> bool {
    let (Some(around), Some(at)) = (parent(argument), argument_number(argument)) else {
        return false;
    };
    match name(around).as_str() {
        ops::MAP => operands(around)
            .get(at)
            .is_some_and(|from| holds(*from, seen)),
        "scf.for" => at
            .checked_sub(1)
            .is_some_and(|at| carried_holds(around, at, seen)),
        _ => false,
    }
}

fn carried_holds(around: Op<'_>, at: usize, seen: &mut HashSet<usize>) -> bool {
    let start = operands(around).get(LOOP_BOUNDS + at).copied();
    let last = blocks(around)
        .first()
        .and_then(|body| operations(*body).pop());
    let next = last.and_then(|last| operands(last).get(at).copied());
    match (start, next) {
        (Some(start), Some(next)) => holds(start, seen) && holds(next, seen),
        _ => false,
    }
}
