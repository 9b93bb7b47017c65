//! The storage of `axe.reduce_scatter`, and its mbarriers (PTX ISA 9.7.13.15, "mbarrier"): one counts the bytes of the parts that other
//! CTAs send, one the warps of all CTAs that have read theirs.

use super::emitter::Emitter;
use super::value::Memory;
use crate::state::scattering::{bytes_of_parts, full_behind, read_behind};
use crate::state::threads::ThreadGroup;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::value::{name, only_result, users};
use axe_passes::ir::{Int, Op, Val};

impl<'c> Emitter<'c> {
    /// `axe.reduce_scatter.create`: a phase of the first mbarrier ends when all parts have come. The other CTAs may write once they have
    /// met here.
    pub(crate) fn create_scatter(&mut self, op: Op<'c>) -> PassResult<'c, Memory<'c>> {
        let memory = self.alloc(op)?;
        let scatters = only_result(op).map(users).unwrap_or_default().into_iter();
        let mut scatters = scatters.filter(|user| name(*user) == ops::REDUCE_SCATTER);
        let Some(scatter) = scatters.next() else {
            return Ok(memory);
        };
        let group = ThreadGroup::around(scatter, self.kernel.threads);
        let readers = group.warps * group.count() * self.cluster;
        let [full, read] = self.scattered_barriers(&memory)?;
        let bytes = Int::Known(self.scattered_bytes(&memory)?);
        let leads = self.leads()?;
        self.when(leads, &[], |emitter| {
            let ints = emitter.ints();
            let [one, readers, bytes] =
                [Int::Known(1), Int::Known(readers), bytes].map(|number| ints.value(number));
            let (one, readers, bytes) = (one?, readers?, bytes?);
            emitter.effect("nvvm.mbarrier.init", &[full, one])?;
            emitter.effect("nvvm.mbarrier.init", &[read, readers])?;
            emitter.effect("nvvm.fence.mbarrier.init", &[])?;
            emitter.effect("nvvm.mbarrier.arrive.expect_tx", &[full, bytes])?;
            Ok(Vec::new())
        })?;
        self.meet_cluster()?;
        Ok(memory)
    }

    /// The mbarriers behind the parts: all have come, and all CTAs have read theirs.
    pub(crate) fn scattered_barriers(&self, memory: &Memory<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let bytes = self.scattered_bytes(memory)?;
        let at = |byte: i64| self.shared_address(memory.base, Int::Known(byte));
        Ok([at(full_behind(bytes))?, at(read_behind(bytes))?])
    }

    /// Bytes of all parts.
    pub(crate) fn scattered_bytes(&self, memory: &Memory<'c>) -> PassResult<'c, i64> {
        let bytes = bytes_of_parts(&memory.shape);
        bytes.ok_or_else(|| self.error("expected parts of a known size"))
    }
}
