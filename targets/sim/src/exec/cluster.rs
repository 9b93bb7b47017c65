//! A cluster of CTAs: its state, and the schedule of its warps and asynchronous work.

use super::async_ops::{AsyncOp, LaneGroups, TensorCta, WgmmaEntry};
use super::barrier::{CtaBarrier, MbarClocks};
use super::counters::{Counters, Executed};
use super::delayed::Delayed;
use super::launch::LaunchState;
use super::step::run_fragment;
use super::warp::{FULL, Fragment, Frame, NONE, Wait, Warp};
use crate::check::clock::{View, WarpClocks};
use crate::check::init::Written;
use crate::check::shadow::Shadow;
use crate::decode::{Func, Preload, RANK_SHIFT, SHARED_BASE, Special};
use crate::report::{Finding, FindingKind, Place};
use std::collections::{HashMap, VecDeque};

/// Agents of the async proxy that a CTA has: one a warpgroup, one a warp for `cp.async`, and a ring.
pub(crate) const WGMMA_AGENTS: u32 = 8;
pub(crate) const COPY_AGENTS: u32 = 32;
pub(crate) const RING_AGENTS: u32 = 64;
pub(crate) const AGENTS: u32 = WGMMA_AGENTS + COPY_AGENTS + RING_AGENTS;

/// A CTA.
#[derive(Debug)]
pub(crate) struct Cta {
    pub(crate) ctaid: [u32; 3],
    pub(crate) shared: Vec<u8>,
    pub(crate) warps: Vec<Warp>,
    pub(crate) barriers: Vec<CtaBarrier>,
    pub(crate) written: Written,
    pub(crate) shadow: Shadow,
    pub(crate) mbar_clocks: HashMap<u64, MbarClocks>,
    pub(crate) sync_clocks: HashMap<u64, View>,
    /// Groups of `cp.async`, then of bulk copies, by thread.
    pub(crate) groups: [Vec<LaneGroups>; 2],
    /// What each warp handed to the tensor cores, in order.
    pub(crate) wgmma: Vec<VecDeque<WgmmaEntry>>,
    /// Tensor memory, if the module uses it.
    pub(crate) tensor: Option<Box<TensorCta>>,
    /// Clock of the wgmma work that each warp has retired.
    pub(crate) wgmma_done: Vec<u32>,
    /// Registers that warps have given up by `setmaxnreg.dec` and none has taken.
    pub(crate) free_registers: u32,
    pub(crate) agent_clocks: Vec<u32>,
    pub(crate) next_agent: u32,
    /// Last access of each entity of another CTA to this CTA's shared memory: clock and PTX line.
    pub(crate) remote: HashMap<u32, (u32, u32)>,
    /// What the threads that have exited knew.
    pub(crate) exit_view: Option<View>,
}

/// A cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) index: u32,
    pub(crate) ctas: Vec<Cta>,
    pub(crate) pending: Vec<AsyncOp>,
    /// Relaxed stores that nobody sees yet, in order of issue.
    pub(crate) delayed: VecDeque<Delayed>,
    /// Tensor maps in global memory that its warps made and that no `fence.proxy.tensormap` acquired: address
    /// and PTX line.
    pub(crate) new_maps: HashMap<u64, u32>,
    pub(crate) tick: u64,
    pub(crate) seq: u64,
    pub(crate) arrived: u32,
    pub(crate) generation: u64,
    pub(crate) arrive_view: Option<View>,
    pub(crate) done_view: Option<View>,
    pub(crate) counters: Counters,
    /// By function and instruction.
    pub(crate) executed: Vec<Vec<Executed>>,
    pub(crate) steps: u64,
    /// Things that may let others proceed.
    pub(crate) events: u64,
    /// Stores that changed what was in memory.
    pub(crate) changes: u64,
    pub(super) polling: super::livelock::Polling,
    rng: u64,
    stalls: u32,
    stall_events: u64,
}

/// Whether a cluster is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    Paused,
}

