//! What a kernel's threads wait for before they reach beyond their CTA: the other CTAs of the cluster, whose barriers must be there,
//! and the kernels before.
//!
//! Where a kernel is nothing but roles, each of them waits by itself, and as late as it can: what its first tile is, and the code that
//! finds it, are there by then (docs/performance.md, "Where the clocks of a kernel go").

use super::cluster_end::meets;
use super::emitter::Emitter;
use super::overlap::is_setup;
use crate::state::threads::{Selection, ThreadGroup, parents};
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_passes::ir::value::name;
use axe_passes::ir::walk::nested;
use melior::ir::operation::OperationLike;

/// What is still to be waited for, by a kernel that waits in its roles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// Whether roles wait at all.
    pub in_roles: bool,
    /// Threads have arrived at the cluster's barrier, and not waited.
    pub cluster: bool,
    /// The kernels before this one may not be done.
    pub previous: bool,
}

/// Whether a kernel whose operations behind its set-up these are waits in its roles: they are scopes that have no thread in common, so
/// that each thread waits once at most. Threads without a role, and those of a role that its last scope leaves out, do not wait for the
/// cluster, and must not arrive at its barrier again.
pub(super) fn is_in_roles(behind: &[Op<'_>], threads: i64, meets_again: bool) -> bool {
    let mut taken: Vec<ThreadGroup> = Vec::new();
    let mut is_apart = |op: &Op<'_>| {
        let own = nested(*op, &|_| true);
        let selection = Selection::of(*op).filter(|_| name(*op) == ops::SCOPE);
        let some = selection.filter(|selection| selection.unit > 0 && selection.range.is_some());
        let Some(selection) = some.filter(|_| !own.into_iter().any(meets)) else {
            return false;
        };
        let group = ThreadGroup::cta(threads).select(&selection);
        let apart = !taken.iter().any(|other| other.meets(&group));
        taken.push(group);
        apart
    };
    !meets_again && behind.iter().all(&mut is_apart)
}

impl<'c> Emitter<'c> {
    /// Waits for what is still to be waited for, but before an operation that reaches nothing beyond the CTA.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn start_before(&mut self, op: Op<'c>) -> PassResult<'c> {
        let own = name(op);
        // A loop over tiles waits once it knows the first one, and a scope that ends a role inside.
        let is_role = |op: Op<'c>| parents(op).next().is_some_and(|op| name(op) == ops::KERNEL);
        let is_last = |op: Op<'c>| {
            op.next_in_block()
                .is_none_or(|next| next.next_in_block().is_none())
        };
        let inside = match own.as_str() {
            ops::FOR_TILES => true,
            ops::SCOPE => is_role(op) || is_last(op),
            name => is_setup(op) || name.starts_with("gpu."),
        };
        match inside {
            true => Ok(()),
            false => self.finish_start(),
        }
    }

    /// Waits for what is still to be waited for.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn finish_start(&mut self) -> PassResult<'c> {
        if std::mem::take(&mut self.start.cluster) {
            self.effect("nvvm.cluster.wait", &[])?;
        }
        if std::mem::take(&mut self.start.previous) {
            self.wait_for_previous()?;
        }
        Ok(())
    }

    /// Waits for the barriers of the other CTAs of the cluster, here or in the roles. `fence.mbarrier_init` has shown them what they are
    /// (PTX ISA 9.7.13.4): to release everything else as well would be a fence of all memory, 500 clocks on an H200.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn meet_cluster(&mut self) -> PassResult<'c> {
        if !self.start.in_roles {
            return self.relaxed_cluster_barrier();
        }
        if self.start.cluster {
            self.effect("nvvm.cluster.wait", &[])?;
        }
        self.start.cluster = true;
        self.effect("nvvm.cluster.arrive.relaxed", &[])
    }
}
