//! Elementwise operators and reductions of rows: tiles in registers, read once. The columns of rows that are reduced are what
//! the kernel streams; its reductions are the folds, what is an element a row is outer, the rest inner.

use super::choose::search::{self, Candidate};
use super::columns::Columns;
use super::family::{Family, Launch};
use super::flat::Flat;
use super::knobs::Plan;
use super::long_rows::{Row, RowWork, Staged};
use super::packed_rows::{self, Packed, Use};
use super::problem::count;
use super::row_tile::elementwise_tile;
use super::row_walk::Walked;
use crate::facts::chip::{ACCESS_BYTES, Chip};
use axe_dialect::Level;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, argument_types, launched, tensors};
use axe_passes::fuse::evaluate::{Evaluator, Origin, RowPart};
use axe_passes::fuse::fold::{Part, Stream};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::reshape::leading_of;
use axe_passes::fuse::rounds::Round;
use axe_passes::fuse::space::{Cut, Kind, Size};
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};
use std::collections::HashMap;

/// Threads of a CTA, among which free elements are cut.
const THREADS: i64 = 128;

/// Columns for elements that nothing ties to rows: any row length gives the same tensor, so one that
/// tiles divide.
fn free_columns(total: Size) -> i64 {
    let most = if total.dynamic {
        total.known
    } else {
        total.known / THREADS
    };
    let fits = |columns: &i64| *columns <= most.max(1) && total.known % columns == 0;
    [2048, 1024, 512, 256, 128]
        .into_iter()
        .find(fits)
        .unwrap_or(total.known)
}

/// The family.
pub(super) struct Rows;

/// The inputs of a kernel, by value and kind.
type Inputs<'c> = HashMap<(usize, Kind), Argument<'c>>;

/// Operators of a group, read.
pub(super) struct Read<'c> {
    fusion: Fusion<'c>,
    problem: Problem,
}

/// What they compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Elements of the space.
    total: Size,
    columns: i64,
    /// Bytes of the narrowest element that is moved.
    bytes: i64,
    /// 32-bit registers of the widest that a thread keeps.
    words: i64,
    /// Bytes that are moved for an element of the space, and those that are read.
    moved: i64,
    read: i64,
    /// How often rows are gone through that are not held: for each reduction, and for what has columns.
    passes: usize,
    /// Whether rows are reduced: their columns are streamed.
    streams: bool,
    /// Whether the kernel goes through rows once and stores no elements of them.
    is_read_once: bool,
    /// Whether no fold wants to know how many columns a thread group has.
    is_peelable: bool,
    /// Whether elements are of one row, as any would do.
    is_flat: bool,
    /// Whether a value a column is read for all rows.
    repeats: bool,
}

impl Family for Rows {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = RowWork;

    /// The tile follows from the types and the columns.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        _: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let fusion = Fusion::read(group, outputs, None)?;
        let [read, written] = [&fusion.inputs, &fusion.outputs].map(|own| Fusion::full_bytes(own));
        let bytes = || read.iter().chain(&written).copied();
        let streams = fusion.stream() == Some(Stream::Columns);
        let problem = Problem {
            total: fusion.total,
            columns: fusion
                .columns()
                .unwrap_or_else(|| free_columns(fusion.total)),
            bytes: bytes().min().unwrap_or(4),
            words: fusion.widest.max(4) / 4,
            moved: bytes().sum(),
            read: read.iter().sum(),
            passes: fusion.folds.len() + usize::from(!written.is_empty()),
            streams,
            is_read_once: streams && is_read_once(&fusion),
            is_peelable: fusion.rounds().iter().all(Round::is_online),
            is_flat: is_flat(&fusion),
            repeats: fusion.inputs.iter().any(|(_, kind)| *kind == Kind::Column),
        };
        Ok(Read { fusion, problem })
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Read<'_>, _: &Plan, chip: &Chip) -> Result<RowWork, String> {
        Ok(operators.problem.work(chip))
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<RowWork>> {
        let config = problem.work(chip);
        let clocks = Self::clocks(problem, config, chip);
        search::only(config, clocks, limit)
    }

