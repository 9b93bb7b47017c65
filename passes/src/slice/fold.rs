//! One slice in the place of a slice of a slice, one view in the place of a view of a view.
//!
//! A slice carries its source's bounds: what an outer box has outside the inner one reads as padding, and would be
//! elements of the storage after a fold. So a fold needs the outer box to stay inside the inner one in every
//! dimension that the inner one cuts.

use super::{extents, missed};
use crate::boxes;
use crate::error::PassResult;
use crate::ir::facts::Facts;
use crate::ir::value::replace_all_uses;
use crate::ir::{Builder, DYNAMIC, Op, Val, types};
use axe_dialect::Typed;
use axe_dialect::ops::{SliceOp, ViewOp};
use axe_layout::Axis;
use melior::ir::ValueLike;

/// Folds a slice or a view with its source; true when it did. The old one stays, without uses. `aloud`: with a
/// remark where it does not.
pub(super) fn fold<'c>(op: Op<'c>, aloud: bool) -> PassResult<'c, bool> {
    let folded = match (SliceOp::of(op), ViewOp::of(op)) {
        (Some(slice), _) => slices(&slice)?,
        (_, Some(view)) => views(&view)?,
        _ => Step::Alone,
    };
    if let (Step::Stays(why), true) = (&folded, aloud) {
        missed(op, why);
    }
    Ok(matches!(folded, Step::Folded))
}

/// What became of a slice or view.
enum Step {
    /// Its source is no slice or view.
    Alone,
    Folded,
    Stays(String),
}

fn slices<'c>(outer: &SliceOp<'c>) -> PassResult<'c, Step> {
    let Some(inner) = SliceOp::defining(outer.source) else {
        return Ok(Step::Alone);
    };
    let (storage, result) = (inner.source, outer.result);
    let (extent, dropped) = extents(storage, outer.source);
    let (boxed, _) = extents(outer.source, result);
    let bounds = Bounds {
        of: types::shape(storage.r#type())
            .unwrap_or_default()
            .split_off(dropped.min(inner.origin.len())),
        inner: extent.get(dropped..).unwrap_or_default(),
        inner_origins: inner.origin.get(dropped..).unwrap_or_default(),
    };
    if let Err(why) = bounds.hold(&outer.origin, &boxed) {
        return Ok(Step::Stays(format!("this slice of a slice stays: {why}")));
    }
    let builder = Builder::before(outer.op);
    let mut origin = inner.origin;
    // The dimensions that the inner slice dropped lead, and keep its origin.
    for (at, by) in origin.iter_mut().skip(dropped).zip(&outer.origin) {
        *at = sum(&builder, *at, *by)?;
    }
    let operands = SliceOp::operands(storage, &origin);
    let slice = builder.operator_value(&operands, result.r#type(), &[])?;
    replace_all_uses(result, slice);
    Ok(Step::Folded)
}

/// The bounds that a slice of a slice must keep, in the dimensions that the inner slice keeps.
struct Bounds<'a, 'c> {
    /// Extents of the storage.
    of: Vec<i64>,
    /// Extents of the inner box.
    inner: &'a [i64],
    inner_origins: &'a [Val<'c>],
}

impl Bounds<'_, '_> {
    /// Whether the outer box meets the same bounds in the storage as in the inner box.
    fn hold(&self, origins: &[Val<'_>], boxed: &[i64]) -> Result<(), String> {
        let facts = Facts::default();
        let dims = self.of.iter().zip(self.inner).zip(self.inner_origins);
        for (dim, (((of, inner), inner_at), (at, extent))) in
            dims.zip(origins.iter().zip(boxed)).enumerate()
        {
            let (fact, begin) = (facts.of(*at), facts.of(*inner_at).known());
            let whole = begin == Some(0) && of == inner && *of != DYNAMIC;
            let inside = fact.low.is_some_and(|low| low >= 0)
                && fact
                    .high
                    .and_then(|high| high.checked_add(*extent))
                    .is_some_and(|end| end <= *inner);
            if !whole && !inside {
                return Err(format!(
                    "along dimension {dim} its {extent} elements are not known to lie inside the {inner} of its source, \
                     which bound it"
                ));
            }
        }
        Ok(())
    }
}

/// The sum of two origins.
pub(super) fn sum<'c>(builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
    let facts = Facts::default();
    match (facts.of(a).known(), facts.of(b).known()) {
        (_, Some(0)) => Ok(a),
        (Some(0), _) => Ok(b),
        (Some(x), Some(y)) => match x.checked_add(y) {
            Some(sum) => builder.index(sum),
            None => builder.value("arith.addi", &[a, b], builder.index_type(), &[]),
        },
        _ => builder.value("arith.addi", &[a, b], builder.index_type(), &[]),
    }
}

fn views<'c>(outer: &ViewOp<'c>) -> PassResult<'c, Step> {
    let (source, result) = (outer.source, outer.result);
    if source.r#type() == result.r#type() {
        replace_all_uses(result, source);
        return Ok(Step::Folded);
    }
    let Some(ViewOp {
        source: storage, ..
    }) = ViewOp::defining(source)
    else {
        return Ok(Step::Alone);
    };
    if storage.r#type() == result.r#type() {
        replace_all_uses(result, storage);
        return Ok(Step::Folded);
    }
    if let Err(why) = fits(storage, result) {
        return Ok(Step::Stays(format!("this view of a view stays: {why}")));
    }
    let operands = ViewOp::operands(storage);
    let view = Builder::before(outer.op).operator_value(&operands, result.r#type(), &[])?;
    replace_all_uses(result, view);
    Ok(Step::Folded)
}

/// Whether a view of the storage as `result`'s type keeps constraint W2.
fn fits(storage: Val<'_>, result: Val<'_>) -> Result<(), String> {
    let span = |value: Val<'_>| {
        boxes::memory_layout(value.r#type())?
            .cosize(Axis::M)
            .map_err(|error| error.to_string())
    };
    let is_static = |value: Val<'_>| {
        types::shape(value.r#type()).is_some_and(|shape| !shape.contains(&DYNAMIC))
    };
    if !is_static(storage) || !is_static(result) {
        return Ok(());
    }
    let (has, needs) = (span(storage)?, span(result)?);
    match needs <= has {
        true => Ok(()),
        false => Err(format!(
            "it spans {needs} elements of storage that has {has}"
        )),
    }
}
