//! Elements of tensors that are computed element by element, formed where loops read them.

use crate::PassResult;
use crate::fuse::operators::{is_product, is_reshape, splat};
use crate::fuse::space::source;
use crate::host::scalar::convert;
use crate::ir::value::{defining, identity, name, only_result, operands};
use crate::ir::{Builder, Op, TensorType, Val, attribute, inline, walk};
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// Operators that an element is formed by, at most.
const MOST_OPERATORS: usize = 32;

/// Whether a tensor is computed element by element, so that it need not be stored for few of them.
pub(super) fn is_computed(value: Val<'_>) -> bool {
    let Some(op) = defining(value) else {
        return false;
    };
    match name(op).as_str() {
        ops::MAP | ops::CAST | ops::BROADCAST | ops::FILL => true,
        _ if is_reshape(op) => is_of_units(op) && source(op).is_some_and(is_computed),
        _ => splat(op).is_some(),
    }
}

/// Whether a reshape adds and drops dimensions of extent 1 and does nothing else.
fn is_of_units(op: Op<'_>) -> bool {
    let wide = |value: Option<Val<'_>>| {
        let shape = value.and_then(TensorType::of_value)?.shape;
        Some(
            shape
                .into_iter()
                .filter(|extent| *extent != 1)
                .collect::<Vec<_>>(),
        )
    };
    let from = wide(source(op));
    from.is_some() && from == wide(only_result(op))
}

/// The index in what a broadcast repeats.
pub(super) fn kept<T: Copy>(op: Op<'_>, at: &[T]) -> Vec<T> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
    let dims = dims.unwrap_or_default();
    let own = (0i64..).zip(at).filter(|(dim, _)| !dims.contains(dim));
    own.map(|(_, at)| *at).collect()
}

/// The index in a tensor of which another has the same elements, with other dimensions of extent 1, which are read at `zero`.
pub(super) fn units<T: Copy>(from: Val<'_>, shape: &[i64], at: &[T], zero: T) -> Vec<T> {
    let wide = shape.iter().zip(at).filter(|(extent, _)| **extent != 1);
    let mut wide = wide.map(|(_, at)| *at);
    let own = TensorType::of_value(from)
        .map(|tensor| tensor.shape)
        .unwrap_or_default();
    let place = |extent: &i64| match extent {
        1 => zero,
        _ => wide.next().unwrap_or(zero),
    };
    own.iter().map(place).collect()
}

/// Where an element of a computed tensor is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// At the only index that there is.
    Zero,
    /// At the row's index in this dimension.
    Row(usize),
    /// At a column of the row.
    Column,
}

/// What the elements of a row of a computed tensor are formed of.
#[derive(Debug, Default)]
pub(super) struct Row<'c> {
    /// Tensors that have an element a row.
    pub of_rows: Vec<Val<'c>>,
    /// Whether a product's kernel forms the tensor, so that it is stored.
    is_stored: bool,
    /// Dimensions of rows.
    dimensions: usize,
    operators: usize,
}

impl<'c> Row<'c> {
    /// Of a tensor whose last dimension is the columns; none where an element takes many operators.
    pub(super) fn of(value: Val<'c>) -> Option<Self> {
        let rank = TensorType::of_value(value)?.shape.len();
        let mut row = Self {
            dimensions: rank.checked_sub(1)?,
            ..Self::default()
        };
        let is_formed = row.read(value, &places(rank));
        if row.is_stored {
            row.of_rows.clear();
        }
        (is_formed || row.is_stored).then_some(row)
    }

    fn read(&mut self, value: Val<'c>, at: &[Place]) -> bool {
        let Some(op) = defining(value).filter(|_| is_computed(value)) else {
            self.is_stored |= defining(value).is_some_and(is_product);
            if is_of_row(at, self.dimensions) && !self.of_rows.contains(&value) {
                self.of_rows.push(value);
            }
            return true;
        };
        self.operators += 1;
        let is_constant = splat(op).is_some() || FillOp::of(op).is_some();
        self.operators <= MOST_OPERATORS
            && (is_constant
                || read_at(op, at)
                    .into_iter()
                    .all(|(from, at)| self.read(from, &at)))
    }
}

