//! The order of few elements, found by comparing each with all others: kernels write each element once, so an element finds its place, and a
//! place its element.

use super::merged::BLOCK;
use crate::error::PassResult;
use crate::generalize::generic::{Nest, apply, empty, filled, index_of};
use crate::ir::{Builder, DYNAMIC, Int, Ints, Predicate, Val};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// Elements of a row that are all compared with each other, at most. More are merged: it takes one kernel for every doubling.
const MOST_RANKED: i64 = 2048;

/// With how many elements of a row of this extent each is compared where they are put in order.
pub(super) fn compared(extent: i64) -> i64 {
    match extent > MOST_RANKED {
        true => 2 * BLOCK,
        false => 2 * extent,
    }
}

/// Whether an element comes before another one.
pub(super) type Before<'a, 'c> =
    &'a dyn Fn(&Builder<'c>, Val<'c>, Val<'c>) -> PassResult<'c, Val<'c>>;

/// Rows of elements, along the last dimension of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, 'c> {
    pub(super) builder: &'a Builder<'c>,
    /// The tensor's extents, and those that are dynamic.
    pub(super) shape: &'a [i64],
    pub(super) sizes: &'a [Val<'c>],
}

impl<'c> Rows<'_, 'c> {
    /// The number of the element of each of the first `places` of a row in order, in i32; of more where rows are long. `before` says which of two
    /// elements comes first, where one does; of others the one in front does.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn order(
        &self,
        tensor: Val<'c>,
        places: i64,
        before: Before<'_, 'c>,
    ) -> PassResult<'c, Val<'c>> {
        match self.shape.last() {
            Some(&extent) if extent > MOST_RANKED => self.merged(tensor, before),
            _ => self.by_rank(self.ranks(tensor, before)?, places),
        }
    }

    /// How many elements of its row come before each.
    fn ranks(&self, tensor: Val<'c>, before: Before<'_, 'c>) -> PassResult<'c, Val<'c>> {
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
            let indices = [last + 1, last].map(|at| index_of(inner, at));
            let [one, two] = indices;
            let in_front = ints.less(Int::Value(one?), Int::Value(two?))?;
            let counts = is_before(inner, before, [other, own], in_front)?;
            let one = inner.value("arith.extui", &[counts], self.i32(), &[])?;
            apply(inner, "arith.addi", so_far, one)
        })
    }

    /// For each of the first places the element that has it: the inverse of [`Self::ranks`].
    fn by_rank(&self, ranks: Val<'c>, places: i64) -> PassResult<'c, Val<'c>> {
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

    pub(super) fn i32(&self) -> Type<'c> {
        self.builder
            .r#type(|context| IntegerType::new(context, 32).into())
    }
}

/// Whether an element comes before another one: as `before` says, and where that says neither, as they lie.
///
/// # Errors
/// When building fails, or those of `before`.
pub(super) fn is_before<'c>(
    builder: &Builder<'c>,
    before: Before<'_, 'c>,
    [one, other]: [Val<'c>; 2],
    in_front: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let [is_before, is_behind] = [before(builder, one, other)?, before(builder, other, one)?];
    let bit = in_front.r#type();
    let yes = builder.constant(builder.parsed("true")?)?;
    let equal = builder.value("arith.xori", &[is_behind, yes], bit, &[])?;
    let equal = builder.value("arith.andi", &[equal, in_front], bit, &[])?;
    builder.value("arith.ori", &[is_before, equal], bit, &[])
}
