//! What surrounds the cells of a grid: numbers, lines, and the names of outer owners.

use std::fmt::Write as _;

use super::super::grid::Grid;
use super::RULER;
use super::canvas::{Canvas, FAINT, Frame, INK, MONO};

/// Room for the names of the rows.
pub(super) fn ruler_width(grid: &Grid) -> f64 {
    let longest = (0..grid.rows).map(|row| grid.row_name(row).len()).max();
    (longest.unwrap_or(0) as f64 * 6.2 + 8.0).max(RULER)
}

fn tick_step(count: usize, side: f64) -> usize {
    [1, 2, 4, 8, 16, 32, 64, 128, 256]
        .into_iter()
        .find(|s| *s as f64 * side >= 22.0)
        .unwrap_or(512)
        .min(count.max(1))
}

/// The numbers of the columns, and the names of the rows.
pub(super) fn rulers(canvas: &mut Canvas, grid: &Grid, frame: &Frame) {
    canvas.put(format_args!(
        "<g font-family=\"{MONO}\" font-size=\"10\" fill=\"{FAINT}\">\n"
    ));
    for col in (0..grid.cols).step_by(tick_step(grid.cols, frame.side)) {
        let x = frame.middle_x(col);
        canvas.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{col}</text>",
            frame.top - 6.0
        ));
    }
    for row in (0..grid.rows).step_by(tick_step(grid.rows, frame.side.max(10.0))) {
        let y = frame.middle_y(row) + 3.5;
        let name = grid.row_name(row);
        canvas.put(format_args!(
            "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>",
            frame.left - 6.0
        ));
    }
    canvas.put(format_args!("</g>\n"));
}

/// Hairlines between cells where there is room, a firm line where an outer owner or an outer
/// dimension changes.
pub(super) fn borders(canvas: &mut Canvas, grid: &Grid, frame: &Frame) {
    if frame.side >= 7.0 {
        hairlines(canvas, grid, frame);
    }
    let Frame {
        left,
        top,
        width,
        height,
        ..
    } = frame;
    let path = firm_lines(grid, frame);
    canvas.put(format_args!(
        "<path d=\"{path}\" stroke=\"{INK}\" stroke-width=\"2.2\" fill=\"none\" stroke-linecap=\"square\"/>\n\
         <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"1.2\"/>\n"
    ));
}

fn hairlines(canvas: &mut Canvas, grid: &Grid, frame: &Frame) {
    let mut path = String::new();
    for col in 1..grid.cols {
        let (x, top, height) = (frame.x(col), frame.top, frame.height);
        let _ = write!(path, "M{x:.1} {top:.1}v{height:.1}");
    }
    for row in 1..grid.rows {
        let (left, y, width) = (frame.left, frame.y(row), frame.width);
        let _ = write!(path, "M{left:.1} {y:.1}h{width:.1}");
    }
    let opacity = if frame.side < 17.0 { 0.3 } else { 0.55 };
    canvas.put(format_args!(
        "<path d=\"{path}\" stroke=\"#ffffff\" stroke-opacity=\"{opacity}\" fill=\"none\"/>\n"
    ));
}

/// Between cells of different outer owners, and between blocks of rows.
fn firm_lines(grid: &Grid, frame: &Frame) -> String {
    let side = frame.side;
    let outer = |row: usize, col: usize| outer_key(grid, row, col);
    let block = match grid.shape[..] {
        [_, .., rows, _] => usize::try_from(rows).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut path = String::new();
    for row in 0..grid.rows {
        for col in 0..grid.cols {
            let (x, y) = (frame.x(col), frame.y(row));
            if col > 0 && outer(row, col) != outer(row, col - 1) {
                let _ = write!(path, "M{x:.1} {y:.1}v{side:.1}");
            }
            if row > 0 && (row % block == 0 || outer(row, col) != outer(row - 1, col)) {
                let _ = write!(path, "M{x:.1} {y:.1}h{side:.1}");
            }
        }
    }
    path
}

fn outer_key(grid: &Grid, row: usize, col: usize) -> Vec<i64> {
    let key = grid.key(row, col);
    key.get(..key.len().saturating_sub(1))
        .unwrap_or(&[])
        .to_vec()
}

/// Rows that one outer owner has.
struct Band {
    begin: usize,
    end: usize,
    name: String,
}

impl Band {
    /// Its height in pixels.
    fn height(&self, side: f64) -> f64 {
        (self.end - self.begin) as f64 * side
    }
}

/// Rows whose outer owner is one and the same are named at the right edge.
fn row_bands(grid: &Grid) -> Vec<Band> {
    let names = grid.key_names();
    if names.len() < 2 {
        return Vec::new();
    }
    let mut bands: Vec<Band> = Vec::new();
    for row in 0..grid.rows {
        let outer = outer_key(grid, row, 0);
        if (1..grid.cols).any(|col| outer_key(grid, row, col) != outer) {
            return Vec::new();
        }
        let words = outer.iter().zip(&names).map(|(v, n)| format!("{n} {v}"));
        let name = words.collect::<Vec<_>>().join(", ");
        match bands.last_mut() {
            Some(band) if band.name == name => band.end = row + 1,
            _ => bands.push(Band {
                begin: row,
                end: row + 1,
                name,
            }),
        }
    }
    bands
}

/// Room for the names at the right edge.
pub(super) fn bracket_width(grid: &Grid, side: f64) -> f64 {
    let width = |band: &Band| {
        let letters = band.name.len();
        if band.height(side) < letters as f64 * 7.0 {
            letters * 7 + 14
        } else {
            30
        }
    };
    row_bands(grid).iter().map(width).max().unwrap_or(0) as f64
}

pub(super) fn brackets(canvas: &mut Canvas, grid: &Grid, frame: &Frame) {
    for band in row_bands(grid) {
        bracket(canvas, frame, &band);
    }
}

fn bracket(canvas: &mut Canvas, frame: &Frame, band: &Band) {
    let (y, high) = (frame.y(band.begin), band.height(frame.side));
    let x = frame.left + frame.width + 7.0;
    canvas.put(format_args!(
        "<path d=\"M{x:.1} {:.1}h5v{:.1}h-5\" stroke=\"{FAINT}\" fill=\"none\"/>\n",
        y + 2.0,
        high - 4.0
    ));
    let letters = band.name.chars().count() as f64;
    if high < letters * 6.6 && high < 14.0 {
        return;
    }
    let (cx, cy) = (x + 18.0, y + high / 2.0);
    let upright = high < letters * 7.0;
    let turn = if upright {
        String::new()
    } else {
        format!(" transform=\"rotate(90 {cx:.1} {cy:.1})\" text-anchor=\"middle\"")
    };
    let at = if upright {
        (x + 9.0, cy + 4.0)
    } else {
        (cx, cy)
    };
    canvas.text(at, 11.0, INK, &turn, &band.name);
}
