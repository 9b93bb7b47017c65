//! A warp: registers, frames, and the fragments into which divergence splits its lanes.
//!
//! As on Volta and later, diverged fragments are scheduled independently; they meet again at the
//! immediate post-dominator of the branch that split them.

use super::livelock::LastPoll;
use super::undefined::Undefined;
use crate::check::clock::WarpClocks;
use crate::check::init::Written;
use crate::decode::lanes::Lanes;
use crate::decode::{Func, Pred, PredSrc, Slot};
use crate::report::Finding;

pub(crate) const FULL: u32 = u32::MAX;
pub(crate) const NONE: u32 = u32::MAX;
/// [`Warp::in_flight`]: `tcgen05.ld` loads it and no wait has followed.
pub(crate) const LOADED: u8 = 4;

/// Lanes that run together.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) frame: u32,
    /// Innermost join that these lanes are on the way to, or [`NONE`].
    pub(crate) join: u32,
    /// What the instruction at `pc` waits for, if it was begun and blocked.
    pub(crate) wait: Option<Wait>,
    /// Whether it executes the next aligned instruction without the rest of its warp, which does not come.
    pub(crate) alone: bool,
}

/// Why a fragment does not proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A CTA barrier that it has arrived at, in this generation.
    Barrier { id: u32, generation: u64 },
    /// The cluster barrier.
    Cluster { generation: u64 },
    /// Other lanes of the warp.
    Lanes { mask: u32 },
    /// The other lanes of the warp, at an aligned instruction.
    Converge,
    /// An mbarrier's phase.
    Mbarrier {
        rank: u32,
        offset: u64,
        parity: Option<u32>,
        timed_out: bool,
    },
    /// Registers of the CTA's pool.
    Registers { wanted: u32 },
    /// Asynchronous copies or products.
    Async(&'static str),
}

/// Lanes that meet at `pc` of `frame`.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) pc: u32,
    pub(crate) frame: u32,
    pub(crate) expected: u32,
    pub(crate) arrived: u32,
    pub(crate) parent: u32,
}

/// An activation of a function by some lanes.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) func: usize,
    pub(crate) regs: usize,
    pub(crate) preds: usize,
    pub(crate) local: u64,
    pub(crate) return_pc: u32,
    pub(crate) caller: u32,
    pub(crate) lanes: u32,
    /// What `alloca` gave its lanes.
    pub(crate) dynamic: Vec<Dynamic>,
}

/// A piece of local memory that `alloca` gave to some lanes: its address and size in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Dynamic {
    pub(crate) lanes: u32,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// Bytes behind it that nothing gets.
    pub(crate) gap: u64,
}

impl Frame {
    /// The end of the local memory of these lanes in a frame with `fixed` bytes of variables.
    pub(crate) fn top(&self, fixed: u64, lanes: u32) -> u64 {
        let theirs = self.dynamic.iter().filter(|p| p.lanes & lanes != 0);
        let end = theirs.map(|p| p.at + p.bytes + p.gap).max();
        end.unwrap_or(self.local + fixed)
    }
}

