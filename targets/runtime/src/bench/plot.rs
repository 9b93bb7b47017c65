//! A bar chart: its marks, and the marks as SVG.

use std::fmt::Write as _;

use super::document::{Document, RivalSide, Row};

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it measures.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// What is written behind it.
    pub note: String,
    /// A rival's, in grey.
    pub rival: bool,
}

/// The bars of a document: each row's speed relative to cuBLASLt, ours and then each rival's.
#[must_use]
pub fn of(document: &Document) -> Chart {
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
            rival: false,
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
    for rival in &document.rivals {
        if let Some(summary) = &rival.summary {
            let (name, mean, worst) = (&rival.name, summary.geomean, summary.worst);
            let _ = write!(title, "; to {name} {mean:.3}, worst {worst:.3}");
        }
    }
    let all = |row: &Row| {
        let rivals = row.rivals.iter().map(of_rival);
        std::iter::once(bar(row)).chain(rivals).collect::<Vec<_>>()
    };
    let rows: Vec<Bar> = document.rows.iter().flat_map(all).collect();
    bars(&title, &rows, 1.0)
}

fn of_rival(side: &RivalSide) -> Bar {
    let speed = |f: &super::document::Fastest| format!("{:.0} TFLOP/s", f.tflops);
    let note = match (&side.fastest, &side.ratio) {
        (Some(f), Some(ratio)) => format!("{}, ours {:.3} of it", speed(f), ratio.median),
        (Some(f), None) => speed(f),
        (None, _) => "none".into(),
    };
    Bar {
        label: side.name.clone(),
        value: side.fastest.as_ref().and_then(|f| f.ratio).unwrap_or(0.0),
        note,
        rival: true,
    }
}

/// Something drawn, in pixels from the upper left.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A filled rectangle.
    Rect {
        /// Left, top, width, height.
        at: [f64; 4],
        /// The colour, 0xRRGGBB.
        fill: u32,
    },
    /// Text on one line.
    Text {
        /// The baseline's start, middle or end.
        at: [f64; 2],
        /// Which of them.
        anchor: Anchor,
        /// The font's size.
        size: f64,
        /// What is written.
        text: String,
    },
}

/// Which point of a text is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Width and height in pixels.
    pub size: [f64; 2],
    /// What is drawn, later marks over earlier ones.
    pub marks: Vec<Mark>,
}

/// Horizontal bars from zero, with a line at `mark`.
#[must_use]
pub fn bars(title: &str, bars: &[Bar], mark: f64) -> Chart {
    const LEFT: f64 = 420.0;
    const WIDTH: f64 = 520.0;
    const ROW: f64 = 22.0;
    const TOP: f64 = 56.0;
    let values = bars.iter().map(|b| b.value).filter(|v| v.is_finite());
    let most = values.fold(mark, f64::max) * 1.05;
    let scale = |v: f64| match v.is_finite() && most > 0.0 {
        true => v.max(0.0) / most * WIDTH,
        false => 0.0,
    };
    let text = |x, y, anchor, size, text: &str| Mark::Text {
        at: [x, y],
        anchor,
        size,
        text: text.to_owned(),
    };
    let mut marks = vec![text(12.0, 26.0, Anchor::Start, 16.0, title)];
    for (i, bar) in bars.iter().enumerate() {
        let (y, length) = (TOP + ROW * i as f64, scale(bar.value));
        let fill = match (bar.rival, bar.value >= mark) {
            (true, _) => 0xB0_B0_B0,
            (false, true) => 0x2A_7F_BA,
            (false, false) => 0xC8_74_3C,
        };
        let at = [LEFT, y, length, 16.0];
        marks.push(text(LEFT - 8.0, y + 12.5, Anchor::End, 12.0, &bar.label));
        marks.push(Mark::Rect { at, fill });
        // Beside the line as well, which would run through the text of a bar that just misses it.
        let right = LEFT + length.max(scale(mark)) + 6.0;
        marks.push(text(right, y + 12.5, Anchor::Start, 12.0, &bar.note));
    }
    let (x, bottom) = (LEFT + scale(mark), TOP + ROW * bars.len() as f64 + 4.0);
    // Dashes.
    let mut y = TOP - 4.0;
    while y < bottom {
        let at = [x - 0.5, y, 1.0, 4.0_f64.min(bottom - y)];
        marks.push(Mark::Rect { at, fill: 0 });
        y += 7.0;
    }
    marks.push(text(
        x,
        TOP - 8.0,
        Anchor::Middle,
        12.0,
        &format!("{mark:.2}"),
    ));
    Chart {
        size: [1180.0, bottom + 16.0],
        marks,
    }
}

impl Chart {
    /// The drawing as SVG. Text is escaped.
    #[must_use]
    pub fn svg(&self) -> String {
        let [width, height] = self.size;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for mark in &self.marks {
            let _ = match mark {
                Mark::Rect {
                    at: [x, y, w, h],
                    fill,
                } => writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h}\" fill=\"#{fill:06x}\"/>"
                ),
                Mark::Text {
                    at: [x, y],
                    anchor,
                    size,
                    text,
                } => {
                    let anchor = match anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    writeln!(
                        svg,
                        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{}</text>",
                        escape(text)
                    )
                }
            };
        }
        svg.push_str("</svg>\n");
        svg
    }
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
            rival: false,
        };
        let svg = bars(
            "a < b",
            &[
                bar("one", 1.0),
                bar("half & more", 0.5),
                bar("none", f64::NAN),
            ],
            1.0,
        )
        .svg();
        assert!(svg.contains("a &lt; b") && svg.contains("half &amp; more"));
        assert_eq!(svg.matches("height=\"16\"").count(), 3);
        let width = |w: f64| svg.contains(&format!("width=\"{w:.1}\""));
        assert!(
            width(520.0 / 1.05) && width(260.0 / 1.05) && width(0.0),
            "{svg}"
        );
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn rivals_have_bars_of_their_own() {
        use crate::bench::document::Verdict;
        use crate::bench::document::tests::{document, rival, row};
        let mut both = row(1.05, Verdict::Right);
        both.rivals = vec![rival(1.12, Verdict::Right)];
        let svg = of(&document(vec![both])).svg();
        assert!(svg.contains("mean 1.050, worst 1.050; to triton 1.120, worst 1.120"));
        assert!(svg.contains("650 TFLOP/s, ours 1.120 of it"), "{svg}");
        let grey = format!(
            "width=\"{:.1}\" height=\"16\" fill=\"#b0b0b0\"",
            0.9 / 1.05 * 520.0 / 1.05
        );
        assert!(svg.contains(&grey), "{grey}: {svg}");
    }
}
