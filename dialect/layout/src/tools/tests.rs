//! Pictures say what the layout says, at every size, and hold nothing that breaks their document.

use super::banks::bank_grid;
use super::grid::{Colouring, Grid, short};
use super::palette::owner_colour;
use super::table::{TableOptions, table};
use super::{html::html, svg::svg};
use crate::{Axis, Layout, oracle};

fn grid(layout: &str, shape: &[i64]) -> Grid {
    Grid::new(&layout.parse().unwrap(), shape, None, Colouring::Owner).unwrap()
}

#[test]
fn cells_are_where_the_oracle_says() {
    let text = "S[(8, 2, 4, 2) : (4@lane, 1@warp, 1@lane, 1@reg)] + R[2 : 4@warp] + 5@warp";
    let layout: Layout = text.parse().unwrap();
    let grid = grid(text, &[8, 16]);
    assert_eq!(grid.key_names(), ["warp", "lane"]);
    for x in 0..128usize {
        let base = grid.point(x / 16, x % 16);
        let mut found: Vec<Vec<(Axis, i128)>> = grid
            .copies
            .iter()
            .map(|copy| {
                let terms = grid.axes.iter().zip(base).zip(copy);
                let mut point: Vec<_> = terms
                    .map(|((a, b), c)| (*a, i128::from(b + c)))
                    .filter(|p| p.1 != 0)
                    .collect();
                point.sort();
                point
            })
            .collect();
        found.sort();
        let mut want: Vec<Vec<_>> = oracle::points(&layout, x as i64)
            .into_iter()
            .map(|point| point.into_iter().filter(|p| p.1 != 0).collect())
            .collect();
        want.sort();
        assert_eq!(found, want);
    }
}

#[test]
fn unpicturable_layouts_are_declined() {
    let new = |text: &str, shape: &[i64]| {
        Grid::new(&text.parse().unwrap(), shape, None, Colouring::Owner)
    };
    assert!(new("S[(?, 4) : (4, 1)]", &[]).is_err());
    assert!(new("S[8 : 1]", &[3]).is_err());
    assert!(new("S[8 : 1]", &[-8, -1]).is_err());
    assert!(new("S[99999999 : 1]", &[]).is_err());
    assert!(new("Sw<1,0,1> o S[8 : 1] + R[2 : 1]", &[]).is_err());
    assert!(bank_grid(&"S[8 : 1]".parse().unwrap(), &[8], 3).is_err());
}

#[test]
fn pictures_escape_and_stay_small() {
    let odd = grid("S[4 : 1@\"a<b>&</script>\"]", &[4]);
    let picture = svg(&odd, "<caption>");
    assert!(picture.contains("&lt;caption&gt;") && !picture.contains("<caption>"));
    assert!(!html(&odd, "").contains("&</script>"));
    let large = grid("S[(128, 128) : (128, 1)]", &[128, 128]);
    assert!(svg(&large, "").len() < 2_000_000);
    let many = grid(
        "S[(64, 64, 4, 2) : (8@lane, 1@warp, 1@lane, 1@reg)]",
        &[64, 512],
    );
    assert!(svg(&many, "").len() < 4_000_000);
}

/// Copies, holes and negative coordinates against the oracle's points.
#[test]
fn copies_and_holes_are_counted_and_named() {
    let facts = |text: &str| {
        let layout: Layout = text.parse().unwrap();
        let shape = [layout.size()];
        let grid = Grid::new(&layout, &shape, None, Colouring::Owner).unwrap();
        let points: Vec<oracle::Point> = (0..layout.size())
            .flat_map(|x| oracle::points(&layout, x))
            .collect();
        assert_eq!(oracle::points(&layout, 0).len(), grid.copy_count, "{text}");
        for extent in &grid.extents {
            let on_axis = |point: &oracle::Point| point.get(&extent.axis).copied().unwrap_or(0);
            let mut at: Vec<i128> = points.iter().map(on_axis).collect();
            at.sort_unstable();
            at.dedup();
            let (low, high) = (at[0], at[at.len() - 1]);
            let found = (
                i128::from(extent.low),
                i128::from(extent.high),
                i128::from(extent.holes),
            );
            assert_eq!(
                found,
                (low, high, high - low + 1 - at.len() as i128),
                "{text}"
            );
        }
        (grid, layout)
    };
    let (grid, _) = facts("S[4 : 1] + R[100 : 1@gpu]");
    assert_eq!(
        (grid.copies_text().as_str(), grid.copies.len()),
        ("100 copies", 64)
    );
    assert!(svg(&grid, "").contains("every element has 100 copies"));
    let options = TableOptions {
        colour: false,
        width: 80,
        max_rows: 8,
    };
    assert!(table(&grid, options).contains("copies: 100"));
    // Replica sets that overlap themselves count once.
    let (grid, _) = facts("S[4 : 4] + R[(2, 2) : (1, 1)]");
    assert_eq!(grid.copy_count, 3);
    let (grid, _) = facts("S[(4, 4) : (-1@lane, 2@reg)]");
    let want = "lane -3..0, below 0; reg 0..6, 3 of 7 unused";
    assert_eq!(grid.gaps_text().as_deref(), Some(want));
    assert!(svg(&grid, "").contains(want) && table(&grid, options).contains(want));
    assert!(
        facts("S[(8, 4) : (4@lane, 1@lane)] + R[2 : 1@warp]")
            .0
            .gaps_text()
            .is_none()
    );
    facts("Sw<2,0,2> o S[(4, 3) : (4, 1)]");
    facts("S[(3, 2) : (-5@lane, 3)] + R[(2, 3) : (7@lane, -2@warp)] + 4");
}

