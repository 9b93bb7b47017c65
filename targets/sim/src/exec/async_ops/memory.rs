//! Memory as asynchronous agents see it, and their findings.

use super::Agent;
use crate::check::shadow::{Actor, Conflict, Epoch};
use crate::decode::RANK_SHIFT;
use crate::exec::access::{SharedBytes, describe_entity, shared_place};
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
    fn check(&mut self, addr: u64, n: u64, write: bool) {
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
            self.report(addr, write, &conflict, &actor);
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
            self.unwritten(&format!("shared byte {at}"));
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

    fn report(&self, addr: u64, write: bool, conflict: &Conflict, actor: &Actor<'_>) {
        let before = conflict.before;
        let (kind, reason) = if conflict.before_wrote && actor.lacks_only_proxy_fence(before) {
            (
                FindingKind::MissingProxyFence,
                "is ordered after it, but no proxy fence makes it visible to the async proxy:",
            )
        } else {
            (FindingKind::Race, "is not ordered after it:")
        };
        let what = match self.rank {
            Some(_) => "shared byte".to_string(),
            None => self.launch.memory.describe(addr),
        };
        let verb = |w: bool| if w { "write" } else { "read" };
        let who = describe_entity(self.launch, self.cluster, before);
        let line = before.line();
        let message = format!(
            "asynchronous {} of {what} {} {reason} {} by {who} at PTX line {line}",
            verb(write),
            conflict.at,
            verb(conflict.before_wrote),
        );
        let (cluster, agent) = (&*self.cluster, self.agent);
        record(self.launch, cluster, agent, kind, message, Some(line));
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
        kind,
        place,
        message,
        other_line,
        count: 1,
    }
}

impl Bytes for AgentBytes<'_, '_> {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.transfer(addr, out.len() as u64, false)?;
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
        self.transfer(addr, data.len() as u64, true)?;
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
    fn transfer(&mut self, addr: u64, n: u64, write: bool) -> Result<(), Fault> {
        match self.rank {
            Some(rank) => {
                shared_place(self.cluster, (rank as u64) << RANK_SHIFT | addr, n)?;
            }
            None => {
                self.launch.memory.find(addr, n)?;
            }
        }
        if n > 0 {
            self.check(addr, n, write);
        }
        Ok(())
    }
}
