//! Polling loops that nobody can end.
//!
//! A cluster only polls in a turn in which nothing changed anywhere - no store of another value, no barrier,
//! no asynchronous work, no exit - while each of its warps that can run polled. Where all clusters on the
//! machine have only polled for several turns, what they poll for does not come. Each has polled more than
//! ten thousand times by then.

use super::cluster::Cluster;
use super::launch::LaunchState;
use super::warp::Warp;
use crate::report::{Finding, FindingKind};
use std::sync::atomic::Ordering::Relaxed;

/// Turns, and polls of each warp, after which a cluster counts as one that only polls.
const TURNS: u32 = 4;
const POLLS: u64 = 8_000;

/// What a cluster has seen of polling.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    /// Turns in which it only polled.
    turns: u32,
    /// [`Cluster::changes`] and [`Cluster::events`] at the end of the last turn.
    seen: (u64, u64),
    /// Changes of the whole launch at that time.
    launch: u64,
}

/// The last poll of a warp.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastPoll {
    /// Polls so far, and at the last change.
    pub(crate) count: u64,
    mark: u64,
    /// What was polled: address in its space.
    pub(crate) shared: bool,
    pub(crate) addr: u64,
}

impl Cluster {
    /// The launch's changes that a cluster has seen which has only polled for some turns since then.
    pub(super) fn only_polls_since(&self) -> Option<u64> {
        (self.polling.turns >= TURNS).then_some(self.polling.launch)
    }

    /// Takes note of a turn: whether it changed anything.
    pub(super) fn note_turn(&mut self, launch: &LaunchState<'_>) {
        let seen = (self.changes, self.events);
        let changed = seen != self.polling.seen;
        if changed {
            launch.changes.fetch_add(1, Relaxed);
        }
        let now = launch.changes.load(Relaxed);
        let quiet = !changed && now == self.polling.launch;
        (self.polling.seen, self.polling.launch) = (seen, now);
        let mut warps = self.ctas.iter_mut().flat_map(|c| &mut c.warps);
        if !quiet {
            self.polling.turns = 0;
            warps.for_each(|w| w.last_poll.mark = w.last_poll.count);
            return;
        }
        let idle = |w: &mut Warp| {
            let runs = w.fragments.iter().any(|f| f.wait.is_none());
            !runs || w.last_poll.count - w.last_poll.mark > POLLS
        };
        let work = !self.pending.is_empty() || !self.delayed.is_empty();
        if warps.all(idle) && !work {
            self.polling.turns += 1;
        }
    }

    /// The report of a livelock.
    pub(super) fn livelock(&self, launch: &LaunchState<'_>) -> Finding {
        let what = "livelock: threads poll for what no thread changes";
        self.stuck(launch, FindingKind::Livelock, what)
    }
}

impl Warp {
    /// What a warp that runs polls, in words.
    pub(super) fn describe_poll(&self, launch: &LaunchState<'_>) -> String {
        let LastPoll {
            count,
            shared,
            addr,
            ..
        } = self.last_poll;
        if count == 0 {
            return "runs".into();
        }
        let what = if shared {
            launch.describe_shared(addr) + " in shared memory"
        } else {
            launch.memory.describe(addr)
        };
        let value = (launch.memory.find(addr, 4).ok()).and_then(|i| launch.memory.get(i));
        let value = value.map_or(String::new(), |a| {
            let word = a.load_element((addr - a.base) / 4 * 4, 4);
            format!(", which holds {word:#x}")
        });
        format!("runs; it last polled {what}{value}")
    }
}
