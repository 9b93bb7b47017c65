//! Loops that the whole grid of a kernel executes: here its first block does.

use super::ops::{compare, integer};
use crate::error::PassResult;
use crate::fuse::nest::INITIAL;
use crate::ir::value::{name, operands};
use crate::ir::{Builder, Op, Val, attribute, types, walk};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Attribute, ValueLike};

/// `arith.cmpi`'s predicate "equal".
const EQUAL: i64 = 0;

/// Puts the loops of a kernel into its first block, of which `places` has the numbers.
///
/// # Errors
/// When building fails.
pub(super) fn once<'c>(function: Op<'c>, places: &[Val<'c>]) -> PassResult<'c> {
    let all = walk::nested(function, &|op| !name(op).starts_with("linalg."));
    for op in all.into_iter().filter(|op| name(*op) == "linalg.generic") {
        let builder = Builder::before(op);
        let zero = builder.index(0)?;
        let mut first = compare(&builder, EQUAL, zero, zero)?;
        for place in places.iter().take(3) {
            let here = compare(&builder, EQUAL, *place, zero)?;
            first = builder.value("arith.andi", &[first, here], integer(&builder, 1), &[])?;
        }
        let (region, _, inner) = builder.region(&[]);
        let initial = op
            .attribute(INITIAL)
            .ok()
            .and_then(attribute::elements)
            .unwrap_or_default();
        let results = operands(op).into_iter().rev().take(initial.len()).rev();
        for (result, number) in results.zip(&initial) {
            if attribute::integer(*number).is_some() || attribute::float(*number).is_some() {
                fill(&inner, result, *number)?;
            }
        }
        // SAFETY: the operation is live, and no other reference to it is used while this one is.
        let _ = unsafe { OperationRefMut::from_raw(op.to_raw()) }.remove_attribute(INITIAL);
        inner.take(op);
        inner.operation("scf.yield", &[], &[], &[], Vec::new())?;
        let regions = vec![region, melior::ir::Region::new()];
        builder.operation("scf.if", &[first], &[], &[], regions)?;
    }
    Ok(())
}

/// Sets every element of a memref.
fn fill<'c>(builder: &Builder<'c>, memref: Val<'c>, number: Attribute<'c>) -> PassResult<'c> {
    let rank = types::shape(memref.r#type()).map_or(0, |shape| shape.len());
    let value = builder.constant(number)?;
    let (region, _, inner) = builder.region(&[value.r#type()]);
    inner.operation("linalg.yield", &[value], &[], &[], Vec::new())?;
    let dims: Vec<_> = (0..rank).map(|dim| format!("d{dim}")).collect();
    let dims = dims.join(", ");
    let parallel = vec!["#linalg.iterator_type<parallel>"; rank].join(", ");
    let attributes = [
        (
            "indexing_maps",
            builder.parsed(&format!("[affine_map<({dims}) -> ({dims})>]"))?,
        ),
        ("iterator_types", builder.parsed(&format!("[{parallel}]"))?),
        builder.segments(&[0, 1]),
    ];
    builder
        .operation("linalg.generic", &[memref], &[], &attributes, vec![region])
        .map(drop)
}
