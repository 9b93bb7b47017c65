//! Sums of products of a block of K in PSUM, and where they go.

use super::super::operand::{Operand, Order, evict};
use super::super::{Part, ahead, parts};
use super::kernel::{At, Kernel};
use crate::facts::memory::{MOVING_COLUMNS, PARTITIONS};
use crate::program::build::Tile;
use crate::program::{Alu, Builder, Expr, Space, View};
use axe_package::DType;

/// What becomes of the sums of a block of K.
#[derive(Clone, Copy)]
pub(super) enum Sums<'a> {
    /// They are all: to the result.
    All,
    /// The first ones: kept.
    First(&'a Tile),
    /// Added to those that are kept.
    Middle(&'a Tile),
    /// Added to those that are kept, to the result.
    Last(&'a Tile),
}

/// A block of K.
pub(super) struct Depth {
    /// Its first chunk of 128.
    chunk: Expr,
    /// Its elements.
    pub size: i64,
}

impl Depth {
    /// The first elements of K.
    pub fn from_start(size: i64) -> Self {
        Self::block(0.into(), PARTITIONS, size)
    }

    /// Block `index` of blocks of `unit`, with so many elements.
    pub fn block(index: Expr, unit: i64, size: i64) -> Self {
        Self {
            chunk: index.times(unit / PARTITIONS),
            size,
        }
    }

    /// Its first element.
    pub fn at(&self) -> Expr {
        self.chunk.clone().times(PARTITIONS)
    }
}

/// Both operands of a block of K in SBUF.
pub(super) struct Operands {
    pub lhs: Tile,
    pub rhs: Tile,
    /// The chunk of the right operand's tile at which the block begins.
    pub from: Expr,
}

impl Kernel<'_> {
    /// The products of a block of K.
    pub fn products(
        &self,
        b: &mut Builder,
        at: &At,
        depth: &Depth,
        (rows, columns): (&Part, &Part),
        sums: Sums<'_>,
    ) {
        let turned = self.lhs.turned_by_products(self.chip);
        let operands = self.load(b, at, depth, (rows, columns), turned);
        let there = matches!(sums, Sums::All) && at.loaded;
        let mut sum = |b: &mut Builder, tile: Part| {
            let place = (&tile, columns.size);
            let summed = self.sum(b, &operands, depth.size, place, there);
            self.store(b, at, &summed, &tile, (rows, columns), sums);
        };
        if !turned {
            return parts(b, "mt", (&0.into(), rows.size, PARTITIONS), &mut sum);
        }
        // The next rows are transposed while these are multiplied.
        let mut turn = |b: &mut Builder, tile: Part| {
            let part = Part {
                at: rows.at.clone().plus(tile.at),
                ..tile
            };
            let k = (&depth.at(), depth.size);
            self.lhs
                .turn(b, self.chip, &operands.lhs, &at.batch, k, part);
        };
        ahead(b, "mt", (rows.size, PARTITIONS), &mut turn, &mut sum);
    }

    /// Loads operands of a block of K, those that are not there, transposed where they lie the other way; of the left one
    /// the tile alone where its rows are `turned` later.
    fn load(
        &self,
        b: &mut Builder,
        at: &At,
        depth: &Depth,
        (rows, columns): (&Part, &Part),
        turned: bool,
    ) -> Operands {
        let lhs = self.lhs.tile(b, depth.size, rows.size, 2);
        let (rhs, from, loaded) = match &at.rhs {
            Some(resident) => (resident.clone(), depth.chunk.clone(), at.loaded),
            None => (
                self.rhs.tile(b, depth.size, columns.size, 2),
                0.into(),
                false,
            ),
        };
        let mut direct = Vec::new();
        let both = [
            (&self.lhs, &lhs, rows, 0.into(), turned),
            (&self.rhs, &rhs, columns, from.clone(), loaded),
        ];
        for (operand, tile, part, from, there) in both {
            match operand.order {
                _ if there => {}
                Order::KMajor => direct.push((operand, tile, part, from)),
                Order::KMinor => {
                    let (k, columns) = ((&depth.at(), depth.size), (&part.at, part.size));
                    operand.load_turned(b, self.chip, tile, &at.batch, k, columns);
                }
            }
        }
        self.load_chunks(b, &at.batch, depth, &direct);
        Operands { lhs, rhs, from }
    }

    /// Loads operands that need no transpose chunk by chunk, so that the first products need not wait for the last one;
    /// each into its tile from a chunk of it on.
    pub fn load_chunks(
        &self,
        b: &mut Builder,
        batch: &Expr,
        depth: &Depth,
        loaded: &[(&Operand, &Tile, &Part, Expr)],
    ) {
        if loaded.is_empty() {
            return;
        }
        let chunks = (&depth.at(), depth.size, PARTITIONS);
        parts(b, "load", chunks, &mut |b, chunk| {
            for (operand, to, part, from) in loaded {
                let into = chunk.index.clone().plus(from.clone());
                operand.load_chunk(b, to, batch, (&chunk, into), part.range());
            }
        });
    }

    /// Sums of one tile of rows in PSUM. Where all of both operands is there, bank after bank, so that each leaves while the
    /// next one is summed up; else chunk after chunk, as they come.
    fn sum(
        &self,
        b: &mut Builder,
        operands: &Operands,
        k: i64,
        (tile, columns): (&Part, i64),
        there: bool,
    ) -> Tile {
        let banks = (columns + MOVING_COLUMNS - 1) / MOVING_COLUMNS;
        let copies = (self.banks / banks).clamp(1, 4);
        let shape = [tile.size, columns];
        let psum = b.tile("psum", Space::Psum, &shape, DType::F32, copies);
        let unit = if there { MOVING_COLUMNS } else { columns };
        for range in pieces(columns, unit) {
            self.sum_piece(b, &psum, operands, k, (tile, range));
        }
        psum
    }

    /// Sums of some columns of it.
    pub fn sum_piece(
        &self,
        b: &mut Builder,
        psum: &Tile,
        operands: &Operands,
        k: i64,
        place: (&Part, (i64, i64)),
    ) {
        parts(b, "kt", (&0.into(), k, PARTITIONS), &mut |b, chunk| {
            self.multiply(b, psum, operands, &chunk, place);
        });
    }

    /// Adds the products of a chunk of K to some columns of the sums of a tile of rows, bank by bank.
    fn multiply(
        &self,
        b: &mut Builder,
        psum: &Tile,
        operands: &Operands,
        chunk: &Part,
        (tile, (first, columns)): (&Part, (i64, i64)),
    ) {
        let of_rhs = chunk.index.clone().plus(operands.from.clone());
        let of = |operand: &Tile, index: &Expr, range| {
            operand.part([(0.into(), chunk.size), (index.clone(), 1), range])
        };
        for (begin, size) in pieces(columns, MOVING_COLUMNS) {
            let begin = first + begin;
            b.matmul(
                psum.part([(0.into(), tile.size), (begin.into(), size)]),
                of(&operands.lhs, &chunk.index, tile.range()),
                of(&operands.rhs, &of_rhs, (begin.into(), size)),
            );
        }
    }

    fn store(
        &self,
        b: &mut Builder,
        at: &At,
        psum: &Tile,
        tile: &Part,
        (rows, columns): (&Part, &Part),
        sums: Sums<'_>,
    ) {
        let (into, first) = match sums {
            Sums::First(sums) => (sums, true),
            Sums::Middle(sums) => (sums, false),
            Sums::All => return self.finish(b, at, (Some(psum), None), tile, rows, columns),
            Sums::Last(sums) => {
                return self.finish(b, at, (Some(psum), Some(sums)), tile, rows, columns);
            }
        };
        for (begin, size) in pieces(columns.size, MOVING_COLUMNS) {
            let piece = (begin.into(), size);
            let from = psum.part([(0.into(), tile.size), piece.clone()]);
            let kept = || kept_piece(into, tile, &piece);
            match first {
                true => evict(b, kept(), from),
                false => b.tensor_tensor(kept(), kept(), from, Alu::Add),
            }
        }
    }
}

/// Where pieces of so many columns begin, and how many each has.
pub(super) fn pieces(columns: i64, unit: i64) -> impl Iterator<Item = (i64, i64)> {
    let unit = unit.max(1);
    let piece = move |begin| (begin, unit.min(columns - begin));
    (0..columns).step_by(unit as usize).map(piece)
}

/// A piece of the sums of a tile of rows.
pub(super) fn kept_piece(sums: &Tile, tile: &Part, piece: &(Expr, i64)) -> View {
    sums.part([
        (0.into(), tile.size),
        (tile.index.clone(), 1),
        piece.clone(),
    ])
}

/// The sums of a tile of rows.
pub(super) fn kept(sums: &Tile, tile: &Part, columns: &Part) -> View {
    kept_piece(sums, tile, &(0.into(), columns.size))
}
