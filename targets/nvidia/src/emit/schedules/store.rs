//! `axe.copy` from registers to memory, in vectors.

use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::{Memory, Registers};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::owner::Owner;
use crate::state::site::Site;
use crate::state::storage::with_memory;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// `st` of 1 to 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct VectorStore;

impl Schedule for VectorStore {
    type Plan = CopyPlan;

    fn name(&self) -> &'static str {
        "st.vector"
    }
}

impl<'c> Match<Site<'_, 'c>> for VectorStore {
    fn plan(&self, site: Site<'_, 'c>) -> Result<CopyPlan, Decline> {
        let fragment = &site.registers(0)?.fragment;
        Owner::new(fragment)?;
        with_memory(site.memory(1)?, |memory| CopyPlan::new(fragment, memory))
    }

    fn check(&self, site: Site<'_, 'c>, plan: &CopyPlan) -> Result<(), Decline> {
        let fragment = &site.registers(0)?.fragment;
        Owner::new(fragment)?;
        with_memory(site.memory(1)?, |memory| plan.verify(fragment, memory))
    }
}

/// The source and destination of a store.
pub(super) fn sides<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
) -> PassResult<'c, (Registers<'c>, Memory<'c>)> {
    match operands(op).as_slice() {
        [source, destination, ..] => {
            Ok((emitter.registers(*source)?, emitter.memory(*destination)?))
        }
        _ => Err(emitter.error("expected a source and a destination")),
    }
}

impl<'c> Emit<'c> for VectorStore {
    fn emit(
        &self,
        plan: &CopyPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, memory) = sides(emitter, op)?;
        let owns = owns(emitter, &source.fragment)?;
        let fragment = source.fragment.clone();
        store(emitter, &fragment, plan, &memory, &source.values, owns)?;
        Ok(Vec::new())
    }
}

/// Whether this thread is the one that stores the elements that it holds; `None` when every thread is.
pub(super) fn owns<'c>(
    emitter: &Emitter<'c>,
    fragment: &Fragment,
) -> PassResult<'c, Option<Val<'c>>> {
    let owner = Owner::new(fragment).map_err(|decline| emitter.error(decline.to_string()))?;
    emitter.owns(&owner)
}

/// Stores the registers of a plan whose elements exist, by the threads for which `owns` holds.
pub(super) fn store<'c>(
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    plan: &CopyPlan,
    memory: &Memory<'c>,
    values: &[Val<'c>],
    owns: Option<Val<'c>>,
) -> PassResult<'c> {
    let pointers = emitter.pointers(plan, memory)?;
    let groups = emitter.groups(
        fragment,
        memory,
        plan.accesses.iter().map(|access| access.register),
    );
    let width = usize::try_from(plan.width).unwrap_or(1);
    for (key, members) in &groups {
        let exist = emitter.exist(fragment, memory, key)?;
        let condition = match (owns, exist) {
            (Some(owns), Some(exist)) => Some(emitter.both(Some(owns), exist)?),
            (one, None) | (None, one) => one,
        };
        let stores = |emitter: &mut Emitter<'c>| {
            for &member in members {
                emitter.store(memory, pointers[member], &values[member * width..][..width])?;
            }
            Ok(Vec::new())
        };
        match condition {
            None => stores(emitter)?,
            Some(condition) => emitter.when(condition, &[], stores)?,
        };
    }
    Ok(())
}
