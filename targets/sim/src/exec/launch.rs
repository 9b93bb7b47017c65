//! A launch: its checks against the kernel, its parallel run over clusters, its report.

use super::cluster::{Cluster, Status};
use super::global::{AtomicLocks, GlobalChecks, GlobalMemory};
use super::shared::SharedLayout;
use super::warp::{Fragment, Warp};
use crate::decode::{Func, Inst, Loc, Program};
use crate::report::{Finding, FindingKind, Place, RunReport, Severity, SimError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared memory that a CTA may use on `sm_90` (CUDA C++ Programming Guide, technical specifications).
const MAX_SHARED: u64 = 227 * 1024;
/// Turns of a cluster before another cluster gets the thread.
const SLICE: u64 = 2000;

/// Places of a chain of inlined calls that a report names.
const MAX_INLINED: usize = 16;

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether races, bounds, initialisation and barriers are checked; faults always are.
    pub checks: bool,
    /// Whether memory requests are counted.
    pub counters: bool,
    /// Schedule: 0 takes warps in turn, any other number orders warps and delays asynchronous work at random.
    pub seed: u64,
    /// Streaming multiprocessors: the number of clusters that are resident at a time.
    pub sms: u32,
    /// Worker threads; 0 takes one a core. One thread makes communication between CTAs repeatable.
    pub threads: usize,
    /// Run only the first CTAs of the grid.
    pub max_ctas: Option<u64>,
    /// Warp instructions that a cluster may execute.
    pub max_warp_instructions: u64,
    /// When the run ends with [`FindingKind::Limit`].
    pub deadline: Option<std::time::Instant>,
    /// Told how many clusters are done, and of how many.
    pub progress: Option<fn(u64, u64)>,
    /// Findings of different places that are kept.
    pub max_findings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            checks: true,
            counters: false,
            seed: 0,
            sms: 132,
            threads: 0,
            max_ctas: None,
            max_warp_instructions: 1 << 33,
            deadline: None,
            progress: None,
            max_findings: 100,
        }
    }
}

/// What one finding stands for: its kind, its weight and its two places in the source.
type FindingKey = (FindingKind, Severity, [String; 2]);

/// Everything that the CTAs of a launch share.
pub(crate) struct LaunchState<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: usize,
    pub(crate) memory: &'a GlobalMemory,
    pub(crate) globals: &'a [u64],
    pub(crate) params: Vec<u8>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared: u64,
    pub(crate) shared: SharedLayout,
    /// Address of the workspace of the grid's barrier; 0 if the module reads no `%envreg`.
    pub(crate) workspace: u64,
    /// What the kernel has printed.
    pub(crate) output: Mutex<String>,
    /// Goes up with every turn of a cluster that changed something.
    pub(crate) changes: AtomicU64,
    pub(crate) options: Options,
    pub(crate) checks: Option<GlobalChecks>,
    pub(crate) locks: AtomicLocks,
    pub(crate) findings: Mutex<BTreeMap<FindingKey, Finding>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaunchState<'_> {
    /// Keeps one finding for each kind and pair of places: the one of the smallest thread.
    pub(crate) fn record(&self, mut finding: Finding) {
        if let Some(line) = finding.other_line {
            finding.other = self.code_at(line);
        }
        let key = |place: &Place| place.source.clone().unwrap_or(place.line.to_string());
        let mut places = [
            key(&finding.place),
            finding.other.as_ref().map_or(String::new(), key),
        ];
        places.sort_unstable();
        let key = (finding.kind, finding.severity, places);
        let mut all = lock(&self.findings);
        let full = all.len() >= self.options.max_findings;
        match all.get_mut(&key) {
            Some(old) => {
                let count = old.count + 1;
                if (finding.place.cta, finding.place.thread) < (old.place.cta, old.place.thread) {
                    *old = finding;
                }
                old.count = count;
            }
            None if full => {}
            None => {
                all.insert(key, finding);
            }
        }
    }

    /// What lies at an offset of shared memory.
    pub(crate) fn describe_shared(&self, offset: u64) -> String {
        self.shared.describe(self.program, offset)
    }

    /// The code on a PTX line; CTA and thread are zero.
    fn code_at(&self, line: u32) -> Option<Place> {
        self.program
            .functions
            .iter()
            .enumerate()
            .find_map(|(func, f)| {
                let inst = f.insts.iter().find(|i| i.line == line)?;
                Some(self.place_at(func, inst, [0; 3], 0))
            })
    }

    pub(crate) fn place_at(&self, func: usize, inst: &Inst, cta: [u32; 3], thread: u32) -> Place {
        let function = self
            .program
            .functions
            .get(func)
            .map_or(String::new(), |f| f.name.clone());
        let (source, inlined_at) = self.source(inst.loc);
        Place {
            function,
            line: inst.line,
            instruction: inst.name.to_string(),
            source,
            inlined_at,
            cta,
            thread,
        }
    }

    /// A place in the source, and the chain of those that it was inlined at.
    fn source(&self, loc: Option<u32>) -> (Option<String>, Vec<String>) {
        let get = |id: u32| self.program.locs.get(id as usize);
        let named = |loc: &Loc| {
            let (file, line, column) = loc.place;
            let name = self.program.files.get(&file).map_or("?", String::as_str);
            format!("{name}:{line}:{column}")
        };
        let Some(mut loc) = loc.and_then(get) else {
            return (None, Vec::new());
        };
        let source = named(loc);
        let mut chain = Vec::new();
        while let Some((function, outer)) = &loc.inlined
            && let Some(outer) = get(*outer)
            && chain.len() < MAX_INLINED
        {
            let function = self.program.strings.get(function);
            let of = function.map_or(String::new(), |f| {
                format!(" (of {})", crate::names::short(f))
            });
            chain.push(named(outer) + &of);
            loc = outer;
        }
        (Some(source), chain)
    }

    pub(crate) fn place(
        &self,
        cluster: &Cluster,
        cta: usize,
        warp: &Warp,
        fragment: &Fragment,
        lane: u32,
    ) -> Place {
        let at = (fragment.frame, fragment.pc);
        self.place_in(cluster.ctas[cta].ctaid, warp, at, lane)
    }

    /// The place of an instruction of a warp's frame.
    pub(crate) fn place_in(
        &self,
        ctaid: [u32; 3],
        warp: &Warp,
        (frame, pc): (u32, u32),
        lane: u32,
    ) -> Place {
        let func = warp.frames[frame as usize].func;
        let functions = &self.program.functions;
        match functions.get(func).and_then(|f| f.insts.get(pc as usize)) {
            Some(inst) => self.place_at(func, inst, ctaid, warp.index as u32 * 32 + lane),
            None => self.no_place(),
        }
    }

    pub(crate) fn no_place(&self) -> Place {
        let function = self
            .program
            .functions
            .get(self.kernel)
            .map_or(String::new(), |f| f.name.clone());
        Place {
            function,
            line: 0,
            instruction: String::new(),
            source: None,
            inlined_at: Vec::new(),
            cta: [0; 3],
            thread: 0,
        }
    }
}

