//! The pipe's work is done, in order.

use super::{TensorOp, TensorWork, no_memory, touch};
use crate::exec::async_ops::memory::{AgentBytes, finding};
use crate::exec::async_ops::{Agent, Place};
use crate::exec::barrier::with_mbarrier;
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::fault::Fault;
use crate::report::{Finding, FindingKind};
use crate::units::Bytes;
use crate::units::tcgen05::{Cta, Instruction, Operands, Touch, descriptor};
use crate::units::tensor_memory::{CopyShape, TensorMemory};
use std::cell::RefCell;

/// Shared memory of one CTA of a group.
struct GroupBytes<'c, 'a, 'b> {
    bytes: &'c RefCell<AgentBytes<'a, 'b>>,
    rank: usize,
}

impl Bytes for GroupBytes<'_, '_, '_> {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let mut bytes = self.bytes.borrow_mut();
        bytes.rank = Some(self.rank);
        bytes.read(addr, out)
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let mut bytes = self.bytes.borrow_mut();
        bytes.rank = Some(self.rank);
        bytes.write(addr, data)
    }
}

impl Cluster {
    /// Does the oldest operation of a CTA's pipe if it is due.
    pub(in crate::exec::async_ops) fn tensor_step(
        &mut self,
        launch: &LaunchState<'_>,
        cta: usize,
        tick: u64,
    ) -> Result<bool, Box<Finding>> {
        let queue = self.ctas[cta].tensor.as_mut().map(|t| &mut t.queue);
        let due = queue.and_then(|q| q.pop_front_if(|op| op.ready <= tick));
        let Some(op) = due else {
            return Ok(false);
        };
        self.tensor_perform(launch, &op).map_err(|fault| {
            let kind = match fault {
                Fault::OutOfBounds { .. } => FindingKind::OutOfBounds,
                Fault::Unsupported(_) => FindingKind::Unsupported,
                Fault::Invalid(ref m) if m.contains("mbarrier") => FindingKind::BarrierMisuse,
                _ => FindingKind::Invalid,
            };
            let message = fault.to_string();
            Box::new(finding(launch, self, &op.agent, kind, message, None))
        })?;
        Ok(true)
    }

    fn tensor_perform(&mut self, launch: &LaunchState<'_>, op: &TensorOp) -> Result<(), Fault> {
        let agent = &op.agent;
        match &op.work {
            TensorWork::Mma {
                ranks,
                instruction,
                operands,
            } => self.tensor_mma(launch, agent, ranks, instruction, operands),
            TensorWork::Copy {
                ranks,
                shape,
                address,
                descriptor,
            } => ranks.iter().try_for_each(|&rank| {
                self.tensor_copy(launch, agent, rank, (*shape, *address, *descriptor))
            }),
            TensorWork::Commit(places) => places
                .iter()
                .try_for_each(|&place| self.tensor_commit(launch, agent, place)),
        }
    }

    fn tensor_mma(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        ranks: &[usize],
        instruction: &Instruction,
        operands: &Operands,
    ) -> Result<(), Fault> {
        for region in instruction.regions(ranks.len(), operands) {
            let place = (region.lanes, region.columns, region.touch);
            touch(self, launch, agent, ranks[region.cta], place);
        }
        let mut memories = self.take_memories(ranks)?;
        let cell = RefCell::new(AgentBytes {
            launch,
            cluster: self,
            agent,
            rank: None,
        });
        let mut shared: Vec<GroupBytes<'_, '_, '_>> = (ranks.iter())
            .map(|&rank| GroupBytes { bytes: &cell, rank })
            .collect();
        let mut ctas: Vec<Cta<'_>> = (memories.iter_mut().zip(&mut shared))
            .map(|(tensor, shared)| Cta { tensor, shared })
            .collect();
        let result = instruction.execute(&mut ctas, operands);
        self.give_back(ranks, memories);
        result
    }

    fn tensor_copy(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        rank: usize,
        (shape, address, bits): (CopyShape, u32, u64),
    ) -> Result<(), Fault> {
        for (lanes, columns) in shape.rectangles(address) {
            touch(self, launch, agent, rank, (lanes, columns, Touch::Write));
        }
        let matrix = descriptor(bits)?;
        let mut memories = self.take_memories(&[rank])?;
        let mut shared = AgentBytes {
            launch,
            cluster: self,
            agent,
            rank: Some(rank),
        };
        let result = match memories.first_mut() {
            Some(memory) => memory.copy(shape, &mut shared, matrix, address),
            None => Err(no_memory()),
        };
        self.give_back(&[rank], memories);
        result
    }

    fn take_memories(&mut self, ranks: &[usize]) -> Result<Vec<Box<TensorMemory>>, Fault> {
        let take = |&rank: &usize| {
            let tensor = self.ctas.get_mut(rank).and_then(|c| c.tensor.as_mut());
            tensor.and_then(|t| t.memory.take()).ok_or_else(no_memory)
        };
        ranks.iter().map(take).collect()
    }

    fn give_back(&mut self, ranks: &[usize], memories: Vec<Box<TensorMemory>>) {
        for (&rank, memory) in ranks.iter().zip(memories) {
            if let Some(tensor) = &mut self.ctas[rank].tensor {
                tensor.memory = Some(memory);
            }
        }
    }

    /// All that the pipe did before arrives on an mbarrier.
    fn tensor_commit(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        place: Place,
    ) -> Result<(), Fault> {
        self.check_initialised(launch, agent, place, "tcgen05.commit arrives");
        let mut view = agent.view.clone();
        if launch.checks.is_some() {
            std::sync::Arc::make_mut(&mut view.all).raise(agent.entity, agent.clock);
        }
        let outcome = with_mbarrier(self, place, |m| m.arrive(1, false))?;
        let clocks = self.ctas[place.0].mbar_clocks.entry(place.1).or_default();
        clocks.arrive(&view, outcome.completed);
        Ok(())
    }
}
