//! Layouts as text: a table for terminals, coloured by owner when colours are wanted.

use std::fmt::Write as _;

use super::grid::{Colouring, Grid};
use super::paint::Paint;

/// Limits of a text table; the middle of larger grids is left out.
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    /// Whether to colour cells by ANSI 24-bit escapes.
    pub colour: bool,
    /// Columns of the terminal.
    pub width: usize,
    /// Rows of cells to print at most.
    pub max_rows: usize,
}

/// The grid as a table. A cell has the owner's coordinates and the place inside it, as in pictures.
#[must_use]
pub fn table(grid: &Grid, options: TableOptions) -> String {
    let rows = shown(grid.rows, options.max_rows);
    let sheet = Sheet::new(grid, &rows, options);
    let mut out = header(grid);
    sheet.column_numbers(&mut out);
    for row in rows {
        match row {
            Some(row) => sheet.row(&mut out, row),
            None => {
                let _ = writeln!(out, "{:>head$}", "⋮", head = sheet.head);
            }
        }
    }
    out
}

/// The cells and the room that they take.
struct Sheet<'a> {
    grid: &'a Grid,
    paint: Option<Paint>,
    /// Letters of a row's name.
    head: usize,
    /// Letters of a cell.
    wide: usize,
    /// The columns that are shown.
    cols: Vec<Option<usize>>,
}

impl<'a> Sheet<'a> {
    fn new(grid: &'a Grid, rows: &[Option<usize>], options: TableOptions) -> Self {
        let rows = || rows.iter().flatten();
        let names = rows().map(|row| grid.row_name(*row).len());
        let head = names.max().unwrap_or(1).max(3);
        let probe = |row: &usize| {
            [0, grid.cols / 2, grid.cols - 1].map(|col| cell(grid, *row, col).chars().count())
        };
        let wide = rows().flat_map(probe).max().unwrap_or(1);
        let wide = wide.max(grid.cols.saturating_sub(1).to_string().len()) + 2;
        let fit = (options.width.saturating_sub(head + 6) / wide).max(2);
        Self {
            grid,
            paint: options.colour.then(|| Paint::new(grid)),
            head,
            wide,
            cols: shown(grid.cols, fit),
        }
    }

    fn column_numbers(&self, out: &mut String) {
        let Self { head, wide, .. } = *self;
        let _ = write!(out, "{:>head$} ", "");
        for col in &self.cols {
            match col {
                Some(col) => {
                    let _ = write!(out, "{col:^wide$}");
                }
                None => out.push_str(" … "),
            }
        }
        out.push('\n');
    }

    fn row(&self, out: &mut String, row: usize) {
        let Self { head, wide, .. } = *self;
        let _ = write!(out, "{:>head$} ", self.grid.row_name(row));
        for col in &self.cols {
            let Some(col) = *col else {
                out.push_str(" … ");
                continue;
            };
            let words = format!("{:^wide$}", cell(self.grid, row, col));
            match &self.paint {
                Some(paint) => {
                    let c = paint.of(&self.grid.key(row, col));
                    let _ = write!(
                        out,
                        "\x1b[48;2;{};{};{}m\x1b[38;2;31;41;51m{words}\x1b[0m",
                        c.0, c.1, c.2
                    );
                }
                None => out.push_str(&words),
            }
        }
        out.push('\n');
    }
}

fn cell(grid: &Grid, row: usize, col: usize) -> String {
    let (first, second) = grid.label(row, col);
    if second.is_empty() {
        first
    } else {
        format!("{first}:{}", second.replace(' ', ","))
    }
}

fn header(grid: &Grid) -> String {
    let shape: Vec<String> = grid.shape.iter().map(i64::to_string).collect();
    let names: Vec<String> = grid.axes.iter().map(ToString::to_string).collect();
    let keys: Vec<String> = match grid.colouring {
        Colouring::Bank { .. } => vec!["bank:address".into()],
        Colouring::Owner => names
            .iter()
            .map(|n| format!("{}={n}", super::grid::short(n, &names)))
            .collect(),
    };
    let mut out = format!(
        "{}\nshape {}   cells: {}",
        grid.title,
        shape.join("x"),
        keys.join(" ")
    );
    if grid.copies.len() > 1 {
        let _ = write!(out, "   copies: {}", grid.copy_count);
    }
    if let Some(gaps) = grid.gaps_text() {
        let _ = write!(out, "   {gaps}");
    }
    out.push_str("\n\n");
    out
}

/// The first and last of `count` numbers so that at most `limit` are shown; `None` marks the gap.
fn shown(count: usize, limit: usize) -> Vec<Option<usize>> {
    if count <= limit {
        return (0..count).map(Some).collect();
    }
    let tail = limit / 4;
    let front = (0..limit - tail).map(Some);
    front
        .chain([None])
        .chain((count - tail..count).map(Some))
        .collect()
}
