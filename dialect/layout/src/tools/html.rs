//! An HTML page with a canvas: zoom, pan, hover for coordinates, click to pin an owner.

use serde_json::json;

use super::grid::{Colouring, Grid, short};
use super::paint::Paint;
use super::svg::escape;

const PAGE: &str = include_str!("page.html");

/// A page that needs nothing but itself. Every coordinate is a number that the algebra computed; the
/// page's script only draws and looks up.
#[must_use]
pub fn html(grid: &Grid, caption: &str) -> String {
    let paint = Paint::new(grid);
    let mut palette: Vec<String> = Vec::new();
    let mut index = std::collections::HashMap::new();
    let (mut colour, mut owner, mut first, mut second) = (vec![], vec![], vec![], vec![]);
    let mut owners = std::collections::HashMap::new();
    for row in 0..grid.rows {
        for col in 0..grid.cols {
            let key = grid.key(row, col);
            let hex = paint.of(&key).hex();
            let next = palette.len();
            let at = *index.entry(hex.clone()).or_insert(next);
            if at == next {
                palette.push(hex);
            }
            colour.push(at);
            let next = owners.len();
            owner.push(*owners.entry(key).or_insert(next));
            let (a, b) = grid.label(row, col);
            first.push(a);
            second.push(b);
        }
    }
    let names: Vec<String> = grid.axes.iter().map(ToString::to_string).collect();
    let elem_bytes = match grid.colouring {
        Colouring::Bank { elem_bytes } => Some(elem_bytes),
        Colouring::Owner => None,
    };
    let data = json!({
        "title": grid.title, "caption": caption, "shape": grid.shape, "rows": grid.rows, "cols": grid.cols,
        "axes": names, "short": names.iter().map(|n| short(n, &names)).collect::<Vec<_>>(),
        "owners": grid.owners, "points": grid.points, "copies": grid.copies,
        "copyCount": grid.copy_count, "gaps": grid.gaps_text(), "palette": palette,
        "colour": colour, "owner": owner, "first": first, "second": second, "elemBytes": elem_bytes,
        "rowNames": (0..grid.rows).map(|row| grid.row_name(row)).collect::<Vec<_>>(),
    });
    // "</script>" inside a string would end the script.
    let data = data.to_string().replace("</", "<\\/");
    let title = if caption.is_empty() {
        &grid.title
    } else {
        caption
    };
    PAGE.replace("{{TITLE}}", &escape(title))
        .replace("{{DATA}}", &data)
}
