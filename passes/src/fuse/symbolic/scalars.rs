//! Integers of a function, as far as they are products of extents.

use super::infer::Extents;
use crate::fuse::operators::splat;
use crate::ir::value::{identity, name, operands, results};
use crate::ir::{Op, TensorType, Val, attribute, types, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// The numbers of arith.cmpi's predicates.
const EQUAL: i64 = 0;
const DIFFERENT: i64 = 1;
const LESS: i64 = 2;
const AT_MOST: i64 = 3;
const MORE: i64 = 4;
const AT_LEAST: i64 = 5;

/// `a predicate b` of numbers that are not negative products of extents, where it holds whatever the extents are.
fn compare(extents: &Extents<'_>, predicate: i64, a: i64, b: i64) -> Option<bool> {
    let known = |number: i64| !extents.has(number);
    if a == b || known(a) && known(b) {
        return Some(match predicate {
            EQUAL => a == b,
            DIFFERENT => a != b,
            LESS => a < b,
            AT_MOST => a <= b,
            MORE => a > b,
            AT_LEAST => a >= b,
            _ => return None,
        });
    }
    // An extent is never negative.
    match predicate {
        LESS if known(b) && b <= 0 => Some(false),
        AT_LEAST if known(b) && b <= 0 => Some(true),
        MORE if known(a) && a <= 0 => Some(false),
        AT_MOST if known(a) && a <= 0 => Some(true),
        _ => None,
    }
}

/// The number that a scalar operation gives of others; none for one that is no product of extents.
pub(super) fn evaluate<'c>(
    extents: &Extents<'c>,
    op: Op<'c>,
    number: &impl Fn(Val<'c>) -> Option<i64>,
) -> Option<i64> {
    let all = operands(op);
    let of = |at: usize| all.get(at).copied().and_then(number);
    let known = |number: i64| !extents.has(number);
    let plain = |f: fn(i64, i64) -> Option<i64>| {
        let (a, b) = (of(0)?, of(1)?);
        (known(a) && known(b)).then(|| f(a, b)).flatten()
    };
    match name(op).as_str() {
        "arith.constant" => {
            let value = op.attribute("value").ok().and_then(attribute::integer)?;
            // MLIR reads a bit as a number with a sign.
            Some(if is_bit(results(op).first()) {
                value & 1
            } else {
                value
            })
        }
        "arith.extsi" if is_bit(all.first()) => None,
        "arith.index_cast" | "arith.index_castui" | "arith.extui" | "arith.extsi" => of(0),
        "arith.muli" => match (of(0), of(1)) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (a, b) => a?.checked_mul(b?),
        },
        "arith.addi" => match (of(0)?, of(1)?) {
            (0, own) | (own, 0) => Some(own),
            _ => plain(i64::checked_add),
        },
        "arith.subi" => match (of(0)?, of(1)?) {
            (own, 0) => Some(own),
            (a, b) if a == b => Some(0),
            _ => plain(i64::checked_sub),
        },
        "arith.divsi" | "arith.divui" | "arith.floordivsi" => {
            let (a, b) = (of(0)?, of(1)?);
            let whole = b != 0 && a % b == 0 && a >= 0 && b > 0;
            whole.then(|| a / b)
        }
        "arith.andi" => plain(|a, b| Some(a & b)),
        "arith.ori" => plain(|a, b| Some(a | b)),
        "arith.xori" => plain(|a, b| Some(a ^ b)),
        "arith.cmpi" => {
            let predicate = op
                .attribute("predicate")
                .ok()
                .and_then(attribute::integer)?;
            compare(extents, predicate, of(0)?, of(1)?).map(i64::from)
        }
        "arith.select" => match (of(0), of(1), of(2)) {
            (Some(condition), a, b) => {
                if condition == 0 {
                    b
                } else {
                    a
                }
            }
            (None, Some(a), Some(b)) if a == b => Some(a),
            _ => None,
        },
        "arith.maxsi" | "arith.maxui" => match (of(0)?, of(1)?) {
            (a, b) if a == b => Some(a),
            (own, 0) | (0, own) if !known(own) => Some(own),
            _ if name(op) == "arith.maxui" => plain(|a, b| (a >= 0 && b >= 0).then(|| a.max(b))),
            _ => plain(|a, b| Some(a.max(b))),
        },
        _ => None,
    }
}

fn is_bit(value: Option<&Val<'_>>) -> bool {
    value.is_some_and(|value| types::bits(value.r#type()) == Some(1))
}

/// The integers of a tensor of one dimension that a function forms to say a shape.
pub(super) fn shape_of<'c>(extents: &Extents<'c>, tensor: Val<'c>) -> Option<Vec<i64>> {
    let op = crate::ir::value::defining(tensor)?;
    let length = TensorType::of_value(tensor)?.shape;
    let &[length] = length.as_slice() else {
        return None;
    };
    let of = |value: Val<'c>| extents.number(value);
    match name(op).as_str() {
        "tensor.from_elements" => operands(op).into_iter().map(of).collect(),
        "arith.constant" => {
            let value = op.attribute("value").ok()?;
            if let Some(all) = splat(op).and_then(attribute::integer) {
                return Some(vec![all; usize::try_from(length).ok()?]);
            }
            attribute::read_i64s(value)
        }
        "linalg.generic" if length <= 16 => {
            (0..length).map(|at| of_body(extents, op, at)).collect()
        }
        _ => None,
    }
}

/// What the body of a loop over one dimension gives at an index, of scalars alone.
fn of_body<'c>(extents: &Extents<'c>, op: Op<'c>, at: i64) -> Option<i64> {
    let block = walk::blocks(op).first().copied()?;
    let mut own: HashMap<usize, Option<i64>> = HashMap::new();
    for inner in walk::operations(block) {
        let number = |value: Val<'c>| match own.get(&identity(value)) {
            Some(number) => *number,
            None => extents.number(value),
        };
        match name(inner).as_str() {
            "linalg.yield" => return operands(inner).first().copied().and_then(number),
            "linalg.index" => {
                let result = identity(*results(inner).first()?);
                own.insert(result, Some(at));
            }
            _ => {
                let value = evaluate(extents, inner, &number);
                let result = identity(*results(inner).first()?);
                own.insert(result, value);
            }
        }
    }
    None
}
