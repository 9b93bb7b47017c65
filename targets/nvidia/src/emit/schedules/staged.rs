//! Registers to global memory by way of shared memory: `stmatrix`, then a store by the tensor memory
//! accelerator, column subtile by column subtile through a ring of subtiles (PTX ISA 9.7.9.27).

use super::store::sides;
use super::subtiles::Subtiles;
use super::tma::{check_tma, tma_plan};
use super::traffic::{Traffic, accumulates, adds_in_bulk};
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::tma::TmaPlan;
use crate::state::cursor::Taken;
use crate::state::form::{Space, Storage};
use crate::state::site::Site;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::Int;
use axe_passes::ir::{Op, Val};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The schedule.
#[derive(Clone, Copy)]
pub(super) struct Staged;

/// Subtiles, and the boxes of one as the accelerator stores it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Boxes {
    subtiles: Subtiles,
    tma: TmaPlan,
}

impl fmt::Display for Boxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.subtiles, self.tma)
    }
}

impl Schedule for Staged {
    type Plan = Boxes;

    fn name(&self) -> &'static str {
        "tma.store.staged"
    }
}

/// The destination, which the accelerator writes.
fn destination<'a, 'c>(site: Site<'a, 'c>) -> Result<&'a Storage<'c>, Decline> {
    let storage = site.memory(1)?;
    if accumulates(site.op) {
        adds_in_bulk(storage.element)?;
    }
    Ok(storage)
}

/// A subtile in global memory and in shared memory.
fn ends<'c>(
    subtiles: &Subtiles,
    storage: &Storage<'c>,
) -> Result<(Storage<'c>, Storage<'c>), Decline> {
    if storage.origin.is_none() || storage.space != Space::Global {
        return Err(Decline::new(
            "the box is not one of a kernel's argument: its bounds are a slice's",
        ));
    }
    let shared = subtiles.shared(storage)?;
    let global = Storage {
        shape: shared.shape.clone(),
        ..storage.clone()
    };
    Ok((global, shared))
}

impl<'c> Match<Site<'_, 'c>> for Staged {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Boxes, Decline> {
        let storage = destination(site)?;
        let subtiles = Subtiles::of(site)?;
        let (global, shared) = ends(&subtiles, storage)?;
        let tma = tma_plan(&global, &shared)?;
        Ok(Boxes { subtiles, tma })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Boxes) -> Result<(), Decline> {
        let storage = destination(site)?;
        plan.subtiles.check(site)?;
        let (global, shared) = ends(&plan.subtiles, storage)?;
        check_tma(&global, &shared, &plan.tma)
    }
}

impl<'c> Emit<'c> for Staged {
    fn taken(&self, plan: &Boxes) -> Taken {
        Taken::Slots(plan.subtiles.slots)
    }

    fn emit(
        &self,
        plan: &Boxes,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, target) = sides(emitter, op)?;
        let traffic = Traffic::of(op);
        let map = emitter.map_of(&plan.tma, &target)?;
        let subtiles = &plan.subtiles;
        let held = subtiles.held(emitter, op, &source.fragment)?;
        let ring = subtiles.enter(emitter, held, (true, traffic.accumulate))?;
        let first = subtiles.origin(emitter, ring.part.number)?;
        let target = moved(emitter, target, first)?;
        for number in 0..subtiles.count {
            let slot = subtiles.put(emitter, &ring, &source, (number, &target))?;
            // Here, so that nothing keeps LLVM from joining this store with the wait of the next subtile.
            let column = Int::Known(number * subtiles.columns);
            let there = moved(emitter, target.clone(), [Int::ZERO, column])?;
            emitter.when(ring.part.leads, &[], |emitter| {
                for each in &plan.tma.boxes {
                    emitter.store_box(map, &there, &slot, each, traffic)?;
                }
                emitter.effect("nvvm.cp.async.bulk.commit.group", &[])?;
                Ok(Vec::new())
            })?;
            subtiles.pass(emitter, &ring)?;
        }
        subtiles.leave(emitter)?;
        Ok(Vec::new())
    }
}

/// A box further down the rows and columns of its argument.
fn moved<'c>(
    emitter: &Emitter<'c>,
    mut memory: Memory<'c>,
    by: [Int<'c>; 2],
) -> PassResult<'c, Memory<'c>> {
    let ints = emitter.ints();
    let kept = memory.origin.as_ref().map(|origin| origin.kept.clone());
    for (dim, by) in kept.iter().flatten().zip(by) {
        if let Some(at) = memory.at.get_mut(*dim) {
            *at = ints.add(*at, by)?;
        }
    }
    Ok(memory)
}
