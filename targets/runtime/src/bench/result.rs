//! What a contest's outcome says of a GEMM.

use super::case::Case;
use super::contest::{LIBRARY, OURS, Outcome};
use super::document::{Baseline, Fastest, Ratio, RivalSide, Row, Tried};
use super::problem::Gemm;
use super::stats::drift;
use crate::timing::Times;

/// The row of a case without cuBLASLt; `tried` are the candidates of our side, then of each rival's.
pub(super) fn row(case: &Case, tried: Vec<Vec<Tried>>, outcome: &Outcome) -> Row {
    let mut tried = tried.into_iter();
    let candidates = tried.next().unwrap_or_default();
    let names = case.rivals.iter().map(|r| r.name.clone());
    let rivals = names.zip(tried).enumerate().map(|(i, (name, candidates))| {
        let side = OURS + 1 + i;
        RivalSide {
            name,
            fastest: fastest(&case.gemm, &candidates, outcome, side),
            ratio: ratio(outcome, side, OURS),
            candidates,
        }
    });
    Row {
        gemm: case.gemm,
        label: case.label.clone(),
        cublaslt: None,
        no_cublaslt: None,
        ours: fastest(&case.gemm, &candidates, outcome, OURS),
        rivals: rivals.collect(),
        candidates,
        seconds: (0.0, 0.0),
    }
}

/// cuBLASLt's side.
pub(super) fn baseline(gemm: &Gemm, norm_error: f64, outcome: &Outcome) -> Option<Baseline> {
    let algorithm = outcome.winner(LIBRARY)?;
    let all = &outcome.sides.get(LIBRARY)?.standings;
    let of = |i: usize| all.get(i)?.time();
    let (first, best) = (of(0), of(algorithm));
    let samples = outcome.samples(LIBRARY);
    let drift = drift(&samples);
    let times = Times::of(samples)?;
    Some(Baseline {
        tflops: tflops(gemm, times.median_us),
        times,
        algorithm,
        first_over_best: first.zip(best).map(|(first, best)| first / best),
        algorithms: all.iter().filter(|s| !s.failed).count(),
        norm_error,
        drift,
    })
}

fn fastest(gemm: &Gemm, tried: &[Tried], outcome: &Outcome, side: usize) -> Option<Fastest> {
    let entry = tried.get(outcome.winner(side)?)?;
    let times = Times::of(outcome.samples(side))?;
    let ratio = ratio(outcome, LIBRARY, side);
    Some(Fastest {
        package: entry.package.clone(),
        plan: entry.plan.clone(),
        tflops: tflops(gemm, times.median_us),
        times,
        ratio: ratio.map(|r| r.median),
        ratio_p10_p90: ratio.map(|r| r.p10_p90),
    })
}

fn ratio(outcome: &Outcome, over: usize, under: usize) -> Option<Ratio> {
    // A distribution is one whatever its unit.
    let of = Times::of(outcome.ratios(over, under))?;
    Some(Ratio {
        median: of.median_us,
        p10_p90: (of.p10_us, of.p90_us),
    })
}

/// TFLOP/s of a GEMM that takes `us` microseconds.
fn tflops(gemm: &Gemm, us: f64) -> f64 {
    gemm.flop() / us / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::Rival;
    use crate::bench::contest::{Limits, hold};
    use crate::bench::document::Verdict;
    use crate::bench::document::tests::tried;

    /// The row of cuBLASLt's, our and two rivals' contenders of fixed times.
    fn of(times: &[&[Option<f64>]]) -> Row {
        let mut case: Case = "8192,4096,4096,f16".parse().unwrap();
        let names = ["triton", "other"].into_iter().zip(times.iter().skip(2));
        case.rivals = names
            .map(|(name, _)| Rival {
                name: name.into(),
                candidates: vec![],
            })
            .collect();
        let package = |(i, time): (usize, &Option<f64>)| {
            let verdict = time.map_or(Verdict::Wrong, |_| Verdict::Right);
            tried(&format!("{i}.axe"), verdict)
        };
        let sides = times.iter().skip(1);
        let tried = sides.map(|s| s.iter().enumerate().map(package).collect());
        let limits = Limits {
            budget_us: 1e5,
            sample_us: 2000.0,
            turns: 11,
        };
        let counts: Vec<usize> = times.iter().map(|s| s.len()).collect();
        let time = |who: crate::bench::contest::Who, _| Ok::<_, ()>(times[who.side][who.number]);
        let outcome = hold(&counts, &limits, time).unwrap();
        let mut row = row(&case, tried.collect(), &outcome);
        row.cublaslt = baseline(&case.gemm, 1e-4, &outcome);
        row
    }

    #[test]
    fn each_rival_has_a_ratio() {
        let ours: &[_] = &[Some(100.0), Some(90.0)];
        let row = of(&[
            &[Some(99.0)],
            ours,
            &[None, Some(108.0), Some(120.0)],
            &[None],
        ]);
        let best = row.ours.as_ref().unwrap();
        assert_eq!((best.package.as_str(), best.ratio), ("1.axe", Some(1.1)));
        let [triton, other] = row.rivals.as_slice() else {
            panic!("{row:?}")
        };
        let fastest = triton.fastest.as_ref().unwrap();
        assert_eq!(
            (triton.name.as_str(), fastest.package.as_str()),
            ("triton", "1.axe")
        );
        assert_eq!(triton.ratio.map(|r| r.median), Some(1.2));
        assert_eq!(fastest.ratio, Some(99.0 / 108.0));
        assert!((fastest.tflops * 1.2 - best.tflops).abs() < 1e-9);
        assert!(other.fastest.is_none() && other.ratio.is_none());
        assert_eq!(row.cublaslt.unwrap().algorithms, 1);
    }

    #[test]
    fn a_rival_is_measured_without_cublaslt_and_without_ours() {
        let row = of(&[&[], &[Some(100.0)], &[Some(50.0)]]);
        assert_eq!(row.rivals[0].ratio.map(|r| r.median), Some(0.5));
        assert_eq!(
            (row.ours.unwrap().ratio, row.cublaslt.is_none()),
            (None, true)
        );
        let row = of(&[&[Some(100.0)], &[], &[Some(50.0)]]);
        let triton = &row.rivals[0];
        assert_eq!((triton.ratio.is_none(), row.ours.is_none()), (true, true));
        assert_eq!(triton.fastest.as_ref().unwrap().ratio, Some(2.0));
    }
}
