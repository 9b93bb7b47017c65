//! A convolution, read: which loops its operands have, and which part each of them has in a product.

use super::super::maps_of;
use crate::ir::value::{name, operands};
use crate::ir::{DYNAMIC, Op, TensorType, Val, types, walk};
use melior::ir::AffineExpr;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;

/// What a dimension is indexed with: a sum of loops, each times a number, and a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// The factor of each loop.
    pub(super) factors: BTreeMap<usize, i64>,
    /// What is added.
    pub(super) constant: i64,
}

impl Index {
    /// One loop.
    pub(super) fn of_loop(at: usize) -> Self {
        Self {
            factors: BTreeMap::from([(at, 1)]),
            constant: 0,
        }
    }

    /// The index of an expression; `None` where it is not linear.
    fn read(expression: AffineExpr<'_>) -> Option<Self> {
        if expression.is_dim() {
            return Some(Self::of_loop(expression.dim_position()));
        }
        if expression.is_constant() {
            return Some(Self {
                factors: BTreeMap::new(),
                constant: expression.constant_value(),
            });
        }
        if !expression.is_add() && !expression.is_mul() {
            return None;
        }
        let (left, right) = (Self::read(expression.lhs())?, Self::read(expression.rhs())?);
        if expression.is_add() {
            return left.plus(&right);
        }
        match (left.factors.is_empty(), right.factors.is_empty()) {
            (_, true) => left.times(right.constant),
            (true, false) => right.times(left.constant),
            _ => None,
        }
    }

    fn plus(mut self, other: &Self) -> Option<Self> {
        for (at, factor) in &other.factors {
            let have = self.factors.entry(*at).or_insert(0);
            *have = have.checked_add(*factor)?;
        }
        self.constant = self.constant.checked_add(other.constant)?;
        Some(self)
    }

    fn times(mut self, by: i64) -> Option<Self> {
        for factor in self.factors.values_mut() {
            *factor = factor.checked_mul(by)?;
        }
        self.constant = self.constant.checked_mul(by)?;
        Some(self)
    }

    /// The loop that the dimension is indexed with, and nothing else.
    pub(super) fn only_loop(&self) -> Option<usize> {
        match (
            self.factors.iter().next(),
            self.factors.len(),
            self.constant,
        ) {
            (Some((at, 1)), 1, 0) => Some(*at),
            _ => None,
        }
    }
}

/// An operand and what its dimensions are indexed with.
#[derive(Clone, Debug)]
pub(super) struct Operand<'c> {
    pub(super) value: Val<'c>,
    pub(super) map: Vec<Index>,
}

/// A convolution. Loops of one turn are in none of its parts.
pub(super) struct Reading<'c> {
    pub(super) op: Op<'c>,
    pub(super) inputs: Vec<Operand<'c>>,
    /// The number of the input that is read through windows, and that of the filters.
    pub(super) windows: usize,
    pub(super) filter: usize,
    /// The loops of the result, in order, those of one turn too.
    pub(super) result: Vec<usize>,
    /// The extent of each loop.
    pub(super) extents: Vec<i64>,
    /// Loops of the result and of both operands.
    pub(super) groups: Vec<usize>,
    /// Those of the windows alone, in front of the filters' in the result, and behind the first of them.
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
    /// Those of the filters alone.
    pub(super) filters: Vec<usize>,
    /// Loops that are summed over, in the filters' order.
    pub(super) summed: Vec<usize>,
    /// Bytes of an element of the windows.
    pub(super) element_bytes: i64,
}

