//! What a group's loops compute at an index.

use super::Group;
use super::readers::source_index;
use super::rows::OfRows;
use crate::build::Code;
use crate::fuse::nest::maps;
use crate::fuse::operators::{is_reshape, reshaped, splat};
use crate::fuse::space::source;
use crate::generalize::generic::extract;
use crate::host::scalar::{combine, convert, identity_of};
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses};
use crate::ir::walk::{block_arguments, blocks, erase, nested, operations};
use crate::ir::{Builder, Int, Ints, Op, TensorType, Val, attribute, inline};
use crate::{PassError, PassResult};
use axe_dialect::ops::{self, FillOp};
use axe_dialect::{Combiner, Typed};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

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

/// What is known of values at indices.
type Known<'c> = HashMap<(usize, Vec<usize>), Val<'c>>;

/// The body of a group's loops.
#[derive(Clone)]
pub(super) struct Body<'a, 'c> {
    group: &'a Group<'c>,
    /// What is known in the order in which it was formed.
    known: Known<'c>,
    /// What is known of rows everywhere.
    rows: Rc<RefCell<Known<'c>>>,
    place: Place<'c>,
    /// The elements of the result's rows and the index along them, where the body may go through rows.
    row: Option<(i64, Val<'c>)>,
    /// What is formed of rows here, of values that are not the group's.
    of_rows: Option<Rc<OfRows<'c>>>,
    /// What is known of the row whose elements are formed here.
    of_row: HashMap<usize, Val<'c>>,
}

/// Where in the body something is formed.
#[derive(Clone, Copy)]
enum Place<'c> {
    /// Outside of its regions.
    Outside,
    /// In this operation's regions.
    Inside(Op<'c>),
    /// In a loop over a row.
    Row,
}

impl<'a, 'c> Body<'a, 'c> {
    /// The body of loops at this index, for a result of which rows have so many elements, if it may go through these.
    pub(super) fn new(group: &'a Group<'c>, at: &[Val<'c>], columns: Option<i64>) -> Self {
        Self {
            group,
            known: Known::new(),
            rows: Rc::default(),
            place: Place::Outside,
            row: columns.zip(at.last().copied()),
            of_rows: None,
            of_row: HashMap::new(),
        }
    }

    /// Whether a value is formed where it is read.
    fn forms(&self, value: Val<'c>) -> bool {
        let of_rows = self.of_rows.as_ref();
        self.group.inlined.contains(&identity(value))
            || of_rows.is_some_and(|of| of.values.contains(&identity(value)))
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
        if let Some(known) = self.of_row.get(&identity(value)) {
            return Ok(*known);
        }
        let own = defining(value).filter(|_| self.forms(value));
        let reshape = defining(value)
            .filter(|op| is_reshape(*op))
            .and_then(source);
        let formed = if let Some(op) = own {
            self.formed(inner, op, at)?
        } else if let Some(source) = reshape.filter(|source| self.forms(reshaped(*source))) {
            let at = source_index(inner, value, source, at)?;
            self.element(inner, source, &at)?
        } else if let Some(number) = defining(reshaped(value)).and_then(splat) {
            inner.constant(number)?
        } else if let Some(fill) = FillOp::defining(reshaped(value)) {
            fill.value
        } else if let Some(formed) = self.reduced(inner, value, at)? {
            formed
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
            ops::REDUCE => self.fold(inner, (op, first), at),
            _ => self.loops(inner, op, at),
        }
    }

    /// The element of a value that has one a row, formed of the row here, where the loops have its points; none where it is read.
    fn reduced(
        &self,
        inner: &Builder<'c>,
        value: Val<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, Option<Val<'c>>> {
        let Some((columns, along)) = self.row else {
            return Ok(None);
        };
        let key = (identity(value), at.iter().map(|at| identity(*at)).collect());
        if let Some(known) = self.rows.borrow().get(&key) {
            return Ok(Some(*known));
        }
        let is_there = |op: Op<'c>| {
            let mut own = at.iter().filter_map(|at| defining(*at));
            own.all(|own| own.block() == op.block())
        };
        let builder = match self.place {
            Place::Outside => *inner,
            Place::Inside(op) if is_there(op) => Builder::before(op),
            Place::Inside(_) | Place::Row => return Ok(None),
        };
        let source = reshaped(value);
        let of_rows = OfRows::of(source, &self.group.again);
        let of_rows = of_rows.filter(|of| of.columns == columns && !depend_on(at, along));
        let Some(of_rows) = of_rows else {
            return Ok(None);
        };
        let mut body = Self {
            known: Known::new(),
            place: Place::Outside,
            of_rows: Some(Rc::new(of_rows)),
            ..self.clone()
        };
        let at = Self::of_same_row(&builder, value, source, at)?;
        let formed = body.element(&builder, source, &at)?;
        self.rows.borrow_mut().insert(key, formed);
        Ok(Some(formed))
    }

    /// A reduction of the row at an index.
    fn fold(
        &mut self,
        inner: &Builder<'c>,
        (op, source): (Op<'c>, Val<'c>),
        at: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let missing = || PassError::new(op.location(), "expected a reduction of rows");
        let combiner = op.attribute("combiner").ok().and_then(Combiner::cast);
        let (combiner, result) = combiner.zip(only_result(op)).ok_or_else(missing)?;
        let of_rows = self.of_rows.clone().ok_or_else(missing)?;
        let mut of_row = HashMap::new();
        for value in of_rows.read_by(op) {
            let at = Self::of_same_row(inner, result, value, at)?;
            of_row.insert(identity(value), self.element(inner, value, &at)?);
        }
        let start = identity_of(inner, combiner, inner.tensor_of(result)?.element)?;
        let code = Code { builder: *inner };
        let end = code.index(of_rows.columns)?;
        let sums = code.for_each(end, 1, &[start], |code, turn, carried| {
            let mut row = Self {
                place: Place::Row,
                of_row,
                ..self.clone()
            };
            let at: Vec<_> = at.iter().copied().chain([turn]).collect();
            let value = row.element(&code.builder, source, &at)?;
            let carried = carried.first().copied().ok_or_else(missing)?;
            Ok(vec![combine(&code.builder, combiner, carried, value)?])
        })?;
        sums.first().copied().ok_or_else(missing)
    }

    /// The index of another value that has an element a row, for the row that is at an index of `value`.
    fn of_same_row(
        inner: &Builder<'c>,
        value: Val<'c>,
        other: Val<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        match inner.tensor_of(value)?.shape == inner.tensor_of(other)?.shape {
            true => Ok(at.to_vec()),
            false => source_index(inner, value, other, at),
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
                    let mut body = self.clone();
                    if let Place::Outside = self.place {
                        body.place = Place::Inside(copy);
                    }
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

/// Whether one of these indices is computed of another.
fn depend_on<'c>(indices: &[Val<'c>], other: Val<'c>) -> bool {
    let (mut next, mut seen) = (indices.to_vec(), HashSet::new());
    while let Some(value) = next.pop() {
        if value == other {
            return true;
        }
        if let Some(op) = defining(value).filter(|_| seen.insert(identity(value))) {
            if op.region_count() > 0 {
                return true;
            }
            next.extend(operands(op));
        }
    }
    false
}
