//! Updates that are combined with elements. Few are gone through for each element; of many, those of each element are brought to one
//! place first.

use super::Scatter;
use crate::build::Code;
use crate::convert::contraction::{accumulator, with_element};
use crate::error::PassResult;
use crate::generalize::generic::{Nest, elementwise, extract, sizes_of};
use crate::ir::{Builder, TensorType, Val};
use melior::ir::{Type, ValueLike};

/// Updates that are gone through for each element, at most.
const FEW: i64 = 16;

impl<'c> Scatter<'c> {
    /// The tensor with its updates combined with it, in their order; 16-bit floats in f32.
    ///
    /// # Errors
    /// As [`Self::sorted`], and when building fails.
    pub(super) fn combined(&self, builder: &Builder<'c>, how: &str) -> PassResult<'c, Val<'c>> {
        let own = builder.tensor_of(self.original)?;
        let element = accumulator(builder, own.element);
        // A dynamic number of them is negative here.
        let is_few = (1..=FEW).contains(&self.count());
        let made = match is_few {
            true => self.gone_through(builder, element, how)?,
            false => self.brought_together(builder, element, how)?,
        };
        with_element(builder, made, own.element)
    }

    /// Each element goes through all updates that could be its own.
    fn gone_through(
        &self,
        builder: &Builder<'c>,
        element: Type<'c>,
        how: &str,
    ) -> PassResult<'c, Val<'c>> {
        let free = self.free();
        let shape = builder.tensor_of(self.original)?.shape;
        let rank = shape.len();
        let loop_of = |digit: usize| match free.iter().position(|own| *own == digit) {
            Some(place) => rank + place,
            None => self.dim_of(digit).unwrap_or(0),
        };
        let of_updates = (0..self.digits.len()).map(loop_of).chain(self.windows());
        let mut read = self.indices(loop_of);
        read.push((self.updates, of_updates.collect()));
        let nest = Nest {
            loops: rank + free.len(),
            read: &read,
            init: with_element(builder, self.original, element)?,
        };
        nest.build(builder, |inner, of| {
            let Some((&so_far, of)) = of.split_last() else {
                return Ok(self.original);
            };
            let Some((&update, of)) = of.split_last() else {
                return Ok(so_far);
            };
            let hit = self.is_hit(inner, of, |dim| dim)?;
            let update = wide(inner, update, element)?;
            let combined = inner.value(how, &[so_far, update], element, &[])?;
            inner.value("arith.select", &[hit, combined, so_far], element, &[])
        })
    }

    /// Each element goes through its own updates, which lie one after another in an order.
    fn brought_together(
        &self,
        builder: &Builder<'c>,
        element: Type<'c>,
        how: &str,
    ) -> PassResult<'c, Val<'c>> {
        let sorted = self.sorted(builder)?;
        let tensor = TensorType {
            element,
            ..builder.tensor_of(self.original)?
        };
        let sizes = sizes_of(builder, self.original)?;
        elementwise(builder, &tensor, &sizes, |inner, at| {
            let [begin, end] = self.span(inner, &sorted, at)?;
            let bounds = [begin, end, inner.index(1)?];
            let first = wide(inner, extract(inner, self.original, at)?, element)?;
            let code = Code { builder: *inner };
            let made = code.for_range(bounds, &[first], |turn, rank, so_far| {
                let turn = &turn.builder;
                let place = [&self.batch(at)[..], &[rank]].concat();
                let number = extract(turn, sorted.numbers, &place)?;
                let index = self.index_of_update(turn, at, number)?;
                let update = wide(turn, extract(turn, self.updates, &index)?, element)?;
                let so_far = so_far.first().copied().unwrap_or(first);
                let combined = turn.value(how, &[so_far, update], element, &[])?;
                Ok(vec![combined])
            })?;
            Ok(made.first().copied().unwrap_or(first))
        })
    }
}

/// A scalar in this type.
fn wide<'c>(builder: &Builder<'c>, value: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
    match value.r#type() == to {
        true => Ok(value),
        false => builder.value("arith.extf", &[value], to, &[]),
    }
}
