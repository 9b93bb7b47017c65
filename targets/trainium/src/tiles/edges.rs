//! Where boxes reach outside their tensors: the iterations of a loop in which each has one size inside its source.

use super::index::Range;
use super::loops::{Level, Nest};
use super::lowering::{Lowering, failed};
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::types::{is_memref, shape};
use axe_passes::ir::value::{defined_by, name, only_result, operands};
use axe_passes::ir::{Op, Val, walk};
use axe_trn::program::Expr;
use melior::ir::ValueLike;

/// Parts that a loop is cut into at most.
const MOST_PARTS: usize = 32;
/// Iterations that are looked at one by one at most.
const MOST_TRIPS: i64 = 1 << 16;

impl<'c> Lowering<'c> {
    /// The parts of a loop, in each of which boxes have one size inside their sources, as far as this loop decides it.
    pub(super) fn parts(
        &mut self,
        nest: &Nest<'_, 'c>,
        level: &Level,
        bound: &[Expr],
    ) -> PassResult<'c, Vec<(i64, i64)>> {
        let (lower, upper) = (level.lower, level.upper);
        let inside = walk::nested(nest.op, &|_| true).into_iter();
        let boxes: Vec<Op<'c>> = inside.filter(|op| name(*op) == ops::SLICE).collect();
        if upper <= lower || self.settled(nest, &boxes, bound, (lower, level.last(lower, upper))) {
            return Ok(vec![(lower, upper)]
                .into_iter()
                .filter(|_| lower < upper)
                .collect());
        }
        let trips = (upper - 1 - lower) / level.step + 1;
        let too_many = || {
            failed(
                nest.op,
                format!("boxes reach outside their tensors in more than {MOST_PARTS} ways"),
            )
        };
        if trips > MOST_TRIPS {
            return Err(too_many());
        }
        let mut parts: Vec<(i64, i64)> = Vec::new();
        let (mut begin, mut at) = (lower, lower);
        while at < upper {
            let alone = begin == at;
            if !alone && !self.settled(nest, &boxes, bound, (begin, at)) {
                parts.push((begin, at));
                begin = at;
                continue;
            }
            at += level.step;
            // One iteration whose boxes inner loops decide is a part of its own.
            if alone && !self.settled(nest, &boxes, bound, (begin, begin)) {
                parts.push((begin, at.min(upper)));
                begin = at;
            }
            if parts.len() > MOST_PARTS {
                return Err(too_many());
            }
        }
        if begin < upper {
            parts.push((begin, upper));
        }
        Ok(parts)
    }

    /// Whether every box has one size inside its source while the next level is in a range.
    fn settled(
        &mut self,
        nest: &Nest<'_, 'c>,
        boxes: &[Op<'c>],
        bound: &[Expr],
        next: Range,
    ) -> bool {
        for coordinate in nest.coordinates {
            let mut sum = Some((coordinate.constant, coordinate.constant));
            for (at, by) in &coordinate.terms {
                let range = match bound.get(*at) {
                    Some(expr) => self.indices.range(expr),
                    None if *at == bound.len() => Some(next),
                    None => {
                        let level = &nest.levels[*at];
                        Some((level.lower, level.last(level.lower, level.upper)))
                    }
                };
                sum = sum.zip(range).and_then(|((low, high), (first, last))| {
                    let (a, b) = (first.checked_mul(*by)?, last.checked_mul(*by)?);
                    Some((low.checked_add(a.min(b))?, high.checked_add(a.max(b))?))
                });
            }
            if let Some(range) = sum {
                self.indices.suppose(coordinate.value, range);
            }
        }
        let settled = boxes.iter().all(|slice| self.is_settled(*slice));
        self.indices.forget();
        settled
    }

    /// Whether a box has one size inside its source; one of which nothing is known is left to where it is lowered.
    fn is_settled(&self, slice: Op<'c>) -> bool {
        let Some(sizes) = only_result(slice).and_then(|result| shape(result.r#type())) else {
            return true;
        };
        let origins = operands(slice).len() - 1;
        let dropped = origins.saturating_sub(sizes.len());
        (0..origins).all(|dim| {
            let size = match dim.checked_sub(dropped) {
                Some(dim) => sizes[dim],
                None => 1,
            };
            let rest = self.rest_before(slice, dim);
            rest.is_none_or(|(low, high)| low.clamp(0, size) == high.clamp(0, size))
        })
    }

    /// The elements of a dimension of a box's source from the box's origin on.
    fn rest_before(&self, slice: Op<'c>, dim: usize) -> Option<Range> {
        let all = operands(slice);
        let (source, origin) = (*all.first()?, *all.get(dim + 1)?);
        let (low, high) = self.rest_of(source, dim)?;
        let (first, last) = self.indices.range_of(origin)?;
        Some((low.checked_sub(last)?, high.checked_sub(first)?))
    }

    /// The elements of a dimension of storage that are there.
    fn rest_of(&self, storage: Val<'c>, dim: usize) -> Option<Range> {
        let own = shape(storage.r#type())?;
        let extent = *own.get(dim).filter(|_| is_memref(storage.r#type()))?;
        if let Some(slice) = defined_by(storage, ops::SLICE) {
            let dropped = (operands(slice).len() - 1).checked_sub(own.len())?;
            let (low, high) = self.rest_before(slice, dim + dropped)?;
            return Some((low.min(extent), high.min(extent)));
        }
        Some((extent, extent))
    }
}
