//! What a GPU allows of a kernel's threads, and of the registers that its roles have.

use crate::facts::chip::MULTIPROCESSOR_REGISTERS as REGISTERS;
use crate::vocabulary::{WARP, WARPGROUP};
use axe_dialect::ops::{KernelOp, ScopeOp};
use axe_dialect::{Level, Typed};
use axe_passes::ir::{Op, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;

/// Threads of a block at most (CUDA C++ Programming Guide, "Compute Capabilities").
const MOST_THREADS: i64 = 1024;
/// A role's registers a thread: the least, the most and their step (PTX ISA, `setmaxnreg`).
const BUDGET: (i64, i64, i64) = (24, 256, 8);

/// Checks every kernel of a module.
///
/// # Errors
/// At the kernel or scope that no GPU can have.
pub(crate) fn check<'c>(module: Op<'c>) -> PassResult<'c> {
    let all = walk::nested(module, &|op| KernelOp::of(op).is_none());
    all.into_iter()
        .filter_map(KernelOp::of)
        .try_for_each(|kernel| check_kernel(&kernel))
}

fn check_kernel<'c>(kernel: &KernelOp<'c>) -> PassResult<'c> {
    let threads = kernel.threads;
    if !(WARP..=MOST_THREADS).contains(&threads) || threads % WARP != 0 {
        return Err(fail(
            kernel.op,
            format!(
                "expected threads to be a multiple of {WARP} from {WARP} to {MOST_THREADS}, got {threads}"
            ),
        ));
    }
    let mut registers: i64 = 0;
    let scopes = walk::nested(kernel.op, &|_| true);
    for scope in scopes.into_iter().filter_map(ScopeOp::of) {
        registers = registers.saturating_add(registers_of(&scope)?);
    }
    match registers <= REGISTERS {
        true => Ok(()),
        false => Err(fail(
            kernel.op,
            format!(
                "expected roles that use at most {REGISTERS} registers together, got {registers}"
            ),
        )),
    }
}

/// The registers of a role; none of a scope without a budget.
fn registers_of<'c>(scope: &ScopeOp<'c>) -> PassResult<'c, i64> {
    let Some(budget) = scope.registers else {
        return Ok(0);
    };
    let (Level::Warpgroup, Some(&[begin, end])) = (scope.level, scope.range.as_deref()) else {
        return Err(fail(
            scope.op,
            "expected a range of warpgroups with a budget of registers".to_owned(),
        ));
    };
    let (least, most, step) = BUDGET;
    if !(least..=most).contains(&budget) || budget % step != 0 {
        return Err(fail(
            scope.op,
            format!("expected a multiple of {step} from {least} to {most} registers, got {budget}"),
        ));
    }
    let threads = end.saturating_sub(begin).saturating_mul(WARPGROUP);
    Ok(threads.saturating_mul(budget))
}

fn fail<'c>(op: Op<'c>, message: String) -> PassError<'c> {
    PassError::new(op.location(), message)
}
