//! Who reads a value element by element, and what it costs to compute it where it is read.

use super::{follows_kernel, is_stored};
use crate::fuse::nest::is_nest;
use crate::fuse::operators::{is_reshape, reshaped};
use crate::fuse::rematerialize::is_cheap;
use crate::ir::value::{defining, name, only_result, operands, users};
use crate::ir::{Builder, Int, Ints, Op, TensorType, Val, attribute, types, walk};
use crate::{PassError, PassResult};
use axe_dialect::ops;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Operations of a body that moves elements, at most.
const FEW: usize = 48;
/// Operators that form a value which is formed again for each element, at most.
const MOST_OPERATORS: usize = 16;
/// Elements of loops that have a value in common, at least, for which it is formed again.
const ROW: i64 = 16;
/// Elements that are computed for each that there is, at most, where they are not only moved.
const MOST_REPEATS: i64 = 4;

/// A transpose that leaves the last dimension in its place: what reads it reads along rows as before.
pub(super) fn keeps_rows(op: Op<'_>) -> bool {
    let order = op
        .attribute("permutation")
        .ok()
        .and_then(attribute::read_i64s);
    order.is_some_and(|order| {
        let last = i64::try_from(order.len()).unwrap_or(0) - 1;
        order.last() == Some(&last)
    })
}

/// The operations that read a value element by element, through reshapes, and what each of them reads; none where something reads it
/// otherwise.
pub(super) fn readers<'c>(value: Val<'c>) -> Option<Vec<(Op<'c>, Val<'c>)>> {
    let mut found = Vec::new();
    for user in users(value) {
        match only_result(user).filter(|_| is_reshape(user)) {
            Some(result) => found.extend(readers(result)?),
            None => found.push((reader(user, value)?, value)),
        }
    }
    Some(found)
}

/// The operations that read a value through reshapes.
pub(in crate::fuse::nest) fn all_readers<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let all = users(value).into_iter();
    let read = |user| match only_result(user).filter(|_| is_reshape(user)) {
        Some(result) => all_readers(result),
        None => vec![loops_around(user).unwrap_or(user)],
    };
    all.flat_map(read).collect()
}

/// The loops in whose body an operation extracts an element.
pub(in crate::fuse) fn loops_around(op: Op<'_>) -> Option<Op<'_>> {
    let mut above = Some(op).filter(|op| name(*op) == "tensor.extract")?;
    while !is_nest(above) {
        above = above.parent_operation()?;
    }
    Some(above)
}

/// The operation that reads a value element by element; none where it is read otherwise.
fn reader<'c>(user: Op<'c>, value: Val<'c>) -> Option<Op<'c>> {
    let turns =
        |value| defining(value).is_some_and(|op| name(op) == ops::TRANSPOSE && !keeps_rows(op));
    match name(user).as_str() {
        // Maps read tiles of transposes.
        ops::MAP | ops::CAST if !turns(reshaped(value)) => Some(user),
        ops::BROADCAST if is_light(reshaped(value)) => Some(user),
        "tensor.extract" if operands(user).first() == Some(&value) => loops_around(user),
        _ if is_nest(user) && operands(user).split_last()?.1.contains(&value) => Some(user),
        _ => None,
    }
}

/// Whether a value is conversions, or cheap otherwise, of what is in memory and no product or reduction gives: loops form it again for each
/// element that they or a broadcast have of it.
fn is_light(value: Val<'_>) -> bool {
    fn is_made(value: Val<'_>, left: &mut usize) -> bool {
        let value = reshaped(value);
        let Some(op) = defining(value).filter(|_| !is_stored(value)) else {
            return true;
        };
        *left = left.saturating_sub(1);
        let is_known = name(op) == ops::CAST || name(op) == ops::MAP && is_quick(op);
        *left > 0 && is_known && operands(op).into_iter().all(|own| is_made(own, left))
    }
    let is_formed = defining(value).is_some_and(|_| !is_stored(value));
    is_formed && !follows_kernel(value) && is_made(value, &mut { MOST_OPERATORS })
}

/// Whether a map's body is cheap, or computes indices, some of them as numbers of f32.
fn is_quick(map: Op<'_>) -> bool {
    const OTHERS: [&str; 7] = [
        "arith.addf",
        "arith.fptosi",
        "arith.maximumf",
        "arith.minimumf",
        "arith.mulf",
        "arith.sitofp",
        "arith.subf",
    ];
    let is_wide =
        |value: &Val<'_>| types::is_float(value.r#type()) && types::bits(value.r#type()) > Some(32);
    let known = |op: &Op<'_>| {
        let own = name(*op);
        (is_plain(&own) || OTHERS.contains(&own.as_str())) && !operands(*op).iter().any(is_wide)
    };
    let inside = walk::nested(map, &|_| true);
    is_cheap(map) || inside.len() <= FEW && inside.iter().all(known)
}

/// Whether loops read a quarter of a value's elements or more, elsewhere than where they have them.
pub(super) fn is_moved(value: Val<'_>) -> bool {
    let results = extracting(value).into_iter().filter_map(only_result);
    let moved = results.fold(0i64, |sum, result| sum.saturating_add(elements(result)));
    moved > 0 && moved >= elements(value) / MOST_REPEATS
}

