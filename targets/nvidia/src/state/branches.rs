//! Branches in the body of loops that neighbours along a loop take together: a concatenation's, where what is concatenated has whole vectors.

use axe_passes::ir::value::{defining, name, operands};
use axe_passes::ir::walk::{blocks, operations};
use axe_passes::ir::{Op, Predicate, Val, attribute};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, TypeLike, ValueLike};

/// An index of the form `factor * i + offset`, where `i` is the index of the last parallel loop; other loops' may be in the offset,
/// which is then not known.
struct Linear {
    factor: i64,
    offset: Option<i64>,
}

/// Whether so many neighbours along a loop, the first of which is their multiple, go the same way through a body.
pub(crate) fn are_uniform(body: BlockRef<'_, '_>, last: usize, vector: i64) -> bool {
    let mut found = Vec::new();
    let known = collect(body, &mut found);
    let uniform = |op: &Op<'_>| {
        let condition = operands(*op).first().copied();
        condition.is_some_and(|condition| is_uniform(condition, last, vector))
    };
    known && found.iter().all(uniform)
}

/// Adds the branches of a block and of those below it; false where something else has regions, or a branch one side.
fn collect<'c>(block: BlockRef<'c, 'c>, found: &mut Vec<Op<'c>>) -> bool {
    operations(block)
        .into_iter()
        .all(|op| match name(op).as_str() {
            "scf.if" => {
                found.push(op);
                let sides = blocks(op);
                sides.len() == 2 && sides.into_iter().all(|side| collect(side, found))
            }
            _ => op.region_count() == 0,
        })
}

fn is_uniform(condition: Val<'_>, last: usize, vector: i64) -> bool {
    let Some(op) = defining(condition) else {
        return false;
    };
    let all = operands(op);
    let &[a, b] = all.as_slice() else {
        return false;
    };
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    match name(op).as_str() {
        "arith.andi" => is_uniform(a, last, vector) && is_uniform(b, last, vector),
        "arith.cmpi" => {
            let steps = [Predicate::Less as i64, Predicate::AtLeast as i64];
            let compared = number("predicate").is_some_and(|own| steps.contains(&own));
            match (linear(a, last), linear(b, last)) {
                (Some(a), Some(b)) if a.factor == 0 && b.factor == 0 => true,
                (Some(a), Some(b)) if a.factor == 1 && b.factor == 0 && compared => {
                    let apart = b.offset.zip(a.offset);
                    apart.is_some_and(|(b, a)| b.wrapping_sub(a) % vector == 0)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn linear(value: Val<'_>, last: usize) -> Option<Linear> {
    let op = defining(value).filter(|_| value.r#type().is_index())?;
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    let all = operands(op);
    let parts = || Some((linear(*all.first()?, last)?, linear(*all.get(1)?, last)?));
    let sum = |a: Linear, b: Linear, sign: i64| {
        let offset = a.offset.zip(b.offset);
        Some(Linear {
            factor: a.factor.checked_add(sign.checked_mul(b.factor)?)?,
            offset: offset.and_then(|(a, b)| a.checked_add(sign.checked_mul(b)?)),
        })
    };
    match name(op).as_str() {
        "linalg.index" => {
            let own = usize::try_from(number("dim")?).ok()? == last;
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
