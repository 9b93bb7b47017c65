//! What is measured, as a document and as a table.

use axe_package::Report;
use serde::Serialize;

use super::problem::Gemm;
use super::stats::{Summary, summary};
use crate::timing::Times;

/// What came out for one GEMM.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The GEMM.
    pub gemm: Gemm,
    /// Where the shape comes from.
    pub label: String,
    /// cuBLASLt's side; none if it does not have the product, or has it wrong.
    pub cublaslt: Option<Baseline>,
    /// Why there is no side of cuBLASLt.
    pub no_cublaslt: Option<String>,
    /// Our fastest right candidate, if there is one.
    pub ours: Option<Fastest>,
    /// The rivals' sides.
    pub rivals: Vec<RivalSide>,
    /// All candidates of ours.
    pub candidates: Vec<Tried>,
    /// Seconds spent on setting up and checking, and on timing.
    pub seconds: (f64, f64),
}

/// cuBLASLt's side of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Baseline {
    /// Times of one GEMM.
    pub times: Times,
    /// TFLOP/s at the median.
    pub tflops: f64,
    /// Which of its proposals was fastest, 0 being its first.
    pub algorithm: usize,
    /// The first proposal's median time over the fastest's: above 1, the heuristic was not best.
    pub first_over_best: Option<f64>,
    /// How many proposals ran.
    pub algorithms: usize,
    /// ‖C − f64‖ / ‖f64‖ of its result.
    pub norm_error: f64,
    /// The times' last third over their first: above 1, the chip slowed down meanwhile.
    pub drift: Option<f64>,
}

/// A rival's side of a row.
#[derive(Debug, Clone, Serialize)]
pub struct RivalSide {
    /// Whose.
    pub name: String,
    /// The fastest right candidate, if there is one.
    pub fastest: Option<Fastest>,
    /// The rival's time over ours: above 1 is faster than the rival.
    pub ratio: Option<Ratio>,
    /// All candidates; none where the rival does not have the product.
    pub candidates: Vec<Tried>,
}

/// The ratios of times that were taken in turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Their median.
    pub median: f64,
    /// Their tenth and ninetieth percentile.
    pub p10_p90: (f64, f64),
}

/// The fastest candidate of a side.
#[derive(Debug, Clone, Serialize)]
pub struct Fastest {
    /// The package.
    pub package: String,
    /// Its plan.
    pub plan: String,
    /// Times of one run.
    pub times: Times,
    /// TFLOP/s at the median.
    pub tflops: f64,
    /// The median over turns of cuBLASLt's time over its own: above 1 is faster than cuBLASLt.
    pub ratio: Option<f64>,
    /// The tenth and ninetieth percentile of these ratios.
    pub ratio_p10_p90: Option<(f64, f64)>,
}

/// A candidate.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// The package.
    pub package: String,
    /// Its plan.
    pub plan: String,
    /// Its chip.
    pub chip: String,
    /// What came of it.
    pub verdict: Verdict,
    /// The median of its samples before the turns, in microseconds.
    pub time_us: Option<f64>,
    /// Why it did not run, or what is wrong.
    pub problem: Option<String>,
    /// The result against cuBLASLt's, every element.
    pub against_cublaslt: Option<Report>,
    /// The result against f64: every element of a small GEMM, the crossings of 32 rows and 32
    /// columns of a large one.
    pub against_f64: Option<Report>,
}

/// What came of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Its result is right.
    Right,
    /// Its result is wrong; it was not timed.
    Wrong,
    /// It does not run here.
    Failed,
}

impl Row {
    /// True unless a candidate of ours is wrong, or a side has candidates and none runs and is right.
    #[must_use]
    pub fn passed(&self) -> bool {
        let wrong = self.candidates.iter().any(|c| c.verdict == Verdict::Wrong);
        let stands = |r: &RivalSide| r.candidates.is_empty() || r.fastest.is_some();
        !wrong
            && (self.candidates.is_empty() || self.ours.is_some())
            && self.rivals.iter().all(stands)
    }

    /// The candidate behind our side.
    #[must_use]
    pub fn winner(&self) -> Option<&Tried> {
        let ours = self.ours.as_ref()?;
        self.candidates.iter().find(|c| c.package == ours.package)
    }
}

/// A document with everything that was measured.
#[derive(Debug, Serialize)]
pub struct Document {
    /// The device.
    pub device: crate::device::Properties,
    /// cuBLASLt's version, for example 130002; none if it cannot be loaded.
    pub cublaslt_version: Option<usize>,
    /// How operands were made and measured.
    pub method: &'static str,
    /// cuBLASLt promoted sums of 8-bit products as it went.
    pub precise: bool,
    /// The ratios of all rows that have one.
    pub summary: Option<Summary>,
    /// The ratios to each rival.
    pub rivals: Vec<RivalSummary>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Cases that could not be measured.
    pub failures: Vec<String>,
}

/// What came of all rows of a rival.
#[derive(Debug, Serialize)]
pub struct RivalSummary {
    /// Whose.
    pub name: String,
    /// The ratios to it of all rows that have one, above 1 where the rival is slower.
    pub summary: Option<Summary>,
}

/// How it is measured, in words.
pub const METHOD: &str = "standard normal operands; sets of operands that together exceed twice the L2 cache, in rotation; \
samples of at least 2 ms, short launches replayed from a graph; cuBLASLt's fastest proposal, our fastest candidate and each rival's take turns; \
the median of the turns' ratios counts; clocks and power limit as they are";

