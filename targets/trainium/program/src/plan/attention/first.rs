//! The first pass: the largest score of each query, negated, as a row.

use super::buffers::{BLOCK, Mask, TILES, UNSEEN};
use super::steps::{Kernel, Step};
use crate::facts::memory::PARTITIONS;
use crate::program::{Accumulate, Alu, Axis, Builder, Expr, Function, Op, View};

impl Kernel<'_> {
    /// The largest score of each query of a tile among keys of a block; on the diagonal in the last 128 of them among the
    /// query's own.
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
        let [head, turn, _] = step.turns.clone();
        let scores = |from: i64, size: i64| {
            let bank = (Expr::from(buffers.first_bank(tile)), 1);
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
            Some(mask) => Self::largest_below(b, mask, (tile, keys, queries), scores, largest),
        }
    }

    /// The largest score of each query among keys of a block that it sees.
    fn largest_below(
        b: &mut Builder,
        mask: &Mask,
        (tile, keys, queries): (i64, i64, i64),
        scores: impl Fn(i64, i64) -> View,
        largest: View,
    ) {
        let begin = tile * PARTITIONS;
        match mask {
            Mask::Triangle {
                identity, plain, ..
            } => {
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
            Mask::Range {
                first,
                last,
                selected,
            } => {
                let rows = (Expr::from(0), queries);
                b.op(Op::RangeSelect {
                    dst: selected.part([rows.clone(), ((tile % 2).into(), 1), (0.into(), keys)]),
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
        let turn = (step.turns[1].clone(), 1);
        for (tile, count, queries) in [(0, whole, PARTITIONS), (whole, 1, tail)] {
            if count > 0 && queries > 0 {
                let negated =
                    buffers
                        .negated
                        .part([(0.into(), queries), turn.clone(), (tile.into(), count)]);
                b.reduce(
                    negated,
                    self.maxima(step, tile, count, queries),
                    Alu::Maximum,
                    true,
                );
            }
        }
    }

    /// What [`Self::negate`] gave, as rows that are added to the scores: one for each tile of queries, which has zeros for
    /// the others. So all of them are transposed, and leave PSUM, in one instruction.
    pub fn row(&self, b: &mut Builder, step: &Step) {
        let buffers = &self.buffers;
        let (all, turn) = ((Expr::from(0), PARTITIONS), (step.turns[1].clone(), 1));
        let turned = buffers
            .turned
            .part([(0.into(), TILES), (0.into(), 1), all.clone()]);
        b.op(Op::NcTranspose {
            dst: turned.clone(),
            data: buffers
                .negated
                .part([all.clone(), turn.clone(), (0.into(), TILES)]),
        });
        let flat = buffers.flat.part([(0.into(), TILES), turn, all]);
        b.activation(flat.clone(), turned, Function::Copy, None, 1.0, None);
        let (into, first) = match &buffers.row {
            Some([row, _]) => (row, 0),
            None => (&buffers.qt, self.attention.row()),
        };
        let axis = |of, size, step| Axis { of, size, step };
        let tiles = |tile, column| vec![axis(Some(0), TILES, 1), tile, column];
        let column = axis(Some(2), PARTITIONS, 1);
        b.op(Op::AffineSelect {
            dst: View {
                buffer: into.buffer(),
                origin: vec![first.into(), step.turns[1].clone(), 0.into()],
                axes: tiles(axis(Some(2), TILES, PARTITIONS), column),
            },
            on_true: View {
                axes: tiles(axis(None, TILES, 0), column),
                ..flat
            },
            on_false: 0.0,
            // Kept where the tile is the partition.
            pattern: vec![1, 0],
            offset: 0,
            channel_multiplier: -1,
            compare: Alu::Equal,
        });
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
