//! Findings as SARIF 2.1.0, which editors and code hosts show beside the source.

use crate::report::{Finding, Place, Severity};
use serde_json::{Value, json};

/// A location: the source line where it is known, else the line of the PTX file.
fn location(place: &Place, ptx: &str) -> Value {
    let source = place.user_line().and_then(split);
    let (file, line, column) = source.unwrap_or_else(|| (ptx.to_string(), place.line, 1));
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": line.max(1), "startColumn": column.max(1)},
        },
        "logicalLocations": [{"name": crate::names::short(&place.function), "kind": "function"}],
        "message": {"text": place.to_string()},
    })
}

/// `file:line:column`, with what may follow.
fn split(text: &str) -> Option<(String, u32, u32)> {
    let text = text.split(" (").next()?;
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.into(), line.parse().ok()?, column.parse().ok()?))
}

fn result(finding: &Finding, ptx: &str) -> Value {
    let related: Vec<Value> = (finding.other.iter())
        .map(|other| location(other, ptx))
        .collect();
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Note => "note",
    };
    json!({
        "ruleId": finding.kind,
        "level": level,
        "message": {"text": format!("{} ({})", finding.message, finding.advice)},
        "locations": [location(&finding.place, ptx)],
        "relatedLocations": related,
        "occurrenceCount": finding.count.max(1),
    })
}

/// A SARIF log of one run; `ptx` is the file that findings without a source line point into.
#[must_use]
pub fn sarif<'a>(findings: impl Iterator<Item = &'a Finding>, ptx: &str) -> Value {
    let all: Vec<&Finding> = findings.collect();
    let mut kinds: Vec<_> = all.iter().map(|f| f.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rules: Vec<Value> = (kinds.iter())
        .map(|kind| json!({"id": kind, "help": {"text": kind.advice()}}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "axe sim",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": all.iter().map(|f| result(f, ptx)).collect::<Vec<_>>(),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FindingKind;

    #[test]
    fn a_finding_points_at_the_line_that_a_person_wrote() {
        let place = Place {
            function: "_Z1kPi".into(),
            line: 12,
            instruction: "st.global.u32".into(),
            source: Some("lib/inner.h:3:5".into()),
            inlined_at: vec!["a.cu:40:9 (of helper)".into()],
            cta: [0; 3],
            thread: 1,
        };
        let mut finding = Finding::new(FindingKind::Race, place.clone(), "write".into());
        finding.other = Some(Place {
            source: None,
            inlined_at: vec![],
            ..place
        });
        let log = sarif([finding].iter(), "k.ptx");
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "race");
        let at = &result["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"], "a.cu");
        assert_eq!(at["region"]["startLine"], 40);
        let other = &result["relatedLocations"][0]["physicalLocation"];
        assert_eq!(other["artifactLocation"]["uri"], "k.ptx");
        assert_eq!(other["region"]["startLine"], 12);
    }
}
