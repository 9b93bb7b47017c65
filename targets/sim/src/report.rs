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
    /// More instructions than allowed.
    Limit,
}

/// A place in the program and the thread that was there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Function.
    pub function: String,
    /// PTX line.
    pub line: u32,
    /// Mnemonic.
    pub instruction: String,
    /// Source `file:line:column` from `.loc`.
    pub source: Option<String>,
    /// CTA.
    pub cta: [u32; 3],
    /// Thread within its CTA, in linear order.
    pub thread: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(
            f,
            "PTX line {} `{}` in {}",
            self.line, self.instruction, self.function
        )?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        write!(f, ", CTA ({x}, {y}, {z}) thread {}", self.thread)
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// Where.
    pub place: Place,
    /// What happened.
    pub message: String,
    /// Line of the earlier access, for races.
    pub other_line: Option<u32>,
    /// How often this pair of places was seen.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.kind, self.place, self.message)?;
        if self.count > 1 {
            write!(f, " (seen {} times)", self.count)?;
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
    /// Counters.
    pub counters: crate::exec::counters::Counters,
}
