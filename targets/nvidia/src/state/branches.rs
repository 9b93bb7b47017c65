//! Branches in the body of loops that neighbours take together: a concatenation's, where what is concatenated has whole vectors; and
//! loops that they run together, for their bounds are the same.

use axe_passes::ir::value::{defining, name, operands};
use axe_passes::ir::{Predicate, Val, attribute};
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};

/// An index of the form `factor * i + offset`, where `i` is the index of one loop; other loops' may be in the offset, which is then
/// not known.
struct Linear {
    factor: i64,
    offset: Option<i64>,
}

/// Whether neighbours go the same way at a condition; `shares` has loops and how many neighbours there are along each, the first of
/// which is their multiple.
pub(crate) fn are_together(condition: Val<'_>, shares: &[(usize, i64)]) -> bool {
    let mut shares = shares.iter();
    shares.all(|(at, share)| is_uniform(condition, *at, *share))
}

/// Whether neighbours along these loops have the same value of numbers and indices of loops.
pub(crate) fn is_same(value: Val<'_>, shares: &[(usize, i64)]) -> bool {
    let Some(op) = defining(value) else {
        return false;
    };
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    match name(op).as_str() {
        "arith.constant" => true,
        "linalg.index" => {
            let dim = number("dim").and_then(|dim| usize::try_from(dim).ok());
            dim.is_some_and(|dim| shares.iter().all(|(at, _)| *at != dim))
        }
        "arith.addi" | "arith.subi" | "arith.muli" | "arith.minui" | "arith.minsi"
        | "arith.ceildivui" => operands(op).into_iter().all(|value| is_same(value, shares)),
        _ => false,
    }
}

/// Whether an index has the numbers from a multiple of `share` on at neighbours along this loop, in order.
pub(crate) fn counts_from_multiple(value: Val<'_>, (along, share): (usize, i64)) -> bool {
    if let Some(op) = defining(value).filter(|op| name(*op) == "arith.select") {
        let all = operands(op);
        let (condition, mut sides) = (all.first(), all.iter().skip(1));
        return condition.is_some_and(|condition| is_uniform(*condition, along, share))
            && sides.all(|side| counts_from_multiple(*side, (along, share)));
    }
    let own = linear(value, along).filter(|own| own.factor == 1);
    own.and_then(|own| own.offset)
        .is_some_and(|first| first % share == 0)
}

fn is_uniform(condition: Val<'_>, along: usize, share: i64) -> bool {
    let Some(op) = defining(condition) else {
        return false;
    };
    let all = operands(op);
    let &[a, b] = all.as_slice() else {
        return false;
    };
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    match name(op).as_str() {
        "arith.andi" => is_uniform(a, along, share) && is_uniform(b, along, share),
        "arith.cmpi" => {
            let steps = [Predicate::Less as i64, Predicate::AtLeast as i64];
            let compared = number("predicate").is_some_and(|own| steps.contains(&own));
            match (linear(a, along), linear(b, along)) {
                (Some(a), Some(b)) if a.factor == 0 && b.factor == 0 => true,
                (Some(a), Some(b)) if a.factor == 1 && b.factor == 0 && compared => {
                    let apart = b.offset.zip(a.offset);
                    apart.is_some_and(|(b, a)| b.wrapping_sub(a) % share == 0)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn linear(value: Val<'_>, along: usize) -> Option<Linear> {
    let op = defining(value).filter(|_| value.r#type().is_index())?;
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    let all = operands(op);
    let parts = || Some((linear(*all.first()?, along)?, linear(*all.get(1)?, along)?));
    let sum = |a: Linear, b: Linear, sign: i64| {
        let offset = a.offset.zip(b.offset);
        Some(Linear {
            factor: a.factor.checked_add(sign.checked_mul(b.factor)?)?,
            offset: offset.and_then(|(a, b)| a.checked_add(sign.checked_mul(b)?)),
        })
    };
    match name(op).as_str() {
        "linalg.index" => {
            let own = usize::try_from(number("dim")?).ok()? == along;
            Some(Linear {
                factor: i64::from(own),
                offset: own.then_some(0),
            })
        }
        "arith.constant" => Some(Linear {
            factor: 0,
            offset: Some(number("value")?),
        }),
        "arith.addi" => parts().and_then(|(a, b)| sum(a, b, 1)),
        "arith.subi" => parts().and_then(|(a, b)| sum(a, b, -1)),
        _ => None,
    }
}
