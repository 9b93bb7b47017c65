//! `axe.copy` between two pieces of memory, through registers.

use super::load::{load, padding, with_memory};
use super::store::store;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// Vectors through registers. An asynchronous copy may be complete at once.
pub(super) struct Through;

impl<'c> Schedule<'c> for Through {
    fn name(&self) -> &'static str {
        "ld.st.vector"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        plan(site).map(|plan| Box::new(Registers(plan)) as _)
    }
}

struct Registers(TransferPlan);

/// The plan of a copy from memory to memory.
pub(super) fn plan(site: Site<'_, '_>) -> Result<TransferPlan, Decline> {
    let (from, to) = (site.memory(0)?, site.memory(1)?);
    with_memory(from, |a| {
        with_memory(to, |b| {
            TransferPlan::new(&to.shape, site.emitter.threads, a, b)
        })
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

impl<'c> Plan<'c> for Registers {
    fn describe(&self) -> String {
        self.0.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let pad = padding(emitter, op, from.element)?;
        let TransferPlan {
            fragment,
            from: loads,
            to: stores,
            owner,
        } = &self.0;
        let all = |emitter: &mut Emitter<'c>| {
            let values = load(emitter, fragment, loads, &from, pad)?;
            store(emitter, fragment, stores, &to, &values, None)?;
            Ok(Vec::new())
        };
        match emitter.owns(owner)? {
            None => all(emitter),
            Some(condition) => emitter.when(condition, &[], all),
        }
    }
}
