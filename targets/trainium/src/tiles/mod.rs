//! Kernels of tiles (`axe.kernel`) on Trainium: operators on tiles whose layouts name partitions (`P`) and elements of them
//! (`F`) become the instructions of a `trn.kernel`.
//!
//! What enters: kernels of one thread, whose arguments are in HBM. A tensor is a value in SBUF, where its layout says; sums of
//! products are in PSUM, and stay there while products add to them. What remains: a `trn.kernel` of the same name, and
//! launches of it by a grid of one. Which instructions an operator becomes is [`axe_trn::dispatch`]'s to say; here are
//! values, boxes of storage, loops, and what is refused.

mod arguments;
mod carried;
mod edges;
mod elementwise;
mod index;
mod loops;
mod lowering;
mod operators;
mod product;
mod raster;
mod refuse;
mod storage;

use crate::write;
use arguments::Arguments;
use axe_dialect::ops::{self, KernelOp, LaunchOp};
use axe_passes::dispatch::{record, report};
use axe_passes::ir::value::{name, parts};
use axe_passes::ir::{Builder, Op, walk};
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult, error};
use axe_trn::DoesNotFit;
use axe_trn::facts::chip::Chip;
use axe_trn::program::{Builder as Code, Program};
use axe_trn::walk::{Ready, Refused};
use lowering::{Copies, Lowering, failed};
use melior::ir::operation::OperationLike;
use melior::ir::{Location, OperationRef, ValueLike};
use mlir_sys as sys;

/// How many copies of a tile in a loop take turns, in SBUF and in PSUM, where there is room.
const COPIES: Copies = Copies { sbuf: 3, psum: 2 };

/// Lowers the kernels of tiles of a module; how many there were.
///
/// # Errors
/// At each operation that has no instructions.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c, usize> {
    let Some(body) = walk::blocks(module).first().copied() else {
        return Ok(0);
    };
    let (mut failures, mut count) = (Vec::new(), 0);
    for kernel in record::kernels(module) {
        match lowered(module, kernel, chip) {
            Ok(made) => {
                report::remarks(&made.program.name, &made.decisions);
                if pass.flag("explain") {
                    eprint!("{}", report::explain(&made.program.name, &made.decisions));
                }
                for launch in launches(module, kernel) {
                    one_block(launch)?;
                }
                let location = kernel.location();
                // SAFETY: nothing else holds the kernel; launches name it by its symbol.
                unsafe { sys::mlirOperationDestroy(kernel.to_raw()) };
                write::kernel(body, location, &made.program)?;
                count += 1;
            }
            Err(why) if pass.flag("allow-unsupported") => report::left(&why),
            Err(why) => failures.push(why),
        }
    }
    error::all(failures)?;
    Ok(count)
}

/// A kernel as a program, and what its operators became.
struct Made<'c> {
    program: Program,
    decisions: Vec<report::Decision<'c>>,
}

fn lowered<'c>(
    module: OperationRef<'c, 'c>,
    kernel: Op<'c>,
    chip: &'static Chip,
) -> PassResult<'c, Made<'c>> {
    let parts: KernelOp = parts(kernel)?;
    if parts.threads != 1 {
        let why = format!(
            "is a kernel of {} threads, which {} has not: expected threads(1), one stream of instructions for each engine",
            parts.threads, chip.name
        );
        return Err(failed(kernel, why));
    }
    if parts.cluster.is_some() {
        return Err(failed(kernel, "a NeuronCore has no cluster around it"));
    }
    let launches = launches(module, kernel);
    let arguments = Arguments::of(kernel, &launches)?;
    let mut copies = COPIES;
    loop {
        let code = Code::new(parts.sym_name, chip.name);
        let mut lowering = Lowering::new(code, chip, copies);
        arguments.declare(&mut lowering)?;
        arguments.body(&mut lowering)?;
        let Lowering {
            code, decisions, ..
        } = lowering;
        let program = code.finish();
        match Ready::new(&program).map(|_| ()) {
            Ok(()) => return Ok(Made { program, decisions }),
            Err(Refused::Memory(why)) => {
                let fewer = copies.fewer(why.space);
                copies = fewer.ok_or_else(|| does_not_fit(kernel, &program, &why))?;
            }
            Err(Refused::Rules(broken)) => return Err(breaks(kernel, &broken)),
            Err(why) => return Err(failed(kernel, why.to_string())),
        }
    }
}

/// The launches of a kernel.
fn launches<'c>(module: OperationRef<'c, 'c>, kernel: Op<'c>) -> Vec<LaunchOp<'c>> {
    let symbol = record::symbol(kernel).unwrap_or_default();
    let inside = |op: Op<'c>| name(op) != ops::KERNEL;
    let all = walk::nested(module, &inside).into_iter();
    let launches = all.filter_map(axe_dialect::Typed::of);
    launches
        .filter(|launch: &LaunchOp| arguments::launches(launch, &symbol))
        .collect()
}

/// A launch by one block: all blocks are loops of the kernel.
fn one_block<'c>(launch: LaunchOp<'c>) -> PassResult<'c> {
    let one = Builder::before(launch.op).index(1)?;
    for at in 0..3 {
        // SAFETY: a launch has three extents of its grid in front.
        unsafe { sys::mlirOperationSetOperand(launch.op.to_raw(), at, one.to_raw()) };
    }
    Ok(())
}

/// The error of a buffer that finds no place, at the operation that made it.
fn does_not_fit<'c>(kernel: Op<'c>, program: &Program, why: &DoesNotFit) -> PassError<'c> {
    let buffer = program
        .buffers
        .iter()
        .find(|known| known.name == why.buffer);
    let place = buffer.and_then(|buffer| buffer.location.as_ref());
    PassError::new(write::location(kernel.location(), place), why.to_string())
}

/// The error of an instruction that breaks a rule, at its operator.
fn breaks<'c>(kernel: Op<'c>, broken: &[axe_trn::rules::Violation]) -> PassError<'c> {
    let Some(first) = broken.first() else {
        return failed(kernel, "breaks a rule");
    };
    let place: Location<'c> = write::location(kernel.location(), first.location.as_ref());
    PassError::new(
        place,
        format!("({}) {}: {}", first.rule, first.subject, first.message),
    )
}
