//! Logarithms of rows' sums that are no value of the program's: those for powers of two, which the kernels of gradients read.

use super::backward::padded;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::attention::index::{Step, Var, access, whole};
use axe_passes::fuse::attention::weights::{EmptyLog, LogSum};
use axe_passes::fuse::attention::{Attention, Extents, Read, RowSums};
use axe_passes::ir::{Builder, Val};
use melior::ir::Type;
use std::f64::consts::LOG2_E;
use std::rc::Rc;

/// The same with the logarithms of its rows' sums in a tensor of `[problems, padded rows]`.
pub(super) fn beside<'c>(attention: &Attention<'c>, tensor: Val<'c>) -> Option<Attention<'c>> {
    let Extents { batch, rows, .. } = attention.extents;
    let is = LogSum {
        scale: LOG2_E,
        offset: 0.0,
        // Weights are then 0, or NaN.
        empty: match attention.weights.empty_is_zero {
            true => EmptyLog::Greatest,
            false => EmptyLog::Nan,
        },
    };
    let mut steps = access(&[whole(Var::Row, rows)], &[rows])?;
    let of_problem = access(&[whole(Var::Batch, batch)], &[batch])?.into_iter();
    steps.extend(of_problem.map(|own| Step {
        elements: padded(rows),
        ..own
    }));
    let read = Read::whole(tensor, steps);
    Some(Attention {
        sums: Some(RowSums::new(read, is)),
        ..attention.clone()
    })
}

/// A new tensor for them.
pub(super) fn tensor<'c>(
    builder: &Builder<'c>,
    attention: &Attention<'c>,
) -> PassResult<'c, Val<'c>> {
    let Extents { batch, rows, .. } = attention.extents;
    let f32 = builder.r#type(|context| Type::float32(context));
    let r#type = builder.tensor(&[batch, padded(rows)], f32)?;
    builder.value("tensor.empty", &[], r#type, &[])
}

/// Attention with the logarithms that gradients want of it, where they do.
pub(super) fn kept<'c>(
    attention: Rc<Attention<'c>>,
    builder: &Builder<'c>,
) -> PassResult<'c, Rc<Attention<'c>>> {
    if !attention.keeps_sums {
        return Ok(attention);
    }
    let own = beside(&attention, tensor(builder, &attention)?);
    let own = own.ok_or_else(|| layout_error(builder.location, "rows have places"))?;
    Ok(Rc::new(own))
}
