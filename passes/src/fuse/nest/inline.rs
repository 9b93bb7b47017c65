//! Loops together with what is computed element by element around them: slices, concatenations, flips and what they are added to are
//! one kernel, in which nothing goes through memory.
//!
//! A group is made of loops without inputs of their own (`--axe-generalize` makes those of what moves elements), `axe.map`, `axe.cast` and
//! `axe.broadcast`. Each of its results that something else reads becomes one `linalg.generic`, whose body computes at an index what
//! the others have there. Groups that end in a reduction along rows stay: their maps join its kernel.

use super::{Nest, Start, is_nest, maps};
use crate::fuse::operators::{is_operator, is_product, is_reshape, splat};
use crate::fuse::space::source;
use crate::generalize::generic::{elementwise, extract};
use crate::host::scalar::convert;
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses, users};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, types, walk};
use crate::{PassError, PassResult};
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use melior::ir::operation::OperationLike;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Operations that the body of a group's loops has at most.
const MOST_OPERATIONS: usize = 512;

/// Makes loops of groups of a function's operations, of which [`is_inlined`] holds, where one would otherwise store for another.
///
/// # Errors
/// When building fails.
pub fn inline_loops<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for group in groups(ops) {
        if group.is_worthwhile() {
            group.replace()?;
        }
    }
    Ok(())
}

/// Whether an operation can be computed at an index: an element of its one result by itself.
#[must_use]
pub fn is_inlined(op: Op<'_>) -> bool {
    let Some(tensor) = only_result(op).and_then(TensorType::of_value) else {
        return false;
    };
    if tensor.encoded || tensor.shape.contains(&DYNAMIC) || tensor.shape.contains(&0) {
        return false;
    }
    match name(op).as_str() {
        ops::MAP | ops::BROADCAST => true,
        ops::CAST => {
            let narrow = |element| types::is_float(element) && types::bits(element) < Some(16);
            let from = source(op).and_then(TensorType::of_value);
            from.is_some_and(|from| !narrow(from.element) && !narrow(tensor.element))
        }
        _ => is_nest(op) && is_pointwise(op),
    }
}

/// Whether loops have no input of their own, and write each element of their result once.
fn is_pointwise(op: Op<'_>) -> bool {
    let Ok(nest) = Nest::read(op) else {
        return false;
    };
    let identity = |rank: usize| {
        let map = maps(op).and_then(|maps| maps.first().copied());
        map.is_some_and(|map| {
            let is_own = |at: usize| {
                map.result(at)
                    .is_ok_and(|r| r.is_dim() && r.dim_position() == at)
            };
            map.result_count() == rank && (0..rank).all(is_own)
        })
    };
    operands(op).len() == 1
        && matches!(nest.starts[..], [Start::Nothing])
        && !nest.reductions.contains(&true)
        && identity(nest.reductions.len())
}

/// Operations that compute at each other's indices.
struct Group<'c> {
    members: Vec<Op<'c>>,
    /// The values that are computed wherever they are read.
    inlined: Rc<HashSet<usize>>,
}

/// Groups of operations, each in order.
fn groups<'c>(members: &[Op<'c>]) -> Vec<Group<'c>> {
    let mut number: HashMap<usize, usize> = HashMap::new();
    for (at, op) in members.iter().enumerate() {
        number.insert(op.to_raw().ptr as usize, at);
    }
    let numbered = |op: Op<'c>| number.get(&(op.to_raw().ptr as usize)).copied();
    let mut of_group: Vec<usize> = (0..members.len()).collect();
    let mut inlined = HashSet::new();
    for (at, op) in members.iter().enumerate() {
        let Some(result) = only_result(*op) else {
            continue;
        };
        let readers: Option<Vec<_>> = users(result)
            .into_iter()
            .map(|user| {
                let reader = reader(user, result)?;
                numbered(reader).filter(|_| !repeats(reader, result))
            })
            .collect();
        let Some(readers) = readers.filter(|readers| !readers.is_empty()) else {
            continue;
        };
        inlined.insert(identity(result));
        for reader in readers {
            let (from, to) = (of_group[at], of_group[reader]);
            for group in &mut of_group {
                if *group == from {
                    *group = to;
                }
            }
        }
    }
    let inlined = Rc::new(inlined);
    let mut found: Vec<Group<'c>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for (op, group) in members.iter().zip(of_group) {
        let at = *place.entry(group).or_insert_with(|| {
            found.push(Group {
                members: Vec::new(),
                inlined: Rc::clone(&inlined),
            });
            found.len() - 1
        });
        found[at].members.push(*op);
    }
    found
}

/// The operation that reads a value element by element; none where it is read otherwise.
fn reader<'c>(user: Op<'c>, value: Val<'c>) -> Option<Op<'c>> {
    match name(user).as_str() {
        ops::MAP | ops::CAST => Some(user),
        "tensor.extract" if operands(user).first() == Some(&value) => {
            let mut above = user.parent_operation()?;
            while !is_nest(above) {
                above = above.parent_operation()?;
            }
            Some(above)
        }
        _ => None,
    }
}

/// Whether an operation has many more elements than what it reads, which it would compute again and again.
fn repeats<'c>(reader: Op<'c>, read: Val<'c>) -> bool {
    let elements = |value| {
        let shape = TensorType::of_value(value).map(|tensor| tensor.shape);
        shape
            .unwrap_or_default()
            .iter()
            .fold(1i64, |all, extent| all.saturating_mul(*extent))
    };
    only_result(reader).is_none_or(|result| elements(result) / 4 > elements(read))
}

