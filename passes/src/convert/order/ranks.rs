//! Rows of few elements in order: each is compared with all others, and a place finds the element of its rank.

use super::{Before, Rows, is_before};
use crate::error::PassResult;
use crate::generalize::generic::{Nest, apply, empty, filled, index_of};
use crate::ir::{DYNAMIC, Int, Ints, Predicate, Val};

impl<'c> Rows<'_, 'c> {
    /// How many elements of its row come before each.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn ranks(&self, tensor: Val<'c>, before: Before<'_, 'c>) -> PassResult<'c, Val<'c>> {
        let last = self.shape.len().saturating_sub(1);
        let own: Vec<_> = (0..=last).collect();
        let other: Vec<_> = (0..last).chain([last + 1]).collect();
        let nest = Nest {
            loops: last + 2,
            read: &[(tensor, own), (tensor, other)],
            init: self.zeros(self.shape)?,
        };
        nest.build(self.builder, |inner, of| {
            let &[own, other, so_far] = of else {
                return Ok(tensor);
            };
            let ints = inner.ints();
            let [front, back] = [index_of(inner, last + 1)?, index_of(inner, last)?];
            let in_front = ints.less(Int::Value(front), Int::Value(back))?;
            let counts = is_before(inner, before, [other, own], in_front)?;
            let one = inner.value("arith.extui", &[counts], self.i32(), &[])?;
            apply(inner, "arith.addi", so_far, one)
        })
    }

    /// For each of the first places the element that has it: the inverse of [`Self::ranks`].
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn by_rank(&self, ranks: Val<'c>, places: i64) -> PassResult<'c, Val<'c>> {
        let last = self.shape.len().saturating_sub(1);
        let other: Vec<_> = (0..last).chain([last + 1]).collect();
        let shape = [self.shape.get(..last).unwrap_or_default(), &[places]].concat();
        let nest = Nest {
            loops: last + 2,
            read: &[(ranks, other)],
            init: self.zeros(&shape)?,
        };
        nest.build(self.builder, |inner, of| {
            let (Some(&rank), Some(&so_far)) = (of.first(), of.last()) else {
                return Ok(ranks);
            };
            let ints = Ints::new(*inner, 32);
            let place = ints.cast(Int::Value(index_of(inner, last)?))?;
            let here = ints.compare(Predicate::Equal, Int::Value(rank), place)?;
            let number = ints.cast(Int::Value(index_of(inner, last + 1)?))?;
            let number = ints.select(here, number, Int::ZERO)?;
            apply(inner, "arith.addi", so_far, ints.value(number)?)
        })
    }

    fn zeros(&self, shape: &[i64]) -> PassResult<'c, Val<'c>> {
        let dynamic = shape.iter().filter(|own| **own == DYNAMIC).count();
        let sizes = self.sizes.get(..dynamic).unwrap_or(self.sizes);
        let zero = Ints::new(*self.builder, 32).value(Int::ZERO)?;
        filled(
            self.builder,
            empty(self.builder, (shape, self.i32()), sizes)?,
            zero,
        )
    }
}
