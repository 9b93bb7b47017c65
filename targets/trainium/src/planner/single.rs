//! Operators by themselves: transposes, and broadcasts that no kernel forms; and reductions in the middle, which become
//! transposes and reductions of rows.

use super::read::element;
use super::{Launch, Planner, launched};
use axe_dialect::ops;
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::space::{Place, place_of, source};
use axe_passes::ir::value::{name, only_result, replace_all_uses};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute};
use axe_passes::{PassError, PassResult};
use axe_trn::plan::relayout::Relayout;
use melior::ir::operation::OperationLike;

fn refused<'c>(op: Op<'c>, why: &str) -> PassError<'c> {
    PassError::new(op.location(), format!("'{}' {why}", name(op)))
}

fn dims(op: Op<'_>, key: &str) -> Option<Vec<i64>> {
    op.attribute(key).ok().and_then(attribute::read_i64s)
}

/// What is moved: dimensions of the result by those of the source, without extents of 1.
fn relayout<'c>(op: Op<'c>, from: Val<'c>, shape: &[i64]) -> PassResult<'c, Relayout> {
    let own = TensorType::of_value(from).ok_or_else(|| refused(op, "expected a tensor"))?;
    let unreadable = || refused(op, "has no kernel of its own on Trainium");
    let kept: Vec<usize> = (0..own.shape.len())
        .filter(|at| own.shape[*at] != 1)
        .collect();
    let number = |dim: usize| kept.iter().position(|known| *known == dim);
    let mut dims_of = Vec::new();
    match name(op).as_str() {
        ops::TRANSPOSE => {
            for dim in dims(op, "permutation").ok_or_else(unreadable)? {
                let dim = usize::try_from(dim).map_err(|_| unreadable())?;
                dims_of.extend(number(dim).map(Ok));
            }
        }
        ops::BROADCAST => {
            let added = dims(op, "dims").ok_or_else(unreadable)?;
            let mut next = 0;
            for (at, extent) in shape.iter().enumerate() {
                if added.contains(&(at as i64)) {
                    dims_of.extend((*extent != 1).then_some(Err(*extent)));
                } else {
                    dims_of.extend(number(next).map(Ok));
                    next += 1;
                }
            }
        }
        _ => return Err(unreadable()),
    }
    let mut from: Vec<i64> = kept.iter().map(|at| own.shape[*at]).collect();
    if from.is_empty() {
        from.push(1);
    }
    if dims_of.is_empty() {
        dims_of.push(Ok(0));
    }
    Ok(Relayout {
        from,
        dims: dims_of,
        dtype: element(op, op_source(op)?)?,
    })
}

fn op_source<'c>(op: Op<'c>) -> PassResult<'c, Val<'c>> {
    source(op).ok_or_else(|| refused(op, "expected an operand"))
}

impl Planner {
    /// An operator that moves elements alone.
    pub(super) fn single<'c>(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        op: Op<'c>,
    ) -> PassResult<'c> {
        let result = only_result(op).ok_or_else(|| refused(op, "expected one result"))?;
        let from = op_source(op)?;
        let shape = builder.tensor_of(result)?.shape;
        if shape.contains(&DYNAMIC) {
            return Err(refused(
                op,
                "expected static extents: a kernel of Trainium is compiled for its sizes",
            ));
        }
        let relayout = relayout(op, from, &shape)?;
        let program = relayout
            .plan(&frame.name("move"), self.chip.name)
            .map_err(|declined| PassError::new(op.location(), declined.to_string()))?;
        let own: Vec<i64> = program
            .buffers
            .iter()
            .find(|b| b.name == "out0")
            .map(|b| b.shape.clone())
            .unwrap_or_default();
        self.report_single(&program, op);
        let input = frame.operand(builder, from, &relayout.from)?.tensor;
        let output = frame.out(builder, result, &own)?;
        let launch = Launch {
            program,
            inputs: vec![input],
            outputs: vec![(result, output)],
        };
        launched(frame, builder, launch)
    }
}

/// Gives reductions over dimensions that are not the last ones a transpose in front, so that rows are reduced.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn turn_reductions<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for &op in ops.iter().filter(|op| name(**op) == ops::REDUCE) {
        let (Some(from), Some(result)) = (source(op), only_result(op)) else {
            continue;
        };
        let (Some(reduced), Some(tensor)) = (dims(op, "dims"), TensorType::of_value(from)) else {
            continue;
        };
        if matches!(place_of(op, from), Place::Inner(_) | Place::Unit)
            || tensor.shape.contains(&DYNAMIC)
        {
            continue;
        }
        let builder = Builder::before(op);
        let all = 0..tensor.shape.len() as i64;
        let kept = all.clone().filter(|dim| !reduced.contains(dim));
        let order: Vec<i64> = kept
            .clone()
            .chain(all.filter(|dim| reduced.contains(dim)))
            .collect();
        let shape: Vec<i64> = order
            .iter()
            .map(|dim| tensor.shape[*dim as usize])
            .collect();
        let r#type = builder.tensor(&shape, tensor.element)?;
        let turned = builder.value(
            ops::TRANSPOSE,
            &[from],
            r#type,
            &[("permutation", builder.i64s(&order))],
        )?;
        let first = kept.count() as i64;
        let last: Vec<i64> = (first..shape.len() as i64).collect();
        let combiner = op
            .attribute("combiner")
            .map_err(|_| refused(op, "its combiner cannot be read"))?;
        let own = TensorType::of_value(result).ok_or_else(|| refused(op, "expected a tensor"))?;
        let r#type = builder.tensor(&own.shape, own.element)?;
        let attributes = [("combiner", combiner), ("dims", builder.i64s(&last))];
        let value = builder.value(ops::REDUCE, &[turned], r#type, &attributes)?;
        replace_all_uses(result, value);
        // Nothing reads the old one; it is erased with what is dead.
    }
    Ok(())
}
