//! Rows of tensors that data names: which loops read them, and how often.

use crate::fuse::reshape::element_bytes;
use crate::ir::value::{defining, identity, name, operands, parent};
use crate::ir::{Op, Val, attribute, walk};
use axe_dialect::element_type;
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::HashSet;

/// Operations that take an element of a tensor.
const LOADS: [&str; 2] = ["tensor.extract", "memref.load"];
/// Times that points read an element of a table at the least, on average, for it to matter where it is kept between them.
const REUSES: i64 = 2;

/// Bytes of the largest tensor of which points of loops read rows that data names, each point an element at its index of loop `last`,
/// where there are several times as many points as it has elements; none where there is no such one.
#[must_use]
pub fn reused_table(op: Op<'_>, last: usize, points: i64) -> Option<i64> {
    let loads = walk::nested(op, &|_| true).into_iter();
    let loads = loads.filter(|own| LOADS.contains(&name(*own).as_str()));
    let bytes = loads.filter_map(|load| {
        let all = operands(load);
        let (table, indices) = all.split_first()?;
        let (column, rows) = indices.split_last()?;
        let named = rows.iter().any(|row| is_data(*row));
        let elements = elements(*table).filter(|_| named && is_index(*column, last))?;
        let reused = elements > 0 && points / elements >= REUSES;
        let bytes = element_bytes(element_type(table.r#type()));
        reused.then(|| elements.saturating_mul(bytes))
    });
    bytes.max()
}

/// Whether a value is the index of a loop.
fn is_index(value: Val<'_>, wanted: usize) -> bool {
    let op = defining(value).filter(|op| name(*op) == "linalg.index");
    let dim = op.and_then(|op| attribute::integer(op.attribute("dim").ok()?));
    dim.and_then(|dim| usize::try_from(dim).ok()) == Some(wanted)
}

/// Whether an index is computed of elements of tensors: what the body of the loops is given, or loads.
fn is_data(value: Val<'_>) -> bool {
    let (mut next, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = next.pop() {
        if !seen.insert(identity(value)) {
            continue;
        }
        match defining(value) {
            None if parent(value).is_some_and(|op| name(op) == "linalg.generic") => return true,
            None => {}
            Some(op) if LOADS.contains(&name(op).as_str()) => return true,
            Some(op) => next.extend(operands(op)),
        }
    }
    false
}

/// The elements of a tensor or memref of static extents.
fn elements(value: Val<'_>) -> Option<i64> {
    let r#type = value.r#type().to_raw();
    // SAFETY: the type is checked to be shaped and to have a rank before its extents are read.
    unsafe {
        if !sys::mlirTypeIsAShaped(r#type) || !sys::mlirShapedTypeHasStaticShape(r#type) {
            return None;
        }
        let rank = isize::try_from(sys::mlirShapedTypeGetRank(r#type)).ok()?;
        let mut extents = (0..rank).map(|dim| sys::mlirShapedTypeGetDimSize(r#type, dim));
        extents.try_fold(1i64, i64::checked_mul)
    }
}
