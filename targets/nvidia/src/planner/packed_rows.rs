//! Short rows of elements of 16 bits or less that begin anywhere in memory: as many as begin and end at boundaries together are one piece
//! of memory, which goes to shared memory and back in vectors. Threads read and write single elements there, which global memory serves
//! at a fraction of its speed, or vectors that are as short. Their tiles are in [`super::packed_tile`].

use super::packed_tile::{elements, padded};
use super::row_tile::RowTile;
use crate::facts::chip::ACCESS_BYTES;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::ir::{Int, Val};
use melior::ir::ValueLike;

/// Shared memory that has a CTA's rows of a tensor.
pub(super) struct Room<'c> {
    /// As one row, which ends in what no thread reads.
    all: Val<'c>,
    /// As they are read and written.
    pub(super) rows: Argument<'c>,
    /// The tensor.
    of: Argument<'c>,
}

impl<'c> Room<'c> {
    /// Whether elements of another tensor can take the place of these.
    pub(super) fn holds(&self, other: &Argument<'c>) -> bool {
        let [own, other] =
            [&self.of, other].map(|of| axe_dialect::element_type(of.memref.r#type()));
        own == other
    }

    /// The same room for rows of another tensor.
    pub(super) fn of(self, other: &Argument<'c>) -> Self {
        Self {
            of: other.clone(),
            ..self
        }
    }
}

/// A CTA's rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'c> {
    tile: RowTile,
    /// All rows, and their columns.
    shape: [i64; 2],
    vector: i64,
    /// The first of the CTA's rows.
    row: Val<'c>,
}

impl<'c> Packed<'c> {
    /// The rows from `row` on of a matrix whose narrowest element has so many bytes.
    pub(super) const fn new(tile: RowTile, bytes: i64, (row, shape): (Val<'c>, [i64; 2])) -> Self {
        Self {
            tile,
            shape,
            vector: ACCESS_BYTES / bytes,
            row,
        }
    }

    /// Room for the rows of an argument in shared memory.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn room(&self, code: Code<'c>, argument: &Argument<'c>) -> PassResult<'c, Room<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let length = padded(self.tile, self.shape[1], self.vector);
        let element = axe_dialect::element_type(argument.memref.r#type());
        let own = Layout::strided(&[1, length], &[length, 1]).map_err(failed)?;
        let all = code.alloc(&[1, length], element, &own)?;
        let zero = code.index(0)?;
        let rows = code.shared_box(all, &[1, length], &[zero; 2], &[1, self.elements()])?;
        let shape = [self.tile.rows, self.shape[1]];
        let layout = Layout::strided(&shape, &[shape[1], 1]).map_err(failed)?;
        let memref = code.view(rows, code.memref(&shape, element, &layout, Some("shared"))?)?;
        Ok(Room {
            all,
            rows: Argument::staged(memref, shape.to_vec(), [self.row, zero]),
            of: argument.clone(),
        })
    }

    const fn elements(&self) -> i64 {
        elements(self.tile, self.shape[1])
    }

    /// Begins to copy rows to shared memory, where all of the CTA's rows are the tensor's.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch(&self, code: Code<'c>, room: &Room<'c>) -> PassResult<'c> {
        match self.whole(code, &room.of)? {
            Some(from) => code.copy_async(from, room.all),
            None => Ok(()),
        }
    }

    /// Copies the tensor's last rows there, one element at a time, where they are less than a CTA's. Copies of others have to be complete:
    /// they write zeros.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch_last(&self, code: Code<'c>, rooms: &[Room<'c>]) -> PassResult<'c> {
        self.where_last(code, |code| {
            for room in rooms {
                self.transfer(code, [self.last(code, &room.of)?, room.all], 1)?;
            }
            Ok(())
        })
    }

    /// Copies rows from shared memory to a tensor.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store(&self, code: Code<'c>, rooms: &[Room<'c>]) -> PassResult<'c> {
        for room in rooms {
            if let Some(to) = self.whole(code, &room.of)? {
                self.transfer(code, [room.all, to], self.vector)?;
            }
        }
        self.where_last(code, |code| {
            for room in rooms {
                self.transfer(code, [room.all, self.last(code, &room.of)?], 1)?;
            }
            Ok(())
        })
    }

    /// Whether the tensor has less than a CTA's rows at its end.
    pub(super) const fn has_last(&self) -> bool {
        self.shape[0] % self.tile.rows != 0
    }

    fn where_last(
        &self,
        code: Code<'c>,
        body: impl FnOnce(Code<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        if !self.has_last() {
            return Ok(());
        }
        let first = self.shape[0] - self.shape[0] % self.tile.rows;
        let is_last = code.at_most(code.index(first)?, self.row)?;
        code.branch(is_last, body, |_| Ok(()))
    }

    /// The CTA's rows of a tensor whose rows are as many as CTAs have together; none where it has less than one CTA's.
    fn whole(&self, code: Code<'c>, of: &Argument<'c>) -> PassResult<'c, Option<Val<'c>>> {
        let shape = [self.shape[0] / self.tile.rows, self.elements()];
        if shape[0] == 0 {
            return Ok(None);
        }
        let number = code.div(self.row, code.index(self.tile.rows)?)?;
        let at = [number, code.index(0)?];
        self.boxed(code, (of, shape), at).map(Some)
    }

    /// The rows behind those.
    fn last(&self, code: Code<'c>, of: &Argument<'c>) -> PassResult<'c, Val<'c>> {
        let [rows, columns] = self.shape;
        let first = rows - rows % self.tile.rows;
        let at = [code.index(0)?, code.index(first * columns)?];
        self.boxed(code, (of, [1, rows * columns]), at)
    }

    /// What a CTA has of a tensor seen as another matrix, as far as that one's rows go.
    fn boxed(
        &self,
        code: Code<'c>,
        (of, shape): (&Argument<'c>, [i64; 2]),
        at: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let strides = [shape[1], 1].map(Int::Known);
        let sizes = shape.map(Int::Known);
        let memref = code.reinterpret(of.memref, &sizes, &strides, &[1, 1])?;
        let columns = padded(self.tile, self.shape[1], self.vector);
        code.global_box(memref, &shape, &at, &[1, columns])
    }

    /// Copies a row by all threads.
    fn transfer(&self, code: Code<'c>, [from, to]: [Val<'c>; 2], vector: i64) -> PassResult<'c> {
        let columns = padded(self.tile, self.shape[1], self.vector);
        let tile = RowTile {
            rows: 1,
            columns,
            along: self.tile.threads(),
            vector,
            across: 1,
        };
        let layout = tile.layout();
        let layout = layout.map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(from.r#type());
        let piece = code.load(from, code.fragment(&[1, columns], element, &layout)?)?;
        code.store(piece, to)
    }
}