/// State of a warp.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) index: usize,
    pub(crate) regs: Vec<Lanes>,
    pub(crate) preds: Vec<u32>,
    pub(crate) carry: u32,
    pub(crate) frames: Vec<Frame>,
    pub(crate) free_frames: Vec<u32>,
    pub(crate) joins: Vec<Join>,
    pub(crate) free_joins: Vec<u32>,
    pub(crate) fragments: Vec<Fragment>,
    /// Lanes that exist and have not exited.
    pub(crate) live: u32,
    /// Local memory, lane by lane.
    pub(crate) local: Vec<Vec<u8>>,
    /// Bytes of local memory that the lane has written.
    pub(crate) local_written: Vec<Written>,
    pub(crate) clocks: Option<Box<WarpClocks>>,
    /// Registers a thread, and whether that is more than an upper bound.
    pub(crate) max_regs: u32,
    pub(crate) max_regs_known: bool,
    /// Registers that a wgmma in flight writes (`d`) or reads, and those written since `wgmma.fence`.
    pub(crate) in_flight: Vec<u8>,
    pub(crate) unfenced: Vec<bool>,
    /// Whether a `wgmma.fence` came since the last wait, and whether any ever came.
    pub(crate) fence_open: bool,
    pub(crate) fenced: bool,
    /// Registers of committed wgmma groups that no wait has retired, oldest first.
    pub(crate) wgmma_groups: std::collections::VecDeque<Vec<(usize, u8)>>,
    /// Registers of wgmma operations that no group holds yet.
    pub(crate) wgmma_open: Vec<(usize, u8)>,
    /// Registers that `tcgen05.ld` loads since the last wait.
    pub(crate) loaded: Vec<usize>,
    /// The first use of one of them: an error unless a wait follows.
    pub(crate) early_use: Option<Box<Finding>>,
    /// PTX lines of `mbarrier.try_wait`, and the lanes whose last attempt there gave up at once.
    pub(crate) expired: Vec<(u32, u32)>,
    /// Values that were loaded from memory that nothing wrote.
    pub(crate) undefined: Option<Box<Undefined>>,
    /// Index of the allocation of the last global access.
    pub(crate) last_alloc: usize,
    /// Strong loads, atomics and sleeps since lanes last parked at a join: signs of a polling loop.
    pub(crate) polls: u32,
    pub(crate) last_poll: LastPoll,
    /// By lane, the generation of the cluster barrier that its last arrival completes; 0 before any.
    pub(crate) cluster_generation: [u64; 32],
}

impl Warp {
    /// Takes note of a strong read: a sign of polling.
    pub(crate) fn poll(&mut self, shared: bool, addr: u64) {
        self.polls += 1;
        self.last_poll.count += 1;
        (self.last_poll.shared, self.last_poll.addr) = (shared, addr);
    }

    pub(crate) fn empty() -> Self {
        Self {
            index: 0,
            regs: Vec::new(),
            preds: Vec::new(),
            carry: 0,
            frames: Vec::new(),
            free_frames: Vec::new(),
            joins: Vec::new(),
            free_joins: Vec::new(),
            fragments: Vec::new(),
            live: 0,
            local: Vec::new(),
            local_written: Vec::new(),
            clocks: None,
            max_regs: 0,
            max_regs_known: false,
            in_flight: Vec::new(),
            unfenced: Vec::new(),
            fence_open: false,
            fenced: false,
            last_alloc: 0,
            polls: 0,
            last_poll: LastPoll::default(),
            cluster_generation: [0; 32],
            wgmma_groups: std::collections::VecDeque::new(),
            wgmma_open: Vec::new(),
            loaded: Vec::new(),
            early_use: None,
            expired: Vec::new(),
            undefined: None,
        }
    }

    /// A window of registers for an activation of `func`.
    pub(crate) fn new_frame(&mut self, index: usize, func: &Func, mut frame: Frame) -> u32 {
        let reuse = self
            .free_frames
            .iter()
            .position(|&f| self.frames[f as usize].func == index);
        if let Some(at) = reuse {
            let id = self.free_frames.swap_remove(at);
            let old = &self.frames[id as usize];
            (frame.regs, frame.preds) = (old.regs, old.preds);
            self.frames[id as usize] = frame;
            return id;
        }
        (frame.regs, frame.preds) = (self.regs.len(), self.preds.len());
        self.regs.resize(frame.regs + func.slots as usize, [0; 32]);
        self.preds
            .resize(frame.preds + func.preds.max(1) as usize, 0);
        if !self.in_flight.is_empty() || frame.regs == 0 {
            self.in_flight.resize(self.regs.len(), 0);
            self.unfenced.resize(self.regs.len(), false);
        }
        self.preds[frame.preds] = FULL;
        self.frames.push(frame);
        (self.frames.len() - 1) as u32
    }

    pub(crate) fn reg(&self, base: usize, slot: Slot) -> &Lanes {
        &self.regs[base + slot as usize]
    }

