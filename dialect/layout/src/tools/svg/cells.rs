//! The cells of a grid: their colours, and what is written into them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::grid::{Colouring, Grid};
use super::super::paint::Paint;
use super::canvas::{Canvas, Frame, INK, MONO, escape};

/// One path a colour keeps large pictures small; neighbours of one colour are one run.
pub(super) fn draw(canvas: &mut Canvas, grid: &Grid, paint: &Paint, frame: &Frame) {
    let side = frame.side;
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for row in 0..grid.rows {
        let mut col = 0;
        while col < grid.cols {
            let colour = paint.of(&grid.key(row, col));
            let begin = col;
            while col < grid.cols && paint.of(&grid.key(row, col)) == colour {
                col += 1;
            }
            let (x, y) = (frame.x(begin), frame.y(row));
            let run = (col - begin) as f64 * side;
            let path = paths.entry(colour.hex()).or_default();
            let _ = write!(path, "M{x:.1} {y:.1}h{run:.1}v{side:.1}h-{run:.1}z");
        }
    }
    for (colour, path) in paths {
        canvas.put(format_args!("<path fill=\"{colour}\" d=\"{path}\"/>\n"));
    }
    canvas.put(format_args!(
        "<g text-anchor=\"middle\" font-family=\"{MONO}\" fill=\"{INK}\">\n"
    ));
    if side >= 17.0 {
        for row in 0..grid.rows {
            for col in 0..grid.cols {
                label(canvas, grid, paint, frame, (row, col));
            }
        }
    } else {
        run_labels(canvas, grid, frame);
    }
    canvas.put(format_args!("</g>\n"));
}

/// The words of one cell, in one line or two.
fn label(
    canvas: &mut Canvas,
    grid: &Grid,
    paint: &Paint,
    frame: &Frame,
    (row, col): (usize, usize),
) {
    let side = frame.side;
    let fit = |text: &str, largest: f64| {
        ((side - 6.0) / (text.chars().count().max(1) as f64 * 0.6)).min(largest)
    };
    let (mut first, second) = grid.label(row, col);
    if side < 36.0 {
        // Outer owners are named at the edge and told apart by firm lines.
        first = grid.short_label(row, col);
    }
    let light = paint.of(&grid.key(row, col)).is_light();
    let ink = if light { "" } else { " fill=\"#fff\"" };
    let (x, y) = (frame.middle_x(col), frame.middle_y(row));
    let two = !second.is_empty() && side >= 26.0;
    let size = fit(&first, if side >= 36.0 { 12.0 } else { 10.5 });
    let up = if two { -1.5 } else { size * 0.36 };
    canvas.put(format_args!(
        "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\"{ink}>{}</text>",
        y + up,
        escape(&first)
    ));
    if two {
        let size = fit(&second, 9.5);
        canvas.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\" opacity=\"0.62\"{ink}>{}</text>",
            y + size + 1.5,
            escape(&second)
        ));
    }
}

/// Where cells are too small for words, a rectangle of one owner carries one label if it fits.
fn run_labels(canvas: &mut Canvas, grid: &Grid, frame: &Frame) {
    let mut done = vec![false; grid.rows * grid.cols];
    for row in 0..grid.rows {
        let mut col = 0;
        while col < grid.cols {
            let key = grid.key(row, col);
            let begin = col;
            while col < grid.cols && grid.key(row, col) == key {
                col += 1;
            }
            if done.get(row * grid.cols + begin) == Some(&true) {
                continue;
            }
            let same = |r: &usize| (begin..col).all(|c| grid.key(*r, c) == key);
            let tall = (row..grid.rows).take_while(same).count().max(1);
            for r in row..row + tall {
                if let Some(slots) = done.get_mut(r * grid.cols + begin..r * grid.cols + col) {
                    slots.fill(true);
                }
            }
            run_label(canvas, grid, frame, (row, begin), (tall, col - begin));
        }
    }
}

/// The label of a rectangle of cells, given its first cell and its rows and columns.
fn run_label(
    canvas: &mut Canvas,
    grid: &Grid,
    frame: &Frame,
    (row, col): (usize, usize),
    (rows, cols): (usize, usize),
) {
    let (wide, high) = (cols as f64 * frame.side, rows as f64 * frame.side);
    let first = grid.short_label(row, col);
    let size = (wide / (first.chars().count().max(1) as f64 * 0.64))
        .min(high * 0.8)
        .min(18.0);
    if size >= 6.5 && !(grid.owners == 0 && grid.colouring == Colouring::Owner) {
        let (x, y) = (frame.x(col) + wide / 2.0, frame.y(row) + high / 2.0);
        canvas.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\">{}</text>",
            y + size * 0.36,
            escape(&first)
        ));
    }
}
