//! Memory as asynchronous agents see it, and their findings.

use super::Agent;
use crate::check::shadow::{Actor, Conflict, Epoch};
use crate::decode::RANK_SHIFT;
use crate::exec::access::{Racing, SharedBytes, race_message, shared_place};
use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::fault::Fault;
use crate::report::{Finding, FindingKind};
use crate::units::Bytes;

/// Memory as an agent sees it: every access is checked.
pub(super) struct AgentBytes<'a, 'b> {
    pub(super) launch: &'a LaunchState<'b>,
    pub(super) cluster: &'a mut Cluster,
    pub(super) agent: &'a Agent,
    /// `None`: global memory; else the CTA's shared memory.
    pub(super) rank: Option<usize>,
}

impl AgentBytes<'_, '_> {
    /// Offset of an address of global memory in its allocation.
    fn offset_of(&self, addr: u64) -> u64 {
        let memory = self.launch.memory;
        let at = memory.find(addr, 1).ok().and_then(|i| memory.get(i));
        at.map_or(0, |a| addr - a.base)
    }

    fn check(&mut self, addr: u64, n: u64, write: bool, data: Option<&[u8]>) {
        if self.launch.checks.is_none() {
            return;
        }
        let agent = self.agent;
        let epoch = Epoch::new(
            self.cluster.index,
            agent.entity,
            agent.clock,
            agent.line,
            agent.flags,
        );
        let actor = Actor {
            epoch,
            view: &agent.view,
        };
        let conflict = match self.rank {
            Some(rank) => self.check_shared(rank, addr, n, write, &actor),
            None => self.check_global(addr, n, write, &actor),
        };
        if let Some(conflict) = conflict {
            let base = match self.rank {
                Some(_) => 0,
                None => addr - self.offset_of(addr),
            };
            let racing = Racing {
                what: self.describe(base + conflict.at),
                wrote: write,
                same: self.holds(addr, data),
                actor: &actor,
            };
            self.report(&conflict, racing);
        }
    }

    fn unwritten(&self, what: &str) {
        let message = format!("asynchronous read of {what}, which nothing has written");
        record(
            self.launch,
            self.cluster,
            self.agent,
            FindingKind::Unwritten,
            message,
            None,
        );
    }

    fn check_shared(
        &mut self,
        rank: usize,
        addr: u64,
        n: u64,
        write: bool,
        actor: &Actor<'_>,
    ) -> Option<Conflict> {
        let written = &mut self.cluster.ctas[rank].written;
        if write {
            written.set(addr as usize, n as usize);
        } else if let Some(at) = written.first_unwritten(addr as usize, n as usize) {
            self.unwritten(&self.describe(at as u64));
        }
        let shadow = &mut self.cluster.ctas[rank].shadow;
        shadow.access(addr, n, write, actor)
    }

    fn check_global(&self, addr: u64, n: u64, write: bool, actor: &Actor<'_>) -> Option<Conflict> {
        let memory = self.launch.memory;
        let index = memory.find(addr, n).ok()?;
        let a = memory.get(index)?;
        let offset = addr - a.base;
        if !write && let Some(at) = a.first_unwritten(offset, n) {
            self.unwritten(&memory.describe(a.base + at));
        }
        let checks = self.launch.checks.as_ref()?;
        checks.access(index, offset, n, write, actor)
    }

    fn report(&self, conflict: &Conflict, racing: Racing<'_>) {
        let (cluster, agent) = (&*self.cluster, self.agent);
        let (kind, severity, message) = race_message(self.launch, cluster, *conflict, &racing);
        let line = Some(conflict.before.line());
        let all = finding(
            self.launch,
            cluster,
            agent,
            kind,
            format!("asynchronous {message}"),
            line,
        );
        self.launch.record(Finding { severity, ..all });
    }

    /// What lies at an address, in words.
    fn describe(&self, addr: u64) -> String {
        match self.rank {
            Some(_) => self.launch.describe_shared(addr) + " in shared memory",
            None => self.launch.memory.describe(addr),
        }
    }

    /// Whether memory holds `data` already.
    fn holds(&self, addr: u64, data: Option<&[u8]>) -> bool {
        let Some(data) = data else { return false };
        let from = addr as usize;
        match self.rank {
            Some(rank) => {
                let shared = &self.cluster.ctas[rank].shared;
                shared.get(from..from + data.len()) == Some(data)
            }
            None => {
                let memory = self.launch.memory;
                let Some(a) =
                    (memory.find(addr, data.len() as u64).ok()).and_then(|i| memory.get(i))
                else {
                    return false;
                };
                let mut there = vec![0; data.len()];
                a.load(addr - a.base, &mut there);
                there == data
            }
        }
    }
}

pub(super) fn record(
    launch: &LaunchState<'_>,
    cluster: &Cluster,
    agent: &Agent,
    kind: FindingKind,
    message: String,
    other: Option<u32>,
) {
    launch.record(finding(launch, cluster, agent, kind, message, other));
}

pub(super) fn finding(
    launch: &LaunchState<'_>,
    cluster: &Cluster,
    agent: &Agent,
    kind: FindingKind,
    message: String,
    other_line: Option<u32>,
) -> Finding {
    let ctaid = cluster.ctas.get(agent.cta).map_or([0; 3], |c| c.ctaid);
    let inst = launch
        .program
        .functions
        .get(agent.func)
        .and_then(|f| f.insts.get(agent.pc as usize));
    let place = match inst {
        Some(inst) => launch.place_at(agent.func, inst, ctaid, agent.thread),
        None => launch.no_place(),
    };
    Finding {
        other_line,
        ..Finding::new(kind, place, message)
    }
}

impl Bytes for AgentBytes<'_, '_> {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.transfer(addr, out.len() as u64, None)?;
        match self.rank {
            Some(rank) => SharedBytes(self.cluster).read((rank as u64) << RANK_SHIFT | addr, out),
            None => {
                let index = self.launch.memory.find(addr, out.len() as u64)?;
                if let Some(a) = self.launch.memory.get(index) {
                    a.load(addr - a.base, out);
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.transfer(addr, data.len() as u64, Some(data))?;
        match self.rank {
            Some(rank) => SharedBytes(self.cluster).write((rank as u64) << RANK_SHIFT | addr, data),
            None => {
                let index = self.launch.memory.find(addr, data.len() as u64)?;
                if let Some(a) = self.launch.memory.get(index) {
                    a.store(addr - a.base, data);
                    a.mark_written(addr - a.base, data.len() as u64);
                }
                Ok(())
            }
        }
    }
}

impl AgentBytes<'_, '_> {
    /// Bounds before checks, so that a shadow is never asked outside its memory.
    fn transfer(&mut self, addr: u64, n: u64, data: Option<&[u8]>) -> Result<(), Fault> {
        match self.rank {
            Some(rank) => {
                shared_place(self.cluster, (rank as u64) << RANK_SHIFT | addr, n)?;
            }
            None => {
                self.launch.memory.find(addr, n)?;
            }
        }
        if n > 0 {
            self.check(addr, n, data.is_some(), data);
        }
        Ok(())
    }
}
