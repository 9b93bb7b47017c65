//! Elementwise operators and reductions of rows: tiles in registers, read once.

use super::gemm::count;
use super::layouts::RowTile;
use crate::facts::chip::MOST_BLOCKS;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Out, argument_types, launched};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::frame::{Frame, Operand};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::registers;
use axe_passes::fuse::reshape::{element_bytes, leading_of};
use axe_passes::fuse::space::{Kind, Size};
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};
use std::collections::HashMap;

/// Bytes of the widest access of a thread (PTX ISA, ld and st: `.v4.b32`).
const ACCESS_BYTES: i64 = 16;
/// Threads of a CTA, unless a row takes more.
const THREADS: i64 = 128;
/// Elements of one tensor that a thread keeps, in 32-bit registers: several tensors live at a time.
const KEPT_WORDS: i64 = 32;
/// Threads that share a row at most.
const MOST_ALONG: i64 = 512;

/// The least power of two that is not below `value`.
fn power_of_two(value: i64) -> i64 {
    u64::try_from(value)
        .ok()
        .and_then(u64::checked_next_power_of_two)
        .and_then(|power| i64::try_from(power).ok())
        .unwrap_or(1)
}

/// The widest vectors that rows of `columns` elements consist of, of elements of at least `bytes` bytes.
fn vector(columns: i64, bytes: i64) -> i64 {
    let mut vector = (ACCESS_BYTES / bytes.max(1)).max(1);
    while vector > 1 && columns % vector != 0 {
        vector /= 2;
    }
    vector
}

/// The tile of rows that are reduced: whole rows, as long as `words` registers an element allow; longer rows
/// go through the tile piece by piece.
#[must_use]
pub fn row_tile(columns: i64, bytes: i64, words: i64) -> RowTile {
    let vector = vector(columns, bytes);
    let kept = (KEPT_WORDS / words.max(1)).max(vector);
    let in_warp = power_of_two(count(columns, vector)).min(32);
    let along = match count(columns, kept) {
        threads if threads <= in_warp => in_warp,
        threads => power_of_two(threads).min(MOST_ALONG),
    };
    let chunks = count(columns, along * vector).min((kept / vector).max(1));
    let across = (THREADS / along).max(1);
    RowTile {
        rows: across,
        columns: along * vector * chunks,
        along,
        vector,
        across,
    }
}

/// The tile of elementwise operators: two vectors a thread.
#[must_use]
pub fn elementwise_tile(columns: i64, bytes: i64) -> RowTile {
    let vector = vector(columns, bytes);
    let along = power_of_two(count(columns, vector)).min(THREADS);
    let chunks = count(columns, along * vector).min(2);
    let across = THREADS / along;
    RowTile {
        rows: across * (2 / chunks),
        columns: along * vector * chunks,
        along,
        vector,
        across,
    }
}

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

/// The kernel of a group on tiles.
struct Plan<'a, 'c> {
    columns: i64,
    tile: RowTile,
    fusion: &'a Fusion<'c>,
}

/// Plans a kernel of elementwise operators and reductions of rows.
///
/// # Errors
/// At the operator, when its types are not supported or it is too large for a grid.
pub(super) fn plan<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
) -> PassResult<'c> {
    let plan = Plan::new(builder, fusion)?;
    let shape = |kind| fusion.shape(plan.columns, None, kind);
    let mut ins = Vec::new();
    for (value, kind) in &fusion.inputs {
        ins.push(frame.operand(builder, *value, &shape(*kind))?);
    }
    let mut outs = Vec::new();
    for (value, kind) in &fusion.outputs {
        outs.push((*value, frame.out(builder, *value, &shape(*kind))?));
    }
    let name = frame.name(if plan.reduces() { "rows" } else { "map" });
    let types = argument_types(&ins, &fusion.scalars, &outs);
    let kernel = Kernel::new(builder.location, frame.module, &types);
    plan.emit(&kernel, &ins, &outs)?;
    kernel.finish(frame.module, &name, plan.tile.threads())?;
    let grid = plan.grid(builder)?;
    frame.launch(
        builder,
        &name,
        grid,
        &launched(&ins, &fusion.scalars),
        &outs,
    )
}

impl<'a, 'c> Plan<'a, 'c> {
    fn new(builder: &Builder<'c>, fusion: &'a Fusion<'c>) -> PassResult<'c, Self> {
        let columns = fusion.columns.unwrap_or_else(|| free_columns(fusion.total));
        let moved = fusion.inputs.iter().chain(&fusion.outputs);
        let full = moved.filter(|(_, kind)| *kind == Kind::Full);
        let bytes: Vec<_> = full
            .map(|(value, _)| Ok(element_bytes(builder.tensor_of(*value)?.element)))
            .collect::<PassResult<_>>()?;
        let least = bytes.iter().copied().min().unwrap_or(4);
        let words = fusion.widest.max(4) / 4;
        let tile = match fusion.folds.is_empty() {
            false => row_tile(columns, least, words),
            true => elementwise_tile(columns, least),
        };
        Ok(Self {
            columns,
            tile,
            fusion,
        })
    }
}

impl<'c> Plan<'_, 'c> {
    /// Whether rows are reduced: their columns are streamed.
    const fn reduces(&self) -> bool {
        !self.fusion.folds.is_empty()
    }

