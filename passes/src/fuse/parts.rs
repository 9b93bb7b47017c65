//! Reductions that are formed of those of parts: how their elements are cut, and the operators of a part and of all parts.

use super::reshape::reshape;
use super::rewritten::Rewritten;
use crate::PassResult;
use crate::ir::value::{only_result, replace_all_uses};
use crate::ir::{Builder, Op, Val};
use axe_dialect::{Combiner, ops};

/// How a reduction's elements are cut into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The elements' shape, with a dimension more where one is cut.
    pub shape: Vec<i64>,
    /// The dimensions of it that are a part.
    pub inner: Vec<i64>,
    /// Those that the parts are, in the shape that is left without the others.
    pub outer: Vec<i64>,
}

/// A reduction that is to be formed of those of parts.
#[derive(Clone, Debug)]
pub struct Reduced<'c> {
    /// What is reduced.
    pub from: Val<'c>,
    /// The dimensions along which it is.
    pub dims: Vec<i64>,
    /// What comes of it.
    pub result: Val<'c>,
}

/// Reductions of a program, of which one reads what is formed of the other's result, that can be formed of those of parts.
pub(super) trait InParts<'c>: Sized {
    /// The reductions of which an operator is the last.
    fn of(last: Op<'c>) -> Option<Self>;

    /// The one that stands for both.
    fn reduced(&self) -> Option<Reduced<'c>>;

    /// Forms both of those of parts, and lets what reads them read that; gives what nothing reads any more.
    fn split(self, parts: &Parts) -> PassResult<'c, [Op<'c>; 2]>;
}

/// Forms such reductions of those of parts, where `parts` says so of what is reduced along which dimensions. `ops` are operations of
/// a block in order; they are given with those that are new, and without those that nothing reads any more.
pub(super) fn split<'c, T: InParts<'c>>(
    ops: &[Op<'c>],
    parts: impl Fn(&Reduced<'c>) -> Option<Parts>,
) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for found in ops.iter().filter_map(|op| T::of(*op)) {
        if let Some(parts) = found.reduced().as_ref().and_then(&parts) {
            replaced.extend(found.split(&parts)?);
        }
    }
    Ok(rewritten.without(replaced))
}

impl Parts {
    /// The shape of a value of each part.
    pub(super) fn of_parts(&self) -> Vec<i64> {
        without(&self.shape, &self.inner)
    }

    /// The shape of a value of all parts.
    pub(super) fn of_all(&self) -> Vec<i64> {
        without(&self.of_parts(), &self.outer)
    }

    /// How many elements a part has.
    pub(super) fn elements(&self) -> f64 {
        let extents = (0i64..).zip(&self.shape);
        let inner = extents.filter(|(dim, _)| self.inner.contains(dim));
        inner.map(|(_, extent)| *extent as f64).product()
    }
}

fn without(shape: &[i64], dims: &[i64]) -> Vec<i64> {
    let kept = (0i64..).zip(shape).filter(|(dim, _)| !dims.contains(dim));
    kept.map(|(_, extent)| *extent).collect()
}

/// A value reduced along dimensions.
pub(super) fn reduced<'c>(
    builder: &Builder<'c>,
    combiner: Combiner,
    of: Val<'c>,
    dims: &[i64],
) -> PassResult<'c, Val<'c>> {
    let tensor = builder.tensor_of(of)?;
    let combiner = builder.attribute(|context| combiner.attribute(context));
    let attributes = [("combiner", combiner), ("dims", builder.i64s(dims))];
    let result = builder.tensor(&without(&tensor.shape, dims), tensor.element)?;
    builder.value(ops::REDUCE, &[of], result, &attributes)
}

/// A value repeated along dimensions of a shape.
pub(super) fn repeated<'c>(
    builder: &Builder<'c>,
    of: Val<'c>,
    (shape, dims): (&[i64], &[i64]),
) -> PassResult<'c, Val<'c>> {
    let whole = builder.tensor(shape, builder.tensor_of(of)?.element)?;
    let dims = [("dims", builder.i64s(dims))];
    builder.value(ops::BROADCAST, &[of], whole, &dims)
}

/// Lets a value be what an operator gives.
pub(super) fn replace<'c>(op: Op<'c>, builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c> {
    if let Some(result) = only_result(op) {
        let shape = builder.tensor_of(result)?.shape;
        replace_all_uses(result, reshape(builder, value, &shape, None)?);
    }
    Ok(())
}
