//! A matrix product as data: what the cost model, the search and the database of tuned plans see of it.

use crate::facts::chip::ROW_ALIGNMENT;
use crate::facts::matrix::{M16N8K8, M16N8K16, Mma};
use axe_package::{DType, Key, OperandOrder, TunedOp};

/// Multiply-adds from which on a copy pays: two more launches take some microseconds.
const WORTH: i64 = 1 << 25;
/// The length of sums from which on it pays for smaller products, whose warps take as long for each step: those that do not
/// fit in the ring at once wait for elements that threads fetch (an H200: 18.4 us for 22 x 803 x 599, and 6.0 with copies for
/// 882 x 90 x 508).
const LONG: i64 = 256;
/// Rows of a tile at the least, whether the result has them or not.
const LEAST_ROWS: i64 = 16;

/// Columns from which on products of so few rows keep all multiprocessors reading: then a copy, which reads and writes B
/// before it is read again, takes longer (5 x 29569 x 2693: 142 us on an H200, and 90 without).
const MANY_COLUMNS: i64 = 1 << 14;

/// How the products of a tile are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `mma.sync` on 16-bit floats.
    Half,
    /// `mma.sync` on f32 rounded to tf32.
    Tf32,
    /// `wgmma` on 8-bit floats or integers; `mma.sync` takes floats widened to f16.
    Byte,
    /// Scalar multiply-adds.
    Scalar,
}

impl Unit {
    /// The instruction of the tensor cores that forms them.
    #[must_use]
    pub const fn atom(self) -> Option<Mma> {
        match self {
            Self::Half => Some(M16N8K16),
            Self::Tf32 => Some(M16N8K8),
            Self::Byte | Self::Scalar => None,
        }
    }
}

/// The extents of a matrix product; a dynamic extent is given as what is expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Independent products.
    pub batch: i64,
    /// Rows of the result.
    pub m: i64,
    /// Columns of the result.
    pub n: i64,
    /// The contracted extent.
    pub k: i64,
    /// Bytes of an element of A and B.
    pub element_bytes: i64,
    /// What forms the products.
    pub unit: Unit,
}

impl Problem {
    /// Elements of a row of A and of B, as they are stored.
    pub(super) const fn rows(self, k_first: KFirst) -> [i64; 2] {
        let a = if k_first.a { self.m } else { self.k };
        let b = if k_first.b { self.n } else { self.k };
        [a, b]
    }

    /// Bytes of which those before each row of A, B and the result are a multiple, at most [`ROW_ALIGNMENT`].
    pub(super) fn row_alignments(self, k_first: KFirst) -> [i64; 3] {
        let of = |elements: i64, bytes: i64| {
            let bytes = elements.wrapping_mul(bytes);
            1 << bytes.trailing_zeros().min(ROW_ALIGNMENT.trailing_zeros())
        };
        let [a, b] = self.rows(k_first);
        let bytes = self.element_bytes;
        [of(a, bytes), of(b, bytes), of(self.n, RESULT_BYTES)]
    }

    /// Whether copies of operands whose rows no tensor map takes pay, of other elements than 16-bit floats, for which the cost model
    /// says so.
    pub(super) fn pays_for_copies(self) -> bool {
        if self.m.saturating_mul(self.batch) <= LEAST_ROWS && self.n >= MANY_COLUMNS {
            return false;
        }
        let rows = self.m.max(LEAST_ROWS).saturating_mul(self.batch);
        let products = rows.saturating_mul(self.n).saturating_mul(self.k);
        products >= WORTH || self.k >= LONG
    }
}

/// Which operands are stored with k as their outer dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KFirst {
    /// A, as `[k, m]`.
    pub a: bool,
    /// B, as `[k, n]`.
    pub b: bool,
}

/// What shares a scale: `n` columns of B by `k`, and a row of A by `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Columns.
    pub n: i64,
    /// Elements along the contracted dimension.
    pub k: i64,
}

/// Bytes of an element of a result, as most have.
pub(super) const RESULT_BYTES: i64 = 2;
/// Bytes of a sum.
pub(in crate::planner) const SUM_BYTES: i64 = 4;
/// Bytes of a scale.
pub(super) const SCALE_BYTES: i64 = 4;

