//! Copies of operands with a dimension for each loop.

use super::reading::{Index, Operand, Reading};
use crate::error::PassResult;
use crate::generalize::generic::{Loops, generic};
use crate::ir::{Builder, DYNAMIC, Val};

/// An operand's elements, with a dimension for each loop of `order`, as a `linalg.generic`.
///
/// # Errors
/// When building fails.
pub(super) fn copied<'c>(
    builder: &Builder<'c>,
    reading: &Reading<'c>,
    operand: &Operand<'c>,
    order: &[usize],
) -> PassResult<'c, Val<'c>> {
    let element = builder.tensor_of(operand.value)?.element;
    let mut shape = Vec::new();
    let mut sizes = Vec::new();
    for at in order {
        let extent = reading.extents.get(*at).copied().unwrap_or(DYNAMIC);
        shape.push(extent);
        if extent == DYNAMIC {
            sizes.push(size(builder, reading, *at)?);
        }
    }
    let r#type = builder.tensor(&shape, element)?;
    let empty = builder.value("tensor.empty", &sizes, r#type, &[])?;
    let (region, arguments, inner) = builder.region(&[element, element]);
    let yielded: Vec<_> = arguments.into_iter().take(1).collect();
    inner.operation("linalg.yield", &yielded, &[], &[], Vec::new())?;
    let result: Vec<_> = order.iter().map(|at| Index::of_loop(*at)).collect();
    let maps = [&operand.map, &result].map(|map| map_text(reading, map, order));
    let loops = Loops {
        maps: maps.into(),
        kinds: vec!["parallel"; order.len()],
    };
    let op = generic(builder, &loops, (&[operand.value], empty), (r#type, region))?;
    builder.result_of(op)
}

/// The extent of a loop that is known at run time only.
fn size<'c>(builder: &Builder<'c>, reading: &Reading<'c>, at: usize) -> PassResult<'c, Val<'c>> {
    for input in &reading.inputs {
        let dim = input
            .map
            .iter()
            .position(|index| index.only_loop() == Some(at));
        if let Some(dim) = dim {
            return builder.extent(input.value, dim);
        }
    }
    Err(super::super::unsupported(
        reading.op,
        &format!("no operand has its loop {at}"),
    ))
}

/// The map from the loops of `order` to indices.
pub(super) fn map_text(reading: &Reading<'_>, map: &[Index], order: &[usize]) -> String {
    let dims: Vec<_> = (0..order.len()).map(|at| format!("d{at}")).collect();
    let results: Vec<_> = map
        .iter()
        .map(|index| {
            let of = |(at, factor): (&usize, &i64)| {
                let dim = order.iter().position(|have| have == at).unwrap_or(0);
                format!("d{dim} * {factor}")
            };
            let kept = index
                .factors
                .iter()
                .filter(|(at, _)| !reading.is_unit(**at));
            let mut terms: Vec<_> = kept.map(of).collect();
            terms.push(index.constant.to_string());
            terms.join(" + ")
        })
        .collect();
    format!(
        "affine_map<({}) -> ({})>",
        dims.join(", "),
        results.join(", ")
    )
}
