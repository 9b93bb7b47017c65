//! The kernel of rows that clusters stay for ([`super::row_turns`]), one after the other.

use super::held_rows::Held;
use super::row_kernel::RowKernel;
use super::staged_rows::Staged;
use super::staying_rows::{Input, Staying, Turns};
use axe_dialect::Level;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::arguments::Arguments;
use axe_passes::fuse::evaluate::{Evaluator, Loaded, Origin, RowPart};
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use axe_passes::ir::value::identity;

impl<'c> RowKernel<'_, 'c> {
    /// Rows of clusters that stay, one after the other: in registers, or where they lie in shared memory.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn emit_turns(
        &self,
        code: Code<'c>,
        clusters: i64,
        (registers, origin): (&Registers, Origin<'c>),
        arguments: Arguments<'c>,
    ) -> PassResult<'c> {
        let staged = self.work.staged.unwrap_or(self.columns);
        let part = Staged::new(code, self.work, (origin.row, [staged, self.columns]))?;
        let turns = Turns {
            rows: self.rows(),
            clusters,
            cluster: origin.row,
        };
        let place = (registers, origin);
        match self.work.holds {
            true => self.emit_held(code, (turns, part), place, &arguments),
            false => self.emit_staying(code, (turns, part), place, &arguments),
        }
    }

    /// What the kernel reads, in the order of the arguments, so that the code is the same each time.
    fn inputs(&self, arguments: &Arguments<'c>) -> Vec<Input<'c>> {
        let keys = self.fusion.inputs.iter();
        let keys = keys.map(|(value, kind)| (identity(*value), *kind));
        let inputs = keys.filter_map(|key| Some((key, arguments.inputs.get(&key)?.clone())));
        inputs.collect()
    }

    /// Rows in the registers of warps.
    fn emit_held(
        &self,
        code: Code<'c>,
        (turns, mut part): (Turns<'c>, Staged<'c>),
        (registers, origin): (&Registers, Origin<'c>),
        arguments: &Arguments<'c>,
    ) -> PassResult<'c> {
        let staged = self.work.staged.unwrap_or(self.columns);
        let place = (part.first(), staged);
        let rows = Held::new(code, turns, place, self.inputs(arguments))?;
        part.begin(code, &self.rounds())?;
        code.wait(0)?;
        let count = turns.count(code)?;
        code.thread_groups(Level::Warp, |inner| {
            let part = part.of_warp(inner, &arguments.inputs, self.rows())?;
            let turn = |code: Code<'c>, turn: Val<'c>, _: &[Val<'c>]| {
                let row = turns.row(code, turn)?;
                let own = rows.of_warp(code, &part, row)?;
                let origin = Origin {
                    row,
                    ..origin.clone()
                };
                let read = (&own, &arguments.scalars);
                let mut evaluator = self.evaluator(code, (registers, origin), read);
                evaluator.part = Some(&part);
                let held = self.held(&evaluator)?;
                evaluator.held = Some(&held);
                code.barrier()?;
                rows.fetch_behind(code, turn, (&part, &own))?;
                self.form(evaluator, &arguments.outputs)?;
                code.wait(0)?;
                Ok(Vec::new())
            };
            inner.for_each(count, 1, &[], turn).map(drop)
        })
    }

    /// The tiles that a warp has of a row, loaded.
    fn held(&self, evaluator: &Evaluator<'_, 'c>) -> PassResult<'c, Vec<Loaded<'c>>> {
        let columns = self.work.staged.unwrap_or(self.columns) / self.work.warps;
        let step = self.work.tile.columns;
        let load = |number: i64| {
            let mut tile = evaluator.tile_at(number * step)?;
            let full = self.fusion.inputs.iter();
            let full = full.filter(|(_, kind)| *kind == Kind::Full);
            full.map(|(value, kind)| Ok(((identity(*value), *kind), tile.value(*value, *kind)?)))
                .collect()
        };
        (0..columns / step).map(load).collect()
    }

    /// Rows in shared memory, of which warps go through their parts tile by tile.
    fn emit_staying(
        &self,
        code: Code<'c>,
        (turns, mut part): (Turns<'c>, Staged<'c>),
        (registers, origin): (&Registers, Origin<'c>),
        arguments: &Arguments<'c>,
    ) -> PassResult<'c> {
        let staged = self.work.staged.unwrap_or(self.columns);
        let place = (part.first(), staged);
        let rows = Staying::new(code, turns, place, self.inputs(arguments))?;
        part.begin(code, &self.rounds())?;
        let turn = |code: Code<'c>, turn: Val<'c>, _: &[Val<'c>]| {
            let inputs = rows.next(code, turn)?;
            let row = turns.row(code, turn)?;
            let origin = Origin {
                row,
                ..origin.clone()
            };
            code.thread_groups(Level::Warp, |inner| {
                let part = part.of_warp(inner, &arguments.inputs, self.rows())?;
                let own = inputs
                    .iter()
                    .map(|(key, argument)| Ok((*key, part.argument(inner, argument)?)));
                let own = own.collect::<PassResult<'c, _>>()?;
                let read = (&own, &arguments.scalars);
                let evaluator = self.evaluator(inner, (registers, origin), read);
                let part: Option<&dyn RowPart<'c>> = Some(&part);
                self.form(Evaluator { part, ..evaluator }, &arguments.outputs)
            })?;
            Ok(Vec::new())
        };
        code.for_each(turns.count(code)?, 1, &[], turn).map(drop)
    }
}
