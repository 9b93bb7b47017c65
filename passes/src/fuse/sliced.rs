//! Rows that are parts of longer ones: what `x[..., 512:1024]` takes, and one tensor of several in one. A kernel of rows reads them where they lie, with the
//! leading dimension of what they are taken from, and takes no copy of them.

use super::nest::{Nest, Start, is_identity, is_nest, maps};
use super::pairs::{Linear, place};
use super::reshape::element_bytes;
use super::row_numbers::Blocks;
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
    /// Which rows they are of, where not of all: `x[:, 1:]` takes some of each block.
    pub blocks: Option<Blocks>,
    /// Rows of the tensor, where they are of others than all.
    pub all: Option<i64>,
}

impl<'c> Sliced<'c> {
    /// Reads loops that take parts of rows and nothing else, in whole vectors. How many rows there are may be known at run time only.
    #[must_use]
    pub fn of(value: Val<'c>) -> Option<Self> {
        let part = Part::of(value)?;
        let [whole, columns] = rows_of(&part.result.shape, &part.flat.factors)?;
        let own = Self {
            from: part.from,
            whole,
            first: part.flat.constant,
            columns,
            blocks: None,
            all: None,
        };
        let is_part = columns < whole && (0..=whole - columns).contains(&own.first);
        let is_whole = own.is_whole(&part.source.shape, &part.result.shape)?;
        (is_part && part.is_aligned([whole, columns, own.first]) && is_whole).then_some(own)
    }

    /// Reads loops that take rows of some numbers, whole or parts, of so many columns, or else as many as the last dimension has. All extents are known.
    #[must_use]
    pub fn in_blocks(value: Val<'c>, columns: Option<i64>) -> Option<Self> {
        let part = Part::of(value)?;
        let columns = columns.or(part.result.shape.last().copied())?;
        let Lie {
            whole,
            count,
            blocks,
            apart,
        } = Lie::of(&part.result.shape, &part.flat.factors, columns)?;
        let (elements, at) = (product(&part.source.shape)?, part.flat.constant);
        let rows = elements / whole;
        let [row, first] = [at / whole, at % whole];
        let is_part = at >= 0 && first <= whole - columns && rows * whole == elements;
        let last = (blocks - 1).checked_mul(apart)?.checked_add(row)?;
        let is_inside = last <= rows - count;
        let is_several = blocks > 1 || row > 0 || count < rows;
        let is_taken = is_part && is_inside && is_several;
        (is_taken && part.is_aligned([whole, columns, first])).then_some(Self {
            from: part.from,
            whole,
            first,
            columns,
            blocks: Some(Blocks {
                count,
                apart,
                first: row,
            }),
            all: Some(rows),
        })
    }

    /// Whether the tensor has as many rows as parts are taken; of those whose number is known at run time only, as many in each of its first dimension.
    fn is_whole(self, source: &[i64], result: &[i64]) -> Option<bool> {
        let [is_open, other] = [source, result].map(|shape| shape.first() == Some(&DYNAMIC));
        let known = |shape: &[i64]| product(shape.get(usize::from(is_open)..)?);
        let elements = known(result)?.checked_div(self.columns)?;
        Some(is_open == other && known(source)? == elements.checked_mul(self.whole)?)
    }
}

/// How rows of so many columns lie in memory: so many of each of several blocks, of which the next begins so many rows behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lie {
    whole: i64,
    count: i64,
    blocks: i64,
    apart: i64,
}

impl Lie {
    /// Of elements of this shape that are so far apart along its dimensions.
    fn of(shape: &[i64], apart: &[i64], columns: i64) -> Option<Self> {
        let dims = shape.iter().zip(apart).filter(|(extent, _)| **extent != 1);
        let mut dims: Vec<_> = dims.map(|(extent, apart)| [*extent, *apart]).collect();
        let mut own = 1i64;
        while own < columns {
            let [extent, apart] = dims.pop().filter(|[_, apart]| *apart == own)?;
            own = own.checked_mul(extent.max(0) * apart.signum())?;
        }
        let mut levels: Vec<[i64; 2]> = Vec::new();
        for [extent, apart] in dims.into_iter().rev() {
            match levels.last_mut() {
                Some([inner, step]) if inner.checked_mul(*step) == Some(apart) => {
                    *inner = inner.checked_mul(extent)?;
                }
                _ => levels.push([extent, apart]),
            }
        }
        let is_known = own == columns && levels.iter().flatten().all(|own| *own > 0);
        let (whole, count, blocks, behind) = match levels[..] {
            [[count, whole]] => (whole, count, 1, count.checked_mul(whole)?),
            [[count, whole], [blocks, behind]] => (whole, count, blocks, behind),
            _ => return None,
        };
        let apart = behind.checked_div(whole)?;
        let follows = behind.checked_rem(whole) == Some(0);
        (is_known && follows).then_some(Self {
            whole,
            count,
            blocks,
            apart,
        })
    }
}

/// Loops that take a part of a tensor, and nothing else.
pub(super) struct Part<'c> {
    /// The extraction that is all of their body.
    pub taken: Op<'c>,
    from: Val<'c>,
    source: TensorType<'c>,
    result: TensorType<'c>,
    /// The number of the element that each takes.
    flat: Linear,
}

impl<'c> Part<'c> {
    pub(super) fn of(value: Val<'c>) -> Option<Self> {
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
        Some(Self {
            taken,
            from,
            source,
            result,
            flat,
        })
    }

    /// Whether so many elements each are whole vectors.
    fn is_aligned(&self, elements: [i64; 3]) -> bool {
        let bytes = element_bytes(self.source.element);
        let mut all = elements.into_iter();
        all.all(|elements| {
            let own = elements.checked_mul(bytes);
            own.is_some_and(|own| own % VECTOR_BYTES == 0)
        })
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
    fn some_rows_of_blocks_are_taken() {
        for (shape, apart, columns, wanted) in [
            (
                &[8, 511, 8000][..],
                &[4_096_000, 8000, 1][..],
                8000,
                Some([8000, 511, 8, 512]),
            ),
            (
                &[8, 511, 16, 64],
                &[524_288, 1024, 64, 1],
                1024,
                Some([1024, 511, 8, 512]),
            ),
            (
                &[8, 511, 16, 64],
                &[524_288, 1024, 64, 1],
                64,
                Some([64, 8176, 8, 8192]),
            ),
            (
                &[8, 511, 500],
                &[524_288, 1024, 1],
                500,
                Some([1024, 511, 8, 512]),
            ),
            (&[99, 512], &[512, 1], 512, Some([512, 99, 1, 99])),
            (
                &[8, 1, 768],
                &[393_216, 768, 1],
                768,
                Some([393_216, 8, 1, 8]),
            ),
            (&[2, 3, 4, 8], &[1000, 100, 16, 1], 8, None),
            (&[2, 3, 8], &[100, 24, 1], 8, None),
            (&[4, 8], &[-8, 1], 8, None),
            (&[4, 8], &[8, 2], 8, None),
            (&[4, 8], &[8, 1], 16, None),
            (&[8], &[1], 8, None),
            (&[2, 8], &[0, 1], 8, None),
            (&[3, 2, 8], &[16, 0, 1], 8, None),
        ] {
            let lie = Lie::of(shape, apart, columns);
            let own = lie.map(|own| [own.whole, own.count, own.blocks, own.apart]);
            assert_eq!(own, wanted, "{shape:?} {apart:?} {columns}");
        }
    }

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
