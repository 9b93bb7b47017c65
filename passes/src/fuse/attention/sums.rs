//! The logarithms of the sums of rows, `log sum exp(x)`, where a program reads them beside the result: found among what it forms
//! of the first product, and stored by the same kernel.

use super::Attention;
use super::index::{self, Place, Var};
use super::read::{Extents, Read, Reader, Stop, forward, number};
use super::term::{Id, Terms};
use super::visible;
use super::weights::{Linear, LogSum, log_sum};
use crate::fuse::operators::{is_lazy, is_product, is_reshape};
use crate::fuse::symbolic::Symbols;
use crate::ir::value::{defining, name, only_result, users};
use crate::ir::{Op, TensorType, Val, types};
use axe_dialect::ops;
use melior::ir::operation::OperationLike;
use std::collections::{HashMap, HashSet};

/// Values that may be such logarithms at most: a few are formed of a row's scores.
const MOST_CANDIDATES: usize = 32;

/// The logarithms of a kernel's sums.
#[derive(Clone, Debug)]
pub struct RowSums<'c> {
    /// The tensor of f32, and its steps in memory.
    pub read: Read<'c>,
    /// What it is of the logarithm.
    pub is: LogSum,
    /// The operators that it takes the place of, beside those of the result.
    pub(super) inner: HashSet<usize>,
}

impl<'c> RowSums<'c> {
    /// Sums that take the place of no operators.
    #[must_use]
    pub fn new(read: Read<'c>, is: LogSum) -> Self {
        Self {
            read,
            is,
            inner: HashSet::new(),
        }
    }
}

/// A value of each row, read.
pub(super) struct Candidate<'c> {
    value: Val<'c>,
    place: Place,
    id: Id,
    inner: HashSet<usize>,
}

/// The f32 values with an element a row that are formed of the first product, read, in the order of the program; those that cannot
/// be read are left out, and so is what forms the result alone.
pub(super) fn candidates<'c>(
    reader: &mut Reader<'c>,
    result: Val<'c>,
    scores: Op<'c>,
) -> Vec<Candidate<'c>> {
    let Extents { batch, rows, .. } = reader.extents;
    let place = [
        index::whole(Var::Batch, batch),
        index::whole(Var::Row, rows),
    ];
    let mut found = Vec::new();
    for value in formed_of(scores, Some(result)) {
        let Some(tensor) = TensorType::of_value(value).filter(|own| is_f32(own)) else {
            continue;
        };
        let total = tensor.shape.iter().try_fold(1i64, |a, b| a.checked_mul(*b));
        if total != batch.checked_mul(rows) || found.len() == MOST_CANDIDATES {
            continue;
        }
        let Some(place) = index::regrouped(&place, &tensor.shape) else {
            continue;
        };
        let before = reader.inner.clone();
        if let Ok(id) = reader.element(value, &place) {
            let inner = reader.inner.difference(&before).copied().collect();
            found.push(Candidate {
                value,
                place,
                id,
                inner,
            });
        }
        reader.inner = before;
    }
    found
}

fn is_f32(tensor: &TensorType<'_>) -> bool {
    types::is_float(tensor.element) && types::bits(tensor.element) == Some(32)
}

/// The results of the operators that read an operator's result, or what these form, but for products and what `last` forms.
fn formed_of<'c>(op: Op<'c>, last: Option<Val<'c>>) -> Vec<Val<'c>> {
    let (mut next, mut seen) = (vec![op], HashSet::new());
    let mut found = Vec::new();
    while let Some(op) = next.pop() {
        let Some(own) = only_result(op).filter(|own| Some(*own) != last) else {
            continue;
        };
        for user in users(own) {
            if !is_product(user) && seen.insert(number(user)) {
                found.extend(only_result(user));
                next.push(user);
            }
        }
    }
    found
}

