//! Broadcasts that no other operator of their group takes in.

use super::{Single, blocks, dynamic_leading, places, runs};
use crate::planner::row_tile::{RowTile, elementwise_tile};
use axe_dialect::ops;
use axe_passes::build::layout_error;
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::registers::without;
use axe_passes::ir::{Builder, Op};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;

/// How a tensor is repeated: the last two runs of dimensions are a tile, of which one is repeated.
pub(super) struct Broadcast {
    /// Extents of the result, and whether the source lacks them.
    runs: Vec<(i64, bool)>,
    /// The last but one, and the last.
    tiled: [(i64, bool); 2],
}

impl Broadcast {
    /// A broadcast to this shape, along these dimensions.
    ///
    /// # Errors
    /// At the operator, when it repeats nothing.
    pub(super) fn new<'c>(op: Op<'c>, shape: &[i64], dims: &[i64]) -> PassResult<'c, Self> {
        let mut runs = runs(shape, |dim| dims.contains(&dim));
        if runs.iter().all(|(_, repeated)| *repeated) {
            runs.push((1, false));
        }
        match runs[..] {
            [.., rows, columns] => Ok(Self {
                tiled: [rows, columns],
                runs,
            }),
            _ => Err(PassError::new(
                op.location(),
                "a broadcast that repeats nothing",
            )),
        }
    }

    /// The tile of elements of so many bytes.
    pub(super) fn tile(&self, bytes: i64) -> RowTile {
        let [_, (columns, _)] = self.tiled;
        elementwise_tile(columns, bytes)
    }
}

impl<'c> Single<'c> {
    /// Repeats rows or columns.
    pub(super) fn broadcast(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        Broadcast { runs, tiled }: &Broadcast,
        tile: RowTile,
    ) -> PassResult<'c, String> {
        let to: Vec<i64> = runs.iter().map(|(extent, _)| *extent).collect();
        let kept: Vec<i64> = runs
            .iter()
            .filter(|(_, repeated)| !repeated)
            .map(|(extent, _)| *extent)
            .collect();
        let (from, out) = (
            frame.operand(builder, self.from, &kept)?,
            frame.out(builder, self.result, &to)?,
        );
        let [(_, rows_repeated), _] = tiled;
        let element = builder.tensor_of(self.result)?.element;
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        let code = kernel.code;
        let failed = |error| layout_error(self.op.location(), error);
        let layout = tile.layout().map_err(failed)?;
        let at = places(code, &to, [tile.rows, tile.columns])?;
        let kept_at: Vec<_> = at
            .iter()
            .zip(runs)
            .filter(|(_, (_, repeated))| !repeated)
            .map(|(at, _)| *at)
            .collect();
        let (length, dim) = if *rows_repeated {
            (tile.columns, 0)
        } else {
            (tile.rows, 1)
        };
        let vector = without(&layout, &[tile.rows, tile.columns], dim).map_err(failed)?;
        let piece = code.global_box(source, &kept, &kept_at, &[length])?;
        let piece = code.load(piece, code.fragment(&[length], element, &vector)?)?;
        let whole = code.fragment(&[tile.rows, tile.columns], element, &layout)?;
        let dim = i64::try_from(dim).unwrap_or_default();
        let attributes = [("dims", code.builder.i64s(&[dim]))];
        let whole = code
            .builder
            .value(ops::BROADCAST, &[piece], whole, &attributes)?;
        code.store(
            whole,
            code.global_box(result, &to, &at, &[tile.rows, tile.columns])?,
        )?;
        let name = frame.name("broadcast");
        kernel.finish(frame.module, &name, tile.threads())?;
        let leading = dynamic_leading(builder, self.result, &to)?;
        let grid = blocks(builder, &to, [tile.rows, tile.columns], leading)?;
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])?;
        Ok(name)
    }
}
