//! `axe.scope` on one thread: a range is its body, done once; every member for itself is a loop over the members.

use super::Lowering;
use super::ops::fold;
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::{name, parts};
use crate::ir::{Builder, Op, walk};
use axe_dialect::Level;
use axe_dialect::ops::{self as axe, ScopeOp};
use melior::ir::operation::OperationLike;

/// Takes the scopes of a function apart, outermost first.
///
/// # Errors
/// At a scope above a block, whose members are other blocks.
pub(super) fn inline<'c>(lowering: &Lowering<'c>, function: Op<'c>) -> PassResult<'c> {
    let threads = super::kernel::symbol(function, "sym_name")
        .ok()
        .and_then(|symbol| lowering.kernels.get(&symbol))
        .map_or(1, |kernel| kernel.threads);
    below(function, threads)
}

/// Takes apart the scopes below `op`, which `threads` threads execute.
fn below<'c>(op: Op<'c>, threads: i64) -> PassResult<'c> {
    for inner in walk::blocks(op).into_iter().flat_map(walk::operations) {
        match name(inner) == axe::SCOPE {
            true => scope(inner, threads)?,
            false => below(inner, threads)?,
        }
    }
    Ok(())
}

/// Threads in one member of a level.
fn threads_of(level: Level, threads: i64) -> Option<i64> {
    match level {
        Level::Device | Level::Cluster => None,
        Level::Cta => Some(threads),
        Level::Warpgroup | Level::Warp | Level::Thread => level.threads(),
    }
}

fn scope<'c>(op: Op<'c>, threads: i64) -> PassResult<'c> {
    let ScopeOp { level, range, .. } = parts(op)?;
    let Some(member) = threads_of(level, threads) else {
        return Err(PassError::new(
            op.location(),
            "the CPU target runs one block at a time: expected a scope inside a block (cta, warpgroup, warp, thread)",
        ));
    };
    let count = match range.as_deref() {
        Some([from, to]) => to.saturating_sub(*from),
        _ => 1,
    };
    below(op, member.saturating_mul(count).max(1))?;
    let builder = Builder::before(op);
    let members = threads / member.max(1);
    if range.is_some() || members <= 1 {
        unwrap(op, &builder);
    } else {
        fold(&builder, Int::Known(members), &[], |inner, _, _| {
            unwrap(op, inner);
            Ok(Vec::new())
        })?;
    }
    walk::erase(op);
    Ok(())
}

/// Moves the operations of a scope to the builder's place.
fn unwrap<'c>(op: Op<'c>, builder: &Builder<'c>) {
    for inner in walk::blocks(op).into_iter().flat_map(walk::operations) {
        if name(inner) != axe::END {
            builder.take(inner);
        }
    }
}
