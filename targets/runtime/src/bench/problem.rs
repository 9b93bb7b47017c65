//! The matrix products that are measured.

use axe_package::{DType, Key, OperandOrder, TunedOp};
use serde::{Deserialize, Serialize};

/// Elements along k, and columns of W along n, that share a scale of block-scaled operands.
pub const BLOCK: u64 = 128;

/// How 8-bit operands are scaled; all scales are f32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// Not at all: 16-bit operands.
    #[default]
    #[value(skip)]
    None,
    /// One scale for A, one for W.
    Tensor,
    /// One for each row of A and each row of W \[n, k\], that is each column of C.
    #[value(help = "One for each row of A and each row of W, that is each column of C")]
    Row,
    /// One for each 1 x 128 of A \[m, k\] and each 128 x 128 of W \[n, k\]; sums of 128 products
    /// are scaled, then added in f32.
    #[value(help = "One for each 1 x 128 of A and each 128 x 128 of W")]
    Block,
}

/// A row-major GEMM: C\[m, n\] = A\[m, k\] * W.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gemm {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Columns of A.
    pub k: u64,
    /// The element type of A and W: f16, bf16 or f8e4m3.
    pub dtype: DType,
    /// W is \[n, k\] (C = A * W^T) rather than \[k, n\].
    pub transposed: bool,
    /// The scales of 8-bit operands.
    pub scaling: Scaling,
}

impl Gemm {
    /// The element type of C: that of A, bf16 for 8-bit operands.
    #[must_use]
    pub fn out(&self) -> DType {
        if self.dtype.bytes() == 1 {
            DType::BF16
        } else {
            self.dtype
        }
    }

    /// Floating-point operations.
    #[must_use]
    pub fn flop(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// Bytes of A, W and C together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes_of(self.m, self.k, self.dtype)
            + self.bytes_of(self.n, self.k, self.dtype)
            + self.bytes_of(self.m, self.n, self.out())
    }

    fn bytes_of(&self, rows: u64, columns: u64, dtype: DType) -> u64 {
        rows * columns * dtype.bytes() as u64
    }

    /// The shape of W.
    #[must_use]
    pub fn w_shape(&self) -> [u64; 2] {
        if self.transposed {
            [self.n, self.k]
        } else {
            [self.k, self.n]
        }
    }

    /// The shapes of A's and W's scales, row-major: \[\], \[m\] or \[m, k/128\], and \[\], \[n\]
    /// or \[n/128, k/128\], all rounded up.
    #[must_use]
    pub fn scale_shapes(&self) -> Option<(Vec<u64>, Vec<u64>)> {
        let (kb, nb) = (self.k.div_ceil(BLOCK), self.n.div_ceil(BLOCK));
        match self.scaling {
            Scaling::None => None,
            Scaling::Tensor => Some((vec![], vec![])),
            Scaling::Row => Some((vec![self.m], vec![self.n])),
            Scaling::Block => Some((vec![self.m, kb], vec![nb, kb])),
        }
    }

    /// `nt` or `nn`.
    #[must_use]
    pub fn layout(&self) -> &'static str {
        if self.transposed { "nt" } else { "nn" }
    }

    /// What the database of tuned plans finds it by.
    #[must_use]
    pub fn tuned_key(&self, chip: &str) -> Key {
        let op = match self.scaling {
            Scaling::None => TunedOp::Gemm,
            Scaling::Tensor => TunedOp::GemmTensorScaled,
            Scaling::Row => TunedOp::GemmRowScaled,
            Scaling::Block => TunedOp::GemmBlockScaled,
        };
        let layout = if self.transposed {
            OperandOrder::Nt
        } else {
            OperandOrder::Nn
        };
        Key {
            chip: chip.to_owned(),
            op,
            dtype: self.dtype,
            layout,
            m: self.m,
            n: self.n,
            k: self.k,
            groups: 1,
        }
    }
}

impl std::fmt::Display for Gemm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scaling = match self.scaling {
            Scaling::None => "",
            Scaling::Tensor => "-tensor",
            Scaling::Row => "-row",
            Scaling::Block => "-block",
        };
        let dtype = self.dtype.name().trim_start_matches("f8");
        let (m, n, k) = (self.m, self.n, self.k);
        write!(f, "{m}x{n}x{k} {dtype}{scaling} {}", self.layout())
    }
}

/// The addresses of a GEMM's operands on the device.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    /// A, row-major.
    pub a: u64,
    /// W, row-major.
    pub w: u64,
    /// C, row-major.
    pub c: u64,
    /// The scales of A and W as cuBLASLt takes them, if scaled (`operands` has the layouts).
    pub scales: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_types_and_names() {
        let gemm = Gemm {
            m: 100,
            n: 300,
            k: 520,
            dtype: DType::F8E4M3,
            transposed: true,
            scaling: Scaling::Block,
        };
        assert_eq!(gemm.scale_shapes(), Some((vec![100, 5], vec![3, 5])));
        assert_eq!((gemm.out(), gemm.w_shape()), (DType::BF16, [300, 520]));
        assert_eq!(gemm.bytes(), 100 * 520 + 300 * 520 + 2 * 100 * 300);
        assert_eq!(gemm.to_string(), "100x300x520 e4m3-block nt");
        assert_eq!(gemm.tuned_key("sm_90a").op, TunedOp::GemmBlockScaled);
        let half = Gemm {
            dtype: DType::F16,
            transposed: false,
            scaling: Scaling::None,
            ..gemm
        };
        assert_eq!(half.to_string(), "100x300x520 f16 nn");
        assert_eq!((half.scale_shapes(), half.w_shape()), (None, [520, 300]));
    }
}
