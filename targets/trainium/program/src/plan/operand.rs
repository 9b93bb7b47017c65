//! Operands of products: K must lie on the partitions of both.

use super::{Part, parts};
use crate::facts::chip::{Chip, Generation};
use crate::facts::memory::PARTITIONS;
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Function, Op, Space, View};
use axe_package::DType;

/// How an operand lies in HBM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `[K, M]` or `[K, N]`: as the tensor engine takes it.
    KMajor,
    /// `[M, K]` or `[N, K]`: transposed on the way.
    KMinor,
}

impl Order {
    /// The shape in HBM.
    #[must_use]
    pub fn shape(self, k: i64, columns: i64) -> [i64; 2] {
        match self {
            Order::KMajor => [k, columns],
            Order::KMinor => [columns, k],
        }
    }
}

/// An operand of a product that is planned.
pub(super) struct Operand {
    pub name: &'static str,
    /// All products of a batch below each other.
    pub tensor: Tile,
    /// Rows of it from one product of a batch to the next; 0 where all have the same.
    pub batch_rows: i64,
    pub order: Order,
    pub dtype: DType,
}

/// Columns that are transposed together, and the rows of the tensor that they are.
struct Turned {
    part: Part,
    from: (Expr, i64),
}

/// Transposes of one bank: as many columns as an f32 bank has, in tiles of 128.
const TURNED: i64 = 4;

impl Operand {
    /// Whether the tensor engine transposes it: then its results take banks of PSUM.
    pub fn turned_by_products(&self, chip: &Chip) -> bool {
        self.order == Order::KMinor && !self.turned_by_dma(chip)
    }

    /// DMA transposes 16-bit elements, on trn2 (A2).
    fn turned_by_dma(&self, chip: &Chip) -> bool {
        chip.is_at_least(Generation::Gen3) && self.dtype.bytes() == 2
    }

    /// The tile of a block: `[128, chunks of K, columns]`.
    pub fn tile(&self, b: &mut Builder, k: i64, columns: i64, copies: i64) -> Tile {
        let chunks = (k + PARTITIONS - 1) / PARTITIONS;
        let shape = [k.min(PARTITIONS), chunks, columns];
        b.tile(
            &format!("{}_tile", self.name),
            Space::Sbuf,
            &shape,
            self.dtype,
            copies,
        )
    }

    /// Loads one chunk of K into a chunk of the tile, where the operand needs no transpose.
    pub fn load_chunk(
        &self,
        b: &mut Builder,
        to: &Tile,
        batch: &Expr,
        (chunk, into): (&Part, Expr),
        columns: (Expr, i64),
    ) {
        let into = to.part([(0.into(), chunk.size), (into, 1), (0.into(), columns.1)]);
        let at = self.row(batch, chunk.at.clone());
        b.dma_copy(into, self.tensor.part([(at, chunk.size), columns]));
    }

    /// A row of the tensor, of a product of the batch.
    fn row(&self, batch: &Expr, at: Expr) -> Expr {
        batch.clone().times(self.batch_rows).plus(at)
    }

    /// Loads and transposes a block of K.
    pub fn load_turned(
        &self,
        b: &mut Builder,
        chip: &Chip,
        to: &Tile,
        batch: &Expr,
        (k0, k): (&Expr, i64),
        (begin, columns): (&Expr, i64),
    ) {
        let name = format!("{}_c", self.name);
        parts(b, &name, (begin, columns, PARTITIONS), &mut |b, part| {
            self.turn(b, chip, to, batch, (k0, k), part);
        });
    }

    /// Loads and transposes a block of K of 128 columns, rows of the tensor, or fewer.
    pub fn turn(
        &self,
        b: &mut Builder,
        chip: &Chip,
        to: &Tile,
        batch: &Expr,
        k: (&Expr, i64),
        part: Part,
    ) {
        let part = Turned {
            from: (self.row(batch, part.at.clone()), part.size),
            part,
        };
        match self.turned_by_dma(chip) {
            true => self.turn_by_dma(b, to, k, &part),
            false => self.turn_by_products(b, chip, to, k, &part),
        }
    }

    /// One transposing transfer a chunk of K; each is a queue of its own, so that they are issued side by side.
    fn turn_by_dma(&self, b: &mut Builder, to: &Tile, (k0, k): (&Expr, i64), turned: &Turned) {
        let part = &turned.part;
        for (chunk, begin) in (0..k).step_by(PARTITIONS as usize).enumerate() {
            let rows = PARTITIONS.min(k - begin);
            b.op(Op::DmaTranspose {
                dst: place(to, (chunk as i64).into(), 1, rows, part),
                src: self
                    .tensor
                    .part([turned.from.clone(), (k0.clone().plus(begin), rows)]),
            });
        }
    }