impl<'c> Reading<'c> {
    /// Reads an operation; `None` for one that is no convolution.
    pub(super) fn of(op: Op<'c>) -> Option<Self> {
        if op.result_count() != 1 || !is_product(op) {
            return None;
        }
        let maps = maps_of(op)?;
        let values = operands(op);
        if maps.len() != values.len() || maps.iter().any(|map| map.symbol_count() > 0) {
            return None;
        }
        let mut all = Vec::new();
        for (value, map) in values.into_iter().zip(&maps) {
            let indices = (0..map.result_count()).map(|at| Index::read(map.result(at).ok()?));
            let map = indices.collect::<Option<Vec<_>>>()?;
            all.push(Operand { value, map });
        }
        let loops = maps.first()?.dim_count();
        let init = all.pop()?;
        let result = init
            .map
            .iter()
            .map(Index::only_loop)
            .collect::<Option<Vec<_>>>()?;
        let extents = (0..loops)
            .map(|at| extent(&all, &init, at))
            .collect::<Option<Vec<_>>>()?;
        let (windows, filter) = windows_and_filter(&all)?;
        let mut reading = Self {
            op,
            inputs: all,
            windows,
            filter,
            result,
            extents,
            groups: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            filters: Vec::new(),
            summed: Vec::new(),
            element_bytes: 1,
        };
        reading.drop_units();
        reading.sort()?;
        Some(reading)
    }

    /// Leaves loops of one turn out of the inputs' indices: they are 0.
    fn drop_units(&mut self) {
        let extents = &self.extents;
        for index in self.inputs.iter_mut().flat_map(|input| &mut input.map) {
            index.factors.retain(|at, _| extents.get(*at) != Some(&1));
        }
    }

    /// Sorts the loops by their part; `None` where one has none.
    fn sort(&mut self) -> Option<()> {
        let (windows, filter) = (
            self.inputs.get(self.windows)?,
            self.inputs.get(self.filter)?,
        );
        self.element_bytes = TensorType::of_value(windows.value)
            .and_then(|tensor| types::bits(tensor.element))
            .map_or(8, |bits| i64::from(bits.div_ceil(8)));
        let loops = |operand: &Operand<'c>| -> Vec<usize> {
            let all = operand.map.iter().flat_map(|index| index.factors.keys());
            all.copied().collect()
        };
        let (of_windows, of_filter) = (loops(windows), loops(filter));
        let several = |at: &usize| !self.is_unit(*at);
        let result: Vec<usize> = self.result.iter().copied().filter(several).collect();
        for at in result {
            let part = match (of_windows.contains(&at), of_filter.contains(&at)) {
                (true, true) => &mut self.groups,
                (true, false) if self.filters.is_empty() => &mut self.before,
                (true, false) => &mut self.after,
                (false, true) => &mut self.filters,
                (false, false) => return None,
            };
            part.push(at);
        }
        let summed = |at: &usize| !self.result.contains(at);
        self.summed = of_filter.into_iter().filter(summed).collect();
        let all_summed = of_windows.iter().filter(|at| summed(at));
        let mut seen = Vec::new();
        for at in all_summed {
            // A loop in two dimensions is a diagonal.
            if !self.summed.contains(at) || seen.contains(at) {
                return None;
            }
            seen.push(*at);
        }
        (seen.len() == self.summed.len()).then_some(())
    }

    /// Whether a loop has one turn.
    pub(super) fn is_unit(&self, at: usize) -> bool {
        self.extents.get(at) == Some(&1)
    }

    /// The loops of several turns.
    pub(super) fn kept(&self) -> Vec<usize> {
        (0..self.extents.len())
            .filter(|at| !self.is_unit(*at))
            .collect()
    }

    /// Whether the operand with windows is indexed by loops and zeros, all of it.
    pub(super) fn is_direct(&self) -> bool {
        let Some(input) = self.inputs.get(self.windows) else {
            return false;
        };
        let shape = TensorType::of_value(input.value).map_or_else(Vec::new, |tensor| tensor.shape);
        let mut seen = Vec::new();
        input
            .map
            .iter()
            .zip(shape)
            .all(|(index, extent)| match index.only_loop() {
                Some(at) => {
                    let new = !seen.contains(&at);
                    seen.push(at);
                    new && self.extents.get(at) == Some(&extent)
                }
                None => index.factors.is_empty() && index.constant == 0 && extent == 1,
            })
    }

    /// Whether filters are fewer elements than the result: then a copy of them for each batch is less work than a result in
    /// another order.
    pub(super) fn copies_filters(&self) -> bool {
        let product = |loops: &[usize]| {
            let extents = loops.iter().filter_map(|at| self.extents.get(*at));
            let known = extents.filter(|extent| **extent != DYNAMIC);
            known.fold(1i64, |product, extent| product.saturating_mul(*extent))
        };
        product(&self.summed) <= product(&self.after).saturating_mul(2)
    }

    /// The loops of the copy, outermost first. Depth is innermost where the windows have it so; else behind the places,
    /// whose neighbours are neighbours in memory, where tensor cores take either order.
    pub(super) fn order_of_copy(&self) -> Vec<usize> {
        let input = self.inputs.get(self.windows);
        let last = input.and_then(|input| input.map.last());
        let inner = last.is_some_and(|index| {
            let mut loops = index.factors.keys();
            loops.all(|at| self.summed.contains(at))
        });
        let outer: Vec<usize> = self
            .result
            .iter()
            .copied()
            .filter(|at| self.groups.contains(at) || self.before.contains(at))
            .collect();
        let (after, summed) = (&*self.after, &*self.summed);
        match !inner && !after.is_empty() && self.element_bytes == 2 {
            true => [&*outer, summed, after].concat(),
            false => [&*outer, after, summed].concat(),
        }
    }

    /// The loops of filters that are copied for the loops in front of theirs.
    pub(super) fn order_of_filters(&self) -> Vec<usize> {
        let own = self
            .inputs
            .get(self.filter)
            .map_or(&[][..], |input| &input.map);
        let own: Vec<usize> = own.iter().filter_map(Index::only_loop).collect();
        let outer = self
            .result
            .iter()
            .copied()
            .filter(|at| self.groups.contains(at) || self.before.contains(at));
        let outer: Vec<usize> = outer.collect();
        let inner = own.into_iter().filter(|at| !outer.contains(at));
        outer.iter().copied().chain(inner).collect()
    }
}