/// Forms elements of a row of computed tensors.
pub(super) struct Elements<'a, 'c> {
    pub inner: &'a Builder<'c>,
    pub of: &'a Row<'c>,
    /// The row's index, and the column.
    pub at: (&'a [Val<'c>], Val<'c>),
    /// What tensors that have an element a row have here.
    pub of_rows: &'a [Val<'c>],
}

impl<'c> Elements<'_, 'c> {
    /// The element of a tensor whose last dimension is the columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn element(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let at = places(self.at.0.len() + 1);
        match self.of.is_stored {
            true => self.extracted(value, &at),
            false => self.read(value, &at, &mut HashMap::new()),
        }
    }

    fn read(
        &self,
        value: Val<'c>,
        at: &[Place],
        known: &mut HashMap<(usize, Vec<Place>), Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let key = (identity(value), at.to_vec());
        if let Some(formed) = known.get(&key) {
            return Ok(*formed);
        }
        let formed = match defining(value).filter(|_| is_computed(value)) {
            Some(op) => self.formed(op, value, at, known)?,
            None => match self
                .at_hand(value)
                .filter(|_| is_of_row(at, self.of.dimensions))
            {
                Some(own) => own,
                None => self.extracted(value, at)?,
            },
        };
        known.insert(key, formed);
        Ok(formed)
    }

    fn formed(
        &self,
        op: Op<'c>,
        value: Val<'c>,
        at: &[Place],
        known: &mut HashMap<(usize, Vec<Place>), Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        if let Some(number) = splat(op) {
            return self.inner.constant(number);
        }
        if let Some(fill) = FillOp::of(op) {
            return Ok(fill.value);
        }
        let mut elements = Vec::new();
        for (from, at) in read_at(op, at) {
            elements.push(self.read(from, &at, known)?);
        }
        let first = elements.first().copied().unwrap_or(value);
        match name(op).as_str() {
            ops::MAP => {
                let yielded = walk::blocks(op)
                    .first()
                    .map(|body| inline::copy(self.inner, *body, &elements));
                Ok(yielded
                    .and_then(|all| all.first().copied())
                    .unwrap_or(first))
            }
            ops::CAST => convert(self.inner, first, self.inner.tensor_of(value)?.element),
            _ => Ok(first),
        }
    }

    /// What a tensor that has an element a row has here.
    fn at_hand(&self, value: Val<'c>) -> Option<Val<'c>> {
        let at = self.of.of_rows.iter().position(|own| *own == value)?;
        self.of_rows.get(at).copied()
    }

    fn extracted(&self, value: Val<'c>, at: &[Place]) -> PassResult<'c, Val<'c>> {
        let (row, column) = self.at;
        let mut read = vec![value];
        for at in at {
            read.push(match at {
                Place::Zero => self.inner.index(0)?,
                Place::Row(dim) => row.get(*dim).copied().unwrap_or(column),
                Place::Column => column,
            });
        }
        let element = self.inner.tensor_of(value)?.element;
        self.inner.value("tensor.extract", &read, element, &[])
    }
}

/// Where a tensor of this rank has an element of a row.
fn places(rank: usize) -> Vec<Place> {
    let rows = (0..rank.saturating_sub(1)).map(Place::Row);
    rows.chain([Place::Column]).collect()
}

/// Whether an index is that of the row in all of its dimensions, and nothing else.
fn is_of_row(at: &[Place], dimensions: usize) -> bool {
    let rows: Vec<_> = at.iter().filter(|at| **at != Place::Zero).collect();
    rows.len() == dimensions
        && rows
            .iter()
            .enumerate()
            .all(|(dim, at)| **at == Place::Row(dim))
}

/// The operands of a computed tensor's operator, with the index that it reads them at for its own.
fn read_at<'c>(op: Op<'c>, at: &[Place]) -> Vec<(Val<'c>, Vec<Place>)> {
    let shape = only_result(op).and_then(TensorType::of_value);
    let shape = shape.map(|own| own.shape).unwrap_or_default();
    let index = |from| match name(op).as_str() {
        ops::BROADCAST => kept(op, at),
        _ if is_reshape(op) => units(from, &shape, at, Place::Zero),
        _ => at.to_vec(),
    };
    operands(op)
        .into_iter()
        .map(|from| (from, index(from)))
        .collect()
}
