//! `axe.copy` from memory to registers, in vectors.

use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::{self, CopyPlan};
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};
use std::rc::Rc;

/// `ld` of 1 to 16 bytes.
pub(super) struct VectorLoad;

struct Load {
    fragment: Rc<Fragment>,
    plan: CopyPlan,
}

impl<'c> Schedule<'c> for VectorLoad {
    fn name(&self) -> &'static str {
        "ld.vector"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let memory = site.memory(0)?;
        let fragment = site.result()?;
        let plan = with_memory(memory, |memory| CopyPlan::new(&fragment, memory))?;
        Ok(Box::new(Load { fragment, plan }))
    }
}

/// Storage as plans see it.
pub(super) fn with_memory<T>(
    memory: &Memory<'_>,
    plan: impl FnOnce(copy::Memory) -> Result<T, Decline>,
) -> Result<T, Decline> {
    let layout = memory
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    let ends: Vec<_> = memory
        .guards
        .iter()
        .map(|guard| guard.map_or(0, |guard| guard.divisor))
        .collect();
    plan(copy::Memory {
        layout: &layout,
        alignment: memory.alignment,
        element_bytes: memory.bytes,
        ends: &ends,
        widest: i64::MAX,
    })
}

/// The value of elements that do not exist.
pub(super) fn padding<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
    element: melior::ir::Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let has_destination = super::segment(op, 1) > 0;
    match super::segment(op, 2) > 0 {
        false => emitter.zero(element),
        true => {
            let at = 1 + usize::from(has_destination);
            let pad = operands(op)
                .get(at)
                .copied()
                .ok_or_else(|| emitter.error("expected padding"))?;
            emitter.scalar(pad)
        }
    }
}

impl<'c> Plan<'c> for Load {
    fn describe(&self) -> String {
        self.plan.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let source = emitter.source(op)?;
        let memory = emitter.memory(source)?;
        let pad = padding(emitter, op, memory.element)?;
        load(emitter, &self.fragment, &self.plan, &memory, pad)
    }
}

/// Loads the registers of a plan; those of elements that do not exist are `pad`.
pub(super) fn load<'c>(
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    plan: &CopyPlan,
    memory: &Memory<'c>,
    pad: Val<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let pointers = emitter.pointers(plan, memory)?;
    let groups = emitter.groups(
        fragment,
        memory,
        plan.accesses.iter().map(|access| access.register),
    );
    let width = usize::try_from(plan.width).unwrap_or(1);
    let mut values = vec![pad; pointers.len() * width];
    for (key, members) in &groups {
        let condition = emitter.exist(fragment, memory, key)?;
        let pads = vec![pad; members.len() * width];
        let loads = |emitter: &mut Emitter<'c>| {
            let mut loaded = Vec::new();
            for &member in members {
                loaded.extend(emitter.load(memory, pointers[member], plan.width)?);
            }
            Ok(loaded)
        };
        let loaded = match condition {
            None => loads(emitter)?,
            Some(condition) => emitter.when(condition, &pads, loads)?,
        };
        for (member, vector) in members.iter().zip(loaded.chunks(width)) {
            values[member * width..][..width].copy_from_slice(vector);
        }
    }
    Ok(values)
}
