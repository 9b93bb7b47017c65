//! Permutations of dimensions: tiles that both sides read and write along rows.

mod plan;
mod unaligned;
mod vectors;

use super::{Single, dynamic_leading};
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, BANKS_BYTES};
use crate::planner::columns::Columns;
use crate::planner::layouts::layout;
use crate::planner::row_tile::RowTile;
use crate::vocabulary::WARP;
use axe_dialect::ops;
use axe_layout::{Layout, Result, Swizzle};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use melior::ir::Type;

pub(super) use plan::Permutation;

impl<'c> Single<'c> {
    /// Permutes dimensions: tiles of the two dimensions that are innermost before and after go through shared
    /// memory, so that both sides are read and written along rows.
    pub(super) fn transpose(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        plan: &Permutation,
    ) -> PassResult<'c, String> {
        let [shape, to] = plan.shapes();
        let from = frame.operand(builder, self.from, &shape)?;
        let out = frame.out(builder, self.result, &to)?;
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        let element = builder.tensor_of(self.result)?.element;
        match plan.unaligned {
            Some(plan) => plan.emit(&kernel, element, [source, result])?,
            None => plan.emit(&kernel, element, source, result)?,
        }
        let name = frame.name("transpose");
        kernel.finish(frame.module, &name, plan.tile.threads())?;
        let grid = match plan.unaligned {
            Some(plan) => plan.grid(Code { builder: *builder })?,
            None => plan.grid(builder, dynamic_leading(builder, self.result, &to)?)?,
        };
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])?;
        Ok(name)
    }
}

impl Permutation {
    /// The source and the result as the kernel has them.
    fn shapes(&self) -> [Vec<i64>; 2] {
        match self.unaligned {
            Some(own) => own.matrices().map(Vec::from),
            None => [self.from.clone(), self.to.clone()],
        }
    }

    /// The result's tiles along its last dimension, where so many are. Square ones are written in the order of memory: 8192 x 8192 of f16
    /// takes 68.2 us so, 69.4 else, and in tiles of 64 71.2 and 74.1 (by a kernel in CUDA C++).
    fn columns(&self, count: i64) -> Columns {
        match self.keeps_rows() || self.few.is_some() {
            true => Columns::across(count),
            false => Columns::in_order(count),
        }
    }

