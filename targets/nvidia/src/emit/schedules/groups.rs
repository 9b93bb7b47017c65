//! Groups of asynchronous operations, and barriers.

use super::text::expect;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::plan::Decline;
use crate::state::site::Site;
use crate::state::site::{pending, segment};
use crate::state::threads::parents;
use crate::state::types;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::{name, operands};
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Closes a group of asynchronous copies.
#[derive(Clone, Copy)]
pub(super) struct Commit;
/// Waits until at most so many groups of copies are pending.
#[derive(Clone, Copy)]
pub(super) struct Wait;
/// The barrier of the thread group.
#[derive(Clone, Copy)]
pub(super) struct Barrier;

/// What a group consists of: a role has groups of `cp.async`, of bulk stores, or of both in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kinds {
    /// Copies into shared memory.
    copies: bool,
    /// Bulk stores out of it.
    stores: bool,
}

impl Kinds {
    /// Those of the role, or the kernel, around an operator.
    fn around(site: Site<'_, '_>) -> Self {
        let mut root = site.op;
        while let Some(parent) = root.parent_operation() {
            // SAFETY: the parent lives as long as the operation.
            root = unsafe { Op::from_raw(parent.to_raw()) };
            if matches!(name(root).as_str(), ops::SCOPE | ops::KERNEL) {
                break;
            }
        }
        let asynchronous = nested(root, &|_| true).into_iter().filter(|op| {
            name(*op) == ops::COPY && op.attribute("isAsync").is_ok() && segment(*op, 3) == 0
        });
        let (mut copies, mut stores) = (false, false);
        for copy in asynchronous {
            let to_shared = operands(copy)
                .get(1)
                .is_some_and(|to| axe_dialect::memory_space(to.r#type()) == Some("shared"));
            copies |= to_shared;
            stores |= !to_shared;
        }
        Self { copies, stores }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "one instruction")
    }
}

/// What a barrier does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fence {
    /// What the threads stored in shared memory is there for asynchronous operations: they may be the next to use it.
    publish: bool,
    /// All threads of the cluster meet.
    cluster: bool,
    /// Nothing was stored before that others are to see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    relaxed: bool,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.publish {
            writeln!(f, "fence.proxy.async")?;
        }
        match self.cluster {
            true if self.relaxed => writeln!(f, "barrier.cluster.arrive.relaxed"),
            true => writeln!(f, "barrier.cluster"),
            false => writeln!(f, "one instruction"),
        }
    }
}

impl Schedule for Commit {
    type Plan = Kinds;

    fn name(&self) -> &'static str {
        "cp.async.commit_group"
    }
}

impl<'c> Match<Site<'_, 'c>> for Commit {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Kinds, Decline> {
        Ok(Kinds::around(site))
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Kinds) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl Schedule for Wait {
    type Plan = Kinds;

    fn name(&self) -> &'static str {
        "cp.async.wait_group"
    }
}

impl<'c> Match<Site<'_, 'c>> for Wait {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Kinds, Decline> {
        match site.operand_count() {
            0 => Ok(Kinds::around(site)),
            _ => Err(Decline::new("the wait is for products")),
        }
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Kinds) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

/// Whether a kernel has stored nothing before a barrier: it has begun copies, which it waits for itself, and set up mbarriers, which
/// `fence.mbarrier_init` shows the cluster (PTX ISA 9.7.13.4). A barrier that releases no stores costs no fence of all memory.
fn is_first(barrier: Op<'_>) -> bool {
    let kernel = parents(barrier).find(|op| name(*op) == ops::KERNEL);
    let body = kernel.and_then(|kernel| blocks(kernel).first().copied());
    let body = body.map(operations).unwrap_or_default();
    let stores_nothing = |op: &Op<'_>| {
        let own = name(*op);
        let set_up = [
            ops::ALLOC,
            ops::ALL_GATHER_CREATE,
            ops::REDUCE_SCATTER_CREATE,
            ops::SLICE,
            ops::COMMIT,
            "memref.reinterpret_cast",
        ];
        let into_shared = || {
            let to = operands(*op).get(1).map(ValueLike::r#type);
            to.is_some_and(|to| axe_dialect::memory_space(to) == Some("shared"))
        };
        let copies = own == ops::COPY && op.attribute("isAsync").is_ok() && into_shared();
        copies
            || set_up.contains(&own.as_str())
            || own.starts_with("arith.")
            || own.starts_with("gpu.")
    };
    body.contains(&barrier)
        && body
            .iter()
            .take_while(|op| **op != barrier)
            .all(stores_nothing)
}

impl Schedule for Barrier {
    type Plan = Fence;

    fn name(&self) -> &'static str {
        "bar.sync"
    }
}

impl<'c> Match<Site<'_, 'c>> for Barrier {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Fence, Decline> {
        let changes_hands = site.chip().has_tma && site.places.separates(site.op);
        let cluster = site.flag("acrossCluster") && site.kernel.cluster_size() > 1;
        Ok(Fence {
            publish: site.flag("isAsync") || changes_hands,
            cluster,
            relaxed: cluster && is_first(site.op),
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Fence) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Barrier {
    fn emit(
        &self,
        plan: &Fence,
        emitter: &mut Emitter<'c>,
        _op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        if plan.publish {
            emitter.publish()?;
        }
        match plan.cluster {
            true if plan.relaxed => emitter.relaxed_cluster_barrier()?,
            true => emitter.cluster_barrier()?,
            false => emitter.barrier()?,
        }
        Ok(Vec::new())
    }
}

impl<'c> Emit<'c> for Commit {
    fn emit(
        &self,
        plan: &Kinds,
        emitter: &mut Emitter<'c>,
        _op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        if plan.copies || !plan.stores {
            emitter.effect("nvvm.cp.async.commit.group", &[])?;
        }
        if plan.stores {
            emitter.effect("nvvm.cp.async.bulk.commit.group", &[])?;
        }
        Ok(Vec::new())
    }
}

impl<'c> Emit<'c> for Wait {
    fn emit(
        &self,
        plan: &Kinds,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        if plan.copies || !plan.stores {
            let i32 = types::integer(emitter.builder, 32);
            let attributes = [("n", IntegerAttribute::new(i32, pending(op)).into())];
            let name = "nvvm.cp.async.wait.group";
            emitter
                .builder
                .operation(name, &[], &[], &attributes, Vec::new())?;
        }
        if plan.stores {
            emitter.bulk_wait(pending(op), false)?;
        }
        Ok(Vec::new())
    }
}

impl<'c> Emitter<'c> {
    /// `fence.proxy.async`: what the threads stored in shared memory is there for asynchronous operations
    /// (PTX ISA 9.7.13.4, "async proxy").
    pub(crate) fn publish(&self) -> PassResult<'c> {
        let attributes = [
            (
                "kind",
                self.builder.parsed("#nvvm.proxy_kind<async.shared>")?,
            ),
            ("space", self.builder.parsed("#nvvm.shared_space<cta>")?),
        ];
        self.builder
            .operation("nvvm.fence.proxy", &[], &[], &attributes, Vec::new())?;
        Ok(())
    }
}
