//! Folds of rows in the body of loops: an `scf.for` over the elements of the row that the last loop goes along. All points of a row have the
//! same result, so that lanes which have the row's points can share the turns out.

use crate::ir::value::{defining, identity, name, operands, parent, results};
use crate::ir::walk::{block_arguments, blocks, nested, operations};
use crate::ir::{Op, Val, attribute, combiner};
use axe_dialect::Combiner;
use melior::ir::operation::OperationLike;
use std::collections::{HashMap, HashSet};

/// Such a fold.
#[derive(Clone, Copy, Debug)]
pub struct RowFold<'c> {
    /// The `scf.for`.
    pub op: Op<'c>,
    /// How turns are combined.
    pub combiner: Combiner,
}

/// The folds of rows in the body of loops whose last parallel one is `last`, of that extent; none where a loop in the body is something else.
#[must_use]
pub fn row_folds<'c>(nest: Op<'c>, last: usize, extent: i64) -> Option<Vec<RowFold<'c>>> {
    let loops: Vec<_> = nested(nest, &|_| true)
        .into_iter()
        .filter(|op| name(*op) == "scf.for")
        .collect();
    let mut rows = Rows {
        last,
        folds: HashSet::new(),
        known: HashMap::new(),
    };
    let mut found = Vec::new();
    for op in loops {
        let is_outermost = op.parent_operation().is_some_and(is_generic);
        let combiner = rows.fold(op, extent).filter(|_| is_outermost)?;
        found.push(RowFold { op, combiner });
        rows.folds.extend(results(op).into_iter().map(identity));
    }
    Some(found)
}

/// Whether an operation is loops, on tensors or in a kernel.
fn is_generic(op: Op<'_>) -> bool {
    name(op) == "linalg.generic"
}

/// What is the same along rows.
struct Rows {
    /// The loop that goes along them.
    last: usize,
    /// Results of folds.
    folds: HashSet<usize>,
    known: HashMap<usize, bool>,
}

impl Rows {
    /// The combiner of a loop over so many elements that is a fold.
    fn fold(&mut self, op: Op<'_>, extent: i64) -> Option<Combiner> {
        let all = operands(op);
        let &[first, end, step, start] = all.as_slice() else {
            return None;
        };
        let is = |value, number| integer(value) == Some(number);
        let body = blocks(op).first().copied()?;
        let &[turn, carried] = block_arguments(body).as_slice() else {
            return None;
        };
        let inside = operations(body);
        let (last, inside) = inside.split_last()?;
        let combined = operands(*last).first().copied().and_then(defining)?;
        let combiner = combiner::of_operation(&name(combined))?;
        let reads = |value: Val<'_>| {
            let read = inside.iter().flat_map(|op| operands(*op));
            read.filter(|own| *own == value).count()
        };
        let own: HashSet<usize> = inside
            .iter()
            .flat_map(|op| results(*op))
            .chain([turn, carried])
            .map(identity)
            .collect();
        let is_fold = is(first, 0)
            && is(end, extent)
            && is(step, 1)
            && is_neutral(start, combiner)
            && inside.contains(&combined)
            && operands(combined).contains(&carried)
            && reads(carried) == 1
            && inside.iter().all(|op| op.region_count() == 0);
        let mut outside = inside.iter().flat_map(|op| operands(*op));
        let is_same = outside.all(|value| own.contains(&identity(value)) || self.is_same(value))
            && !inside.iter().any(|op| self.is_place(*op));
        (is_fold && is_same).then_some(combiner)
    }

    /// Whether a value is the same at all points of a row.
    fn is_same(&mut self, value: Val<'_>) -> bool {
        let key = identity(value);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let is_same = match defining(value) {
            // Arguments of the kernel; the body's own are what is at a point.
            None => !parent(value).is_some_and(is_generic),
            Some(_) if self.folds.contains(&key) => true,
            Some(op) => {
                !self.is_place(op)
                    && op.region_count() == 0
                    && operands(op).into_iter().all(|value| self.is_same(value))
            }
        };
        self.known.insert(key, is_same);
        is_same
    }

    /// Whether an operation is the index along the row.
    fn is_place(&self, op: Op<'_>) -> bool {
        let dim = || op.attribute("dim").ok().and_then(attribute::integer);
        name(op) == "linalg.index"
            && dim().and_then(|dim| usize::try_from(dim).ok()) == Some(self.last)
    }
}

fn integer(value: Val<'_>) -> Option<i64> {
    let op = defining(value).filter(|op| name(*op) == "arith.constant")?;
    attribute::integer(op.attribute("value").ok()?)
}

/// Whether a constant leaves others as they are when it is combined with them.
fn is_neutral(value: Val<'_>, combiner: Combiner) -> bool {
    let Some(op) = defining(value).filter(|op| name(*op) == "arith.constant") else {
        return false;
    };
    let float = op.attribute("value").ok().and_then(attribute::float);
    match (combiner, float) {
        (Combiner::Add, Some(number)) => number == 0.0,
        (Combiner::Mul, Some(number)) => number == 1.0,
        (Combiner::Max, Some(number)) => number == f64::NEG_INFINITY,
        (Combiner::Min, Some(number)) => number == f64::INFINITY,
        (Combiner::Add | Combiner::Or | Combiner::Xor | Combiner::MaxUI, None) => {
            integer(value) == Some(0)
        }
        _ => false,
    }
}
