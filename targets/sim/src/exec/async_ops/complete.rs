//! Completion: the work that is due is done.

use super::memory::{AgentBytes, finding, record};
use super::wgmma::WgmmaEntry;
use super::{Agent, AsyncOp, BulkWork, TensorWork, Work};
use crate::check::clock::View;
use crate::check::shadow::{Actor, Epoch, STRONG};
use crate::decode::{RANK_SHIFT, TensorDirection};
use crate::exec::barrier::with_mbarrier;
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::exec::step::lanes_of;
use crate::fault::Fault;
use crate::report::{Finding, FindingKind};
use crate::units::Bytes;
use crate::units::tma;

/// Bits of a shared address below the rank.
const OFFSET: u64 = (1 << RANK_SHIFT) - 1;

impl Cluster {
    /// Does the earliest work that can be done, whenever it is due: nobody else can go on.
    pub(in crate::exec) fn force_async(
        &mut self,
        launch: &LaunchState<'_>,
    ) -> Result<bool, Box<Finding>> {
        // What is due first may wait for others, as a wgmma for the other warps of its warpgroup.
        for tick in self.due() {
            if self.complete_async(launch, tick.max(self.tick))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does the work that is due at `tick`. Returns whether any was done.
    pub(in crate::exec) fn complete_async(
        &mut self,
        launch: &LaunchState<'_>,
        tick: u64,
    ) -> Result<bool, Box<Finding>> {
        let mut any = false;
        while let Some(i) = self.pending.iter().position(|op| op.ready <= tick) {
            let op = self.pending.remove(i);
            if matches!(op.work, Work::CopyArrive { .. }) {
                self.perform_earlier(launch, &op)?;
            }
            self.perform_at(launch, &op)?;
            any = true;
        }
        for cta in 0..self.ctas.len() {
            for group in 0..self.ctas[cta].wgmma.len().div_ceil(4) {
                while self.wgmma_step(launch, cta, group, tick)? {
                    any = true;
                }
            }
        }
        for cta in 0..self.ctas.len() {
            while self.tensor_step(launch, cta, tick)? {
                any = true;
            }
        }
        if any {
            self.events += 1;
        }
        Ok(any)
    }

    /// When the work that is under way is due, in order.
    fn due(&self) -> Vec<u64> {
        let copies = self.pending.iter().map(|op| op.ready);
        let heads = self
            .ctas
            .iter()
            .flat_map(|c| &c.wgmma)
            .filter_map(|q| match q.front() {
                Some(WgmmaEntry::Mma(part)) => Some(part.ready),
                Some(WgmmaEntry::Commit) => Some(0),
                None => None,
            });
        let pipes = (self.ctas.iter().flat_map(|c| &c.tensor))
            .filter_map(|t| t.queue.front().map(|op| op.ready));
        let mut all: Vec<u64> = copies.chain(heads).chain(pipes).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// An arrive is triggered when all earlier `cp.async` of its thread are complete.
    fn perform_earlier(
        &mut self,
        launch: &LaunchState<'_>,
        op: &AsyncOp,
    ) -> Result<(), Box<Finding>> {
        let of_thread = |o: &AsyncOp| {
            let mut groups = o.groups.iter();
            o.seq < op.seq
                && o.agent.cta == op.agent.cta
                && groups.any(|g| g.0 == op.agent.thread && !g.1)
        };
        while let Some(i) = self.pending.iter().position(of_thread) {
            let earlier = self.pending.remove(i);
            self.perform_at(launch, &earlier)?;
        }
        Ok(())
    }

    fn perform_at(&mut self, launch: &LaunchState<'_>, op: &AsyncOp) -> Result<(), Box<Finding>> {
        self.perform(launch, op).map_err(|fault| {
            let kind = match fault {
                Fault::OutOfBounds { .. } => FindingKind::OutOfBounds,
                Fault::Misaligned { .. } => FindingKind::Misaligned,
                Fault::Unsupported(_) => FindingKind::Unsupported,
                Fault::Invalid(ref m) if m.contains("mbarrier") => FindingKind::BarrierMisuse,
                _ => FindingKind::Invalid,
            };
            let message = fault.to_string();
            Box::new(finding(launch, self, &op.agent, kind, message, None))
        })
    }

    fn perform(&mut self, launch: &LaunchState<'_>, op: &AsyncOp) -> Result<(), Fault> {
        let mut agent = op.agent.clone();
        if op.work.reduces() {
            // Reductions are relaxed atomics of each element (PTX ISA 9.7.9.25.4.3).
            agent.flags |= STRONG;
        }
        let mut after = agent.view.clone();
        if launch.checks.is_some() {
            std::sync::Arc::make_mut(&mut after.all).raise(agent.entity, agent.clock);
        }
        match &op.work {
            Work::Copies(copies) => {
                for copy in copies {
                    self.perform_copy(launch, &agent, *copy)?;
                }
            }
            Work::CopyArrive { place, lanes } => {
                let outcome = with_mbarrier(self, *place, |m| m.arrive(lanes.count_ones(), false))?;
                let clocks = self.ctas[place.0].mbar_clocks.entry(place.1).or_default();
                clocks.arrive(&after, outcome.completed);
            }
            Work::Bulk(work) => self.perform_bulk(launch, &agent, work, &after)?,
            Work::Tensor(work) if work.form.direction == TensorDirection::Load => {
                self.perform_load(launch, &agent, work, &after)?;
            }
            Work::Tensor(work) => self.perform_store(launch, &agent, work)?,
        }
        for &(thread, bulk, id) in &op.groups {
            self.ctas[agent.cta].groups[usize::from(bulk)][thread as usize].done(id, &after);
        }
        Ok(())
    }

    fn bytes_of<'a, 'b>(
        &'a mut self,
        launch: &'a LaunchState<'b>,
        agent: &'a Agent,
        rank: Option<usize>,
    ) -> AgentBytes<'a, 'b> {
        AgentBytes {
            launch,
            cluster: self,
            agent,
            rank,
        }
    }

    fn perform_copy(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        (rank, offset, from, n, read): (usize, u64, u64, u64, u64),
    ) -> Result<(), Fault> {
        // `cp.async` copies 16 bytes at most.
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..n as usize];
        if read > 0 {
            let source = &mut bytes[..read as usize];
            self.bytes_of(launch, agent, None).read(from, source)?;
        }
        self.bytes_of(launch, agent, Some(rank))
            .write(offset, bytes)
    }

    fn perform_bulk(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        work: &BulkWork,
        after: &View,
    ) -> Result<(), Fault> {
        let form = &work.form;
        let mut bytes = vec![0; work.size as usize];
        let (from, at) = if form.from_global {
            (None, work.src)
        } else {
            (Some((work.src >> RANK_SHIFT) as usize), work.src & OFFSET)
        };
        self.bytes_of(launch, agent, from).read(at, &mut bytes)?;
        let targets: Vec<(Option<usize>, u64)> = if form.to_global {
            vec![(None, work.dst)]
        } else {
            lanes_of(work.ranks)
                .map(|r| (Some(r), work.dst & OFFSET))
                .collect()
        };
        for (rank, at) in targets {
            let mut memory = self.bytes_of(launch, agent, rank);
            match form.reduce {
                Some((op, kind)) => launch
                    .locks
                    .with(0, || tma::reduce_into(&mut memory, op, kind, at, &bytes))?,
                None => memory.write(at, &bytes)?,
            }
            if let Some((own, offset)) = work.mbar {
                let rank = rank.filter(|_| form.multicast.is_some()).unwrap_or(own);
                self.arrive_bytes(launch, agent, (rank, offset), work.size, after)?;
            }
        }
        Ok(())
    }

    fn perform_load(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        work: &TensorWork,
        after: &View,
    ) -> Result<(), Fault> {
        let TensorWork { form, map, .. } = work;
        let mut global = self.bytes_of(launch, agent, None);
        let bytes = if form.gather {
            let start = std::array::from_fn(|i| work.coords.get(i).copied().unwrap_or(0));
            tma::read_gather4(map, &mut global, start)?
        } else if form.im2col.is_some() {
            tma::read_im2col(map, &mut global, &work.coords, &work.offsets)?
        } else {
            tma::read_box(map, &mut global, &work.coords)?
        };
        for rank in lanes_of(work.ranks) {
            let mut memory = self.bytes_of(launch, agent, Some(rank));
            tma::place(map, &mut memory, work.shared & OFFSET, &bytes)?;
            if let Some((own, offset)) = work.mbar {
                let to = if form.multicast.is_some() { rank } else { own };
                self.arrive_bytes(launch, agent, (to, offset), bytes.len() as u64, after)?;
            }
        }
        Ok(())
    }

    /// A tensor store or reduction.
    fn perform_store(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        work: &TensorWork,
    ) -> Result<(), Fault> {
        let rank = (work.shared >> RANK_SHIFT) as usize;
        let mut shared = self.bytes_of(launch, agent, Some(rank));
        let bytes = tma::collect(&work.map, &mut shared, work.shared & OFFSET)?;
        let reduce = match work.form.direction {
            TensorDirection::Reduce(op) => Some(op),
            _ => None,
        };
        let mut global = self.bytes_of(launch, agent, None);
        launch.locks.with(0, || {
            tma::write_box(&work.map, &mut global, &work.coords, &bytes, reduce)
        })
    }

    /// Bytes complete on an mbarrier, whose initialisation must be ordered before the copy's issue.
    fn arrive_bytes(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        place: (usize, u64),
        bytes: u64,
        view: &View,
    ) -> Result<(), Fault> {
        self.check_initialised(launch, agent, place, "the copy completes");
        let completed = with_mbarrier(self, place, |m| m.complete_tx(bytes as u32))?;
        let clocks = self.ctas[place.0].mbar_clocks.entry(place.1).or_default();
        clocks.arrive(view, completed);
        Ok(())
    }

    pub(super) fn check_initialised(
        &mut self,
        launch: &LaunchState<'_>,
        agent: &Agent,
        place: (usize, u64),
        what: &str,
    ) {
        if launch.checks.is_none() {
            return;
        }
        let epoch = Epoch::new(self.index, agent.entity, agent.clock, agent.line, STRONG);
        let actor = Actor {
            epoch,
            view: &agent.view,
        };
        let conflict = self
            .ctas
            .get_mut(place.0)
            .and_then(|cta| cta.shadow.access(place.1, 8, false, &actor));
        if let Some(conflict) = conflict {
            let line = conflict.before.line();
            let message = format!(
                "{what} on an mbarrier whose initialisation at PTX line {line} is not ordered before it"
            );
            record(launch, self, agent, FindingKind::Race, message, Some(line));
        }
    }
}
