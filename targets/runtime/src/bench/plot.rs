//! A bar chart as SVG.

use std::fmt::Write as _;

use super::document::{Document, Row};

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it measures.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// What is written behind it.
    pub note: String,
}

/// The bars of a document: each row's speed relative to cuBLASLt.
#[must_use]
pub fn of(document: &Document) -> String {
    let bar = |row: &Row| {
        let label = format!("{} {}", row.label, row.gemm);
        let theirs = row.cublaslt.as_ref().map_or(f64::NAN, |c| c.tflops);
        let (value, note) = match (&row.ours, row.ours.as_ref().and_then(|o| o.ratio)) {
            (Some(o), Some(ratio)) => {
                let note = format!("{ratio:.3} ({:.0} of {theirs:.0} TFLOP/s)", o.tflops);
                (ratio, note)
            }
            (Some(o), None) => (0.0, format!("{:.0} TFLOP/s, no cuBLASLt", o.tflops)),
            (None, _) => (0.0, format!("cuBLASLt alone, {theirs:.0} TFLOP/s")),
        };
        Bar {
            label: label.trim().to_owned(),
            value,
            note,
        }
    };
    let mut title = format!("Speed relative to cuBLASLt on {}", document.device.name);
    if let Some(summary) = &document.summary {
        let _ = write!(
            title,
            ": geometric mean {:.3}, worst {:.3}",
            summary.geomean, summary.worst
        );
    }
    let rows: Vec<Bar> = document.rows.iter().map(bar).collect();
    bars(&title, &rows, 1.0)
}

/// Horizontal bars from zero, with a line at `mark`. Text is escaped.
#[must_use]
pub fn bars(title: &str, bars: &[Bar], mark: f64) -> String {
    const LEFT: f64 = 360.0;
    const WIDTH: f64 = 520.0;
    const ROW: f64 = 22.0;
    const TOP: f64 = 56.0;
    let most = bars
        .iter()
        .map(|b| b.value)
        .filter(|v| v.is_finite())
        .fold(mark, f64::max)
        * 1.05;
    let scale = |v: f64| {
        if v.is_finite() && most > 0.0 {
            v.max(0.0) / most * WIDTH
        } else {
            0.0
        }
    };
    let height = TOP + ROW * bars.len() as f64 + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1120\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"26\" font-size=\"16\">{}</text>\n",
        escape(title)
    );
    for (i, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let fill = if bar.value >= mark {
            "#2a7fba"
        } else {
            "#c8743c"
        };
        let length = scale(bar.value);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"16\" fill=\"{fill}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            y + 12.5,
            escape(&bar.label),
            LEFT + length + 6.0,
            y + 12.5,
            escape(&bar.note)
        );
    }
    let x = LEFT + scale(mark);
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"black\" stroke-dasharray=\"4 3\"/>\n\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark:.2}</text>\n</svg>",
        TOP - 4.0,
        height - 16.0,
        TOP - 8.0
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_is_drawn_to_scale_and_escaped() {
        let bar = |label: &str, value| Bar {
            label: label.into(),
            value,
            note: format!("{value:.2}"),
        };
        let svg = bars(
            "a < b",
            &[
                bar("one", 1.0),
                bar("half & more", 0.5),
                bar("none", f64::NAN),
            ],
            1.0,
        );
        assert!(svg.contains("a &lt; b") && svg.contains("half &amp; more"));
        assert_eq!(svg.matches("height=\"16\"").count(), 3);
        let width = |w: f64| svg.contains(&format!("width=\"{w:.1}\""));
        assert!(
            width(520.0 / 1.05) && width(260.0 / 1.05) && width(0.0),
            "{svg}"
        );
        assert!(svg.ends_with("</svg>\n"));
    }
}
