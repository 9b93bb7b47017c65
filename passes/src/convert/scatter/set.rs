//! Updates that take the place of elements: the last one of each element is found, and read where there is one.

use super::{Scatter, i32_type};
use crate::convert::order::compared;
use crate::error::PassResult;
use crate::generalize::generic::{
    Nest, apply, compare, elementwise, empty, extract, filled, index_of, sizes_of,
};
use crate::ir::{Builder, DYNAMIC, Int, Ints, Predicate, Val};

/// Updates that are looked at for all elements, at most, where sorting them first takes fewer comparisons.
const MOST_SEARCHED: i64 = 1 << 24;
/// Comparisons that take as long as a step of a binary search, which loads a number and what it names.
const STEP: i64 = 8;

impl<'c> Scatter<'c> {
    /// The tensor with its updates.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn set(&self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        match self.is_sorted_sooner(builder)? {
            true => self.set_of_sorted(builder),
            false => self.set_of_last(builder),
        }
    }

    /// Whether it takes fewer comparisons to put updates in order first than to look at all of them for each element.
    fn is_sorted_sooner(&self, builder: &Builder<'c>) -> PassResult<'c, bool> {
        let count = self.count();
        let Some(elements) = self.elements(builder)?.filter(|_| count != DYNAMIC) else {
            return Ok(false);
        };
        let rows = self.extents(&self.shared()).into_iter();
        let all = |own: i64| rows.clone().fold(own, i64::saturating_mul);
        let searched = all(count.saturating_mul(elements));
        let steps = i64::from(count.max(1).ilog2()) + 1;
        let sorted = all(count).saturating_mul(compared(count));
        let found = all(elements).saturating_mul(steps * STEP);
        Ok(searched > MOST_SEARCHED && searched > sorted.saturating_add(found))
    }

    fn set_of_last(&self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        let last = self.last(builder)?;
        self.chosen(builder, |inner, at| {
            let dims = self.data.iter().filter_map(|own| at.get(own.dim).copied());
            let place = [self.batch(at), dims.collect()].concat();
            let number = extract(inner, last, &place)?;
            let zero = Ints::new(*inner, 32).value(Int::ZERO)?;
            Ok((compare(inner, Predicate::AtLeast, number, zero)?, number))
        })
    }

    fn set_of_sorted(&self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        let sorted = self.sorted(builder)?;
        self.chosen(builder, |inner, at| {
            let [begin, end] = self.span(inner, &sorted, at)?;
            let hit = compare(inner, Predicate::Less, begin, end)?;
            let ints = inner.ints();
            let last = ints.sub(Int::Value(end), Int::Known(1))?;
            // What is read where there is none is not used.
            let last = ints.value(ints.max(last, Int::ZERO)?)?;
            let place = [&self.batch(at)[..], &[last]].concat();
            Ok((hit, extract(inner, sorted.numbers, &place)?))
        })
    }

    /// The update of an element where it has one, by its number among those that differ in free digits.
    fn chosen(
        &self,
        builder: &Builder<'c>,
        find: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> PassResult<'c, (Val<'c>, Val<'c>)>,
    ) -> PassResult<'c, Val<'c>> {
        let tensor = builder.tensor_of(self.original)?;
        let sizes = sizes_of(builder, self.original)?;
        elementwise(builder, &tensor, &sizes, |inner, at| {
            let (hit, number) = find(inner, at)?;
            inner.choose(
                hit,
                |inner| {
                    let index = self.index_of_update(inner, at, number)?;
                    extract(inner, self.updates, &index)
                },
                |inner| extract(inner, self.original, at),
            )
        })
    }

    /// The number of the last update of each element, among those that differ in free digits; -1 where there is none. Its dimensions are those
    /// of the digits that indices depend on, and those whose indices are data.
    fn last(&self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        let (shared, free) = (self.shared(), self.free());
        let original = builder.tensor_of(self.original)?.shape;
        let of_data = self.data.iter().filter_map(|own| original.get(own.dim));
        let shape: Vec<_> = self
            .extents(&shared)
            .into_iter()
            .chain(of_data.copied())
            .collect();
        let rank = shape.len();
        let read = self.indices(|digit| match free.iter().position(|own| *own == digit) {
            Some(place) => rank + place,
            None => shared.iter().position(|own| *own == digit).unwrap_or(0),
        });
        let mut sizes = Vec::new();
        for own in &self.data {
            if original.get(own.dim) == Some(&DYNAMIC) {
                sizes.push(builder.extent(self.original, own.dim)?);
            }
        }
        let element = i32_type(builder);
        let init = empty(builder, (&shape, element), &sizes)?;
        let ints = Ints::new(*builder, 32);
        let none = ints.value(Int::Known(-1))?;
        let nest = Nest {
            loops: rank + free.len(),
            read: &read,
            init: match free.is_empty() {
                true => init,
                false => filled(builder, init, none)?,
            },
        };
        nest.build(builder, |inner, of| {
            let place = |dim: usize| self.data.iter().position(|own| own.dim == dim);
            let hit = self.is_hit(inner, of, |dim| shared.len() + place(dim).unwrap_or(0))?;
            let number = self.number(inner, rank, &free)?;
            let selected = [hit, number, none];
            let number = inner.value("arith.select", &selected, element, &[])?;
            match (free.is_empty(), of.last()) {
                (false, Some(so_far)) => apply(inner, "arith.maxsi", *so_far, number),
                _ => Ok(number),
            }
        })
    }

    /// The number that the loops over free digits, from `first` on, are at, in i32.
    fn number(
        &self,
        builder: &Builder<'c>,
        first: usize,
        free: &[usize],
    ) -> PassResult<'c, Val<'c>> {
        let ints = builder.ints();
        let mut number = Int::ZERO;
        for (place, extent) in self.extents(free).into_iter().enumerate() {
            let own = Int::Value(index_of(builder, first + place)?);
            number = match place {
                0 => own,
                _ => ints.add(ints.mul(number, extent)?, own)?,
            };
        }
        let ints = Ints::new(*builder, 32);
        let number = ints.cast(number)?;
        ints.value(number)
    }
}
