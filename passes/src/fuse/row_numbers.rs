//! Which rows of a tensor in memory those of a space are, where these are not the rows of the same numbers: data names them, or they are some of each block
//! of rows (`x[:, 1:]`).

use crate::ir::{Builder, Int, Ints, Val, types};
use crate::{PassError, PassResult};
use axe_dialect::element_type;
use melior::ir::ValueLike;

/// Rows of blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How many of each block follow each other.
    pub count: i64,
    /// Rows from one block to the next.
    pub apart: i64,
    /// The first of a block's.
    pub first: i64,
}

/// Numbers that are data, one for each row of the space.
#[derive(Clone, Copy, Debug)]
pub struct Named<'c> {
    /// Where they are.
    pub memref: Val<'c>,
    /// Whether a negative one counts from the last row on.
    pub wraps: bool,
    /// Rows that they name, of a block where there are blocks.
    pub rows: i64,
}

/// The number of a row, by that of one of the space.
#[derive(Clone, Copy, Debug)]
pub struct RowNumbers<'c> {
    /// What names it.
    pub named: Option<Named<'c>>,
    /// The block in which it is.
    pub blocks: Option<Blocks>,
}

impl<'c> RowNumbers<'c> {
    /// The number, as an index, for a row of the space. One that data names is brought into the rows that there are.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn of_row(self, builder: Builder<'c>, row: Int<'c>) -> PassResult<'c, Int<'c>> {
        let ints = Ints::index(builder);
        let own = match self.named {
            Some(named) => named.of_row(builder, row)?,
            None => match self.blocks {
                Some(Blocks { count, first, .. }) => {
                    ints.add(ints.rem(row, count)?, Int::Known(first))?
                }
                None => row,
            },
        };
        match self.blocks {
            Some(Blocks { count, apart, .. }) => {
                ints.add(ints.mul(ints.div(row, count)?, apart)?, own)
            }
            None => Ok(own),
        }
    }
}

impl<'c> Named<'c> {
    fn of_row(self, builder: Builder<'c>, row: Int<'c>) -> PassResult<'c, Int<'c>> {
        let element = element_type(self.memref.r#type());
        let bits = types::bits(element)
            .ok_or_else(|| PassError::new(builder.location, "a row's number is an integer"))?;
        let indices = Ints::index(builder);
        let at = [self.memref, indices.value(row)?];
        let number = builder.value("memref.load", &at, element, &[])?;
        let ints = Ints::new(builder, bits);
        let own = match self.wraps {
            true => ints.wrapped(Int::Value(number), Int::Known(self.rows))?,
            false => Int::Value(number),
        };
        let own = ints.max(ints.min(own, Int::Known(self.rows - 1))?, Int::Known(0))?;
        indices.cast(own)
    }
}
