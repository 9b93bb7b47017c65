//! Indices of which some are attributes: offsets, sizes, strides and widths of padding.

use super::generic::apply;
use crate::error::{PassError, PassResult};
use crate::ir::value::operands;
use crate::ir::{Builder, DYNAMIC, Op, Val, attribute};
use melior::ir::attribute::DenseI32ArrayAttribute;
use melior::ir::operation::OperationLike;

/// An index that is known, or a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mixed<'c> {
    Known(i64),
    Value(Val<'c>),
}

impl<'c> Mixed<'c> {
    /// The index as a value.
    pub(super) fn value(self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Known(known) => builder.index(known),
            Self::Value(value) => Ok(value),
        }
    }

    /// `at + self`.
    pub(super) fn added_to(self, builder: &Builder<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Known(0) => Ok(at),
            _ => apply(builder, "arith.addi", at, self.value(builder)?),
        }
    }

    /// `at - self`.
    pub(super) fn taken_from(self, builder: &Builder<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Known(0) => Ok(at),
            _ => apply(builder, "arith.subi", at, self.value(builder)?),
        }
    }

    /// `at * self`.
    pub(super) fn times(self, builder: &Builder<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Known(1) => Ok(at),
            _ => apply(builder, "arith.muli", at, self.value(builder)?),
        }
    }
}

/// The operands of an operation by segment; one segment where it has no sizes of them.
pub(super) fn segments<'c>(op: Op<'c>) -> Vec<Vec<Val<'c>>> {
    let mut all = operands(op).into_iter();
    let sizes = op.attribute("operandSegmentSizes").ok();
    let Some(sizes) = sizes.and_then(|sizes| DenseI32ArrayAttribute::try_from(sizes).ok()) else {
        return vec![all.collect()];
    };
    let size = |at| {
        sizes
            .element(at)
            .ok()
            .and_then(|size| usize::try_from(size).ok())
    };
    (0..sizes.len())
        .map(|at| all.by_ref().take(size(at).unwrap_or(0)).collect())
        .collect()
}

/// The indices of which the attribute `key` has the known ones.
///
/// # Errors
/// When the attribute is not there, or a value is missing.
pub(super) fn read<'c>(
    op: Op<'c>,
    key: &str,
    values: &[Val<'c>],
) -> PassResult<'c, Vec<Mixed<'c>>> {
    let error = || PassError::new(op.location(), format!("'{key}' does not fit its operands"));
    let known = op.attribute(key).ok().and_then(attribute::read_i64s);
    let mut values = values.iter();
    known
        .ok_or_else(error)?
        .into_iter()
        .map(|known| match known {
            DYNAMIC => values.next().copied().map(Mixed::Value).ok_or_else(error),
            known => Ok(Mixed::Known(known)),
        })
        .collect()
}
