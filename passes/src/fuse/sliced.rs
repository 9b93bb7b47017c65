//! Rows that are parts of longer ones: what `x[..., 512:1024]` takes, and one tensor of several in one. A kernel of rows reads them where they lie, with the
//! leading dimension of what they are taken from, and takes no copy of them.

use super::nest::{Nest, Start, is_identity, is_nest, maps};
use super::pairs::place;
use super::reshape::element_bytes;
use super::space::product;
use crate::ir::value::{defining, name, operands};
use crate::ir::{DYNAMIC, Op, TensorType, Val, walk};

/// Bytes of a vector of memory, of which rows and what is in front of them are made.
const VECTOR_BYTES: i64 = 16;

/// Where rows of a tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliced<'c> {
    /// The tensor of which they are parts.
    pub from: Val<'c>,
    /// Columns of its rows.
    pub whole: i64,
    /// The column at which the parts begin.
    pub first: i64,
    /// How many columns they have.
    pub columns: i64,
}

impl<'c> Sliced<'c> {
    /// Reads loops that take parts of rows and nothing else, in whole vectors. How many rows there are may be known at run time only.
    #[must_use]
    pub fn of(value: Val<'c>) -> Option<Self> {
        let op = defining(value).filter(|op| is_nest(*op))?;
        let nest = Nest::read(op).ok()?;
        let (&[from], &[map]) = (nest.reads.as_slice(), maps(op)?.as_slice()) else {
            return None;
        };
        let [source, result] = [from, value].map(TensorType::of_value);
        let (source, result) = (source?, result?);
        let is_written = matches!(nest.starts[..], [Start::Nothing]);
        let taken = taken(op).filter(|_| is_written && is_identity(map, &result.shape))?;
        let all = operands(taken);
        let flat = place(all.get(1..)?, &source.shape, result.shape.len())?;
        let [whole, columns] = rows_of(&result.shape, &flat.factors)?;
        let own = Self {
            from,
            whole,
            first: flat.constant,
            columns,
        };
        let bytes = element_bytes(source.element);
        let is_vector = |elements: i64| elements * bytes % VECTOR_BYTES == 0;
        let is_part = own.first >= 0 && own.first + columns <= whole && columns < whole;
        let is_aligned = [whole, columns, own.first].into_iter().all(is_vector);
        (is_part && is_aligned && own.is_whole(&source.shape, &result.shape)?).then_some(own)
    }

    /// Whether the tensor has as many rows as parts are taken; of those whose number is known at run time only, as many in each of its first dimension.
    fn is_whole(self, source: &[i64], result: &[i64]) -> Option<bool> {
        let [is_open, other] = [source, result].map(|shape| shape.first() == Some(&DYNAMIC));
        let known = |shape: &[i64]| product(shape.get(usize::from(is_open)..)?);
        let elements = known(result)?.checked_div(self.columns)?;
        Some(is_open == other && known(source)? == elements.checked_mul(self.whole)?)
    }
}

/// The extraction that is all of the body of loops.
fn taken(op: Op<'_>) -> Option<Op<'_>> {
    let block = walk::blocks(op).first().copied()?;
    let mut body = walk::operations(block);
    let taken = defining(*operands(body.pop()?).first()?)?;
    let is_index = |op: &Op<'_>| {
        ["linalg.index", "arith.constant", "arith.addi"].contains(&name(*op).as_str())
    };
    let mut others = body.iter().filter(|op| **op != taken);
    (name(taken) == "tensor.extract" && others.all(is_index)).then_some(taken)
}

/// Elements from a row to the next, and of a row, of elements of this shape that are so far apart along its dimensions.
fn rows_of(shape: &[i64], apart: &[i64]) -> Option<[i64; 2]> {
    let dims: Vec<_> = shape
        .iter()
        .zip(apart)
        .filter(|(extent, _)| **extent != 1)
        .collect();
    let mut columns = 1i64;
    let mut outer = dims.as_slice();
    while let Some(((extent, apart), rest)) = outer.split_last() {
        if **apart != columns {
            break;
        }
        columns = columns.checked_mul(**extent)?;
        outer = rest;
    }
    let (_, whole) = outer.last()?;
    // Rows follow each other along one dimension as along all.
    let mut pairs = outer.windows(2);
    let follows = |pair: &[(&i64, &i64)]| match pair {
        [(_, apart), (extent, inner)] => extent.checked_mul(**inner) == Some(**apart),
        _ => false,
    };
    if !pairs.all(follows) {
        return None;
    }
    Some([**whole, columns])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_as_far_apart_as_each_other() {
        for (shape, apart, wanted) in [
            (&[6, 512][..], &[576, 1][..], Some([576, 512])),
            (&[2, 3, 512], &[1728, 576, 1], Some([576, 512])),
            (&[2, 3, 8, 64], &[4608, 1536, 64, 1], Some([1536, 512])),
            (&[2, 3, 8, 64], &[4608, 1536, 128, 1], None),
            (&[2, 3, 512], &[1729, 576, 1], None),
            (&[DYNAMIC, 3, 512], &[1728, 576, 1], Some([576, 512])),
            (&[2, 1, 512], &[576, 7, 1], Some([576, 512])),
            (&[6, 512], &[576, 2], None),
            (&[6, 512], &[512, 1], None),
        ] {
            assert_eq!(rows_of(shape, apart), wanted, "{shape:?} {apart:?}");
        }
    }
}
