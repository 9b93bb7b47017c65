//! The storage of `axe.all_gather`, and the mbarrier that counts the bytes of its rows (PTX ISA 9.7.13.15, "mbarrier").

use super::emitter::Emitter;
use super::value::Memory;
use crate::state::gathering::{bytes_of_rows, mbarrier_behind};
use axe_passes::PassResult;
use axe_passes::ir::{Int, Op, Val};

impl<'c> Emitter<'c> {
    /// `axe.all_gather.create`: in a cluster, the mbarrier's one phase ends when the rows of all have come.
    pub(crate) fn create_gather(&mut self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let memory = self.alloc(op)?;
        if self.cluster == 1 {
            return Ok(memory);
        }
        let full = self.gathered_barrier(&memory)?;
        let bytes = Int::Known(self.gathered_bytes(&memory)?);
        let leads = self.leads()?;
        self.when(leads, &[], |emitter| {
            let ints = emitter.ints();
            let (one, bytes) = (ints.value(Int::Known(1))?, ints.value(bytes)?);
            emitter.effect("nvvm.mbarrier.init", &[full, one])?;
            emitter.effect("nvvm.fence.mbarrier.init", &[])?;
            emitter.effect("nvvm.mbarrier.arrive.expect_tx", &[full, bytes])?;
            Ok(Vec::new())
        })?;
        Ok(memory)
    }

    /// The mbarrier behind the rows.
    pub(crate) fn gathered_barrier(&self, memory: &Memory<'c>) -> PassResult<'c, Val<'c>> {
        let at = mbarrier_behind(self.gathered_bytes(memory)?);
        self.shared_address(memory.base, Int::Known(at))
    }

    fn gathered_bytes(&self, memory: &Memory<'c>) -> PassResult<'c, i64> {
        match memory.shape[..] {
            [rows, words] => Ok(bytes_of_rows(rows, words)),
            _ => Err(self.error("expected rows of words")),
        }
    }
}