    /// Tiles of the last dimension as [`Columns`] has them, all others along x.
    fn grid<'c>(
        &self,
        builder: &Builder<'c>,
        leading: Option<Val<'c>>,
    ) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let counts = self.counts();
        let (y, outer) = counts
            .split_last()
            .map_or((1, &[][..]), |(last, outer)| (*last, outer));
        let outer = outer.iter().filter(|extent| **extent != DYNAMIC);
        let known = outer.fold(1i64, |product, extent| product.saturating_mul(*extent));
        let x = match leading {
            Some(leading) => {
                let part = self.boxes.first().copied().unwrap_or(1);
                code.times(code.ceil_div(leading, part)?, known)?
            }
            None => code.index(known)?,
        };
        self.columns(y).grid(code, x, known)
    }

    /// The origin of a block's tile in the result.
    fn origin<'c>(&self, code: Code<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let counts = self.counts();
        let last = counts.len().saturating_sub(1);
        let columns = self.columns(counts.last().copied().unwrap_or(1));
        let [column, mut rest] = columns.place(code)?;
        let mut places = vec![column];
        for (at, &extent) in counts.iter().enumerate().take(last).rev() {
            if at == 0 {
                places.push(rest);
            } else {
                let extent = code.index(extent)?;
                places.push(code.rem(rest, extent)?);
                rest = code.div(rest, extent)?;
            }
        }
        let parts = places.into_iter().rev().zip(&self.boxes);
        parts
            .map(|(place, part)| match part {
                1 => Ok(place),
                part => code.times(place, *part),
            })
            .collect()
    }

    /// The box in registers as it is loaded, and as it is stored where each thread stores what it loads.
    fn layouts(&self) -> [Result<Layout>; 2] {
        let Some(few) = &self.few else {
            return [self.tile.layout(), self.tile.layout()];
        };
        let dims: Vec<_> = (0..self.to.len()).collect();
        [
            few.layout(&self.at_source(&dims), false),
            few.layout(&dims, true),
        ]
    }

    /// The box's way from the source to the result.
    fn emit<'c>(
        &self,
        kernel: &Kernel<'c>,
        element: Type<'c>,
        source: Val<'c>,
        result: Val<'c>,
    ) -> PassResult<'c> {
        let code = kernel.code;
        let from_box = self.at_source(&self.boxes);
        let at = self.origin(code)?;
        let read = code.global_box(source, &self.from, &self.at_source(&at), &from_box)?;
        let write = code.global_box(result, &self.to, &at, &self.boxes)?;
        let [rows, moved] = self
            .layouts()
            .map(|layout| layout.map_err(|error| layout_error(code.builder.location, error)));
        let piece = code.load(read, code.fragment(&from_box, element, &rows?)?)?;
        let moved = if self.few.is_some() || self.keeps_rows() {
            let moved = code.fragment(&self.boxes, element, &moved?)?;
            let order = [("permutation", code.builder.i64s(&self.order()))];
            code.builder
                .value(ops::TRANSPOSE, &[piece], moved, &order)?
        } else {
            self.through_shared(code, element, piece)?
        };
        code.store(moved, write)
    }

    /// A box through shared memory: rows of the source are written, words of several elements of a row are read from
    /// several rows, and threads exchange the elements among their registers. Lanes that move words of all banks meet none twice.
    fn through_shared<'c>(
        &self,
        code: Code<'c>,
        element: Type<'c>,
        piece: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        // Rows of an odd number of words meet in no bank.
        let side = self.side;
        let swizzle = match self.pitch == side {
            true => Some(swizzle(self.tile).map_err(failed)?),
            false => None,
        };
        let storage = Layout::strided(&[side, side], &[self.pitch, 1]).map_err(failed)?;
        let storage = storage.with_swizzle(swizzle);
        let storage = code.alloc(&[side, side], element, &storage)?;
        let view = |shape: &[i64], strides: &[i64]| {
            let layout = Layout::strided(shape, strides).map_err(failed)?;
            let layout = layout.with_swizzle(swizzle);
            let memref = code.memref(shape, element, &layout, Some("shared"))?;
            code.view(storage, memref)
        };
        let written = view(&self.at_source(&self.boxes), &self.at_source(&self.strides))?;
        code.store(piece, written)?;
        code.barrier()?;
        if swizzle.is_none() {
            let elements = self.tile.layout().map_err(failed)?;
            let elements = code.fragment(&self.boxes, element, &elements)?;
            return code.load(view(&self.boxes, &self.strides)?, elements);
        }
        let layouts = words(self.tile, BANK_BYTES / element_bytes(element)).map_err(failed)?;
        let [words, vectors] = layouts.map(|layout| code.fragment(&self.boxes, element, &layout));
        let loaded = code.load(view(&self.boxes, &self.strides)?, words?)?;
        code.load(loaded, vectors?)
    }
}

/// Chunks of a vector each, exchanged by the number of the rows that another vector covers: those that the lanes write at
/// once are of one row, those that they read of as many rows as there are chunks.
pub(in crate::planner) fn swizzle(tile: RowTile) -> Result<Swizzle> {
    let (base, along) = (tile.vector.ilog2(), tile.along.ilog2());
    Swizzle::new(along, base, tile.columns.ilog2(), true)
}

/// The tile whose threads hold words of several elements along the rows of the shared tile, and vectors along its columns:
/// with the elements of a word in consecutive registers, and with those of a vector.
pub(in crate::planner) fn words(tile: RowTile, most: i64) -> Result<[Layout; 2]> {
    // As many vectors as all banks have: more would meet them twice.
    let (along, vector) = (tile.along.min(BANKS_BYTES / ACCESS_BYTES), tile.vector);
    let (warps, across) = (tile.threads() / WARP, WARP / along);
    let each = most.clamp(1, tile.rows / (warps * across));
    let chunks = tile.columns / (along * vector);
    let of = |word: i64, chunk: i64, element: i64| {
        layout(
            &[
                (
                    tile.rows / (warps * across * each),
                    chunks * vector * each,
                    "reg",
                ),
                (warps, 1, "warp"),
                (across, along, "lane"),
                (each, word, "reg"),
                (chunks, chunk, "reg"),
                (along, 1, "lane"),
                (vector, element, "reg"),
            ],
            &[],
        )
    };
    Ok([of(1, vector * each, each)?, of(chunks * vector, vector, 1)?])
}
