//! Comparing a result with an expectation.
//!
//! # Tolerance policy
//!
//! Two bounds, both needed. With `u` the unit roundoff of the *result's* element type
//! (2^-11 for f16, 2^-8 for bf16, 2^-24 for f32, 2^-4 for e4m3, 2^-3 for e5m2):
//!
//! * **norm**: ‖got − want‖₂ ≤ `norm` · ‖want‖₂, with `norm` = 4u, at least 1e-5. Rounding the
//!   result once costs at most u; the rest is for operands that were rounded on the way and for
//!   another order of summation. It tells a wrong result from a rounded one whatever its size.
//! * **element**: |got − want| ≤ `element` · (|want| + rms(want)), with `element` = 16u, at least
//!   1e-4. The root mean square carries elements that cancel to almost nothing.
//!
//! f64 has norm 1e-12 and element 1e-10. Integers and booleans are equal or wrong. A NaN where
//! none is expected, or a number where a NaN is expected, is wrong; infinities must be equal.
//! An element that nothing wrote is wrong, whatever is expected of it. Who ran the kernel may know
//! which those are ([`compare_written`]); [`compare()`] takes a float that still has the poison
//! pattern for one, and an integer that has it and is wrong.
//!
//! Results of tf32 or 8-bit operands are held to the type that they are stored in: pass
//! [`Tolerance::new`] where the operands' own rounding dominates.

use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::dtype::DType;
use crate::tensor::Tensor;
use crate::written::{Unwritten, poisoned};

/// How many mismatches a report lists.
const LISTED: usize = 8;

/// How far a result may be from the expectation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// The bound of ‖got − want‖ / ‖want‖.
    pub norm: f64,
    /// The bound of |got − want| / (|want| + rms(want)).
    pub element: f64,
}

impl Tolerance {
    /// Both bounds by hand.
    #[must_use]
    pub const fn new(norm: f64, element: f64) -> Self {
        Tolerance { norm, element }
    }

    /// The policy's bounds for results of type `dtype`.
    #[must_use]
    pub fn for_dtype(dtype: DType) -> Self {
        match (dtype, dtype.unit_roundoff()) {
            (DType::F64, _) => Tolerance::new(1e-12, 1e-10),
            (_, Some(u)) => Tolerance::new((4.0 * u).max(1e-5), (16.0 * u).max(1e-4)),
            (_, None) => Tolerance::new(0.0, 0.0),
        }
    }
}

/// Tensors that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompareError {
    /// The shapes differ.
    #[error("expected shape {want:?}, got {got:?}")]
    Shape {
        /// The expectation's.
        want: Vec<u64>,
        /// The result's.
        got: Vec<u64>,
    },
}

/// An element that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Its coordinates.
    pub index: Vec<u64>,
    /// The result's value.
    pub got: f64,
    /// The expectation's value.
    pub want: f64,
    /// True if nothing wrote it.
    pub unwritten: bool,
}

/// How a result compares with the expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The bounds used.
    pub tolerance: Tolerance,
    /// The number of elements.
    pub elements: usize,
    /// The number of elements out of the element bound, NaN, infinite or unwritten ones included.
    pub mismatches: usize,
    /// The number of elements that nothing wrote.
    pub unwritten: usize,
    /// The number of NaNs where the expectation has a number.
    pub unexpected_nans: usize,
    /// The largest |got − want| over elements that are finite in both.
    pub max_abs: f64,
    /// The largest |got − want| / |want| over elements that are finite in both, want not 0.
    pub max_rel: f64,
    /// ‖got − want‖ / ‖want‖ over elements that are finite in both; ‖got‖ if want is all zeros.
    pub norm_rel: f64,
    /// True if no byte differs and every element was written.
    pub identical: bool,
    /// The first mismatches in row-major order.
    pub first: Vec<Mismatch>,
}