    /// Rows are loaded as they lie, and 128 x 128 of them at a time pass the tensor engine.
    fn turn_by_products(
        &self,
        b: &mut Builder,
        chip: &Chip,
        to: &Tile,
        (k0, k): (&Expr, i64),
        turned: &Turned,
    ) {
        let part = &turned.part;
        let rows = self.load_as_is(b, (k0, k), turned.from.clone());
        self.turn_groups(b, chip, (to, &rows), (k, (0, self.turned_groups(k))), part);
    }

    /// Loads rows of the tensor as they lie.
    pub fn rows(&self, b: &mut Builder, batch: &Expr, k: (&Expr, i64), rows: (Expr, i64)) -> Tile {
        self.load_as_is(b, k, (self.row(batch, rows.0), rows.1))
    }

    fn load_as_is(&self, b: &mut Builder, (k0, k): (&Expr, i64), from: (Expr, i64)) -> Tile {
        let name = format!("{}_rows", self.name);
        let rows = b.tile(&name, Space::Sbuf, &[from.1, k], self.dtype, 2);
        b.dma_copy(rows.all(), self.tensor.part([from, (k0.clone(), k)]));
        rows
    }

    /// Groups of chunks of K that are transposed into one bank.
    pub fn turned_groups(&self, k: i64) -> i64 {
        let unit = PARTITIONS * TURNED;
        (k + unit - 1) / unit
    }

    /// Transposes some groups of chunks of loaded rows.
    pub fn turn_groups(
        &self,
        b: &mut Builder,
        chip: &Chip,
        (to, rows): (&Tile, &Tile),
        (k, (first, end)): (i64, (i64, i64)),
        part: &Part,
    ) {
        let name = format!("{}_t", self.name);
        let unit = PARTITIONS * TURNED;
        let size = k.min(end * unit) - first * unit;
        let begin = Expr::from(first * unit);
        parts(b, &name, (&begin, size.max(0), unit), &mut |b, group| {
            let turned = self.transposes(b, chip, rows, &group, part);
            let (whole, tail) = (group.size / PARTITIONS, group.size % PARTITIONS);
            let first = group.index.clone().plus(first).times(TURNED);
            for (begin, chunks, size) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
                if chunks > 0 && size > 0 {
                    let from = turned.part([
                        (0.into(), size),
                        (begin.into(), chunks),
                        (0.into(), part.size),
                    ]);
                    let into = place(to, first.clone().plus(begin), chunks, size, part);
                    evict(b, into, from);
                }
            }
        });
    }

    /// Chunks of K of rows, transposed into one bank of PSUM.
    fn transposes(
        &self,
        b: &mut Builder,
        chip: &Chip,
        rows: &Tile,
        group: &Part,
        part: &Part,
    ) -> Tile {
        // PSUM holds transposes as f32 on trn1, in their own type later (ISA).
        let dtype = match chip.generation {
            Generation::Gen2 => DType::F32,
            Generation::Gen3 => self.dtype,
        };
        let chunks = (group.size + PARTITIONS - 1) / PARTITIONS;
        let shape = [group.size.min(PARTITIONS), chunks, part.size];
        let turned = b.tile(
            &format!("{}_turned", self.name),
            Space::Psum,
            &shape,
            dtype,
            2,
        );
        for chunk in 0..chunks {
            let size = PARTITIONS.min(group.size - chunk * PARTITIONS);
            b.op(Op::NcTranspose {
                dst: turned.part([(0.into(), size), (chunk.into(), 1), (0.into(), part.size)]),
                data: rows.part([
                    (0.into(), part.size),
                    (group.at.clone().plus(chunk * PARTITIONS), size),
                ]),
            });
        }
        turned
    }
}

/// Copies from PSUM on the scalar engine, which is faster at it than the vector engine, except where that has its modes
/// for 16-bit types (ISA; A2).
pub(super) fn evict(b: &mut Builder, to: View, from: View) {
    match b.dtype(&from).bytes() {
        2 => b.copy(to, from),
        _ => b.activation(to, from, Function::Copy, None, 1.0, None),
    }
}

/// The place of `chunks` chunks of K with `rows` rows, and of a part of the columns.
fn place(to: &Tile, chunk: Expr, chunks: i64, rows: i64, part: &Part) -> View {
    to.part([
        (0.into(), rows),
        (chunk, chunks),
        (part.index.clone().times(PARTITIONS), part.size),
    ])
}
