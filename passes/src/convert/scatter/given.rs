//! The parts of a `tm_tensor.scatter`, as far as they are understood.

use crate::convert::unsupported;
use crate::error::PassResult;
use crate::ir::value::{name, operands, results};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute, types, walk};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashSet;

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
        let parts = || unsupported(op, "expected updates, indices and a tensor");
        let &[updates, indices, original] = &operands(op)[..] else {
            return Err(parts());
        };
        let tensors = [updates, indices, original].map(TensorType::of_value);
        let [Some(of_updates), Some(of_indices), Some(of_original)] = tensors else {
            return Err(parts());
        };
        check_types(op, original, [&of_updates, &of_indices, &of_original])?;
        let mapped = mapped(op, &of_indices.shape, &of_original.shape)?;
        let counts = of_updates.shape.first() == of_indices.shape.first();
        check_windows(op, counts, &mapped, [&of_updates.shape, &of_original.shape])?;
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

/// Checks the types of updates, indices and the tensor.
fn check_types<'c>(
    op: Op<'c>,
    original: Val<'c>,
    [updates, indices, own]: [&TensorType<'c>; 3],
) -> PassResult<'c> {
    let bits = types::bits(indices.element).filter(|_| types::is_integer(indices.element));
    if !bits.is_some_and(|bits| [32, 64].contains(&bits)) {
        return Err(unsupported(op, "expected indices of 32 or 64 bits"));
    }
    let made: Vec<_> = results(op).iter().map(ValueLike::r#type).collect();
    if made != [original.r#type()] || updates.element != own.element {
        return Err(unsupported(
            op,
            "expected updates of the tensor's type, and one like it",
        ));
    }
    Ok(())
}

/// The dimension of each column of indices.
fn mapped<'c>(op: Op<'c>, indices: &[i64], original: &[i64]) -> PassResult<'c, Vec<usize>> {
    let all = op.attribute("dimension_map").ok();
    let all = all.and_then(attribute::read_i64s).unwrap_or_default();
    let dim = |own: i64| {
        usize::try_from(own)
            .ok()
            .filter(|own| *own < original.len())
    };
    let mapped: Option<Vec<_>> = all.into_iter().map(dim).collect();
    let is_once = |all: &Vec<usize>| all.iter().collect::<HashSet<_>>().len() == all.len();
    let has_columns = |all: &Vec<usize>| {
        let width = i64::try_from(all.len()).unwrap_or(i64::MAX);
        width > 0 && indices.len() == 2 && indices.get(1) == Some(&width)
    };
    let mapped = mapped.filter(is_once).filter(has_columns);
    mapped.ok_or_else(|| {
        unsupported(
            op,
            "expected a column of indices for each dimension of 'dimension_map'",
        )
    })
}

/// Checks that updates, as many as there are rows of indices where `counts`, are of one index along the dimensions that have columns, which
/// they may lack, and of all of the others.
fn check_windows<'c>(
    op: Op<'c>,
    counts: bool,
    mapped: &[usize],
    [updates, original]: [&[i64]; 2],
) -> PassResult<'c> {
    let own = original.iter().enumerate();
    let of = |(at, extent): (usize, &i64)| if mapped.contains(&at) { 1 } else { *extent };
    let full: Vec<_> = own.clone().map(of).collect();
    let others = own.filter(|(at, _)| !mapped.contains(at));
    let short: Vec<_> = others.map(|(_, extent)| *extent).collect();
    let windows = updates.get(1..).unwrap_or_default();
    if !counts || windows != full && windows != short {
        return Err(unsupported(
            op,
            "expected an update of one index along the dimensions of 'dimension_map', and of all of the others, for each row of indices",
        ));
    }
    if short.contains(&DYNAMIC) || original.contains(&0) || updates.contains(&0) {
        return Err(unsupported(
            op,
            "expected tensors with elements, and updates of static extents",
        ));
    }
    Ok(())
}