    pub(crate) fn write(&mut self, base: usize, slot: Slot, value: &Lanes, mask: u32) {
        let reg = &mut self.regs[base + slot as usize];
        if mask == FULL {
            *reg = *value;
            return;
        }
        for (i, (to, from)) in reg.iter_mut().zip(value).enumerate() {
            if mask >> i & 1 == 1 {
                *to = *from;
            }
        }
    }

    pub(crate) fn pred(&self, base: usize, p: PredSrc) -> u32 {
        let value = self.preds[base + p.0 as usize];
        if p.1 { !value } else { value }
    }

    pub(crate) fn write_pred(&mut self, base: usize, p: Pred, value: u32, mask: u32) {
        if p != 0 {
            let pred = &mut self.preds[base + p as usize];
            *pred = *pred & !mask | value & mask;
        }
    }

    fn new_join(&mut self, join: Join) -> u32 {
        match self.free_joins.pop() {
            Some(id) => {
                self.joins[id as usize] = join;
                id
            }
            None => {
                self.joins.push(join);
                (self.joins.len() - 1) as u32
            }
        }
    }

    /// Splits fragment `at`: `taken` goes to `target`, the rest to the next instruction.
    pub(crate) fn diverge(&mut self, at: usize, taken: u32, target: u32, reconverge: Option<u32>) {
        let Fragment {
            pc,
            mask,
            frame,
            join,
            ..
        } = self.fragments[at];
        let join = self.join_for(frame, mask, join, reconverge);
        self.fragments[at].join = join;
        self.fragments[at].mask = mask & !taken;
        self.fragments[at].pc = pc + 1;
        self.fragments.push(Fragment {
            pc: target,
            mask: taken,
            frame,
            join,
            wait: None,
            alone: false,
        });
    }

    /// The join at `reconverge` for these lanes; a loop that diverges again and again keeps one.
    pub(crate) fn join_for(
        &mut self,
        frame: u32,
        mask: u32,
        join: u32,
        reconverge: Option<u32>,
    ) -> u32 {
        let Some(pc) = reconverge else { return join };
        if let Some(top) = self.joins.get(join as usize)
            && top.pc == pc
            && top.frame == frame
        {
            return join;
        }
        self.new_join(Join {
            pc,
            frame,
            expected: mask,
            arrived: 0,
            parent: join,
        })
    }

    /// Fragment `at` has reached a join point: returns whether it goes on (alone or with the others),
    /// `false` if it was absorbed and waits for the rest.
    pub(crate) fn arrive(&mut self, at: usize) -> bool {
        let Fragment {
            pc,
            mask,
            frame,
            join,
            ..
        } = self.fragments[at];
        let Some(top) = self
            .joins
            .get_mut(join as usize)
            .filter(|j| j.pc == pc && j.frame == frame)
        else {
            return true;
        };
        top.arrived |= mask;
        let (arrived, parent) = (top.arrived, top.parent);
        if top.arrived == top.expected {
            self.free_joins.push(join);
            self.fragments[at].mask = arrived;
            self.fragments[at].join = parent;
            // The outer join may lie at the same instruction.
            return self.arrive(at);
        }
        self.fragments.swap_remove(at);
        self.polls = 0;
        false
    }

    /// Lanes leave the joins that they were on the way to, because they exit or return.
    pub(crate) fn leave_joins(&mut self, mut join: u32, lanes: u32) {
        while join != NONE {
            let node = &mut self.joins[join as usize];
            node.expected &= !lanes;
            let (expected, arrived, parent) = (node.expected, node.arrived, node.parent);
            if expected == 0 {
                self.free_joins.push(join);
            } else if expected == arrived {
                let (pc, frame) = (node.pc, node.frame);
                self.free_joins.push(join);
                self.fragments.push(Fragment {
                    pc,
                    mask: arrived,
                    frame,
                    join: parent,
                    wait: None,
                    alone: false,
                });
            }
            join = parent;
        }
    }
}
