//! Rows of many elements in order: blocks by ranks, then longer and longer runs by merging two. A place of a merged run finds its element by a
//! binary search along its diagonal (merge path), so that kernels write each element once.

use super::{Before, Rows, is_before};
use crate::PassResult;
use crate::build::Code;
use crate::generalize::generic::{all, elementwise, extract};
use crate::ir::{Builder, Int, Ints, Predicate, TensorType, Val};
use melior::ir::ValueLike;

/// Elements of a block: each is compared with all of its block, twice.
pub(super) const BLOCK: i64 = 128;

/// Elements by their numbers, in rows of `extent` that are padded behind their last ones.
struct Elements<'a, 'c> {
    tensor: Val<'c>,
    extent: i64,
    before: Before<'a, 'c>,
}

impl<'c> Rows<'_, 'c> {
    /// The number of the element of each place, of rows of static extent: `[..., places]` of i32, with as many places as blocks have.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn merged(
        &self,
        tensor: Val<'c>,
        before: Before<'_, 'c>,
    ) -> PassResult<'c, Val<'c>> {
        let (&extent, rows) = self.shape.split_last().unwrap_or((&1, &[]));
        let elements = Elements {
            tensor,
            extent,
            before,
        };
        let blocks = extent.max(1).unsigned_abs().div_ceil(BLOCK.unsigned_abs());
        let places = BLOCK << blocks.next_power_of_two().trailing_zeros();
        let places = TensorType {
            shape: [rows, &[places]].concat(),
            element: self.i32(),
            encoded: false,
        };
        let ranks = elementwise(self.builder, &places, self.sizes, |inner, at| {
            elements.rank_in_block(inner, at)
        })?;
        let mut numbers = elementwise(self.builder, &places, self.sizes, |inner, at| {
            of_rank_in_block(inner, ranks, at)
        })?;
        let mut run = BLOCK;
        while Some(&run) < places.shape.last() {
            numbers = elementwise(self.builder, &places, self.sizes, |inner, at| {
                elements.merged(inner, (numbers, run), at)
            })?;
            run *= 2;
        }
        Ok(numbers)
    }
}

