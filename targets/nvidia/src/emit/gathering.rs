//! The storage of `axe.all_gather`, and the mbarriers that count the bytes of its rows (PTX ISA 9.7.13.15, "mbarrier").

use super::emitter::Emitter;
use super::value::Memory;
use crate::state::gathering::Slots;
use crate::state::rings::BARRIER_BYTES;
use axe_passes::PassResult;
use axe_passes::ir::{Int, Op, Val};

impl<'c> Emitter<'c> {
    /// `axe.all_gather.create`: in a cluster, a phase of a slot's mbarrier ends when the rows of all have come.
    pub(crate) fn create_gather(&mut self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let memory = self.alloc(op)?;
        if self.cluster == 1 {
            return Ok(memory);
        }
        let slots = self.gathered_slots(&memory)?;
        let leads = self.leads()?;
        let barriers = (0..slots.count)
            .map(|slot| self.gathered_barrier(&memory, Int::Known(slot)))
            .collect::<PassResult<'c, Vec<_>>>()?;
        self.when(leads, &[], |emitter| {
            let ints = emitter.ints();
            let [one, bytes] =
                [1, slots.bytes_of_slot()].map(|number| ints.value(Int::Known(number)));
            let (one, bytes) = (one?, bytes?);
            for full in &barriers {
                emitter.effect("nvvm.mbarrier.init", &[*full, one])?;
            }
            emitter.effect("nvvm.fence.mbarrier.init", &[])?;
            for full in &barriers {
                emitter.effect("nvvm.mbarrier.arrive.expect_tx", &[*full, bytes])?;
            }
            Ok(Vec::new())
        })?;
        Ok(memory)
    }

    /// The mbarrier of a slot, behind the rows.
    pub(crate) fn gathered_barrier(
        &self,
        memory: &Memory<'c>,
        slot: Int<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let first = Int::Known(self.gathered_slots(memory)?.mbarriers());
        let ints = self.ints();
        let at = ints.add(first, ints.mul(slot, BARRIER_BYTES)?)?;
        self.shared_address(memory.base, at)
    }

    /// The slots of the storage.
    pub(crate) fn gathered_slots(&self, memory: &Memory<'c>) -> PassResult<'c, Slots> {
        Slots::of(&memory.shape).ok_or_else(|| self.error("expected rows of words"))
    }
}
