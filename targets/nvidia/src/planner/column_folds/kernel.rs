//! The kernel of reductions of columns: threads go through the rows of their part, of which the next are on their way while some are combined.

use super::{Problem, Read, Reduction};
use crate::planner::columns::Columns;
use crate::planner::family::Launch;
use crate::planner::joined_rows::{Joined, Left};
use crate::planner::problem::count;
use crate::planner::row_tile::RowTile;
use axe_dialect::ops::MaskOp;
use axe_passes::PassResult;
use axe_passes::build::{self, Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, argument_types, inputs, launched, outputs};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::frame::{Operand, Out, operand};
use axe_passes::fuse::group::ColumnFold;
use axe_passes::fuse::registers::{Registers, part, registers};
use axe_passes::fuse::space::{Cut, Kind, product};
use axe_passes::ir::value::identity;
use axe_passes::ir::{TensorType, Val};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// The kernel of reductions.
pub(super) struct ColumnKernel<'a, 'c> {
    pub operators: &'a Read<'c>,
    pub tile: RowTile,
    /// Into how many parts the rows are cut, each a CTA's, and how many all but the last have.
    pub parts: i64,
    pub rows: i64,
    /// What came of parts for each reduction, where that is reduced in the place of what formed them.
    pub states: Vec<Val<'c>>,
}

/// What the kernel's loop works with.
struct Tiles<'c> {
    /// The rows that are loaded at once.
    whole: Registers,
    /// Those of one step, a row a thread.
    step: Registers,
    arguments: Arguments<'c>,
    column: Val<'c>,
    /// The rows that are reduced: the first, and the one behind the last.
    rows: [Val<'c>; 2],
    /// What is known of columns.
    known: HashMap<(usize, Kind), Val<'c>>,
}

