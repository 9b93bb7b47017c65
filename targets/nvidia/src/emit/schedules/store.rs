//! `axe.copy` from registers to memory, in vectors.

use super::load::with_memory;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::{Memory, Registers};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::owner::Owner;
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// `st` of 1 to 16 bytes.
pub(super) struct VectorStore;

struct Store {
    plan: CopyPlan,
    owner: Owner,
}

impl<'c> Schedule<'c> for VectorStore {
    fn name(&self) -> &'static str {
        "st.vector"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let fragment = &site.registers(0)?.fragment;
        let owner = Owner::new(fragment)?;
        let plan = with_memory(site.memory(1)?, |memory| CopyPlan::new(fragment, memory))?;
        Ok(Box::new(Store { plan, owner }))
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

impl<'c> Plan<'c> for Store {
    fn describe(&self) -> String {
        self.plan.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, memory) = sides(emitter, op)?;
        let owns = emitter.owns(&self.owner)?;
        store(
            emitter,
            &source.fragment,
            &self.plan,
            &memory,
            &source.values,
            owns,
        )?;
        Ok(Vec::new())
    }
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
