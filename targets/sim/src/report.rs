//! What a run reports: findings of the checks, errors that end it, and counters.

use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Two accesses, one a write, that nothing orders.
    Race,
    /// An access ordered after a generic-proxy write, but without the proxy fence that the async proxy needs.
    MissingProxyFence,
    /// Memory read that nothing wrote.
    Unwritten,
    /// An access outside every allocation.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A barrier that not all lanes of a warp reach together.
    BarrierDivergence,
    /// Wrong use of a barrier or an mbarrier: counts, phases, initialisation.
    BarrierMisuse,
    /// Nobody can proceed.
    Deadlock,
    /// Registers of a wgmma touched before its wait, or without its fence; of a `tcgen05.ld`, before its wait.
    WgmmaRegisters,
    /// A thread ended while its asynchronous work was outstanding.
    OutstandingAsync,
    /// Operands that the instruction does not define.
    Invalid,
    /// An instruction or form that is not supported.
    Unsupported,
    /// `trap`.
    Trap,
    /// More instructions, or more time, than allowed.
    Limit,
    /// Threads poll for what nobody will change.
    Livelock,
}

impl FindingKind {
    /// What usually mends it, and where the PTX ISA says why.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Race => {
                "order the two: bar.sync (__syncthreads) within a CTA, bar.warp.sync (__syncwarp) within a warp, the wait of an asynchronous operation, or release and acquire of a flag or mbarrier (PTX ISA 8, \"Memory Consistency Model\")"
            }
            Self::MissingProxyFence => {
                "the threads that write execute fence.proxy.async before the barrier that the asynchronous operation's issuer waits at (PTX ISA 8.6, \"Proxies\")"
            }
            Self::Unwritten => {
                "write the memory first, mask the access, or wait for the copy that fills it"
            }
            Self::OutOfBounds => "compare the address's index with the size of what it points into",
            Self::Misaligned => {
                "an access of n bytes, vectors included, needs an address that is a multiple of n (PTX ISA 6.4.1)"
            }
            Self::BarrierDivergence => {
                "move it out of divergent code: an .aligned instruction needs all threads of the warp at once (PTX ISA 9.7.13.1)"
            }
            Self::BarrierMisuse => {
                "compare the counts that the barrier was initialised with and the threads and bytes that arrive on it (PTX ISA 9.7.13.15)"
            }
            Self::Deadlock => {
                "look for the thread that should arrive, copy or store what the others wait for"
            }
            Self::WgmmaRegisters => {
                "wgmma.fence goes before the first wgmma and after other accesses of its registers, wgmma.wait_group before their next use; tcgen05.wait::ld before the use of what tcgen05.ld loads (PTX ISA 9.7.15.7.1, 9.7.16.8)"
            }
            Self::OutstandingAsync => {
                "wait for it before the exit: cp.async.wait_all, cp.async.bulk.wait_group, wgmma.wait_group 0, tcgen05.commit and its mbarrier, tcgen05.dealloc"
            }
            Self::Invalid => "the PTX ISA leaves undefined what these operands do",
            Self::Unsupported => "docs/sim.md lists what the simulator executes",
            Self::Trap => "the kernel checks something that does not hold, an assertion perhaps",
            Self::Limit => "raise the limit if the kernel is only long",
            Self::Livelock => {
                "store what is polled for from a thread that runs, or poll it with ld.acquire or volatile"
            }
        }
    }
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The program is wrong.
    Error,
    /// Worth a look: what the ISA leaves open, and every outcome is the same.
    Note,
}

/// A place in the program and the thread that was there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Function, as the module names it.
    pub function: String,
    /// PTX line.
    pub line: u32,
    /// Mnemonic.
    pub instruction: String,
    /// Source `file:line:column` from `.loc`.
    pub source: Option<String>,
    /// Where that was inlined, innermost first: `function at file:line:column`, the last one in the kernel itself.
    pub inlined_at: Vec<String>,
    /// CTA.
    pub cta: [u32; 3],
    /// Thread within its CTA, in linear order; `None` where a warp's or an asynchronous operation's share is meant.
    pub thread: u32,
}

impl Place {
    /// The line in the source that a person knows: where the kernel itself calls what is inlined.
    #[must_use]
    pub fn user_line(&self) -> Option<&str> {
        let outer = self.inlined_at.last().map(String::as_str);
        outer.or(self.source.as_deref())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(f, "{}", Code(self))?;
        write!(f, ", CTA ({x}, {y}, {z}) thread {}", self.thread)
    }
}

/// A place without its thread.
struct Code<'a>(&'a Place);

impl fmt::Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0;
        let name = crate::names::short(&place.function);
        write!(
            f,
            "PTX line {} `{}` in {name}",
            place.line, place.instruction
        )?;
        if let Some(source) = &place.source {
            write!(f, " ({source}")?;
            for outer in &place.inlined_at {
                write!(f, ", inlined at {outer}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// Weight.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What happened.
    pub message: String,
    /// PTX line of the earlier access, for races.
    pub other_line: Option<u32>,
    /// The code of the earlier access; its CTA and thread are those of `place`, the message names the others.
    pub other: Option<Place>,
    /// What usually mends it.
    pub advice: &'static str,
    /// How often this cause was seen.
    pub count: u64,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, place: Place, message: String) -> Self {
        Self {
            kind,
            severity: Severity::Error,
            place,
            message,
            other_line: None,
            other: None,
            advice: kind.advice(),
            count: 1,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.kind, self.place, self.message)?;
        if self.count > 1 {
            write!(f, " (seen {} times)", self.count)?;
        }
        if let Some(other) = &self.other {
            write!(f, "\n  the earlier access: {}", Code(other))?;
        }
        if self.severity == Severity::Error {
            write!(f, "\n  help: {}", self.advice)?;
        }
        Ok(())
    }
}

/// Why a simulation did not finish.
#[derive(Debug, Clone, Error)]
pub enum SimError {
    /// The PTX text is not understood.
    #[error(transparent)]
    Ptx(#[from] crate::ptx::PtxError),
    /// The launch does not fit the kernel or the machine.
    #[error("launch: {0}")]
    Launch(String),
    /// The kernel did what ends it; second, what the checks had found by then.
    #[error("{0}")]
    Fault(Box<Finding>, Vec<Finding>),
}

/// Result of a launch.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunReport {
    /// Findings, ordered by place.
    pub findings: Vec<Finding>,
    /// What is no error but worth a look, such as threads that write the same value to the same place.
    pub notes: Vec<Finding>,
    /// What the kernel printed (`vprintf`), in order within a thread.
    pub output: String,
    /// Counters.
    pub counters: crate::exec::counters::Counters,
}