    /// Whether tiles hold whole rows.
    fn in_registers(&self) -> bool {
        self.tile.columns >= self.columns
    }

    /// CTAs: tiles of rows along x, and of columns along y unless a CTA has all of its rows' columns.
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
                code.ceil_div(leading_of(builder, *value, &shape)?, self.tile.rows)?
            }
            rows => code.index(count(rows.copied().unwrap_or(1), self.tile.rows))?,
        };
        let y = if self.reduces() {
            1
        } else {
            count(self.columns, self.tile.columns)
        };
        if y > MOST_BLOCKS {
            let what = format!("rows of {} elements are more than a grid has", self.columns);
            return Err(PassError::new(builder.location, what));
        }
        Ok([x, code.index(y)?, code.index(1)?])
    }

    fn emit(&self, kernel: &Kernel<'c>, ins: &[Operand<'c>], outs: &[Out<'c>]) -> PassResult<'c> {
        let code = kernel.code;
        let layout = self
            .tile
            .layout()
            .map_err(|error| layout_error(code.builder.location, error))?;
        let registers = registers(code, [self.tile.rows, self.tile.columns], layout)?;
        let arguments = Arguments::of(kernel, ins, self.fusion, outs);
        let inputs = self.fusion.inputs.iter().filter_map(|input| {
            let argument = arguments.inputs.get(&(identity(input.0), input.1))?;
            Some((input, argument))
        });
        let outputs = self.fusion.outputs.iter().zip(&arguments.outputs);
        let origin = self.origin(code, inputs.chain(outputs))?;
        let mut evaluator = Evaluator {
            code,
            registers: &registers,
            columns: self.columns,
            arguments: &arguments.inputs,
            scalars: &arguments.scalars,
            origin,
            known: HashMap::new(),
        };
        self.store(&mut evaluator, &arguments.outputs)
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
        let column = if self.reduces() {
            code.index(0)?
        } else {
            code.times(code.block("y")?, self.tile.columns)?
        };
        Ok(Origin {
            batch: None,
            row: code.times(code.block("x")?, self.tile.rows)?,
            column,
            limit: [limit, code.index(self.columns)?],
        })
    }

    /// Stores the outputs; those with columns in a loop when a CTA's rows are longer than its tile.
    fn store(&self, evaluator: &mut Evaluator<'_, 'c>, outs: &[Argument<'c>]) -> PassResult<'c> {
        let looped = self.reduces() && !self.in_registers();
        let outputs = || self.fusion.outputs.iter().zip(outs);
        for ((value, kind), to) in outputs() {
            if !looped || *kind == Kind::Row {
                evaluator.store(*value, *kind, to)?;
            } else {
                evaluator.form_rows(*value, *kind)?;
            }
        }
        if !looped
            || self
                .fusion
                .outputs
                .iter()
                .all(|(_, kind)| *kind == Kind::Row)
        {
            return Ok(());
        }
        let (code, end) = (evaluator.code, evaluator.origin.limit[1]);
        code.for_each(end, self.tile.columns, &[], |code, column, _| {
            let mut inner = evaluator.at_column(code, column);
            for ((value, kind), to) in outputs().filter(|((_, kind), _)| *kind != Kind::Row) {
                inner.store(*value, *kind, to)?;
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
    fn rows_stay_in_registers_while_they_fit() {
        let tile = row_tile(1000, 2, 1);
        assert_eq!(
            (tile.along, tile.vector, tile.columns, tile.rows),
            (32, 8, 1024, 4)
        );
        let tile = row_tile(768, 2, 1);
        assert_eq!((tile.along, tile.columns), (32, 768));
        let tile = row_tile(4096, 4, 1);
        assert_eq!((tile.along, tile.columns, tile.rows), (128, 4096, 1));
        let tile = row_tile(64, 2, 1);
        assert_eq!((tile.along, tile.columns, tile.rows), (8, 64, 16));
        let tile = row_tile(100_000, 2, 1);
        assert_eq!((tile.along, tile.columns), (512, 16_384));
    }

    #[test]
    fn every_tile_has_a_layout_and_a_legal_number_of_threads() {
        for columns in [1, 2, 3, 7, 32, 80, 300, 999, 1000, 4096, 12_345, 70_000] {
            for bytes in [1, 2, 4, 8] {
                for tile in [
                    row_tile(columns, bytes, 1),
                    row_tile(columns, bytes, 2),
                    elementwise_tile(columns, bytes),
                ] {
                    assert!(tile.layout().is_ok(), "{tile:?}");
                    assert!(
                        tile.threads() % 32 == 0 && tile.threads() <= 1024,
                        "{tile:?}"
                    );
                    assert_eq!(columns % tile.vector, 0);
                }
            }
        }
    }

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
