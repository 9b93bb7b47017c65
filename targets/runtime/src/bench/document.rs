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
    pub ours: Option<Ours>,
    /// All candidates.
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

/// Our side of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Ours {
    /// The package.
    pub package: String,
    /// Its plan.
    pub plan: String,
    /// Times of one run.
    pub times: Times,
    /// TFLOP/s at the median.
    pub tflops: f64,
    /// The median over pairs of cuBLASLt's time over ours: above 1 is faster than cuBLASLt.
    pub ratio: Option<f64>,
    /// The tenth and ninetieth percentile of the pairs' ratios.
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
    /// The median of its samples before the pairs, in microseconds.
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
    /// True unless a candidate's result is wrong, or there are candidates and none runs.
    #[must_use]
    pub fn passed(&self) -> bool {
        let wrong = self.candidates.iter().any(|c| c.verdict == Verdict::Wrong);
        !wrong && (self.candidates.is_empty() || self.ours.is_some())
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
    /// The rows.
    pub rows: Vec<Row>,
    /// Cases that could not be measured.
    pub failures: Vec<String>,
}

/// How it is measured, in words.
pub const METHOD: &str = "standard normal operands; sets of operands that together exceed twice the L2 cache, in rotation; \
samples of at least 2 ms, short launches replayed from a graph; cuBLASLt's fastest proposal and our fastest candidate take turns; \
the median of the pairs' ratios counts; clocks and power limit as they are";

impl Document {
    /// Sets the summary from the rows.
    pub fn summarise(&mut self) {
        let ratios = self.rows.iter().filter_map(|r| r.ours.as_ref()?.ratio);
        self.summary = summary(&ratios.collect::<Vec<_>>());
    }

    /// True if nothing failed and nothing is wrong.
    #[must_use]
    pub fn good(&self) -> bool {
        self.failures.is_empty() && self.rows.iter().all(Row::passed)
    }
}

/// The head of the table.
pub const HEADER: &str = "label                        M       N       K  type         W      ours  cuBLASLt   ratio (p10-p90)     vs cuBLASLt    vs f64 (cuBLASLt)   right/all  plan";

/// A line of the table.
#[must_use]
pub fn line(row: &Row) -> String {
    let g = &row.gemm;
    let name = g.to_string();
    let kind: Vec<&str> = name.split(' ').skip(1).collect();
    let (kind, layout) = (kind.first().unwrap_or(&""), kind.get(1).unwrap_or(&""));
    let tflops = |t: Option<f64>| t.map_or("-".into(), |t| format!("{t:.1}"));
    let right = row
        .candidates
        .iter()
        .filter(|c| c.verdict == Verdict::Right);
    let counts = format!("{}/{}", right.count(), row.candidates.len());
    let error = row
        .cublaslt
        .as_ref()
        .map_or("-".into(), |c| format!("{:.1e}", c.norm_error));
    let (mut ratio, mut same, mut ours, mut plan) = ("-".to_owned(), "-".into(), "-".into(), "");
    if let (Some(o), Some(tried)) = (&row.ours, row.winner()) {
        if let (Some(r), Some((low, high))) = (o.ratio, o.ratio_p10_p90) {
            ratio = format!("{r:.3} ({low:.3}-{high:.3})");
        }
        same = tried
            .against_cublaslt
            .as_ref()
            .map_or("-".into(), |r| match r.identical {
                true => "identical".to_owned(),
                false => format!("{:.1e}", r.norm_rel),
            });
        ours = tried
            .against_f64
            .as_ref()
            .map_or("-".into(), |r| format!("{:.1e}", r.norm_rel));
        plan = &o.plan;
    }
    let verdict = if row.passed() { "" } else { "  WRONG" };
    format!(
        "{:24} {:6}{:8}{:8}  {kind:12} {layout} {:>9} {:>9}   {ratio:21} {same:>9}  {ours:>8} ({error:>7})   {counts:>9}  {plan}{verdict}",
        row.label,
        g.m,
        g.n,
        g.k,
        tflops(row.ours.as_ref().map(|o| o.tflops)),
        tflops(row.cublaslt.as_ref().map(|c| c.tflops)),
    )
}

/// The lines about candidates that are wrong or do not run, and about a missing cuBLASLt.
pub fn notes(row: &Row) -> impl Iterator<Item = String> + '_ {
    let none = row
        .no_cublaslt
        .iter()
        .map(|why| format!("  no cuBLASLt: {why}"));
    none.chain(row.candidates.iter().filter_map(|c| {
        let what = match c.verdict {
            Verdict::Right => return None,
            Verdict::Wrong => "WRONG",
            Verdict::Failed => "failed",
        };
        let problem = c.problem.as_deref().unwrap_or_default();
        Some(format!("  {what}: {}: {problem}", c.package))
    }))
}

/// The last line of the table.
#[must_use]
pub fn footer(summary: &Summary) -> String {
    let Summary {
        count,
        geomean,
        worst,
        best,
    } = summary;
    format!(
        "{count} shapes: geometric mean of ratios {geomean:.3}, worst {worst:.3}, best {best:.3}"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::problem::Scaling;
    use axe_package::{DType, Tolerance};

    /// A row with one candidate of that verdict.
    pub(crate) fn row(ratio: f64, verdict: Verdict) -> Row {
        let times = Times::of(vec![100.0]).unwrap();
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
            ours: right.then(|| Ours {
                package: "a.axe".into(),
                plan: "{tile}".into(),
                times,
                tflops: 700.0 * ratio,
                ratio: Some(ratio),
                ratio_p10_p90: Some((ratio - 0.01, ratio + 0.01)),
            }),
            candidates: vec![Tried {
                package: "a.axe".into(),
                plan: "{tile}".into(),
                chip: "sm_90a".into(),
                verdict,
                time_us: right.then_some(99.0),
                problem: (!right).then(|| "3 elements".into()),
                against_cublaslt: Some(report.clone()),
                against_f64: Some(report),
            }],
            seconds: (0.5, 1.0),
        }
    }

    #[test]
    fn lines_tell_what_was_measured() {
        let good = row(1.05, Verdict::Right);
        let text = line(&good);
        for part in [
            "Qwen3-8B down",
            "735.0",
            "700.0",
            "1.050 (1.040-1.060)",
            "identical",
            "1/1",
            "{tile}",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(good.passed() && notes(&good).next().is_none());
        let wrong = row(1.05, Verdict::Wrong);
        assert!(!wrong.passed() && line(&wrong).ends_with("WRONG"));
        assert!(
            notes(&wrong)
                .next()
                .unwrap()
                .contains("WRONG: a.axe: 3 elements")
        );
    }

    #[test]
    fn documents_have_a_summary() {
        let device = crate::device::Properties {
            name: "GPU".into(),
            compute_capability: (9, 0),
            sm_count: 132,
            l2_bytes: 50 << 20,
            max_shared_bytes: 232_448,
            driver_cuda: 13_000,
        };
        let mut document = Document {
            device,
            cublaslt_version: Some(130_002),
            method: METHOD,
            precise: false,
            summary: None,
            rows: vec![row(1.0, Verdict::Right), row(1.21, Verdict::Right)],
            failures: vec![],
        };
        document.summarise();
        let summary = document.summary.unwrap();
        assert!((summary.geomean - 1.1).abs() < 1e-9 && document.good());
        assert!(footer(&summary).contains("mean of ratios 1.100, worst 1.000"));
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["rows"][1]["ours"]["plan"], "{tile}");
        assert_eq!(json["rows"][0]["gemm"]["dtype"], "f16");
        document.rows.push(row(1.0, Verdict::Failed));
        assert!(!document.good());
    }
}