impl Document {
    /// Sets the summaries from the rows.
    pub fn summarise(&mut self) {
        let ratios = self.rows.iter().filter_map(|r| r.ours.as_ref()?.ratio);
        self.summary = summary(&ratios.collect::<Vec<_>>());
        for rival in &mut self.rivals {
            let of = |row: &Row| {
                let side = row.rivals.iter().find(|r| r.name == rival.name)?;
                side.ratio.map(|r| r.median)
            };
            rival.summary = summary(&self.rows.iter().filter_map(of).collect::<Vec<_>>());
        }
    }

    /// True if nothing failed and nothing is wrong.
    #[must_use]
    pub fn good(&self) -> bool {
        self.failures.is_empty() && self.rows.iter().all(Row::passed)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::problem::Scaling;
    use axe_package::{DType, Tolerance};

    /// A candidate of that verdict.
    pub(crate) fn tried(package: &str, verdict: Verdict) -> Tried {
        let right = verdict == Verdict::Right;
        let report = Report {
            tolerance: Tolerance::for_dtype(DType::F16),
            elements: 1,
            mismatches: 0,
            unwritten: 0,
            unexpected_nans: 0,
            max_abs: 0.0,
            max_rel: 0.0,
            norm_rel: 1e-4,
            identical: true,
            first: vec![],
        };
        Tried {
            package: package.into(),
            plan: "{tile}".into(),
            chip: "sm_90a".into(),
            verdict,
            time_us: right.then_some(99.0),
            problem: (!right).then(|| "3 elements".into()),
            against_cublaslt: Some(report.clone()),
            against_f64: Some(report),
        }
    }

    /// A rival's side with one candidate of that verdict.
    pub(crate) fn rival(ratio: f64, verdict: Verdict) -> RivalSide {
        let right = verdict == Verdict::Right;
        RivalSide {
            name: "triton".into(),
            fastest: right.then(|| Fastest {
                package: "t.axe".into(),
                plan: "{stages}".into(),
                times: Times::of(vec![100.0 * ratio]).unwrap(),
                tflops: 650.0,
                ratio: Some(0.9),
                ratio_p10_p90: Some((0.89, 0.91)),
            }),
            ratio: right.then_some(Ratio {
                median: ratio,
                p10_p90: (ratio - 0.01, ratio + 0.01),
            }),
            candidates: vec![tried("t.axe", verdict)],
        }
    }

    /// A row with one candidate of that verdict.
    pub(crate) fn row(ratio: f64, verdict: Verdict) -> Row {
        let times = Times::of(vec![100.0]).unwrap();
        let right = verdict == Verdict::Right;
        Row {
            gemm: Gemm {
                m: 8192,
                n: 4096,
                k: 4096,
                dtype: DType::F16,
                transposed: true,
                scaling: Scaling::None,
            },
            label: "Qwen3-8B down".into(),
            cublaslt: Some(Baseline {
                times: times.clone(),
                tflops: 700.0,
                algorithm: 1,
                first_over_best: Some(1.01),
                algorithms: 8,
                norm_error: 1e-4,
                drift: None,
            }),
            no_cublaslt: None,
            ours: right.then(|| Fastest {
                package: "a.axe".into(),
                plan: "{tile}".into(),
                times,
                tflops: 700.0 * ratio,
                ratio: Some(ratio),
                ratio_p10_p90: Some((ratio - 0.01, ratio + 0.01)),
            }),
            rivals: vec![],
            candidates: vec![tried("a.axe", verdict)],
            seconds: (0.5, 1.0),
        }
    }

    /// A document of these rows.
    pub(crate) fn document(rows: Vec<Row>) -> Document {
        let device = crate::device::Properties {
            name: "GPU".into(),
            compute_capability: (9, 0),
            sm_count: 132,
            l2_bytes: 50 << 20,
            max_shared_bytes: 232_448,
            driver_cuda: 13_000,
        };
        let names = rows.iter().flat_map(|r| &r.rivals).map(|r| r.name.clone());
        let mut names: Vec<String> = names.collect();
        names.dedup();
        let rival = |name| RivalSummary {
            name,
            summary: None,
        };
        let mut document = Document {
            device,
            cublaslt_version: Some(130_002),
            method: METHOD,
            precise: false,
            summary: None,
            rivals: names.into_iter().map(rival).collect(),
            rows,
            failures: vec![],
        };
        document.summarise();
        document
    }

    #[test]
    fn documents_have_a_summary() {
        let mut document = document(vec![row(1.0, Verdict::Right), row(1.21, Verdict::Right)]);
        let summary = document.summary.unwrap();
        assert!((summary.geomean - 1.1).abs() < 1e-9 && document.good());
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["rows"][1]["ours"]["plan"], "{tile}");
        assert_eq!(json["rows"][0]["gemm"]["dtype"], "f16");
        document.rows.push(row(1.0, Verdict::Failed));
        assert!(!document.good());
    }

    #[test]
    fn rivals_have_a_summary_and_one_without_a_right_result_fails() {
        let with = |ratio| Row {
            rivals: vec![rival(ratio, Verdict::Right)],
            ..row(1.0, Verdict::Right)
        };
        let mut document = document(vec![with(1.0), with(1.21), row(1.0, Verdict::Right)]);
        let summary = document.rivals[0].summary.unwrap();
        assert!((summary.geomean - 1.1).abs() < 1e-9 && summary.count == 2);
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["rivals"][0]["name"], "triton");
        assert_eq!(json["rows"][1]["rivals"][0]["ratio"]["median"], 1.21);
        let mut also_wrong = with(1.0);
        let candidates = &mut also_wrong.rivals[0].candidates;
        candidates.push(tried("u.axe", Verdict::Wrong));
        document.rows.push(also_wrong);
        assert!(document.good());
        document.rows[0].rivals = vec![rival(1.0, Verdict::Wrong)];
        document.summarise();
        assert!(!document.good());
        assert_eq!(document.rivals[0].summary.unwrap().count, 2);
    }
}