/// Rows of memory keep their numbers, and what holds nothing is no chunk.
#[test]
fn sparse_memory_keeps_its_rows() {
    let grid = bank_grid(&"S[(3, 16) : (256, 1)]".parse().unwrap(), &[3, 16], 4).unwrap();
    assert_eq!(grid.row_numbers, [0, 8, 16]);
    assert!(grid.is_hole(0, 16) && !grid.is_hole(0, 15));
    assert!(
        grid.note
            .ends_with("14 rows between hold nothing and are left out"),
        "{}",
        grid.note
    );
    let picture = svg(&grid, "");
    assert!(picture.contains(">16</text>") && picture.contains(">unused</text>"));
    assert!(!picture.contains("c-1") && !picture.contains("r-1"));
    let below = bank_grid(&"S[(2, 32) : (-32, 1)]".parse().unwrap(), &[2, 32], 4).unwrap();
    assert_eq!(below.row_numbers, [-1, 0]);
}

/// Each warp has a line of its own and colours of its own.
#[test]
fn legends_tell_warps_apart() {
    let wgmma = grid(
        "S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]",
        &[64, 64],
    );
    let picture = svg(&wgmma, "");
    let first: Vec<&str> = (0..4)
        .map(|warp| {
            let name = format!(">warp {warp}</text>\n<rect ");
            let at = picture.find(&name).unwrap_or_else(|| panic!("{name}"));
            let fill = picture[at..].split_once("fill=\"#").unwrap().1;
            &fill[..6]
        })
        .collect();
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), 4, "{first:?}");
    let many = grid("S[(40, 32) : (1@warp, 1@lane)]", &[40, 32]);
    assert!(svg(&many, "").contains(">and 8 more</text>"));
}

#[test]
fn tables_have_colours_only_when_wanted() {
    let grid = grid("S[(8, 4) : (4@lane, 1@reg)]", &[8, 4]);
    let mut options = TableOptions {
        colour: false,
        width: 80,
        max_rows: 64,
    };
    let plain = table(&grid, options);
    assert!(!plain.contains('\x1b') && plain.contains("T28:r3"));
    options.colour = true;
    assert!(table(&grid, options).contains("\x1b[48;2;"));
    options = TableOptions {
        colour: false,
        width: 20,
        max_rows: 4,
    };
    assert!(table(&grid, options).contains('⋮'));
}

#[test]
fn neighbouring_owners_differ_in_colour() {
    for count in [2, 8, 32] {
        let colours: std::collections::HashSet<_> = (0..count)
            .map(|value| owner_colour(value, count, 0))
            .collect();
        assert_eq!(colours.len() as i64, count);
    }
}

#[test]
fn coordinates_of_any_size_are_drawn() {
    let far = grid(
        "S[(2, 2, 4) : (4611686018427387904@cta, 1@warp, 1@lane)]",
        &[],
    );
    assert!(svg(&far, "").contains("c4611686018427387904 w1 T3"));
    let end: Layout = "S[(2) : (1)] + 9223372036854775000".parse().unwrap();
    let banks = bank_grid(&end, &[], 16).unwrap();
    assert!(!svg(&banks, "").is_empty());
}

#[test]
fn names_are_shortened_to_unique_prefixes() {
    let all: Vec<String> = ["warp", "warpgroup", "lane", "reg"]
        .map(String::from)
        .to_vec();
    let shorts: Vec<String> = all.iter().map(|name| short(name, &all)).collect();
    assert_eq!(shorts, ["warp", "warpg", "T", "r"]);
}

#[test]
fn a_swizzle_spreads_a_column_over_the_banks() {
    let banks = |text: &str| {
        let grid = bank_grid(&text.parse().unwrap(), &[8, 64], 2).unwrap();
        let holders = (0..grid.rows).flat_map(|line| {
            let grid = &grid;
            (0..32usize).filter(move |bank| grid.point(line, *bank)[0] == 0)
        });
        holders.collect::<std::collections::BTreeSet<usize>>().len()
    };
    assert_eq!(banks("S[(8, 64) : (64, 1)]"), 4);
    assert_eq!(banks("Sw<3,3,3> o S[(8, 64) : (64, 1)]"), 32);
}

/// The table of operations lists what the evaluator answers, and the page shows the table.
#[test]
fn the_table_of_operations_is_complete() {
    use super::eval::{OPERATIONS, evaluate};
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/layouts.md");
    assert!(std::fs::read_to_string(page).unwrap().contains(OPERATIONS));
    let listed: Vec<&str> = OPERATIONS
        .lines()
        .skip(2)
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .collect();
    for op in &listed {
        let answer = evaluate(op, serde_json::json!({}));
        let message = answer.err().map(|failure| failure.message);
        assert!(
            !message.unwrap_or_default().starts_with("no operation"),
            "{op}"
        );
    }
    // The evaluator's match arms.
    let sources = [
        include_str!("eval/analysis.rs"),
        include_str!("eval/compose.rs"),
        include_str!("eval/core.rs"),
        include_str!("eval/cute.rs"),
        include_str!("eval/linear.rs"),
        include_str!("eval/shard.rs"),
    ];
    let arms = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| {
            let line = line.strip_prefix("        \"")?;
            Some(line.split_once("\" => ")?.0.split('"').step_by(2))
        });
    for op in arms.flatten() {
        assert!(listed.contains(&op), "{op} is not in the table");
    }
    assert!(listed.len() > 50);
}
