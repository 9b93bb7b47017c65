//! One subcommand for each operation that people type by hand. Each builds the request that `eval`
//! reads and prints its answer as text, so that both say the same.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{CliError, Numbers, parse_layout, parse_numbers};
use crate::json::{Extent, extents};
use crate::tools::eval;
use crate::{DYNAMIC, Layout};

#[derive(Debug, Subcommand)]
pub(super) enum AlgebraCommand {
    /// Print a layout in its textual form, or as JSON.
    Print {
        /// A layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
        #[arg(value_parser = parse_layout)]
        layout: Layout,
        /// The JSON of the exchange format.
        #[arg(long)]
        json: bool,
    },
    /// The unique representative of a layout's map.
    Canonicalize(One),
    /// Whether two layouts are the same map.
    Equal(Pair),
    /// The places that two layouts share, as a layout.
    Intersect(Pair),
    /// Whether two layouts share a place, with an index of each that lives there.
    Overlap(Pair),
    /// Where logical coordinates live.
    Apply {
        #[command(flatten)]
        of: Shaped,
        /// A coordinate such as 2,9 (repeatable).
        #[arg(long = "at", value_parser = parse_numbers, required = true)]
        at: Vec<Numbers>,
    },
    /// Which logical indices live at a point.
    Invert {
        /// A layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
        #[arg(value_parser = parse_layout)]
        layout: Layout,
        /// A point such as lane=3,reg=1 (repeatable).
        #[arg(long = "at", required = true)]
        at: Vec<String>,
    },
    /// Split and fuse iters into blocks of a shape.
    Group(Shaped),
    /// Repeat an inner layout (the second) as an outer one (the first) says; each copy is swizzled as the
    /// inner layout is.
    Tile(Pair),
    /// The swizzle of the inner layout (the second) over its tiling by an outer one (the first).
    ComposeTile(Pair),
    /// Repeat a layout in row-major order until it has a shape; its swizzle goes over the whole.
    TileTo {
        #[command(flatten)]
        of: Shaped,
        /// The shape to fill, such as 64,128.
        #[arg(long, value_parser = parse_numbers)]
        to: Numbers,
    },
    /// Find the outer layout of a tiling (the first), given the inner one (the second).
    TileOf(Pair),
    /// Find the inner layout of a tiling (the first), given the outer one (the second).
    TileOfOuter(Pair),
    /// Superpose two layouts on interleaved domains.
    DirectSum(Pair),
    /// The layout of a box.
    Slice {
        #[command(flatten)]
        of: Shaped,
        /// The box, such as 0:4,8:16; 2: is all from 2 on of a dynamic dimension.
        #[arg(long, short)]
        region: String,
        /// Where the box has no slice, boxes that have one and make it up.
        #[arg(long)]
        cover: bool,
    },
    /// Span on an axis.
    Span {
        /// A layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
        #[arg(value_parser = parse_layout)]
        layout: Layout,
        /// The axis.
        #[arg(long, default_value = "m")]
        axis: String,
    },
    /// Worst bank conflict of an access by the given lanes.
    BankWays {
        #[command(flatten)]
        of: Shaped,
        /// Bytes of an element.
        #[arg(long)]
        elem_bytes: i64,
        /// The coordinate of each lane (repeatable).
        #[arg(long = "at", value_parser = parse_numbers, required = true)]
        at: Vec<Numbers>,
    },
    /// Plan the way from one register distribution to another: shuffles where every warp holds what it
    /// needs, else shared memory.
    Relayout {
        /// Source over the axes reg and lane, and warp.
        #[arg(value_parser = parse_layout)]
        src: Layout,
        /// Target over the axes reg and lane, and warp.
        #[arg(value_parser = parse_layout)]
        dst: Layout,
        /// Bits of an element.
        #[arg(long, default_value_t = 32)]
        elem_bits: u32,
        /// The answer of `eval`, as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Any operation of the exchange format, with its inputs as JSON.
    Op {
        /// Its name.
        op: String,
        /// Its inputs.
        inputs: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// A layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
    #[arg(value_parser = parse_layout)]
    layout: Layout,
}

#[derive(Debug, Args)]
pub(super) struct Shaped {
    /// A layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
    #[arg(value_parser = parse_layout)]
    layout: Layout,
    /// Logical shape, such as 8,16.
    #[arg(long, short, value_parser = parse_numbers)]
    shape: Numbers,
}

#[derive(Debug, Args)]
pub(super) struct Pair {
    /// The first layout, such as 'S[(8, 4) : (4@lane, 1@reg)]', or its JSON.
    #[arg(value_parser = parse_layout)]
    a: Layout,
    /// The second layout.
    #[arg(value_parser = parse_layout)]
    b: Layout,
    /// Shape of the first.
    #[arg(long, value_parser = parse_numbers)]
    shape_a: Option<Numbers>,
    /// Shape of the second.
    #[arg(long, value_parser = parse_numbers)]
    shape_b: Option<Numbers>,
}

/// The names that an operation gives to two layouts and their shapes.
type Names = [&'static str; 4];

const TILING: Names = ["outer", "inner", "outer_shape", "inner_shape"];
const TILED_BY_INNER: Names = ["tiled", "inner", "tiled_shape", "inner_shape"];
const TILED_BY_OUTER: Names = ["tiled", "outer", "tiled_shape", "outer_shape"];
const SUM: Names = ["left", "right", "left_shape", "right_shape"];

impl Pair {
    fn inputs(&self) -> Value {
        json!({"a": self.a, "b": self.b})
    }

    fn shaped(&self, names: Names) -> Value {
        let shape = |given: &Option<Numbers>, layout: &Layout| {
            given
                .as_ref()
                .map_or_else(|| json!(extents(&[layout.size()])), |n| json!(n))
        };
        let values = [
            json!(self.a),
            json!(self.b),
            shape(&self.shape_a, &self.a),
            shape(&self.shape_b, &self.b),
        ];
        names
            .into_iter()
            .map(str::to_owned)
            .zip(values)
            .collect::<Map<_, _>>()
            .into()
    }
}

impl Shaped {
    fn inputs(&self) -> Value {
        json!({"layout": self.layout, "shape": self.shape})
    }

    fn with(&self, name: &str, value: Value) -> Value {
        let mut inputs = self.inputs();
        inputs[name] = value;
        inputs
    }
}

pub(super) fn run(command: &AlgebraCommand) -> Result<String, CliError> {
    use AlgebraCommand as C;
    match command {
        C::Print { layout, json } if *json => Ok(format!("{}\n", json!(layout))),
        C::Print { layout, .. } => Ok(format!("{layout}\n")),
        C::Canonicalize(One { layout }) => ask("canonicalize", json!({"layout": layout})),
        C::Equal(pair) => ask("equal", pair.inputs()),
        C::Intersect(pair) => ask("intersect", pair.inputs()),
        C::Overlap(pair) => ask("overlap", pair.inputs()),
        C::Apply { of, at } => ask("apply", of.with("coords", lists(at))),
        C::Invert { layout, at } => {
            let points: Result<Vec<Value>, _> = at.iter().map(|text| point(text)).collect();
            ask("invert", json!({"layout": layout, "points": points?}))
        }
        C::Group(of) => ask("group", of.inputs()),
        C::Tile(pair) => ask("tile", pair.shaped(TILING)),
        C::ComposeTile(pair) => ask("compose_tile", pair.shaped(TILING)),
        C::TileTo { of, to } => {
            let (layout, shape) = (&of.layout, &of.shape);
            let inputs = json!({"layout": layout, "current_shape": shape, "to_shape": to});
            ask("tile_to", inputs)
        }
        C::TileOf(pair) => ask("tile_of", pair.shaped(TILED_BY_INNER)),
        C::TileOfOuter(pair) => ask("tile_of_outer", pair.shaped(TILED_BY_OUTER)),
        C::DirectSum(pair) => ask("direct_sum", pair.shaped(SUM)),
        C::Slice { of, region, cover } => {
            let inputs = of.with("region", json!(self::region(region)?));
            if *cover {
                return self::cover(inputs);
            }
            ask("slice", inputs)
        }
        C::Span { layout, axis } => ask("span", json!({"layout": layout, "axis": axis})),
        C::BankWays { of, elem_bytes, at } => {
            let mut inputs = of.with("coords", lists(at));
            inputs["elem_bytes"] = json!(elem_bytes);
            ask("bank_ways", inputs)
        }
        C::Relayout {
            src,
            dst,
            elem_bits,
            json,
        } => super::relayout::run(src, dst, *elem_bits, *json),
        C::Op { op, inputs } => ask(op, serde_json::from_str(inputs)?),
    }
}

fn lists(at: &[Numbers]) -> Value {
    at.iter().map(|numbers| json!(numbers.0)).collect()
}

/// The answer of an operation as text; its note goes to standard error.
fn ask(op: &str, inputs: Value) -> Result<String, CliError> {
    let mut result = eval::evaluate(op, inputs).map_err(|failure| failure.to_string())?;
    let note = result
        .as_object_mut()
        .and_then(|fields| fields.remove("note"));
    if let Some(note) = note.as_ref().and_then(Value::as_str) {
        eprintln!("note: {note}");
    }
    Ok(text_of(&result))
}

/// Layouts as text, everything else as JSON, one field a line.
pub(super) fn text_of(result: &Value) -> String {
    let Some(fields) = result.as_object() else {
        return format!("{result}\n");
    };
    let single = fields.len() == 1;
    let line = |(name, value): (&String, &Value)| {
        let layout = serde_json::from_value::<Layout>(value.clone())
            .ok()
            .filter(|_| value.is_object());
        let text = layout.map_or_else(|| value.to_string(), |layout| layout.to_string());
        if single {
            format!("{text}\n")
        } else {
            format!("{name}: {text}\n")
        }
    };
    fields.iter().map(line).collect()
}

fn point(text: &str) -> Result<Value, CliError> {
    let mut map = Map::new();
    for part in text.split(',') {
        let Some((axis, value)) = part.split_once('=') else {
            return Err(format!("`{part}`: expected axis=value").into());
        };
        map.insert(axis.trim().into(), json!(value.trim().parse::<i64>()?));
    }
    Ok(Value::Object(map))
}

/// The boxes of a cover, one a line.
fn cover(inputs: Value) -> Result<String, CliError> {
    let found = eval::evaluate("slice_cover", inputs).map_err(|failure| failure.to_string())?;
    let mut text = String::new();
    for part in found["boxes"].as_array().into_iter().flatten() {
        let ranges = part["region"].as_array().into_iter().flatten();
        let ranges: Vec<String> = ranges.map(|r| format!("{}:{}", r[0], r[1])).collect();
        let layout: Layout = serde_json::from_value(part["layout"].clone())?;
        writeln!(text, "{}  {layout}", ranges.join(","))?;
    }
    Ok(text)
}

/// A range a dimension; an end that is missing or `?` is that of a dynamic dimension.
pub(super) fn region(text: &str) -> Result<Vec<[Extent; 2]>, CliError> {
    let side = |part: &str| {
        let (begin, end) = part
            .split_once(':')
            .ok_or(format!("`{part}`: expected begin:end"))?;
        let end = match end.trim() {
            "" | "?" => DYNAMIC,
            end => end.parse::<i64>()?,
        };
        Ok([begin.trim().parse::<i64>()?, end].map(Extent))
    };
    text.split(',').map(side).collect()
}
