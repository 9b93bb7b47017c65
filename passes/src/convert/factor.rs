//! Factors of a contraction, and folding what only prepares them: transposes, widening casts, and those
//! behind a collapse of dimensions. Nothing else is looked through.

use super::elementwise::loops_of;
use super::operands::drop_zeros;
use super::structured::Structured;
use super::unsupported;
use crate::error::PassResult;
use crate::ir::value::defined_by;
use crate::ir::{Builder, DYNAMIC, TensorType, Val, attribute, types};
use axe_dialect::Typed;
use axe_dialect::ops::{CastOp, TransposeOp};
use melior::ir::operation::OperationLike;

/// A tensor and the loop of each of its dimensions.
#[derive(Clone, Debug)]
pub(super) struct Factor<'c> {
    pub(super) value: Val<'c>,
    pub(super) loops: Vec<usize>,
}

/// An operand without its unit dimensions.
///
/// # Errors
/// When it is not a tensor, or a dimension indexed with 0 is not 1.
pub(super) fn factor<'c>(
    builder: &Builder<'c>,
    op: &Structured<'c>,
    number: usize,
) -> PassResult<'c, Factor<'c>> {
    let Some((value, map)) = op
        .operand(number)
        .filter(|(value, _)| TensorType::of_value(*value).is_some())
    else {
        return Err(unsupported(
            op.op,
            "a factor of its product is not a tensor",
        ));
    };
    Ok(Factor {
        value: drop_zeros(builder, value, map)?,
        loops: loops_of(map),
    })
}

/// Both factors without the transposes in front of them, and without widening casts when the element
/// types under them are the same: products of the narrow values are exact in the wide type.
///
/// # Errors
/// When building a reshape fails.
pub(super) fn fold<'c>(
    builder: &Builder<'c>,
    left: &Factor<'c>,
    right: &Factor<'c>,
) -> PassResult<'c, (Factor<'c>, Factor<'c>)> {
    let element =
        |factor: &Factor<'c>| TensorType::of_value(factor.value).map(|tensor| tensor.element);
    let narrow = (
        peel(builder, left.clone(), true)?,
        peel(builder, right.clone(), true)?,
    );
    if element(&narrow.0).is_some() && element(&narrow.0) == element(&narrow.1) {
        return Ok(narrow);
    }
    Ok((
        peel(builder, left.clone(), false)?,
        peel(builder, right.clone(), false)?,
    ))
}

/// A factor without the transposes, and when asked the exact widening casts, that produce it; those behind
/// a collapse of dimensions too, where the collapse can be made of their source.
fn peel<'c>(
    builder: &Builder<'c>,
    mut factor: Factor<'c>,
    casts: bool,
) -> PassResult<'c, Factor<'c>> {
    loop {
        if let Some((source, loops)) = untransposed(&factor) {
            factor = Factor {
                value: source,
                loops,
            };
        } else if let Some(source) = casts.then(|| unwidened(factor.value)).flatten() {
            factor.value = source;
        } else if let Some(source) = unexpanded(builder, factor.value)? {
            factor.value = source;
        } else if let Some(collapsed) = collapsed(builder, &factor, casts)? {
            factor = collapsed;
        } else {
            return Ok(factor);
        }
    }
}

/// A factor that is the collapse of a transpose or of a widening cast, as the collapse of its source.
fn collapsed<'c>(
    builder: &Builder<'c>,
    factor: &Factor<'c>,
    casts: bool,
) -> PassResult<'c, Option<Factor<'c>>> {
    let Some(op) = defined_by(factor.value, "tensor.collapse_shape") else {
        return Ok(None);
    };
    let groups = op
        .attribute("reassociation")
        .ok()
        .and_then(attribute::read_groups);
    let (Some(groups), Ok(inner)) = (groups, op.operand(0)) else {
        return Ok(None);
    };
    if let Some(source) = casts.then(|| unwidened(inner)).flatten() {
        let value = builder.collapse(source, &groups)?;
        return Ok(Some(Factor {
            value,
            loops: factor.loops.clone(),
        }));
    }
    let Some((source, moved)) = transposed_groups(inner, &groups) else {
        return Ok(None);
    };
    // Each group with its loop, in the order of the source's dimensions.
    let mut moved: Vec<_> = moved
        .into_iter()
        .zip(factor.loops.iter().copied())
        .collect();
    moved.sort();
    let (groups, loops): (Vec<_>, Vec<_>) = moved.into_iter().unzip();
    Ok(Some(Factor {
        value: builder.collapse(source, &groups)?,
        loops,
    }))
}

