//! The document that is drawn on, and where the cells of a grid lie on it.

use std::fmt::Write as _;

use super::super::grid::Grid;

pub(in crate::tools) const INK: &str = "#1f2933";
pub(in crate::tools) const FAINT: &str = "#7b8794";
const SANS: &str = "Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif";
pub(in crate::tools) const MONO: &str =
    "'JetBrains Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace";
/// Pixels around a picture.
pub(in crate::tools) const MARGIN: f64 = 24.0;

pub(in crate::tools) struct Canvas {
    body: String,
    pub(in crate::tools) width: f64,
    height: f64,
}

impl Canvas {
    pub(super) const fn new(width: f64, height: f64) -> Self {
        Self {
            body: String::new(),
            width,
            height,
        }
    }

    pub(in crate::tools) fn put(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(piece);
    }

    pub(in crate::tools) fn text(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        fill: &str,
        extra: &str,
        text: &str,
    ) {
        let text = escape(text);
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" fill=\"{fill}\"{extra}>{text}</text>\n"
        ));
    }

    pub(super) fn finish(self) -> String {
        let (w, h) = (self.width, self.height);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" \
             viewBox=\"0 0 {w:.0} {h:.0}\" font-family=\"{SANS}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            without_zeros(&self.body)
        )
    }
}

/// `12.0` says no more than `12`, ten thousand times.
fn without_zeros(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find(".0") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let tail = after.get(2..).unwrap_or("");
        let number = before.ends_with(|c: char| c.is_ascii_digit())
            && !tail.starts_with(|c: char| c.is_ascii_digit());
        if !number {
            out.push_str(".0");
        }
        rest = tail;
    }
    out + rest
}

pub(in crate::tools) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Where the cells of a grid lie; lengths are pixels.
pub(super) struct Frame {
    /// Side of a cell.
    pub(super) side: f64,
    /// Left edge of the first column.
    pub(super) left: f64,
    /// Upper edge of the first row.
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn new(grid: &Grid, side: f64, left: f64, top: f64) -> Self {
        Self {
            side,
            left,
            top,
            width: side * grid.cols as f64,
            height: side * grid.rows as f64,
        }
    }

    /// Left edge of a column.
    pub(super) fn x(&self, col: usize) -> f64 {
        self.left + col as f64 * self.side
    }

    /// Upper edge of a row.
    pub(super) fn y(&self, row: usize) -> f64 {
        self.top + row as f64 * self.side
    }

    /// Middle of a column.
    pub(super) fn middle_x(&self, col: usize) -> f64 {
        self.left + (col as f64 + 0.5) * self.side
    }

    /// Middle of a row.
    pub(super) fn middle_y(&self, row: usize) -> f64 {
        self.top + (row as f64 + 0.5) * self.side
    }
}
