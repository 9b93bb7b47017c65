//! `axe.copy` from memory to registers, in vectors.

use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::state::site::Site;
use crate::state::site::segment;
use crate::state::storage::with_memory;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};
use std::rc::Rc;

/// `ld` of 1 to 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct VectorLoad;

impl Schedule for VectorLoad {
    type Plan = CopyPlan;

    fn name(&self) -> &'static str {
        "ld.vector"
    }
}

impl<'c> Match<Site<'_, 'c>> for VectorLoad {
    fn plan(&self, site: Site<'_, 'c>) -> Result<CopyPlan, Decline> {
        let storage = site.memory(0)?;
        let fragment = site.result()?;
        with_memory(storage, |memory| CopyPlan::new(&fragment, memory))
    }

    fn check(&self, site: Site<'_, 'c>, plan: &CopyPlan) -> Result<(), Decline> {
        let storage = site.memory(0)?;
        let fragment = site.result()?;
        with_memory(storage, |memory| plan.verify(&fragment, memory))
    }
}

/// The value of elements that do not exist.
pub(super) fn padding<'c>(
    emitter: &Emitter<'c>,
    op: Op<'c>,
    element: melior::ir::Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let has_destination = segment(op, 1) > 0;
    match segment(op, 2) > 0 {
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

/// What a copy from memory to registers takes.
pub(super) struct Reads<'c> {
    pub memory: Memory<'c>,
    pub fragment: Rc<Fragment>,
    /// The value of elements that do not exist.
    pub pad: Val<'c>,
}

impl<'c> Reads<'c> {
    pub(super) fn of(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Self> {
        let source = emitter.source(op)?;
        let memory = emitter.memory(source)?;
        let fragment = emitter.result_fragment(op)?;
        let pad = padding(emitter, op, memory.element)?;
        Ok(Self {
            memory,
            fragment,
            pad,
        })
    }
}

impl<'c> Emit<'c> for VectorLoad {
    fn emit(
        &self,
        plan: &CopyPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Reads {
            memory,
            fragment,
            pad,
        } = Reads::of(emitter, op)?;
        match emitter.wanted(op, &fragment)? {
            None => load(emitter, &fragment, plan, &memory, pad),
            Some(wanted) => load_wanted(emitter, &fragment, plan, &memory, (pad, &wanted)),
        }
    }
}

/// Loads those vectors of a plan of which registers are wanted. The others are `pad`.
fn load_wanted<'c>(
    emitter: &mut Emitter<'c>,
    fragment: &Fragment,
    plan: &CopyPlan,
    memory: &Memory<'c>,
    (pad, wanted): (Val<'c>, &[Val<'c>]),
) -> PassResult<'c, Vec<Val<'c>>> {
    let pointers = emitter.pointers(plan, memory)?;
    let width = usize::try_from(plan.width).unwrap_or(1);
    let pads = vec![pad; width];
    let registers = plan.accesses.iter().map(|access| access.register);
    let groups = emitter.groups(fragment, memory, registers);
    let mut exist = vec![None; pointers.len()];
    for (key, members) in &groups {
        let condition = emitter.exist(fragment, memory, key)?;
        for &member in members {
            exist[member] = condition;
        }
    }
    let mut values = Vec::new();
    for ((pointer, exists), wanted) in pointers.iter().zip(exist).zip(wanted.chunks(width)) {
        let any = emitter.any(wanted)?;
        let condition = match (exists, any) {
            (exists, Some(any)) => emitter.both(exists, any)?,
            (_, None) => return Err(emitter.error("a load without registers")),
        };
        let vector = emitter.when(condition, &pads, |emitter| {
            emitter.load(memory, *pointer, plan.width)
        })?;
        values.extend(vector);
    }
    Ok(values)
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
        let loads = |emitter: &mut Emitter<'c>| {
            let own = members.iter();
            let own = own.map(|&member| emitter.load_vector(memory, pointers[member], plan.width));
            own.collect::<PassResult<'c, Vec<_>>>()
        };
        // Vectors leave a branch whole: of what is cut out of them in it LLVM would make a value of the branch each.
        let loaded = match condition {
            None => loads(emitter)?,
            Some(condition) => {
                let pads = emitter.padded_vector(pad, plan.width)?;
                emitter.when(condition, &vec![pads; members.len()], loads)?
            }
        };
        for (member, vector) in members.iter().zip(loaded) {
            let vector = emitter.elements_of(vector, plan.width, memory.element)?;
            values[member * width..][..width].copy_from_slice(&vector);
        }
    }
    Ok(values)
}
