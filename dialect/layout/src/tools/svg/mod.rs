//! SVG pictures: a logical grid coloured by owner or bank, and shared memory by bank and row.

mod canvas;
mod cells;
mod edges;

pub(super) use canvas::{Canvas, FAINT, INK, MARGIN, MONO, escape};

use std::fmt::Write as _;

use super::grid::{Colouring, Grid};
use super::legend::Legend;
use super::paint::Paint;
use canvas::Frame;

/// Room for the numbers of the columns, in pixels.
const RULER: f64 = 34.0;
/// Pixels across that a title may widen a picture to.
const WIDEST_TITLE: f64 = 1400.0;

/// Side of a cell in pixels.
fn cell_side(grid: &Grid) -> f64 {
    let (mut first, second) = grid.label(grid.rows.saturating_sub(1), grid.cols.saturating_sub(1));
    if grid.cols.max(grid.rows) > 40 {
        first = grid.short_label(grid.rows.saturating_sub(1), grid.cols.saturating_sub(1));
    }
    let letters = first.chars().count().max(second.chars().count()).max(3) as f64;
    let needed = letters * 7.0 + 12.0;
    match grid.cols.max(grid.rows) {
        0..=20 => needed.max(44.0),
        21..=40 => needed.max(30.0),
        41..=72 => needed.clamp(18.0, 26.0),
        73..=160 => 14.0,
        161..=300 => 8.0,
        _ => 4.0,
    }
}

/// The grid as an SVG document.
#[must_use]
pub fn svg(grid: &Grid, caption: &str) -> String {
    let paint = Paint::new(grid);
    let left = MARGIN + edges::ruler_width(grid);
    let top = MARGIN + 44.0 + if caption.is_empty() { 0.0 } else { 18.0 };
    let frame = Frame::new(grid, cell_side(grid), left, top + RULER * 0.6);
    let legend = Legend::new(grid, &paint);
    let width = width(grid, &frame);
    let height = frame.top + frame.height + 34.0 + legend.height(width) + MARGIN + 4.0;
    let mut canvas = Canvas::new(width, height);
    heading(&mut canvas, grid, caption);
    cells::draw(&mut canvas, grid, &paint, &frame);
    edges::rulers(&mut canvas, grid, &frame);
    edges::borders(&mut canvas, grid, &frame);
    edges::brackets(&mut canvas, grid, &frame);
    legend.draw(&mut canvas, frame.top + frame.height + 28.0);
    canvas.finish()
}

/// Pixels across: the cells with what stands beside them, and the lines above them.
fn width(grid: &Grid, frame: &Frame) -> f64 {
    let line = |letters: usize, each: f64| {
        let line = letters as f64 * each + 2.0 * MARGIN;
        line.min(WIDEST_TITLE)
    };
    let cells = frame.left + frame.width + MARGIN + edges::bracket_width(grid, frame.side);
    cells
        .max(line(grid.title.chars().count(), 8.5))
        .max(420.0)
        .max(line(facts(grid).chars().count(), 5.6))
}

fn heading(canvas: &mut Canvas, grid: &Grid, caption: &str) {
    let mut y = MARGIN + 8.0;
    if !caption.is_empty() {
        canvas.text((MARGIN, y), 16.0, INK, " font-weight=\"600\"", caption);
        y += 20.0;
    }
    let fit = ((canvas.width - 2.0 * MARGIN) / (grid.title.chars().count().max(1) as f64 * 0.61))
        .min(13.0);
    canvas.text(
        (MARGIN, y),
        fit,
        INK,
        &format!(" font-family=\"{MONO}\""),
        &grid.title,
    );
    canvas.text((MARGIN, y + 17.0), 11.0, FAINT, "", &facts(grid));
}

/// The line under the title.
fn facts(grid: &Grid) -> String {
    let shape: Vec<String> = grid.shape.iter().map(i64::to_string).collect();
    let mut facts = format!("logical shape {}", shape.join(" \u{d7} "));
    match grid.colouring {
        Colouring::Bank { elem_bytes } => {
            let _ = write!(
                facts,
                ", {elem_bytes}-byte elements; colour and first number: bank; second: address"
            );
        }
        Colouring::Owner if grid.owners == 0 => facts.push_str("; colour and number: address"),
        Colouring::Owner => {
            let _ = write!(facts, "; colour: {}", grid.key_names().join(", "));
        }
    }
    if grid.copies.len() > 1 {
        let _ = write!(facts, "; every element has {}", grid.copies_text());
    }
    if let Some(gaps) = grid.gaps_text() {
        let _ = write!(facts, "; {gaps}");
    }
    if !grid.note.is_empty() {
        facts.clone_from(&grid.note);
    }
    facts
}
