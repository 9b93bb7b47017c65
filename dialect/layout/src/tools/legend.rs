//! What the colours of a picture stand for.

use super::grid::{Colouring, Grid, short};
use super::paint::Paint;
use super::palette::Rgb;
use super::svg::{Canvas, FAINT, INK, MARGIN, MONO};

/// Most owners that each have an entry.
const MAX_ENTRIES: usize = 64;
/// Entries of an address scale.
const SCALE: usize = 9;
/// Most lines for outer owners; a line says how many more there are.
const MAX_LINES: usize = 32;
/// Entries of the line of an outer owner.
const PER_LINE: usize = 8;
/// Pixels from one line to the next.
const LINE: f64 = 22.0;
/// Pixels of a letter.
const LETTER: f64 = 6.4;

/// Lines of colours; a line without a name may be broken.
pub(super) struct Legend {
    lines: Vec<Line>,
}

/// What a colour stands for.
type Entry = (String, Rgb);

struct Line {
    /// The outer owner, or what is left out.
    name: String,
    entries: Vec<Entry>,
}

impl Legend {
    pub(super) fn new(grid: &Grid, paint: &Paint) -> Self {
        let plain = grid.owners == 0 && grid.colouring == Colouring::Owner;
        let few = paint.colours.len() <= if plain { SCALE } else { MAX_ENTRIES };
        let mut lines = if few || grid.key_names().len() < 2 {
            vec![flat(grid, paint)]
        } else {
            by_outer_owner(grid, paint)
        };
        if grid.holes.contains(&true)
            && let Some(last) = lines.last_mut()
        {
            last.entries.push(("unused".into(), Rgb(255, 255, 255)));
        }
        Self { lines }
    }

    /// Pixels from one entry to the next.
    fn pitch(&self) -> f64 {
        let words = self.lines.iter().flat_map(|line| &line.entries);
        let longest = words.map(|(words, _)| words.chars().count()).max();
        (longest.unwrap_or(0) as f64 * LETTER + 29.0).max(74.0)
    }

    /// Pixels of the longest name.
    fn indent(&self) -> f64 {
        let names = self.lines.iter().map(|line| line.name.chars().count());
        match names.max() {
            Some(letters) if letters > 0 => letters as f64 * LETTER + 16.0,
            _ => 0.0,
        }
    }

    /// Entries that fit side by side.
    fn columns(&self, width: f64) -> usize {
        let room = width - 2.0 * MARGIN - self.indent();
        ((room / self.pitch()).floor().max(1.0)) as usize
    }

    pub(super) fn height(&self, width: f64) -> f64 {
        let columns = self.columns(width);
        let rows = self
            .lines
            .iter()
            .map(|line| line.entries.len().div_ceil(columns).max(1));
        rows.sum::<usize>() as f64 * LINE
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) {
        let (columns, pitch, indent) = (self.columns(canvas.width), self.pitch(), self.indent());
        let mono = format!(" font-family=\"{MONO}\"");
        let mut y = top;
        for line in &self.lines {
            canvas.text((MARGIN, y), 10.5, FAINT, &mono, &line.name);
            for (at, (words, colour)) in line.entries.iter().enumerate() {
                if at > 0 && at % columns == 0 {
                    y += LINE;
                }
                let x = MARGIN + indent + (at % columns) as f64 * pitch;
                canvas.put(format_args!(
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" rx=\"3\" fill=\"{}\" stroke=\"{FAINT}\" \
                     stroke-width=\"0.4\"/>",
                    y - 11.0,
                    colour.hex()
                ));
                canvas.text((x + 19.0, y), 10.5, INK, &mono, words);
            }
            y += LINE;
        }
    }
}

/// An entry for each owner or bank; of addresses, and of more owners than have room, evenly spaced ones.
fn flat(grid: &Grid, paint: &Paint) -> Line {
    let names = grid.key_names();
    let plain = grid.owners == 0 && grid.colouring == Colouring::Owner;
    let most = if plain { SCALE } else { MAX_ENTRIES };
    let all: Vec<(&Vec<i64>, &Rgb)> = paint.colours.iter().collect();
    let words = |key: &[i64]| {
        let word = |(v, n): (&i64, &String)| format!("{}{v}", short(n, &names));
        let words: Vec<String> = key.iter().zip(&names).map(word).collect();
        words.join(" ")
    };
    let entries = spaced(&all, most).map(|(key, colour)| (words(key), **colour));
    Line {
        name: String::new(),
        entries: entries.collect(),
    }
}

/// A line for each outer owner, with evenly spaced inner ones.
fn by_outer_owner(grid: &Grid, paint: &Paint) -> Vec<Line> {
    let names = grid.key_names();
    let Some((inner_name, outer_names)) = names.split_last() else {
        return Vec::new();
    };
    let mut owners: Vec<(&[i64], Vec<Entry>)> = Vec::new();
    for (key, colour) in &paint.colours {
        let Some((inner, outer)) = key.split_last() else {
            continue;
        };
        if owners.last().is_none_or(|(last, _)| *last != outer) {
            owners.push((outer, Vec::new()));
        }
        if let Some((_, entries)) = owners.last_mut() {
            entries.push((format!("{}{inner}", short(inner_name, &names)), *colour));
        }
    }
    let line = |(outer, entries): &(&[i64], Vec<Entry>)| {
        let word = |(v, n): (&i64, &String)| format!("{n} {v}");
        Line {
            name: outer
                .iter()
                .zip(outer_names)
                .map(word)
                .collect::<Vec<_>>()
                .join(", "),
            entries: spaced(entries, PER_LINE).cloned().collect(),
        }
    };
    let mut lines: Vec<Line> = owners.iter().take(MAX_LINES).map(line).collect();
    if let Some(more) = owners.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        lines.push(Line {
            name: format!("and {more} more"),
            entries: Vec::new(),
        });
    }
    lines
}

/// At most `most` of the items, the first and the last among them.
fn spaced<T>(items: &[T], most: usize) -> impl Iterator<Item = &T> {
    let last = items.len().saturating_sub(1);
    let count = items.len().min(most);
    let at = move |k: usize| k * last / count.saturating_sub(1).max(1);
    (0..count).filter_map(move |k| items.get(at(k)))
}
