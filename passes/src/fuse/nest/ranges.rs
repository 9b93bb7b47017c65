//! Between which numbers an index of a body lies: sums of loops' indices and numbers, under the conditions around their reader.

use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{DYNAMIC, Op, Predicate, Val, attribute, walk};
use melior::ir::operation::OperationLike;

/// Conditions that are looked through around a reader.
const MOST_CONDITIONS: usize = 16;

/// The least and the greatest number.
type Range = [i64; 2];

/// Whether an index is known to be in an extent where `reader` has it, in the body of loops of these extents.
pub(super) fn is_below(extents: &[i64], at: Val<'_>, reader: Op<'_>, extent: i64) -> bool {
    let conditions = conditions(reader);
    let known = range(extents, at, &conditions);
    extent != DYNAMIC && known.is_some_and(|[least, most]| least >= 0 && most < extent)
}

/// The range of an index; none where nothing is known.
fn range<'c>(extents: &[i64], at: Val<'c>, conditions: &[(Val<'c>, Range)]) -> Option<Range> {
    let op = defining(at)?;
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    let parts = || {
        let all = operands(op);
        let part = |at: usize| range(extents, *all.get(at)?, conditions);
        Some((part(0)?, part(1)?))
    };
    let [mut least, mut most] = match name(op).as_str() {
        "linalg.index" => {
            let extent = extents.get(usize::try_from(number("dim")?).ok()?)?;
            [
                0,
                if *extent == DYNAMIC {
                    i64::MAX
                } else {
                    extent - 1
                },
            ]
        }
        "arith.constant" => [number("value")?; 2],
        "arith.addi" => {
            let (a, b) = parts()?;
            [a[0].checked_add(b[0])?, a[1].checked_add(b[1])?]
        }
        "arith.subi" => {
            let (a, b) = parts()?;
            [a[0].checked_sub(b[1])?, a[1].checked_sub(b[0])?]
        }
        "arith.muli" => {
            let (a, b) = parts()?;
            if a[0] < 0 || b[0] < 0 {
                return None;
            }
            [a[0].checked_mul(b[0])?, a[1].checked_mul(b[1])?]
        }
        "arith.divui" | "arith.divsi" => {
            let (a, by) = divided(parts()?)?;
            a.map(|end| end / by)
        }
        "arith.remui" | "arith.remsi" => {
            let (a, by) = divided(parts()?)?;
            [0, a[1].min(by - 1)]
        }
        _ => return None,
    };
    for (_, [from, to]) in conditions
        .iter()
        .filter(|(value, _)| identity(*value) == identity(at))
    {
        (least, most) = (least.max(*from), most.min(*to));
    }
    Some([least, most])
}

/// What is divided, not negative, and the number that it is divided by.
fn divided((a, by): (Range, Range)) -> Option<(Range, i64)> {
    (a[0] >= 0 && by[0] > 0 && by[0] == by[1]).then_some((a, by[0]))
}

/// What the branches that an operation lies in say of values.
fn conditions<'c>(reader: Op<'c>) -> Vec<(Val<'c>, Range)> {
    let mut found = Vec::new();
    let mut child = reader;
    while let Some(parent) = child
        .parent_operation()
        .filter(|_| found.len() < MOST_CONDITIONS)
    {
        if name(parent) == "scf.if" {
            let first = walk::blocks(parent).first().copied();
            let holds = first.is_some_and(|block| walk::operations(block).contains(&child));
            if let Some(condition) = operands(parent).first() {
                add(*condition, holds, &mut found);
            }
        }
        child = parent;
    }
    found
}

/// Adds what a condition that holds, or does not, says.
fn add<'c>(condition: Val<'c>, holds: bool, found: &mut Vec<(Val<'c>, Range)>) {
    let Some(op) = defining(condition) else {
        return;
    };
    let all = operands(op);
    if name(op) == "arith.andi" && holds {
        return all
            .into_iter()
            .for_each(|condition| add(condition, true, found));
    }
    let (true, &[value, bound]) = (name(op) == "arith.cmpi", all.as_slice()) else {
        return;
    };
    let bound = defining(bound).filter(|op| name(*op) == "arith.constant");
    let bound = bound.and_then(|op| attribute::integer(op.attribute("value").ok()?));
    let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
    let (Some(bound), Some(predicate)) = (bound, predicate) else {
        return;
    };
    let is = |wanted: Predicate| predicate == wanted as i64;
    let below = [i64::MIN, bound.saturating_sub(1)];
    let above = [bound, i64::MAX];
    if is(Predicate::Less) {
        found.push((value, if holds { below } else { above }));
    } else if is(Predicate::AtLeast) {
        found.push((value, if holds { above } else { below }));
    }
}
