//! Rows that begin anywhere in memory and are gone through in vectors: the columns in front of a row's first boundary are peeled
//! off, as loops are for alignment. The tiles behind them are aligned as memory is, up to the row's last one.

use super::arguments::{Argument, Inputs};
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::registers::Registers;
use super::space::Kind;
use crate::PassResult;
use crate::build::Code;
use crate::ir::{Int, Val};
use axe_dialect::element_type;
use melior::ir::ValueLike;

/// What a thread group takes of the columns that are peeled off a row, and where its others lie.
#[derive(Debug)]
pub struct Peel<'c> {
    /// Tiles of half a vector, a quarter, ..., one element: those of which the number of columns has a digit in binary are taken.
    pub pieces: Vec<Registers>,
    /// How many columns are peeled off, from the row's first on; zero where another thread group takes them.
    pub columns: Val<'c>,
    /// The inputs, as they are read there.
    pub arguments: Inputs<'c>,
    /// The first of the other columns that the thread group has, in row-major memory: at a boundary.
    pub first: Val<'c>,
    /// Elements of a tensor.
    pub elements: i64,
    /// Those of them that are in whole vectors.
    pub whole: i64,
}

/// A tile of columns that are peeled off.
struct Piece<'a, 'c> {
    registers: &'a Registers,
    column: Val<'c>,
    /// One where it is taken, else zero.
    taken: Val<'c>,
}

impl<'c> Evaluator<'_, 'c> {
    pub(super) fn peel(&self) -> Option<&Peel<'c>> {
        self.part.and_then(|part| part.peel())
    }

    fn pieces(&self) -> PassResult<'c, Vec<Piece<'_, 'c>>> {
        let (code, mut pieces) = (self.code, Vec::new());
        let Some(peel) = self.peel() else {
            return Ok(pieces);
        };
        let mut column = code.index(0)?;
        for registers in &peel.pieces {
            let width = code.index(registers.shape[1])?;
            let taken = code.rem(code.div(peel.columns, width)?, code.index(2)?)?;
            pieces.push(Piece {
                registers,
                column,
                taken,
            });
            column = code.add(column, code.mul(taken, width)?)?;
        }
        Ok(pieces)
    }

    /// The group's values on a tile of columns that are peeled off, formed where `code` is: what is known of rows stays known.
    fn at_piece<'b>(
        &'b self,
        peel: &'b Peel<'c>,
        (piece, code): (&Piece<'b, 'c>, Code<'c>),
    ) -> Evaluator<'b, 'c> {
        Evaluator {
            registers: piece.registers,
            arguments: &peel.arguments,
            part: None,
            kept: None,
            ..self.at_column(code, piece.column)
        }
    }

    /// The state of a fold over the other columns, with those that are peeled off.
    pub(super) fn with_peeled(
        &self,
        from: Val<'c>,
        fold: Fold,
        mut state: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let Some(peel) = self.peel() else {
            return Ok(state);
        };
        let [zero, one] = [self.code.index(0)?, self.code.index(1)?];
        let element = element_type(from.r#type());
        for piece in &self.pieces()? {
            // A loop of one turn or none.
            let turns = [zero, piece.taken, one];
            let taken = self.code.for_range(turns, &[state], |code, _, carried| {
                let own = self.at_piece(peel, (piece, code)).value(from, Kind::Full)?;
                let own = code.reduce(fold.combiner, own, 1, state.r#type())?;
                let before = carried.first().copied().unwrap_or(state);
                Ok(vec![fold.merge(code, element, before, own)?])
            })?;
            state = taken.first().copied().unwrap_or(state);
        }
        Ok(state)
    }

    /// Stores values on the columns that are peeled off.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn store_peeled(&self, outputs: &[(Val<'c>, &Argument<'c>)]) -> PassResult<'c> {
        let (Some(peel), false) = (self.peel(), outputs.is_empty()) else {
            return Ok(());
        };
        let code = self.code;
        for piece in &self.pieces()? {
            let is_taken = code.at_most(code.index(1)?, piece.taken)?;
            let store = |code| {
                let mut own = self.at_piece(peel, (piece, code));
                let mut outputs = outputs.iter();
                outputs.try_for_each(|(value, to)| own.store(*value, Kind::Full, to))
            };
            code.branch(is_taken, store, |_| Ok(()))?;
        }
        Ok(())
    }

    /// The tile's box of a tensor seen as one row of whole vectors, where rows are peeled and the tile lies inside of its row.
    pub(super) fn in_vectors(&self, argument: &Argument<'c>) -> PassResult<'c, Option<Val<'c>>> {
        let (Some(peel), Some(along), true) = (self.peel(), self.along, self.inside) else {
            return Ok(None);
        };
        let code = self.code;
        let extents = [1, peel.whole];
        let strides = [peel.elements, 1].map(Int::Known);
        let sizes = extents.map(Int::Known);
        let memref = code.reinterpret(argument.memref, &sizes, &strides, &[1, 1])?;
        let at = [code.index(0)?, code.add(peel.first, along)?];
        let own = code.global_box(memref, &extents, &at, &self.registers.shape)?;
        Ok(Some(own))
    }
}
