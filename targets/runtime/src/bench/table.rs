//! What was measured as a table.

use super::document::{Document, Ratio, RivalSide, Row, Tried, Verdict};
use super::stats::Summary;

/// The head of the table; each rival has two columns.
#[must_use]
pub fn header(rivals: &[String]) -> String {
    let rival = |name: &String| format!("{name:>10}   {:21}", format!("ratio to {name}"));
    let rivals: String = rivals.iter().map(rival).collect();
    format!(
        "{:24} {:>6}{:>8}{:>8}  {:12} {:2} {:>9} {:>9}   {:21} {rivals}{:>11}  {:>18}   {:>9}  plan",
        "label",
        "M",
        "N",
        "K",
        "type",
        "W",
        "ours",
        "cuBLASLt",
        "ratio (p10-p90)",
        "vs cuBLASLt",
        "vs f64 (cuBLASLt)",
        "right/all",
    )
}

/// A line of the table.
#[must_use]
pub fn line(row: &Row) -> String {
    let g = &row.gemm;
    let name = g.to_string();
    let kind: Vec<&str> = name.split(' ').skip(1).collect();
    let (kind, layout) = (kind.first().unwrap_or(&""), kind.get(1).unwrap_or(&""));
    let right = row
        .candidates
        .iter()
        .filter(|c| c.verdict == Verdict::Right);
    let counts = format!("{}/{}", right.count(), row.candidates.len());
    let error = row
        .cublaslt
        .as_ref()
        .map_or("-".into(), |c| format!("{:.1e}", c.norm_error));
    let (mut ratio, mut same, mut ours) = ("-".to_owned(), "-".into(), "-".into());
    let mut plan = String::new();
    if let (Some(o), Some(tried)) = (&row.ours, row.winner()) {
        if let (Some(median), Some(p10_p90)) = (o.ratio, o.ratio_p10_p90) {
            ratio = spread(&Ratio { median, p10_p90 });
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
        plan.clone_from(&o.plan);
    }
    let rivals: String = row.rivals.iter().map(rival).collect();
    for rival in &row.rivals {
        if let Some(fastest) = &rival.fastest {
            plan = format!("{plan}; {}: {}", rival.name, fastest.plan);
        }
    }
    let verdict = if row.passed() { "" } else { "  WRONG" };
    format!(
        "{:24} {:6}{:8}{:8}  {kind:12} {layout} {:>9} {:>9}   {ratio:21} {rivals}{same:>11}  {ours:>8} ({error:>7})   {counts:>9}  {plan}{verdict}",
        row.label,
        g.m,
        g.n,
        g.k,
        tflops(row.ours.as_ref().map(|o| o.tflops)),
        tflops(row.cublaslt.as_ref().map(|c| c.tflops)),
    )
}

fn tflops(value: Option<f64>) -> String {
    value.map_or("-".into(), |t| format!("{t:.1}"))
}

fn spread(ratio: &Ratio) -> String {
    let (low, high) = ratio.p10_p90;
    format!("{:.3} ({low:.3}-{high:.3})", ratio.median)
}

fn rival(side: &RivalSide) -> String {
    let speed = tflops(side.fastest.as_ref().map(|f| f.tflops));
    let ratio = side.ratio.as_ref().map_or("-".to_owned(), spread);
    format!("{speed:>10}   {ratio:21}")
}

/// The lines about candidates that are wrong or do not run, and about a missing cuBLASLt or rival.
pub fn notes(row: &Row) -> impl Iterator<Item = String> + '_ {
    let none = row
        .no_cublaslt
        .iter()
        .map(|why| format!("  no cuBLASLt: {why}"));
    let ours = row.candidates.iter().filter_map(|c| note("", c));
    let rivals = row.rivals.iter().flat_map(|side| {
        let name = format!("{}: ", side.name);
        let missing = match side.candidates.len() {
            0 => Some(format!("  {name}no package computes this product")),
            _ => None,
        };
        let notes = side.candidates.iter().filter_map(move |c| note(&name, c));
        missing.into_iter().chain(notes)
    });
    none.chain(ours).chain(rivals)
}

fn note(whose: &str, tried: &Tried) -> Option<String> {
    let what = match tried.verdict {
        Verdict::Right => return None,
        Verdict::Wrong => "WRONG",
        Verdict::Failed => "failed",
    };
    let problem = tried.problem.as_deref().unwrap_or_default();
    // A rival's elements are its author's business.
    let problem = match whose {
        "" => problem,
        _ => problem.lines().next().unwrap_or_default(),
    };
    Some(format!("  {whose}{what}: {}: {problem}", tried.package))
}

/// The last lines of the table.
#[must_use]
pub fn footer(document: &Document) -> Vec<String> {
    let ours = document.summary.iter().map(|s| summarised("ratios", s));
    let rivals = document.rivals.iter().map(|rival| {
        let what = format!("ratios to {}", rival.name);
        match &rival.summary {
            Some(summary) => summarised(&what, summary),
            None => format!("no {what}"),
        }
    });
    ours.chain(rivals).collect()
}

fn summarised(what: &str, summary: &Summary) -> String {
    let Summary {
        count,
        geomean,
        worst,
        best,
    } = summary;
    format!(
        "{count} shapes: geometric mean of {what} {geomean:.3}, worst {worst:.3}, best {best:.3}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::{document, rival, row, tried};

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
        let note = notes(&wrong).next().unwrap();
        assert!(note.contains("WRONG: a.axe: 3 elements"), "{note}");
        let footer = footer(&document(vec![good, row(1.0, Verdict::Right)]));
        assert_eq!(footer.len(), 1);
        assert!(footer[0].contains("mean of ratios 1.025, worst 1.000"));
    }

    #[test]
    fn rivals_have_columns() {
        let mut both = row(1.05, Verdict::Right);
        both.rivals = vec![rival(1.12, Verdict::Right)];
        let (head, text) = (header(&["triton".into()]), line(&both));
        let column = |part: &str| head.find(part).unwrap();
        assert_eq!(
            text.find("1.120 (1.110-1.130)"),
            Some(column("ratio to triton"))
        );
        assert_eq!(
            text.find("650.0").map(|at| at + 5),
            Some(column("   ratio to"))
        );
        assert_eq!(text.find("1.050 (1.040"), Some(column("ratio (p10")));
        assert!(text.ends_with("  {tile}; triton: {stages}"), "{text}");
        both.rivals[0]
            .candidates
            .push(tried("u.axe", Verdict::Wrong));
        let said: Vec<String> = notes(&both).collect();
        assert_eq!(said, ["  triton: WRONG: u.axe: 3 elements"]);
        both.rivals[0].candidates.clear();
        assert!(
            notes(&both)
                .next()
                .unwrap()
                .ends_with("computes this product")
        );
        let document = document(vec![both]);
        let last = footer(&document).pop().unwrap();
        assert!(last.contains("1 shapes: geometric mean of ratios to triton 1.120"));
    }
}
