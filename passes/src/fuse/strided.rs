//! Reductions of dimensions that others follow, whose results go back along what they reduce: softmax over channels, layer
//! normalisation of images. Where a target holds such rows, they are rows as others are, with a stride between their columns, and
//! are read once. Other reductions of such dimensions are kernels of their own, which read along memory.

use super::lookup::Lookup;
use super::operators::is_by_element;
use super::siblings::read_by;
use super::space::{Cut, Kind, Size, broadcast_of, source};
use crate::ir::value::{defining, identity, name, only_result, operands, results, users};
use crate::ir::{Builder, Op, Val};
use axe_dialect::ops;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use std::collections::HashSet;

/// The attribute of such reductions.
const STRIDED: &str = "axe.strided_rows";
/// Operations that are followed from a reduction to a broadcast of its result, or back from what it reduces.
const MOST_FOLLOWED: usize = 64;
/// Elements that are few to reduce.
const MOST_FEW: i64 = 16;

/// Marks such reductions among operators in order; `holds` says of what is reduced whether a target holds its rows.
pub fn mark<'c>(ops: &[Op<'c>], holds: impl Fn(Val<'c>, Cut) -> bool) {
    let mut marked = HashSet::new();
    for &op in ops {
        let cut = Cut::of_reduction(op).filter(|cut| cut.is_strided());
        let (Some(cut), Some(from), Some(result)) = (cut, source(op), only_result(op)) else {
            continue;
        };
        let is_taken = || goes_back(result, (from, cut)) || is_few(from, result, cut);
        let begins = || is_taken() && holds(from, cut);
        if follows(from, cut, &marked) || begins() {
            let unit = Builder::before(op).unit();
            // SAFETY: the operation is live, and nothing else refers to its attributes.
            unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute(STRIDED, unit);
            marked.insert((identity(result), cut));
        }
    }
}

/// Whether so few elements are reduced that a thread has them all, of what is computed, or to what is computed further: then neither is stored.
fn is_few(from: Val<'_>, result: Val<'_>, cut: Cut) -> bool {
    let is_computed = |op: &Op<'_>| [ops::MAP, ops::CAST].contains(&name(*op).as_str());
    let formed = defining(from).is_some_and(|op| is_computed(&op));
    let goes_on = users(result).iter().any(is_computed);
    cut.columns <= MOST_FEW && (formed || goes_on) && !reads_lookups(from)
}

/// Whether a value is formed, element by element, of rows of tables, which kernels of columns read where they lie.
fn reads_lookups(value: Val<'_>) -> bool {
    let mut next = vec![value];
    for _ in 0..MOST_FOLLOWED {
        let Some(value) = next.pop() else {
            return false;
        };
        match defining(value).filter(|op| is_by_element(*op)) {
            Some(op) => next.extend(operands(op)),
            None if Lookup::of(value).is_some() => return true,
            None => {}
        }
    }
    false
}

/// Whether a reduction was marked.
#[must_use]
pub fn is_marked(op: Op<'_>) -> bool {
    op.attribute(STRIDED).is_ok()
}

/// The rows that a reduction goes along where kernels of tiles take it.
pub(super) fn rows_of(op: Op<'_>) -> Option<Cut> {
    Cut::of_reduction(op).filter(|cut| !cut.is_strided() || is_marked(op))
}

/// Whether what comes of a value, one of each row, is repeated along the rows of a tensor, for what is computed of its elements.
fn goes_back(result: Val<'_>, (whole, cut): (Val<'_>, Cut)) -> bool {
    let read = read_by(whole);
    let mut next = vec![result];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        for user in users(value) {
            followed += 1;
            if followed > MOST_FOLLOWED {
                return false;
            }
            match only_result(user) {
                Some(repeated) if name(user) == ops::BROADCAST => {
                    let of_rows = broadcast_of(user, repeated, Some(cut)) == Some((Kind::Row, cut));
                    let is_along = of_rows && Size::of(repeated) == Size::of(whole);
                    if is_along && meets(repeated, &read) {
                        return true;
                    }
                }
                _ if is_by_element(user) => next.extend(results(user)),
                _ => {}
            }
        }
    }
    false
}

/// Whether something is computed of a value and of what is formed of these tensors, element by element.
fn meets(value: Val<'_>, read: &HashSet<usize>) -> bool {
    let mut next = vec![value];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        for user in users(value) {
            followed += 1;
            let mut others = operands(user).into_iter().filter(|other| *other != value);
            let is_computed = is_by_element(user) && followed <= MOST_FOLLOWED;
            if is_computed && others.any(|other| !read_by(other).is_disjoint(read)) {
                return true;
            }
            if is_computed {
                next.extend(results(user));
            }
        }
    }
    false
}

/// Whether a value is formed, element by element, of what was marked.
fn follows(value: Val<'_>, cut: Cut, marked: &HashSet<(usize, Cut)>) -> bool {
    let mut next = vec![value];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        followed += 1;
        if marked.contains(&(identity(value), cut)) {
            return true;
        }
        let by_element = |op: &Op<'_>| is_by_element(*op) || name(*op) == ops::BROADCAST;
        if let Some(op) = defining(value).filter(by_element) {
            next.extend(operands(op));
        }
        if followed > MOST_FOLLOWED {
            return false;
        }
    }
    false
}
