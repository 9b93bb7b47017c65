//! Between which numbers an index of a body lies: sums of loops' indices and numbers, under the conditions around their reader.

use crate::ir::value::{defining, identity, name, operands, parent};
use crate::ir::{DYNAMIC, Op, Predicate, Val, attribute, types, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::cell::Cell;

/// Conditions that are looked through around a reader.
const MOST_CONDITIONS: usize = 16;

/// Operations that are looked at for one range: a chain of choices has two to the number of its links of ways through it.
const MOST_OPERATIONS: usize = 1 << 12;

/// The least and the greatest number.
type Range = [i64; 2];

/// The extents of loops, and how many operations may still be looked at.
struct Loops<'a> {
    extents: &'a [i64],
    left: Cell<usize>,
}

impl<'a> Loops<'a> {
    fn new(extents: &'a [i64]) -> Self {
        let left = Cell::new(MOST_OPERATIONS);
        Self { extents, left }
    }
}

/// Whether an index is known to be in an extent where `reader` has it, in the body of loops of these extents.
pub(super) fn is_below(extents: &[i64], at: Val<'_>, reader: Op<'_>, extent: i64) -> bool {
    let conditions = conditions(reader);
    let known = range(&Loops::new(extents), at, &conditions);
    extent != DYNAMIC && known.is_some_and(|[least, most]| least >= 0 && most < extent)
}

/// The range of an integer where `reader` has it; none where nothing is known.
pub(super) fn range_of(extents: &[i64], at: Val<'_>, reader: Op<'_>) -> Option<Range> {
    range(&Loops::new(extents), at, &conditions(reader))
}

/// Numbers of f32 are whole ones up to this.
const WHOLE: i64 = 1 << 24;
/// What rounding to f32 may add to a number, of it.
const ROUNDED: f64 = 1.0 / (1 << 23) as f64;

/// Between which numbers a float lies that is computed of integers and numbers, where `reader` has it: it is no NaN then. None where
/// nothing is known.
pub(super) fn floats_of(extents: &[i64], at: Val<'_>, reader: Op<'_>) -> Option<[f64; 2]> {
    floats(&Loops::new(extents), at, &conditions(reader))
}

