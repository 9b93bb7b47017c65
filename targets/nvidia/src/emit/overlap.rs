//! Programmatic dependent launch: a kernel starts while the one before it in the stream ends, sets up its barriers, and waits
//! there (PTX ISA 9.7.13.14, `griddepcontrol`: sm_90 and up). What it saves is the time from one kernel's end to the next one's
//! first read, which is most of a short kernel's.
//!
//! Every thread waits before it reads or writes global memory, so that whatever ran before is done. The next kernel starts when
//! all CTAs have ended or let it start. They let it where it finds multiprocessors of its own, and at once, since no more than
//! one kernel waits beside the one that runs. Elsewhere its CTAs would take those multiprocessors first that are free first:
//! on an H200 (docs/performance.md, "Launches that overlap") that costs products that fill more than half of the chip up to 43%.

use super::emitter::Emitter;
use crate::facts::chip::Chip;
use axe_dialect::{element_type, ops};
use axe_passes::PassResult;
use axe_passes::ir::value::{defining, name, operands};
use axe_passes::ir::{DYNAMIC, Op, Val, attribute, types};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// CTAs of a cluster from which on launching takes long enough to begin early anyhow.
const LARGE_CLUSTER: i64 = 4;
/// Bytes that a launch reads and writes up to which it lets another of its function start early.
pub(crate) const SHORT_BYTES: i64 = 8 << 20;

/// Whether clusters of so many CTAs let the next kernel start.
pub(crate) const fn is_large_cluster(ctas: i64) -> bool {
    ctas >= LARGE_CLUSTER
}

/// Whether a launch's kernel, in clusters of so many CTAs, lets the next one start at once.
pub(super) fn lets_next_start(launch: Op<'_>, cluster: i64, chip: &Chip) -> bool {
    let apart = blocks(launch).is_some_and(|blocks| 2 * blocks <= chip.multiprocessors);
    apart || is_large_cluster(cluster) || (is_short(launch) && is_followed(launch))
}

/// The CTAs of a launch, where they are known when compiling.
fn blocks(launch: Op<'_>) -> Option<i64> {
    let grid = operands(launch).into_iter().take(3);
    grid.map(extent)
        .try_fold(1i64, |blocks, extent| blocks.checked_mul(extent?))
}

/// A constant, or what planners make of constants: products, and no more CTAs than run at once.
fn extent(value: Val<'_>) -> Option<i64> {
    let op = defining(value)?;
    match (name(op).as_str(), operands(op).as_slice()) {
        ("arith.constant", []) => attribute::integer(op.attribute("value").ok()?),
        ("arith.minui", &[a, b]) => Some(extent(a)?.min(extent(b)?)),
        ("arith.muli", &[a, b]) => extent(a)?.checked_mul(extent(b)?),
        _ => None,
    }
}

/// Whether what a launch reads and writes is known to be little.
fn is_short(launch: Op<'_>) -> bool {
    let bytes = |value: Val<'_>| {
        let Some(shape) = types::shape(value.r#type()) else {
            return Some(0);
        };
        let element = types::bits(element_type(value.r#type()))?.div_ceil(8);
        shape
            .into_iter()
            .try_fold(i64::from(element), |bytes, extent| match extent {
                DYNAMIC => None,
                extent => bytes.checked_mul(extent),
            })
    };
    let mut all = operands(launch).into_iter().map(bytes);
    let total = all.try_fold(0i64, |sum, bytes| sum.checked_add(bytes?));
    total.is_some_and(|total| total <= SHORT_BYTES)
}

/// Whether another launch of the function comes after a launch.
fn is_followed(launch: Op<'_>) -> bool {
    std::iter::successors(launch.next_in_block(), OperationLike::next_in_block)
        .any(|op| name(op) == ops::LAUNCH)
}

/// Whether an operation of a kernel touches no global memory: it names memory, or sets up what is in shared memory.
pub(super) fn is_setup(op: Op<'_>) -> bool {
    let name = name(op);
    let names = [
        ops::ALLOC,
        ops::PIPELINE_CREATE,
        ops::REDUCE_SCATTER_CREATE,
        ops::SLICE,
        ops::VIEW,
        "memref.dim",
    ];
    names.contains(&name.as_str()) || name.starts_with("arith.")
}

impl<'c> Emitter<'c> {
    /// Waits for the kernels before this one, and may let the next one start.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn wait_for_previous(&mut self) -> PassResult<'c> {
        if !self.chip.has_tma {
            return Ok(());
        }
        self.waits = true;
        let actions: &[_] = match self.lets_next_start {
            true => &["wait", "launch_dependents"],
            false => &["wait"],
        };
        for action in actions {
            let kind = self
                .builder
                .parsed(&format!("#nvvm<grid_dep_action {action}>"))?;
            let kind = [("kind", kind)];
            self.builder
                .operation("nvvm.griddepcontrol", &[], &[], &kind, Vec::new())?;
        }
        Ok(())
    }
}