impl Report {
    /// True if both bounds hold everywhere.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches == 0 && self.norm_rel <= self.tolerance.norm
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.passed() { "ok" } else { "WRONG" };
        write!(
            f,
            "{verdict}: norm error {:.2e} (bound {:.1e}), max abs {:.3e}, max rel {:.3e}",
            self.norm_rel, self.tolerance.norm, self.max_abs, self.max_rel
        )?;
        if self.identical {
            write!(f, ", identical bytes")?;
        }
        if self.mismatches > 0 {
            write!(
                f,
                "\n  {} of {} elements wrong",
                self.mismatches, self.elements
            )?;
            write!(
                f,
                ", {} never written, {} unexpected NaNs",
                self.unwritten, self.unexpected_nans
            )?;
        }
        for m in &self.first {
            let note = if m.unwritten { " (never written)" } else { "" };
            write!(
                f,
                "\n  at {:?}: expected {}, got {}{note}",
                m.index, m.want, m.got
            )?;
        }
        Ok(())
    }
}

/// Compares `got` with `want`; their element types may differ (an f64 reference, say).
///
/// # Errors
/// The shapes differ.
pub fn compare(got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Result<Report, CompareError> {
    check(got, want, tolerance, None)
}

/// [`compare()`] of a result of which it is known what nothing wrote.
///
/// # Errors
/// The shapes differ.
pub fn compare_written(
    got: &Tensor,
    want: &Tensor,
    tolerance: Tolerance,
    unwritten: &Unwritten,
) -> Result<Report, CompareError> {
    check(got, want, tolerance, Some(unwritten))
}

fn check(
    got: &Tensor,
    want: &Tensor,
    tolerance: Tolerance,
    unwritten: Option<&Unwritten>,
) -> Result<Report, CompareError> {
    if got.shape() != want.shape() {
        return Err(CompareError::Shape {
            want: want.shape().to_vec(),
            got: got.shape().to_vec(),
        });
    }
    let identical = got.dtype() == want.dtype()
        && got.bytes() == want.bytes()
        && unwritten.is_none_or(|unwritten| unwritten.count() == 0);
    let sum = if identical {
        Partial::default()
    } else {
        differences(got, want, tolerance, unwritten)
    };
    let ratio = if sum.want_squares > 0.0 {
        sum.error_squares / sum.want_squares
    } else {
        sum.error_squares
    };
    let mismatch = |(i, got_value, want_value, unwritten)| Mismatch {
        index: got.coordinates(i),
        got: got_value,
        want: want_value,
        unwritten,
    };
    Ok(Report {
        tolerance,
        elements: got.len(),
        mismatches: sum.mismatches,
        unwritten: sum.unwritten,
        unexpected_nans: sum.unexpected_nans,
        max_abs: sum.max_abs,
        max_rel: sum.max_rel,
        norm_rel: ratio.sqrt(),
        identical,
        first: sum.first.into_iter().map(mismatch).collect(),
    })
}

/// What is found in two tensors of one shape.
fn differences(
    got: &Tensor,
    want: &Tensor,
    tolerance: Tolerance,
    unwritten: Option<&Unwritten>,
) -> Partial {
    let rms = root_mean_square(want);
    let bound = |want: f64| tolerance.element * (want.abs() + rms);
    // Chunks are compared in parallel and summed in order: the same numbers on any machine.
    let partials: Vec<Partial> = chunks(got)
        .zip(chunks(want))
        .enumerate()
        .map(|(i, (g, w))| {
            let known = unwritten.map(|known| move |at: usize| known.at(i * CHUNK + at));
            Partial::of((got.dtype(), g), (want.dtype(), w), &bound, known)
        })
        .collect();
    let mut sum = Partial::default();
    for (i, partial) in partials.into_iter().enumerate() {
        sum.add(partial, i * CHUNK);
    }
    sum
}

fn chunks(of: &Tensor) -> rayon::slice::Chunks<'_, u8> {
    of.bytes().par_chunks(CHUNK * of.dtype().bytes())
}

/// Elements compared by one thread at a time.
const CHUNK: usize = 1 << 16;

/// What is found in one chunk.
#[derive(Default)]
struct Partial {
    mismatches: usize,
    unwritten: usize,
    unexpected_nans: usize,
    max_abs: f64,
    max_rel: f64,
    error_squares: f64,
    want_squares: f64,
    /// Element, got, want, whether unwritten.
    first: Vec<(usize, f64, f64, bool)>,
}

