//! When the storage of a kernel is in use.
//!
//! Only the operations of the kernel's body count: what is inside a role or a loop is in use for as long as that
//! role or loop runs, for roles run side by side.

use crate::ir::types::is_slot;
use crate::ir::value::{defining, name, operands, results, users};
use crate::ir::walk::{blocks, nested, operations};
use crate::ir::{Op, Val, attribute};
use axe_dialect::ops;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// What tells operations apart.
fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

/// The order of a kernel's operations.
#[derive(Debug)]
pub struct Times<'c> {
    /// The operation of the kernel's body that each operation is, or is in.
    top: HashMap<usize, usize>,
    /// Every operation's place among all, in the order of the text.
    order: HashMap<usize, usize>,
    /// The operations of the body.
    body: Vec<Op<'c>>,
    /// Those of them that are the barrier of all threads.
    pub barriers: Vec<usize>,
    /// The waits for everything: for copies, and for products.
    waits: Vec<(Op<'c>, bool)>,
    commits: Vec<Op<'c>>,
}

impl<'c> Times<'c> {
    /// The order of a kernel's operations, all of them.
    #[must_use]
    pub fn of(kernel: Op<'c>, all: &[Op<'c>]) -> Self {
        let body: Vec<_> = blocks(kernel).into_iter().flat_map(operations).collect();
        let mut top = HashMap::new();
        for (at, &op) in body.iter().enumerate() {
            top.insert(number(op), at);
            for inner in nested(op, &|_| true) {
                top.insert(number(inner), at);
            }
        }
        let barriers = body.iter().enumerate();
        let barriers = barriers.filter(|(_, op)| name(**op) == ops::BARRIER);
        let named = |wanted: &'static str| {
            let all = all.iter().copied();
            all.filter(move |op| name(*op) == wanted)
        };
        let everything = |op: &Op<'c>| {
            let pending = op.attribute("pending").ok().and_then(attribute::integer);
            pending.unwrap_or(0) == 0
        };
        Self {
            barriers: barriers.map(|(at, _)| at).collect(),
            order: all
                .iter()
                .enumerate()
                .map(|(at, op)| (number(*op), at))
                .collect(),
            waits: named(ops::WAIT)
                .filter(everything)
                .map(|op| (op, operands(op).is_empty()))
                .collect(),
            commits: named(ops::COMMIT).collect(),
            top,
            body,
        }
    }

    /// The operations of the kernel's body at these places.
    pub fn at(&self, places: &[usize]) -> impl Iterator<Item = Op<'c>> {
        places.iter().filter_map(|at| self.body.get(*at).copied())
    }

    fn top(&self, op: Op<'c>) -> usize {
        self.top.get(&number(op)).copied().unwrap_or(usize::MAX)
    }

    /// From the first to the last operation that accesses storage or a part of it, asynchronous accesses until they
    /// are waited for. Storage that is never accessed is in use all the time.
    #[must_use]
    pub fn live(&self, storage: Val<'c>) -> (usize, usize) {
        let (mut first, mut last) = (usize::MAX, 0);
        let mut views = vec![storage];
        while let Some(view) = views.pop() {
            for user in users(view) {
                if matches!(name(user).as_str(), ops::SLICE | ops::VIEW) {
                    views.extend(results(user));
                    continue;
                }
                first = first.min(self.top(user));
                last = last.max(self.top(user)).max(self.end(user));
            }
        }
        if first > last {
            (0, usize::MAX)
        } else {
            (first, last)
        }
    }

    /// The operation of the body with which an access is complete.
    fn end(&self, access: Op<'c>) -> usize {
        let kind = name(access);
        if kind != ops::GEMM && kind != ops::COPY || access.attribute("isAsync").is_err() {
            return self.top(access);
        }
        let slot = operands(access).last().copied();
        if let Some(slot) = slot.filter(|slot| is_slot(slot.r#type())) {
            return self.signalled(slot);
        }
        let copies = kind == ops::COPY;
        let waits = self
            .waits
            .iter()
            .filter(|(_, of_copies)| *of_copies == copies);
        let complete = waits
            .map(|(wait, _)| *wait)
            .filter(|wait| self.follows(*wait, access))
            .filter(|wait| {
                let between = |commit: &&Op<'c>| {
                    self.follows(**commit, access) && self.follows(*wait, **commit)
                };
                !copies || self.commits.iter().any(|commit| between(&commit))
            });
        complete
            .map(|wait| self.top(wait))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The last use of the ring of a slot: its consumers wait for the copies that signal it.
    fn signalled(&self, slot: Val<'c>) -> usize {
        let acquire = defining(slot);
        let ring = acquire.and_then(|acquire| operands(acquire).first().copied());
        let used = ring.map(|ring| users(ring).into_iter().map(|op| self.top(op)).max());
        used.flatten().unwrap_or(usize::MAX)
    }

    /// Whether every execution of `before` is followed by one of `after`: it comes later, in the same block or one
    /// around it.
    fn follows(&self, after: Op<'c>, before: Op<'c>) -> bool {
        let place = |op: Op<'c>| self.order.get(&number(op)).copied();
        if place(after) <= place(before) {
            return false;
        }
        let Some(block) = after.block() else {
            return false;
        };
        let mut around = Some(before);
        while let Some(op) = around {
            if op.block().is_some_and(|own| own == block) {
                return true;
            }
            // SAFETY: the parent lives as long as the operation.
            around = op
                .parent_operation()
                .map(|parent| unsafe { Op::from_raw(parent.to_raw()) });
        }
        false
    }
}
