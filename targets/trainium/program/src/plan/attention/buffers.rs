//! What a kernel of attention keeps on chip: buffers in which steps, or heads, take turns.

use super::tensor::Tensor;
use super::{Attention, Paced, Tensors};
use crate::facts::chip::{Chip, Generation};
use crate::facts::memory::{MOVING_COLUMNS, PARTITIONS};
use crate::plan::operand::Order;
use crate::program::build::Tile;
use crate::program::{Alu, Builder, Op, Space};
use axe_package::DType;

/// Queries of a step, and keys of a block: a bank of scores.
pub(super) const BLOCK: i64 = MOVING_COLUMNS;
/// Tiles of 128 in a block.
pub(super) const TILES: i64 = BLOCK / PARTITIONS;
/// What is added to the scores of keys that a query does not see: no score is as large.
pub(super) const UNSEEN: f64 = -1e30;

/// The tensors and the buffers of a kernel.
pub(super) struct Buffers {
    pub q: Tensor,
    pub k: Tensor,
    pub v: Tensor,
    pub result: Tensor,
    /// Keys of a head, transposed, and a row of ones where queries have a row of what is subtracted.
    pub kt: Tile,
    /// Values of a head, chunks of 128 keys side by side, and a column of ones.
    pub values: Tile,
    /// Queries of a step, transposed, and the row of what is subtracted.
    pub qt: Tile,
    /// What is subtracted, where it is no row of the queries, and ones to multiply it with.
    pub row: Option<[Tile; 2]>,
    /// Rows as they lie, of queries and of keys, where the tensor engine transposes them.
    pub rows: [Option<Tile>; 2],
    /// The largest score of each query of a step and block of keys.
    pub maxima: Tile,
    /// The largest of them, negated.
    pub negated: Tile,
    /// The same, a tile of queries on each partition.
    pub flat: Tile,
    /// Scores with queries on the partitions.
    pub first: Tile,
    /// Banks that they take turns in: one more where no loads are transposed.
    first_banks: i64,
    /// Scores with keys on the partitions.
    pub scores: Tile,
    /// Their weights.
    pub weights: Tile,
    /// Transposes.
    pub turned: Tile,
    /// Sums of values, and of weights beside them: all tiles of a step in each of two banks, or two tiles in each.
    pub sums: Tile,
    pub mask: Option<Mask>,
}

/// How the keys that come after a query are hidden on the diagonal.
pub(super) enum Mask {
    /// A triangle is added to the scores of a tile by a product: on trn1 the tensor engine has time for it.
    Triangle {
        /// Ones on the diagonal, zeros beside it.
        identity: Tile,
        /// Queries on the partitions.
        plain: Tile,
        /// Keys on the partitions.
        turned: Tile,
    },
    /// The largest score is that of a range (trn2), and gpsimd clears weights.
    Range {
        /// The first key that a query sees.
        first: Tile,
        /// The last one, in a block on the diagonal, for each tile of queries.
        last: Tile,
        /// What selections are written to.
        selected: Tile,
    },
}

/// Whether the tensor engine transposes an operand.
pub(super) fn turned_by_products(order: Order, chip: &Chip) -> bool {
    order == Order::KMinor && !chip.is_at_least(Generation::Gen3)
}

impl Buffers {
    /// Declares the arguments, makes the buffers, and fills in what stays.
    pub fn new(b: &mut Builder, a: &Paced, tensors: &Tensors, chip: &Chip) -> Self {
        let chunks = (a.keys + PARTITIONS - 1) / PARTITIONS;
        let blocks = (a.keys + BLOCK - 1) / BLOCK;
        let (turns, steps) = (a.head_turns(), a.step_turns());
        let depth = if a.has_own_row() {
            a.dim
        } else {
            a.row() + TILES
        };
        let dtype = a.dtype;
        // PSUM holds transposes as f32 on trn1, in their own type later (ISA).
        let turned = match chip.is_at_least(Generation::Gen3) {
            true => DType::BF16,
            false => DType::F32,
        };
        // Transposes of loads have a bank of their own.
        let by_products = [a.q, a.k].map(|order| turned_by_products(order, chip));
        let turned_banks = if by_products.contains(&true) { 2 } else { 1 };
        let buffers = Self {
            q: Tensor::new(b, "q", (&tensors.q, a.queries), a),
            k: Tensor::new(b, "k", (&tensors.k, a.keys), a),
            v: Tensor::new(b, "v", (&tensors.v, a.keys), a),
            result: Tensor::new(b, "result", (&tensors.result, a.queries), a),
            kt: sbuf(b, "kt", &[depth, turns, chunks * PARTITIONS], dtype),
            values: sbuf(b, "values", &[PARTITIONS, turns, chunks, a.dim + 1], dtype),
            qt: sbuf(b, "qt", &[depth, steps, BLOCK], dtype),
            row: a.has_own_row().then(|| own_row(b, steps)),
            rows: [
                by_products[0].then(|| rows(b, "q_rows", a, steps)),
                by_products[1].then(|| rows(b, "k_rows", a, 2)),
            ],
            first_banks: 4 - turned_banks,
            maxima: sbuf(b, "maxima", &[PARTITIONS, TILES, blocks], DType::F32),
            flat: sbuf(b, "flat", &[TILES, steps, PARTITIONS], DType::BF16),
            negated: sbuf(b, "negated", &[PARTITIONS, steps, TILES], DType::BF16),
            weights: sbuf(b, "weights", &[PARTITIONS, TILES, BLOCK], dtype),
            mask: a.causal.then(|| Mask::new(b, chip)),
            first: psum(b, "first", 4 - turned_banks, DType::F32),
            scores: psum(b, "scores", 2, DType::F32),
            turned: psum(b, "turned", turned_banks, turned),
            sums: match a.sum_turns() {
                2 => psum(b, "sums", 2, DType::F32),
                _ => {
                    let shape = [PARTITIONS, TILES, BLOCK / 2];
                    b.tile("sums", Space::Psum, &shape, DType::F32, 1)
                }
            },
        };
        buffers.fill(b, a, turns, chunks);
        buffers
    }

