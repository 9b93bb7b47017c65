//! The second pass: weights of 128 keys at a time, and their products with the values.

use super::buffers::{BLOCK, Mask, TILES};
use super::steps::{Chunk, Kernel, Step};
use crate::facts::memory::PARTITIONS;
use crate::program::build::Tile;
use crate::program::{Accumulate, Alu, Builder, Expr, Function, Op, Space};
use axe_package::DType;

impl Kernel<'_> {
    /// The weights of a chunk.
    pub fn ready(&self, b: &mut Builder, step: &Step, chunk: &Chunk) {
        self.scores(b, step, chunk);
        if chunk.hidden {
            self.hide(b, step, chunk);
        }
        let of = |tile: &Tile| {
            let columns = (chunk.from.into(), step.queries - chunk.from);
            tile.part([(0.into(), chunk.keys), (chunk.turn.into(), 1), columns])
        };
        let (into, scores) = (of(&self.buffers.weights), of(&self.buffers.scores));
        b.activation(
            into,
            scores,
            Function::Exp,
            None,
            self.attention.scale,
            None,
        );
        if chunk.hidden {
            self.clear(b, step, chunk);
        }
    }

    /// Scores of a chunk and the queries that see it, less the largest.
    fn scores(&self, b: &mut Builder, step: &Step, chunk: &Chunk) {
        let buffers = &self.buffers;
        let [head, step_turn] = step.turns.clone();
        let columns = (Expr::from(chunk.from), step.queries - chunk.from);
        let keys = (Expr::from(0), PARTITIONS);
        let scores = || {
            buffers
                .scores
                .part([keys.clone(), (chunk.turn.into(), 1), columns.clone()])
        };
        let depth = (Expr::from(0), self.contracted());
        let of_chunk = (chunk.at.clone().times(PARTITIONS), PARTITIONS);
        b.op(Op::NcMatmul {
            dst: scores(),
            stationary: buffers.kt.part([depth.clone(), (head, 1), of_chunk]),
            moving: buffers
                .qt
                .part([depth, (step_turn.clone(), 1), columns.clone()]),
            accumulate: Accumulate::Never,
        });
        if let Some([row, ones]) = &buffers.row {
            b.op(Op::NcMatmul {
                dst: scores(),
                stationary: ones.all(),
                moving: row.part([(0.into(), 1), (step_turn, 1), columns.clone()]),
                accumulate: Accumulate::Always,
            });
        }
    }

    /// Partitions that the scores of the second pass are sums over.
    fn contracted(&self) -> i64 {
        match self.attention.has_own_row() {
            true => self.attention.dim,
            false => self.attention.row() + 1,
        }
    }

    /// Hides the keys of a chunk on the diagonal that come after a query, in its scores.
    fn hide(&self, b: &mut Builder, step: &Step, chunk: &Chunk) {
        let buffers = &self.buffers;
        let Some(Mask::Triangle {
            identity, turned, ..
        }) = &buffers.mask
        else {
            return;
        };
        let queries = PARTITIONS.min(step.queries - chunk.from);
        let all = (Expr::from(0), PARTITIONS);
        b.op(Op::NcMatmul {
            dst: buffers.scores.part([
                all.clone(),
                (chunk.turn.into(), 1),
                (chunk.from.into(), queries),
            ]),
            stationary: identity.all(),
            moving: turned.part([all, (0.into(), queries)]),
            accumulate: Accumulate::Always,
        });
    }

    /// Clears the weights of such keys, where their scores were not hidden.
    fn clear(&self, b: &mut Builder, step: &Step, chunk: &Chunk) {
        let Some(Mask::Range { .. }) = &self.buffers.mask else {
            return;
        };
        let queries = PARTITIONS.min(step.queries - chunk.from);
        let weights = || {
            self.buffers.weights.part([
                (0.into(), chunk.keys),
                (chunk.turn.into(), 1),
                (chunk.from.into(), queries),
            ])
        };
        b.op(Op::AffineSelect {
            dst: weights(),
            on_true: weights(),
            on_false: 0.0,
            pattern: vec![1],
            offset: 0,
            channel_multiplier: -1,
            compare: Alu::GreaterEqual,
        });
    }

    /// Sums of values, and of weights beside them: a place for each tile of queries, none in two banks.
    pub fn sums(&self, b: &mut Builder, step: &Step) -> Tile {
        let width = self.attention.dim + 1;
        let width = match TILES * width <= BLOCK {
            true => width,
            false => BLOCK / 2,
        };
        let shape = [PARTITIONS.min(step.queries), TILES, width];
        b.tile("sums", Space::Psum, &shape, DType::F32, 1)
    }

    /// Adds the values of a chunk of keys to the sums of the tiles of queries that see it.
    pub fn context(&self, b: &mut Builder, step: &Step, sums: &Tile, chunk: &Chunk) {
        let (buffers, width) = (&self.buffers, self.attention.dim + 1);
        let keys = (Expr::from(0), chunk.keys);
        let seeing = |(tile, _): &(i64, i64)| tile * PARTITIONS >= chunk.from;
        for (tile, queries) in step.tiles().filter(seeing) {
            let columns = ((tile * PARTITIONS).into(), queries);
            b.matmul(
                sums.part([(0.into(), queries), (tile.into(), 1), (0.into(), width)]),
                buffers
                    .weights
                    .part([keys.clone(), (chunk.turn.into(), 1), columns]),
                buffers.values.part([
                    keys.clone(),
                    (step.turns[0].clone(), 1),
                    (chunk.at.clone(), 1),
                    (0.into(), width),
                ]),
            );
        }
    }

    /// Divides the sums of values by those of weights, and stores them.
    pub fn output(&self, b: &mut Builder, step: &Step, sums: &Tile) {
        let (whole, tail) = (step.queries / PARTITIONS, step.queries % PARTITIONS);
        for (tile, count, queries) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && queries > 0 {
                self.output_tiles(b, step, sums, (tile, count, queries));
            }
        }
    }

    fn output_tiles(
        &self,
        b: &mut Builder,
        step: &Step,
        sums: &Tile,
        (first, count, queries): (i64, i64, i64),
    ) {
        let (a, rows) = (self.attention, (Expr::from(0), queries));
        let inverse = b.tile("inverse", Space::Sbuf, &[queries, count], DType::F32, 2);
        // Sums are from some 2^-42 to the number of keys, which the scalar engine's reciprocals are good for (ISA).
        let of_weights = sums.part([rows.clone(), (first.into(), count), (a.dim.into(), 1)]);
        b.activation(
            inverse.all(),
            of_weights,
            Function::Reciprocal,
            None,
            1.0,
            None,
        );
        let out = b.tile("out", Space::Sbuf, &[queries, count, a.dim], a.dtype, 2);
        for tile in 0..count {
            b.op(Op::Activation {
                dst: out.part([rows.clone(), (tile.into(), 1), (0.into(), a.dim)]),
                data: sums.part([rows.clone(), ((first + tile).into(), 1), (0.into(), a.dim)]),
                function: Function::Copy,
                bias: None,
                scale: inverse.part([rows.clone(), (tile.into(), 1)]).into(),
                command: None,
                reduce: None,
            });
        }
        let row = step.first.clone().plus(first * PARTITIONS);
        let size = (count, queries, a.dim);
        b.dma_copy(self.buffers.result.tiles(&step.head, &row, size), out.all());
    }
}
