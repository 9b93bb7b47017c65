//! Kernels of reductions of dimensions that others follow, columns: what forms what they reduce, other reductions of the same columns, and maps
//! that they store on their way.

use super::{Group, Root, bytes};
use crate::fuse::operators::{has, is_reshape, is_widening};
use crate::fuse::row_parts;
use crate::fuse::siblings;
use crate::fuse::space::{Cut, Kind, Size, product, source};
use crate::ir::value::{defining, identity, name, operands, results, users};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute};
use axe_dialect::ops::{self, Trait};
use melior::ir::operation::OperationLike;
use std::collections::HashSet;
use std::rc::Rc;

/// A reduction of neighbouring dimensions that others follow, of static extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFold {
    /// Elements of the dimensions in front.
    pub outer: i64,
    /// Elements that are reduced to one.
    pub rows: i64,
    /// Elements of the dimensions that follow.
    pub columns: i64,
}

impl ColumnFold {
    /// The reduction that an operator is.
    #[must_use]
    pub fn of(op: Op<'_>) -> Option<Self> {
        let from = TensorType::of_value(source(op)?)?;
        let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
        if name(op) != ops::REDUCE || from.shape.contains(&DYNAMIC) {
            return None;
        }
        Self::along(&from.shape, &dims)
    }

    /// Elements of the result.
    #[must_use]
    pub const fn kept(self) -> Option<i64> {
        self.outer.checked_mul(self.columns)
    }

    fn along(shape: &[i64], dims: &[i64]) -> Option<Self> {
        let cut = Cut::along(shape, dims)?;
        let fold = Self {
            outer: product(shape)? / cut.columns / cut.stride,
            rows: cut.columns,
            columns: cut.stride,
        };
        (fold.columns > 1 && fold.rows > 1 && fold.outer > 0).then_some(fold)
    }
}