    /// Waves of tiles, each of which reads and writes its elements once.
    fn clocks(problem: Problem, config: RowWork, chip: &Chip) -> f64 {
        let elements = problem.total.known.max(1) as f64;
        let tile = (config.tile.rows * config.tile.columns) as f64;
        let waves = (elements / tile / chip.multiprocessors as f64).ceil();
        waves * tile * problem.moved as f64 / chip.mma.l2_bytes + chip.mma.overhead
    }

    fn tile(config: RowWork) -> [i64; 3] {
        [config.tile.rows, config.tile.columns, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        let Problem { total, columns, .. } = operators.problem;
        let rows = if total.dynamic { "? x " } else { "" };
        format!("{rows}{} elements in rows of {columns}", total.known)
    }

    fn emit<'c>(
        operators: &Read<'c>,
        work: RowWork,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let Read { fusion, problem } = operators;
        let kernel = RowKernel {
            fusion,
            columns: problem.columns,
            bytes: problem.bytes,
            streams: problem.streams,
            flat: problem.flat(),
            work,
        };
        kernel.launch(launch)
    }
}

/// Whether nothing ties elements to rows.
fn is_flat(fusion: &Fusion<'_>) -> bool {
    let tensors = || fusion.inputs.iter().chain(&fusion.outputs);
    let is_free = fusion.cut.is_none() && !fusion.total.dynamic;
    is_free && tensors().all(|(_, kind)| *kind == Kind::Full)
}

