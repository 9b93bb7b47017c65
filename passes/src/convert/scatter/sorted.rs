//! Updates in the order of the elements that they are of: those of an element are found by a binary search.

use super::{Scatter, i32_type};
use crate::build::Code;
use crate::convert::order::Rows;
use crate::convert::unsupported;
use crate::error::PassResult;
use crate::fuse::reshape::reshape;
use crate::generalize::generic::{Nest, all, apply, compare, elementwise, empty, extract};
use crate::ir::{Builder, DYNAMIC, Int, Ints, Predicate, TensorType, Val, types};
use melior::ir::ValueLike;

/// Updates that agree in the digits that are shared, in the order of the elements that they are of, and in their own among those of one.
pub(super) struct Sorted<'c> {
    /// `[shared digits..., updates]`: the update of each rank.
    pub(super) numbers: Val<'c>,
    /// `[shared digits..., elements + 1]`: the first rank of each element.
    begins: Val<'c>,
}

impl<'c> Scatter<'c> {
    /// The updates, sorted.
    ///
    /// # Errors
    /// For dimensions of data that are dynamic or too many elements, and when building fails.
    pub(super) fn sorted(&self, builder: &Builder<'c>) -> PassResult<'c, Sorted<'c>> {
        let elements = self.elements(builder)?;
        let elements = elements.filter(|own| *own < i64::from(i32::MAX));
        let Some(elements) = elements else {
            return Err(unsupported(
                self.op,
                "expected fewer than 2^31 elements of static extents along the dimensions of 'dimension_map'",
            ));
        };
        let shared = self.extents(&self.shared());
        let count = self.count();
        let of_rows = [&shared[..], &[count]].concat();
        let sizes = self.sizes(builder)?;
        let rows = Rows {
            builder,
            shape: &of_rows,
            sizes: &sizes,
        };
        let keys = self.keys(builder, &of_rows, elements)?;
        let numbers = rows.order(keys, count, &|inner, one, other| {
            compare(inner, Predicate::Less, one, other)
        })?;
        let begins = TensorType {
            shape: [&shared[..], &[elements + 1]].concat(),
            element: i32_type(builder),
            encoded: false,
        };
        let begins = elementwise(builder, &begins, &[], |inner, at| {
            first_of(inner, [keys, numbers], count, at)
        })?;
        Ok(Sorted { numbers, begins })
    }

    /// Updates that differ in free digits alone.
    pub(super) fn count(&self) -> i64 {
        let free = self.extents(&self.free());
        match free.contains(&DYNAMIC) {
            true => DYNAMIC,
            false => free.iter().product(),
        }
    }