/// The loops whose bodies extract elements of a value, or of a reshape of it, whatever else reads it.
fn extracting<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let mut found: Vec<Op<'c>> = Vec::new();
    for user in users(value) {
        let reshape = only_result(user).filter(|_| is_reshape(user));
        let more = reshape.map_or_else(|| loops_around(user).into_iter().collect(), extracting);
        for op in more {
            if !found.contains(&op) {
                found.push(op);
            }
        }
    }
    found
}

/// Whether a transpose reads a value, or a reshape of it.
pub(super) fn is_turned(value: Val<'_>) -> bool {
    users(value).into_iter().any(|user| {
        let result = only_result(user).filter(|_| is_reshape(user));
        name(user) == ops::TRANSPOSE || result.is_some_and(is_turned)
    })
}

/// Elements of a tensor of static extents.
pub(in crate::fuse::nest) fn elements(value: Val<'_>) -> i64 {
    let shape = TensorType::of_value(value).map(|tensor| tensor.shape);
    let shape = shape.unwrap_or_default();
    shape
        .iter()
        .fold(1i64, |all, extent| all.saturating_mul(*extent))
}

/// Whether a reader would compute what it reads again and again: more often than there are elements, of what does more than move.
pub(super) fn repeats<'c>(reader: Op<'c>, read: Val<'c>, producer: Op<'c>) -> bool {
    if name(reader) == ops::BROADCAST || is_nest(reader) && moves(producer) {
        return false;
    }
    let of_reader = only_result(reader).map_or(0, elements);
    if is_nest(reader) && elements(read).saturating_mul(ROW) <= of_reader && is_light(read) {
        return false;
    }
    let extracts = walk::nested(reader, &|_| true)
        .into_iter()
        .filter(|op| name(*op) == "tensor.extract" && operands(*op).first() == Some(&read));
    let times = i64::try_from(extracts.count()).unwrap_or(i64::MAX).max(1);
    only_result(reader)
        .is_none_or(|result| elements(result).saturating_mul(times) / MOST_REPEATS > elements(read))
}

/// Whether an operation moves elements: its body computes indices and conditions alone, and few of them.
fn moves(op: Op<'_>) -> bool {
    if [ops::CAST, ops::TRANSPOSE].contains(&name(op).as_str()) {
        return true;
    }
    let inside = walk::nested(op, &|_| true);
    let has_body = is_nest(op) || name(op) == ops::MAP;
    has_body && inside.len() <= FEW && inside.into_iter().all(|inner| is_plain(&name(inner)))
}

fn is_plain(name: &str) -> bool {
    let known = [
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divui",
        "arith.divsi",
        "arith.remui",
        "arith.remsi",
        "arith.floordivsi",
        "arith.minsi",
        "arith.maxsi",
        "arith.minui",
        "arith.andi",
        "arith.ori",
        "arith.cmpi",
        "arith.cmpf",
        "arith.select",
        "arith.constant",
        "arith.index_cast",
        "arith.index_castui",
        "arith.extf",
        "arith.truncf",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
        "axe.map",
        "axe.yield",
        "cf.assert",
        "linalg.generic",
        "linalg.index",
        "linalg.yield",
        "math.absi",
        "scf.if",
        "scf.yield",
        "tensor.extract",
    ];
    known.contains(&name)
}

/// The index in the source of a reshape of what it has at an index: dimensions whose products are the same belong together.
pub(in crate::fuse::nest) fn source_index<'c>(
    builder: &Builder<'c>,
    result: Val<'c>,
    source: Val<'c>,
    at: &[Val<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let mismatch = || PassError::new(builder.location, "expected a reshape of as many elements");
    let (from, to) = (
        builder.tensor_of(source)?.shape,
        builder.tensor_of(result)?.shape,
    );
    let ints = Ints::index(*builder);
    let (mut from, mut to) = (from.as_slice(), to.iter().zip(at));
    let mut index = Vec::new();
    while !from.is_empty() {
        let (mut own, mut have, mut number) = (1i64, 1i64, Int::ZERO);
        let mut dims = 0;
        while dims == 0 || have != own || from.get(dims) == Some(&1) {
            if dims > 0 && have < own {
                let (extent, at) = to.next().ok_or_else(mismatch)?;
                have = have.checked_mul(*extent).ok_or_else(mismatch)?;
                if *extent != 1 {
                    number = ints.add(ints.mul(number, *extent)?, Int::Value(*at))?;
                }
            } else {
                let extent = from.get(dims).ok_or_else(mismatch)?;
                own = own.checked_mul(*extent).ok_or_else(mismatch)?;
                dims += 1;
            }
        }
        let (group, rest) = from.split_at(dims);
        index.extend(places(&ints, group, number)?);
        from = rest;
    }
    Ok(index)
}

/// The index of an element of a row-major shape by its number.
fn places<'c>(ints: &Ints<'c>, shape: &[i64], number: Int<'c>) -> PassResult<'c, Vec<Val<'c>>> {
    let mut rest = number;
    let mut places = Vec::new();
    for (dim, extent) in shape.iter().enumerate().rev() {
        let outermost = shape[..dim].iter().all(|extent| *extent == 1);
        let place = match (*extent, outermost) {
            (1, _) => Int::ZERO,
            (_, true) => rest,
            (extent, false) => {
                let place = ints.modulo(rest, Int::Known(extent))?;
                rest = ints.divide(rest, Int::Known(extent))?;
                place
            }
        };
        places.push(ints.value(place)?);
    }
    places.reverse();
    Ok(places)
}
