//! The order of rows' elements. Kernels write each element once, so a place in the order finds its element.

mod merged;
mod ranks;

use crate::error::PassResult;
use crate::ir::{Builder, Val};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use merged::BLOCK;

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
    pub(in crate::convert) fn order(
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

    fn i32(&self) -> Type<'c> {
        self.builder
            .r#type(|context| IntegerType::new(context, 32).into())
    }
}

/// Whether an element comes before another one: as `before` says, and where that says neither, as they lie.
///
/// # Errors
/// When building fails, or those of `before`.
fn is_before<'c>(
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
