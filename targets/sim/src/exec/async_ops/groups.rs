//! Groups of `cp.async` and of bulk copies (PTX ISA 9.7.9.25.3).

use crate::check::clock::View;
use crate::decode::Op;
use crate::exec::step::{Ctx, Flow, Step, lanes_of};
use crate::exec::warp::{Wait, Warp};
use std::collections::VecDeque;

#[derive(Debug, Clone, Default)]
struct Group {
    left: u32,
    view: Option<View>,
}

/// Groups of one thread: the last one is open.
#[derive(Debug, Clone)]
pub(crate) struct LaneGroups {
    first: u64,
    groups: VecDeque<Group>,
}

impl Default for LaneGroups {
    fn default() -> Self {
        Self {
            first: 0,
            groups: VecDeque::from([Group::default()]),
        }
    }
}

impl LaneGroups {
    pub(super) fn add(&mut self) -> u64 {
        if let Some(open) = self.groups.back_mut() {
            open.left += 1;
        }
        self.first + self.groups.len() as u64 - 1
    }

    pub(super) fn done(&mut self, id: u64, view: &View) {
        if let Some(group) = id
            .checked_sub(self.first)
            .and_then(|i| self.groups.get_mut(i as usize))
        {
            group.left = group.left.saturating_sub(1);
            match &mut group.view {
                Some(v) => v.join(view),
                none => *none = Some(view.clone()),
            }
        }
    }

    /// Retires all but the newest `pending` committed groups; `None` while one of them is under way.
    pub(super) fn retire(&mut self, pending: usize) -> Option<Option<View>> {
        let committed = self.groups.len() - 1;
        let count = committed.saturating_sub(pending);
        if self.groups.iter().take(count).any(|g| g.left > 0) {
            return None;
        }
        let mut out: Option<View> = None;
        for group in self.groups.drain(..count) {
            match (&mut out, group.view) {
                (Some(all), Some(view)) => all.join(&view),
                (none @ None, view) => *none = view,
                _ => {}
            }
        }
        self.first += count as u64;
        Some(out)
    }

    pub(super) fn busy(&self) -> bool {
        self.groups.iter().any(|g| g.left > 0)
    }
}

pub(super) fn wait(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    pending: usize,
    bulk: bool,
) -> Step<Flow> {
    let first = warp.index as u32 * 32;
    let all = matches!(ctx.inst.op, Op::CpWait { .. }) && ctx.inst.name.contains("wait_all");
    for lane in lanes_of(ctx.mask) {
        let groups = ctx.cluster.ctas[ctx.cta]
            .groups
            .entry((first + lane as u32, bulk))
            .or_default();
        if all && groups.groups.back().is_some_and(|g| g.left > 0) {
            groups.groups.push_back(Group::default());
        }
        match groups.retire(pending) {
            None => {
                return Ok(Flow::Block(Wait::Async(if bulk {
                    "bulk copies"
                } else {
                    "cp.async copies"
                })));
            }
            Some(Some(view)) => {
                if let Some(clocks) = &mut warp.clocks {
                    clocks.acquire(1 << lane, &view);
                }
            }
            Some(None) => {}
        }
    }
    Ok(Flow::Next)
}

pub(super) fn commit(ctx: &mut Ctx<'_, '_>, warp: &Warp, bulk: bool) -> Flow {
    for lane in lanes_of(ctx.mask) {
        let thread = warp.index as u32 * 32 + lane as u32;
        let groups = ctx.cluster.ctas[ctx.cta]
            .groups
            .entry((thread, bulk))
            .or_default();
        groups.groups.push_back(Group::default());
    }
    Flow::Next
}