impl LaunchState<'_> {
    pub(crate) fn padded_threads(&self) -> u32 {
        self.block.iter().product::<u32>().div_ceil(32) * 32
    }

    pub(crate) fn entities_per_cta(&self) -> usize {
        // The entities of a warp have numbers that differ in the last five bits only.
        (self.padded_threads() + self.agents()).next_multiple_of(32) as usize
    }

    /// Agents of a CTA.
    pub(crate) fn agents(&self) -> u32 {
        let tensor = if self.program.tensor_memory {
            super::async_ops::TENSOR_AGENTS
        } else {
            0
        };
        super::cluster::AGENTS + tensor
    }
}

/// Checks dimensions against the kernel's directives and the machine's limits.
pub(crate) fn check_dims(
    func: &Func,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
) -> Result<(), SimError> {
    let fail = |message: String| Err(SimError::Launch(message));
    let product = |d: [u32; 3]| {
        d.iter()
            .try_fold(1u64, |a, &b| a.checked_mul(u64::from(b)))
            .unwrap_or(u64::MAX)
    };
    let threads = product(block);
    if threads == 0 || threads > 1024 {
        return fail(format!("a block of {block:?} threads; 1 to 1024 are valid"));
    }
    if product(grid) == 0 || product(grid) >= 1 << 31 {
        return fail(format!("a grid of {grid:?} CTAs"));
    }
    if let Some(required) = func.required_threads.filter(|&r| r != block) {
        return fail(format!(
            "the kernel requires blocks of {required:?} threads, got {block:?}"
        ));
    }
    if let Some(max) = func.max_threads.filter(|&max| threads > max) {
        return fail(format!(
            "the kernel allows {max} threads a block, got {threads}"
        ));
    }
    if let Some(required) = func.required_cluster.filter(|&r| r != cluster) {
        return fail(format!(
            "the kernel requires clusters of {required:?}, got {cluster:?}"
        ));
    }
    if product(cluster) == 0 || product(cluster) > 16 {
        return fail(format!(
            "a cluster of {cluster:?} CTAs; at most 16 are valid"
        ));
    }
    if grid.iter().zip(&cluster).any(|(g, c)| g % c != 0) {
        return fail(format!(
            "grid {grid:?} is no multiple of cluster {cluster:?}"
        ));
    }
    Ok(())
}

/// Checks the shared memory of a launch: `used` bytes, static and dynamic.
pub(crate) fn check_shared(used: u64) -> Result<(), SimError> {
    if used > MAX_SHARED {
        return Err(SimError::Launch(format!(
            "{used} bytes of shared memory; at most {MAX_SHARED} are valid"
        )));
    }
    Ok(())
}

struct Queue {
    next: u32,
    resident: u32,
    done: u64,
    /// Resident clusters that have only polled for some turns, and the launch's changes that they have seen.
    polling: BTreeMap<u32, u64>,
    paused: VecDeque<Cluster>,
    error: Option<Finding>,
    report: RunReport,
}

