//! The products of wgmma: the parts of four warps, done when all are there.

use super::Agent;
use super::memory::{AgentBytes, finding};
use super::wgmma::{WgmmaEntry, WgmmaPart};
use crate::check::clock::View;
use crate::decode::WgmmaA;
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::fault::Fault;
use crate::report::{Finding, FindingKind};
use crate::units::Bytes;
use crate::units::wgmma::OperandA;

/// The parts of a warpgroup's four warps.
type Parts = [Box<WgmmaPart>; 4];

/// Who reads an operand: each warp the rows of A that are its own, all four warps B. What a warp reads must
/// be ordered before its own issue.
struct Readers {
    /// By warp, and last the four together; empty without checks.
    agents: Vec<Agent>,
}

impl Readers {
    fn new(joined: &Agent, parts: &Parts, checks: bool) -> Self {
        if !checks {
            return Self { agents: Vec::new() };
        }
        let views = parts.each_ref().map(|part| &part.agent.view);
        let meet = View::meet(&views);
        let with = |view: View| Agent {
            view,
            ..joined.clone()
        };
        let agents = views.into_iter().cloned().chain([meet]).map(with);
        Self {
            agents: agents.collect(),
        }
    }
}

/// Shared memory as a warpgroup sees it.
struct WarpgroupBytes<'r, 'a, 'b> {
    bytes: AgentBytes<'a, 'b>,
    readers: &'r Readers,
}

impl<'a> Bytes for WarpgroupBytes<'a, 'a, '_> {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.bytes.read(addr, out)
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.bytes.write(addr, data)
    }

    fn for_warp(&mut self, warp: Option<usize>) {
        if let Some(agent) = self.readers.agents.get(warp.unwrap_or(4)) {
            self.bytes.agent = agent;
        }
    }
}

impl Cluster {
    /// Does the oldest wgmma of a warpgroup if all four warps have issued it and it is due.
    pub(super) fn wgmma_step(
        &mut self,
        launch: &LaunchState<'_>,
        cta: usize,
        group: usize,
        tick: u64,
    ) -> Result<bool, Box<Finding>> {
        let end = (4 * group + 4).min(self.ctas[cta].wgmma.len());
        let queues = &mut self.ctas[cta].wgmma[4 * group..end];
        if queues.iter().any(|q| q.is_empty()) {
            return Ok(false);
        }
        match queues[0].front() {
            Some(WgmmaEntry::Mma(part)) if part.ready > tick => return Ok(false),
            Some(WgmmaEntry::Mma(_)) => {}
            _ => {
                // Ends of groups: every warp has its own.
                for queue in queues {
                    if matches!(queue.front(), Some(WgmmaEntry::Commit)) {
                        queue.pop_front();
                    }
                }
                return Ok(true);
            }
        }
        let mut parts = Vec::with_capacity(4);
        for queue in queues {
            if let Some(WgmmaEntry::Mma(part)) = queue.front() {
                parts.push(part.clone());
            }
        }
        let same = |p: &WgmmaPart, q: &WgmmaPart| {
            (p.agent.func, p.agent.pc, p.a, p.b, p.scale)
                == (q.agent.func, q.agent.pc, q.a, q.b, q.scale)
        };
        let agreed = parts.iter().all(|p| same(p, &parts[0]));
        let agent = parts[0].agent.clone();
        let Some(parts) = Parts::try_from(parts).ok().filter(|_| agreed) else {
            let message = "the four warps of a warpgroup issue different wgmma instructions";
            let kind = FindingKind::Invalid;
            let all = finding(launch, self, &agent, kind, message.into(), None);
            return Err(Box::new(all));
        };
        self.wgmma_product(launch, cta, 4 * group, &parts)?;
        Ok(true)
    }

    fn wgmma_product(
        &mut self,
        launch: &LaunchState<'_>,
        cta: usize,
        first: usize,
        parts: &Parts,
    ) -> Result<(), Box<Finding>> {
        let part = &parts[0];
        let mut joined: Agent = part.agent.clone();
        for part in parts {
            joined.view.join(&part.agent.view);
            joined.clock = joined.clock.max(part.agent.clock);
        }
        let form = &part.form;
        let mut d = self.gather(cta, first, parts, &form.d);
        let a_regs = match &form.a {
            WgmmaA::Registers(slots) => self.gather(cta, first, parts, slots),
            WgmmaA::Descriptor(_) => Vec::new(),
        };
        let operand = if a_regs.is_empty() {
            OperandA::Shared(part.a)
        } else {
            OperandA::Registers(&a_regs)
        };
        let readers = Readers::new(&joined, parts, launch.checks.is_some());
        let mut memory = WarpgroupBytes {
            bytes: AgentBytes {
                launch,
                cluster: self,
                agent: &joined,
                rank: Some(cta),
            },
            readers: &readers,
        };
        (form.unit)
            .execute(&mut memory, operand, part.b, part.scale, &mut d)
            .map_err(|fault| {
                let (kind, message) = (FindingKind::OutOfBounds, fault.to_string());
                Box::new(finding(launch, self, &part.agent, kind, message, None))
            })?;
        self.counters.wgmma_macs += (64 * form.unit.n * form.unit.k) as u64;
        for (&slot, value) in form.d.iter().zip(&d) {
            for (w, part) in parts.iter().enumerate() {
                let lanes = &mut self.ctas[cta].warps[first + w].regs[part.base + slot as usize];
                for (lane, v) in lanes.iter_mut().zip(&value[32 * w..]) {
                    *lane = u64::from(*v);
                }
            }
        }
        for w in first..first + 4 {
            self.ctas[cta].wgmma[w].pop_front();
            self.ctas[cta].wgmma_done[w] = joined.clock;
        }
        Ok(())
    }

    /// Registers of the warpgroup's 128 threads.
    fn gather(&self, cta: usize, first: usize, parts: &Parts, slots: &[u32]) -> Vec<[u32; 128]> {
        let register = |slot: u32| {
            std::array::from_fn(|t| {
                let regs = &self.ctas[cta].warps[first + t / 32].regs;
                regs[parts[t / 32].base + slot as usize][t % 32] as u32
            })
        };
        slots.iter().map(|&slot| register(slot)).collect()
    }
}
