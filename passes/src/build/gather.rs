//! Building what thread groups of a cluster gather.

use super::Code;
use crate::PassResult;
use crate::ir::{Val, types, value};
use axe_dialect::ops::{self, AllGatherOp};
use axe_dialect::{SpaceAttribute, element_type, memref_type};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// Words of a vector in shared memory at most.
const VECTOR_WORDS: i64 = 4;

/// Slots of what is gathered in a loop, which turns take by turns.
const SLOTS: i64 = 2;

/// The 32-bit words of a row that has elements of so many bits, as vectors are stored.
fn words_of_row(bits: impl Iterator<Item = u32>) -> i64 {
    match bits.map(|bits| 1 + i64::from(bits > 32)).sum() {
        few @ ..3 => few,
        many => (many + VECTOR_WORDS - 1) / VECTOR_WORDS * VECTOR_WORDS,
    }
}

impl<'c> Code<'c> {
    /// `axe.all_gather.create`: for values of these types of so many thread groups, once or in a loop.
    ///
    /// # Errors
    /// When building fails.
    pub fn all_gather_create(
        &self,
        (groups, elements): (i64, &[Type<'c>]),
        in_loop: bool,
    ) -> PassResult<'c, Val<'c>> {
        let i32 = self
            .builder
            .r#type(|context| IntegerType::new(context, 32).into());
        let location = self.builder.location;
        let bits = elements
            .iter()
            .map(|element| types::bits(*element).unwrap_or(32));
        let slots = in_loop.then_some(SLOTS);
        let rows = [groups, words_of_row(bits)];
        let shape: Vec<_> = slots.into_iter().chain(rows).collect();
        let shared = SpaceAttribute::new(location, "shared");
        let r#type = memref_type(location, &shape, i32, None, shared)
            .ok_or_else(|| super::layout_error(location, "no storage of rows"))?;
        self.builder.value(ops::ALL_GATHER_CREATE, &[], r#type, &[])
    }

    /// `axe.all_gather`: what all thread groups have, in the layout of `r#type` gives a type for an element's.
    ///
    /// # Errors
    /// When building fails.
    pub fn all_gather(
        &self,
        sources: &[Val<'c>],
        through: Val<'c>,
        r#type: impl Fn(Type<'c>) -> PassResult<'c, Type<'c>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let types = sources
            .iter()
            .map(|source| r#type(element_type(source.r#type())))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let operands = AllGatherOp::operands(sources, through);
        let op = self.builder.operator(&operands, &types, &[])?;
        Ok(value::results(op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_vectors() {
        for (bits, words) in [
            (vec![16], 1),
            (vec![64], 2),
            (vec![32, 64], 4),
            (vec![64, 64, 32], 8),
        ] {
            assert_eq!(words_of_row(bits.into_iter()), words);
        }
    }
}
