//! Rows of a table that data names: what an embedding takes (`torch.nn.functional.embedding`, `jnp.take` of whole rows). A kernel of rows reads them where they
//! lie in the table, and takes no copy of them.

use super::nest::{Nest, Start, is_identity, is_nest, maps};
use super::numbers::{loop_of, number};
use super::operators::{is_lazy, is_reshape};
use super::row_numbers::Blocks;
use super::space::{product, source};
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, TensorType, Val, types, walk};
use axe_dialect::ops;

/// Columns of a row are so many, or a multiple: rows of any elements begin at boundaries of vectors then.
const VECTOR: i64 = 16;

/// Rows of a table, and the numbers that name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup<'c> {
    /// The table, whose rows follow each other along its first dimension.
    pub table: Val<'c>,
    /// A number for each row that is taken: one that names none stands for the nearest row.
    pub numbers: Val<'c>,
    /// Whether a negative number counts from the last row on.
    pub wraps: bool,
    /// Rows that a number names: the table's, or those of a matrix of a batch.
    pub rows: i64,
    /// Rows of the table.
    pub all: i64,
    /// Where rows of the result are of the same matrix, of a batch (`torch.gather`).
    pub blocks: Option<Blocks>,
    /// Columns of a row.
    pub columns: i64,
}

impl<'c> Lookup<'c> {
    /// Reads loops that take whole rows of a table and nothing else. How many rows are taken may be known at run time only.
    #[must_use]
    pub fn of(value: Val<'c>) -> Option<Self> {
        let op = defining(value).filter(|op| is_nest(*op))?;
        let result = TensorType::of_value(value)?.shape;
        let taken = operands(taken(op, &result)?);
        let (&table, indices) = taken.split_first()?;
        let from = TensorType::of_value(table)?.shape;
        // Dimensions of a batch, the row's, and those of its columns.
        let is_own = |(at, index): &(usize, &Val<'c>)| loop_of(**index) == Some(*at);
        let batch = indices.iter().enumerate().take_while(is_own).count();
        let (&row, of_row) = indices.get(batch..)?.split_first()?;
        let (&rows, inner) = from.get(batch..)?.split_first()?;
        let (number, wraps) = number(row, rows)?;
        let numbers = operand(op, number).filter(|own| is_stored(*own))?;
        let named = TensorType::of_value(numbers)?;
        let outer = named.shape.len();
        let mut in_order = of_row.iter().zip(outer..);
        let is_row = in_order.all(|(index, at)| loop_of(*index) == Some(at))
            && result.split_at_checked(outer) == Some((&named.shape[..], inner))
            && named.shape.get(..batch) == from.get(..batch);
        let is_number = match types::bits(named.element) {
            Some(32) => i32::try_from(rows).is_ok(),
            bits => bits == Some(64),
        };
        let columns = product(inner).filter(|columns| *columns > 0 && columns % VECTOR == 0)?;
        let blocks = match batch {
            0 => None,
            _ => Some(Blocks {
                count: product(named.shape.get(batch..)?)?,
                apart: rows,
                first: 0,
            }),
        };
        let is_taken = outer > 0 && rows > 0 && is_row && is_number;
        is_taken.then_some(Self {
            table,
            numbers,
            wraps,
            rows,
            all: product(from.get(..=batch)?)?,
            blocks,
            columns,
        })
    }
}

/// The extraction that loops write to all of their result, of this shape.
fn taken<'c>(op: Op<'c>, shape: &[i64]) -> Option<Op<'c>> {
    let nest = Nest::read(op).ok()?;
    let is_written = matches!(nest.starts[..], [Start::Nothing]);
    let in_order = is_identity(*maps(op)?.last()?, shape);
    let block = walk::blocks(op).first().copied()?;
    let taken = defining(*operands(walk::operations(block).pop()?).first()?)?;
    let is_alone = is_written && in_order && !nest.reductions.contains(&true);
    (is_alone && name(taken) == "tensor.extract").then_some(taken)
}

/// The operand of loops that a value of their body is an element of, of which the first loops have one each.
fn operand<'c>(op: Op<'c>, value: Val<'c>) -> Option<Val<'c>> {
    let block = walk::blocks(op).first().copied()?;
    let arguments = walk::block_arguments(block);
    let at = arguments
        .iter()
        .position(|own| identity(*own) == identity(value))?;
    let operand = operands(op).get(at).copied()?;
    let shape = TensorType::of_value(operand)?.shape;
    is_identity(*maps(op)?.get(at)?, &shape).then_some(operand)
}

/// Whether a kernel finds the value in memory, and does not form it itself.
fn is_stored(value: Val<'_>) -> bool {
    match defining(value) {
        None => true,
        Some(op) if is_reshape(op) => source(op).is_some_and(is_stored),
        Some(op) => !is_lazy(op) && ![ops::MAP, ops::CAST].contains(&name(op).as_str()),
    }
}
