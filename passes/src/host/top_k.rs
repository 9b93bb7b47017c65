//! `axe.top_k`: for each place of a result the element that comes next in the order, by one look at all elements of the row.

use super::ops::{
    SLT, compare, compare_floats, dynamic_sizes, extents, extract, fold, integer, number, sharpen,
};
use crate::error::{PassError, PassResult};
use crate::ir::value::{parts, replace_all_uses};
use crate::ir::{Builder, Int, Op, Val, types};
use axe_dialect::ops::TopKOp;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

// `arith.cmpf`'s and `arith.cmpi`'s predicates (ArithBase.td).
const OEQ: i64 = 1;
const OGT: i64 = 2;
const OLT: i64 = 4;
const ORD: i64 = 7;
const UNO: i64 = 14;
const EQ: i64 = 0;
const SGT: i64 = 4;

/// Gives its values and indices to their users.
///
/// # Errors
/// For one of a kernel, whose rows the whole grid shares out.
pub(super) fn top_k<'c>(builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c> {
    let TopKOp {
        source,
        results,
        smallest,
        ..
    } = parts(op)?;
    let &[values, indices] = &results[..] else {
        return Err(PassError::new(
            op.location(),
            "'axe.top_k' of storage has no meaning on the CPU target, which runs one block after the other",
        )
        .note("give it tensors, or run the kernel in the simulator (axe sim)"));
    };
    let missing = || PassError::new(op.location(), "expected rows");
    let sizes = extents(builder, source)?;
    let (&columns, rows) = sizes.split_last().ok_or_else(missing)?;
    let index = builder.tensor_of(indices)?.element;
    let mut made = Vec::new();
    let mut k = Int::ZERO;
    for result in [values, indices] {
        let tensor = builder.tensor_of(result)?;
        k = Int::Known(tensor.shape.last().copied().unwrap_or(0));
        let all: Vec<_> = rows.iter().copied().chain([k]).collect();
        let all = sharpen(all, &tensor.shape);
        let sizes = dynamic_sizes(builder, result.r#type(), &all)?;
        made.push(builder.value("tensor.empty", &sizes, result.r#type(), &[])?);
    }
    let choice = Choice {
        source,
        element: builder.tensor_of(source)?.element,
        index,
        columns,
        k,
        smallest,
    };
    let made = choice.rows(builder, rows, &mut Vec::new(), &made)?;
    for (result, made) in [values, indices].into_iter().zip(made) {
        replace_all_uses(result, made);
    }
    Ok(())
}

/// What is chosen of.
struct Choice<'c> {
    source: Val<'c>,
    element: Type<'c>,
    /// The type of indices.
    index: Type<'c>,
    columns: Int<'c>,
    k: Int<'c>,
    smallest: bool,
}

impl<'c> Choice<'c> {
    /// The results, with all rows from `at` on.
    fn rows(
        &self,
        builder: &Builder<'c>,
        rows: &[Int<'c>],
        at: &mut Vec<Int<'c>>,
        results: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let Some(extent) = rows.get(at.len()) else {
            return self.row(builder, at, results);
        };
        fold(builder, *extent, results, |inner, row, results| {
            at.push(Int::Value(row));
            let made = self.rows(inner, rows, at, results);
            at.pop();
            made
        })
    }

    /// The results, with one row: the element that was chosen last and its index are carried, -1 where there is none.
    fn row(
        &self,
        builder: &Builder<'c>,
        row: &[Int<'c>],
        results: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let nothing = [number(builder, self.element, 0.0)?, builder.index(-1)?];
        let start = [results, &nothing].concat();
        let made = fold(builder, self.k, &start, |inner, place, carried| {
            let &[values, indices, last, at] = carried else {
                return Err(PassError::new(inner.location, "a loop lacks its values"));
            };
            let next = fold(inner, self.columns, &nothing, |inner, column, best| {
                self.better(inner, row, column, ([last, at], best))
            })?;
            let &[element, column] = &next[..] else {
                return Err(PassError::new(inner.location, "a loop lacks its values"));
            };
            let number = inner.value("arith.index_cast", &[column], self.index, &[])?;
            let mut made = Vec::new();
            for (value, tensor) in [(element, values), (number, indices)] {
                let mut operands = vec![value, tensor];
                for dim in row {
                    operands.push(inner.ints().value(*dim)?);
                }
                operands.push(place);
                made.push(inner.value("tensor.insert", &operands, tensor.r#type(), &[])?);
            }
            Ok([made, next].concat())
        })?;
        Ok(made.into_iter().take(results.len()).collect())
    }

    /// The element of a column where it comes behind the last and before the best so far, else the best.
    fn better(
        &self,
        builder: &Builder<'c>,
        row: &[Int<'c>],
        column: Val<'c>,
        ([last, at], best): ([Val<'c>; 2], &[Val<'c>]),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[found, place] = best else {
            return Err(PassError::new(builder.location, "a loop lacks its values"));
        };
        let zero = builder.index(0)?;
        let place_of: Vec<_> = row.iter().copied().chain([Int::Value(column)]).collect();
        let own = extract(builder, self.source, &place_of)?;
        let first = compare(builder, SLT, at, zero)?;
        let equal = self.equal(builder, last, own)?;
        let later = compare(builder, SLT, at, column)?;
        let later = self.both(builder, equal, later)?;
        let behind = self.before(builder, last, own)?;
        let behind = self.either(builder, behind, later)?;
        let is_left = self.either(builder, first, behind)?;
        let none = compare(builder, SLT, place, zero)?;
        let before = self.before(builder, own, found)?;
        let is_better = self.either(builder, none, before)?;
        let takes = self.both(builder, is_left, is_better)?;
        let select =
            |a: Val<'c>, b: Val<'c>| builder.value("arith.select", &[takes, a, b], a.r#type(), &[]);
        Ok(vec![select(own, found)?, select(column, place)?])
    }

    /// Whether an element comes before another by its value.
    fn before(&self, builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        if !types::is_float(self.element) {
            return compare(builder, if self.smallest { SLT } else { SGT }, a, b);
        }
        let by_value = compare_floats(builder, if self.smallest { OLT } else { OGT }, a, b)?;
        // NaN is the largest.
        let (nan, number) = if self.smallest { (b, a) } else { (a, b) };
        let nan = compare_floats(builder, UNO, nan, nan)?;
        let is_number = compare_floats(builder, ORD, number, number)?;
        let by_nan = self.both(builder, nan, is_number)?;
        self.either(builder, by_value, by_nan)
    }

    fn equal(&self, builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        if !types::is_float(self.element) {
            return compare(builder, EQ, a, b);
        }
        let equal = compare_floats(builder, OEQ, a, b)?;
        let [one, other] = [
            compare_floats(builder, UNO, a, a)?,
            compare_floats(builder, UNO, b, b)?,
        ];
        let nans = self.both(builder, one, other)?;
        self.either(builder, equal, nans)
    }

    fn both(&self, builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        builder.value("arith.andi", &[a, b], integer(builder, 1), &[])
    }

    fn either(&self, builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        builder.value("arith.ori", &[a, b], integer(builder, 1), &[])
    }
}
