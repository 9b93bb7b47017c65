//! Rows that the warps of a cluster which stays hold in registers, one after the other ([`super::row_turns`]): the place in shared memory that a row comes
//! from is free as soon as it is read, so that the next one is on its way there while the warps exchange states and store. Each warp copies its own part, and
//! waits for no other but in the exchange.

use super::staged_rows::OfWarp;
use super::staying_rows::{Input, Turns, room};
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::arguments::{Argument, Inputs};
use axe_passes::fuse::evaluate::RowPart;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;

/// The rows of a cluster, as a CTA of it has its part of them.
#[derive(Debug)]
pub(super) struct Held<'c> {
    turns: Turns<'c>,
    /// The CTA's first column, and how many it has.
    first: Val<'c>,
    columns: i64,
    /// What the kernel reads in global memory and, where it is copied, the place in shared memory.
    inputs: Vec<(Input<'c>, Option<Val<'c>>)>,
}

impl<'c> Held<'c> {
    /// Makes room for a row, and begins to copy what all rows have, and the first one.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        turns: Turns<'c>,
        (first, columns): (Val<'c>, i64),
        inputs: impl IntoIterator<Item = Input<'c>>,
    ) -> PassResult<'c, Self> {
        let mut own = Self {
            turns,
            first,
            columns,
            inputs: Vec::new(),
        };
        for (key, argument) in inputs {
            let place = match key.1 {
                Kind::Full => {
                    let at = argument.place(code, [turns.cluster, first])?;
                    Some(copy(code, &argument, &[1, columns], &at)?)
                }
                Kind::Column => Some(copy(code, &argument, &[columns], &[first])?),
                _ => None,
            };
            own.inputs.push(((key, argument), place));
        }
        code.commit()?;
        Ok(own)
    }

    /// What a warp reads of a turn's row.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn of_warp(
        &self,
        code: Code<'c>,
        part: &OfWarp<'_, 'c>,
        row: Val<'c>,
    ) -> PassResult<'c, Inputs<'c>> {
        let of_warp = |((key, argument), place): &(Input<'c>, Option<Val<'c>>)| {
            let Some(memref) = *place else {
                return Ok((*key, argument.clone()));
            };
            let extents = match key.1 {
                Kind::Full => vec![1, self.columns],
                _ => vec![self.columns],
            };
            let staged = Argument::staged(memref, extents, [row, self.first]);
            Ok((*key, part.argument(code, &staged)?))
        };
        self.inputs.iter().map(of_warp).collect()
    }

    /// Begins to copy a warp's part of the row behind that of a turn to where the latter was: all lanes have read it.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch_behind(
        &self,
        code: Code<'c>,
        turn: Val<'c>,
        (part, own): (&OfWarp<'_, 'c>, &Inputs<'c>),
    ) -> PassResult<'c> {
        self.turns.fetch_behind(code, turn, |inner, next| {
            let at = [self.turns.row(inner, next)?, part.columns()[0]];
            let full = self
                .inputs
                .iter()
                .filter(|((key, _), _)| key.1 == Kind::Full);
            for ((key, argument), _) in full {
                let Some(to) = own.get(key) else {
                    continue;
                };
                let at = argument.place(inner, at)?;
                let from =
                    inner.global_box(argument.memref, &argument.extents, &at, &to.extents)?;
                inner.copy_async(from, to.memref)?;
            }
            Ok(())
        })
    }
}

/// Begins to copy a box of an argument to room that is made for it.
fn copy<'c>(
    code: Code<'c>,
    argument: &Argument<'c>,
    shape: &[i64],
    at: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let to = room(code, shape, argument)?;
    let from = code.global_box(argument.memref, &argument.extents, at, shape)?;
    code.copy_async(from, to)?;
    Ok(to)
}
