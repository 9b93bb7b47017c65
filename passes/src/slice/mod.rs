//! `--axe-slice`: slices and views of storage, resolved as far as they are known.
//!
//! What enters: kernels whose slices and views lie on each other. What remains: one slice or view between an
//! operator and its storage wherever that keeps every bound.
//!
//! * [`fold`]: slices of slices and views of views;
//! * [`exact`]: boxes of a kernel's own storage at constant origins, which are views;
//! * here: types of boxes that lack a layout.

mod exact;
mod fold;

use crate::boxes;
use crate::error::PassResult;
use crate::ir::facts::Facts;
use crate::ir::value::name;
use crate::ir::{Builder, Op, Val, types, walk};
use crate::registry::PassContext;
use crate::remark::{self, Kind};
use axe_dialect::ops::{self, SliceOp};
use axe_dialect::{Typed, layout_of, strides_of};
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};
use mlir_sys as sys;

/// The category of the remarks.
const CATEGORY: &str = "axe-slice";

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    let folded = each(module, |op| fold::fold(op, true))?;
    let exact = each(module, exact::resolve)?;
    // A view that a slice became may lie on another.
    let again = each(module, |op| fold::fold(op, false))?;
    let completed = each(module, |op| Ok(complete(op)))?;
    pass.count("num-folded", folded + again);
    pass.count("num-resolved", exact);
    pass.count("num-completed", completed);
    Ok(())
}

/// Applies a step to each slice and view in program order, so that sources are resolved before their users, and
/// erases those that nothing uses any more. Returns how many changed.
fn each<'c>(
    module: Op<'c>,
    step: impl Fn(Op<'c>) -> PassResult<'c, bool>,
) -> PassResult<'c, usize> {
    let is_box = |op| [ops::SLICE, ops::VIEW].contains(&name(op).as_str());
    let mut changed = 0;
    for op in walk::nested(module, &|_| true) {
        if is_box(op) && step(op)? {
            changed += 1;
        }
    }
    walk::erase_dead(module, &|_| true, &is_box);
    Ok(changed)
}

/// Says why an operation stays as it is.
fn missed(op: Op<'_>, why: &str) {
    remark::emit(op.location(), Kind::Missed, CATEGORY, &name(op), "", why);
}

/// Whether all users take a memref of another layout: operators of axe do, and accesses of elements. Views do not,
/// for they count addresses from the layout's zero.
fn is_free(value: Val<'_>, views: bool) -> bool {
    crate::ir::value::users(value)
        .into_iter()
        .all(|user| match name(user).as_str() {
            ops::COPY
            | ops::FILL
            | ops::GEMM
            | ops::SCALED_GEMM
            | ops::SLICE
            | "memref.dim"
            | "memref.load"
            | "memref.store" => true,
            ops::VIEW => views,
            _ => false,
        })
}

/// Gives the box of storage that is not strided the layout that its type lacks.
fn complete(op: Op<'_>) -> bool {
    let Some(SliceOp {
        source,
        origin,
        result,
        ..
    }) = SliceOp::of(op)
    else {
        return false;
    };
    let lacks = layout_of(result.r#type()).is_none() && layout_of(source.r#type()).is_some();
    if !lacks || strides_of(source.r#type()).is_some() {
        return false;
    }
    if !is_free(result, true) {
        missed(
            op,
            "its type stays without a layout: a user needs this very type",
        );
        return false;
    }
    let (extents, dropped) = extents(source, result);
    let facts = Facts::default();
    let origins: Vec<_> = origin.iter().map(|at| facts.of(*at)).collect();
    let builder = Builder::before(op);
    match boxes::box_type(&builder, source.r#type(), &origins, &extents, dropped) {
        Ok(r#type) => {
            // SAFETY: value and type are valid and of one context; the users take any layout.
            unsafe { sys::mlirValueSetType(result.to_raw(), r#type.to_raw()) };
            true
        }
        Err(why) => {
            missed(op, &format!("its type stays without a layout: {why}"));
            false
        }
    }
}

/// The extents of a box in its source's rank, and how many leading ones its type leaves out.
fn extents(source: Val<'_>, result: Val<'_>) -> (Vec<i64>, usize) {
    let shape = types::shape(result.r#type()).unwrap_or_default();
    let rank = types::shape(source.r#type()).map_or(0, |shape| shape.len());
    let dropped = rank.saturating_sub(shape.len());
    (
        std::iter::repeat_n(1, dropped).chain(shape).collect(),
        dropped,
    )
}
