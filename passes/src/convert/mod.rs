//! `--convert-linalg-to-axe`: linalg on tensors becomes logical axe operators.
//!
//! A walk in program order, so that producers are axe operators when their consumers are reached: a matrix
//! product folds `axe.cast` and `axe.transpose` and nothing else, which keeps elementwise producers where
//! they belong, behind the operator before.

mod contraction;
mod control;
mod convolution;
mod dots;
mod elementwise;
mod factor;
mod named;
mod operands;
mod order;
mod quantized;
mod reduction;
mod scalar;
mod scan;
mod scatter;
mod simple;
mod sort;
mod sorted_rows;
mod structured;
mod term;
#[cfg(test)]
mod tests;
mod units;

use crate::error::{self, PassError, PassResult};
use crate::ir::value::{is_used, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use crate::registry::PassContext;
use crate::remark::{self, Kind};
use crate::signless;
use axe_dialect::ops::{self, Trait};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Attribute, ValueLike};
use structured::Structured;

/// The category of this pass's remarks.
const CATEGORY: &str = "axe-convert";

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
    signless::remove_signs(module)?;
    if pass.flag("for-kernels") {
        control::flatten(module)?;
        control::forget_assertions(module);
    }
    walk::erase_dead(module, &entered, &removable);
    named::expand(module, &entered);
    if pass.flag("for-kernels") {
        let explain = pass.flag("explain");
        convolution::expand(module, &entered, &mut |op, decision| {
            say(op, &decision.to_string(), explain);
        })?;
    }
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for op in walk::nested(module, &entered) {
        let replaced = match name(op).as_str() {
            sort::SORT => sort::replace(op, pass.flag("for-kernels")),
            scan::SCAN => scan::replace(op),
            scatter::SCATTER => scatter::replace(op),
            other if other.starts_with("tm_tensor.") => Err(PassError::new(
                op.location(),
                format!(
                    "'{other}' is not supported: of tm_tensor there are tm_tensor.sort, tm_tensor.scan and tm_tensor.scatter"
                ),
            )),
            _ => Ok(()),
        };
        if let Err(error) = replaced
            && !pass.flag("allow-unsupported")
        {
            failures.push(error);
        }
    }
    for op in walk::nested(module, &entered) {
        if !name(op).starts_with("linalg.") {
            continue;
        }
        if pass.flag("for-kernels") && !takes_kernels(op) {
            continue;
        }
        match convert(op, &mut counts) {
            Ok(replacements) => replace(op, &replacements)?,
            Err(_) if pass.flag("allow-unsupported") || pass.flag("for-kernels") => {}
            Err(error) => failures.push(error),
        }
    }
    walk::erase_dead(module, &entered, &removable);
    pass.count("num-gemms", counts.gemms);
    pass.count("num-maps", counts.maps);
    pass.count("num-reductions", counts.reductions);
    error::all(failures)
}

/// Says what becomes of a convolution: as a remark, and on standard error when asked to explain.
fn say(op: Op<'_>, decision: &str, explain: bool) {
    let message = format!("convolution {decision}");
    remark::emit(
        op.location(),
        Kind::Passed,
        CATEGORY,
        "convolution",
        "",
        &message,
    );
    if explain {
        eprintln!("{message}    {}", op.location());
    }
}

/// Whether kernels of operators take an operation's tensors: no dimension but the first is dynamic, and none is empty.
fn takes_kernels(op: Op<'_>) -> bool {
    let takes = |value: Val<'_>| {
        let shape = TensorType::of_value(value).map(|tensor| tensor.shape);
        let inner = |shape: &[i64]| shape.iter().skip(1).any(|extent| *extent == DYNAMIC);
        shape.is_none_or(|shape| !shape.contains(&0) && !inner(&shape))
    };
    let mut values = operands(op).into_iter();
    values.all(takes) && results(op).into_iter().all(takes) && !has_dynamic_depth(op)
}

/// Whether an operation on several tensors has a reduction whose extent is known at run time only.
fn has_dynamic_depth(op: Op<'_>) -> bool {
    let maps = maps_of(op).unwrap_or_default();
    let inputs = maps.len().saturating_sub(op.result_count());
    let (ins, outs) = maps.split_at(inputs);
    let kept = outs.iter().flat_map(indices);
    let kept: Vec<_> = kept
        .filter(|index| index.is_dim())
        .map(|index| index.dim_position())
        .collect();
    let reduced = |(map, value): (&AffineMap<'_>, Val<'_>)| {
        let shape = TensorType::of_value(value).map_or_else(Vec::new, |tensor| tensor.shape);
        let mut dims = indices(map).into_iter().zip(shape);
        dims.any(|(index, extent)| {
            extent == DYNAMIC && index.is_dim() && !kept.contains(&index.dim_position())
        })
    };
    inputs > 1 && ins.iter().zip(operands(op)).any(reduced)
}

/// The indexing maps of a structured operation, named ones included.
fn maps_of<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    // SAFETY: the operation is live; the attribute is null for one without linalg's interface, which is checked.
    let maps = unsafe {
        let maps = mlir_sys::mlirLinalgGetIndexingMapsAttribute(op.to_raw());
        (!maps.ptr.is_null()).then(|| Attribute::from_raw(maps))
    };
    let maps = attribute::elements(maps?)?;
    maps.into_iter().map(attribute::affine_map).collect()
}

/// What the dimensions of an operand are indexed with.
fn indices<'c>(map: &AffineMap<'c>) -> Vec<AffineExpr<'c>> {
    (0..map.result_count())
        .filter_map(|at| map.result(at).ok())
        .collect()
}

/// The axe operators for one operation of linalg, built in front of it; none for a result without a use.
///
/// # Errors
/// For an operation that has none.
pub(crate) fn operators<'c>(op: Op<'c>) -> PassResult<'c, Vec<Option<Val<'c>>>> {
    convert(op, &mut Counts::default())
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
    for (result, replacement) in results(op).into_iter().zip(replacements) {
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
    let structured = ["linalg.", "axe.", "tm_tensor."];
    !structured.iter().any(|dialect| name.starts_with(dialect))
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
