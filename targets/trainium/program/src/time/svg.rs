//! The timeline as a picture: one row an engine.

use super::report::{Timing, duration};
use crate::facts::chip::Engine;
use std::collections::BTreeMap;
use std::fmt::Write;

const LEFT: f64 = 90.0;
const WIDTH: f64 = 1100.0;
const ROW: f64 = 34.0;
const TOP: f64 = 48.0;
/// Fills by instruction, in the order in which they first appear.
const COLOURS: [&str; 8] = [
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f",
];

/// One bar of the picture, in pixels.
struct Bar {
    from: f64,
    to: f64,
    instruction: u32,
    start: f64,
    end: f64,
}

/// The timeline as SVG. Executions of one instruction that are closer than half a pixel are drawn as one.
#[must_use]
pub fn svg(timing: &Timing) -> String {
    let scale = WIDTH / timing.seconds.max(f64::MIN_POSITIVE);
    let colours = colours(timing);
    let height = TOP + ROW * Engine::ALL.len() as f64 + 66.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"'DejaVu Sans',Arial,sans-serif\" font-size=\"12\">\n",
        LEFT + WIDTH + 80.0
    );
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{} on {}: {}, tensor engine {:.1} % of its peak</text>",
        escape(&timing.name),
        timing.chip,
        duration(timing.seconds),
        100.0 * timing.tensor_utilisation
    );
    for (number, engine) in Engine::ALL.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let share = 100.0 * timing.busy[number] / timing.seconds.max(f64::MIN_POSITIVE);
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{:.0}\">{engine}</text><rect x=\"{LEFT}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{}\" fill=\"#f2f2f2\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{share:.1} %</text>",
            y + 18.0,
            ROW - 8.0,
            LEFT + WIDTH + 8.0,
            y + 18.0
        );
        for bar in bars(timing, *engine, scale) {
            let name = timing
                .instructions
                .get(bar.instruction as usize)
                .copied()
                .unwrap_or("");
            let colour = colours.get(name).copied().unwrap_or(COLOURS[0]);
            let _ = writeln!(
                out,
                "<rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{colour}\"><title>{name}: {} to {}</title></rect>",
                LEFT + bar.from,
                (bar.to - bar.from).max(0.3),
                ROW - 8.0,
                duration(bar.start),
                duration(bar.end)
            );
        }
    }
    axis(&mut out, timing);
    legend(&mut out, &colours);
    out.push_str("</svg>\n");
    out
}

fn colours(timing: &Timing) -> BTreeMap<&'static str, &'static str> {
    let mut colours = BTreeMap::new();
    for name in &timing.instructions {
        let next = COLOURS[colours.len() % COLOURS.len()];
        colours.entry(*name).or_insert(next);
    }
    colours
}

fn bars(timing: &Timing, engine: Engine, scale: f64) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let mut segments: Vec<_> = timing
        .segments
        .iter()
        .filter(|s| s.engine == engine)
        .collect();
    segments.sort_by(|a, b| a.start.total_cmp(&b.start));
    for segment in segments {
        let (from, to) = (segment.start * scale, segment.end * scale);
        match bars.last_mut() {
            Some(last) if last.instruction == segment.instruction && from - last.to < 0.5 => {
                last.to = last.to.max(to);
                last.end = last.end.max(segment.end);
            }
            _ => bars.push(Bar {
                from,
                to,
                instruction: segment.instruction,
                start: segment.start,
                end: segment.end,
            }),
        }
    }
    bars
}

fn axis(out: &mut String, timing: &Timing) {
    let y = TOP + ROW * Engine::ALL.len() as f64 + 6.0;
    for tick in 0..=10 {
        let x = LEFT + WIDTH * f64::from(tick) / 10.0;
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{y}\" stroke=\"#ccc\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            y + 14.0,
            duration(timing.seconds * f64::from(tick) / 10.0)
        );
    }
}

fn legend(out: &mut String, colours: &BTreeMap<&'static str, &'static str>) {
    let y = TOP + ROW * Engine::ALL.len() as f64 + 44.0;
    let mut x = LEFT;
    for (name, colour) in colours {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"11\" height=\"11\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{y:.0}\">{name}</text>",
            y - 10.0,
            x + 15.0
        );
        x += 24.0 + 7.5 * name.len() as f64;
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
