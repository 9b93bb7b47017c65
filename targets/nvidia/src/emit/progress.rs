//! How far a thread has come: around rings of stages, and through the slots that its scope stores through.

use axe_passes::ir::Int;
use axe_passes::ir::Val;

/// The next stage, and the parity of its phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'c> {
    /// The stage.
    pub stage: Int<'c>,
    /// The parity.
    pub phase: Int<'c>,
}

impl Cursor<'_> {
    /// Before the first stage.
    pub(crate) const START: Self = Self {
        stage: Int::ZERO,
        phase: Int::ZERO,
    };
}

/// A ring of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Ring<'c> {
    /// The barriers of full stages, then those of empty ones.
    pub barriers: Val<'c>,
    /// Stages.
    pub stages: i64,
    /// CTAs whose copies may write a stage, and that must know when it is empty.
    pub shared_by: i64,
}

/// Where the threads of a scope are in its slots.
#[derive(Clone, Debug)]
pub(crate) struct StorePipeline<'c> {
    /// The slot that the next subtile goes to; the one before it went to the slot before.
    pub next: Int<'c>,
    /// Whether stores of an earlier turn of the scope may still read its slots.
    pub stale: bool,
}

impl StorePipeline<'_> {
    /// Slots that nothing was stored through, or, for a scope that is entered again, nothing that is known to be read.
    pub(crate) const fn new(stale: bool) -> Self {
        Self {
            next: Int::ZERO,
            stale,
        }
    }
}
