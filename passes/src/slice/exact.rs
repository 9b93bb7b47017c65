//! A box of a kernel's own storage at a constant origin is a view: its layout is the algebra's slice, origin included.

use super::{extents, is_free, missed};
use crate::boxes;
use crate::error::PassResult;
use crate::ir::facts::{Facts, gcd};
use crate::ir::value::{replace_all_uses, users};
use crate::ir::{Builder, Op, Val, types};
use axe_dialect::Typed;
use axe_dialect::ops::{AllocOp, SliceOp, ViewOp};
use axe_layout::{Axis, Layout};
use melior::ir::ValueLike;

/// Puts views in the place of a slice at a constant origin and of the views of it; true when it did.
pub(super) fn resolve<'c>(op: Op<'c>) -> PassResult<'c, bool> {
    let Some(slice) = SliceOp::of(op).filter(|slice| is_own(slice.source)) else {
        return Ok(false);
    };
    let facts = Facts::default();
    let origin: Option<Vec<i64>> = slice
        .origin
        .iter()
        .map(|at| facts.of(*at).known())
        .collect();
    let Some(origin) = origin else {
        return Ok(false);
    };
    let builder = Builder::before(op);
    match Exact::new(&builder, slice.source, &origin, slice.result) {
        Ok(exact) => {
            exact.replace(&builder)?;
            Ok(true)
        }
        Err(why) => {
            missed(op, &format!("this slice at a constant origin stays: {why}"));
            Ok(false)
        }
    }
}

/// Whether all of the storage is the kernel's own: an allocation, or a view of one.
fn is_own(memref: Val<'_>) -> bool {
    AllocOp::defining(memref).is_some()
        || ViewOp::defining(memref).is_some_and(|view| is_own(view.source))
}

/// A slice as views of its source.
struct Exact<'c> {
    source: Val<'c>,
    result: Val<'c>,
    r#type: melior::ir::Type<'c>,
    /// The views of the slice, and their types as views of its source.
    views: Vec<(Val<'c>, melior::ir::Type<'c>)>,
}

impl<'c> Exact<'c> {
    fn new(
        builder: &Builder<'c>,
        source: Val<'c>,
        origin: &[i64],
        result: Val<'c>,
    ) -> boxes::Found<Self> {
        if !is_free(result, true) {
            return Err("a user needs this very type".into());
        }
        let layout = boxes::memory_layout(source.r#type())?;
        let of = types::shape(source.r#type()).unwrap_or_default();
        let (boxed, dropped) = extents(source, result);
        let exact = layout
            .slice(&of, &boxes::region(origin, &boxed))
            .map_err(|error| error.to_string())?;
        let shape = boxed.get(dropped..).unwrap_or_default();
        let r#type = boxes::memref_like(builder, source.r#type(), shape, &exact)?;
        let mut views = Vec::new();
        for ViewOp { result: view, .. } in users(result).into_iter().filter_map(ViewOp::of) {
            views.push((view, view_type(builder, &layout, &exact, view, result)?));
        }
        Ok(Self {
            source,
            result,
            r#type,
            views,
        })
    }

    /// Views first, each at its own place, and then the slice.
    fn replace(self, builder: &Builder<'c>) -> PassResult<'c> {
        for (view, r#type) in self.views {
            let at = crate::ir::value::defining(view).map_or(*builder, Builder::before);
            let operands = ViewOp::operands(self.source);
            replace_all_uses(view, at.operator_value(&operands, r#type, &[])?);
        }
        let operands = ViewOp::operands(self.source);
        let view = builder.operator_value(&operands, self.r#type, &[])?;
        replace_all_uses(self.result, view);
        Ok(())
    }
}

/// The type of a view of the box as a view of the box's source: further on by the box's place in the storage.
fn view_type<'c>(
    builder: &Builder<'c>,
    storage: &Layout,
    exact: &Layout,
    view: Val<'c>,
    boxed: Val<'c>,
) -> boxes::Found<melior::ir::Type<'c>> {
    if !is_free(view, false) {
        return Err("a view of it has users that need this very type".into());
    }
    let counted = boxes::memory_layout(boxed.r#type())?.offset().get(Axis::M);
    if counted != 0 {
        return Err("its type has an offset, from which a view counts".into());
    }
    let by = exact.offset().get(Axis::M);
    let through = boxes::memory_layout(view.r#type())?;
    let period = |layout: &Layout| layout.swizzle().map_or(1, |swizzle| swizzle.period());
    let (a, b) = (period(storage), period(&through));
    // Both periods are powers of two.
    if storage.swizzle() != through.swizzle() && gcd(by, a.max(b)) != a.max(b) && by != 0 {
        return Err(format!(
            "a view of it has another swizzle, whose period does not divide its place {by}"
        ));
    }
    let shape = types::shape(view.r#type()).unwrap_or_default();
    boxes::memref_like(builder, view.r#type(), &shape, &boxes::moved(&through, by)?)
}