impl<'c> Group<'c> {
    /// Whether loops store for others or others for them, and nothing is lost by one kernel.
    fn is_worthwhile(&self) -> bool {
        let inlined = |op: &Op<'c>| {
            only_result(*op).is_some_and(|result| self.inlined.contains(&identity(result)))
        };
        let (loops, others): (Vec<Op<'c>>, Vec<Op<'c>>) =
            self.members.iter().partition(|op| is_nest(**op));
        let mut maps = others.iter().filter(|op| name(**op) != ops::BROADCAST);
        let stores = loops.iter().any(inlined) || !loops.is_empty() && maps.any(inlined);
        let mut roots = self.members.iter().filter(|op| !inlined(op));
        stores
            && self.members.iter().all(|op| self.reads_memory(*op))
            && roots.all(|op| {
                let result = only_result(*op);
                (is_nest(*op) || result.is_some_and(|result| !joins_rows(result)))
                    && result.is_some_and(|result| self.size(result) <= MOST_OPERATIONS)
            })
    }

    /// Whether what an operation reads is a group's, or in memory in any case.
    fn reads_memory(&self, op: Op<'c>) -> bool {
        let all = match is_nest(op) {
            true => Nest::read(op).map(|nest| nest.reads).unwrap_or_default(),
            false => operands(op),
        };
        let own = |value: &Val<'c>| {
            self.inlined.contains(&identity(*value)) && name(op) != ops::BROADCAST
        };
        all.iter().all(|value| own(value) || is_stored(*value))
    }

    /// Operations that computing a value takes, each as often as it is read.
    fn size(&self, value: Val<'c>) -> usize {
        let Some(op) = defining(value).filter(|op| self.members.contains(op)) else {
            return 1;
        };
        let all = match is_nest(op) {
            true => walk::nested(op, &|_| true)
                .into_iter()
                .filter(|inner| name(*inner) == "tensor.extract")
                .filter_map(|inner| operands(inner).first().copied())
                .collect(),
            false => operands(op),
        };
        let own = walk::nested(op, &|_| true).len();
        let inlined = all
            .into_iter()
            .filter(|value| self.inlined.contains(&identity(*value)));
        inlined.fold(own, |sum, value| {
            // Deep chains are over the bound before they are walked through.
            match sum > MOST_OPERATIONS {
                true => sum,
                false => sum.saturating_add(self.size(value)),
            }
        })
    }

    /// Builds the loops of each result that something else reads, and drops the group.
    fn replace(&self) -> PassResult<'c> {
        for &op in &self.members {
            let Some(result) = only_result(op) else {
                continue;
            };
            if self.inlined.contains(&identity(result)) {
                continue;
            }
            let builder = Builder::before(op);
            let tensor = builder.tensor_of(result)?;
            let made = elementwise(&builder, &tensor, &[], |inner, at| {
                let mut body = Body {
                    group: self,
                    known: HashMap::new(),
                };
                body.formed(inner, op, at)
            })?;
            replace_all_uses(result, made);
        }
        for op in self.members.iter().rev() {
            walk::erase(*op);
        }
        Ok(())
    }
}

/// Whether a value is in memory whatever becomes of its readers.
fn is_stored(value: Val<'_>) -> bool {
    let Some(op) = defining(value) else {
        return true;
    };
    if is_reshape(op) {
        return source(op).is_some_and(is_stored);
    }
    let lazy = [ops::MAP, ops::CAST, ops::BROADCAST];
    FillOp::of(op).is_some()
        || splat(op).is_some()
        || is_nest(op)
        || is_product(op)
        || is_operator(op) && !lazy.contains(&name(op).as_str()) && name(op) != ops::INDEX
}

/// Whether what reads a value elementwise, or along rows, would be one kernel with what forms it.
fn joins_rows(value: Val<'_>) -> bool {
    users(value)
        .into_iter()
        .any(|user| match name(user).as_str() {
            ops::REDUCE | ops::BROADCAST | ops::MAP | ops::CAST => true,
            _ if is_reshape(user) => only_result(user).is_some_and(joins_rows),
            _ => false,
        })
}

/// The body of a group's loops.
struct Body<'a, 'c> {
    group: &'a Group<'c>,
    /// What is known of values at indices, in the order in which it was formed.
    known: HashMap<(usize, Vec<usize>), Val<'c>>,
}

impl<'c> Body<'_, 'c> {
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
        let formed = if let Some(op) = own {
            self.formed(inner, op, at)?
        } else if let Some(number) = defining(value).and_then(splat) {
            inner.constant(number)?
        } else if let Some(fill) = FillOp::defining(value) {
            fill.value
        } else {
            extract(inner, value, at)?
        };
        self.known.insert(key, formed);
        Ok(formed)
    }

    /// What a member computes at an index.
    fn formed(
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
                let body = walk::blocks(op).first().copied().ok_or_else(missing)?;
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
        let block = walk::blocks(op).first().copied().ok_or_else(missing)?;
        let mut values = inline::Values::new();
        let mut own = walk::operations(block);
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
        for inside in walk::nested(copy, &|_| true) {
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
            walk::erase(inside);
        }
        Ok(())
    }
}

/// The index that a `linalg.index` has.
fn index_of<'c>(op: Op<'c>, at: &[Val<'c>]) -> Option<Val<'c>> {
    let dim = attribute::integer(op.attribute("dim").ok()?)?;
    at.get(usize::try_from(dim).ok()?).copied()
}
