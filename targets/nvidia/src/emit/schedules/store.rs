//! `axe.copy` from registers to memory, in vectors.

use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::{Memory, Registers};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::plan::owner::Owner;
use crate::plan::swap::Swap;
use crate::state::site::Site;
use crate::state::storage::with_memory;
use axe_layout::Swizzle;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Int, Op, Predicate, Val};
use melior::ir::ValueLike;

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

/// How lanes swap a plan's stores, and the swizzle that it is for, where the banks of shared memory serve them in fewer wavefronts then.
pub(super) fn swapped(plan: &CopyPlan, memory: &Memory<'_>) -> Option<(Swizzle, Swap)> {
    let swizzle = memory.swizzle?;
    let known = memory.pending.known() == Some(0) && !memory.is_guarded();
    let swap = known.then(|| Swap::of(plan, swizzle, memory.bytes))?;
    swap.map(|swap| (swizzle, swap))
}

/// Stores all registers of a plan where lanes swap accesses.
pub(super) fn store_swapped<'c>(
    emitter: &Emitter<'c>,
    (plan, swap): (&CopyPlan, &Swap),
    (memory, swizzle): (&Memory<'c>, Swizzle),
    values: &[Val<'c>],
) -> PassResult<'c> {
    let ints = emitter.ints();
    let odd = ints.rem(ints.div(Int::Value(emitter.thread), swap.divisor)?, 2)?;
    let is_odd = ints.compare(Predicate::Equal, odd, Int::Known(1))?;
    let pointers = emitter.swapped_pointers((plan, swap), (memory, swizzle), odd)?;
    let width = usize::try_from(plan.width).unwrap_or(1);
    let of = |access: usize| &values[access * width..][..width];
    for ((access, pointer), other) in pointers.into_iter().enumerate().zip(&swap.others) {
        let both = of(*other).iter().zip(of(access));
        let own = both.map(|(other, own)| {
            let operands = [is_odd, *other, *own];
            let r#type = own.r#type();
            emitter
                .builder
                .value("arith.select", &operands, r#type, &[])
        });
        emitter.store(memory, pointer, &own.collect::<PassResult<'c, Vec<_>>>()?)?;
    }
    Ok(())
}