impl Cluster {
    pub(crate) fn new(launch: &LaunchState<'_>, index: u32) -> Self {
        let per_cluster = launch.cluster.iter().product::<u32>();
        let entities = per_cluster as usize * launch.entities_per_cta();
        let view = View::new(if launch.checks.is_some() { entities } else { 0 });
        let clusters: [u32; 3] = std::array::from_fn(|i| launch.grid[i] / launch.cluster[i].max(1));
        let at = [
            index % clusters[0],
            index / clusters[0] % clusters[1],
            index / (clusters[0] * clusters[1]),
        ];
        let mut cluster = Self {
            index,
            ctas: Vec::new(),
            pending: Vec::new(),
            delayed: VecDeque::new(),
            new_maps: HashMap::new(),
            tick: 0,
            seq: 0,
            arrived: 0,
            generation: 0,
            arrive_view: None,
            done_view: None,
            counters: Counters::default(),
            executed: launch
                .program
                .functions
                .iter()
                .map(|f| vec![Executed::default(); f.insts.len()])
                .collect(),
            steps: 0,
            events: 0,
            changes: 0,
            polling: super::livelock::Polling::default(),
            rng: launch.options.seed ^ (u64::from(index) << 32),
            stalls: 0,
            stall_events: u64::MAX,
        };
        for rank in 0..per_cluster {
            let [cx, cy, _] = launch.cluster;
            let local = [rank % cx, rank / cx % cy, rank / (cx * cy)];
            let ctaid = std::array::from_fn(|i| at[i] * launch.cluster[i] + local[i]);
            cluster
                .ctas
                .push(Cta::new(launch, rank, ctaid, at, local, &view));
        }
        cluster.counters.ctas = u64::from(per_cluster);
        cluster
    }

