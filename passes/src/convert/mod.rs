//! `--convert-linalg-to-axe`: linalg on tensors becomes logical axe operators.
//!
//! A walk in program order, so that producers are axe operators when their consumers are reached: a matrix
//! product folds `axe.cast` and `axe.transpose` and nothing else, which keeps elementwise producers where
//! they belong, behind the operator before.

mod contraction;
mod elementwise;
mod factor;
mod named;
mod operands;
mod quantized;
mod reduction;
mod scalar;
mod simple;
mod structured;
mod term;
#[cfg(test)]
mod tests;

use crate::error::{self, PassError, PassResult};
use crate::ir::value::{is_used, name, replace_all_uses};
use crate::ir::{Builder, Op, Val, walk};
use crate::registry::PassContext;
use axe_dialect::ops::{self, Trait};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use structured::Structured;

/// What the pass has created.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gemms: usize,
    maps: usize,
    reductions: usize,
}

/// The values that take the place of an operation's results; `None` for a result without a use.
type Replacements<'c> = Vec<Option<Val<'c>>>;

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    walk::erase_dead(module, &entered, &removable);
    named::expand(module, &entered);
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for op in walk::nested(module, &entered) {
        if !name(op).starts_with("linalg.") {
            continue;
        }
        match convert(op, &mut counts) {
            Ok(replacements) => replace(op, &replacements)?,
            Err(_) if pass.flag("allow-unsupported") => {}
            Err(error) => failures.push(error),
        }
    }
    walk::erase_dead(module, &entered, &removable);
    pass.count("num-gemms", counts.gemms);
    pass.count("num-maps", counts.maps);
    pass.count("num-reductions", counts.reductions);
    error::all(failures)
}

/// The axe operators for one operation of linalg, built in front of it.
fn convert<'c>(op: Op<'c>, counts: &mut Counts) -> PassResult<'c, Replacements<'c>> {
    let builder = Builder::before(op);
    if let Some(value) = simple::convert(&builder, op)? {
        return Ok(vec![Some(value)]);
    }
    let structured = Structured::read(op)?;
    let created = *counts;
    let converted = if structured.reductions.contains(&true) {
        match contraction::convert(&builder, &structured, counts)? {
            Some(value) => Ok(vec![Some(value)]),
            None => reduction::convert(&builder, &structured, counts),
        }
    } else {
        elementwise::convert(&builder, &structured, counts)
    };
    // What was built for an operation that then failed is dead, and not counted.
    converted.inspect_err(|_| *counts = created)
}

/// Puts the replacements in the place of an operation's results and erases it.
fn replace<'c>(op: Op<'c>, replacements: &Replacements<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    for (result, replacement) in crate::ir::value::results(op).into_iter().zip(replacements) {
        match replacement {
            Some(value) => replace_all_uses(result, builder.with_type(*value, result.r#type())?),
            None if is_used(result) => {
                return Err(PassError::new(
                    op.location(),
                    format!("a used result of '{}' has no value", name(op)),
                ));
            }
            None => {}
        }
    }
    walk::erase(op);
    Ok(())
}

/// Whether the pass looks below an operation: not into structured operations, nor into kernels.
fn entered(op: Op<'_>) -> bool {
    let name = name(op);
    !name.starts_with("linalg.") && !name.starts_with("axe.")
}

/// Whether an operation without uses can go: it computes values and does nothing else.
fn removable(op: Op<'_>) -> bool {
    let name = name(op);
    op.result_count() > 0
        && (computes(&name)
            || (name.starts_with("tensor.") && op.region_count() == 0)
            || (name.starts_with("linalg.")
                && walk::nested(op, &|_| true)
                    .into_iter()
                    .all(|inner| computes(&crate::ir::value::name(inner))))
            || ops::has(&name, Trait::Logical))
}

/// Whether operations of this name compute scalars and do nothing else.
fn computes(name: &str) -> bool {
    let known = ["arith.", "math."]
        .iter()
        .any(|dialect| name.starts_with(dialect));
    known || ["linalg.index", "linalg.yield"].contains(&name)
}

/// What else can be done with operations that have no form here.
const LEAVE: &str = "allow-unsupported, an option of this pass and of the pipelines for chips in axe-opt, leaves such operations for the \
                     host; the CPU target takes them (axe compile --target cpu)";

/// The error for an operation of linalg that has no form in axe.
fn unsupported<'c>(op: Op<'c>, why: &str) -> PassError<'c> {
    PassError::new(
        op.location(),
        format!("'{}' is not supported: {why}", name(op)),
    )
    .note(LEAVE)
}
