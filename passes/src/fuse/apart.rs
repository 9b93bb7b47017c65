//! Why an operator is in another kernel than an operator that it reads.

use super::group::{Group, Root};
use super::operators::is_product;
use super::space::{Place, Size, place_of, source};
use crate::ir::value::{defining, name, operands, results};
use crate::ir::{Op, Val};
use axe_dialect::ops::{self, Trait};
use melior::ir::Location;
use melior::ir::operation::OperationLike;

/// A border between two kernels.
#[derive(Clone, Debug)]
pub struct Apart<'c> {
    /// The operator behind it.
    pub location: Location<'c>,
    /// The operators on both sides, and what stopped them from being one kernel.
    pub why: String,
}

impl<'c> Apart<'c> {
    /// The border between an operator and a group that it reads, which it did not join.
    pub(super) fn new(op: Op<'c>, group: &Group<'c>) -> Option<Self> {
        let before = group.owned.last().copied()?;
        let why = match group.sealed_by {
            Some(reader) if reader != op => {
                format!("{} reads what that one stores", described(reader))
            }
            _ => reason(op, group),
        };
        let why = format!(
            "{} is a kernel apart from {}: {why}",
            quoted(op),
            described(before)
        );
        let location = op.location();
        Some(Self { location, why })
    }
}

fn quoted(op: Op<'_>) -> String {
    format!("'{}'", name(op))
}

fn described(op: Op<'_>) -> String {
    format!("{} at {}", quoted(op), op.location())
}

/// What stopped an operator from joining an open group.
fn reason<'c>(op: Op<'c>, group: &Group<'c>) -> String {
    if is_product(op) {
        return "a product reads its operands from memory".to_owned();
    }
    if super::operators::has(op, Trait::Relayout) {
        return "it moves elements from one tile to another".to_owned();
    }
    if name(op) == ops::TOP_K {
        return "it reads whole rows from memory".to_owned();
    }
    if !matches!(group.root, Root::Tiles | Root::Gemm(_) | Root::Columns(_)) {
        return "nothing joins that kernel".to_owned();
    }
    if name(op) == ops::REDUCE {
        return of_reduction(op, group);
    }
    let size = |value: &Val<'c>| Size::of(*value);
    if let Some(size) = results(op).first().and_then(size)
        && !group.has_size(size)
    {
        return format!(
            "it has {} elements, the tiles of that one are of {}",
            size.described(),
            group.total.described()
        );
    }
    let missing = operands(op)
        .into_iter()
        .find(|operand| !group.has(*operand));
    match missing.and_then(defining) {
        Some(producer) => format!(
            "its operand of {} is not where the tiles of that one are",
            described(producer)
        ),
        None => "its operands lie otherwise than the tiles of that one".to_owned(),
    }
}

fn of_reduction(op: Op<'_>, group: &Group<'_>) -> String {
    if matches!(group.root, Root::Gemm(_)) {
        return "the tiles of a product hold no whole rows to reduce".to_owned();
    }
    let place = source(op).map(|from| place_of(op, from));
    match (place, group.columns()) {
        (Some(Place::Inner(columns)), Some(known)) if columns != known => {
            format!("it reduces rows of {columns}, the rows of that one have {known}")
        }
        (Some(Place::Inner(_)), _) => "its rows are not where those of that one are".to_owned(),
        _ => "it reduces other dimensions than the last".to_owned(),
    }
}