/// A collapse of what dimensions of extent 1 were put into, as the collapse of that.
fn unexpanded<'c>(builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Option<Val<'c>>> {
    let found = || {
        let collapse = defined_by(value, "tensor.collapse_shape")?;
        let inner = collapse.operand(0).ok()?;
        let from = defined_by(inner, "tensor.expand_shape")?.operand(0).ok()?;
        let groups = collapse
            .attribute("reassociation")
            .ok()
            .and_then(attribute::read_groups)?;
        let (shape, own) = (
            TensorType::of_value(inner)?.shape,
            TensorType::of_value(from)?.shape,
        );
        let is_wide = |dim: &i64| {
            let extent = usize::try_from(*dim).ok().and_then(|dim| shape.get(dim));
            extent.is_some_and(|extent| *extent != 1)
        };
        let wide: Vec<_> = shape
            .iter()
            .copied()
            .filter(|extent| *extent != 1)
            .collect();
        let mut next = 0i64..;
        let groups: Vec<Vec<i64>> = groups
            .iter()
            .map(|group| {
                group
                    .iter()
                    .filter(|dim| is_wide(dim))
                    .filter_map(|_| next.next())
                    .collect()
            })
            .collect();
        let is_same =
            wide == own && !wide.contains(&DYNAMIC) && groups.iter().all(|group| !group.is_empty());
        is_same.then_some((from, groups))
    };
    match found() {
        Some((from, groups)) => builder.collapse(from, &groups).map(Some),
        None => Ok(None),
    }
}

/// The source of a transpose and, for each group of the transpose's dimensions, the source's; `None` when
/// those of a group do not follow each other.
fn transposed_groups<'c>(value: Val<'c>, groups: &[Vec<i64>]) -> Option<(Val<'c>, Vec<Vec<i64>>)> {
    let TransposeOp {
        source: from,
        permutation,
        ..
    } = TransposeOp::defining(value)?;
    let source = |dim: &i64| {
        usize::try_from(*dim)
            .ok()
            .and_then(|dim| permutation.get(dim))
            .copied()
    };
    let moved: Vec<Vec<i64>> = groups
        .iter()
        .map(|group| group.iter().map(source).collect())
        .collect::<Option<_>>()?;
    let follow = |group: &Vec<i64>| {
        group
            .iter()
            .zip(group.iter().skip(1))
            .all(|(dim, next)| *next == dim + 1)
    };
    moved.iter().all(follow).then_some((from, moved))
}

fn untransposed<'c>(factor: &Factor<'c>) -> Option<(Val<'c>, Vec<usize>)> {
    let TransposeOp {
        source,
        permutation,
        ..
    } = TransposeOp::defining(factor.value)?;
    // Result dimension i is source dimension permutation[i], so the source's dimension d has the loop of the i with permutation[i] = d.
    let loops = (0..).zip(&factor.loops).map(|(dim, _): (i64, _)| {
        let at = permutation.iter().position(|source| *source == dim)?;
        factor.loops.get(at).copied()
    });
    Some((source, loops.collect::<Option<_>>()?))
}

/// What a cast widens, when every value of the narrow type is one of the wide type.
fn unwidened<'c>(value: Val<'c>) -> Option<Val<'c>> {
    let CastOp { source, .. } = CastOp::defining(value)?;
    let (wide, narrow) = (
        TensorType::of_value(value)?.element,
        TensorType::of_value(source)?.element,
    );
    let same_kind = types::is_float(wide) == types::is_float(narrow);
    // Not every 8-bit float is a 16-bit one: f8E8M0FNU has the exponents of f32.
    let exact = !types::is_float(wide) || types::bits(wide)? >= 32;
    (same_kind && exact && types::bits(narrow)? < types::bits(wide)?).then_some(source)
}
