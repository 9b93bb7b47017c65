//! Permutations of dimensions: tiles that both sides read and write along rows.

use super::{Single, dynamic_leading};
use crate::planner::columns::Columns;
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, elementwise_tile};
use axe_dialect::ops;
use axe_layout::Layout;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::{Builder, DYNAMIC, Op, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

/// Rows and columns of the tiles that are transposed through shared memory.
const SQUARE: i64 = 64;
/// Bytes by which rows of such a tile are further apart than they are long, against bank conflicts.
const PADDING_BYTES: i64 = 16;

impl<'c> Single<'c> {
    /// Permutes dimensions: tiles of the two dimensions that are innermost before and after go through shared
    /// memory, so that both sides are read and written along rows.
    pub(super) fn transpose(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        plan: &Permutation,
        tile: RowTile,
    ) -> PassResult<'c, String> {
        let from = frame.operand(builder, self.from, &plan.from)?;
        let out = frame.out(builder, self.result, &plan.to)?;
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        let element = builder.tensor_of(self.result)?.element;
        plan.emit(&kernel, (element, tile), source, result)?;
        let name = frame.name("transpose");
        kernel.finish(frame.module, &name, tile.threads())?;
        let grid = plan.grid(builder, dynamic_leading(builder, self.result, &plan.to)?)?;
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])?;
        Ok(name)
    }
}

/// The tile of elements of so many bytes.
pub(super) fn tile(bytes: i64) -> RowTile {
    RowTile {
        rows: SQUARE,
        ..elementwise_tile(SQUARE, bytes)
    }
}

/// A permutation of dimensions without extents of 1, as kernels see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    /// Extents of the source.
    from: Vec<i64>,
    /// Extents of the result.
    to: Vec<i64>,
    /// For each dimension of the result, that of the source.
    order: Vec<usize>,
}