fn floats<'c>(loops: &Loops<'_>, at: Val<'c>, conditions: &[(Val<'c>, Range)]) -> Option<[f64; 2]> {
    loops.left.set(loops.left.get().checked_sub(1)?);
    let op = defining(at)?;
    let is_known = matches!(types::bits(at.r#type()), Some(32 | 64));
    let all = operands(op);
    let part = |at: usize| floats(loops, *all.get(at)?, conditions);
    let ends = |all: &[f64]| {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let wide = |end: f64, by: f64| end + by * end.abs() * ROUNDED;
        let known = least.abs() < WHOLE as f64 && most.abs() < WHOLE as f64;
        known.then_some([wide(least, -1.0), wide(most, 1.0)])
    };
    match name(op).as_str() {
        _ if !is_known => None,
        "arith.constant" => {
            let value = op.attribute("value").ok().and_then(attribute::float)?;
            (value.abs() < f64::INFINITY).then_some([value; 2])
        }
        "arith.sitofp" => {
            let [least, most] = range(loops, *all.first()?, conditions)?;
            (least > -WHOLE && most < WHOLE).then_some([least as f64, most as f64])
        }
        "arith.addf" => {
            let (a, b) = (part(0)?, part(1)?);
            ends(&[a[0] + b[0], a[1] + b[1]])
        }
        "arith.subf" => {
            let (a, b) = (part(0)?, part(1)?);
            ends(&[a[0] - b[1], a[1] - b[0]])
        }
        "arith.mulf" => {
            let (a, b) = (part(0)?, part(1)?);
            ends(&[a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]])
        }
        "arith.select" => {
            let (a, b) = (part(1)?, part(2)?);
            Some([a[0].min(b[0]), a[1].max(b[1])])
        }
        _ => None,
    }
}

/// The range of an index; none where nothing is known.
fn range<'c>(loops: &Loops<'_>, at: Val<'c>, conditions: &[(Val<'c>, Range)]) -> Option<Range> {
    loops.left.set(loops.left.get().checked_sub(1)?);
    let Some(op) = defining(at) else {
        return turns(at, |bound| range(loops, bound, conditions));
    };
    let number = |key| op.attribute(key).ok().and_then(attribute::integer);
    let parts = || {
        let all = operands(op);
        let part = |at: usize| range(loops, *all.get(at)?, conditions);
        Some((part(0)?, part(1)?))
    };
    let [mut least, mut most] = match name(op).as_str() {
        "linalg.index" => {
            let extent = loops.extents.get(usize::try_from(number("dim")?).ok()?)?;
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
        "arith.index_cast" | "arith.extsi" => range(loops, *operands(op).first()?, conditions)?,
        "arith.fptosi" => {
            let ends = floats(loops, *operands(op).first()?, conditions)?;
            let whole = ends.iter().all(|end| end.abs() < WHOLE as f64);
            whole.then(|| ends.map(|end| end.trunc() as i64))?
        }
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
        "arith.ceildivui" => {
            let (a, by) = divided(parts()?)?;
            a.map(|end| end / by + i64::from(end % by != 0))
        }
        "arith.minsi" | "arith.minui" => {
            let (a, b) = parts()?;
            if a[0] < 0 || b[0] < 0 {
                return None;
            }
            [a[0].min(b[0]), a[1].min(b[1])]
        }
        "arith.remui" | "arith.remsi" => {
            let (a, by) = divided(parts()?)?;
            [0, a[1].min(by - 1)]
        }
        "arith.select" => {
            let &[condition, a, b] = operands(op).as_slice() else {
                return None;
            };
            let where_chosen = |value, holds| {
                let mut known = conditions.to_vec();
                add(condition, holds, &mut known);
                range(loops, value, &known)
            };
            let (a, b) = (where_chosen(a, true)?, where_chosen(b, false)?);
            [a[0].min(b[0]), a[1].max(b[1])]
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

/// The range of the index of an `scf.for`, of the ranges of its bounds: where it begins at a multiple of its step, it is one.
fn turns<'c>(index: Val<'c>, range: impl Fn(Val<'c>) -> Option<Range>) -> Option<Range> {
    let op = parent(index).filter(|op| name(*op) == "scf.for")?;
    let own = walk::blocks(op).first().copied()?;
    if walk::block_arguments(own).first() != Some(&index) {
        return None;
    }
    let &[low, high, step] = operands(op).get(..3)? else {
        return None;
    };
    let (least, most) = (range(low)?[0], range(high)?[1].checked_sub(1)?);
    let whole = range(step).filter(|step| step[0] == step[1] && step[0] > 0);
    let whole = whole
        .map(|step| step[0])
        .filter(|step| factor(low) % step == 0);
    let most = whole.map_or(most, |step| most.div_euclid(step).saturating_mul(step));
    Some([least, most])
}

/// A number that an index is a multiple of.
fn factor(at: Val<'_>) -> i64 {
    let Some(op) = defining(at) else { return 1 };
    let all = operands(op);
    let of = |at: usize| all.get(at).map_or(1, |value| factor(*value));
    match name(op).as_str() {
        "arith.constant" => {
            let value = op.attribute("value").ok().and_then(attribute::integer);
            value.and_then(i64::checked_abs).unwrap_or(1)
        }
        "arith.muli" => of(0).checked_mul(of(1)).unwrap_or(1),
        "arith.ceildivui" => match all.iter().map(|value| constant(*value)).collect::<Vec<_>>()[..]
        {
            [Some(a), Some(by)] if a >= 0 && by > 0 => a / by + i64::from(a % by != 0),
            _ => 1,
        },
        _ => 1,
    }
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

fn constant(value: Val<'_>) -> Option<i64> {
    let op = defining(value).filter(|op| name(*op) == "arith.constant")?;
    attribute::integer(op.attribute("value").ok()?)
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
    let bound = constant(bound);
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
