//! Maps of the same tensors become one kernel, which reads those once, where nothing else ties them together: the sum and the difference of two
//! tensors, the cosine and the sine of one.

use super::group::{Group, Root};
use super::groups::chain;
use super::operators::{captured, has, is_lazy};
use super::space::Kind;
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, Val};
use axe_dialect::ops::Trait;
use std::collections::{HashMap, HashSet};

/// A kernel's group, and the values that it stores.
pub(super) type Launch<'c> = (Group<'c>, Vec<Val<'c>>);

/// Tensors of the kernel's size that it reads and writes, at most.
const MOST_TENSORS: usize = 8;

/// Joins kernels of maps with earlier ones that read a tensor which they read too. `ops` are the function's operations in order.
pub(super) fn join<'c>(launches: Vec<Launch<'c>>, ops: &[Op<'c>]) -> Vec<Launch<'c>> {
    let numbers = ops.iter().map(key).zip(0..).collect();
    let mut joined: Vec<Launch<'c>> = Vec::new();
    for (group, outputs) in launches {
        let place = Place {
            numbers: &numbers,
            launches: &joined,
        };
        let found = is_maps(&group)
            .then(|| place.find(&group, &outputs))
            .flatten();
        match found.and_then(|(at, merged)| Some((joined.get_mut(at)?, merged))) {
            Some(((earlier, stored), merged)) => {
                *earlier = merged;
                stored.extend(outputs);
            }
            None => joined.push((group, outputs)),
        }
    }
    joined
}

/// What is launched before a kernel.
struct Place<'a, 'c> {
    numbers: &'a HashMap<usize, usize>,
    launches: &'a [Launch<'c>],
}

impl<'c> Place<'_, 'c> {
    /// An earlier kernel, and what it is with a group's operators too.
    fn find(&self, group: &Group<'c>, outputs: &[Val<'c>]) -> Option<(usize, Group<'c>)> {
        let full = |group: &Group<'c>| -> HashSet<usize> {
            let own = group.inputs.iter().filter(|(_, kind)| *kind == Kind::Full);
            own.map(|(value, _)| identity(*value)).collect()
        };
        let read = full(group);
        let mut earlier = self.launches.iter().enumerate();
        earlier.find_map(|(at, (other, stored))| {
            let reads = full(other);
            let all = read.union(&reads).count() + outputs.len() + stored.len();
            let fits = is_maps(other)
                && other.total == group.total
                && !read.is_disjoint(&reads)
                && all <= MOST_TENSORS
                && self.is_ready(group, at);
            let mut merged = other.clone();
            let joins = fits && group.owned.iter().all(|op| merged.join(*op));
            merged.apart.extend(group.apart.iter().cloned());
            joins.then_some((at, merged))
        })
    }

    /// Whether all that a group reads is there where an earlier kernel is launched.
    fn is_ready(&self, group: &Group<'c>, at: usize) -> bool {
        let Some((earlier, _)) = self.launches.get(at) else {
            return false;
        };
        let is_before = |op: Op<'c>| {
            let number = self.numbers.get(&key(&op));
            number.is_some_and(|number| *number < earlier.position.0)
        };
        let is_stored = |value: &usize| {
            let mut later = self.launches.iter().skip(at);
            let stores = |stored: &[Val<'c>]| stored.iter().any(|own| identity(*own) == *value);
            later.all(|(_, stored)| !stores(stored))
        };
        let mut tensors = group.read().into_iter();
        let is_number = |op: Op<'c>| name(op) == "arith.constant";
        let mut scalars = formed_by(group).into_iter().flat_map(captured);
        let known =
            |value: Val<'c>| defining(value).is_none_or(|op| is_before(op) || is_number(op));
        tensors.all(|value| known(value) && chain(value).iter().all(is_stored))
            && scalars.all(known)
    }
}

/// A group's operators, and those that they form again.
fn formed_by<'c>(group: &Group<'c>) -> Vec<Op<'c>> {
    let mut all = group.owned.clone();
    let mut next = 0;
    while let Some(op) = all.get(next).copied() {
        next += 1;
        let lazy = operands(op).into_iter().filter_map(defining);
        for op in lazy.filter(|op| is_lazy(*op)) {
            if !all.contains(&op) {
                all.push(op);
            }
        }
    }
    all
}

/// Whether a group has nothing but maps and conversions.
fn is_maps(group: &Group<'_>) -> bool {
    let mut own = group.owned.iter();
    matches!(group.root, Root::Tiles) && own.all(|op| has(*op, Trait::Elementwise))
}

fn key(op: &Op<'_>) -> usize {
    op.to_raw().ptr as usize
}
