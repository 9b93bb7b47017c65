//! Folds: what a kernel sums up over the one dimension that it streams.
//!
//! A kernel streams one dimension through registers: the depth of a matrix product, the columns of rows that are reduced.
//! Each of its operators is *outer* (independent of the stream: formed once a tile), *inner* (formed of each piece of the
//! stream), or a *fold*: a state that starts from [`Fold::neutral`] and takes in one piece after the other. States of
//! disjoint pieces of the stream are one by [`Fold::merge`]; split-K, cluster split-K, stream-K and reductions whose rows go
//! through a tile piece by piece are that, in the order of the pieces.

use super::operators::is_product;
use super::space::Kind;
use crate::PassResult;
use crate::build::{Code, Number};
use crate::error::PassError;
use crate::ir::value::name;
use crate::ir::{Op, Val, combiner};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The dimension that a kernel streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The depth of a product: the space itself is not streamed.
    Depth,
    /// The columns of the space.
    Columns,
}

/// How a value hangs together with the dimension that its kernel streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Formed once a tile.
    Outer,
    /// Formed of each piece of the stream.
    Inner,
}

impl Part {
    /// The part of a value of this kind.
    #[must_use]
    pub const fn of(kind: Kind, stream: Stream) -> Self {
        match (stream, kind) {
            (Stream::Depth, _) | (Stream::Columns, Kind::Row) => Self::Outer,
            (Stream::Columns, Kind::Full | Kind::Column | Kind::Blocks(_) | Kind::Pairs(_)) => {
                Self::Inner
            }
        }
    }
}

/// A sum, maximum, ... over the streamed dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// How states are combined: products are added.
    pub combiner: Combiner,
    /// What is streamed.
    pub over: Stream,
}

impl Fold {
    /// The fold of products along their depth.
    pub const PRODUCT: Self = Self {
        combiner: Combiner::Add,
        over: Stream::Depth,
    };

    /// The fold that an operator is; `None` for one that is inner or outer.
    ///
    /// # Errors
    /// At a reduction whose combiner cannot be read.
    pub fn of(op: Op<'_>) -> PassResult<'_, Option<Self>> {
        if is_product(op) {
            return Ok(Some(Self::PRODUCT));
        }
        match name(op).as_str() {
            ops::REDUCE => Self::of_reduction(op).map(Some),
            _ => Ok(None),
        }
    }

    /// The fold of a reduction.
    ///
    /// # Errors
    /// When its combiner cannot be read.
    pub fn of_reduction(op: Op<'_>) -> PassResult<'_, Self> {
        op.attribute("combiner")
            .ok()
            .and_then(|attribute| Combiner::cast(attribute))
            .map(|combiner| Self {
                combiner,
                over: Stream::Columns,
            })
            .ok_or_else(|| PassError::new(op.location(), "its combiner cannot be read"))
    }

    /// The state of no pieces: what changes no other.
    #[must_use]
    pub fn neutral(self) -> Number {
        match self.combiner {
            Combiner::Add | Combiner::Or | Combiner::Xor | Combiner::MaxUI => Number::Of(0),
            Combiner::Mul => Number::Of(1),
            Combiner::And | Combiner::MinUI => Number::Of(-1),
            Combiner::Max => Number::Least,
            Combiner::Min => Number::Greatest,
        }
    }

    /// The state of two runs of pieces, element by element.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn merge<'c>(
        self,
        code: Code<'c>,
        element: Type<'c>,
        a: Val<'c>,
        b: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let name = combiner::operation(self.combiner, element);
        let (region, arguments, body) = code.builder.region(&[element, element]);
        let value = body.value(name, &arguments, element, &[])?;
        body.operation(ops::YIELD, &[value], &[], &[], Vec::new())?;
        let op = code
            .builder
            .operation(ops::MAP, &[a, b], &[a.r#type()], &[], vec![region])?;
        code.builder.result_of(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_element_a_row_is_outer_where_columns_are_streamed() {
        let of = |kind| Part::of(kind, Stream::Columns);
        assert_eq!(
            [Kind::Row, Kind::Full, Kind::Column].map(of),
            [Part::Outer, Part::Inner, Part::Inner]
        );
        let of = |kind| Part::of(kind, Stream::Depth);
        assert_eq!(
            [Kind::Row, Kind::Full, Kind::Column].map(of),
            [Part::Outer; 3]
        );
    }
}
