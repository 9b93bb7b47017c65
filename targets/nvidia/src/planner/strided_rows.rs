//! Rows whose columns other dimensions follow, as in softmax over channels: CTAs have neighbouring rows of a matrix, which they read
//! once, into registers or shared memory.

use super::choose::search::{self, Candidate};
use super::columns::Columns;
use super::family::{Family, Launch};
use super::knobs::Plan;
use super::problem::count;
use super::strided_tile::{StridedRow, StridedTile};
use crate::facts::chip::Chip;
use axe_dialect::ops;
use axe_layout::Layout;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, argument_types, launched, tensors};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::fold::{Part, Stream};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::operators::is_reshape;
use axe_passes::fuse::registers::registers;
use axe_passes::fuse::reshape::{element_bytes, leading_of};
use axe_passes::fuse::space::{Cut, Kind, Size};
use axe_passes::ir::value::{defining, identity, name, operands};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;

/// The family.
pub(super) struct StridedRows;

/// Values that are looked at for what one is formed of.
const MOST_FOLLOWED: usize = 64;

/// Operators of a group, read.
pub(super) struct Read<'c> {
    fusion: Fusion<'c>,
    problem: Problem,
}

/// What they compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    total: Size,
    row: StridedRow,
    /// Bytes that are moved for an element of the space.
    moved: i64,
}

impl Problem {
    fn tile(self, chip: &Chip) -> Option<StridedTile> {
        StridedTile::of(self.row, chip).or_else(|| StridedTile::passing(self.row))
    }
}

/// Whether a CTA holds rows of such a value, as far as that can be said before it is known what is computed with them.
pub(super) fn holds(value: Val<'_>, cut: Cut, chip: &Chip) -> bool {
    let bytes_of = |value| TensorType::of_value(value).map(|own| element_bytes(own.element));
    let (Some(total), Some(kept)) = (Size::of(value), bytes_of(value)) else {
        return false;
    };
    let read: Vec<_> = formed_of(value, total)
        .into_iter()
        .filter_map(bytes_of)
        .collect();
    let row = StridedRow {
        cut,
        outer: outer(total, cut),
        bytes: read.iter().copied().min().unwrap_or(kept),
        read: read.iter().sum(),
        words: kept.max(4) / 4,
    };
    StridedTile::of(row, chip).is_some()
}

