//! Epilogues that form elements of two columns each. A tile's sums are the first columns of its pairs, then the second ones, so that a
//! thread has both: they become results subtile by subtile, and results are half as wide as sums.

use super::Epilogue;
use super::subtile::Subtile;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Evaluator;
use axe_passes::fuse::pairs::Paired;
use axe_passes::fuse::space::{Cut, Kind, Pairs};
use axe_passes::ir::value::{defining, identity};
use axe_passes::ir::{Int, Val};
use melior::ir::operation::OperationLike;

/// A subtile's place among pairs, and among the columns that both are of.
struct Places<'a, 'c> {
    subtile: &'a Subtile,
    pair: Evaluator<'a, 'c>,
    columns: [Evaluator<'a, 'c>; 2],
}

impl<'c> Epilogue<'_, 'c> {
    /// Forms elements of pairs of a tile's sums, and stores them, subtile by subtile.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn store_pairs<'a>(
        &'a self,
        evaluator: &'a mut Evaluator<'_, 'c>,
        sum: Val<'c>,
        subtiles: &'a [Subtile],
        ahead: bool,
    ) -> PassResult<'c> {
        evaluator.known.clear();
        let product = (identity(self.gemm.result), Kind::Full);
        evaluator.known.insert(product, sum);
        for ((value, kind), to) in self.fusion.outputs.iter().zip(&self.outputs) {
            match kind {
                Kind::Row => evaluator.store(*value, *kind, to)?,
                _ => evaluator.form_rows(*value, *kind)?,
            }
        }
        let fetch = |subtile: &'a Subtile| {
            let mut places = self.places(evaluator, subtile)?;
            for columns in &mut places.columns {
                columns.known.insert(product, sum);
            }
            for (value, kind) in self.fusion.outputs.iter().filter(|_| ahead) {
                places.fetch(self, *value, *kind)?;
            }
            Ok(places)
        };
        let mut subtiles = subtiles.iter();
        let mut next = subtiles.next().map(fetch).transpose()?;
        while let Some(mut places) = next {
            // What the next subtile needs is on its way while this one is formed and stored.
            next = subtiles.next().map(fetch).transpose()?;
            let half = evaluator.registers.shape[1];
            for (columns, before) in places.columns.iter_mut().zip([0, half]) {
                let subtile = places.subtile;
                let own = &subtile.registers;
                let own = own.r#type(evaluator.code, Kind::Full, self.gemm.accumulator)?;
                let at = [0, before + subtile.first];
                let part = evaluator.code.extract_slice(sum, &at, own)?;
                self.begin(columns, part)?;
            }
            for ((value, kind), to) in self.fusion.outputs.iter().zip(&self.outputs) {
                let [first, second] = &mut places.columns;
                match kind {
                    Kind::Pairs(_) => {
                        let paired = self.paired(*value)?;
                        let formed = places.pair.pair((*value, &paired), [first, second])?;
                        places.pair.known.insert((identity(*value), *kind), formed);
                        places.pair.store(*value, *kind, to)?;
                    }
                    Kind::Full | Kind::Column => {
                        first.store(*value, *kind, &self.first_half(evaluator, to)?)?;
                        second.store(*value, *kind, to)?;
                    }
                    // Stored once a tile; no blocks join pairs.
                    Kind::Row | Kind::Blocks(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The first half of an argument's columns, where a tile reaches over it: what is behind is another tile's to store.
    fn first_half(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        to: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let half = self.gemm.n / 2;
        if half % evaluator.registers.shape[1] == 0 {
            return Ok(to.clone());
        }
        let (mut sizes, mut strides) = (Vec::new(), Vec::new());
        let mut stride = 1;
        for &extent in to.extents.iter().rev() {
            let size = if sizes.is_empty() { half } else { extent };
            sizes.insert(0, Int::Known(size));
            strides.insert(0, Int::Known(stride));
            stride *= extent;
        }
        let (code, ones) = (evaluator.code, vec![1; sizes.len()]);
        let memref = code.reinterpret(to.memref, &sizes, &strides, &ones)?;
        Ok(Argument::global(memref, to.extents.clone()))
    }

    /// The loops that an element of a pair is the result of.
    fn paired(&self, value: Val<'c>) -> PassResult<'c, Paired<'c>> {
        let paired = defining(value).and_then(|op| Paired::of(op, self.gemm.n));
        let location = self.gemm.op.location();
        paired.ok_or_else(|| layout_error(location, "expected loops over pairs of columns"))
    }

    /// The places of a subtile.
    fn places<'a>(
        &self,
        evaluator: &'a Evaluator<'_, 'c>,
        subtile: &'a Subtile,
    ) -> PassResult<'c, Places<'a, 'c>> {
        let (code, gemm) = (evaluator.code, self.gemm);
        let first = code.add(evaluator.origin.column, code.index(subtile.first)?)?;
        let half = code.index(gemm.n / 2)?;
        let at = |column| evaluator.at_part(&subtile.registers, column);
        let columns = match gemm.pairs {
            Some(Pairs::Interleaved) => [0, 1].map(|neighbour| Evaluator {
                neighbour: Some(neighbour),
                ..at(first)
            }),
            _ => [at(first), at(code.add(first, half)?)],
        };
        let mut pair = at(first);
        pair.cut = Cut::rows_of(gemm.n / 2);
        Ok(Places {
            subtile,
            pair,
            columns,
        })
    }
}

impl<'c> Places<'_, 'c> {
    /// Loads what forming an output takes.
    fn fetch(&mut self, epilogue: &Epilogue<'_, 'c>, value: Val<'c>, kind: Kind) -> PassResult<'c> {
        if !matches!(kind, Kind::Pairs(_)) {
            let mut columns = self.columns.iter_mut();
            return columns.try_for_each(|own| own.fetch(value, kind));
        }
        let paired = epilogue.paired(value)?;
        for (read, kind, column) in &paired.reads {
            match (kind, self.columns.get_mut(*column)) {
                (Kind::Full | Kind::Column, Some(own)) => own.fetch(*read, *kind)?,
                _ => self.pair.fetch(*read, *kind)?,
            }
        }
        let mut inputs = paired.inputs.iter();
        inputs.try_for_each(|input| self.pair.fetch(*input, Kind::Pairs(paired.pairs)))
    }
}
