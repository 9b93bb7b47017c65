//! Thread groups that go on one after another, each with its turn handed on at named barriers (PTX ISA 9.7.13.1, `barrier`):
//! the tiles of a ping-pong loop, and the turns of `axe.ordered.begin`.
//!
//! Who waits and who arrives is said by predicates: a branch between products that are under way would make ptxas complete
//! each before the next (C7514), and a number that is known at run time would reserve all barriers.

use super::assembly::Assembly;
use super::emitter::Emitter;
use crate::state::threads::{NamedBarrier, Selection, ThreadGroup, WARP_THREADS};
use axe_dialect::ops;
use axe_dialect::ops::OrderedBeginOp;
use axe_dialect::{Level, Typed};
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_passes::ir::value::{defined_by, name, operands, results};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Int, Predicate};
use melior::ir::operation::OperationLike;

/// Thread groups in an order.
#[derive(Clone)]
pub(crate) struct Order<'c> {
    /// The groups, the first one first.
    pub members: ThreadGroup,
    /// The place of this thread's group.
    pub number: Int<'c>,
}

/// The two ways to come to a barrier.
#[derive(Clone, Copy)]
enum Come {
    /// And wait for the others.
    Wait,
    /// And go on.
    Arrive,
}

impl<'c> Emitter<'c> {
    /// The group of this place waits until it is its turn.
    pub(crate) fn await_turn(&mut self, order: &Order<'c>) -> PassResult<'c> {
        let own: Vec<_> = (0..order.members.count()).map(|at| (at, at)).collect();
        self.come(order, Come::Wait, &own)
    }

    /// Groups let others have their turn: pairs of places, the one that hands on and the one that is next.
    pub(crate) fn hand_on(&mut self, order: &Order<'c>, pairs: &[(i64, i64)]) -> PassResult<'c> {
        self.come(order, Come::Arrive, pairs)
    }

    /// Each group of the first places comes to the barrier of the group of the second place.
    fn come(&mut self, order: &Order<'c>, come: Come, pairs: &[(i64, i64)]) -> PassResult<'c> {
        let warps = order.members.warps;
        let (mut text, mut own) = (String::new(), Vec::new());
        for (at, &(from, to)) in pairs.iter().enumerate() {
            let first = usize::try_from(to)
                .ok()
                .and_then(|to| order.members.firsts.get(to).copied())
                .ok_or_else(|| self.error("a turn of no thread group"))?;
            let barrier = self.barrier_of(NamedBarrier::Turn { first, warps })?;
            let instruction = match come {
                Come::Wait => "bar.sync",
                Come::Arrive => "bar.arrive",
            };
            let threads = 2 * warps * WARP_THREADS;
            text.push_str(&format!("@${at} {instruction} {barrier}, {threads};\n"));
            let (ints, number) = (self.ints(), order.number);
            own.push(ints.compare(Predicate::Equal, number, Int::Known(from))?);
        }
        let constraints = format!("{}~{{memory}}", "b,".repeat(own.len()));
        self.assembly(&Assembly { text, constraints }, &own, &[])?;
        Ok(())
    }

    /// The order of the members that the scope has at a level.
    fn order_of(&self, level: Level) -> PassResult<'c, Order<'c>> {
        if self.group.count() > 1 {
            return Err(self.error(
                "an order of the members of thread groups that run side by side has no form on this target: \
                 expected a scope with a range, or of the whole CTA, around it",
            ));
        }
        let unit = Selection::unit_of(level).filter(|unit| *unit > 0);
        let unit = unit.ok_or_else(|| self.error("expected an order of warps or warpgroups"))?;
        let members = self.group.select(&Selection { unit, range: None });
        let number = self.ints().div(self.warp_in_group()?, unit)?;
        Ok(Order { members, number })
    }

    /// `axe.ordered.begin`.
    pub(crate) fn begin_ordered(&mut self, op: Op<'c>) -> PassResult<'c> {
        let order = self.order_of(level_of(self, op)?)?;
        self.await_turn(&order)?;
        self.bind_expanded(&results(op), &[])
    }

    /// `axe.ordered.end`.
    pub(crate) fn end_ordered(&mut self, op: Op<'c>) -> PassResult<'c> {
        let begin = operands(op)
            .first()
            .and_then(|turn| defined_by(*turn, OrderedBeginOp::NAME))
            .ok_or_else(|| self.error("expected the token of an axe.ordered.begin"))?;
        let order = self.order_of(level_of(self, begin)?)?;
        self.hand_on(&order, &after(order.members.count()))
    }

    /// The last member lets the first one begin, where a scope has turns.
    pub(crate) fn begin_orders(&mut self, scope: Op<'c>) -> PassResult<'c> {
        for level in levels(self, scope)? {
            let order = self.order_of(level)?;
            self.hand_on(&order, &[(order.members.count() - 1, 0)])?;
        }
        Ok(())
    }

    /// The first member takes the turn that the last one left: nobody has come to a barrier that is not complete.
    pub(crate) fn end_orders(&mut self, scope: Op<'c>) -> PassResult<'c> {
        for level in levels(self, scope)? {
            let order = self.order_of(level)?;
            self.come(&order, Come::Wait, &[(0, 0)])?;
        }
        Ok(())
    }
}

/// Each place and the next one; the first one is next to the last one.
pub(crate) fn after(count: i64) -> Vec<(i64, i64)> {
    (0..count).map(|at| (at, (at + 1) % count)).collect()
}

fn level_of<'c>(emitter: &Emitter<'c>, begin: Op<'c>) -> PassResult<'c, Level> {
    let level = begin.attribute("level").ok().and_then(Level::cast);
    level.ok_or_else(|| emitter.error("expected the level of an order"))
}

/// The levels of the turns in a scope, without those in scopes inside.
fn levels<'c>(emitter: &Emitter<'c>, scope: Op<'c>) -> PassResult<'c, Vec<Level>> {
    let mut levels = Vec::new();
    for op in nested(scope, &|op| name(op) != ops::SCOPE) {
        if name(op) != OrderedBeginOp::NAME {
            continue;
        }
        let level = level_of(emitter, op)?;
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    Ok(levels)
}
