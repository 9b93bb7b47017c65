//! Rows that begin anywhere in memory, of which columns are reduced: as many as begin and end at boundaries together are one row, whose
//! columns are read in vectors. What comes of them is reduced with the parts.

use crate::facts::chip::ACCESS_BYTES;
use crate::plan::gcd;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::arguments::{Argument, Arguments, Inputs};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::ColumnFold;
use axe_passes::fuse::nest::Pointwise;
use axe_passes::fuse::operators::is_reshape;
use axe_passes::fuse::space::{Kind, source};
use axe_passes::ir::value::{defining, identity, name, operands};
use axe_passes::ir::{Int, Val};
use std::collections::HashSet;

/// How many rows are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) rows: i64,
}

/// The rows behind the last ones that are joined, as a part of one row that all of the tensor is.
pub(super) struct Left<'c> {
    /// The first of their elements, and the end of the tensor.
    pub first: i64,
    pub end: i64,
    /// What is read, as one row.
    pub inputs: Inputs<'c>,
}

impl Joined {
    /// Each row is one.
    pub(super) const NONE: Self = Self { rows: 1 };

    /// As many as are whole vectors of elements of so many bytes.
    pub(super) fn whole_vectors(fold: ColumnFold, bytes: i64) -> Self {
        let vector = ACCESS_BYTES / bytes;
        let rows = match vector {
            0 => 1,
            vector => vector / gcd(vector, fold.columns),
        };
        match fold.outer == 1 && fold.rows >= rows {
            true => Self { rows },
            false => Self::NONE,
        }
    }

    /// What is reduced then, but for the rows that are left.
    pub(super) const fn of(self, fold: ColumnFold) -> ColumnFold {
        ColumnFold {
            rows: fold.rows / self.rows,
            columns: fold.columns.saturating_mul(self.rows),
            ..fold
        }
    }

    /// The kernel's arguments then: what is read, and so many parts of results.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn arguments<'c>(
        self,
        code: Code<'c>,
        (fold, parts): (ColumnFold, i64),
        arguments: Arguments<'c>,
    ) -> PassResult<'c, Arguments<'c>> {
        let read = [fold.rows, fold.columns];
        let written = [parts, fold.columns];
        let outputs = arguments.outputs.iter();
        Ok(Arguments {
            inputs: seen(code, &arguments.inputs, read)?,
            outputs: outputs
                .map(|own| matrix(code, own, written))
                .collect::<PassResult<'c, _>>()?,
            ..arguments
        })
    }

    /// The rows that are left; none where there are none.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn left<'c>(
        self,
        code: Code<'c>,
        fold: ColumnFold,
        arguments: &Arguments<'c>,
    ) -> PassResult<'c, Option<Left<'c>>> {
        if fold.rows % self.rows == 0 {
            return Ok(None);
        }
        let end = fold.rows * fold.columns;
        Ok(Some(Left {
            first: (fold.rows - fold.rows % self.rows) * fold.columns,
            end,
            inputs: seen(code, &arguments.inputs, [1, end])?,
        }))
    }
}

/// What is read, as matrices.
fn seen<'c>(code: Code<'c>, inputs: &Inputs<'c>, shape: [i64; 2]) -> PassResult<'c, Inputs<'c>> {
    let of = inputs.iter();
    of.map(|(key, own)| Ok((*key, matrix(code, own, shape)?)))
        .collect()
}

/// The beginning of a tensor as a matrix.
fn matrix<'c>(code: Code<'c>, own: &Argument<'c>, shape: [i64; 2]) -> PassResult<'c, Argument<'c>> {
    let [sizes, strides] = [shape, [shape[1], 1]].map(|own| own.map(Int::Known));
    let memref = code.reinterpret(own.memref, &sizes, &strides, &[1, 1])?;
    Ok(Argument::global(memref, shape.to_vec()))
}

/// Whether rows of what is reduced can be joined: each element is formed of those at its place in tensors that are read, wherever that is.
pub(super) fn can_join(fusion: &Fusion<'_>, from: Val<'_>) -> bool {
    let is_full = |(_, kind): &(Val<'_>, Kind)| *kind == Kind::Full;
    fusion.tables.is_empty() && fusion.inputs.iter().all(is_full) && is_by_element(fusion, from)
}

/// Whether all that a value is formed of is. Each value is looked at once, however often it is read.
fn is_by_element<'c>(fusion: &Fusion<'c>, value: Val<'c>) -> bool {
    let (mut left, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = left.pop() {
        let is_read = fusion.inputs.contains(&(value, Kind::Full));
        if is_read || !seen.insert(identity(value)) {
            continue;
        }
        let Some(op) = defining(value).filter(|op| Pointwise::of(*op).is_none()) else {
            return false;
        };
        match name(op).as_str() {
            ops::FILL => {}
            ops::MAP => left.extend(operands(op)),
            own if own == ops::CAST || is_reshape(op) => left.extend(source(op)),
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_to_whole_vectors() {
        let of = |columns: i64, bytes: i64| {
            let fold = ColumnFold {
                outer: 1,
                rows: 67_041,
                columns,
            };
            Joined::whole_vectors(fold, bytes).rows
        };
        for (columns, bytes, rows) in [
            (1001, 2, 8),
            (1002, 2, 4),
            (1004, 2, 2),
            (1000, 2, 1),
            (1001, 4, 4),
            (1001, 1, 16),
            (1001, 16, 1),
            (1001, 32, 1),
        ] {
            assert_eq!(of(columns, bytes), rows, "{columns} {bytes}");
        }
        let fold = ColumnFold {
            outer: 1,
            rows: 67_041,
            columns: 1001,
        };
        let joined = Joined { rows: 8 }.of(fold);
        assert_eq!((joined.rows, joined.columns), (8380, 8008));
    }
}
