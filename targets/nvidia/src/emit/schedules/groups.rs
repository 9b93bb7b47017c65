//! Groups of asynchronous operations, and barriers.

use super::segment;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::types;
use crate::plan::Decline;
use axe_passes::PassResult;
use axe_passes::ir::value::{name, operands};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::ValueLike;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

/// Closes a group of asynchronous copies.
pub(super) struct Commit;
/// Waits until at most so many groups of copies are pending.
pub(super) struct Wait;
/// The barrier of the team.
pub(super) struct Barrier;

/// What a group consists of: a role has groups of `cp.async`, of bulk stores, or of both in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds {
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
            if matches!(name(root).as_str(), "axe.scope" | "axe.kernel") {
                break;
            }
        }
        let asynchronous = nested(root, &|_| true).into_iter().filter(|op| {
            name(*op) == "axe.copy" && op.attribute("isAsync").is_ok() && segment(*op, 3) == 0
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

/// `cp.async` groups, bulk groups.
enum Instruction {
    Commit(Kinds),
    Wait(Kinds),
    Barrier,
}

impl<'c> Schedule<'c> for Commit {
    fn name(&self) -> &'static str {
        "cp.async.commit_group"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        Ok(Box::new(Instruction::Commit(Kinds::around(site))))
    }
}

impl<'c> Schedule<'c> for Wait {
    fn name(&self) -> &'static str {
        "cp.async.wait_group"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        match site.operand_count() {
            0 => Ok(Box::new(Instruction::Wait(Kinds::around(site)))),
            _ => Err(Decline::new("the wait is for products")),
        }
    }
}

impl<'c> Schedule<'c> for Barrier {
    fn name(&self) -> &'static str {
        "bar.sync"
    }

    fn plan(&self, _site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        Ok(Box::new(Instruction::Barrier))
    }
}

/// Groups that may still be under way after a wait.
pub(crate) fn pending(op: Op<'_>) -> i64 {
    let pending = op.attribute("pending").ok().and_then(attribute::integer);
    pending.unwrap_or(0)
}

impl<'c> Plan<'c> for Instruction {
    fn describe(&self) -> String {
        "one instruction\n".to_owned()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        match self {
            Self::Barrier => {
                // Asynchronous operations may be the next to use memory that changes hands.
                if op.attribute("isAsync").is_ok() || emitter.chip.has_tma && emitter.separates(op)
                {
                    emitter.publish()?;
                }
                if op.attribute("acrossCluster").is_ok() && emitter.cluster > 1 {
                    emitter.cluster_barrier()?;
                } else {
                    emitter.barrier()?;
                }
            }
            Self::Commit(kinds) => {
                if kinds.copies || !kinds.stores {
                    emitter.effect("nvvm.cp.async.commit.group", &[])?;
                }
                if kinds.stores {
                    emitter.effect("nvvm.cp.async.bulk.commit.group", &[])?;
                }
            }
            Self::Wait(kinds) => {
                if kinds.copies || !kinds.stores {
                    let i32 = types::integer(emitter.builder, 32);
                    let count = IntegerAttribute::new(i32, pending(op)).into();
                    let attributes = [("n", count)];
                    emitter.builder.operation(
                        "nvvm.cp.async.wait.group",
                        &[],
                        &[],
                        &attributes,
                        Vec::new(),
                    )?;
                }
                if kinds.stores {
                    emitter.bulk_wait(pending(op), false)?;
                }
            }
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