/// Which of two tensors has the windows, and which is the filter.
fn windows_and_filter(all: &[Operand<'_>]) -> Option<(usize, usize)> {
    let tensor = |operand: &Operand<'_>| TensorType::of_value(operand.value).is_some();
    let is_plain =
        |operand: &Operand<'_>| operand.map.iter().all(|index| index.only_loop().is_some());
    let tensors: Vec<usize> = (0..all.len())
        .filter(|at| all.get(*at).is_some_and(tensor))
        .collect();
    let &[first, second] = tensors.as_slice() else {
        return None;
    };
    let (windows, filter) = match (is_plain(all.get(first)?), is_plain(all.get(second)?)) {
        (false, true) => (first, second),
        (true, false) => (second, first),
        _ => return None,
    };
    // A window runs along a dimension where it starts at a place and has an element at a step from there.
    let is_window = |index: &Index| index.factors.len() > 1;
    let has_windows = all.get(windows)?.map.iter().any(is_window);
    has_windows.then_some((windows, filter))
}

/// Whether the body multiplies and adds, which that of a pooling does not, and does not ask for the place of a point.
fn is_product(op: Op<'_>) -> bool {
    let names: Vec<_> = walk::nested(op, &|_| true).into_iter().map(name).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let is_sum =
        (has("arith.mulf") && has("arith.addf")) || (has("arith.muli") && has("arith.addi"));
    is_sum && !has("linalg.index")
}

/// The extent of a loop: that of a dimension that it alone indexes, static where there is one.
fn extent(inputs: &[Operand<'_>], init: &Operand<'_>, at: usize) -> Option<i64> {
    let mut found = None;
    for operand in inputs.iter().chain([init]) {
        let Some(tensor) = TensorType::of_value(operand.value) else {
            continue;
        };
        for (index, extent) in operand.map.iter().zip(tensor.shape) {
            if index.only_loop() == Some(at) && found.is_none_or(|have| have == DYNAMIC) {
                found = Some(extent);
            }
        }
    }
    found
}
