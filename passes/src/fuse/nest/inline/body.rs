//! What a group's loops compute at an index.

use super::Group;
use super::readers::{reshaped, source_index};
use crate::fuse::nest::maps;
use crate::fuse::operators::{is_reshape, splat};
use crate::fuse::space::source;
use crate::generalize::generic::extract;
use crate::host::scalar::convert;
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses};
use crate::ir::walk::{block_arguments, blocks, erase, nested, operations};
use crate::ir::{Builder, Int, Ints, Op, TensorType, Val, attribute, inline};
use crate::{PassError, PassResult};
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap};
use std::collections::HashMap;

/// Whether all of a map's results are sums and products of indices and numbers.
pub(in crate::fuse::nest) fn is_computed(map: AffineMap<'_>) -> bool {
    fn plain(index: AffineExpr<'_>) -> bool {
        index.is_dim()
            || index.is_constant()
            || (index.is_add() || index.is_mul()) && plain(index.lhs()) && plain(index.rhs())
    }
    (0..map.result_count()).all(|at| map.result(at).is_ok_and(plain))
}

/// What a map gives for an index.
pub(in crate::fuse::nest) fn mapped<'c>(
    builder: &Builder<'c>,
    map: AffineMap<'c>,
    at: &[Val<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let ints = Ints::index(*builder);
    let index = |number: usize| {
        let index = map.result(number).ok();
        let index = index.and_then(|index| value(&ints, index, at));
        let missing = || {
            PassError::new(
                builder.location,
                "expected an indexing map of sums and products",
            )
        };
        ints.value(index.ok_or_else(missing)??)
    };
    (0..map.result_count()).map(index).collect()
}

/// What an affine expression of indices is; none where it is no sum or product.
fn value<'c>(
    ints: &Ints<'c>,
    of: AffineExpr<'c>,
    at: &[Val<'c>],
) -> Option<PassResult<'c, Int<'c>>> {
    if of.is_dim() {
        return at.get(of.dim_position()).map(|at| Ok(Int::Value(*at)));
    }
    if of.is_constant() {
        return Some(Ok(Int::Known(of.constant_value())));
    }
    let (a, b) = (value(ints, of.lhs(), at)?, value(ints, of.rhs(), at)?);
    let both = a.and_then(|a| Ok((a, b?)));
    Some(both.and_then(|(a, b)| match of.is_add() {
        true => ints.add(a, b),
        false => ints.times(a, b),
    }))
}

/// The body of a group's loops.
pub(super) struct Body<'a, 'c> {
    group: &'a Group<'c>,
    /// What is known of values at indices, in the order in which it was formed.
    known: HashMap<(usize, Vec<usize>), Val<'c>>,
}

impl<'a, 'c> Body<'a, 'c> {
    pub(super) fn new(group: &'a Group<'c>) -> Self {
        Self {
            group,
            known: HashMap::new(),
        }
    }

    /// The element of a tensor at an index.
    fn element(
        &mut self,
        inner: &Builder<'c>,
        value: Val<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let key = (identity(value), at.iter().map(|at| identity(*at)).collect());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let own = defining(value).filter(|_| self.group.inlined.contains(&identity(value)));
        let reshape = defining(value)
            .filter(|op| is_reshape(*op))
            .and_then(source);
        let formed = if let Some(op) = own {
            self.formed(inner, op, at)?
        } else if let Some(source) = reshape.filter(|source| self.group.computes(*source)) {
            let at = source_index(inner, value, source, at)?;
            self.element(inner, source, &at)?
        } else if let Some(number) = defining(reshaped(value)).and_then(splat) {
            inner.constant(number)?
        } else if let Some(fill) = FillOp::defining(reshaped(value)) {
            fill.value
        } else {
            extract(inner, value, at)?
        };
        self.known.insert(key, formed);
        Ok(formed)
    }