impl Partial {
    /// Compares two lists of elements; `known` says, where it is there, whether nothing wrote one.
    fn of(
        (got_type, got): (DType, &[u8]),
        (want_type, want): (DType, &[u8]),
        bound: &impl Fn(f64) -> f64,
        known: Option<impl Fn(usize) -> bool>,
    ) -> Self {
        let mut partial = Partial::default();
        let pairs = got
            .chunks_exact(got_type.bytes())
            .zip(want.chunks_exact(want_type.bytes()));
        for (i, (g, w)) in pairs.enumerate() {
            let (gv, wv) = (value(got_type, g), value(want_type, w));
            // Hardware makes other NaNs than the poison (PTX ISA, "Floating point": 0x7fffffff
            // for f32), so a float with the poison pattern was not computed; an integer may be -1.
            let (unwritten, certain) = match &known {
                Some(known) => (known(i), true),
                None => (poisoned(g) && g != w, got_type.is_float()),
            };
            if partial.differs(gv, wv, bound) || (unwritten && certain) {
                partial.mismatches += 1;
                partial.unwritten += usize::from(unwritten);
                if partial.first.len() < LISTED {
                    partial.first.push((i, gv, wv, unwritten));
                }
            }
        }
        partial
    }

    /// Counts one pair of values and says whether it is out of bounds.
    fn differs(&mut self, got: f64, want: f64, bound: &impl Fn(f64) -> f64) -> bool {
        if !(got.is_finite() && want.is_finite()) {
            self.unexpected_nans += usize::from(got.is_nan() && !want.is_nan());
            return !(got == want || (got.is_nan() && want.is_nan()));
        }
        let error = (got - want).abs();
        self.max_abs = self.max_abs.max(error);
        if want != 0.0 {
            self.max_rel = self.max_rel.max(error / want.abs());
        }
        self.error_squares += error * error;
        self.want_squares += want * want;
        error > bound(want)
    }

    /// Adds the chunk that starts at element `from`.
    fn add(&mut self, other: Partial, from: usize) {
        self.mismatches += other.mismatches;
        self.unwritten += other.unwritten;
        self.unexpected_nans += other.unexpected_nans;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.max_rel = self.max_rel.max(other.max_rel);
        self.error_squares += other.error_squares;
        self.want_squares += other.want_squares;
        let room = LISTED - self.first.len();
        self.first.extend(
            other
                .first
                .into_iter()
                .take(room)
                .map(|(i, g, w, u)| (from + i, g, w, u)),
        );
    }
}

fn value(dtype: DType, element: &[u8]) -> f64 {
    dtype.to_f64(element).unwrap_or(f64::NAN)
}

