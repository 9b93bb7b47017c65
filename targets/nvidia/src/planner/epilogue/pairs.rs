//! Epilogues that form elements of two columns each. A tile's sums are the first columns of its pairs, then the second ones, so that a
//! thread has both: they become results subtile by subtile, and results are half as wide as sums.

use super::Epilogue;
use super::subtile::Subtile;
use axe_passes::PassResult;
use axe_passes::build::row_major;
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Evaluator;
use axe_passes::fuse::pairs::{Paired, Side};
use axe_passes::fuse::space::{Cut, Kind, Pairs};
use axe_passes::ir::value::{defining, identity, operands};
use axe_passes::ir::{Int, Val};
use std::collections::HashSet;

/// A subtile's place among pairs, and among the columns that both are of.
struct Places<'a, 'c> {
    subtile: &'a Subtile,
    pair: Evaluator<'a, 'c>,
    columns: [Evaluator<'a, 'c>; 2],
}

/// What elements of pairs are formed of.
enum Leaf<'c> {
    /// A tensor that is read.
    Input(Val<'c>),
    /// Loops over both columns.
    Loops(Val<'c>, Paired<'c>),
    /// One of the columns.
    Side(Val<'c>, Side<'c>),
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
                self.begin(columns, self.gemm.result, part)?;
            }
            for ((value, kind), to) in self.fusion.outputs.iter().zip(&self.outputs) {
                let [first, second] = &mut places.columns;
                match kind {
                    Kind::Pairs(_) => {
                        for leaf in self.leaves(*value) {
                            let (value, formed) = match leaf {
                                Leaf::Input(_) => continue,
                                Leaf::Loops(value, paired) => {
                                    let of = [&mut *first, &mut *second];
                                    (value, places.pair.pair((value, &paired), of)?)
                                }
                                Leaf::Side(value, side) => {
                                    let own = if side.column == 0 {
                                        &mut *first
                                    } else {
                                        &mut *second
                                    };
                                    (value, own.value(side.table, Kind::Full)?)
                                }
                            };
                            places.pair.known.insert((identity(value), *kind), formed);
                        }
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

    /// The first half of an argument's columns, where a tile of halves reaches over it: what is behind is another tile's to store.
    fn first_half(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        to: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let (code, half) = (evaluator.code, self.gemm.n / 2);
        let is_whole = half % evaluator.registers.shape[1] == 0;
        let reaches = !is_whole && self.gemm.pairs == Some(Pairs::Halves);
        let Some((_, rows)) = to.extents.split_last().filter(|_| reaches) else {
            return Ok(to.clone());
        };
        let sizes = [rows, &[half]].concat();
        let [sizes, strides] = [sizes, row_major(&to.extents)].map(|own| {
            let own = own.into_iter().map(Int::Known);
            own.collect::<Vec<_>>()
        });
        let ones = vec![1; sizes.len()];
        let memref = code.reinterpret(to.memref, &sizes, &strides, &ones)?;
        Ok(Argument::global(memref, to.extents.clone()))
    }

    /// What an element of a pair is formed of.
    fn leaves(&self, value: Val<'c>) -> Vec<Leaf<'c>> {
        let (mut found, mut left, mut seen) = (Vec::new(), vec![value], HashSet::new());
        while let Some(value) = left.pop() {
            if !seen.insert(identity(value)) {
                continue;
            }
            let is_read = self.fusion.inputs.iter().any(|(own, _)| *own == value);
            match defining(value).filter(|_| !is_read) {
                None => found.push(Leaf::Input(value)),
                Some(op) => match (Paired::of(op, self.gemm.n), Side::of(op, self.gemm.n)) {
                    (Some(paired), _) => found.push(Leaf::Loops(value, paired)),
                    (_, Some(side)) => found.push(Leaf::Side(value, side)),
                    _ => left.extend(operands(op)),
                },
            }
        }
        found
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
        for leaf in epilogue.leaves(value) {
            match leaf {
                Leaf::Input(value) => self.pair.fetch(value, kind)?,
                Leaf::Side(_, side) => {
                    if let Some(own) = self.columns.get_mut(side.column) {
                        own.fetch(side.table, Kind::Full)?;
                    }
                }
                Leaf::Loops(_, paired) => self.fetch_loops(&paired)?,
            }
        }
        Ok(())
    }

    fn fetch_loops(&mut self, paired: &Paired<'c>) -> PassResult<'c> {
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
