//! Groups of `cp.async` and of bulk copies (PTX ISA 9.7.9.25.3).

use crate::check::clock::View;
use crate::decode::Op;
use crate::exec::step::{Ctx, Flow, Step, lanes_of};
use crate::exec::warp::{Wait, Warp};
use std::collections::VecDeque;

#[derive(Debug, Clone, Default)]
struct Group {
    left: u32,
    /// What its copies knew when they were complete, each view once.
    views: Vec<View>,
}

/// Groups of one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneGroups {
    /// Number of the oldest group that no wait has retired.
    first: u64,
    committed: VecDeque<Group>,
    open: Group,
}

/// Adds a view, unless it is the last one of the list.
fn add_view(views: &mut Vec<View>, view: &View) {
    if !views.last().is_some_and(|last| last.same(view)) {
        views.push(view.clone());
    }
}

impl LaneGroups {
    pub(super) fn add(&mut self) -> u64 {
        self.open.left += 1;
        self.first + self.committed.len() as u64
    }

    pub(super) fn done(&mut self, id: u64, view: &View) {
        let Some(index) = id.checked_sub(self.first) else {
            return;
        };
        let group = match self.committed.get_mut(index as usize) {
            Some(group) => group,
            None => &mut self.open,
        };
        group.left = group.left.saturating_sub(1);
        add_view(&mut group.views, view);
    }

    fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// Retires all but the newest `pending` committed groups, and adds what they knew to `views`; whether
    /// none of them is under way, else nothing is retired.
    fn retire(&mut self, pending: usize, views: &mut Vec<View>) -> bool {
        let count = self.committed.len().saturating_sub(pending);
        if self.committed.iter().take(count).any(|g| g.left > 0) {
            return false;
        }
        for group in self.committed.drain(..count) {
            group.views.iter().for_each(|view| add_view(views, view));
        }
        self.first += count as u64;
        true
    }

    pub(super) fn busy(&self) -> bool {
        self.open.left > 0 || self.committed.iter().any(|g| g.left > 0)
    }
}

/// The lanes of `mask` learn what their groups knew.
fn learn(warp: &mut Warp, mask: u32, views: &[View]) {
    if let Some(clocks) = &mut warp.clocks {
        views.iter().for_each(|view| clocks.acquire(mask, view));
    }
}

pub(super) fn wait(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    pending: usize,
    bulk: bool,
) -> Step<Flow> {
    let all = matches!(ctx.inst.op, Op::CpWait { .. }) && ctx.inst.name.contains("wait_all");
    // The lanes of a warp mostly wait for the same copies: they learn of them together.
    let (mut together, mut known): (u32, Vec<View>) = (0, Vec::new());
    for lane in lanes_of(ctx.mask) {
        let groups = ctx.groups(warp.index as u32 * 32 + lane as u32, bulk);
        if all && groups.open.left > 0 {
            groups.commit();
        }
        let mut views = Vec::new();
        if !groups.retire(pending, &mut views) {
            learn(warp, together, &known);
            return Ok(Flow::Block(Wait::Async(if bulk {
                "bulk copies"
            } else {
                "cp.async copies"
            })));
        }
        let same = |(a, b): (&View, &View)| a.same(b);
        if views.len() != known.len() || !views.iter().zip(&known).all(same) {
            learn(warp, together, &known);
            (together, known) = (0, views);
        }
        together |= 1 << lane;
    }
    learn(warp, together, &known);
    Ok(Flow::Next)
}

pub(super) fn commit(ctx: &mut Ctx<'_, '_>, warp: &Warp, bulk: bool) -> Flow {
    for lane in lanes_of(ctx.mask) {
        let groups = ctx.groups(warp.index as u32 * 32 + lane as u32, bulk);
        groups.commit();
    }
    Flow::Next
}