/// The blocks of [`TunedOp::GemmBlockScaled`].
pub(super) const BLOCKS: Blocks = Blocks { n: 128, k: 128 };

/// A product, and what kernels there are for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The product.
    pub problem: Problem,
    /// Whether `wgmma` takes it: the tensor memory accelerator its operands, or copies of them that pay.
    pub wgmma: bool,
    /// How the operands are stored.
    pub k_first: KFirst,
    /// What shares a scale, where blocks have scales.
    pub blocks: Option<Blocks>,
    /// Whether the products of the batch are groups of rows of one A, whose sizes are data.
    pub grouped: bool,
}

impl Query {
    /// The product of a key of the database; `None` for what there are no kernels to choose from: 8-bit products
    /// with one scale or of other operands than A \[m, k\] and W \[n, k\], sizes beyond 2^63.
    #[must_use]
    pub fn of(key: &Key) -> Option<Self> {
        let (unit, bytes, blocks) = match (key.op, key.dtype) {
            (TunedOp::Gemm | TunedOp::GroupedGemm, DType::F16 | DType::BF16) => {
                (Unit::Half, 2, None)
            }
            (TunedOp::GemmRowScaled, DType::F8E4M3) => (Unit::Byte, 1, None),
            (TunedOp::GemmBlockScaled, DType::F8E4M3) => (Unit::Byte, 1, Some(BLOCKS)),
            _ => return None,
        };
        if unit == Unit::Byte && key.layout != OperandOrder::Nt {
            return None;
        }
        let size = |size: u64| i64::try_from(size).ok();
        let (m, n, k) = (size(key.m)?, size(key.n)?, size(key.k)?);
        let (trans_a, trans_b) = match key.layout {
            OperandOrder::Nn => (false, false),
            OperandOrder::Nt => (false, true),
            OperandOrder::Tn => (true, false),
            OperandOrder::Tt => (true, true),
        };
        let rows = [if trans_a { m } else { k }, if trans_b { k } else { n }];
        let grouped = key.op == TunedOp::GroupedGemm;
        if grouped && trans_a {
            return None;
        }
        let groups = size(key.groups)?;
        let problem = Problem {
            batch: groups,
            m: count(m, groups),
            n,
            k,
            element_bytes: bytes,
            unit,
        };
        let takes = rows.into_iter().all(|row| takes_rows(row, bytes));
        let copied = unit == Unit::Half || problem.pays_for_copies();
        Some(Self {
            problem,
            blocks,
            grouped,
            wgmma: takes || grouped || copied,
            k_first: KFirst {
                a: trans_a,
                b: !trans_b,
            },
        })
    }
}

/// `extent / by`, rounded up.
pub(super) const fn count(extent: i64, by: i64) -> i64 {
    let by = if by < 1 { 1 } else { by };
    extent / by + (extent % by != 0) as i64
}

/// Whether a tensor map takes rows of this many elements.
#[must_use]
pub const fn takes_rows(elements: i64, bytes: i64) -> bool {
    elements.wrapping_mul(bytes) % ROW_ALIGNMENT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pays(problem: Problem) -> bool {
        problem.pays_for_copies()
    }

    fn problem(batch: i64, m: i64, n: i64, k: i64) -> Problem {
        Problem {
            batch,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        }
    }

    #[test]
    fn copies_pay_for_large_products() {
        assert!(pays(problem(1, 999, 1001, 1003)));
        assert!(!pays(problem(1, 64, 64, 255)) && pays(problem(1, 22, 803, 599)));
        // One row multiplies as much as a tile's 16.
        assert!(pays(problem(1, 1, 4001, 4003)));
        assert!(pays(problem(64, 100, 100, 101)));
        assert!(pays(problem(i64::MAX, i64::MAX, i64::MAX, 3)));
        // Reading B three times takes longer than reading it by elements.
        assert!(!pays(problem(1, 5, 29_569, 2693)) && pays(problem(1, 17, 29_569, 2693)));
    }
}