impl<'c> ColumnKernel<'_, 'c> {
    /// What the kernel goes through.
    fn fold(&self) -> ColumnFold {
        let Problem { fold, joined, .. } = self.operators.problem;
        joined.of(fold)
    }

    /// The shape of a tensor: of the result, where there are dimensions in front of the rows, all that is kept.
    fn shape(&self, value: Val<'c>, kind: Kind) -> Vec<i64> {
        match self.operators.problem.fold {
            ColumnFold { outer, columns, .. } if self.is_kept(value, kind) => {
                vec![outer, columns]
            }
            fold => self.operators.fusion.shape(fold.columns, None, kind),
        }
    }

    /// Whether a value has elements of all dimensions that are kept, of which some are in front of the rows.
    fn is_kept(&self, value: Val<'c>, kind: Kind) -> bool {
        let fold = self.operators.problem.fold;
        let elements = TensorType::of_value(value).and_then(|own| product(&own.shape));
        kind == Kind::Column && fold.outer != 1 && elements == fold.kept()
    }

    /// Reads of what has elements of all dimensions that are kept the row of this block.
    fn read_block(&self, code: Code<'c>, arguments: &mut Arguments<'c>) -> PassResult<'c> {
        let inputs = self.operators.fusion.inputs.iter();
        for (value, kind) in inputs.filter(|(value, kind)| self.is_kept(*value, *kind)) {
            if let Some(own) = arguments.inputs.get_mut(&(identity(*value), *kind)) {
                let [_, block] = self.blocks().place(code)?;
                let whole = code.div(block, code.index(self.parts)?)?;
                *own = row(code, own, whole)?;
            }
        }
        Ok(())
    }

    /// What the kernel stores: of parts, all that is reduced.
    fn stored(&self) -> Vec<(Val<'c>, Kind)> {
        let outputs = &self.operators.fusion.outputs;
        if self.parts == 1 {
            return outputs.clone();
        }
        let states = self.operators.reductions.iter();
        let states = states.map(|own| (own.result, Kind::Column));
        let full = outputs.iter().filter(|(_, kind)| *kind == Kind::Full);
        states.chain(full.copied()).collect()
    }

    /// Adds a kernel that reduces parts, and one that reduces what comes of them and forms the results. Launches them.
    pub(super) fn launch_in_parts(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
        let (operators, builder) = (self.operators, launch.builder);
        let Problem { fold, joined, .. } = operators.problem;
        let rows = self.parts * joined.rows;
        let shape = [fold.outer * rows, fold.columns];
        let mut outs = Vec::new();
        for (value, kind) in self.stored() {
            let out = match kind {
                Kind::Full => launch.frame.out(builder, value, &self.shape(value, kind))?,
                _ => {
                    let states = builder.tensor(&shape, builder.tensor_of(value)?.element)?;
                    let states = builder.value("tensor.empty", &[], states, &[])?;
                    operand(builder, states, &shape)?
                }
            };
            outs.push((value, out));
        }
        let ins = self.ins(launch)?;
        let (name, mut states) = self.add(launch, &ins, &outs)?;
        let elements = states.split_off(operators.reductions.len());
        launch
            .frame
            .store(builder, &outs[states.len()..], elements)?;
        let rest = operators.rest(rows);
        let kernel = ColumnKernel {
            operators: &rest,
            tile: rest.problem.tile(),
            parts: 1,
            rows,
            states,
        };
        kernel.launch(launch)?;
        Ok(name)
    }

    /// Adds the kernel and launches it.
    pub(super) fn launch(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
        let ins = self.ins(launch)?;
        let Launch { frame, builder, .. } = launch;
        let shape = |value, kind| self.shape(value, kind);
        let outs = outputs(frame, builder, &self.operators.fusion, shape)?;
        let (name, results) = self.add(launch, &ins, &outs)?;
        launch.frame.store(launch.builder, &outs, results)?;
        Ok(name)
    }

    /// What the kernel reads.
    fn ins(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, Vec<Operand<'c>>> {
        let Launch { frame, builder, .. } = launch;
        let shape = |value, kind| self.shape(value, kind);
        let fusion = &self.operators.fusion;
        let mut fusion = fusion.clone();
        let of: Vec<_> = fusion.inputs.drain(..self.states.len()).collect();
        let mut ins = inputs(frame, builder, &fusion, shape)?;
        for (at, (states, (value, kind))) in (fusion.tables.len()..).zip(self.states.iter().zip(of))
        {
            ins.insert(at, operand(builder, *states, &shape(value, kind))?);
        }
        Ok(ins)
    }

    /// Adds the kernel, and gives its name and the results of its launch.
    fn add(
        &self,
        launch: &mut Launch<'_, 'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c, (String, Vec<Val<'c>>)> {
        let Launch { frame, builder, .. } = launch;
        let fusion = &self.operators.fusion;
        let name = frame.name("columns");
        let types = argument_types(ins, &fusion.scalars, outs);
        let first = self.operators.reductions.first();
        let at = first.map_or(builder.location, |own| own.op.location());
        let kernel = Kernel::new(at, frame.module, &types);
        self.emit(&kernel, ins, outs)?;
        kernel.finish(frame.module, &name, self.tile.threads())?;
        let code = Code { builder: **builder };
        let blocks = self.fold().outer * self.parts;
        let grid = self.blocks().grid(code, code.index(blocks)?, blocks)?;
        let tensors: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let launched = launched(ins, &fusion.scalars);
        let results = build::launch(builder, &name, grid, &launched, &tensors)?;
        Ok((name, results))
    }

    /// The tiles of a row.
    fn blocks(&self) -> Columns {
        Columns::in_order(count(self.fold().columns, self.tile.columns))
    }

    fn emit(&self, kernel: &Kernel<'c>, ins: &[Operand<'c>], outs: &[Out<'c>]) -> PassResult<'c> {
        let code = kernel.code;
        let arguments = Arguments::of(kernel, ins, &self.operators.fusion, outs);
        let mut left = None;
        let mut arguments = match self.operators.problem.joined {
            Joined::NONE => arguments,
            joined => {
                left = joined.left(code, self.operators.problem.fold, &arguments)?;
                joined.arguments(code, (self.fold(), self.parts), arguments)?
            }
        };
        self.read_block(code, &mut arguments)?;
        let mut tiles = self.tiles(code, arguments)?;
        let mut states = self.reduce(code, &mut tiles)?;
        if let Some(left) = &left {
            states = self.take(code, &tiles, left, &states)?;
        }
        for (own, state) in self.operators.reductions.iter().zip(states) {
            let element = code.builder.tensor_of(own.result)?.element;
            let r#type = tiles.step.r#type(code, Kind::Column, element)?;
            let sum = code.reduce(own.fold.combiner, state, 0, r#type)?;
            tiles
                .known
                .insert((identity(own.result), Kind::Column), sum);
        }
        let is_row = self.fold().outer == 1 && self.parts == 1;
        let mut evaluator = self.evaluator(code, &tiles, &tiles.step, tiles.rows[0]);
        for ((value, kind), to) in self.stored().into_iter().zip(&tiles.arguments.outputs) {
            match kind {
                // Elements of the rows are stored on the way.
                Kind::Full => {}
                _ if is_row => evaluator.store(value, kind, to)?,
                _ => {
                    let [_, block] = self.blocks().place(code)?;
                    evaluator.store(value, kind, &row(code, to, block)?)?;
                }
            }
        }
        Ok(())
    }

    fn tiles(&self, code: Code<'c>, arguments: Arguments<'c>) -> PassResult<'c, Tiles<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let tile = self.tile;
        let layout = tile.layout().map_err(failed)?;
        let shape = [tile.rows, tile.columns];
        let own = part(&layout, &shape, &[0..tile.across, 0..tile.columns]).map_err(failed)?;
        let [column, block] = self.blocks().place(code)?;
        let rows = self.rows(code, block)?;
        Ok(Tiles {
            whole: registers(code, shape, layout)?,
            step: registers(code, [tile.across, tile.columns], own)?,
            arguments,
            column: code.times(column, tile.columns)?,
            rows,
            known: HashMap::new(),
        })
    }

    /// The rows of a block, the first and the one behind the last: all that become one, or a part of them.
    fn rows(&self, code: Code<'c>, block: Val<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let rows = self.fold().rows;
        if self.parts == 1 {
            let first = code.times(block, rows)?;
            return Ok([first, code.add(first, code.index(rows)?)?]);
        }
        let parts = code.index(self.parts)?;
        let start = code.times(code.div(block, parts)?, rows)?;
        let first = code.add(start, code.times(code.rem(block, parts)?, self.rows)?)?;
        let (end, last) = (
            code.add(first, code.index(self.rows)?)?,
            code.add(start, code.index(rows)?)?,
        );
        Ok([first, code.min(end, last)?])
    }

    fn evaluator<'b>(
        &self,
        code: Code<'c>,
        tiles: &'b Tiles<'c>,
        registers: &'b Registers,
        row: Val<'c>,
    ) -> Evaluator<'b, 'c> {
        let tile = (registers, Cut::rows_of(self.fold().columns));
        let read = (&tiles.arguments.inputs, &tiles.arguments.scalars);
        let origin = Origin {
            batch: None,
            row,
            column: tiles.column,
            limit: [tiles.rows[1], tiles.column],
        };
        Evaluator {
            known: tiles.known.clone(),
            ..Evaluator::new(code, tile, read, origin)
        }
    }

    /// The tensors of which each element is read.
    fn streamed(&self) -> impl Iterator<Item = Val<'c>> {
        let inputs = self.operators.fusion.inputs.iter();
        let full = inputs.filter(|(_, kind)| *kind == Kind::Full);
        full.map(|(value, _)| *value)
    }

    fn load(
        &self,
        code: Code<'c>,
        tiles: &Tiles<'c>,
        row: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut evaluator = self.evaluator(code, tiles, &tiles.whole, row);
        self.streamed()
            .map(|value| evaluator.value(value, Kind::Full))
            .collect()
    }

    /// The rows of a tile, combined: a row of states for each row of threads. The next rows are on their way while some are
    /// combined.
    fn reduce(&self, code: Code<'c>, tiles: &mut Tiles<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let operators = self.operators;
        let mut evaluator = self.evaluator(code, tiles, &tiles.step, tiles.rows[0]);
        for (value, kind) in operators.fusion.inputs.iter() {
            if *kind == Kind::Column {
                evaluator.value(*value, *kind)?;
            }
        }
        let known = std::mem::take(&mut evaluator.known);
        tiles.known = known;
        let tiles = &*tiles;
        let (mut carried, mut neutrals) = (Vec::new(), Vec::new());
        for own in &operators.reductions {
            let element = code.builder.tensor_of(own.from)?.element;
            let neutral = code.scalar(element, own.fold.neutral())?;
            neutrals.push(neutral);
            carried.push(code.fill(neutral, tiles.step.r#type(code, Kind::Full, element)?)?);
        }
        carried.extend(self.load(code, tiles, tiles.rows[0])?);
        let bounds = [tiles.rows[0], tiles.rows[1], code.index(self.tile.rows)?];
        let mut states = code.for_range(bounds, &carried, |code, row, carried| {
            let (states, pieces) = carried.split_at(neutrals.len());
            let next = self.load(code, tiles, code.add(row, code.index(self.tile.rows)?)?)?;
            let states = self.combine(code, tiles, (row, pieces), (states, &neutrals))?;
            Ok([states, next].concat())
        })?;
        states.truncate(neutrals.len());
        Ok(states)
    }

    /// Takes the rows that were loaded into the states, step by step.
    fn combine(
        &self,
        code: Code<'c>,
        tiles: &Tiles<'c>,
        (row, pieces): (Val<'c>, &[Val<'c>]),
        (states, neutrals): (&[Val<'c>], &[Val<'c>]),
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut states = states.to_vec();
        for first in (0..self.tile.rows).step_by(usize::try_from(self.tile.across).unwrap_or(1)) {
            let row = code.add(row, code.index(first)?)?;
            let mut evaluator = self.evaluator(code, tiles, &tiles.step, row);
            for (value, piece) in self.streamed().zip(pieces) {
                let own = axe_dialect::element_type(piece.r#type());
                let r#type = tiles.step.r#type(code, Kind::Full, own)?;
                let step = code.extract_slice(*piece, &[first, 0], r#type)?;
                evaluator.known.insert((identity(value), Kind::Full), step);
            }
            let own = self.operators.reductions.iter();
            for ((own, state), neutral) in own.zip(&mut states).zip(neutrals) {
                let value = evaluator.value(own.from, Kind::Full)?;
                let value = self.masked(code, tiles, (row, value), *neutral)?;
                let element = code.builder.tensor_of(own.from)?.element;
                *state = own.fold.merge(code, element, *state, value)?;
            }
            for ((value, kind), to) in self.stored().into_iter().zip(&tiles.arguments.outputs) {
                if kind == Kind::Full {
                    evaluator.store(value, kind, to)?;
                }
            }
        }
        Ok(states)
    }

    /// Takes the rows that are left into the states of the last part.
    fn take(
        &self,
        code: Code<'c>,
        tiles: &Tiles<'c>,
        left: &Left<'c>,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        // The tensor is one row there, and that of another part's tile one which does not exist.
        let [zero, one] = [code.index(0)?, code.index(1)?];
        let last = code.index(self.fold().rows)?;
        let row = code.where_at_most([last, tiles.rows[1]], [zero, one])?;
        let column = code.add(tiles.column, code.index(left.first)?)?;
        let limit = [one, code.index(left.end)?];
        let origin = Origin {
            batch: None,
            row,
            column,
            limit,
        };
        let registers = (&tiles.step, Cut::rows_of(left.end));
        let read = (&left.inputs, &tiles.arguments.scalars);
        let mut evaluator = Evaluator::new(code, registers, read, origin);
        let taken = |(own, state): (&Reduction<'c>, &Val<'c>)| {
            let element = code.builder.tensor_of(own.from)?.element;
            let value = evaluator.value(own.from, Kind::Full)?;
            let neutral = code.scalar(element, own.fold.neutral())?;
            let operands = MaskOp::operands(value, &[row, column], &limit, neutral);
            let value = code
                .builder
                .operator_value(&operands, value.r#type(), &[])?;
            own.fold.merge(code, element, *state, value)
        };
        let reductions = self.operators.reductions.iter();
        reductions.zip(states).map(taken).collect()
    }

    /// A step's values, of which those behind the last row change no state.
    fn masked(
        &self,
        code: Code<'c>,
        tiles: &Tiles<'c>,
        (row, value): (Val<'c>, Val<'c>),
        neutral: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if self.fold().rows % self.tile.rows == 0 {
            return Ok(value);
        }
        let columns = code.add(tiles.column, code.index(self.tile.columns)?)?;
        let (origin, limit) = ([row, tiles.column], [tiles.rows[1], columns]);
        let operands = MaskOp::operands(value, &origin, &limit, neutral);
        code.builder.operator_value(&operands, value.r#type(), &[])
    }
}

/// A row of an argument.
fn row<'c>(code: Code<'c>, own: &Argument<'c>, row: Val<'c>) -> PassResult<'c, Argument<'c>> {
    let columns = own.extents.last().copied().unwrap_or(1);
    let at = [row, code.index(0)?];
    let memref = code.global_box(own.memref, &own.extents, &at, &[columns])?;
    Ok(Argument::global(memref, vec![columns]))
}
