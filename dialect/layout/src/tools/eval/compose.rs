//! The operations that make a layout of others: tilings, sums, and their factors.

use serde::Deserialize;
use serde_json::{Value, json};

use super::tile_of::TileOf;
use super::{Answer, inputs, layout};
use crate::Layout;
use crate::json::Extents;

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "tile" => inputs::<Tile>(given)?.tile(),
        "compose_tile" => layout(inputs::<Tile>(given)?.composed()?),
        "tile_to" => inputs::<TileTo>(given)?.answer(),
        "tile_of" => inputs::<TileOf>(given)?.answer(),
        "tile_of_outer" => inputs::<TileOfOuter>(given)?.answer(),
        "direct_sum" => inputs::<Sum>(given)?.answer(),
        "direct_sum_of" => inputs::<SumOf>(given)?.answer(),
        _ => super::reshape::run(op, given),
    }
}

#[derive(Deserialize)]
struct Tile {
    outer: Layout,
    inner: Layout,
    outer_shape: Extents,
    inner_shape: Extents,
}

impl Tile {
    fn composed(&self) -> crate::Result<Layout> {
        let (outer, inner) = (&self.outer, &self.inner);
        Layout::compose_tile(outer, &self.outer_shape, inner, &self.inner_shape)
    }

    fn tile(&self) -> Answer {
        let (outer, inner) = (&self.outer, &self.inner);
        let tiled = Layout::tile(outer, &self.outer_shape, inner, &self.inner_shape)?;
        let mut answer = layout(tiled.clone())?;
        if inner.swizzle() != tiled.swizzle()
            && let Some(swizzle) = inner.swizzle()
            && !self.composed()?.equivalent(&tiled).unwrap_or(false)
        {
            let note = format!(
                "the copies are swizzled one by one, which is not {swizzle} over the whole: compose_tile gives that"
            );
            answer["note"] = json!(note);
        }
        Ok(answer)
    }
}

#[derive(Deserialize)]
struct TileTo {
    layout: Layout,
    to_shape: Extents,
    current_shape: Extents,
}

impl TileTo {
    fn answer(&self) -> Answer {
        layout(self.layout.tile_to(&self.to_shape, &self.current_shape)?)
    }
}

#[derive(Deserialize)]
struct TileOfOuter {
    tiled: Layout,
    tiled_shape: Extents,
    outer: Layout,
    outer_shape: Extents,
}

impl TileOfOuter {
    fn answer(&self) -> Answer {
        let (shape, outer) = (&self.tiled_shape, &self.outer);
        layout(self.tiled.tile_of_outer(shape, outer, &self.outer_shape)?)
    }
}

#[derive(Deserialize)]
struct Sum {
    left: Layout,
    right: Layout,
    left_shape: Extents,
    right_shape: Extents,
}

impl Sum {
    fn answer(&self) -> Answer {
        let (left, right) = (&self.left, &self.right);
        layout(Layout::direct_sum(
            left,
            &self.left_shape,
            right,
            &self.right_shape,
        )?)
    }
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
    interleaved_shape: Extents,
    known: Layout,
    known_shape: Extents,
    known_side: Side,
}

impl SumOf {
    fn answer(&self) -> Answer {
        let factor = match self.known_side {
            Side::Left => Layout::direct_sum_of_left,
            Side::Right => Layout::direct_sum_of_right,
        };
        let (whole, known) = (&self.interleaved_shape, &self.known);
        layout(factor(&self.sum, whole, known, &self.known_shape)?)
    }
}
