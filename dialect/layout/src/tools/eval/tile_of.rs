//! `tile_of`: the outer layout of a tiling, found where need be after splitting or fusing axes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, inputs, layout};
use crate::json::Extents;
use crate::{Axis, Kind, Layout};

#[derive(Deserialize)]
pub(super) struct TileOf {
    tiled: Layout,
    tiled_shape: Extents,
    inner: Layout,
    inner_shape: Extents,
    #[serde(default)]
    split: Option<Value>,
    #[serde(default)]
    fuse: Option<Value>,
}

/// A rule of `split`, tried where the axes of the two layouts differ.
#[derive(Deserialize)]
struct SplitRule {
    axis: Axis,
    outer: Axis,
    inner: Axis,
    extent: i64,
}

/// What a layout may be read as: as it is, with axes split, with axes fused.
type Spellings = [Option<Layout>; 3];

/// Pairs of spellings, of the tiled layout and of the inner one. Both in the same axes come first; as they
/// are has been tried.
const TRIED: [(usize, usize); 8] = [
    (1, 1),
    (2, 2),
    (1, 0),
    (0, 1),
    (2, 0),
    (0, 2),
    (1, 2),
    (2, 1),
];

impl TileOf {
    /// As it is first; then with the axes of both sides, or of one, split or fused as the rules say, where
    /// they occur. The answer tiles to the layouts in those axes, which come with it.
    pub(super) fn answer(&self) -> Answer {
        let (inner, inner_shape) = (&self.inner, &self.inner_shape);
        let first = match self.tiled.tile_of(&self.tiled_shape, inner, inner_shape) {
            Err(error) if error.kind() == Kind::None => error,
            other => return layout(other?),
        };
        let [whole, parts] = self.spellings()?;
        for (w, p) in TRIED {
            let (Some(tiled), Some(inner)) = (&whole[w], &parts[p]) else {
                continue;
            };
            let Ok(outer) = tiled.tile_of(&self.tiled_shape, inner, inner_shape) else {
                continue;
            };
            if self.tiles_to(&outer, inner, tiled) {
                return Ok(json!({"layout": outer, "tiled": tiled, "inner": inner}));
            }
        }
        Err(first.into())
    }

    /// Those of the tiled layout and of the inner one.
    fn spellings(&self) -> Result<[Spellings; 2], super::Failure> {
        let rules: Vec<SplitRule> = match &self.split {
            None | Some(Value::Null) => Vec::new(),
            Some(rules @ Value::Array(_)) => inputs(rules.clone())?,
            Some(one) => vec![inputs(one.clone())?],
        };
        let fused: BTreeMap<Axis, (Axis, i64)> = match &self.fuse {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(fuse) => inputs(fuse.clone())?,
        };
        Ok([&self.tiled, &self.inner].map(|of| {
            [
                Some(of.clone()),
                split_by(of, &rules),
                of.fuse_axes(&fused).ok(),
            ]
        }))
    }

    /// Whether copies of `inner` as `outer` says are `tiled`.
    fn tiles_to(&self, outer: &Layout, inner: &Layout, tiled: &Layout) -> bool {
        let sizes = self.tiled_shape.iter().zip(self.inner_shape.iter());
        let counts: Vec<i64> = sizes.map(|(whole, part)| whole / part.max(&1)).collect();
        Layout::tile(outer, &counts, inner, &self.inner_shape)
            .and_then(|again| again.equivalent(tiled))
            .unwrap_or(false)
    }
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
