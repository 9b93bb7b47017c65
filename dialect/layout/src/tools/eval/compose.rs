//! The operations that make a layout of others: tilings, sums, and their factors.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};

use super::core::layout;
use super::{Answer, inputs, named, unknown};
use crate::json::{Extent, Extents};
use crate::{Axis, Kind, Layout};

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
            let composed = || Layout::compose_tile(&outer, &outer_shape, &inner, &inner_shape);
            if op == "compose_tile" {
                return layout(composed()?);
            }
            let tiled = Layout::tile(&outer, &outer_shape, &inner, &inner_shape)?;
            let mut answer = layout(tiled.clone())?;
            if inner.swizzle() != tiled.swizzle()
                && let Some(swizzle) = inner.swizzle()
                && !composed()?.equivalent(&tiled).unwrap_or(false)
            {
                let note = format!(
                    "the copies are swizzled one by one, which is not {swizzle} over the whole: compose_tile gives that"
                );
                answer["note"] = json!(note);
            }
            Ok(answer)
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

/// As it is first; then with the axes of both sides, or of one, split or fused as the rules say, where
/// they occur. The answer tiles to the layouts in those axes, which come with it.
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
    let first = match tiled.tile_of(&tiled_shape, &inner, &inner_shape) {
        Err(error) if error.kind() == Kind::None => error,
        other => return layout(other?),
    };
    let rules: Vec<SplitRule> = match split {
        None | Some(Value::Null) => Vec::new(),
        Some(rules @ Value::Array(_)) => inputs(rules)?,
        Some(one) => vec![inputs(one)?],
    };
    let fused: BTreeMap<Axis, (Axis, i64)> = match fuse {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(fuse) => inputs(fuse)?,
    };
    let spellings = |of: &Layout| {
        [
            Some(of.clone()),
            split_by(of, &rules),
            of.fuse_axes(&fused).ok(),
        ]
    };
    let (whole, parts) = (spellings(&tiled), spellings(&inner));
    // Both in the same axes first; as they are has been tried.
    for (w, p) in [
        (1, 1),
        (2, 2),
        (1, 0),
        (0, 1),
        (2, 0),
        (0, 2),
        (1, 2),
        (2, 1),
    ] {
        let (Some(tiled), Some(inner)) = (&whole[w], &parts[p]) else {
            continue;
        };
        let Ok(outer) = tiled.tile_of(&tiled_shape, inner, &inner_shape) else {
            continue;
        };
        if tiles_to(&outer, (inner, &inner_shape), (tiled, &tiled_shape)) {
            return Ok(json!({"layout": outer, "tiled": tiled, "inner": inner}));
        }
    }
    Err(first.into())
}

/// The layout with each axis split whose rule there is; `None` where one cannot be.
fn split_by(of: &Layout, rules: &[SplitRule]) -> Option<Layout> {
    rules.iter().try_fold(of.clone(), |layout, rule| {
        if layout.axes().contains(&rule.axis) {
            let split = layout.split_axes(rule.axis, rule.outer, rule.inner, rule.extent);
            split.ok()
        } else {
            Some(layout)
        }
    })
}

fn tiles_to(
    outer: &Layout,
    (inner, inner_shape): (&Layout, &[i64]),
    (tiled, shape): (&Layout, &[i64]),
) -> bool {
    let counts: Vec<i64> = shape
        .iter()
        .zip(inner_shape)
        .map(|(whole, part)| whole / part.max(&1))
        .collect();
    let again = Layout::tile(outer, &counts, inner, inner_shape);
    again
        .and_then(|again| again.equivalent(tiled))
        .unwrap_or(false)
}