    /// The bank of the scores of a tile of queries. Three of them for four tiles of each block: the second one, twice.
    pub fn first_bank(&self, tile: i64) -> i64 {
        match self.first_banks {
            3 => [0, 1, 2, 1][(tile % TILES) as usize],
            _ => tile % 2,
        }
    }

    /// Ones, zeros and masks.
    fn fill(&self, b: &mut Builder, a: &Attention, turns: i64, chunks: i64) {
        let padding = chunks * PARTITIONS - a.keys;
        // Transposes take all tiles, where some have fewer queries.
        b.memset(self.negated.all(), 0.0);
        if !a.has_own_row() {
            // The partitions between the elements and the row are zeros.
            if a.row() != a.dim {
                b.memset(self.kt.all(), 0.0);
                b.memset(self.qt.all(), 0.0);
            }
            let columns = (0.into(), chunks * PARTITIONS);
            b.memset(
                self.kt
                    .part([(a.row().into(), TILES), (0.into(), turns), columns]),
                1.0,
            );
        }
        if padding > 0 {
            let columns = (a.keys.into(), padding);
            b.memset(
                self.kt
                    .part([(0.into(), a.dim), (0.into(), turns), columns]),
                0.0,
            );
        }
        if let Some([_, ones]) = &self.row {
            b.memset(ones.all(), 1.0);
        }
        let ones = [
            (0.into(), PARTITIONS),
            (0.into(), turns),
            (0.into(), chunks),
            (a.dim.into(), 1),
        ];
        b.memset(self.values.part(ones), 1.0);
        if let Some(mask) = &self.mask {
            mask.fill(b);
        }
    }
}

fn sbuf(b: &mut Builder, name: &str, shape: &[i64], dtype: DType) -> Tile {
    b.tile(name, Space::Sbuf, shape, dtype, 1)
}

fn psum(b: &mut Builder, name: &str, banks: i64, dtype: DType) -> Tile {
    b.tile(name, Space::Psum, &[PARTITIONS, banks, BLOCK], dtype, 1)
}

fn own_row(b: &mut Builder, steps: i64) -> [Tile; 2] {
    let row = sbuf(b, "row", &[TILES, steps, BLOCK], DType::BF16);
    [row, sbuf(b, "ones", &[TILES, PARTITIONS], DType::BF16)]
}

fn rows(b: &mut Builder, name: &str, a: &Attention, turns: i64) -> Tile {
    sbuf(b, name, &[PARTITIONS, turns, TILES, a.dim], a.dtype)
}

impl Mask {
    fn new(b: &mut Builder, chip: &Chip) -> Self {
        if chip.is_at_least(Generation::Gen3) {
            return Self::Range {
                first: sbuf(b, "first_key", &[PARTITIONS, 1], DType::F32),
                last: sbuf(b, "last_key", &[PARTITIONS, TILES], DType::F32),
                selected: sbuf(b, "selected", &[PARTITIONS, 2, BLOCK], DType::F32),
            };
        }
        let mut square = |name: &str| sbuf(b, name, &[PARTITIONS, PARTITIONS], DType::BF16);
        Self::Triangle {
            identity: square("identity"),
            plain: square("mask"),
            turned: square("mask_turned"),
        }
    }

    fn fill(&self, b: &mut Builder) {
        let (identity, plain, turned) = match self {
            Self::Triangle {
                identity,
                plain,
                turned,
            } => (identity, plain, turned),
            Self::Range { first, last, .. } => {
                b.memset(first.all(), 0.0);
                return b.op(Op::Iota {
                    dst: last.all(),
                    pattern: vec![PARTITIONS],
                    offset: 0,
                    channel_multiplier: 1,
                });
            }
        };
        // Element (p, i) is kept where `p * by - i * by` compares with 0.
        let mut select = |tile: &Tile, begin: f64, other: f64, by: i64, compare| {
            b.memset(tile.all(), begin);
            b.op(Op::AffineSelect {
                dst: tile.all(),
                on_true: tile.all(),
                on_false: other,
                pattern: vec![-by],
                offset: 0,
                channel_multiplier: by,
                compare,
            });
        };
        select(identity, 1.0, 0.0, 1, Alu::Equal);
        select(plain, 0.0, UNSEEN, 1, Alu::GreaterEqual);
        select(turned, 0.0, UNSEEN, -1, Alu::GreaterEqual);
    }
}