    pub(crate) fn random(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Runs for at most `rounds` turns of all warps.
    pub(crate) fn run(
        &mut self,
        launch: &LaunchState<'_>,
        rounds: u64,
    ) -> Result<Status, Box<Finding>> {
        for _ in 0..rounds {
            if self.finished() {
                self.finish(launch);
                return Ok(Status::Done);
            }
            self.round(launch)?;
        }
        Ok(Status::Paused)
    }

    fn finished(&self) -> bool {
        self.pending.is_empty()
            && self.delayed.is_empty()
            && self.ctas.iter().all(|c| {
                c.warps.iter().all(|w| w.fragments.is_empty())
                    && c.wgmma.iter().all(VecDeque::is_empty)
                    && c.tensor.iter().all(|t| t.queue.is_empty())
            })
    }

    fn finish(&mut self, launch: &LaunchState<'_>) {
        for (func, counts) in launch.program.functions.iter().zip(&self.executed) {
            for (inst, n) in func.insts.iter().zip(counts).filter(|(_, n)| n.warps > 0) {
                let to = self
                    .counters
                    .instructions
                    .entry(inst.name.to_string())
                    .or_default();
                to.warps += n.warps;
                to.threads += n.threads;
            }
        }
    }

    fn order(&mut self, launch: &LaunchState<'_>) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> = Vec::new();
        for (c, cta) in self.ctas.iter().enumerate() {
            all.extend(
                (0..cta.warps.len())
                    .filter(|&w| !cta.warps[w].fragments.is_empty())
                    .map(|w| (c, w)),
            );
        }
        if launch.options.seed != 0 {
            for i in (1..all.len()).rev() {
                let j = (self.random() % (i as u64 + 1)) as usize;
                all.swap(i, j);
            }
        }
        all
    }

    /// Instructions of a fragment's turn. Where CTAs talk to one another half of the turns are short, so that
    /// one is also seen in the middle of what it does.
    fn budget(&mut self, launch: &LaunchState<'_>) -> u64 {
        let random = self.random();
        match launch.options.seed {
            0 => 512,
            _ if launch.program.communicates && random & 1 == 0 => 1 + (random >> 8) % 8,
            _ => 1 + (random >> 8) % 256,
        }
    }

    fn round(&mut self, launch: &LaunchState<'_>) -> Result<(), Box<Finding>> {
        self.tick += 1;
        let mut progress = false;
        for (c, w) in self.order(launch) {
            let budget = self.budget(launch);
            let mut warp = std::mem::replace(&mut self.ctas[c].warps[w], Warp::empty());
            if launch.options.seed != 0 {
                self.split_at_random(&mut warp);
            }
            warp.release_parked();
            let mut result = Ok(false);
            let mut at = 0;
            while at < warp.fragments.len() {
                let before = warp.fragments.len();
                result = run_fragment(launch, self, c, &mut warp, at, budget);
                match &result {
                    Ok(ran) => progress |= *ran,
                    Err(_) => break,
                }
                // A fragment that ended left its place to another.
                at += usize::from(warp.fragments.len() >= before);
            }
            self.ctas[c].warps[w] = warp;
            result?;
        }
        // Time that passes until a store is seen is progress.
        progress |= !self.delayed.is_empty();
        self.perform_due(launch);
        progress |= self.complete_async(launch, self.tick)?;
        if self.steps > launch.options.max_warp_instructions {
            return Err(Box::new(self.stuck(
                launch,
                FindingKind::Limit,
                "the instruction limit is reached",
            )));
        }
        let late = |end| self.tick.is_multiple_of(16) && std::time::Instant::now() > end;
        if launch.options.deadline.is_some_and(late) {
            let what = "the time limit is reached";
            return Err(Box::new(self.stuck(launch, FindingKind::Limit, what)));
        }
        if progress || self.finished() {
            self.stalls = 0;
            return Ok(());
        }
        self.stalled(launch)
    }

    /// Nobody could run: complete asynchronous work, let waits time out, or report a deadlock.
    fn stalled(&mut self, launch: &LaunchState<'_>) -> Result<(), Box<Finding>> {
        if self.force_async(launch)? {
            return Ok(());
        }
        let mut timed = false;
        if self.stall_events != self.events {
            for warp in self.ctas.iter_mut().flat_map(|c| &mut c.warps) {
                for fragment in &mut warp.fragments {
                    if let Some(Wait::Mbarrier { timed_out, .. }) = &mut fragment.wait {
                        *timed_out = true;
                        timed = true;
                    }
                }
            }
        }
        self.stall_events = self.events;
        if timed || self.let_go_alone() {
            return Ok(());
        }
        Err(Box::new(self.stuck(
            launch,
            FindingKind::Deadlock,
            "deadlock: no thread can proceed",
        )))
    }

    /// A report of where every warp is and what it waits for.
    pub(super) fn stuck(&self, launch: &LaunchState<'_>, kind: FindingKind, what: &str) -> Finding {
        let mut lines = Vec::new();
        for (c, cta) in self.ctas.iter().enumerate() {
            for warp in &cta.warps {
                for fragment in &warp.fragments {
                    let lane = fragment.mask.trailing_zeros();
                    let at = launch.place(self, c, warp, fragment, lane);
                    let wait = match &fragment.wait {
                        None => warp.describe_poll(launch),
                        some => self.describe_wait(launch, c, some.as_ref()),
                    };
                    lines.push((cta.ctaid, warp.index, fragment.mask, at, wait));
                }
                for (lanes, frame, pc) in warp.parked() {
                    let at = launch.place_in(cta.ctaid, warp, (frame, pc), lanes.trailing_zeros());
                    let wait = "waits there for the other lanes of its warp, to go on together";
                    lines.push((cta.ctaid, warp.index, lanes, at, wait.into()));
                }
            }
        }
        let message = what.to_string() + &stuck_lines(&lines);
        let place = lines.into_iter().next().map(|line| line.3);
        let place = place.unwrap_or_else(|| launch.no_place());
        Finding::new(kind, place, message)
    }

    pub(crate) fn wake_all(&mut self) {
        self.events += 1;
    }
}

/// Where lanes are: CTA, warp, lanes, place and what they wait for.
type StuckLine = ([u32; 3], usize, u32, Place, String);

/// Lines of a report: warps that wait in one place for one thing share a line.
fn stuck_lines(lines: &[StuckLine]) -> String {
    let mut groups: Vec<(&StuckLine, Vec<usize>)> = Vec::new();
    for line in lines {
        let same = |g: &&mut (&StuckLine, Vec<usize>)| {
            let (cta, _, lanes, place, wait) = g.0;
            (cta, lanes, place.line, wait) == (&line.0, &line.2, line.3.line, &line.4)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.1.push(line.1),
            None => groups.push((line, vec![line.1])),
        }
    }
    let mut out = String::new();
    for ((cta, _, lanes, place, wait), warps) in groups.iter().take(40) {
        let source = place
            .user_line()
            .map_or(String::new(), |l| format!(" ({l})"));
        let warps: Vec<String> = warps.iter().map(ToString::to_string).collect();
        out.push_str(&format!(
            "\n  CTA {cta:?} warp {} lanes {lanes:#010x} at PTX line {} `{}`{source}: {wait}",
            warps.join(", "),
            place.line,
            place.instruction
        ));
    }
    if groups.len() > 40 {
        out.push_str(&format!("\n  and {} more", groups.len() - 40));
    }
    out
}

impl Cta {
    fn new(
        launch: &LaunchState<'_>,
        rank: u32,
        ctaid: [u32; 3],
        clusterid: [u32; 3],
        local: [u32; 3],
        view: &View,
    ) -> Self {
        let threads = launch.block.iter().product::<u32>();
        let warps = threads.div_ceil(32) as usize;
        let checked = launch.checks.is_some();
        let bytes = launch.shared.end as usize;
        let mut cta = Self {
            ctaid,
            shared: vec![0; bytes],
            warps: Vec::with_capacity(warps),
            barriers: (0..16).map(|_| CtaBarrier::default()).collect(),
            written: Written::new(if checked { bytes } else { 0 }),
            shadow: Shadow::new(if checked { bytes } else { 0 }),
            mbar_clocks: HashMap::new(),
            sync_clocks: HashMap::new(),
            groups: std::array::from_fn(|_| vec![LaneGroups::default(); warps * 32]),
            wgmma: vec![VecDeque::new(); warps],
            tensor: (launch.program.tensor_memory).then(|| Box::new(TensorCta::new(checked))),
            wgmma_done: vec![0; warps],
            free_registers: 0,
            agent_clocks: vec![0; launch.agents() as usize],
            next_agent: 0,
            remote: HashMap::new(),
            exit_view: None,
        };
        for w in 0..warps {
            let warp = new_warp(launch, w, rank, ctaid, clusterid, local, view);
            cta.warps.push(warp);
        }
        cta
    }
}

fn new_warp(
    launch: &LaunchState<'_>,
    w: usize,
    rank: u32,
    ctaid: [u32; 3],
    clusterid: [u32; 3],
    local: [u32; 3],
    view: &View,
) -> Warp {
    let threads = launch.block.iter().product::<u32>();
    let lanes = threads.saturating_sub(w as u32 * 32).min(32);
    let live = if lanes == 32 { FULL } else { (1 << lanes) - 1 };
    let mut warp = Warp::empty();
    warp.index = w;
    warp.live = live;
    warp.local = vec![Vec::new(); 32];
    warp.local_written = vec![Written::default(); 32];
    if launch.checks.is_some() {
        let first = rank * launch.entities_per_cta() as u32 + w as u32 * 32;
        warp.clocks = Some(Box::new(WarpClocks::new(first, view)));
    }
    let Some(func) = launch.program.functions.get(launch.kernel) else {
        return warp;
    };
    warp.max_regs = launch_registers(func, threads);
    warp.max_regs_known = func.max_registers.is_some();
    let frame = Frame {
        func: launch.kernel,
        regs: 0,
        preds: 0,
        local: 0,
        return_pc: NONE,
        caller: NONE,
        lanes: live,
        dynamic: Vec::new(),
    };
    let id = warp.new_frame(launch.kernel, func, frame);
    warp.fragments.push(Fragment {
        pc: 0,
        mask: live,
        frame: id,
        join: NONE,
        wait: None,
        alone: false,
    });
    let place = ThreadPlace {
        w,
        rank,
        ctaid,
        clusterid,
        local,
    };
    fill_frame(launch, &mut warp, id, &place);
    warp
}

/// Registers a thread at the launch: `.maxnreg`, or all that CTAs of this size leave room for. An SM has
/// 65536, given out in eights, at most 256 a thread (CUDA C++ Programming Guide, technical specifications).
fn launch_registers(func: &Func, threads: u32) -> u32 {
    let required = func.required_threads.map(|t| t.iter().product());
    let bound = func.max_threads.map(|t| t.min(1024) as u32);
    let threads = required.or(bound).unwrap_or(threads).max(1);
    let room = 65536 / threads / func.min_ctas.unwrap_or(1).max(1) / 8 * 8;
    func.max_registers.unwrap_or(room).clamp(24, 256)
}

/// Where a warp stands in the grid: what its special registers show.
pub(crate) struct ThreadPlace {
    pub(crate) w: usize,
    pub(crate) rank: u32,
    pub(crate) ctaid: [u32; 3],
    pub(crate) clusterid: [u32; 3],
    pub(crate) local: [u32; 3],
}

/// Fills the slots of constants, special registers and addresses.
pub(crate) fn fill_frame(
    launch: &LaunchState<'_>,
    warp: &mut Warp,
    frame: u32,
    place: &ThreadPlace,
) {
    let Frame {
        func, regs, local, ..
    } = warp.frames[frame as usize];
    let func = &launch.program.functions[func];
    for (slot, preload) in &func.preload {
        let value: [u64; 32] = match *preload {
            Preload::Bits(bits) => [bits; 32],
            Preload::Shared(index, offset) => {
                let at = launch
                    .shared
                    .offsets
                    .get(index)
                    .copied()
                    .unwrap_or(SHARED_BASE);
                [(at + (u64::from(place.rank) << RANK_SHIFT)).wrapping_add_signed(offset); 32]
            }
            Preload::Local(at) => [local.wrapping_add(at); 32],
            Preload::Global(index, offset) => {
                let at = launch.globals.get(index).copied().unwrap_or(0);
                [at.wrapping_add_signed(offset); 32]
            }
            Preload::Function(index) => [index as u64 + 1; 32],
            Preload::Special(special) => {
                std::array::from_fn(|lane| special_value(launch, special, place, lane as u32))
            }
        };
        warp.regs[regs + *slot as usize] = value;
    }
}

fn special_value(
    launch: &LaunchState<'_>,
    special: Special,
    place: &ThreadPlace,
    lane: u32,
) -> u64 {
    let thread = place.w as u32 * 32 + lane;
    let [bx, by, _] = launch.block;
    let tid = [thread % bx, thread / bx % by, thread / (bx * by)];
    let cta_rank =
        place.ctaid[0] + launch.grid[0] * (place.ctaid[1] + launch.grid[1] * place.ctaid[2]);
    u64::from(match special {
        Special::Tid(i) => tid[i],
        Special::Ntid(i) => launch.block[i],
        Special::Ctaid(i) => place.ctaid[i],
        Special::Nctaid(i) => launch.grid[i],
        Special::Clusterid(i) => place.clusterid[i],
        Special::Nclusterid(i) => launch.grid[i] / launch.cluster[i].max(1),
        Special::ClusterCtaid(i) => place.local[i],
        Special::ClusterNctaid(i) => launch.cluster[i],
        Special::ClusterCtarank => place.rank,
        Special::ClusterNctarank => launch.cluster.iter().product(),
        Special::Laneid => lane,
        Special::Warpid => place.w as u32,
        Special::Nwarpid => launch.block.iter().product::<u32>().div_ceil(32),
        Special::Smid => cta_rank % launch.options.sms.max(1),
        Special::Nsmid => launch.options.sms,
        Special::LanemaskEq => 1 << lane,
        Special::LanemaskLt => (1 << lane) - 1,
        Special::LanemaskLe => (1u64 << (lane + 1)).wrapping_sub(1) as u32,
        Special::LanemaskGe => !((1u32 << lane) - 1),
        Special::LanemaskGt => !((1u64 << (lane + 1)).wrapping_sub(1) as u32),
        Special::Envreg(1) => (launch.workspace >> 32) as u32,
        Special::Envreg(2) => launch.workspace as u32,
        Special::Envreg(_) => 0,
        Special::DynamicSmemSize => launch.dynamic_shared as u32,
        Special::TotalSmemSize => (launch.shared.used + SHARED_BASE) as u32,
    })
}
