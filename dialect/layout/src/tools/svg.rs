//! SVG pictures: a logical grid coloured by owner or bank, and shared memory by bank and row.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::grid::{Colouring, Grid};
use super::legend::Legend;
use super::palette::{Rgb, address_colour, owner_colour};

pub(super) const INK: &str = "#1f2933";
pub(super) const FAINT: &str = "#7b8794";
const SANS: &str = "Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif";
pub(super) const MONO: &str =
    "'JetBrains Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace";
pub(super) const MARGIN: f64 = 24.0;
const RULER: f64 = 34.0;

/// The colour of every cell of a grid and what the colours stand for.
pub(crate) struct Paint {
    pub(super) colours: BTreeMap<Vec<i64>, Rgb>,
}

impl Paint {
    pub(crate) fn new(grid: &Grid) -> Self {
        let mut keys: Vec<Vec<i64>> = Vec::new();
        for row in 0..grid.rows {
            for col in 0..grid.cols {
                let key = grid.key(row, col);
                if !grid.is_hole(row, col) && keys.last() != Some(&key) {
                    keys.push(key);
                }
            }
        }
        keys.sort();
        keys.dedup();
        let plain = grid.owners == 0 && grid.colouring == Colouring::Owner;
        let low = keys.first().and_then(|k| k.first()).copied().unwrap_or(0);
        let high = keys.last().and_then(|k| k.first()).copied().unwrap_or(0);
        let width = keys.first().map_or(0, Vec::len);
        let fastest = (0..width)
            .max_by_key(|at| (distinct(&keys, *at), *at))
            .unwrap_or(0);
        let first = keys
            .iter()
            .filter_map(|k| k.get(fastest))
            .min()
            .copied()
            .unwrap_or(0);
        let last = keys
            .iter()
            .filter_map(|k| k.get(fastest))
            .max()
            .copied()
            .unwrap_or(0);
        let count = last.saturating_sub(first).saturating_add(1);
        let colour = |key: &Vec<i64>| {
            let value = key.get(fastest).copied().unwrap_or(0);
            if plain {
                return address_colour(value, low, high);
            }
            let outer = key.iter().enumerate().filter(|(at, _)| *at != fastest);
            owner_colour(
                value - first,
                count,
                outer.fold(0, |sum, (_, v)| sum * 5 + v),
            )
        };
        let colours = keys.iter().map(|key| (key.clone(), colour(key))).collect();
        Self { colours }
    }

    pub(crate) fn of(&self, key: &[i64]) -> Rgb {
        self.colours.get(key).copied().unwrap_or(Rgb(255, 255, 255))
    }
}

