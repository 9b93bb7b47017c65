//! The parts of a `tm_tensor.scatter`, as far as they are understood.

use crate::convert::unsupported;
use crate::error::PassResult;
use crate::ir::value::{name, operands, results};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute, types, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// What updates are combined with elements by.
const COMBINERS: [&str; 12] = [
    "arith.addf",
    "arith.addi",
    "arith.mulf",
    "arith.muli",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxsi",
    "arith.minsi",
    "arith.maxui",
    "arith.minui",
    "arith.andi",
    "arith.ori",
];

/// What an element becomes of an update.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Old,
    New,
    Combined(&'static str),
}

impl Body {
    fn of(op: Op<'_>) -> Option<Self> {
        let block = walk::blocks(op).first().copied()?;
        let arguments = walk::block_arguments(block);
        let body = walk::operations(block);
        let yielded = body.last().copied().map(operands)?;
        match body[..] {
            [_] => match arguments.iter().position(|own| yielded == [*own])? {
                0 => Some(Self::New),
                _ => Some(Self::Old),
            },
            [combined, _] => {
                let all = operands(combined);
                let reads = all.len() == 2 && arguments.iter().all(|own| all.contains(own));
                let gives = results(combined) == yielded;
                let how = COMBINERS.iter().find(|own| **own == name(combined));
                how.filter(|_| reads && gives)
                    .map(|how| Self::Combined(how))
            }
            _ => None,
        }
    }
}

/// The operation's parts.
pub(super) struct Given<'c> {
    pub(super) op: Op<'c>,
    pub(super) updates: Val<'c>,
    pub(super) indices: Val<'c>,
    pub(super) original: Val<'c>,
    /// The dimension that each column of indices is of.
    pub(super) mapped: Vec<usize>,
    pub(super) body: Body,
}

impl<'c> Given<'c> {
    /// Reads the operation.
    ///
    /// # Errors
    /// For another form than those of [`super::replace`].
    pub(super) fn of(op: Op<'c>) -> PassResult<'c, Self> {
        let &[updates, indices, original] = &operands(op)[..] else {
            return Err(unsupported(op, "expected updates, indices and a tensor"));
        };
        let mapped = op.attribute("dimension_map").ok();
        let mapped = mapped.and_then(attribute::read_i64s).unwrap_or_default();
        let mapped: Vec<_> = mapped
            .into_iter()
            .filter_map(|own| usize::try_from(own).ok())
            .collect();
        let element = TensorType::of_value(indices).map(|own| own.element);
        let bits = element
            .filter(|own| types::is_integer(*own))
            .and_then(types::bits);
        if !bits.is_some_and(|bits| [32, 64].contains(&bits)) {
            return Err(unsupported(op, "expected indices of 32 or 64 bits"));
        }
        let shape = |value| TensorType::of_value(value).map(|own| own.shape);
        let (Some(of_updates), Some(of_indices), Some(of_original)) =
            (shape(updates), shape(indices), shape(original))
        else {
            return Err(unsupported(op, "expected updates, indices and a tensor"));
        };
        let width = i64::try_from(mapped.len()).unwrap_or(i64::MAX);
        let are_dims = mapped.iter().enumerate().all(|(at, own)| {
            *own < of_original.len() && mapped.get(..at).is_some_and(|all| !all.contains(own))
        });
        if mapped.is_empty() || !are_dims || of_indices.get(1) != Some(&width) {
            return Err(unsupported(
                op,
                "expected a column of indices for each dimension of 'dimension_map'",
            ));
        }
        let is_mapped = |at: usize| mapped.contains(&at);
        let own = of_original.iter().enumerate();
        let (full, short): (Vec<i64>, Vec<Option<i64>>) = own
            .map(|(at, extent)| match is_mapped(at) {
                true => (1, None),
                false => (*extent, Some(*extent)),
            })
            .unzip();
        let short: Vec<_> = short.into_iter().flatten().collect();
        let windows = of_updates.get(1..).unwrap_or_default();
        if of_updates.first() != of_indices.first() || windows != full && windows != short {
            return Err(unsupported(
                op,
                "expected an update of one index along the dimensions of 'dimension_map', and of all of the others, for each row of indices",
            ));
        }
        let types: Vec<_> = results(op).iter().map(ValueLike::r#type).collect();
        let element = |value| TensorType::of_value(value).map(|own| own.element);
        if types != [original.r#type()] || element(updates) != element(original) {
            return Err(unsupported(
                op,
                "expected updates of the tensor's type, and one like it",
            ));
        }
        if short.contains(&DYNAMIC) || of_original.contains(&0) || of_updates.contains(&0) {
            return Err(unsupported(
                op,
                "expected tensors with elements, and updates of static extents",
            ));
        }
        let body = Body::of(op).ok_or_else(|| {
            unsupported(
                op,
                "expected the update itself, or a sum, a product or an extreme of it and the element",
            )
        })?;
        Ok(Self {
            op,
            updates,
            indices,
            original,
            mapped,
            body,
        })
    }
}