impl<'c> Group<'c> {
    /// The kernel of a reduction of dimensions that others follow, with what forms its elements; `again` are values that it may form
    /// itself. None where it only reads a tensor, as it lies in memory.
    pub(in crate::fuse) fn of_columns(op: Op<'c>, again: HashSet<usize>) -> Option<Self> {
        let (Some(from), &[result]) = (source(op), &results(op)[..]) else {
            return None;
        };
        let fold = ColumnFold::of(op)?;
        let mut group = Self {
            takes_loops: true,
            again: Rc::new(again),
            ..Self::new(Root::Columns(op), Size::of(from)?, Some(fold.columns))
        };
        let mut stored = from;
        while let Some(op) = defining(stored).filter(|op| is_reshape(*op)) {
            stored = source(op)?;
        }
        let is_read = |(input, _): &(Val<'c>, Kind)| *input == stored;
        let is_alone = !row_parts::is_marked(op) && !siblings::is_marked(op);
        let goes_on = fold.outer > 1 && users(result).into_iter().any(is_computed);
        let only_reads = |group: &Self| {
            let is_plain = is_alone && group.lookups.is_empty() && !goes_on;
            is_plain && group.inputs.iter().any(is_read)
        };
        if !group.pull(from, Kind::Full) || only_reads(&group) {
            return None;
        }
        group.formed.insert((identity(result), Kind::Column));
        group.owned.push(op);
        Some(group)
    }

    /// The same operators and another reduction of the same columns; `again` as in [`Group::of_columns`]. None where it would not read less
    /// than in a kernel of its own.
    pub(in crate::fuse) fn with_columns(&self, op: Op<'c>, again: HashSet<usize>) -> Option<Self> {
        let Root::Columns(first) = self.root else {
            return None;
        };
        let (Some(from), &[result]) = (source(op), &results(op)[..]) else {
            return None;
        };
        let fold = ColumnFold::of(op)?;
        let is_same = ColumnFold::of(first)? == fold && Size::of(from)? == self.total;
        // What comes of parts stands for what it comes of.
        let in_parts = row_parts::is_marked(op);
        let is_reduced = |own: &Op<'c>| name(*own) == ops::REDUCE && source(*own) == Some(from);
        let is_known = in_parts == row_parts::is_marked(first)
            && !(in_parts && self.owned.iter().any(is_reduced));
        let mut group = Self {
            again: Rc::new(again),
            ..self.clone()
        };
        let mut alone = Self {
            takes_loops: true,
            again: Rc::clone(&group.again),
            ..Self::new(Root::Columns(op), self.total, Some(fold.columns))
        };
        let is_formed = |group: &mut Self| group.pull(from, Kind::Full);
        if !is_same || !is_known || !is_formed(&mut group) || !is_formed(&mut alone) {
            return None;
        }
        group.formed.insert((identity(result), Kind::Column));
        group.owned.push(op);
        (group.read_bytes() - self.read_bytes() < alone.read_bytes()).then_some(group)
    }

    /// The same operators, none of which reduces, and a reduction of columns of what they form: its kernel stores that on its way, where it
    /// `stores` elements of such a fold, of tensors whose narrowest elements have so many bytes, of rows
    /// that CTAs share or not.
    pub(in crate::fuse) fn folded(
        &self,
        op: Op<'c>,
        stores: &dyn Fn(ColumnFold, i64, bool) -> bool,
    ) -> Option<Self> {
        let (Some(from), &[result]) = (source(op), &results(op)[..]) else {
            return None;
        };
        let fold = ColumnFold::of(op)?;
        let cut = Cut::rows_of(fold.columns);
        let is_elementwise = matches!(self.root, Root::Tiles)
            && !self.owned.iter().any(|op| name(*op) == ops::REDUCE);
        let is_same = self.cut.is_none_or(|own| own == cut) && Size::of(from)? == self.total;
        if !is_elementwise || !is_same || self.goes_on_beside(from) {
            return None;
        }
        let mut group = Self {
            position: self.position,
            apart: self.apart.clone(),
            takes_loops: true,
            ..Self::new(Root::Columns(op), self.total, Some(fold.columns))
        };
        let mut own = self.owned.iter();
        let is_formed =
            own.all(|own| group.join_as(*own, &[Kind::Full])) && group.pull(from, Kind::Full);
        group.formed.insert((identity(result), Kind::Column));
        group.owned.push(op);
        let full = group.inputs.iter().filter(|(_, kind)| *kind == Kind::Full);
        let narrowest = full.map(|(input, _)| bytes(*input)).min()?;
        (is_formed && stores(fold, narrowest, row_parts::is_marked(op))).then_some(group)
    }

    /// Whether elementwise operators that may join it read what it forms, but for those that form another value.
    fn goes_on_beside(&self, value: Val<'c>) -> bool {
        let (mut next, mut forming) = (vec![value], Vec::new());
        while let Some(value) = next.pop() {
            let op = defining(value).filter(|op| !self.owned.contains(op));
            if let Some(op) = op.filter(|op| !forming.contains(op)) {
                next.extend(operands(op));
                forming.push(op);
            }
        }
        let results = self.owned.iter().flat_map(|op| results(*op));
        let mut readers = results.flat_map(users);
        readers.any(|op| {
            let is_elementwise = has(op, Trait::Elementwise) && !is_widening(op);
            is_elementwise && !self.owned.contains(&op) && !forming.contains(&op)
        })
    }
}

/// Whether an operator computes more, element by element, or reshapes for one that does.
fn is_computed(op: Op<'_>) -> bool {
    let reads = || results(op).into_iter().flat_map(users).any(is_computed);
    has(op, Trait::Elementwise) || is_reshape(op) && reads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_what_is_reduced() {
        let of = |shape: &[i64], dims: &[i64]| {
            let fold = ColumnFold::along(shape, dims)?;
            Some([fold.outer, fold.rows, fold.columns])
        };
        assert_eq!(of(&[6, 7], &[0]), Some([1, 6, 7]));
        assert_eq!(of(&[2, 3, 4, 5], &[1]), Some([2, 3, 20]));
        assert_eq!(of(&[2, 3, 1, 4, 5], &[1, 3]), Some([2, 12, 5]));
        assert_eq!(of(&[6, 7], &[1]), None);
        assert_eq!(of(&[2, 3, 4], &[0, 2]), None);
        assert_eq!(of(&[2, 3, 4, 5], &[0, 2]), None);
        assert_eq!(of(&[1, 7], &[0]), None);
    }
}
