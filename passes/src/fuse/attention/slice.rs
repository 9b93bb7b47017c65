//! Slices, as loops that extract the elements of a tensor from a place on: a projection for queries, keys and values together is read
//! where it lies.

use super::index::{Digit, Index, Place};
use super::read::{Read, static_shape};
use crate::fuse::nest::{is_nest, maps, reductions};
use crate::ir::value::{defining, name, only_result, operands};
use crate::ir::{Op, Val, attribute, walk};
use melior::ir::operation::OperationLike;

/// A slice of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Slice<'c> {
    source: Val<'c>,
    /// For each dimension of the source, the dimension of the slice and its extent, none where it has one place there, and the first place.
    dims: Vec<(Option<(usize, i64)>, i64)>,
    shape: Vec<i64>,
}

impl<'c> Slice<'c> {
    /// Reads loops whose body extracts one element; `None` where they do more, or take elements otherwise than in order.
    pub(super) fn of(op: Op<'c>) -> Option<Self> {
        let result = only_result(op).filter(|_| is_nest(op))?;
        let (own, maps) = (static_shape(result)?, maps(op)?);
        let [map] = maps.as_slice() else {
            return None;
        };
        let is_own = |at: usize| {
            let index = map.result(at);
            index.is_ok_and(|index| index.is_dim() && index.dim_position() == at)
        };
        if reductions(op).contains(&true) || !(0..own.len()).all(is_own) {
            return None;
        }
        let block = walk::blocks(op).first().copied()?;
        let last = walk::operations(block).last().copied()?;
        let extract = defining(*operands(last).first()?)?;
        let all = operands(extract);
        let (&source, indices) = all
            .split_first()
            .filter(|_| name(extract) == "tensor.extract")?;
        let shape = static_shape(source)?;
        let (mut dims, mut next) = (Vec::new(), 0);
        let is_skipped = |from: usize, to: usize| {
            let between = own.get(from..to)?;
            between.iter().all(|extent| *extent == 1).then_some(())
        };
        for (index, extent) in indices.iter().zip(&shape) {
            let (dim, first) = shifted(*index)?;
            // Dimensions in another order are a transpose's; those of one place need not be asked for.
            let dim = match dim {
                Some(dim) => {
                    let own = *own.get(dim)?;
                    is_skipped(next, dim)?;
                    next = dim + 1;
                    Some((dim, own))
                }
                None => None,
            };
            let end = first.checked_add(dim.map_or(1, |(_, own)| own))?;
            if first < 0 || end > *extent {
                return None;
            }
            dims.push((dim, first));
        }
        is_skipped(next, own.len())?;
        Some(Self {
            source,
            dims,
            shape,
        })
    }

    /// The source, and the place there of what the slice has at a place; `None` where extents are no multiples of the slice's.
    pub(super) fn through(&self, place: &Place) -> Option<(Val<'c>, Place)> {
        let own = self.dims.iter().zip(&self.shape);
        let own = own.map(|((dim, first), &extent)| match *dim {
            None => Some(vec![Digit::fixed(extent, *first)]),
            Some((dim, own)) => {
                let index = place.get(dim)?;
                let whole = extent % own == 0 && first % own == 0;
                let above = Digit::fixed(extent / own, first / own);
                whole.then(|| [above].into_iter().chain(index.iter().copied()).collect())
            }
        });
        Some((self.source, own.collect::<Option<_>>()?))
    }

    /// The elements of the source that the slice has at a place.
    pub(super) fn read(&self, place: &Place) -> Option<Read<'c>> {
        let own = self.dims.iter().map(|(dim, _)| match *dim {
            None => Some(Index::new()),
            Some((dim, _)) => place.get(dim).cloned(),
        });
        let mut read = Read::of(self.source, &own.collect::<Option<Place>>()?)?;
        let mut stride = 1i64;
        for ((_, first), extent) in self.dims.iter().zip(&self.shape).rev() {
            read.first = read.first.checked_add(first.checked_mul(stride)?)?;
            stride = stride.checked_mul(*extent)?;
        }
        Some(read)
    }
}

/// A loop's index and what is added to it; no loop where it is a number alone.
fn shifted(value: Val<'_>) -> Option<(Option<usize>, i64)> {
    let op = defining(value)?;
    let number = |name| op.attribute(name).ok().and_then(attribute::integer);
    match (name(op).as_str(), operands(op).as_slice()) {
        ("linalg.index", _) => Some((usize::try_from(number("dim")?).ok(), 0)),
        ("arith.constant", _) => Some((None, number("value")?)),
        ("arith.addi", &[a, b]) => match (shifted(a)?, shifted(b)?) {
            ((Some(_), _), (Some(_), _)) => None,
            ((a, first), (b, second)) => Some((a.or(b), first.checked_add(second)?)),
        },
        _ => None,
    }
}