impl<'c> Elements<'_, 'c> {
    /// Whether an element comes before another one, by their indices: all come before padding.
    fn is_before(
        &self,
        builder: &Builder<'c>,
        batch: &[Val<'c>],
        [one, other]: [Int<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let ints = builder.ints();
        let last = Int::Known(self.extent - 1);
        let of = |own: Int<'c>| {
            let index = ints.value(ints.min(own, last)?)?;
            extract(builder, self.tensor, &[batch, &[index]].concat())
        };
        let in_front = ints.less(one, other)?;
        let elements = [of(one)?, of(other)?];
        let is_before = is_before(builder, self.before, elements, in_front)?;
        let padded = ints.less(last, ints.max(one, other)?)?;
        let operands = [padded, in_front, is_before];
        builder.value("arith.select", &operands, in_front.r#type(), &[])
    }

    /// How many elements of its block come before the one at an index.
    fn rank_in_block(&self, builder: &Builder<'c>, at: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let Some((own, batch)) = at.split_last() else {
            return builder.index(0);
        };
        let (own, begin) = (Int::Value(*own), begin_of(builder, *own, BLOCK)?);
        counted(builder, |inner, turn, before| {
            let ints = inner.ints();
            let other = ints.add(begin, Int::Value(turn))?;
            let is_before = self.is_before(inner, batch, [other, own])?;
            let narrow = Ints::new(*inner, 32);
            let more = narrow.add(before, Int::Known(1))?;
            narrow.select(is_before, more, before)
        })
    }

    /// The element at a place of a run that two runs of `numbers` are merged to.
    fn merged(
        &self,
        builder: &Builder<'c>,
        (numbers, run): (Val<'c>, i64),
        at: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let Some((own, batch)) = at.split_last() else {
            return Ok(numbers);
        };
        let ints = builder.ints();
        let begin = begin_of(builder, *own, run.saturating_mul(2))?;
        let place = ints.sub(Int::Value(*own), begin)?;
        let length = Int::Known(run);
        // The element of each run at a place that is brought into it.
        let of = |inner: &Builder<'c>, second: bool, place: Int<'c>| {
            let ints = inner.ints();
            let place = ints.min(ints.max(place, Int::ZERO)?, Int::Known(run - 1))?;
            let from = if second {
                ints.add(begin, length)?
            } else {
                begin
            };
            let index = ints.value(ints.add(from, place)?)?;
            let number = extract(inner, numbers, &[batch, &[index]].concat())?;
            ints.cast(Int::Value(number))
        };
        // How many of the first run's elements are in front of the place: between what the second one leaves over and all.
        let least = ints.max(ints.sub(place, length)?, Int::ZERO)?;
        let ends = [ints.value(least)?, ints.value(ints.min(place, length)?)?];
        let steps = i64::from(run.ilog2()) + 1;
        let bounds = [builder.index(0)?, builder.index(steps)?, builder.index(1)?];
        let code = Code { builder: *builder };
        let found = code.for_range(bounds, &ends, |turn, _, ends| {
            let inner = &turn.builder;
            let ints = inner.ints();
            let &[low, high] = ends else {
                return Ok(ends.to_vec());
            };
            let (low, high) = (Int::Value(low), Int::Value(high));
            let middle = ints.div(ints.add(low, high)?, 2)?;
            let across = ints.sub(ints.sub(place, Int::Known(1))?, middle)?;
            let both = [of(inner, false, middle)?, of(inner, true, across)?];
            let is_before = self.is_before(inner, batch, both)?;
            let is_open = ints.less(low, high)?;
            let after = all(inner, &[is_open, is_before])?.unwrap_or(is_before);
            let next = ints.select(after, ints.add(middle, Int::Known(1))?, low)?;
            let end = ints.select(is_before, high, middle)?;
            let end = ints.select(is_open, end, high)?;
            Ok(vec![ints.value(next)?, ints.value(end)?])
        })?;
        let first = found.first().map_or(Int::ZERO, |own| Int::Value(*own));
        let second = ints.sub(place, first)?;
        let both = [of(builder, false, first)?, of(builder, true, second)?];
        let is_before = self.is_before(builder, batch, both)?;
        let is_left = ints.less(first, length)?;
        let is_only = ints.compare(Predicate::AtLeast, second, length)?;
        let is_first = builder.value("arith.ori", &[is_before, is_only], is_left.r#type(), &[])?;
        let is_first = all(builder, &[is_left, is_first])?.unwrap_or(is_first);
        let [one, other] = both;
        let narrow = Ints::new(*builder, 32);
        narrow.value(narrow.cast(ints.select(is_first, one, other)?)?)
    }
}

/// The element of a block whose rank in it is the place of this index.
fn of_rank_in_block<'c>(
    builder: &Builder<'c>,
    ranks: Val<'c>,
    at: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let Some((own, batch)) = at.split_last() else {
        return Ok(ranks);
    };
    let ints = builder.ints();
    let begin = begin_of(builder, *own, BLOCK)?;
    let narrow = Ints::new(*builder, 32);
    let place = narrow.cast(ints.sub(Int::Value(*own), begin)?)?;
    counted(builder, |inner, turn, found| {
        let ints = inner.ints();
        let narrow = Ints::new(*inner, 32);
        let index = ints.add(begin, Int::Value(turn))?;
        let rank = extract(inner, ranks, &[batch, &[ints.value(index)?]].concat())?;
        let here = narrow.compare(Predicate::Equal, Int::Value(rank), place)?;
        narrow.select(here, narrow.cast(index)?, found)
    })
}

/// A number of i32, zero first, that goes through the turns of a block.
fn counted<'c>(
    builder: &Builder<'c>,
    turn: impl FnOnce(&Builder<'c>, Val<'c>, Int<'c>) -> PassResult<'c, Int<'c>>,
) -> PassResult<'c, Val<'c>> {
    let first = Ints::new(*builder, 32).value(Int::ZERO)?;
    let code = Code { builder: *builder };
    let made = code.for_each(builder.index(BLOCK)?, 1, &[first], |inner, at, so_far| {
        let so_far = so_far.first().copied().unwrap_or(first);
        let next = turn(&inner.builder, at, Int::Value(so_far))?;
        Ok(vec![Ints::new(inner.builder, 32).value(next)?])
    })?;
    Ok(made.first().copied().unwrap_or(first))
}

/// Where the run of so many elements begins that an index is in.
fn begin_of<'c>(builder: &Builder<'c>, at: Val<'c>, run: i64) -> PassResult<'c, Int<'c>> {
    let ints = builder.ints();
    ints.mul(ints.div(Int::Value(at), run)?, run)
}
