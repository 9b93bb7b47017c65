//! The attention and the gradients that operators of a block stand for.

use super::backward::{self, Backward};
use super::read::{self, Stop};
use super::{Attention, attention};
use crate::fuse::operators::is_reshape;
use crate::fuse::symbolic::Symbols;
use crate::ir::value::{defining, name, only_result, users};
use crate::ir::{Op, Val};
use axe_dialect::ops;
use melior::ir::Location;
use std::collections::HashMap;
use std::rc::Rc;

/// Why a group of operators that looks like attention is none.
#[derive(Clone, Debug)]
pub struct Declined<'c> {
    /// The operator that stopped it.
    pub location: Location<'c>,
    /// Why.
    pub why: String,
}

/// What was found in a block.
#[derive(Clone, Debug, Default)]
pub struct Found<'c> {
    /// By the operator that forms the result.
    pub taken: HashMap<usize, Rc<Attention<'c>>>,
    /// Gradients, by the operator that forms the last of them.
    pub gradients: HashMap<usize, Rc<Backward<'c>>>,
    /// What was not taken.
    pub declined: Vec<Declined<'c>>,
}

impl<'c> Found<'c> {
    /// Looks at the operators of a block; a target says why it has no kernel of attention, or of its gradients.
    pub fn of(
        ops: &[Op<'c>],
        symbols: &Symbols<'c>,
        takes: &impl Fn(&Attention<'c>) -> Result<(), String>,
        takes_gradients: &impl Fn(&Backward<'c>) -> Result<(), String>,
    ) -> Self {
        let mut found = Self::default();
        let (gradients, stopped) = backward::find(ops, takes_gradients);
        let stopped = stopped.into_iter();
        found
            .declined
            .extend(stopped.map(|Stop { location, why }| Declined { location, why }));
        for (last, own) in gradients {
            found.gradients.insert(read::number(last), Rc::new(own));
        }
        let products = ops.iter().filter(|op| name(**op) == ops::GEMM);
        for &op in products {
            if found.is_of_gradients(op) {
                continue;
            }
            let mut declined = None;
            for chain in chains(op) {
                let read = attention(op, &chain, symbols, true);
                let pages = |own: &Attention<'c>| own.pages.iter().any(Option::is_some);
                let is_paged = read.as_ref().is_ok_and(pages);
                let mut taken = read.and_then(|attention| attention.taken(ops, takes));
                if is_paged && taken.is_err() {
                    // Pages that no kernel reads are gathered by a kernel of their own.
                    let read = attention(op, &chain, symbols, false);
                    taken = read.and_then(|attention| attention.taken(ops, takes));
                }
                match taken {
                    Ok(Some((last, attention))) => {
                        found.taken.insert(read::number(last), Rc::new(attention));
                        declined = None;
                        break;
                    }
                    Ok(None) => {}
                    // The longest chain is the one that says why.
                    Err(stopped) => declined = declined.or(stopped),
                }
            }
            found
                .declined
                .extend(declined.map(|Stop { location, why }| Declined { location, why }));
        }
        found.share(ops, takes_gradients);
        found
    }

    /// Lets gradients read what a forward pass of the program, which stands before them, leaves.
    fn share(&mut self, ops: &[Op<'c>], takes: &impl Fn(&Backward<'c>) -> Result<(), String>) {
        let places = ops.iter().enumerate();
        let places: HashMap<_, _> = places.map(|(at, op)| (read::number(*op), at)).collect();
        for (last, gradients) in &mut self.gradients {
            let mut taken: Vec<_> = self.taken.iter_mut().collect();
            taken.sort_by_key(|(at, _)| places.get(*at));
            for (at, forward) in taken {
                let kept = Rc::new(Attention {
                    keeps_sums: forward.sums.is_none(),
                    ..(**forward).clone()
                });
                let before = places.get(at) < places.get(last);
                let Some(own) = gradients.sharing(&kept).filter(|_| before) else {
                    continue;
                };
                if takes(&own).is_ok() {
                    (*forward, *gradients) = (kept, Rc::new(own));
                    break;
                }
            }
        }
    }

    /// The attention whose results are formed where this operator stands: it forms the last of them.
    #[must_use]
    pub fn of_result(&self, op: Op<'c>) -> Option<Rc<Attention<'c>>> {
        self.taken.get(&read::number(op)).cloned()
    }

    /// The gradients that are formed where this operator stands: it forms the last of them.
    #[must_use]
    pub fn gradients_of(&self, op: Op<'c>) -> Option<Rc<Backward<'c>>> {
        self.gradients.get(&read::number(op)).cloned()
    }

    fn is_of_gradients(&self, op: Op<'c>) -> bool {
        let mut all = self.gradients.values();
        all.any(|own| own.inner.contains(&read::number(op)))
    }

    /// Whether an operator forms a result of attention that others are formed with, later.
    #[must_use]
    pub fn is_formed_later(&self, op: Op<'c>) -> bool {
        let gradients = self.gradients.values().flat_map(|own| own.formed());
        let all = self.taken.values().flat_map(|own| own.results());
        let mut all = all.chain(gradients).filter_map(defining);
        all.any(|own| own == op)
    }

    /// Whether attention takes the place of an operator.
    #[must_use]
    pub fn has(&self, op: Op<'c>) -> bool {
        let number = read::number(op);
        let own = |attention: &Rc<Attention<'c>>| {
            let sums = attention.sums.as_ref();
            attention.inner.contains(&number)
                || sums.is_some_and(|sums| sums.inner.contains(&number))
        };
        self.taken.values().any(own) || self.is_of_gradients(op)
    }
}

/// The values that may be the result of a second product: what it gives through operators that nothing else reads, the longest
/// chain first. Each ends with the product's own result.
fn chains<'c>(op: Op<'c>) -> Vec<Vec<Val<'c>>> {
    let Some(own) = only_result(op) else {
        return Vec::new();
    };
    let mut chain = vec![own];
    let mut all = vec![chain.clone()];
    while let Some(&last) = chain.first() {
        let users = users(last);
        let &[user] = users.as_slice() else { break };
        let through = is_reshape(user)
            || [ops::TRANSPOSE, ops::CAST, ops::MAP].contains(&name(user).as_str());
        let Some(next) = only_result(user).filter(|_| through) else {
            break;
        };
        chain.insert(0, next);
        // A view of a result is formed outside of the kernel.
        if !is_reshape(user) {
            all.push(chain.clone());
        }
    }
    all.reverse();
    all
}
