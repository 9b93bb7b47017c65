//! Loads of a kernel of attention: queries of a step, keys and values of a head, transposed where they lie the other way.

use super::buffers::BLOCK;
use super::steps::{Kernel, Step, tiles};
use super::tensor::Tensor;
use crate::facts::memory::PARTITIONS;
use crate::plan::operand::{Order, evict};
use crate::plan::parts;
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Op, View};

/// Columns of a tensor that are loaded as columns of a tile in SBUF.
struct Columns<'a> {
    tensor: &'a Tensor,
    head: &'a Expr,
    /// The first of the head's queries or keys.
    first: Expr,
    count: i64,
    into: &'a Tile,
    /// Which of the tile's buffers, and the first column of it.
    place: [Expr; 2],
    /// Where rows are that the tensor engine transposes, and which of their buffers.
    rows: Option<(&'a Tile, Expr)>,
}

impl Kernel<'_> {
    /// Loads the queries of a step.
    pub fn load_queries(&self, b: &mut Builder, step: &Step) {
        let (a, buffers) = (self.attention, &self.buffers);
        let turn = step.turns[1].clone();
        let columns = Columns {
            tensor: &buffers.q,
            head: &step.head,
            first: step.first.clone(),
            count: step.queries,
            into: &buffers.qt,
            place: [turn.clone(), 0.into()],
            rows: buffers.rows[0].as_ref().map(|rows| (rows, turn)),
        };
        self.load_columns(b, a.q, &columns);
    }

    /// Loads the keys of the head of a step.
    pub fn load_keys(&self, b: &mut Builder, step: &Step) {
        let (a, buffers) = (self.attention, &self.buffers);
        let turn = step.turns[0].clone();
        let columns = |first: Expr, count: i64, bank: Expr| Columns {
            tensor: &buffers.k,
            head: &step.head,
            first: first.clone(),
            count,
            into: &buffers.kt,
            place: [turn.clone(), first],
            rows: buffers.rows[1].as_ref().map(|rows| (rows, bank)),
        };
        match a.k {
            // So many columns are transferred at the full rate (DMA).
            Order::KMajor => parts(b, "keys", (&0.into(), a.keys, 4 * BLOCK), &mut |b, part| {
                self.load_columns(b, a.k, &columns(part.at, part.size, 0.into()));
            }),
            Order::KMinor => parts(b, "keys", (&0.into(), a.keys, BLOCK), &mut |b, block| {
                let bank = match block.index.constant() {
                    Some(index) => (index % 2).into(),
                    None => Expr::Mod(Box::new(block.index), 2),
                };
                self.load_columns(b, a.k, &columns(block.at, block.size, bank));
            }),
        }
    }

    /// Loads the values of the head of a step.
    pub fn load_values(&self, b: &mut Builder, step: &Step) {
        let (a, buffers) = (self.attention, &self.buffers);
        let (whole, tail) = (a.keys / PARTITIONS, a.keys % PARTITIONS);
        for (chunk, count, keys) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && keys > 0 {
                let row = Expr::from(chunk * PARTITIONS);
                let into = buffers.values.part([
                    (0.into(), keys),
                    (step.turns[0].clone(), 1),
                    (chunk.into(), count),
                    (0.into(), a.dim),
                ]);
                let size = (count, keys, a.dim);
                b.dma_copy(into, buffers.v.tiles(&step.head, &row, size));
            }
        }
    }

    fn load_columns(&self, b: &mut Builder, order: Order, columns: &Columns<'_>) {
        let dim = self.attention.dim;
        if order == Order::KMajor {
            let size = [columns.count, dim];
            let from = columns.tensor.columns(columns.head, &columns.first, size);
            return b.dma_copy(columns.into(0, columns.count, dim), from);
        }
        match &columns.rows {
            Some((rows, bank)) => self.turn_by_products(b, columns, (rows, bank)),
            None => {
                for (tile, size) in tiles(columns.count) {
                    let row = columns.first.clone().plus(tile * PARTITIONS);
                    b.op(Op::DmaTranspose {
                        dst: columns.into(tile * PARTITIONS, size, dim),
                        src: columns.tensor.rows(columns.head, &row, [size, dim]),
                    });
                }
            }
        }
    }

    /// Rows are loaded as they lie, and up to four tiles of them pass the tensor engine into one bank.
    fn turn_by_products(
        &self,
        b: &mut Builder,
        columns: &Columns<'_>,
        (rows, bank): (&Tile, &Expr),
    ) {
        let (dim, turned) = (self.attention.dim, &self.buffers.turned);
        let (whole, tail) = (columns.count / PARTITIONS, columns.count % PARTITIONS);
        for (tile, count, size) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && size > 0 {
                let into = [
                    (0.into(), size),
                    (bank.clone(), 1),
                    (tile.into(), count),
                    (0.into(), dim),
                ];
                let row = columns.first.clone().plus(tile * PARTITIONS);
                let size = (count, size, dim);
                b.dma_copy(
                    rows.part(into),
                    columns.tensor.tiles(columns.head, &row, size),
                );
            }
        }
        let bank_of = |begin: i64, size: i64| {
            turned.part([(0.into(), dim), (1.into(), 1), (begin.into(), size)])
        };
        for (tile, size) in tiles(columns.count) {
            let from = [
                (0.into(), size),
                (bank.clone(), 1),
                (tile.into(), 1),
                (0.into(), dim),
            ];
            b.op(Op::NcTranspose {
                dst: bank_of(tile * PARTITIONS, size),
                data: rows.part(from),
            });
        }
        evict(
            b,
            columns.into(0, columns.count, dim),
            bank_of(0, columns.count),
        );
    }
}

impl Columns<'_> {
    /// Some of the columns, in SBUF.
    fn into(&self, begin: i64, size: i64, dim: i64) -> View {
        let [turn, first] = self.place.clone();
        let columns = (first.plus(begin), size);
        self.into.part([(0.into(), dim), (turn, 1), columns])
    }
}
