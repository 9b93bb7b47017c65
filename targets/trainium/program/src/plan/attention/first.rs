//! The first pass: the largest score of each query, negated, as a row.

use super::buffers::{BLOCK, Mask, UNSEEN, turned_row};
use super::steps::{Kernel, Step};
use crate::facts::memory::PARTITIONS;
use crate::plan::operand::evict;
use crate::program::{Accumulate, Alu, Axis, Builder, Expr, Op, View};

impl Kernel<'_> {
    /// The largest score of each query of a tile among the keys of a block. On the diagonal those up to the tile are read,
    /// and in the last 128 of them each query's own.
    pub fn largest(
        &self,
        b: &mut Builder,
        step: &Step,
        tile: i64,
        block: &Expr,
        keys: i64,
        diagonal: bool,
    ) {
        let (buffers, begin) = (&self.buffers, tile * PARTITIONS);
        let queries = PARTITIONS.min(step.queries - begin);
        let keys = match diagonal {
            true => keys.min(begin + PARTITIONS),
            false => keys,
        };
        let [head, turn] = step.turns.clone();
        let scores = |from: i64, size: i64| {
            let bank = (Expr::from(tile % 2), 1);
            buffers
                .first
                .part([(0.into(), queries), bank, (from.into(), size)])
        };
        let dim = self.attention.dim;
        b.op(Op::NcMatmul {
            dst: scores(0, keys),
            stationary: buffers.qt.part([
                (0.into(), dim),
                (turn.clone(), 1),
                (begin.into(), queries),
            ]),
            moving: buffers.kt.part([
                (0.into(), dim),
                (head, 1),
                (block.clone().times(BLOCK), keys),
            ]),
            accumulate: Accumulate::Never,
        });
        let largest =
            buffers
                .maxima
                .part([(0.into(), queries), (tile.into(), 1), (block.clone(), 1)]);
        match buffers.mask.as_ref().filter(|_| diagonal) {
            None => b.reduce(largest, scores(0, keys), Alu::Maximum, false),
            Some(Mask::Triangle {
                identity, plain, ..
            }) => {
                let size = keys - begin;
                let all = (Expr::from(0), PARTITIONS);
                b.op(Op::NcMatmul {
                    dst: scores(begin, size),
                    stationary: identity.part([all.clone(), (0.into(), queries)]),
                    moving: plain.part([all, (0.into(), size)]),
                    accumulate: Accumulate::Always,
                });
                b.reduce(largest, scores(0, keys), Alu::Maximum, false);
            }
            Some(Mask::Range {
                first,
                last,
                selected,
            }) => {
                let rows = (Expr::from(0), queries);
                b.op(Op::RangeSelect {
                    dst: selected.part([rows.clone(), (0.into(), keys)]),
                    on_true: scores(0, keys),
                    on_false: UNSEEN,
                    compare0: Alu::GreaterEqual,
                    bound0: first.part([rows.clone(), (0.into(), 1)]),
                    compare1: Alu::LessEqual,
                    bound1: last.part([rows, (tile.into(), 1)]),
                    start: 0,
                    reduce: Some(largest),
                });
            }
        }
    }

    /// The largest of all blocks, negated.
    pub fn negate(&self, b: &mut Builder, step: &Step) {
        let buffers = &self.buffers;
        let (whole, tail) = (step.queries / PARTITIONS, step.queries % PARTITIONS);
        for (tile, count, queries) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && queries > 0 {
                let negated = buffers
                    .negated
                    .part([(0.into(), queries), (tile.into(), count)]);
                b.reduce(
                    negated,
                    self.maxima(step, tile, count, queries),
                    Alu::Maximum,
                    true,
                );
            }
        }
    }

    /// What [`Self::negate`] gave, as the row that is added to the scores.
    pub fn row(&self, b: &mut Builder, step: &Step) {
        let buffers = &self.buffers;
        for (tile, queries) in step.tiles() {
            b.op(Op::NcTranspose {
                dst: turned_row(&buffers.turned, tile * PARTITIONS, queries),
                data: buffers
                    .negated
                    .part([(0.into(), queries), (tile.into(), 1)]),
            });
        }
        let columns = (Expr::from(0), step.queries);
        let turn = (step.turns[1].clone(), 1);
        let into = match &buffers.row {
            Some([row, _]) => row.part([(0.into(), 1), turn, columns]),
            None => buffers
                .qt
                .part([(self.attention.row().into(), 1), turn, columns]),
        };
        evict(b, into, turned_row(&buffers.turned, 0, step.queries));
    }

    /// The largest scores of some tiles: `[queries, tiles, blocks]`.
    fn maxima(&self, step: &Step, tile: i64, count: i64, queries: i64) -> View {
        let along = |dimension, size| Axis {
            of: Some(dimension),
            size,
            step: 1,
        };
        View {
            buffer: self.buffers.maxima.buffer(),
            origin: vec![0.into(), tile.into(), 0.into()],
            axes: vec![along(0, queries), along(1, count), along(2, step.blocks())],
        }
    }
}
