//! Registers to global memory by way of shared memory: `stmatrix`, then a store by the tensor memory
//! accelerator, column panel by column panel through a ring of panels (PTX ISA 9.7.9.27).

use super::panels::Panels;
use super::store::sides;
use super::tma::tma_plan;
use super::traffic::{Traffic, accumulates, adds_in_bulk};
use crate::emit::int::Int;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::{Memory, Origin, Space};
use crate::plan::Decline;
use crate::plan::tma::TmaPlan;
use axe_passes::PassResult;
use axe_passes::ir::{Op, Val};

/// The schedule.
pub(super) struct Staged;

struct Boxes {
    panels: Panels,
    tma: TmaPlan,
    traffic: Traffic,
}

impl<'c> Schedule<'c> for Staged {
    fn name(&self) -> &'static str {
        "tma.store.staged"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let emitter = site.emitter;
        let memory = site.memory(1)?;
        if accumulates(site.op) {
            adds_in_bulk(memory.element)?;
        }
        let panels = Panels::of(site)?;
        let origin = memory
            .origin
            .as_ref()
            .filter(|_| memory.space == Space::Global);
        let origin = origin.ok_or_else(|| {
            Decline::new("the box is not one of a kernel's argument: its bounds are a slice's")
        })?;
        let shared = panels
            .at(emitter, memory, emitter.shared)
            .map_err(|_| Decline::new("the panel has no place in shared memory"))?;
        let tma = tma_plan(
            origin,
            &Memory {
                shape: shared.shape.clone(),
                ..memory.clone()
            },
            &shared,
        )?;
        Ok(Box::new(Boxes {
            panels,
            tma,
            traffic: Traffic::of(site.op),
        }))
    }
}

impl<'c> Plan<'c> for Boxes {
    fn describe(&self) -> String {
        format!("{}{}", self.panels, self.tma)
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, target) = sides(emitter, op)?;
        let map = emitter.map_of(&self.tma, &target)?;
        let panels = &self.panels;
        let ring = panels.enter(emitter, true)?;
        let first = emitter.ints().mul(ring.part.number, panels.rows)?;
        let target = moved(emitter, target, first, 0)?;
        for number in 0..panels.count() {
            let slot = panels.put(emitter, &ring, &source, (number, &target))?;
            // Here, so that nothing keeps LLVM from joining this store with the wait of the next panel.
            let there = moved(emitter, target.clone(), Int::ZERO, number * panels.columns)?;
            emitter.when(ring.part.leads, &[], |emitter| {
                for each in &self.tma.boxes {
                    emitter.store_box(map, &there, &slot, each, self.traffic)?;
                }
                emitter.effect("nvvm.cp.async.bulk.commit.group", &[])?;
                Ok(Vec::new())
            })?;
            panels.pass(emitter, &ring)?;
        }
        panels.leave(emitter, &ring)?;
        Ok(Vec::new())
    }
}

/// A box further down the rows and columns of its argument.
fn moved<'c>(
    emitter: &Emitter<'c>,
    mut memory: Memory<'c>,
    rows: Int<'c>,
    columns: i64,
) -> PassResult<'c, Memory<'c>> {
    let ints = emitter.ints();
    if let Some(Origin { at, kept, .. }) = &mut memory.origin {
        for (dim, by) in kept.iter().zip([rows, Int::Known(columns)]) {
            if let Some(at) = at.get_mut(*dim) {
                *at = ints.add(*at, by)?;
            }
        }
    }
    Ok(memory)
}
