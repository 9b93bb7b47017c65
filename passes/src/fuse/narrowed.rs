//! Results of products that are stored in another order and in a narrower type: they are converted first, in the product's epilogue, so that the transpose
//! moves fewer bytes and nothing is left to do behind it. Convolutions whose places come behind their channels are such.

use super::operators::{is_product, is_widening, reshaped};
use super::rewritten::Rewritten;
use super::space::source;
use super::transposed::set_type;
use crate::PassResult;
use crate::ir::value::{defining, name, only_result, replace_all_uses, users};
use crate::ir::{Builder, Op, Val};
use axe_dialect::ops;
use melior::ir::ValueLike;
use mlir_sys as sys;

/// Converts such results first. `ops` are operations of a block in order; they are given with those that are new, and without those that nothing reads
/// any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn rewrite<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for &op in ops {
        if let Some((transpose, from)) = transposed_product(op) {
            convert_first(op, transpose, from)?;
            replaced.push(op);
        }
    }
    Ok(rewritten.without(replaced))
}

/// The transpose of a product's result that a narrowing conversion alone reads, and what it transposes.
fn transposed_product<'c>(op: Op<'c>) -> Option<(Op<'c>, Val<'c>)> {
    let read = source(op).filter(|_| name(op) == ops::CAST && !is_widening(op))?;
    let transpose = defining(read).filter(|op| name(*op) == ops::TRANSPOSE)?;
    let from = source(transpose)?;
    let is_alone = users(read).len() == 1;
    let of_product = defining(reshaped(from)).is_some_and(is_product);
    (is_alone && of_product).then_some((transpose, from))
}

fn convert_first<'c>(op: Op<'c>, transpose: Op<'c>, from: Val<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    let Some(result) = only_result(op) else {
        return Ok(());
    };
    let whole = builder.tensor_of(result)?;
    let r#type = builder.tensor(&builder.tensor_of(from)?.shape, whole.element)?;
    let narrow = builder.value(ops::CAST, &[from], r#type, &[])?;
    let copy = builder.clone_of(transpose);
    // SAFETY: the copy is live, and a transpose has one operand.
    unsafe { sys::mlirOperationSetOperand(copy.to_raw(), 0, narrow.to_raw()) };
    let turned = builder.result_of(copy)?;
    set_type(turned, builder.tensor(&whole.shape, whole.element)?);
    replace_all_uses(result, turned);
    Ok(())
}