fn root_mean_square(tensor: &Tensor) -> f64 {
    let dtype = tensor.dtype();
    let chunk = |bytes: &[u8]| {
        let values = bytes
            .chunks_exact(dtype.bytes())
            .map(|e| value(dtype, e))
            .filter(|v| v.is_finite());
        values.fold((0.0, 0usize), |(sum, n), v| (sum + v * v, n + 1))
    };
    let partials: Vec<(f64, usize)> = tensor
        .bytes()
        .par_chunks(CHUNK * dtype.bytes())
        .map(chunk)
        .collect();
    let (sum, n) = partials
        .into_iter()
        .fold((0.0, 0), |(s, n), (s2, n2)| (s + s2, n + n2));
    if n == 0 { 0.0 } else { (sum / n as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f16s(values: &[f64]) -> Tensor {
        Tensor::from_f64(
            DType::F16,
            vec![values.len() as u64],
            values.iter().copied(),
        )
        .unwrap()
    }

    fn run(got: &Tensor, want: &Tensor) -> Report {
        compare(got, want, Tolerance::for_dtype(got.dtype())).unwrap()
    }

    #[test]
    fn rounding_passes_and_a_wrong_element_does_not() {
        let want = Tensor::from_f64(DType::F64, vec![4], [1.0001, -2.0, 1e-7, 3.3]).unwrap();
        let report = run(&f16s(&[1.0001, -2.0, 1e-7, 3.3]), &want);
        assert!(report.passed() && !report.identical, "{report}");
        let report = run(&f16s(&[1.0, -2.0, 0.0, 3.5]), &want);
        assert!(!report.passed());
        assert_eq!(
            (report.mismatches, report.first[0].index.as_slice()),
            (1, &[3][..])
        );
        assert!(
            report.to_string().contains("at [3]: expected 3.3, got 3.5"),
            "{report}"
        );
    }

    #[test]
    fn many_small_errors_break_the_norm_bound_alone() {
        let want = f16s(&[1.0; 64]);
        let report = run(&f16s(&[1.004; 64]), &want);
        assert_eq!(report.mismatches, 0);
        assert!(!report.passed(), "{report}");
    }

    #[test]
    fn nans_infinities_and_poison() {
        let want = f16s(&[f64::NAN, f64::INFINITY, 1.0, 2.0]);
        assert!(run(&want.clone(), &want).passed());
        let never = Tensor::filled(DType::F16, vec![1], crate::POISON).unwrap();
        assert_eq!(run(&never, &f16s(&[f64::NAN])).unwritten, 1);
        let report = run(&f16s(&[1.0, f64::NEG_INFINITY, f64::NAN, 2.0]), &want);
        assert_eq!((report.mismatches, report.unexpected_nans), (3, 1));
        let poisoned = Tensor::filled(DType::F16, vec![4], crate::POISON).unwrap();
        let report = run(&poisoned, &f16s(&[1.0, 2.0, 3.0, 4.0]));
        assert_eq!((report.unwritten, report.mismatches), (4, 4));
        assert!(report.to_string().contains("never written"));
    }

    #[test]
    fn integers_are_exact_and_minus_one_may_be_meant() {
        let i32s = |v: [f64; 2]| Tensor::from_f64(DType::I32, vec![2], v).unwrap();
        assert!(run(&i32s([-1.0, 5.0]), &i32s([-1.0, 5.0])).passed());
        let report = run(&i32s([-1.0, 5.0]), &i32s([0.0, 6.0]));
        assert_eq!((report.mismatches, report.unwritten), (2, 1));
    }

    #[test]
    fn what_nothing_wrote_is_wrong_whatever_its_bytes_are() {
        let zeros = Tensor::filled(DType::I32, vec![3], 0).unwrap();
        let unwritten = Unwritten::new(vec![false, true, false]);
        let tolerance = Tolerance::for_dtype(DType::I32);
        let report = compare_written(&zeros, &zeros, tolerance, &unwritten).unwrap();
        assert!(!report.passed() && !report.identical, "{report}");
        assert_eq!((report.mismatches, report.unwritten), (1, 1));
        assert!(
            report
                .to_string()
                .contains("at [1]: expected 0, got 0 (never written)"),
            "{report}"
        );
        // A number that has the pattern and was written is a number.
        let ones = Tensor::filled(DType::I32, vec![3], crate::POISON).unwrap();
        let report = compare_written(&ones, &zeros, tolerance, &Unwritten::none(3)).unwrap();
        assert_eq!((report.mismatches, report.unwritten), (3, 0));
    }

    #[test]
    fn zeros_expected() {
        let zeros = f16s(&[0.0, 0.0]);
        assert!(run(&zeros, &zeros).passed());
        assert!(!run(&f16s(&[0.0, 1e-3]), &zeros).passed());
    }

    #[test]
    fn chunks_count_as_one() {
        let n = 3 * CHUNK as u64 + 17;
        let zeros = Tensor::from_f64(DType::F32, vec![n], (0..n).map(|i| (i % 7) as f64)).unwrap();
        let wrong = [5, CHUNK as u64 + 3, 3 * CHUNK as u64 + 16];
        let values = (0..n).map(|i| (i % 7) as f64 + if wrong.contains(&i) { 1.0 } else { 0.0 });
        let report = run(
            &Tensor::from_f64(DType::F32, vec![n], values).unwrap(),
            &zeros,
        );
        let at: Vec<u64> = report.first.iter().map(|m| m.index[0]).collect();
        assert_eq!(
            (report.mismatches, at.as_slice(), report.max_abs),
            (3, &wrong[..], 1.0)
        );
        let expected = (3.0 / zeros.iter_f64().map(|v| v * v).sum::<f64>()).sqrt();
        assert!((report.norm_rel / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shapes_must_agree() {
        let error =
            compare(&f16s(&[1.0]), &f16s(&[1.0, 2.0]), Tolerance::new(0.0, 0.0)).unwrap_err();
        assert_eq!(error.to_string(), "expected shape [2], got [1]");
    }
}