fn distinct(keys: &[Vec<i64>], at: usize) -> usize {
    let mut values: Vec<i64> = keys.iter().filter_map(|key| key.get(at)).copied().collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

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

pub(super) struct Canvas {
    body: String,
    pub(super) width: f64,
    height: f64,
}

impl Canvas {
    pub(super) fn put(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(piece);
    }

    pub(super) fn text(
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

    fn finish(self) -> String {
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

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The grid as an SVG document.
#[must_use]
pub fn svg(grid: &Grid, caption: &str) -> String {
    let paint = Paint::new(grid);
    let side = cell_side(grid);
    let (left, top) = (
        MARGIN + ruler_width(grid),
        MARGIN + 44.0 + if caption.is_empty() { 0.0 } else { 18.0 },
    );
    let (wide, high) = (side * grid.cols as f64, side * grid.rows as f64);
    let legend = Legend::new(grid, &paint);
    let title_width = grid.title.chars().count() as f64 * 8.5 + 2.0 * MARGIN;
    let band = row_bands(grid)
        .iter()
        .map(|b| {
            if (b.1 - b.0) as f64 * side < b.2.len() as f64 * 7.0 {
                b.2.len() * 7 + 14
            } else {
                30
            }
        })
        .max();
    let width = (left + wide + MARGIN + band.unwrap_or(0) as f64)
        .max(title_width.min(1400.0))
        .max(420.0);
    let facts_width = facts(grid).chars().count() as f64 * 5.6 + 2.0 * MARGIN;
    let width = width.max(facts_width.min(1400.0));
    let height = top + RULER * 0.6 + high + 34.0 + legend.height(width) + MARGIN + 4.0;
    let mut canvas = Canvas {
        body: String::new(),
        width,
        height,
    };
    heading(&mut canvas, grid, caption);
    let top = top + RULER * 0.6;
    cells(&mut canvas, grid, &paint, side, (left, top));
    rulers(&mut canvas, grid, side, (left, top));
    borders(&mut canvas, grid, side, (left, top));
    brackets(&mut canvas, grid, side, (left + wide, top));
    legend.draw(&mut canvas, top + high + 28.0);
    canvas.finish()
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

/// One path a colour keeps large pictures small; neighbours of one colour are one run.
fn cells(canvas: &mut Canvas, grid: &Grid, paint: &Paint, side: f64, (left, top): (f64, f64)) {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for row in 0..grid.rows {
        let mut col = 0;
        while col < grid.cols {
            let colour = paint.of(&grid.key(row, col));
            let begin = col;
            while col < grid.cols && paint.of(&grid.key(row, col)) == colour {
                col += 1;
            }
            let (x, y) = (left + begin as f64 * side, top + row as f64 * side);
            let run = (col - begin) as f64 * side;
            let path = paths.entry(colour.hex()).or_default();
            let _ = write!(path, "M{x:.1} {y:.1}h{run:.1}v{side:.1}h-{run:.1}z");
        }
    }
    for (colour, path) in paths {
        canvas.put(format_args!("<path fill=\"{colour}\" d=\"{path}\"/>\n"));
    }
    if side >= 17.0 {
        labels(canvas, grid, paint, side, (left, top));
    } else {
        run_labels(canvas, grid, side, (left, top));
    }
}

fn labels(canvas: &mut Canvas, grid: &Grid, paint: &Paint, side: f64, (left, top): (f64, f64)) {
    let fit = |text: &str, largest: f64| {
        ((side - 6.0) / (text.chars().count().max(1) as f64 * 0.6)).min(largest)
    };
    canvas.put(format_args!(
        "<g text-anchor=\"middle\" font-family=\"{MONO}\" fill=\"{INK}\">\n"
    ));
    for row in 0..grid.rows {
        for col in 0..grid.cols {
            let (mut first, second) = grid.label(row, col);
            if side < 36.0 {
                // Outer owners are named at the edge and told apart by firm lines.
                first = grid.short_label(row, col);
            }
            let light = paint.of(&grid.key(row, col)).is_light();
            let ink = if light { "" } else { " fill=\"#fff\"" };
            let x = left + (col as f64 + 0.5) * side;
            let y = top + (row as f64 + 0.5) * side;
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
    }
    canvas.put(format_args!("</g>\n"));
}

/// Where cells are too small for words, a rectangle of one owner carries one label if it fits.
fn run_labels(canvas: &mut Canvas, grid: &Grid, side: f64, (left, top): (f64, f64)) {
    canvas.put(format_args!(
        "<g text-anchor=\"middle\" font-family=\"{MONO}\" fill=\"{INK}\">\n"
    ));
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
            let (wide, high) = ((col - begin) as f64 * side, tall as f64 * side);
            let first = grid.short_label(row, begin);
            let size = (wide / (first.chars().count().max(1) as f64 * 0.64))
                .min(high * 0.8)
                .min(18.0);
            if size >= 6.5 && !(grid.owners == 0 && grid.colouring == Colouring::Owner) {
                let (x, y) = (
                    left + begin as f64 * side + wide / 2.0,
                    top + row as f64 * side + high / 2.0,
                );
                canvas.put(format_args!(
                    "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\">{}</text>",
                    y + size * 0.36,
                    escape(&first)
                ));
            }
        }
    }
    canvas.put(format_args!("</g>\n"));
}

/// Room for the names of the rows.
fn ruler_width(grid: &Grid) -> f64 {
    let longest = (0..grid.rows).map(|row| row_name(grid, row).len()).max();
    (longest.unwrap_or(0) as f64 * 6.2 + 8.0).max(RULER)
}

fn tick_step(count: usize, side: f64) -> usize {
    [1, 2, 4, 8, 16, 32, 64, 128, 256]
        .into_iter()
        .find(|s| *s as f64 * side >= 22.0)
        .unwrap_or(512)
        .min(count.max(1))
}

fn rulers(canvas: &mut Canvas, grid: &Grid, side: f64, (left, top): (f64, f64)) {
    canvas.put(format_args!(
        "<g font-family=\"{MONO}\" font-size=\"10\" fill=\"{FAINT}\">\n"
    ));
    for col in (0..grid.cols).step_by(tick_step(grid.cols, side)) {
        let x = left + (col as f64 + 0.5) * side;
        canvas.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{col}</text>",
            top - 6.0
        ));
    }
    for row in (0..grid.rows).step_by(tick_step(grid.rows, side.max(10.0))) {
        let y = top + (row as f64 + 0.5) * side + 3.5;
        let name = row_name(grid, row);
        canvas.put(format_args!(
            "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>",
            left - 6.0
        ));
    }
    canvas.put(format_args!("</g>\n"));
}

/// Row numbers; with more than two dimensions, the coordinates on all but the last.
pub(crate) fn row_name(grid: &Grid, row: usize) -> String {
    if let Some(number) = grid.row_numbers.get(row) {
        return number.to_string();
    }
    if grid.shape.len() <= 2 {
        return row.to_string();
    }
    let mut rest = i64::try_from(row).unwrap_or(0);
    let mut at = Vec::new();
    for n in grid.shape.iter().rev().skip(1) {
        at.push((rest % n).to_string());
        rest /= n;
    }
    at.reverse();
    at.join(",")
}

/// Hairlines between cells where there is room, a firm line where an outer owner or an outer
/// dimension changes.
fn borders(canvas: &mut Canvas, grid: &Grid, side: f64, (left, top): (f64, f64)) {
    let (wide, high) = (side * grid.cols as f64, side * grid.rows as f64);
    if side >= 7.0 {
        let mut path = String::new();
        for col in 1..grid.cols {
            let _ = write!(path, "M{:.1} {top:.1}v{high:.1}", left + col as f64 * side);
        }
        for row in 1..grid.rows {
            let _ = write!(path, "M{left:.1} {:.1}h{wide:.1}", top + row as f64 * side);
        }
        let opacity = if side < 17.0 { 0.3 } else { 0.55 };
        canvas.put(format_args!(
            "<path d=\"{path}\" stroke=\"#ffffff\" stroke-opacity=\"{opacity}\" fill=\"none\"/>\n"
        ));
    }
    let outer = |row: usize, col: usize| outer_key(grid, row, col);
    let last = grid
        .shape
        .len()
        .checked_sub(2)
        .and_then(|at| grid.shape.get(at));
    let block = if grid.shape.len() > 2 {
        last.map_or(usize::MAX, |n| usize::try_from(*n).unwrap_or(usize::MAX))
    } else {
        usize::MAX
    };
    let mut path = String::new();
    for row in 0..grid.rows {
        for col in 0..grid.cols {
            let (x, y) = (left + col as f64 * side, top + row as f64 * side);
            if col > 0 && outer(row, col) != outer(row, col - 1) {
                let _ = write!(path, "M{x:.1} {y:.1}v{side:.1}");
            }
            if row > 0 && (row % block == 0 || outer(row, col) != outer(row - 1, col)) {
                let _ = write!(path, "M{x:.1} {y:.1}h{side:.1}");
            }
        }
    }
    canvas.put(format_args!(
        "<path d=\"{path}\" stroke=\"{INK}\" stroke-width=\"2.2\" fill=\"none\" stroke-linecap=\"square\"/>\n\
         <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"1.2\"/>\n"
    ));
}

fn outer_key(grid: &Grid, row: usize, col: usize) -> Vec<i64> {
    let key = grid.key(row, col);
    key.get(..key.len().saturating_sub(1))
        .unwrap_or(&[])
        .to_vec()
}

/// Rows whose outer owner is one and the same are named at the right edge.
fn row_bands(grid: &Grid) -> Vec<(usize, usize, String)> {
    let names = grid.key_names();
    if names.len() < 2 {
        return Vec::new();
    }
    let mut bands: Vec<(usize, usize, String)> = Vec::new();
    for row in 0..grid.rows {
        let outer = outer_key(grid, row, 0);
        if (1..grid.cols).any(|col| outer_key(grid, row, col) != outer) {
            return Vec::new();
        }
        let words: Vec<String> = outer
            .iter()
            .zip(&names)
            .map(|(v, n)| format!("{n} {v}"))
            .collect();
        let words = words.join(", ");
        match bands.last_mut() {
            Some(band) if band.2 == words => band.1 = row + 1,
            _ => bands.push((row, row + 1, words)),
        }
    }
    bands
}

fn brackets(canvas: &mut Canvas, grid: &Grid, side: f64, (right, top): (f64, f64)) {
    for (from, to, words) in row_bands(grid) {
        let (y, high) = (top + from as f64 * side, (to - from) as f64 * side);
        let x = right + 7.0;
        canvas.put(format_args!(
            "<path d=\"M{x:.1} {:.1}h5v{:.1}h-5\" stroke=\"{FAINT}\" fill=\"none\"/>\n",
            y + 2.0,
            high - 4.0
        ));
        if high >= words.chars().count() as f64 * 6.6 || high >= 14.0 {
            let (cx, cy) = (x + 18.0, y + high / 2.0);
            let upright = high < words.chars().count() as f64 * 7.0;
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
            canvas.text(at, 11.0, INK, &turn, &words);
        }
    }
}
