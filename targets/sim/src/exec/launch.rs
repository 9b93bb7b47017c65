//! A launch: its checks against the kernel, its parallel run over clusters, its report.

use super::cluster::{Cluster, Status};
use super::global::{AtomicLocks, GlobalChecks, GlobalMemory};
use super::warp::{Fragment, Warp};
use crate::decode::{Func, Inst, Program, SHARED_BASE};
use crate::report::{Finding, Place, RunReport, SimError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared memory that a CTA may use on `sm_90` (CUDA C++ Programming Guide, technical specifications).
const MAX_SHARED: u64 = 227 * 1024;
/// Turns of a cluster before another cluster gets the thread.
const SLICE: u64 = 2000;

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
            max_findings: 100,
        }
    }
}

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
    /// Size of a CTA's shared memory, the system's part included.
    pub(crate) shared_bytes: u64,
    pub(crate) shared_offsets: Vec<u64>,
    pub(crate) options: Options,
    pub(crate) checks: Option<GlobalChecks>,
    pub(crate) locks: AtomicLocks,
    pub(crate) findings: Mutex<BTreeMap<(u32, u32, String), Finding>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaunchState<'_> {
    /// Keeps one finding for each kind and pair of places: the one of the smallest thread.
    pub(crate) fn record(&self, finding: Finding) {
        let key = (
            finding.place.line,
            finding.other_line.unwrap_or(0),
            format!("{:?}", finding.kind),
        );
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

    pub(crate) fn place_at(&self, func: usize, inst: &Inst, cta: [u32; 3], thread: u32) -> Place {
        let source = inst.loc.map(|(file, line, column)| {
            let name = self.program.files.get(&file).map_or("?", String::as_str);
            format!("{name}:{line}:{column}")
        });
        let function = self
            .program
            .functions
            .get(func)
            .map_or(String::new(), |f| f.name.clone());
        Place {
            function,
            line: inst.line,
            instruction: inst.name.to_string(),
            source,
            cta,
            thread,
        }
    }

    pub(crate) fn place(
        &self,
        cluster: &Cluster,
        cta: usize,
        warp: &Warp,
        fragment: &Fragment,
        lane: u32,
    ) -> Place {
        let func = warp.frames[fragment.frame as usize].func;
        let inst = self
            .program
            .functions
            .get(func)
            .and_then(|f| f.insts.get(fragment.pc as usize));
        match inst {
            Some(inst) => self.place_at(
                func,
                inst,
                cluster.ctas[cta].ctaid,
                warp.index as u32 * 32 + lane,
            ),
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
        (self.padded_threads() + self.agents()) as usize
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

/// Offsets of the shared variables that a kernel reaches, the static size, and the dynamic start.
pub(crate) fn shared_layout(program: &Program, kernel: usize) -> (Vec<u64>, u64) {
    let mut reached = vec![false; program.functions.len()];
    let mut queue = VecDeque::from([kernel]);
    while let Some(index) = queue.pop_front() {
        let Some(func) = program.functions.get(index) else {
            continue;
        };
        if std::mem::replace(&mut reached[index], true) {
            continue;
        }
        queue.extend(func.calls.iter().copied());
        if func.calls_indirect {
            queue.extend((0..program.functions.len()).filter(|&i| !program.functions[i].entry));
        }
    }
    let mut used: Vec<usize> = program
        .functions
        .iter()
        .zip(&reached)
        .filter(|(_, r)| **r)
        .flat_map(|(f, _)| f.shared.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup();
    let mut offsets = vec![SHARED_BASE; program.shared.len()];
    let mut at = SHARED_BASE;
    let (dynamic, fixed): (Vec<usize>, Vec<usize>) =
        used.into_iter().partition(|&i| program.shared[i].dynamic);
    for i in fixed {
        let var = &program.shared[i];
        offsets[i] = at.next_multiple_of(var.align.max(1));
        at = offsets[i] + var.bytes;
    }
    for i in &dynamic {
        at = at.next_multiple_of(program.shared[*i].align.max(16));
    }
    for i in dynamic {
        offsets[i] = at;
    }
    (offsets, at)
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

/// Checks the shared memory of a launch.
pub(crate) fn check_shared(bytes: u64) -> Result<(), SimError> {
    if bytes - SHARED_BASE > MAX_SHARED {
        let used = bytes - SHARED_BASE;
        return Err(SimError::Launch(format!(
            "{used} bytes of shared memory; at most {MAX_SHARED} are valid"
        )));
    }
    Ok(())
}

struct Queue {
    next: u32,
    resident: u32,
    paused: VecDeque<Cluster>,
    error: Option<Finding>,
    report: RunReport,
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
    let findings: Vec<Finding> = std::mem::take(&mut *lock(&launch.findings))
        .into_values()
        .collect();
    if let Some(error) = queue.error {
        return Err(SimError::Fault(Box::new(error), findings));
    }
    queue.report.findings = findings;
    Ok(queue.report)
}

/// One worker: starts clusters while there is room on the machine, else continues paused ones.
fn work(launch: &LaunchState<'_>, queue: &Mutex<Queue>, total: u32) {
    loop {
        let mut cluster = {
            let mut q = lock(queue);
            if q.error.is_some() {
                return;
            }
            if q.next < total && q.resident < launch.options.sms.max(1) {
                let index = q.next;
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
        let result = cluster.run(launch, SLICE);
        let mut q = lock(queue);
        match result {
            Ok(Status::Paused) => q.paused.push_back(cluster),
            Ok(Status::Done) => {
                q.resident -= 1;
                q.report.counters.add(&cluster.counters);
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