/// Whether one round of folds is all that a kernel takes of its rows' elements. Rows that begin anywhere have columns that a load
/// does not find together.
fn is_read_once(fusion: &Fusion<'_>) -> bool {
    let rounds = fusion.rounds();
    let is_online = matches!(&rounds[..], [round] if round.is_online());
    let is_aligned = || {
        fusion
            .columns()
            .is_some_and(|columns| columns % ACCESS_BYTES == 0)
    };
    let is_column = |(_, kind): &(Val<'_>, Kind)| *kind == Kind::Column;
    let of_rows = |(_, kind): &(Val<'_>, Kind)| *kind == Kind::Row;
    is_online
        && !fusion.total.dynamic
        && fusion.outputs.iter().all(of_rows)
        && (is_aligned() || !fusion.inputs.iter().any(is_column))
}

impl Problem {
    const fn row(self) -> Row {
        Row {
            columns: self.columns,
            bytes: self.bytes,
            words: self.words,
            read: self.read,
            passes: self.passes,
            dynamic: self.total.dynamic,
            is_read_once: self.is_read_once,
            is_peelable: self.is_peelable,
        }
    }

    /// Elements in one row, of which the last are in no vector.
    fn flat(self) -> Option<Flat> {
        let one_row = self.is_flat && self.columns == self.total.known;
        Flat::of(self.columns, self.bytes).filter(|_| one_row)
    }

    /// The tile of short rows that begin anywhere, where columns are read and written.
    fn packed(self) -> Option<RowWork> {
        let moves = self.read > 0 && self.moved > self.read && !self.is_flat;
        let how = match (self.streams, self.repeats) {
            (false, _) => Use::Elementwise,
            (true, false) => Use::Reduced,
            (true, true) => Use::ReducedAndRepeated,
        };
        let tile = packed_rows::tile(self.row(), self.moved, how);
        let tile = tile.filter(|_| moves && !self.total.dynamic)?;
        Some(RowWork {
            is_packed: true,
            ..RowWork::of(tile)
        })
    }

    fn work(self, chip: &Chip) -> RowWork {
        if let Some(packed) = self.packed() {
            return packed;
        }
        match self.streams {
            true => RowWork::of_rows(self.row(), chip),
            false => RowWork::of(match self.flat() {
                Some(flat) => flat.tile(self.bytes),
                None => elementwise_tile(self.columns, self.bytes),
            }),
        }
    }
}

/// The kernel of a group.
struct RowKernel<'a, 'c> {
    fusion: &'a Fusion<'c>,
    columns: i64,
    /// Bytes of the narrowest element that is moved.
    bytes: i64,
    streams: bool,
    flat: Option<Flat>,
    work: RowWork,
}

impl<'c> RowKernel<'_, 'c> {
    /// Adds the kernel and launches it.
    fn launch(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
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
        let rounds = self.fusion.rounds();
        if let Some(flat) = self.flat {
            return self.emit_flat(code, flat, (&registers, origin), &arguments);
        }
        if self.work.is_packed {
            return self.emit_packed(code, (&registers, origin), arguments);
        }
        let staged = self.stage(code, &mut arguments, (origin.row, &rounds))?;
        let walked = self.walk(code, (origin.row, &rounds))?;
        let form = |code: Code<'c>, inputs: &Inputs<'c>, part: Option<&dyn RowPart<'c>>| {
            let mut evaluator = Evaluator {
                part,
                kept: self.fusion.kept().filter(|_| self.work.staged.is_some()),
                ..self.evaluator(code, (&registers, origin), (inputs, &arguments.scalars))
            };
            if part.is_some_and(|part| part.walk().is_none()) {
                for value in self.fusion.rows_without_folds() {
                    evaluator.value(value, Kind::Row)?;
                }
            }
            for (number, round) in rounds.iter().enumerate() {
                evaluator.form_round(number, round)?;
            }
            self.store(&mut evaluator, &arguments.outputs)
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

    /// The group's values on a tile at this place.
    fn evaluator<'e>(
        &self,
        code: Code<'c>,
        (registers, origin): (&'e Registers, Origin<'c>),
        (arguments, scalars): (&'e Inputs<'c>, &'e HashMap<usize, Val<'c>>),
    ) -> Evaluator<'e, 'c> {
        Evaluator {
            code,
            registers,
            cut: Cut::rows_of(self.columns),
            arguments,
            scalars,
            origin,
            part: None,
            kept: None,
            along: None,
            inside: false,
            known: HashMap::new(),
        }
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
        let mut written = Vec::new();
        let outputs = self.fusion.outputs.iter().zip(&mut arguments.outputs);
        for (_, argument) in outputs.filter(|((_, kind), _)| full(kind)) {
            let room = packed.room(code, argument)?;
            *argument = room.rows.clone();
            written.push(room);
        }
        let inputs = (&arguments.inputs, &arguments.scalars);
        let mut evaluator = self.evaluator(code, (registers, origin), inputs);
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
            if let (Kind::Full, Some(argument)) = (kind, arguments.inputs.get_mut(&key)) {
                let (fetched, tail) = part.fetch(code, (key, argument))?;
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
    fn rows(&self) -> i64 {
        let rows = self.fusion.shape(self.columns, None, Kind::Row);
        rows.first().copied().unwrap_or(1)
    }

    fn origin<'a>(
        &self,
        code: Code<'c>,
        mut tensors: impl Iterator<Item = (&'a (Val<'c>, Kind), &'a Argument<'c>)>,
    ) -> PassResult<'c, Origin<'c>>
    where
        'c: 'a,
    {
        let rows = self.fusion.shape(self.columns, None, Kind::Row);
        let limit = match rows.first() {
            Some(&DYNAMIC) => {
                let whole = tensors.find(|((_, kind), _)| *kind != Kind::Column);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_elements_are_cut_where_tiles_divide_them() {
        assert_eq!(
            free_columns(Size {
                dynamic: false,
                known: 128 * 1000
            }),
            512
        );
        assert_eq!(
            free_columns(Size {
                dynamic: true,
                known: 768
            }),
            256
        );
        assert_eq!(
            free_columns(Size {
                dynamic: true,
                known: 300
            }),
            300
        );
    }
}
