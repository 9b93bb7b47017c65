//! The kernel of elementwise operators and reductions of rows, as [`super::rows`] configures it.

use super::columns::Columns;
use super::family::Launch;
use super::flat::Flat;
use super::long_rows::RowWork;
use super::packed_rows::Packed;
use super::problem::count;
use super::row_walk::Walked;
use super::staged_rows::Staged;
use axe_dialect::Level;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Inputs, argument_types, launched, tensors};
use axe_passes::fuse::evaluate::{Evaluator, Origin, RowPart};
use axe_passes::fuse::fold::{Part, Stream};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::reshape::leading_of;
use axe_passes::fuse::rounds::{Parts, Round};
use axe_passes::fuse::space::{Cut, Kind};
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};
use std::collections::HashMap;

/// The kernel of a group.
pub(super) struct RowKernel<'a, 'c> {
    pub fusion: &'a Fusion<'c>,
    pub columns: i64,
    /// Bytes of the narrowest element that is moved.
    pub bytes: i64,
    pub streams: bool,
    pub flat: Option<Flat>,
    pub work: RowWork,
}

impl<'c> RowKernel<'_, 'c> {
    /// Adds the kernel and launches it; its name.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn launch(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
        let Launch { frame, builder, .. } = launch;
        let (fusion, builder) = (self.fusion, *builder);
        let shape = |kind| fusion.shape(self.columns, None, kind);
        let (ins, outs) = tensors(frame, builder, fusion, |_, kind| shape(kind))?;
        let name = frame.name(if self.streams { "rows" } else { "map" });
        let types = argument_types(&ins, &fusion.scalars, &outs);
        let mut kernel = Kernel::new(builder.location, frame.module, &types);
        kernel.cluster = self.work.ctas;
        self.emit(&kernel, &ins, &outs)?;
        kernel.finish(frame.module, &name, self.work.threads())?;
        let grid = self.grid(builder)?;
        frame.launch(
            builder,
            &name,
            grid,
            &launched(&ins, &fusion.scalars),
            &outs,
        )?;
        Ok(name)
    }

    /// Whether tiles hold whole rows.
    const fn in_registers(&self) -> bool {
        self.work.tile.columns >= self.columns
    }

    /// The tiles of a row: one where a CTA or a cluster has all of its columns.
    fn tiles(&self) -> Columns {
        Columns::in_order(match self.streams {
            true => 1,
            false => count(self.columns, self.work.tile.columns),
        })
    }

    /// CTAs: tiles of rows, each with those of its columns unless a CTA has all of these.
    fn grid(&self, builder: &Builder<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let rows = self.fusion.shape(self.columns, None, Kind::Row);
        let x = match rows.first() {
            Some(&DYNAMIC) => {
                let (value, kind) = self
                    .fusion
                    .outputs
                    .iter()
                    .chain(&self.fusion.inputs)
                    .find(|(_, kind)| *kind != Kind::Column)
                    .ok_or_else(|| {
                        PassError::new(builder.location, "no tensor has the kernel's rows")
                    })?;
                let shape = self.fusion.shape(self.columns, None, *kind);
                code.ceil_div(leading_of(builder, *value, &shape)?, self.work.tile.rows)?
            }
            rows => code.index(count(rows.copied().unwrap_or(1), self.work.tile.rows))?,
        };
        let known = rows.first().filter(|rows| **rows != DYNAMIC);
        let known = known.map_or(1, |rows| count(*rows, self.work.tile.rows));
        let ctas = self.work.ctas;
        let (x, known) = match self.work.clusters {
            None => (x, known),
            Some(clusters) => (code.index(clusters)?, clusters),
        };
        let x = if ctas > 1 { code.times(x, ctas)? } else { x };
        self.tiles().grid(code, x, known.saturating_mul(ctas))
    }

    fn emit(&self, kernel: &Kernel<'c>, ins: &[Operand<'c>], outs: &[Out<'c>]) -> PassResult<'c> {
        let code = kernel.code;
        let tile = self.work.tile;
        let layout = tile
            .layout()
            .map_err(|error| layout_error(code.builder.location, error))?;
        let registers = registers(code, [tile.rows, tile.columns], layout)?;
        let mut arguments = Arguments::of(kernel, ins, self.fusion, outs);
        let inputs = self.fusion.inputs.iter().filter_map(|input| {
            let argument = arguments.inputs.get(&(identity(input.0), input.1))?;
            Some((input, argument))
        });
        let outputs = self.fusion.outputs.iter().zip(&arguments.outputs);
        let origin = self.origin(code, inputs.chain(outputs))?;
        let rounds = self.rounds();
        if let Some(flat) = self.flat {
            return self.emit_flat(code, flat, (&registers, origin), &arguments);
        }
        if self.work.is_packed {
            return self.emit_packed(code, (&registers, origin), arguments);
        }
        if let Some(clusters) = self.work.clusters {
            return self.emit_turns(code, clusters, (&registers, origin), arguments);
        }
        let staged = self.stage(code, &mut arguments, (origin.row, &rounds))?;
        let walked = self.walk(code, (origin.row, &rounds))?;
        let form = |code: Code<'c>, inputs: &Inputs<'c>, part: Option<&dyn RowPart<'c>>| {
            let read = (inputs, &arguments.scalars);
            let evaluator = self.evaluator(code, (&registers, origin), read);
            self.form(Evaluator { part, ..evaluator }, &arguments.outputs)
        };
        let inputs = &arguments.inputs;
        if let Some(walked) = walked {
            return code.thread_groups(Level::Warp, |inner| {
                let early = self.fusion.rows_without_folds();
                form(inner, inputs, Some(&walked.of_warp(inner, early)?))
            });
        }
        match staged {
            Some(staged) if self.work.warps > 1 => code.thread_groups(Level::Warp, |inner| {
                let part = staged.of_warp(inner, inputs, self.rows())?;
                let own = inputs
                    .iter()
                    .map(|(key, argument)| Ok((*key, part.argument(inner, argument)?)));
                form(inner, &own.collect::<PassResult<'c, _>>()?, Some(&part))
            }),
            _ => form(code, inputs, None),
        }
    }

    /// The rounds in which the folds of rows are formed.
    pub(super) fn rounds(&self) -> Vec<Round<'c>> {
        // Clusters stay for rows whose parts are alike.
        let staged = self.work.staged.filter(|_| self.work.clusters.is_some());
        self.fusion.rounds_of(Parts {
            alike: staged.map(|columns| columns / self.work.warps),
            are_held: self.work.holds,
        })
    }

    /// Forms the folds of a row, or of what a CTA or a warp has of it, and stores what comes of them.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn form(
        &self,
        mut evaluator: Evaluator<'_, 'c>,
        outputs: &[Argument<'c>],
    ) -> PassResult<'c> {
        let is_staged = self.work.staged.is_some() && evaluator.held.is_none();
        evaluator.kept = self.fusion.kept().filter(|_| is_staged);
        if evaluator.part.is_some_and(|part| part.walk().is_none()) {
            for value in self.fusion.rows_without_folds() {
                evaluator.value(value, Kind::Row)?;
            }
        }
        for (number, round) in self.rounds().iter().enumerate() {
            evaluator.form_round(number, round)?;
        }
        self.store(&mut evaluator, outputs)
    }

    /// The group's values on a tile at this place.
    pub(super) fn evaluator<'e>(
        &self,
        code: Code<'c>,
        (registers, origin): (&'e Registers, Origin<'c>),
        read: (&'e Inputs<'c>, &'e HashMap<usize, Val<'c>>),
    ) -> Evaluator<'e, 'c> {
        let tile = (registers, Cut::rows_of(self.columns));
        Evaluator::new(code, tile, read, origin)
    }

    /// Elements in vectors, and by the first CTA the last ones.
    fn emit_flat(
        &self,
        code: Code<'c>,
        flat: Flat,
        (vectors, origin): (&Registers, Origin<'c>),
        arguments: &Arguments<'c>,
    ) -> PassResult<'c> {
        let form = |code: Code<'c>,
                    (registers, origin): (&Registers, Origin<'c>),
                    inputs: &Inputs<'c>,
                    outputs: &[Argument<'c>]| {
            let mut evaluator =
                self.evaluator(code, (registers, origin), (inputs, &arguments.scalars));
            let mut outputs = self.fusion.outputs.iter().zip(outputs);
            outputs.try_for_each(|((value, kind), to)| evaluator.store(*value, *kind, to))
        };
        let whole = |argument: &Argument<'c>| flat.in_vectors(code, argument);
        let inputs = arguments.inputs.iter();
        let inputs = inputs.map(|(key, argument)| Ok((*key, whole(argument)?)));
        let inputs = inputs.collect::<PassResult<'c, Inputs<'c>>>()?;
        let outputs = arguments.outputs.iter().map(whole);
        let outputs = outputs.collect::<PassResult<'c, Vec<_>>>()?;
        let is_first = code.at_most(origin.column, code.index(0)?)?;
        form(code, (vectors, origin.clone()), &inputs, &outputs)?;
        let rest = |code: Code<'c>| {
            let registers = flat.rest(code, self.work.threads())?;
            let column = code.index(flat.whole())?;
            let origin = Origin { column, ..origin };
            form(
                code,
                (&registers, origin),
                &arguments.inputs,
                &arguments.outputs,
            )
        };
        code.branch(is_first, rest, |_| Ok(()))
    }

    /// Rows through shared memory, in one piece.
    fn emit_packed(
        &self,
        code: Code<'c>,
        (registers, origin): (&Registers, Origin<'c>),
        mut arguments: Arguments<'c>,
    ) -> PassResult<'c> {
        let place = (origin.row, [self.rows(), self.columns]);
        let packed = Packed::new(self.work.tile, self.bytes, place);
        let full = |kind: &Kind| *kind == Kind::Full;
        let mut read = Vec::new();
        for (value, kind) in self.fusion.inputs.iter().filter(|(_, kind)| full(kind)) {
            if let Some(argument) = arguments.inputs.get_mut(&(identity(*value), *kind)) {
                let room = packed.room(code, argument)?;
                packed.fetch(code, &room)?;
                *argument = room.rows.clone();
                read.push(room);
            }
        }
        code.commit()?;
        code.wait(0)?;
        if packed.has_last() {
            packed.fetch_last(code, &read)?;
            code.barrier()?;
        }
        let inputs = (&arguments.inputs, &arguments.scalars);
        let mut evaluator = self.evaluator(code, (registers, origin), inputs);
        // Threads write elements where they have read them.
        for (value, kind) in self.fusion.inputs.iter().filter(|(_, kind)| full(kind)) {
            evaluator.value(*value, *kind)?;
        }
        let mut written = Vec::new();
        let outputs = self.fusion.outputs.iter().zip(&mut arguments.outputs);
        for (_, argument) in outputs.filter(|((_, kind), _)| full(kind)) {
            let room = match read.iter().position(|room| room.holds(argument)) {
                Some(free) => read.swap_remove(free).of(argument),
                None => packed.room(code, argument)?,
            };
            *argument = room.rows.clone();
            written.push(room);
        }
        self.store(&mut evaluator, &arguments.outputs)?;
        code.barrier()?;
        packed.store(code, &written)
    }

    /// Copies the CTA's part of its row to shared memory, where it has one, and waits for it.
    fn stage(
        &self,
        code: Code<'c>,
        arguments: &mut Arguments<'c>,
        (row, rounds): (Val<'c>, &[Round<'c>]),
    ) -> PassResult<'c, Option<Staged<'c>>> {
        let Some(staged) = self.work.staged else {
            return Ok(None);
        };
        let mut part = Staged::new(code, self.work, (row, [staged, self.columns]))?;
        let mut tails = Vec::new();
        for (value, kind) in &self.fusion.inputs {
            let key = (identity(*value), *kind);
            let Some(argument) = arguments.inputs.get_mut(&key) else {
                continue;
            };
            let fetched = match kind {
                Kind::Full => Some(part.fetch(code, (key, argument))?),
                Kind::Column => part.fetch_common(code, (key, argument))?,
                _ => None,
            };
            if let Some((fetched, tail)) = fetched {
                *argument = fetched;
                tails.extend(tail);
            }
        }
        code.commit()?;
        part.begin(code, rounds)?;
        code.wait(0)?;
        for tail in &tails {
            tail.copy(code)?;
        }
        if !tails.is_empty() {
            code.barrier()?;
        }
        Ok(Some(part))
    }

    /// How the CTA goes through its row, where it does so once.
    fn walk(
        &self,
        code: Code<'c>,
        (row, rounds): (Val<'c>, &[Round<'c>]),
    ) -> PassResult<'c, Option<Walked<'c>>> {
        if self.work.ahead == 0 {
            return Ok(None);
        }
        let shape = [self.rows(), self.columns];
        Walked::new(code, self.work, (row, shape), rounds).map(Some)
    }

    /// Rows of the space, where they are known.
    pub(super) fn rows(&self) -> i64 {
        let rows = self.fusion.shape(self.columns, None, Kind::Row);
        rows.first().copied().unwrap_or(1)
    }

    fn origin<'a>(
        &self,
        code: Code<'c>,
        tensors: impl Iterator<Item = (&'a (Val<'c>, Kind), &'a Argument<'c>)>,
    ) -> PassResult<'c, Origin<'c>>
    where
        'c: 'a,
    {
        let rows = self.fusion.shape(self.columns, None, Kind::Row);
        let limit = match rows.first() {
            Some(&DYNAMIC) => {
                // A table has other rows.
                let mut whole = tensors.filter(|(_, argument)| argument.numbers.is_none());
                let whole = whole.find(|((_, kind), _)| *kind != Kind::Column);
                let (_, argument) = whole
                    .ok_or_else(|| layout_error(code.builder.location, "no argument has rows"))?;
                code.leading(argument.memref, DYNAMIC)?
            }
            rows => code.index(rows.copied().unwrap_or(1))?,
        };
        let tile = self.work.tile;
        let [column, row] = self.tiles().place(code)?;
        let column = match self.streams {
            true => code.index(0)?,
            false => code.times(column, tile.columns)?,
        };
        let row = match self.work.ctas {
            1 => row,
            ctas => code.div(row, code.index(ctas)?)?,
        };
        Ok(Origin {
            batch: None,
            row: code.times(row, tile.rows)?,
            column,
            limit: [limit, code.index(self.columns)?],
        })
    }

    /// Stores an element a row, which all that share the row have, by the first of them.
    fn store_once(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        (value, to): (Val<'c>, &Argument<'c>),
        part: &dyn RowPart<'c>,
    ) -> PassResult<'c> {
        evaluator.value(value, Kind::Row)?;
        let code = evaluator.code;
        let [first, _] = part.columns();
        // Less than a vector is peeled off in front of the row's first part.
        let peeled = part.peel().map_or(0, |_| self.work.tile.vector - 1);
        let is_first = code.at_most(first, code.index(peeled)?)?;
        let store = |code| {
            let mut first = evaluator.at_column(code, evaluator.origin.column);
            first.store(value, Kind::Row, to)
        };
        code.branch(is_first, store, |_| Ok(()))
    }

    /// Stores the outputs; those with columns in a loop when a CTA's rows are longer than its tile.
    fn store(&self, evaluator: &mut Evaluator<'_, 'c>, outs: &[Argument<'c>]) -> PassResult<'c> {
        let looped = self.streams && !self.in_registers();
        let outer = |kind| Part::of(kind, Stream::Columns) == Part::Outer;
        let outputs = || self.fusion.outputs.iter().zip(outs);
        for ((value, kind), to) in outputs() {
            if let Some(part) = evaluator.part.filter(|_| outer(*kind)) {
                self.store_once(evaluator, (*value, to), part)?;
            } else if !looped || outer(*kind) {
                evaluator.store(*value, *kind, to)?;
            } else {
                evaluator.form_rows(*value, *kind)?;
            }
        }
        if !looped || self.fusion.outputs.iter().all(|(_, kind)| outer(*kind)) {
            return Ok(());
        }
        let inner = || outputs().filter(|((_, kind), _)| !outer(*kind));
        let peeled: Vec<_> = inner().map(|((value, _), to)| (*value, to)).collect();
        evaluator.store_peeled(&peeled)?;
        evaluator.for_tiles(&[], |tile, _| {
            for ((value, kind), to) in inner() {
                tile.store(*value, *kind, to)?;
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
