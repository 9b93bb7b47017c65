//! A GEMM in f64 on the host: all elements of a small one, a sample of a large one.

use axe_package::{CompareError, DType, Report, Tensor, Tolerance, compare};

use super::operands::block_of;
use super::problem::{BLOCK, Gemm, Scaling};

/// Multiply-adds up to which every element is computed.
const WHOLE: u64 = 1 << 26;

/// Rows and columns of a larger GEMM whose crossings are computed.
const SAMPLED: u64 = 32;

/// The rows and columns of C whose crossings are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Rows of A and C.
    pub rows: Vec<u64>,
    /// Columns of C, rows of a transposed W.
    pub columns: Vec<u64>,
}

impl Sample {
    /// All of a small GEMM; 32 rows and 32 columns, spread evenly, of a large one.
    #[must_use]
    pub fn of(gemm: &Gemm) -> Self {
        let whole = gemm.m.saturating_mul(gemm.n).saturating_mul(gemm.k) <= WHOLE;
        let take = |extent: u64| {
            if whole || extent <= SAMPLED {
                (0..extent).collect()
            } else {
                spread(extent)
            }
        };
        Sample {
            rows: take(gemm.m),
            columns: take(gemm.n),
        }
    }
}

/// `SAMPLED` distinct numbers below `extent`, first and last among them.
fn spread(extent: u64) -> Vec<u64> {
    let last = SAMPLED - 1;
    (0..SAMPLED).map(|i| i * (extent - 1) / last).collect()
}

/// The sampled operands on the host, little-endian, each row of k elements dense.
pub struct HostOperands {
    /// The sampled rows of A.
    pub a: Vec<u8>,
    /// For each sampled column of C, the k elements of W that it is made with.
    pub w: Vec<u8>,
    /// The f32 scales of A, of the sampled rows alone where rows have their own, and those of W, of
    /// the sampled columns alone where columns have their own; empty if there are none.
    pub scales: (Vec<u8>, Vec<u8>),
}

/// Gathers elements of `size` bytes.
#[must_use]
pub fn gather(bytes: &[u8], elements: impl IntoIterator<Item = u64>, size: usize) -> Vec<u8> {
    elements
        .into_iter()
        .flat_map(|e| bytes_at(bytes, e, size).iter().copied())
        .collect()
}

/// Compares the sampled elements of C with f64 products. `c` is the sampled rows of C, dense. The
/// report's indices count sampled rows and columns.
///
/// # Errors
/// A C that is too short.
pub fn check(
    gemm: &Gemm,
    sample: &Sample,
    operands: &HostOperands,
    c: &[u8],
) -> Result<Report, CompareError> {
    let want = products(gemm, sample, operands);
    let elements = (0..sample.rows.len() as u64)
        .flat_map(|r| sample.columns.iter().map(move |c| r * gemm.n + c));
    let got = gather(c, elements, gemm.out().bytes());
    let shape = vec![sample.rows.len() as u64, sample.columns.len() as u64];
    let mismatch = |_| CompareError::Shape {
        want: shape.clone(),
        got: vec![c.len() as u64],
    };
    let got = Tensor::new(gemm.out(), shape.clone(), got).map_err(mismatch)?;
    let want = Tensor::from_f64(DType::F64, shape.clone(), want).map_err(mismatch)?;
    compare(&got, &want, Tolerance::for_dtype(gemm.out()))
}

/// The sampled elements of C in f64, row by row.
fn products(gemm: &Gemm, sample: &Sample, operands: &HostOperands) -> Vec<f64> {
    let (a, w) = (
        to_f64(gemm.dtype, &operands.a),
        to_f64(gemm.dtype, &operands.w),
    );
    let of_a = to_f64(DType::F32, &operands.scales.0);
    let of_w = to_f64(DType::F32, &operands.scales.1);
    let at = |scales: &[f64], i: usize| scales.get(i).copied().unwrap_or(f64::NAN);
    let k = usize::try_from(gemm.k).unwrap_or(1).max(1);
    // Without block scales the whole sum is one block.
    let block = match gemm.scaling {
        Scaling::Block => BLOCK as usize,
        _ => k,
    };
    let blocks = k.div_ceil(block);
    let mut want = Vec::new();
    for (i, row) in a.chunks_exact(k).enumerate() {
        for (j, column) in w.chunks_exact(k).enumerate() {
            let scale = |b: usize| match gemm.scaling {
                Scaling::None => 1.0,
                Scaling::Tensor => at(&of_a, 0) * at(&of_w, 0),
                Scaling::Row => at(&of_a, i) * at(&of_w, j),
                Scaling::Block => {
                    let column = sample.columns.get(j).copied().unwrap_or(0);
                    let of_block = block_of(column, b as u64, blocks as u64);
                    at(&of_a, i * blocks + b) * at(&of_w, of_block as usize)
                }
            };
            let sums = row.chunks(block).zip(column.chunks(block));
            let sum = sums.enumerate().map(|(b, (row, column))| {
                row.iter().zip(column).map(|(a, w)| a * w).sum::<f64>() * scale(b)
            });
            want.push(sum.sum());
        }
    }
    want
}