impl Permutation {
    pub(super) fn new<'c>(op: Op<'c>, shape: &[i64], permutation: &[i64]) -> PassResult<'c, Self> {
        Self::of(shape, permutation)
            .ok_or_else(|| PassError::new(op.location(), "its permutation cannot be read"))
    }

    fn of(shape: &[i64], permutation: &[i64]) -> Option<Self> {
        let order: Vec<usize> = permutation
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect::<Option<_>>()?;
        let kept: Vec<usize> = (0..shape.len()).filter(|dim| shape[*dim] != 1).collect();
        let rank = |dim: usize| kept.iter().position(|kept| *kept == dim);
        let mut from: Vec<i64> = kept.iter().map(|dim| shape[*dim]).collect();
        let mut order: Vec<usize> = order.into_iter().filter_map(rank).collect();
        // A matrix at least, so that there is a tile.
        while from.len() < 2 {
            from.insert(0, 1);
            order = std::iter::once(0)
                .chain(order.iter().map(|dim| dim + 1))
                .collect();
        }
        let to = order
            .iter()
            .map(|dim| from.get(*dim).copied())
            .collect::<Option<_>>()?;
        Some(Self { from, to, order })
    }

    /// The two dimensions of the result that are tiled: the one that is the source's last (its last but one, when
    /// the last stays in its place), and its last.
    fn tiled(&self) -> (usize, usize) {
        let last = self.order.len().saturating_sub(1);
        let other = self.order.iter().position(|dim| *dim == last);
        (
            other
                .filter(|dim| *dim != last)
                .unwrap_or(last.saturating_sub(1)),
            last,
        )
    }

    /// Whether the innermost dimension stays in its place.
    fn keeps_rows(&self) -> bool {
        self.order.last() == Some(&self.order.len().saturating_sub(1))
    }

    /// Tiles along each dimension of the result.
    fn counts(&self) -> Vec<i64> {
        let (other, last) = self.tiled();
        let along = |(at, extent): (usize, &i64)| match *extent {
            DYNAMIC => DYNAMIC,
            extent if at == other || at == last => count(extent, SQUARE),
            extent => extent,
        };
        self.to.iter().enumerate().map(along).collect()
    }

    /// What belongs to a dimension of the result, by dimensions of the source.
    fn at_source<T: Copy>(&self, of: &[T]) -> Vec<T> {
        let dims = 0..self.order.len();
        dims.filter_map(|dim| self.order.iter().position(|from| *from == dim))
            .filter_map(|at| of.get(at).copied())
            .collect()
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
            Some(leading) if self.tiled().0 == 0 => {
                code.times(code.ceil_div(leading, SQUARE)?, known)?
            }
            Some(leading) => code.times(leading, known)?,
            None => code.index(known)?,
        };
        Columns(y).grid(code, x, known)
    }

    /// The origin of a block's tile in the result.
    fn origin<'c>(&self, code: Code<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (other, last) = self.tiled();
        let counts = self.counts();
        let columns = Columns(counts.last().copied().unwrap_or(1));
        let [column, mut rest] = columns.place(code)?;
        let mut origin = vec![code.times(column, SQUARE)?];
        for (at, &extent) in counts.iter().enumerate().take(last).rev() {
            let place = if at == 0 {
                rest
            } else {
                let extent = code.index(extent)?;
                let place = code.rem(rest, extent)?;
                rest = code.div(rest, extent)?;
                place
            };
            origin.push(if at == other {
                code.times(place, SQUARE)?
            } else {
                place
            });
        }
        origin.reverse();
        Ok(origin)
    }

    /// The tile's way from the source to the result.
    fn emit<'c>(
        &self,
        kernel: &Kernel<'c>,
        (element, tile): (Type<'c>, RowTile),
        source: Val<'c>,
        result: Val<'c>,
    ) -> PassResult<'c> {
        let code = kernel.code;
        let failed = |error| layout_error(code.builder.location, error);
        let (other, last) = self.tiled();
        let tiled = |dim| {
            if dim == other || dim == last {
                SQUARE
            } else {
                1
            }
        };
        let to_box: Vec<i64> = (0..self.to.len()).map(tiled).collect();
        let from_box = self.at_source(&to_box);
        let at = self.origin(code)?;
        let read = code.global_box(source, &self.from, &self.at_source(&at), &from_box)?;
        let write = code.global_box(result, &self.to, &at, &to_box)?;
        let rows = tile.layout().map_err(failed)?;
        let piece = code.load(read, code.fragment(&from_box, element, &rows)?)?;
        let moved = code.fragment(&to_box, element, &rows)?;
        let moved = if self.keeps_rows() {
            let order: Vec<i64> = self
                .order
                .iter()
                .filter_map(|dim| i64::try_from(*dim).ok())
                .collect();
            let attributes = [("permutation", code.builder.i64s(&order))];
            code.builder
                .value(ops::TRANSPOSE, &[piece], moved, &attributes)?
        } else {
            let pitch = SQUARE + PADDING_BYTES / element_bytes(element);
            let storage = Layout::strided(&[SQUARE, SQUARE], &[pitch, 1]).map_err(failed)?;
            let storage = code.alloc(&[SQUARE, SQUARE], element, &storage)?;
            // In the source's order the tile's last dimension is contiguous; in the result's it is `other`.
            let strides: Vec<i64> = (0..self.to.len())
                .map(|dim| if dim == last { pitch } else { 1 })
                .collect();
            let view = |shape: &[i64], strides: &[i64]| {
                let layout = Layout::strided(shape, strides).map_err(failed)?;
                code.view(
                    storage,
                    code.memref(shape, element, &layout, Some("shared"))?,
                )
            };
            code.store(piece, view(&from_box, &self.at_source(&strides))?)?;
            code.barrier()?;
            code.load(view(&to_box, &strides)?, moved)?
        };
        code.store(moved, write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_a_permutation_have_both_innermost_dimensions() {
        let plain = Permutation::of(&[200, 120], &[1, 0]).unwrap();
        assert_eq!((plain.tiled(), plain.counts()), ((0, 1), vec![2, 4]));
        assert!(!plain.keeps_rows());
        let heads = Permutation::of(&[2, 64, 1, 4, 32], &[0, 3, 2, 1, 4]).unwrap();
        assert_eq!(
            (heads.from.clone(), heads.to.clone()),
            (vec![2, 64, 4, 32], vec![2, 4, 64, 32])
        );
        assert!(heads.keeps_rows());
        assert_eq!(heads.tiled(), (2, 3));
        let cycle = Permutation::of(&[3, 5, 7], &[2, 0, 1]).unwrap();
        assert_eq!((cycle.tiled(), cycle.to.clone()), ((0, 2), vec![7, 3, 5]));
        assert_eq!(cycle.at_source(&[70, 30, 50]), [30, 50, 70]);
    }
}