/// The tensors of which a value is formed element by element.
fn formed_of(value: Val<'_>, total: Size) -> Vec<Val<'_>> {
    let (mut found, mut seen, mut next) = (Vec::new(), Vec::new(), vec![value]);
    while let Some(value) = next.pop() {
        if seen.contains(&value) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        seen.push(value);
        let op = defining(value);
        let by_element =
            |op: &Op<'_>| [ops::MAP, ops::CAST].contains(&name(*op).as_str()) || is_reshape(*op);
        match op.filter(by_element) {
            Some(op) => next.extend(operands(op)),
            None if op.is_none_or(|op| name(op) != ops::BROADCAST) => {
                found.extend(Some(value).filter(|own| Size::of(*own) == Some(total)));
            }
            None => {}
        }
    }
    found
}

/// Matrices of such rows, where they are known.
fn outer(total: Size, cut: Cut) -> Option<i64> {
    (!total.dynamic).then(|| total.known / cut.columns / cut.stride)
}

impl Family for StridedRows {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = StridedTile;

    /// The tile follows from the types and the extents.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        builder: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let fusion = Fusion::read(group, outputs, None)?;
        let cut = fusion
            .cut
            .ok_or_else(|| PassError::new(builder.location, "expected rows"))?;
        let [read, written] = [&fusion.inputs, &fusion.outputs].map(|own| Fusion::full_bytes(own));
        let row = StridedRow {
            cut,
            outer: outer(fusion.total, cut),
            bytes: read.iter().chain(&written).copied().min().unwrap_or(4),
            read: read.iter().sum(),
            words: fusion.widest.max(4) / 4,
        };
        let problem = Problem {
            total: fusion.total,
            row,
            moved: read.iter().chain(&written).sum(),
        };
        Ok(Read { fusion, problem })
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Read<'_>, _: &Plan, chip: &Chip) -> Result<StridedTile, String> {
        let tile = operators.problem.tile(chip);
        tile.ok_or_else(|| "the rows have no columns".to_owned())
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<StridedTile>> {
        problem.tile(chip).map_or_else(Vec::new, |config| {
            let clocks = Self::clocks(problem, config, chip);
            search::only(config, clocks, limit)
        })
    }

    /// Elements are read and written once.
    fn clocks(problem: Problem, _: StridedTile, chip: &Chip) -> f64 {
        let bytes = problem.total.known as f64 * problem.moved as f64;
        bytes / chip.multiprocessors as f64 / chip.mma.l2_bytes + chip.mma.overhead
    }

    fn tile(config: StridedTile) -> [i64; 3] {
        [config.rows, config.columns, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        let Problem { total, row, .. } = operators.problem;
        let outer = if total.dynamic { "? x " } else { "" };
        let Cut { columns, stride } = row.cut;
        format!(
            "{outer}{} elements in rows of {columns}, {stride} elements apart",
            total.known
        )
    }

    fn emit<'c>(
        operators: &Read<'c>,
        tile: StridedTile,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let Read { fusion, problem } = operators;
        let kernel = RowKernel {
            fusion,
            row: problem.row,
            tile,
        };
        kernel.launch(launch)
    }
}

/// The kernel of a group.
struct RowKernel<'a, 'c> {
    fusion: &'a Fusion<'c>,
    row: StridedRow,
    tile: StridedTile,
}

impl<'c> RowKernel<'_, 'c> {
    /// Adds the kernel and launches it.
    fn launch(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
        let Launch { frame, builder, .. } = launch;
        let (fusion, builder) = (self.fusion, *builder);
        let (ins, outs) = tensors(frame, builder, fusion, |_, kind| self.shape(kind))?;
        let name = frame.name("strided_rows");
        let types = argument_types(&ins, &fusion.scalars, &outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        self.emit(&kernel, &ins, &outs)?;
        kernel.finish(frame.module, &name, self.tile.threads())?;
        let grid = self.grid(builder)?;
        let read = launched(&ins, &fusion.scalars);
        frame.launch(builder, &name, grid, &read, &outs)?;
        Ok(name)
    }

    /// The shape of a tensor as it lies in memory.
    fn shape(&self, kind: Kind) -> Vec<i64> {
        let Cut { columns, stride } = self.row.cut;
        let outer = self.row.outer.unwrap_or(DYNAMIC);
        match kind {
            Kind::Row => vec![outer, stride],
            Kind::Column => vec![columns],
            Kind::Full | Kind::Blocks(_) | Kind::Pairs(_) => vec![outer, columns, stride],
        }
    }

    /// The tiles of a matrix.
    fn tiles(&self) -> Columns {
        Columns::in_order(count(self.row.cut.stride, self.tile.rows))
    }

    fn grid(&self, builder: &Builder<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let outer = match self.row.outer {
            Some(outer) => code.index(outer)?,
            None => {
                let tensors = self.fusion.outputs.iter().chain(&self.fusion.inputs);
                let mut whole = tensors.filter(|(_, kind)| *kind != Kind::Column);
                let (value, kind) = whole.next().ok_or_else(|| {
                    PassError::new(builder.location, "no tensor has the kernel's rows")
                })?;
                leading_of(builder, *value, &self.shape(*kind))?
            }
        };
        self.tiles().grid(code, outer, self.row.outer.unwrap_or(1))
    }

    fn emit(&self, kernel: &Kernel<'c>, ins: &[Operand<'c>], outs: &[Out<'c>]) -> PassResult<'c> {
        let code = kernel.code;
        let tile = self.tile;
        let layout = tile
            .layout()
            .map_err(|error| layout_error(code.builder.location, error))?;
        let registers = registers(code, [tile.rows, tile.columns], layout)?;
        let mut arguments = Arguments::of(kernel, ins, self.fusion, outs);
        let [number, outer] = self.tiles().place(code)?;
        let Cut { columns, stride } = self.row.cut;
        let origin = Origin {
            batch: Some(outer),
            row: code.times(number, tile.rows)?,
            column: code.index(0)?,
            limit: [code.index(stride)?, code.index(columns)?],
        };
        self.stage(code, &mut arguments, &origin)?;
        let read = (&arguments.inputs, &arguments.scalars);
        let mut evaluator = Evaluator::new(code, (&registers, self.row.cut), read, origin);
        self.store(&mut evaluator, &arguments.outputs)
    }

    /// Copies the rows to shared memory, where they do not stay in registers, and waits for them.
    fn stage(
        &self,
        code: Code<'c>,
        arguments: &mut Arguments<'c>,
        origin: &Origin<'c>,
    ) -> PassResult<'c> {
        let Some(columns) = self.tile.staged else {
            return Ok(());
        };
        for (value, kind) in &self.fusion.inputs {
            let key = (identity(*value), *kind);
            if let (Kind::Full, Some(argument)) = (kind, arguments.inputs.get_mut(&key)) {
                *argument = self.fetch(code, argument, columns, origin)?;
            }
        }
        code.commit()?;
        code.wait(0)
    }

    fn fetch(
        &self,
        code: Code<'c>,
        argument: &Argument<'c>,
        columns: i64,
        origin: &Origin<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let shape = [columns, self.tile.rows];
        let layout = Layout::strided(&shape, &[self.tile.rows, 1])
            .map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(argument.memref.r#type());
        let memref = code.alloc(&shape, element, &layout)?;
        let at: Vec<_> = origin
            .batch
            .into_iter()
            .chain([origin.column, origin.row])
            .collect();
        let from = code.global_box(argument.memref, &argument.extents, &at, &shape)?;
        code.copy_async(from, memref)?;
        let at = [origin.row, origin.column];
        Ok(Argument::staged(memref, shape.to_vec(), at))
    }

    /// Stores the outputs; those with columns piece by piece where rows go through the tile so.
    fn store(&self, evaluator: &mut Evaluator<'_, 'c>, outs: &[Argument<'c>]) -> PassResult<'c> {
        let outer = |kind| Part::of(kind, Stream::Columns) == Part::Outer;
        let in_registers = self.tile.columns >= self.row.cut.columns;
        let looped = |kind: Kind| !in_registers && !outer(kind);
        let outputs = || self.fusion.outputs.iter().zip(outs);
        for ((value, kind), to) in outputs() {
            match looped(*kind) {
                true => evaluator.form_rows(*value, *kind)?,
                false => evaluator.store(*value, *kind, to)?,
            }
        }
        if outputs().all(|((_, kind), _)| !looped(*kind)) {
            return Ok(());
        }
        evaluator.for_columns(&[], |inner, _| {
            for ((value, kind), to) in outputs().filter(|((_, kind), _)| looped(*kind)) {
                inner.store(*value, *kind, to)?;
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