fn to_f64(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    bytes
        .chunks_exact(dtype.bytes())
        .map(|e| dtype.to_f64(e).unwrap_or(f64::NAN))
        .collect()
}

fn bytes_at(bytes: &[u8], element: u64, size: usize) -> &[u8] {
    let start = element as usize * size;
    bytes.get(start..start + size).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
        let mut out = Vec::new();
        values.iter().for_each(|v| dtype.push_f64(*v, &mut out));
        out
    }

    #[test]
    fn products_and_scales() {
        // [[1, 2, 3], [4, 5, 6]] times the columns (1, 0, -1) and (2, 1, 0).
        let (a, w) = (
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            [1.0, 0.0, -1.0, 2.0, 1.0, 0.0],
        );
        let gemm = Gemm {
            m: 2,
            n: 2,
            k: 3,
            dtype: DType::F16,
            transposed: true,
            scaling: Scaling::None,
        };
        let sample = Sample::of(&gemm);
        let none = (vec![], vec![]);
        let host = HostOperands {
            a: bytes(DType::F16, &a),
            w: bytes(DType::F16, &w),
            scales: none,
        };
        let report = |c: &[f64]| check(&gemm, &sample, &host, &bytes(DType::F16, c)).unwrap();
        assert!(report(&[-2.0, 4.0, -2.0, 13.0]).passed());
        assert_eq!(report(&[-2.0, 4.0, -2.0, 12.0]).mismatches, 1);
        assert!(check(&gemm, &sample, &host, &[0; 6]).is_err());
        let gemm = Gemm {
            m: 1,
            n: 2,
            k: 1,
            dtype: DType::F8E4M3,
            transposed: true,
            scaling: Scaling::Row,
        };
        let scales = (bytes(DType::F32, &[2.0]), bytes(DType::F32, &[0.5, 3.0]));
        let host = HostOperands {
            a: bytes(gemm.dtype, &[3.0]),
            w: bytes(gemm.dtype, &[1.0, 2.0]),
            scales,
        };
        let c = bytes(DType::BF16, &[3.0, 36.0]);
        assert!(
            check(&gemm, &Sample::of(&gemm), &host, &c)
                .unwrap()
                .passed()
        );
    }

    #[test]
    fn blocks_are_scaled_one_by_one() {
        let (m, n, k) = (2, 200, 200);
        let gemm = Gemm {
            m,
            n,
            k,
            dtype: DType::F8E4M3,
            transposed: true,
            scaling: Scaling::Block,
        };
        let sample = Sample {
            rows: vec![1],
            columns: vec![3, 150],
        };
        let ones = |count: u64| bytes(DType::F8E4M3, &vec![1.0; count as usize]);
        let host = HostOperands {
            a: ones(k),
            w: ones(2 * k),
            // Row 1's two blocks; W's blocks by columns, then k.
            scales: (
                bytes(DType::F32, &[1.0, 10.0]),
                bytes(DType::F32, &[1.0, 2.0, 3.0, 4.0]),
            ),
        };
        // Blocks of 128 and of 72 along k.
        let want = [128.0 + 72.0 * 20.0, 128.0 * 3.0 + 72.0 * 40.0];
        assert_eq!(products(&gemm, &sample, &host), want);
    }

    #[test]
    fn a_large_gemm_is_sampled() {
        let gemm = Gemm {
            m: 1000,
            n: 3,
            k: 4096,
            dtype: DType::F16,
            transposed: true,
            scaling: Scaling::None,
        };
        assert_eq!(Sample::of(&gemm).rows.len(), 1000);
        let gemm = Gemm {
            m: 8192,
            n: 24577,
            k: 4096,
            ..gemm
        };
        let sample = Sample::of(&gemm);
        assert_eq!((sample.rows.len(), sample.columns.len()), (32, 32));
        assert_eq!((sample.rows[0], sample.rows[31]), (0, 8191));
        assert_eq!(sample.columns[31], 24576);
        assert!(sample.columns.windows(2).all(|p| p[0] < p[1]));
    }
}