    /// What a member computes at an index.
    pub(super) fn formed(
        &mut self,
        inner: &Builder<'c>,
        op: Op<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let all = operands(op);
        let missing = || PassError::new(op.location(), "expected an operand and a body");
        let first = all.first().copied().ok_or_else(missing)?;
        match name(op).as_str() {
            ops::MAP => {
                let body = blocks(op).first().copied().ok_or_else(missing)?;
                let values = all
                    .into_iter()
                    .map(|value| self.element(inner, value, at))
                    .collect::<PassResult<'c, Vec<_>>>()?;
                inline::copy(inner, body, &values)
                    .first()
                    .copied()
                    .ok_or_else(missing)
            }
            ops::CAST => {
                let value = self.element(inner, first, at)?;
                let to = only_result(op).ok_or_else(missing)?;
                convert(inner, value, inner.tensor_of(to)?.element)
            }
            ops::BROADCAST => {
                let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
                let dims = dims.unwrap_or_default();
                let kept = (0i64..).zip(at).filter(|(dim, _)| !dims.contains(dim));
                let kept: Vec<_> = kept.map(|(_, at)| *at).collect();
                self.element(inner, first, &kept)
            }
            ops::TRANSPOSE => {
                let order = op
                    .attribute("permutation")
                    .ok()
                    .and_then(attribute::read_i64s);
                let mut index = at.to_vec();
                for (dim, at) in order.ok_or_else(missing)?.into_iter().zip(at) {
                    let place = usize::try_from(dim).ok().and_then(|dim| index.get_mut(dim));
                    *place.ok_or_else(missing)? = *at;
                }
                self.element(inner, first, &index)
            }
            _ => self.loops(inner, op, at),
        }
    }

    /// The body of loops, at an index of their result.
    fn loops(
        &mut self,
        inner: &Builder<'c>,
        op: Op<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let missing = || PassError::new(op.location(), "expected a body");
        let block = blocks(op).first().copied().ok_or_else(missing)?;
        let mut values = inline::Values::new();
        let maps = maps(op).ok_or_else(missing)?;
        let all = operands(op);
        let (_, inputs) = all.split_last().ok_or_else(missing)?;
        for ((&input, map), argument) in inputs.iter().zip(maps).zip(block_arguments(block)) {
            let element = match TensorType::of_value(input) {
                Some(_) => self.element(inner, input, &mapped(inner, map, at)?)?,
                None => input,
            };
            values.insert(identity(argument), element);
        }
        let mut own = operations(block);
        let last = own.pop().ok_or_else(missing)?;
        for inside in own {
            let result = only_result(inside);
            let mapped = |value: &Val<'c>| values.get(&identity(*value)).copied().unwrap_or(*value);
            let formed = match (name(inside).as_str(), result) {
                ("linalg.index", Some(_)) => index_of(inside, at).ok_or_else(missing)?,
                ("tensor.extract", Some(_)) => {
                    let read = operands(inside);
                    let (source, index) = read.split_first().ok_or_else(missing)?;
                    let index: Vec<_> = index.iter().map(mapped).collect();
                    self.element(inner, *source, &index)?
                }
                _ => {
                    let copy = inline::copy_operation(inner, inside, &mut values);
                    self.close(copy, at)?;
                    continue;
                }
            };
            values.extend(result.map(|result| (identity(result), formed)));
        }
        let yielded = operands(last).first().copied().ok_or_else(missing)?;
        Ok(values.get(&identity(yielded)).copied().unwrap_or(yielded))
    }

    /// Puts elements in the place of what the regions of a copied operation extract, and indices in that of theirs.
    fn close(&self, copy: Op<'c>, at: &[Val<'c>]) -> PassResult<'c> {
        let missing = || PassError::new(copy.location(), "expected a result");
        for inside in nested(copy, &|_| true) {
            let inner = Builder::before(inside);
            let formed = match name(inside).as_str() {
                "linalg.index" => index_of(inside, at).ok_or_else(missing)?,
                "tensor.extract" => {
                    let read = operands(inside);
                    let (source, index) = read.split_first().ok_or_else(missing)?;
                    // What is formed in a region is not known outside of it.
                    let mut body = Body {
                        group: self.group,
                        known: self.known.clone(),
                    };
                    body.element(&inner, *source, index)?
                }
                _ => continue,
            };
            replace_all_uses(only_result(inside).ok_or_else(missing)?, formed);
            erase(inside);
        }
        Ok(())
    }
}

/// The index that a `linalg.index` has.
fn index_of<'c>(op: Op<'c>, at: &[Val<'c>]) -> Option<Val<'c>> {
    let dim = attribute::integer(op.attribute("dim").ok()?)?;
    at.get(usize::try_from(dim).ok()?).copied()
}
