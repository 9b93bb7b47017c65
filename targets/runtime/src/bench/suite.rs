//! Named sets of shapes.

use axe_package::DType;
use clap::ValueEnum;

use super::case::Case;
use super::problem::{Gemm, Scaling};
use super::weights::weights;

/// A named set of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// 8192 rows times the sixteen weights of eight language models
    Llm,
    /// 4096 rows times the same weights
    Llm4096,
    /// Square products of 1024 to 16384
    Square,
    /// 1, 16, 64, 256 and 1024 rows times the same weights
    Skinny,
    /// Sizes that no tile divides
    Ragged,
    /// 96 sizes spread evenly over the magnitudes of 1 to 8192 rows, 16 to 32768 columns and sums of 16 to 16384; a quarter
    /// of them no multiples of 8
    Spread,
    /// 200 sizes spread evenly over the magnitudes of 16 to 16384 in all three extents; half take W as stored (`nn`), a
    /// quarter are no multiples of 8
    Drawn,
}

/// Rows of the language models' activations.
const ROWS: u64 = 8192;

/// Sides of square products.
const SQUARES: [u64; 9] = [1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384];

/// Rows of decoding and of small batches.
const SKINNY_ROWS: [u64; 5] = [1, 16, 64, 256, 1024];

/// Sizes m, n, k that no tile divides. k and n stay multiples of 8, as tensor maps and cuBLASLt's
/// fast kernels want of 16-bit elements (16 bytes), but for the last.
const RAGGED: [(u64, u64, u64); 8] = [
    (1000, 5000, 8888),
    (8191, 4096, 4096),
    (8192, 4104, 4096),
    (8192, 4096, 4104),
    (4000, 11000, 3000),
    (127, 129 * 8, 4088),
    (3333, 7000, 1016),
    (999, 1001, 1003),
];

/// The least and the greatest of m, n and k, as powers of two.
type Magnitudes = [(f64, f64); 3];

/// How many sizes are spread, and between what.
const SPREAD: (u32, Magnitudes) = (96, [(0.0, 13.0), (4.0, 15.0), (4.0, 14.0)]);

/// How many sizes are drawn, and between what.
const DRAWN: (u32, Magnitudes) = (200, [(4.0, 14.0); 3]);

/// The root of `x^4 = x + 1`: multiples of its inverse powers fill a cube evenly (M. Roberts, "The Unreasonable Effectiveness
/// of Quasirandom Sequences", 2018).
const STEP: f64 = 1.220_744_084_605_759_5;

/// The sizes m, n, k of a number, in multiples of `multiple` but for every fourth.
fn spread(magnitudes: Magnitudes, number: u32, multiple: u64) -> [u64; 3] {
    let mut power = 1.0;
    magnitudes.map(|(least, greatest)| {
        power /= STEP;
        let place = (0.5 + f64::from(number) * power).fract();
        let extent = (least + place * (greatest - least)).exp2().round() as u64;
        match number % 4 == 3 || extent < multiple {
            true => extent,
            false => extent / multiple * multiple,
        }
    })
}

impl Suite {
    /// The shapes with one element type; `W` is stored transposed but for half of those drawn.
    #[must_use]
    pub fn cases(self, dtype: DType, scaling: Scaling) -> Vec<Case> {
        let case = |label: String, m, n, k| Case {
            label,
            candidates: Vec::new(),
            rivals: Vec::new(),
            gemm: Gemm {
                m,
                n,
                k,
                dtype,
                transposed: true,
                scaling,
            },
        };
        let spread_over = |(count, magnitudes): (u32, Magnitudes)| {
            (0..count)
                .filter(move |number| dtype.bytes() > 1 || number % 4 != 3)
                .map(move |number| {
                    let multiple = if dtype.bytes() > 1 { 8 } else { 16 };
                    (number, spread(magnitudes, number, multiple))
                })
        };
        let models = |rows: &[u64]| {
            let of = |m: u64| {
                weights()
                    .into_iter()
                    .map(move |w| case(w.label, m, w.n, w.k))
            };
            rows.iter().flat_map(|m| of(*m)).collect()
        };
        match self {
            Suite::Llm => models(&[ROWS]),
            Suite::Llm4096 => models(&[4096]),
            Suite::Skinny => models(&SKINNY_ROWS),
            Suite::Square => SQUARES
                .iter()
                .map(|s| case(format!("square {s}"), *s, *s, *s))
                .collect(),
            Suite::Ragged => RAGGED
                .iter()
                // 8-bit products need multiples of 16 (cuBLAS, "cublasLtMatmul", FP8 kernels).
                .filter(|(_, n, k)| dtype.bytes() > 1 || (n % 16 == 0 && k % 16 == 0))
                .map(|(m, n, k)| case("ragged".into(), *m, *n, *k))
                .collect(),
            Suite::Spread => spread_over(SPREAD)
                .map(|(_, [m, n, k])| case("spread".into(), m, n, k))
                .collect(),
            Suite::Drawn => spread_over(DRAWN)
                .map(|(number, [m, n, k])| {
                    let mut case = case("drawn".into(), m, n, k);
                    case.gemm.transposed = dtype.bytes() == 1 || number / 4 % 2 == 0;
                    case
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_their_shapes() {
        let count = |suite: Suite| suite.cases(DType::F16, Scaling::None).len();
        assert_eq!((count(Suite::Llm), count(Suite::Skinny)), (16, 80));
        assert_eq!((count(Suite::Square), count(Suite::Ragged)), (9, 8));
        let spread = Suite::Spread.cases(DType::F16, Scaling::None);
        let odd = spread.iter().filter(|c| c.gemm.k % 8 != 0).count();
        assert!(spread.len() == 96 && (16..=24).contains(&odd), "{odd}");
        let extents = |of: fn(&Gemm) -> u64| {
            let all = spread.iter().map(|c| of(&c.gemm));
            (all.clone().min().unwrap(), all.max().unwrap())
        };
        assert!(matches!(extents(|g| g.m), (1..=2, 7000..=8192)));
        assert!(matches!(extents(|g| g.n), (16..=24, 28_000..=32_768)));
        assert!(matches!(extents(|g| g.k), (16..=24, 14_000..=16_384)));
        let drawn = Suite::Drawn.cases(DType::F16, Scaling::None);
        let all = drawn.iter().flat_map(|c| [c.gemm.m, c.gemm.n, c.gemm.k]);
        assert!(all.clone().min() >= Some(16) && all.max() <= Some(16384));
        assert_eq!(
            (
                drawn.len(),
                drawn.iter().filter(|c| c.gemm.transposed).count()
            ),
            (200, 100)
        );
        let llm = Suite::Llm.cases(DType::BF16, Scaling::None);
        assert!(llm.iter().all(|c| c.gemm.m == 8192 && c.gemm.transposed));
        let first = &llm[0];
        assert_eq!(first.label, "Qwen3-8B gate_up");
        assert_eq!(first.gemm.to_string(), "8192x24576x4096 bf16 nt");
        let fp8 = Suite::Ragged.cases(DType::F8E4M3, Scaling::Row);
        assert!(fp8.len() < 8 && fp8.iter().all(|c| c.gemm.k % 16 == 0));
    }
}