    /// Elements along the dimensions whose indices are data, where they are known.
    pub(super) fn elements(&self, builder: &Builder<'c>) -> PassResult<'c, Option<i64>> {
        let shape = builder.tensor_of(self.original)?.shape;
        let mut extents = self.data.iter().filter_map(|own| shape.get(own.dim));
        let known = |own: &i64| *own != DYNAMIC;
        Ok(extents.try_fold(1i64, |all, own| {
            all.checked_mul(*own).filter(|_| known(own))
        }))
    }

    /// The first rank of the updates of an element, and the rank behind its last one.
    pub(super) fn span(
        &self,
        builder: &Builder<'c>,
        sorted: &Sorted<'c>,
        at: &[Val<'c>],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let shape = builder.tensor_of(self.original)?.shape;
        let ints = builder.ints();
        let mut number = Int::ZERO;
        for data in &self.data {
            let extent = shape.get(data.dim).copied().unwrap_or(1);
            let own = at.get(data.dim).map_or(Int::ZERO, |own| Int::Value(*own));
            number = ints.add(ints.mul(number, extent)?, own)?;
        }
        let batch = self.batch(at);
        let bound = |of_element: Int<'c>| {
            let place = [&batch[..], &[ints.value(of_element)?]].concat();
            let rank = extract(builder, sorted.begins, &place)?;
            ints.value(ints.cast(Int::Value(rank))?)
        };
        Ok([bound(number)?, bound(ints.add(number, Int::Known(1))?)?])
    }

    /// The indices of an element that are digits which indices depend on.
    pub(super) fn batch(&self, at: &[Val<'c>]) -> Vec<Val<'c>> {
        let shared = self.shared().into_iter();
        let dims = shared.filter_map(|digit| self.dim_of(digit));
        dims.filter_map(|dim| at.get(dim).copied()).collect()
    }

    /// The number of each update's element, in i32, `elements` where it has none: `[shared digits..., updates]`.
    fn keys(&self, builder: &Builder<'c>, shape: &[i64], elements: i64) -> PassResult<'c, Val<'c>> {
        let (shared, free) = (self.shared(), self.free());
        let of_original = builder.tensor_of(self.original)?.shape;
        let order = [&shared[..], &free[..]].concat();
        let loop_of = |digit| order.iter().position(|own| *own == digit).unwrap_or(0);
        let sizes = self.sizes(builder)?;
        let nest = Nest {
            loops: order.len(),
            read: &self.indices(loop_of),
            init: empty(builder, (&self.extents(&order), i32_type(builder)), &sizes)?,
        };
        let keys = nest.build(builder, |inner, of| {
            let ints = Ints::new(*inner, 32);
            let (mut key, mut inside) = (Int::ZERO, Vec::new());
            for (data, index) in self.data.iter().zip(of) {
                let extent = of_original.get(data.dim).copied().unwrap_or(1);
                let wide = Ints::new(*inner, types::bits(index.r#type()).unwrap_or(64));
                let index = Int::Value(*index);
                inside.push(wide.compare(Predicate::AtLeast, index, Int::ZERO)?);
                inside.push(wide.compare(Predicate::Less, index, Int::Known(extent))?);
                key = ints.add(ints.mul(key, extent)?, ints.cast(index)?)?;
            }
            let none = ints.value(Int::Known(elements))?;
            match all(inner, &inside)? {
                Some(inside) => ints.value(ints.select(inside, key, Int::Value(none))?),
                None => ints.value(Int::ZERO),
            }
        })?;
        reshape(builder, keys, shape, sizes.first().copied())
    }
}

/// How many updates of a row of `extent`, in order, are of elements before this one: `at` is the row and the element.
fn first_of<'c>(
    builder: &Builder<'c>,
    [keys, numbers]: [Val<'c>; 2],
    extent: i64,
    at: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let Some((element, batch)) = at.split_last() else {
        return Ok(keys);
    };
    let narrow = Ints::new(*builder, 32);
    let element = narrow.cast(Int::Value(*element))?;
    let count = match extent {
        DYNAMIC => Int::Value(builder.extent(keys, batch.len())?),
        known => Int::Known(known),
    };
    // The updates that a number of 31 bits counts, or as many as there are.
    let bits = if extent == DYNAMIC {
        31
    } else {
        64 - extent.leading_zeros()
    };
    // In a loop: as one expression it would be as large as two to the number of its steps.
    let [zero, one] = [builder.index(0)?, builder.index(1)?];
    let bounds = [zero, builder.index(i64::from(bits))?, one];
    let of = Code { builder: *builder }.for_range(bounds, &[zero], |inner, turn, before| {
        let inner = &inner.builder;
        let before = before.first().copied().unwrap_or(zero);
        let ints = inner.ints();
        let first = inner.index(1 << (bits - 1))?;
        let step = apply(inner, "arith.shrui", first, turn)?;
        let more = ints.add(Int::Value(before), Int::Value(step))?;
        let is_inside = ints.compare(Predicate::AtLeast, count, more)?;
        let goes_on = inner.choose(
            is_inside,
            |inner| {
                let ints = inner.ints();
                let place = ints.value(ints.sub(more, Int::Known(1))?)?;
                let own = extract(inner, numbers, &[batch, &[place]].concat())?;
                let own = ints.value(ints.cast(Int::Value(own))?)?;
                let key = extract(inner, keys, &[batch, &[own]].concat())?;
                Ints::new(*inner, 32).compare(Predicate::Less, Int::Value(key), element)
            },
            |inner| inner.constant(inner.parsed("false")?),
        )?;
        let next = ints.select(goes_on, more, Int::Value(before))?;
        Ok(vec![ints.value(next)?])
    })?;
    let before = of.first().copied().unwrap_or(zero);
    narrow.value(narrow.cast(Int::Value(before))?)
}
