//! Keys and values in pages: rows that are read through a table of the numbers of pages (a paged cache), as a gather of whole pages
//! whose result is read as one sequence.

use super::body::{loops_at, operand_at};
use super::index::{self, Index, Place, Step, Var};
use super::read::{Read, Reader, scalar_of, static_shape};
use super::term::Scalar;
use crate::fuse::nest::{maps, reductions};
use crate::fuse::numbers::{constant, loop_of, number};
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, TensorType, walk};
use melior::ir::operation::OperationLike;

/// The pages of keys or values.
#[derive(Clone, Debug)]
pub struct Pages<'c> {
    /// The numbers of pages: a step of keys for each page of a sequence, and steps of problems.
    pub table: Read<'c>,
    /// Keys of a page.
    pub size: i64,
    /// Pages in memory.
    pub count: i64,
    /// Elements from one page to the next.
    pub elements: i64,
    /// Whether a negative number counts from the last page on.
    pub wraps: bool,
}

impl<'c> Reader<'c> {
    /// What a gather of pages reads at a place of its result: the elements of a page, by the key in it, and the pages.
    pub(super) fn pages(&self, op: Op<'c>, place: &Place) -> Option<(Read<'c>, Pages<'c>)> {
        let (maps, all) = (maps(op)?, operands(op));
        if op.result_count() != 1 || reductions(op).contains(&true) {
            return None;
        }
        let loops = loops_at(
            maps.get(all.len().checked_sub(1)?)?,
            place,
            reductions(op).len(),
        )?;
        let block = walk::blocks(op).first().copied()?;
        let arguments = walk::block_arguments(block);
        let last = walk::operations(block).last().copied()?;
        let extract = defining(*operands(last).first()?)?;
        if name(extract) != "tensor.extract" {
            return None;
        }
        let of = operands(extract);
        let (&cache, indices) = of.split_first()?;
        let shape = static_shape(cache)?;
        let (mut own, mut page) = (Place::new(), None);
        for (dim, value) in indices.iter().enumerate() {
            let index = match loop_of(*value) {
                Some(at) => loops.get(at)?.clone(),
                None if constant(*value) == Some(0) => Index::new(),
                None if page.is_none() => {
                    page = Some((dim, number(*value, *shape.get(dim)?)?));
                    Index::new()
                }
                None => return None,
            };
            own.push(index);
        }
        let (dim, (value, wraps)) = page?;
        let at = arguments
            .iter()
            .position(|own| identity(*own) == identity(value))?;
        let table = self.read(*all.get(at)?, &operand_at(maps.get(at)?, &loops)?)?;
        let element = TensorType::of_value(table.tensor)?.element;
        let is_table = matches!(scalar_of(element), Some(Scalar::Int(32 | 64)));
        let steps = index::access(&own, &shape)?;
        let size = page_size(&steps, &table.steps, self.extents.keys).filter(|_| is_table)?;
        let pages = Pages {
            table,
            size,
            count: *shape.get(dim)?,
            elements: shape.get(dim + 1..)?.iter().product(),
            wraps,
        };
        let read = Read::whole(cache, steps);
        Some((read, pages))
    }
}

/// The keys of a page, where a table has the others' digit.
fn page_size(cache: &[Step], table: &[Step], keys: i64) -> Option<i64> {
    let of_keys = |steps: &[Step]| {
        let own = steps.iter().filter(|step| step.digit.var == Var::Key);
        own.map(|step| [step.digit.extent, step.digit.stride])
            .collect::<Vec<_>>()
    };
    let others = [Var::Batch, Var::Key];
    if table.iter().any(|step| !others.contains(&step.digit.var)) {
        return None;
    }
    let (cache, table) = (of_keys(cache), of_keys(table));
    let &[[size, 1]] = cache.as_slice() else {
        return None;
    };
    let all = match table.as_slice() {
        [] => size,
        &[[extent, stride]] if stride == size => extent.checked_mul(size)?,
        _ => return None,
    };
    (all == keys).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::super::index::Digit;
    use super::*;

    fn step(var: Var, extent: i64, stride: i64) -> Step {
        let digit = Digit {
            var,
            extent,
            stride,
        };
        Step { digit, elements: 1 }
    }

    #[test]
    fn a_table_has_the_pages_and_a_cache_their_keys() {
        let cache = [step(Var::Key, 16, 1), step(Var::Depth, 64, 1)];
        let problem = step(Var::Batch, 2, 8);
        let table = |extent, stride| [problem, step(Var::Key, extent, stride)];
        assert_eq!(page_size(&cache, &table(4, 16), 64), Some(16));
        assert_eq!(page_size(&cache, &[problem], 16), Some(16));
        // Other keys than all, pages that are not in order, keys of a page that do not follow each other, single keys, rows.
        assert_eq!(page_size(&cache, &table(4, 16), 80), None);
        assert_eq!(page_size(&cache, &table(4, 8), 64), None);
        assert_eq!(page_size(&[step(Var::Key, 16, 4)], &table(4, 16), 64), None);
        assert_eq!(page_size(&[], &table(64, 1), 64), None);
        assert_eq!(page_size(&cache, &[step(Var::Row, 4, 1)], 16), None);
    }
}
