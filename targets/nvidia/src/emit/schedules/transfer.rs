//! `axe.copy` between two pieces of memory, through registers.

use super::load::{load, padding};
use super::store::store;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use crate::state::site::Site;
use crate::state::storage::with_memory;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// Vectors through registers. An asynchronous copy may be complete at once.
#[derive(Clone, Copy)]
pub(super) struct Through;

impl Schedule for Through {
    type Plan = TransferPlan;

    fn name(&self) -> &'static str {
        "ld.st.vector"
    }
}

impl<'c> Match<Site<'_, 'c>> for Through {
    fn plan(&self, site: Site<'_, 'c>) -> Result<TransferPlan, Decline> {
        plan(site)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &TransferPlan) -> Result<(), Decline> {
        check(site, plan)
    }
}

/// The plan of a copy from memory to memory.
pub(super) fn plan(site: Site<'_, '_>) -> Result<TransferPlan, Decline> {
    let (from, to) = (site.memory(0)?, site.memory(1)?);
    with_memory(from, |a| {
        with_memory(to, |b| TransferPlan::new(&to.shape, site.threads(), a, b))
    })
}

/// Checks the plan of a copy from memory to memory.
pub(super) fn check(site: Site<'_, '_>, plan: &TransferPlan) -> Result<(), Decline> {
    let (from, to) = (site.memory(0)?, site.memory(1)?);
    with_memory(from, |a| {
        with_memory(to, |b| plan.verify(&to.shape, site.threads(), a, b))
    })
}

/// The two sides of a copy from memory to memory.
pub(super) fn sides<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
) -> PassResult<'c, (Memory<'c>, Memory<'c>)> {
    match operands(op).as_slice() {
        [source, destination, ..] => Ok((emitter.memory(*source)?, emitter.memory(*destination)?)),
        _ => Err(emitter.error("expected a source and a destination")),
    }
}

impl<'c> Emit<'c> for Through {
    fn emit(
        &self,
        plan: &TransferPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let pad = padding(emitter, op, from.element)?;
        let all = |emitter: &mut Emitter<'c>| {
            let values = load(emitter, &plan.fragment, &plan.from, &from, pad)?;
            store(emitter, &plan.fragment, &plan.to, &to, &values, None)?;
            Ok(Vec::new())
        };
        match emitter.owns(&plan.owner)? {
            None => all(emitter),
            Some(condition) => emitter.when(condition, &[], all),
        }
    }
}
