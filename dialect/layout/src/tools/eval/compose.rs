//! The operations that make a layout of others: tilings, sums, and their factors.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};

use super::core::layout;
use super::{Answer, Failure, inputs, named, unknown};
use crate::json::{Extent, Extents};
use crate::{Axis, Error, Kind, Layout};

type Shape = Extents;

#[derive(Deserialize)]
struct Tile {
    outer: Layout,
    inner: Layout,
    outer_shape: Shape,
    inner_shape: Shape,
}

#[derive(Deserialize)]
struct TileTo {
    layout: Layout,
    to_shape: Shape,
    current_shape: Shape,
}

#[derive(Deserialize)]
struct TileOf {
    tiled: Layout,
    tiled_shape: Shape,
    inner: Layout,
    inner_shape: Shape,
    #[serde(default)]
    split: Option<Value>,
    #[serde(default)]
    fuse: Option<Value>,
}

#[derive(Deserialize)]
struct TileOfOuter {
    tiled: Layout,
    tiled_shape: Shape,
    outer: Layout,
    outer_shape: Shape,
}

#[derive(Deserialize)]
struct Sum {
    left: Layout,
    right: Layout,
    left_shape: Shape,
    right_shape: Shape,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Left,
    Right,
}

#[derive(Deserialize)]
struct SumOf {
    sum: Layout,
    interleaved_shape: Shape,
    known: Layout,
    known_shape: Shape,
    known_side: Side,
}

#[derive(Deserialize)]
struct Pack {
    layout: Layout,
    num: i64,
    axis: Axis,
}

#[derive(Deserialize)]
struct Storage {
    layout: Layout,
    thread_axes: Vec<Axis>,
}

#[derive(Deserialize)]
struct Broadcast {
    layout: Layout,
    num: i64,
    position: usize,
    axis: Axis,
}

#[derive(Deserialize)]
struct Fuse {
    layout: Layout,
    rules: BTreeMap<Axis, (Axis, i64)>,
}

#[derive(Deserialize)]
struct Slice {
    layout: Layout,
    shape: Shape,
    region: Vec<[Extent; 2]>,
}

#[derive(Deserialize)]
struct Split {
    layout: Layout,
    axis: Axis,
    outer: Axis,
    inner: Axis,
    extent: i64,
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "tile" | "compose_tile" => {
            let Tile {
                outer,
                inner,
                outer_shape,
                inner_shape,
            } = inputs(given)?;
            let tile = if op == "tile" {
                Layout::tile
            } else {
                Layout::compose_tile
            };
            layout(tile(&outer, &outer_shape, &inner, &inner_shape)?)
        }
        "tile_to" => {
            let TileTo {
                layout: of,
                to_shape,
                current_shape,
            } = inputs(given)?;
            layout(of.tile_to(&to_shape, &current_shape)?)
        }
        "tile_of" => tile_of(inputs(given)?),
        "tile_of_outer" => {
            let TileOfOuter {
                tiled,
                tiled_shape,
                outer,
                outer_shape,
            } = inputs(given)?;
            layout(tiled.tile_of_outer(&tiled_shape, &outer, &outer_shape)?)
        }
        "direct_sum" => {
            let Sum {
                left,
                right,
                left_shape,
                right_shape,
            } = inputs(given)?;
            layout(Layout::direct_sum(
                &left,
                &left_shape,
                &right,
                &right_shape,
            )?)
        }
        "direct_sum_of" => {
            let SumOf {
                sum,
                interleaved_shape,
                known,
                known_shape,
                known_side,
            } = inputs(given)?;
            layout(match known_side {
                Side::Left => sum.direct_sum_of_left(&interleaved_shape, &known, &known_shape)?,
                Side::Right => sum.direct_sum_of_right(&interleaved_shape, &known, &known_shape)?,
            })
        }
        "slice" | "compose_slice" => {
            let given: Slice = inputs(given)?;
            layout(given.layout.slice(&given.shape, &ranges(&given.region))?)
        }
        "slice_cover" => {
            let given: Slice = inputs(given)?;
            let cover = given
                .layout
                .slice_cover(&given.shape, &ranges(&given.region))?;
            let part = |(region, layout): &(Vec<Range<i64>>, Layout)| {
                let region: Vec<_> = region.iter().map(|r| [r.start, r.end]).collect();
                json!({"region": region, "layout": layout})
            };
            named("boxes", cover.iter().map(part).collect::<Vec<_>>())
        }
        _ => reshape(op, given),
    }
}

fn reshape(op: &str, given: Value) -> Answer {
    match op {
        "pack" => {
            let Pack {
                layout: of,
                num,
                axis,
            } = inputs(given)?;
            layout(of.pack(num, axis)?)
        }
        "unpack" => {
            let Pack {
                layout: of,
                num,
                axis,
            } = inputs(given)?;
            layout(of.unpack(num, axis)?)
        }
        "storage" => {
            let Storage {
                layout: of,
                thread_axes,
            } = inputs(given)?;
            layout(of.storage(&thread_axes)?)
        }
        "broadcast" => {
            let Broadcast {
                layout: of,
                num,
                position,
                axis,
            } = inputs(given)?;
            layout(of.broadcast(num, position, axis)?)
        }
        "fuse_axes" => {
            let Fuse { layout: of, rules } = inputs(given)?;
            layout(of.fuse_axes(&rules)?)
        }
        "split_axes" => {
            let Split {
                layout: of,
                axis,
                outer,
                inner,
                extent,
            } = inputs(given)?;
            layout(of.split_axes(axis, outer, inner, extent)?)
        }
        _ => unknown(op),
    }
}

fn ranges(region: &[[Extent; 2]]) -> Vec<Range<i64>> {
    region.iter().map(|[begin, end]| begin.0..end.0).collect()
}

/// A rule of `split`, tried where the axes of the two layouts differ.
#[derive(Deserialize)]
struct SplitRule {
    axis: Axis,
    outer: Axis,
    inner: Axis,
    extent: i64,
}

/// As it is first; then with the axes of both sides split, then fused, as the rules say.
fn tile_of(
    TileOf {
        tiled,
        tiled_shape,
        inner,
        inner_shape,
        split,
        fuse,
    }: TileOf,
) -> Answer {
    let attempt = |tiled: &Layout, inner: &Layout| tiled.tile_of(&tiled_shape, inner, &inner_shape);
    let first = match attempt(&tiled, &inner) {
        Err(error) if error.kind() == Kind::None => error,
        other => return layout(other?),
    };
    let mut ways: Vec<(Layout, Layout)> = Vec::new();
    if let Some(split) = split {
        let rules: Vec<SplitRule> = match split {
            Value::Array(_) => inputs(split)?,
            one => vec![inputs(one)?],
        };
        let apply = |of: &Layout| -> Result<Layout, Error> {
            rules.iter().try_fold(of.clone(), |l, r| {
                l.split_axes(r.axis, r.outer, r.inner, r.extent)
            })
        };
        if let (Ok(tiled), Ok(inner)) = (apply(&tiled), apply(&inner)) {
            ways.push((tiled, inner));
        }
    }
    if let Some(fuse) = fuse {
        let rules: BTreeMap<Axis, (Axis, i64)> = inputs(fuse)?;
        if let (Ok(tiled), Ok(inner)) = (tiled.fuse_axes(&rules), inner.fuse_axes(&rules)) {
            ways.push((tiled, inner));
        }
    }
    let found = ways
        .iter()
        .find_map(|(tiled, inner)| attempt(tiled, inner).ok());
    found.map_or_else(|| Err(Failure::from(first)), layout)
}