/// The candidate that is the logarithm of the sums of these exponentials: the first one, through transposes that alone read it.
pub(super) fn settle<'c>(
    terms: &mut Terms,
    candidates: Vec<Candidate<'c>>,
    (score, exponent): (Id, &Linear),
    (extents, symbols): ([i64; 2], &Symbols<'c>),
) -> Option<RowSums<'c>> {
    let mut all = Vec::new();
    for candidate in candidates {
        let id = visible::with_infinity(terms, candidate.id, extents, symbols);
        all.extend(log_sum(terms, id, score, exponent).map(|is| (candidate, is)));
    }
    // Of several, that of which the others are formed.
    let formed = |value: Val<'c>| defining(value).map_or(0, |op| formed_of(op, None).len());
    let (candidate, is) = all
        .into_iter()
        .max_by_key(|(candidate, _)| formed(candidate.value))?;
    let (value, place) = outermost(candidate.value, candidate.place);
    let tensor = TensorType::of_value(value)?;
    Some(RowSums {
        read: Read::whole(value, index::access(&place, &tensor.shape)?),
        is,
        inner: candidate.inner,
    })
}

/// A value through the views and transposes that alone read it, up to the last transpose: views are formed outside of a kernel.
fn outermost<'c>(mut value: Val<'c>, mut place: Place) -> (Val<'c>, Place) {
    let mut found = (value, place.clone());
    while let &[user] = users(value).as_slice() {
        let is_view = is_reshape(user);
        if !is_view && name(user) != ops::TRANSPOSE {
            break;
        }
        let Some((next, own)) = only_result(user).zip(forward(user, &place)) else {
            break;
        };
        (value, place) = (next, own);
        if !is_view {
            found = (value, place.clone());
        }
    }
    found
}

/// The operators that read a value, or what is formed again for each reader of it.
pub(super) fn readers<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let (mut next, mut found) = (vec![value], Vec::new());
    while let Some(value) = next.pop() {
        for user in users(value) {
            match is_reshape(user) || is_lazy(user) {
                true => next.extend(only_result(user)),
                false => found.push(user),
            }
        }
    }
    found
}

impl<'c> Attention<'c> {
    /// The operator where the kernel is launched, where a target takes it: with the logarithms of sums, or else without them.
    pub(super) fn taken(
        self,
        ops: &[Op<'c>],
        takes: &impl Fn(&Self) -> Result<(), String>,
    ) -> Result<Option<(Op<'c>, Self)>, Option<Stop<'c>>> {
        let Some((last, mut own)) = self.placed(ops) else {
            return Ok(None);
        };
        let mut taken = takes(&own);
        let mut place = Some(last);
        if taken.is_err() && own.sums.take().is_some() {
            taken = takes(&own);
            place = defining(own.result.tensor);
        }
        match taken {
            Ok(()) => Ok(place.map(|place| (place, own))),
            Err(why) => Err(Some(Stop {
                location: own.op.location(),
                why,
            })),
        }
    }

    /// The operator where the kernel is launched: the last one that forms a result. Sums that something reads before it, or that
    /// nothing but the result's own operators reads, are left to others.
    fn placed(mut self, ops: &[Op<'c>]) -> Option<(Op<'c>, Self)> {
        let numbers = ops.iter().enumerate().map(|(at, op)| (number(*op), at));
        let numbers: HashMap<_, _> = numbers.collect();
        let place = |op: Op<'c>| numbers.get(&number(op)).copied();
        let result = defining(self.result.tensor)?;
        let sums = self.sums.as_ref().and_then(|own| defining(own.read.tensor));
        let Some(sums) = sums else {
            return Some((result, self));
        };
        let last = match place(sums) > place(result) {
            true => sums,
            false => result,
        };
        let outer = |value: Val<'c>| {
            let mut all = readers(value);
            all.retain(|user| !self.inner.contains(&number(*user)));
            all
        };
        let read = self.sums.iter().flat_map(|own| outer(own.read.tensor));
        let read: Vec<_> = read.collect();
        let mut all = read.iter().copied().chain(outer(self.result.tensor));
        if !read.is_empty() && all.all(|user| place(user) > place(last)) {
            return Some((last, self));
        }
        self.sums = None;
        Some((result, self))
    }
}