impl Queue {
    /// Whether no cluster can start before another ends.
    fn is_full(&self, launch: &LaunchState<'_>, total: u32) -> bool {
        self.next >= total || self.resident >= launch.options.sms.max(1)
    }

    /// Takes note of what a cluster did in its turn.
    fn note(&mut self, cluster: &Cluster) {
        match cluster.only_polls_since() {
            Some(changes) => self.polling.insert(cluster.index, changes),
            None => self.polling.remove(&cluster.index),
        };
    }

    /// Whether every resident cluster has only polled since the launch's last change. Whoever ends takes note of
    /// its changes before it leaves, so that what it stored last counts.
    fn only_polls(&self, launch: &LaunchState<'_>) -> bool {
        let now = launch.changes.load(Relaxed);
        self.polling.len() == self.resident as usize && self.polling.values().all(|&c| c == now)
    }
}

/// Runs all clusters.
pub(crate) fn run(launch: &LaunchState<'_>) -> Result<RunReport, SimError> {
    let clusters = launch
        .grid
        .iter()
        .zip(&launch.cluster)
        .map(|(g, c)| g / c)
        .product::<u32>();
    let per_cluster: u64 = launch.cluster.iter().map(|&c| u64::from(c)).product();
    let total = match launch.options.max_ctas {
        Some(ctas) => clusters.min(ctas.div_ceil(per_cluster).max(1) as u32),
        None => clusters,
    };
    let queue = Mutex::new(Queue {
        next: 0,
        resident: 0,
        done: 0,
        polling: BTreeMap::new(),
        paused: VecDeque::new(),
        error: None,
        report: RunReport::default(),
    });
    let threads = match launch.options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
    .min(total as usize)
    .max(1);
    if threads == 1 {
        work(launch, &queue, total);
    } else {
        rayon::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|_| work(launch, &queue, total));
            }
        });
    }
    let mut queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut all: Vec<Finding> = std::mem::take(&mut *lock(&launch.findings))
        .into_values()
        .collect();
    all.sort_by_key(|f| (f.place.line, f.other_line, f.kind));
    let (notes, findings) = all.into_iter().partition(|f| f.severity == Severity::Note);
    if let Some(error) = queue.error {
        return Err(SimError::Fault(Box::new(error), findings));
    }
    queue.report.findings = findings;
    queue.report.notes = notes;
    queue.report.output = std::mem::take(&mut *lock(&launch.output));
    Ok(queue.report)
}

/// Rounds of a cluster's turn. Where CTAs talk to one another it is short, so that polling is seen soon;
/// other schedules mix them finely.
fn slice(launch: &LaunchState<'_>, cluster: &mut Cluster) -> u64 {
    match (launch.program.communicates, launch.options.seed) {
        (false, _) => SLICE,
        (true, 0) => SLICE / 32,
        (true, _) => 1 + cluster.random() % 32,
    }
}

/// The cluster that starts as number `next`. Those that are resident at the beginning start in any order, and
/// in every second schedule the last comes first: so a reader may run before the writer that it waits for.
fn index(launch: &LaunchState<'_>, next: u32, total: u32) -> u32 {
    let first = total.min(launch.options.sms.max(1));
    let reverse = launch.program.communicates && launch.options.seed % 2 == 1;
    if reverse && next < first {
        first - 1 - next
    } else {
        next
    }
}

/// One worker: starts clusters while there is room on the machine, else continues paused ones.
fn work(launch: &LaunchState<'_>, queue: &Mutex<Queue>, total: u32) {
    loop {
        let mut cluster = {
            let mut q = lock(queue);
            if q.error.is_some() {
                return;
            }
            if !q.is_full(launch, total) {
                let index = index(launch, q.next, total);
                q.next += 1;
                q.resident += 1;
                drop(q);
                Cluster::new(launch, index)
            } else if let Some(cluster) = q.paused.pop_front() {
                cluster
            } else {
                return;
            }
        };
        let rounds = slice(launch, &mut cluster);
        let result = cluster.run(launch, rounds);
        cluster.note_turn(launch);
        let mut q = lock(queue);
        q.note(&cluster);
        match result {
            Ok(Status::Paused) if q.only_polls(launch) && q.is_full(launch, total) => {
                q.error = Some(cluster.livelock(launch));
                return;
            }
            Ok(Status::Paused) => q.paused.push_back(cluster),
            Ok(Status::Done) => {
                q.polling.remove(&cluster.index);
                q.resident -= 1;
                q.done += 1;
                q.report.counters.add(&cluster.counters);
                if let Some(progress) = launch.options.progress {
                    progress(q.done, u64::from(total));
                }
            }
            Err(finding) => {
                let earlier = q
                    .error
                    .as_ref()
                    .is_none_or(|old| finding.place.cta < old.place.cta);
                if earlier {
                    q.error = Some(*finding);
                }
                return;
            }
        }
    }
}
