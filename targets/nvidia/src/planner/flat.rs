//! Elements that nothing ties to rows, where they make up no whole vectors: all that do are moved in vectors, and the few behind
//! them one by one.

use super::layouts::layout;
use super::row_tile::{RowTile, tile_of_vectors};
use crate::facts::chip::ACCESS_BYTES;
use crate::vocabulary::WARP;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::ir::Int;

/// So many elements in one row, of which the last make up no vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flat {
    elements: i64,
    vector: i64,
}

impl Flat {
    /// Elements of so many bytes; none where they are whole vectors, or less than one.
    pub(super) fn of(elements: i64, bytes: i64) -> Option<Self> {
        let vector = (ACCESS_BYTES / bytes.max(1)).max(1);
        let flat = Self { elements, vector };
        (elements % vector != 0 && elements > vector).then_some(flat)
    }

    /// Those in vectors.
    pub(super) const fn whole(self) -> i64 {
        self.elements - self.elements % self.vector
    }

    /// The tile of those: of long rows, also where they are few.
    pub(super) fn tile(self, bytes: i64) -> RowTile {
        tile_of_vectors(i64::MAX / self.vector * self.vector, self.vector, bytes)
    }

    /// An argument without the others.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn in_vectors<'c>(
        self,
        code: Code<'c>,
        argument: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let sizes = [1, self.whole()];
        let strides = [self.elements, 1].map(Int::Known);
        let memref =
            code.reinterpret(argument.memref, &sizes.map(Int::Known), &strides, &[1, 1])?;
        Ok(Argument::global(memref, sizes.to_vec()))
    }

    /// A tile with room for the others.
    ///
    /// # Errors
    /// When its layout cannot be built.
    pub(super) fn rest(self, code: Code<'_>, threads: i64) -> PassResult<'_, Registers> {
        let lanes = [(WARP, 1, "lane")];
        let copies = [(threads / WARP, 1, "warp")];
        let lanes = layout(&lanes, &copies);
        let lanes = lanes.map_err(|error| layout_error(code.builder.location, error))?;
        registers(code, [1, WARP], lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_last_elements_are_in_vectors() {
        for (elements, bytes, whole) in [
            (1001, 2, Some(1000)),
            (1000, 2, None),
            (1002, 4, Some(1000)),
            (1001, 8, Some(1000)),
            (5, 2, None),
            (17, 1, Some(16)),
        ] {
            let flat = Flat::of(elements, bytes);
            assert_eq!(flat.map(Flat::whole), whole, "{elements} {bytes}");
            assert!(flat.is_none_or(|flat| elements - flat.whole() < WARP));
        }
    }
}
