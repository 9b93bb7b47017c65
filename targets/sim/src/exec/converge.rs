//! Lanes of a warp that part and meet apart from branches.
//!
//! Since Volta every thread makes progress of its own (CUDA C++ Programming Guide, "Independent Thread
//! Scheduling"): lanes that are parked at a join do not hold up others for ever, and a schedule may split
//! a warp anywhere. They meet again at joins, at `.sync` instructions, and at aligned instructions, which
//! wait here until all lanes of the warp are there.

use super::cluster::Cluster;
use super::step::Ctx;
use super::warp::{Fragment, NONE, Wait, Warp};

/// Polls of a warp after which lanes that are parked at a join go on without the ones that poll.
const PATIENCE: u32 = 64;

/// What a fragment does at an aligned instruction.
pub(super) enum Meeting {
    /// All lanes of the warp are here, or the others cannot come.
    Ready,
    /// Other lanes may still come.
    Wait,
    /// Another fragment that waits here has taken over its lanes.
    Absorbed,
}

/// Gathers the lanes of a warp at an aligned instruction.
pub(super) fn gather(ctx: &Ctx<'_, '_>, warp: &mut Warp) -> Meeting {
    let Fragment {
        pc,
        mask,
        frame,
        join,
        ref wait,
        alone,
    } = warp.fragments[ctx.at];
    let begun = wait.as_ref().is_some_and(|w| *w != Wait::Converge);
    if begun || alone || mask == warp.live {
        return Meeting::Ready;
    }
    let here = |f: &Fragment| {
        (f.pc, f.frame, f.join) == (pc, frame, join) && f.wait == Some(Wait::Converge)
    };
    let other = (0..warp.fragments.len()).find(|&i| i != ctx.at && here(&warp.fragments[i]));
    if let Some(other) = other {
        warp.fragments[other].mask |= mask;
        warp.fragments.swap_remove(ctx.at);
        return Meeting::Absorbed;
    }
    let stuck = |f: &Fragment| matches!(f.wait, Some(Wait::Converge | Wait::Lanes { .. }));
    let mut others = (0..warp.fragments.len()).filter(|&i| i != ctx.at);
    if others.all(|i| stuck(&warp.fragments[i])) {
        Meeting::Ready
    } else {
        Meeting::Wait
    }
}

impl Cluster {
    /// Nobody can go on: lanes at aligned instructions execute them without the rest of their warp, where
    /// that is at a barrier itself.
    pub(super) fn let_go_alone(&mut self) -> bool {
        let meets = |f: &Fragment| {
            let barrier = matches!(f.wait, Some(Wait::Barrier { .. } | Wait::Cluster { .. }));
            barrier || matches!(f.wait, Some(Wait::Converge | Wait::Lanes { .. }))
        };
        let mut any = false;
        for warp in self.ctas.iter_mut().flat_map(|c| &mut c.warps) {
            if !warp.fragments.iter().all(meets) {
                continue;
            }
            for fragment in &mut warp.fragments {
                if fragment.wait == Some(Wait::Converge) && !fragment.alone {
                    fragment.alone = true;
                    any = true;
                }
            }
        }
        any
    }

    /// Splits a fragment of the warp at random, as hardware may at any instruction.
    pub(super) fn split_at_random(&mut self, warp: &mut Warp) {
        let r = self.random();
        if !r.is_multiple_of(8) || warp.fragments.is_empty() {
            return;
        }
        let at = (r >> 8) as usize % warp.fragments.len();
        let fragment = &mut warp.fragments[at];
        let part = fragment.mask & (r >> 32) as u32;
        if fragment.wait.is_some() || part == 0 || part == fragment.mask {
            return;
        }
        fragment.mask &= !part;
        let other = Fragment {
            mask: part,
            ..fragment.clone()
        };
        warp.fragments.push(other);
    }
}

impl Warp {
    /// Makes one fragment of those in `from` and the one at `into`, which are at the same place.
    pub(super) fn merge(&mut self, into: usize, from: &[usize]) {
        let lanes = (from.iter()).fold(0, |mask, &i| mask | self.fragments[i].mask);
        self.fragments[into].mask |= lanes;
        let mut index = 0;
        self.fragments.retain(|_| {
            index += 1;
            !from.contains(&(index - 1))
        });
    }

    /// Lets parked lanes go on if the rest of the warp does nothing but poll: what it polls for may be
    /// theirs to do.
    pub(super) fn release_parked(&mut self) {
        if self.polls < PATIENCE {
            return;
        }
        self.polls = 0;
        for id in 0..self.joins.len() {
            if self.free_joins.contains(&(id as u32)) {
                continue;
            }
            let node = &mut self.joins[id];
            let parked = std::mem::take(&mut node.arrived);
            node.expected &= !parked;
            if parked != 0 {
                self.fragments.push(Fragment {
                    pc: node.pc,
                    mask: parked,
                    frame: node.frame,
                    join: node.parent,
                    wait: None,
                    alone: false,
                });
            }
        }
    }

    /// Lanes that are parked at joins of any depth, with the join's frame and instruction.
    pub(super) fn parked(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let used = |id: &usize| !self.free_joins.contains(&(*id as u32));
        let joins = (0..self.joins.len()).filter(used).map(|id| &self.joins[id]);
        joins
            .filter(|j| j.arrived != 0 && j.frame != NONE)
            .map(|j| (j.arrived, j.frame, j.pc))
    }
}
