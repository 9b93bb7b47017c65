//! Values that go through memory which the kernel allocates: the states that the CTAs of a cluster exchange. The need of a memref
//! is what its loads show, those of its slices and of its peers in other CTAs included; a store shows of its value what the
//! allocation shows. Memory that anything else uses (a tensor copy, a product, a view of another type) shows all.

use super::{Need, Precision, element};
use crate::ir::value::{defining, name, operands, results, users};
use crate::ir::{Op, Val, types};
use axe_dialect::ops;
use std::collections::HashSet;

impl Precision {
    /// What a copy to memory shows of its operand.
    pub(super) fn demand_of_store(&self, op: Op<'_>, at: usize) -> Need {
        let all = operands(op);
        let (Some(&value), Some(&to)) = (all.first(), all.get(1)) else {
            return Need::FULL;
        };
        match (at, element(value)) {
            (0, Some(stored)) => match (Need::of(stored), allocation(to)) {
                (Need::FULL, Some(memory)) => self.need(memory),
                (need, _) => need,
            },
            // What is written over shows nothing.
            (1, Some(_)) => Need::default(),
            _ => Need::FULL,
        }
    }
}

/// The allocation that a memref is part of, in this CTA or in another of the cluster.
fn allocation(mut memref: Val<'_>) -> Option<Val<'_>> {
    loop {
        let op = defining(memref)?;
        match name(op).as_str() {
            ops::ALLOC => return Some(memref),
            ops::SLICE | ops::PEER => memref = *operands(op).first()?,
            _ => return None,
        }
    }
}

/// Whether no element that is stored to the allocation of a memref is below zero.
pub(super) fn holds<'c>(memref: Val<'c>, seen: &mut HashSet<usize>) -> bool {
    allocation(memref).is_some_and(|memory| stores_hold(memory, seen))
}

fn stores_hold<'c>(memref: Val<'c>, seen: &mut HashSet<usize>) -> bool {
    users(memref).into_iter().all(|user| {
        let all = operands(user);
        match (name(user).as_str(), results(user).first()) {
            (ops::SLICE | ops::PEER, Some(view)) => stores_hold(*view, seen),
            (ops::COPY, Some(_)) => true,
            (ops::COPY, None) => all.first().is_some_and(|from| {
                element(*from).is_some_and(types::is_float) && super::signs::holds(*from, seen)
            }),
            _ => false,
        }
    })
}
