//! The second pass: weights of 128 keys at a time, and their products with the values.

use super::buffers::{Mask, TILES};
use super::steps::{Kernel, Keys, Step};
use crate::facts::memory::PARTITIONS;
use crate::program::build::Tile;
use crate::program::{Accumulate, Alu, Axis, Builder, Expr, Function, Op, Space, View};
use axe_package::DType;

impl Kernel<'_> {
    /// The weights of a chunk.
    pub fn ready(&self, b: &mut Builder, step: &Step, chunk: &Keys) {
        self.scores(b, step, chunk);
        if chunk.hidden {
            self.hide(b, step, chunk);
        }
        let of = |tile: &Tile, turn: i64| {
            let columns = (chunk.from.into(), step.queries - chunk.from);
            tile.part([(0.into(), chunk.keys), (turn.into(), 1), columns])
        };
        let into = of(&self.buffers.weights, chunk.number);
        let scores = of(&self.buffers.scores, chunk.number % 2);
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
    fn scores(&self, b: &mut Builder, step: &Step, chunk: &Keys) {
        let buffers = &self.buffers;
        let [head, step_turn, _] = step.turns.clone();
        let columns = (Expr::from(chunk.from), step.queries - chunk.from);
        let keys = (Expr::from(0), PARTITIONS);
        let scores = || {
            buffers.scores.part([
                keys.clone(),
                ((chunk.number % 2).into(), 1),
                columns.clone(),
            ])
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
                moving: row.part([(0.into(), TILES), (step_turn, 1), columns.clone()]),
                accumulate: Accumulate::Always,
            });
        }
    }

    /// Partitions that the scores of the second pass are sums over.
    fn contracted(&self) -> i64 {
        match self.attention.has_own_row() {
            true => self.attention.dim,
            false => self.attention.row() + TILES,
        }
    }

    /// Hides the keys of a chunk on the diagonal that come after a query, in its scores.
    fn hide(&self, b: &mut Builder, step: &Step, chunk: &Keys) {
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
                ((chunk.number % 2).into(), 1),
                (chunk.from.into(), queries),
            ]),
            stationary: identity.all(),
            moving: turned.part([all, (0.into(), queries)]),
            accumulate: Accumulate::Always,
        });
    }

    /// Clears the weights of such keys, where their scores were not hidden.
    fn clear(&self, b: &mut Builder, step: &Step, chunk: &Keys) {
        let Some(Mask::Range { .. }) = &self.buffers.mask else {
            return;
        };
        let queries = PARTITIONS.min(step.queries - chunk.from);
        let weights = || {
            self.buffers.weights.part([
                (0.into(), chunk.keys),
                (chunk.number.into(), 1),
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

    /// Sums of values, and of weights beside them, of some tiles of queries: `[queries, tiles, columns]`.
    fn sums(
        &self,
        step: &Step,
        (tile, tiles, queries): (i64, i64, i64),
        (begin, columns): (i64, i64),
    ) -> View {
        let (sums, width) = (&self.buffers.sums, self.attention.dim + 1);
        let axis = |of, size, step| Axis {
            of: Some(of),
            size,
            step,
        };
        // All tiles in one of two banks, or two in each.
        let (origin, along) = match self.attention.sum_turns() {
            2 => (
                [step.turns[2].clone(), (tile * width + begin).into()],
                axis(2, tiles, width),
            ),
            _ => ([tile.into(), begin.into()], axis(1, tiles, 1)),
        };
        let [bank, column] = origin;
        let mut axes = vec![axis(0, queries, 1)];
        axes.extend((tiles > 1).then_some(along));
        axes.push(axis(2, columns, 1));
        View {
            buffer: sums.buffer(),
            origin: vec![0.into(), bank, column],
            axes,
        }
    }

    /// Adds the values of a chunk of keys to the sums of the tiles of queries that see it.
    pub fn context(&self, b: &mut Builder, step: &Step, chunk: &Keys) {
        let (buffers, width) = (&self.buffers, self.attention.dim + 1);
        let keys = (Expr::from(0), chunk.keys);
        let seeing = |(tile, _): &(i64, i64)| tile * PARTITIONS >= chunk.from;
        for (tile, queries) in step.tiles().filter(seeing) {
            let columns = ((tile * PARTITIONS).into(), queries);
            b.op(Op::NcMatmul {
                dst: self.sums(step, (tile, 1, queries), (0, width)),
                stationary: buffers
                    .weights
                    .part([keys.clone(), (chunk.number.into(), 1), columns]),
                moving: buffers.values.part([
                    keys.clone(),
                    (step.turns[0].clone(), 1),
                    (chunk.at.clone(), 1),
                    (0.into(), width),
                ]),
                accumulate: match chunk.begins {
                    true => Accumulate::Never,
                    false => Accumulate::Always,
                },
            });
        }
    }

    /// Divides the sums of values by those of weights, and stores them.
    pub fn output(&self, b: &mut Builder, step: &Step) {
        let (whole, tail) = (step.queries / PARTITIONS, step.queries % PARTITIONS);
        for (tile, count, queries) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && queries > 0 {
                self.output_tiles(b, step, (tile, count, queries));
            }
        }
    }

    fn output_tiles(&self, b: &mut Builder, step: &Step, (first, count, queries): (i64, i64, i64)) {
        let (a, rows) = (self.attention, (Expr::from(0), queries));
        let inverse = b.tile("inverse", Space::Sbuf, &[queries, count], DType::F32, 2);
        // Sums are from some 2^-42 to the number of keys, which the scalar engine's reciprocals are good for (ISA).
        b.activation(
            inverse.all(),
            self.sums(step, (first, count, queries), (a.dim, 1)),
            Function::Reciprocal,
            None,
            1.0,
            None,
        );
        let out = b.tile("out", Space::Sbuf, &[queries, count, a.dim], a.dtype, 2);
        for tile in 0..count {
            b.op(Op::Activation {
                dst: out.part([rows.clone(), (tile.into(), 1), (0.into(), a.dim)]),
                data: self.sums(step, (first + tile, 1, queries), (0, a.dim)),
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
