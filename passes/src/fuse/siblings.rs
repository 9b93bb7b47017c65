//! Reductions of the rows, or of the columns, of one tensor, moved to where the first of them is: they become one kernel, which reads it once.

use super::group::ColumnFold;
use super::operators::{captured, is_by_element, is_product, is_reshape, is_widening};
use super::row_parts;
use super::space::{Cut, source};
use super::strided::rows_of;
use crate::ir::value::{defining, identity, name, operands, results, users};
use crate::ir::{Builder, Op, TensorType, Val, walk};
use axe_dialect::ops;
use melior::ir::BlockRef;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use mlir_sys as sys;
use std::cmp::Ordering;
use std::collections::HashSet;

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

/// The attribute of reductions of columns that are next to others.
const BESIDE: &str = "axe.columns_beside";
/// Operations that a reduction is computed with, at most.
const MOST_FOLLOWED: usize = 64;

/// Whether a reduction of columns is next to others of the same tensor.
pub(super) fn is_marked(op: Op<'_>) -> bool {
    op.attribute(BESIDE).is_ok()
}

/// Moves reductions of columns of a block behind its first one of as many of them, of a tensor that this reads too, and what they are computed with
/// in front of that.
pub fn gather_columns(block: BlockRef<'_, '_>) {
    let mut firsts: Vec<(ColumnFold, HashSet<usize>, Op<'_>)> = Vec::new();
    for op in walk::operations(block) {
        let Some((from, fold)) = source(op).zip(ColumnFold::of(op)) else {
            continue;
        };
        let read = read_by(from);
        let is_own = |(of, own, _): &&(ColumnFold, HashSet<usize>, Op<'_>)| {
            *of == fold && !own.is_disjoint(&read)
        };
        match firsts.iter().find(is_own).map(|(_, _, first)| *first) {
            Some(first) if row_parts::is_marked(op) == row_parts::is_marked(first) => {
                if move_behind(op, first) {
                    mark(first);
                    mark(op);
                }
            }
            Some(_) => {}
            None => {
                move_up(op);
                firsts.push((fold, read, op));
            }
        }
    }
}

/// Moves reductions of parts of rows, and others of rows of the same shape, behind the first of a tensor that they read too, so that one kernel
/// reduces them: what follows the first would be in front of the others.
pub fn gather_parts(reductions: &[Op<'_>]) {
    let shape = |op: Op<'_>| Some(TensorType::of_value(source(op)?)?.shape);
    let shapes: HashSet<_> = reductions.iter().filter_map(|op| shape(*op)).collect();
    let block = reductions.first().and_then(|op| op.block());
    let all = block.map_or_else(Vec::new, walk::operations);
    let mut firsts: Vec<(Vec<i64>, HashSet<usize>, Op<'_>)> = Vec::new();
    for op in all
        .into_iter()
        .filter(|op| rows_of(*op).is_some_and(|cut| !cut.is_strided()))
    {
        let (Some(from), Some(shape)) = (source(op), shape(op)) else {
            continue;
        };
        if !shapes.contains(&shape) {
            continue;
        }
        let read = read_by(from);
        let is_own = |(of, own, _): &&(Vec<i64>, HashSet<usize>, Op<'_>)| {
            *of == shape && !own.is_disjoint(&read)
        };
        match firsts.iter().find(is_own).map(|(_, _, first)| *first) {
            Some(first) => {
                move_behind(op, first);
            }
            None => firsts.push((shape, read, op)),
        }
    }
}

/// Moves a reduction behind another of its block, and what it is computed with in front of that. False where it takes that one's result, or much.
fn move_behind(op: Op<'_>, first: Op<'_>) -> bool {
    let Some(computed) = computed_behind(op, first) else {
        return false;
    };
    for own in computed {
        // SAFETY: they are live operations of one block, and those that one takes come before it.
        unsafe {
            match own == op {
                true => sys::mlirOperationMoveAfter(own.to_raw(), first.to_raw()),
                false => sys::mlirOperationMoveBefore(own.to_raw(), first.to_raw()),
            }
        }
    }
    true
}

/// Moves a reduction of columns behind the maps of what it reduces that others read from memory, before these: the kernel of the reduction stores it.
fn move_up(op: Op<'_>) {
    let mut chain = Vec::new();
    let mut next = source(op);
    while let Some(own) = next.and_then(defining).filter(|own| is_by_element(*own)) {
        let is_read = |user: &Op<'_>| *user != op && !chain.contains(user);
        let others: Vec<_> = results(own)
            .into_iter()
            .flat_map(users)
            .filter(is_read)
            .collect();
        if !others.is_empty() {
            let stored = others.iter().filter(|user| is_by_element(**user));
            let last = stored.fold(own, |last, user| match is_before(Some(last), *user) {
                true => *user,
                false => last,
            });
            // Scalars that bodies take are not moved.
            let taken = chain.iter().flat_map(|op| captured(*op));
            let are_there = taken
                .into_iter()
                .all(|value| is_before(defining(value), last));
            // What stands behind the reduction may be formed of it.
            let is_behind = is_before(Some(last), op);
            let are_stored = others.iter().all(|user| is_stored(*user));
            if !is_reshape(own) && is_behind && are_there && are_stored {
                let mut last = last;
                for moved in chain.iter().rev().chain([&op]) {
                    // SAFETY: they are live operations of one block, each behind what it takes.
                    unsafe { sys::mlirOperationMoveAfter(moved.to_raw(), last.to_raw()) };
                    last = *moved;
                }
            }
            return;
        }
        chain.push(own);
        next = match operands(own)[..] {
            [from] => Some(from),
            _ => None,
        };
    }
}

/// Whether an operation reads its operands from memory, or all that reads what it computes by element does.
fn is_stored(op: Op<'_>) -> bool {
    let mut readers = results(op).into_iter().flat_map(users).peekable();
    is_product(op)
        || readers.peek().is_some()
            && (is_by_element(op) || name(op) == ops::TRANSPOSE)
            && readers.all(is_stored)
}

fn mark(op: Op<'_>) {
    let unit = Builder::before(op).unit();
    // SAFETY: the operation is live, and nothing else refers to its attributes.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute(BESIDE, unit);
}

/// The tensors of a value's size that it is formed of, element by element.
#[must_use]
pub fn read_by(value: Val<'_>) -> HashSet<usize> {
    let (mut next, mut read) = (vec![value], HashSet::new());
    let mut seen = HashSet::new();
    while let Some(value) = next.pop() {
        if !seen.insert(identity(value)) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        match defining(value) {
            Some(op) if is_by_element(op) => next.extend(operands(op)),
            Some(op) if name(op) == ops::BROADCAST => {}
            _ => {
                read.insert(identity(value));
            }
        }
    }
    read
}

/// An operation and what it is computed with behind another one of its block, in order; none where it takes that one's result, or much.
fn computed_behind<'c>(op: Op<'c>, first: Op<'c>) -> Option<Vec<Op<'c>>> {
    let (mut next, mut found): (_, Vec<Op<'c>>) = (vec![op], Vec::new());
    while let Some(op) = next.pop() {
        if op == first
            || op.region_count() > 0 && name(op) != ops::MAP
            || found.len() > MOST_FOLLOWED
        {
            return None;
        }
        if !is_before(Some(op), first) && !found.contains(&op) {
            found.push(op);
            let taken = operands(op).into_iter().chain(captured(op));
            next.extend(taken.filter_map(defining));
        }
    }
    found.sort_by(|a, b| match is_before(Some(*a), *b) {
        true => Ordering::Less,
        false => Ordering::Greater,
    });
    Some(found)
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
