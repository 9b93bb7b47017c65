//! The parts of a tile that CTAs of a cluster fetch for each other.

use crate::plan::Decline;
use crate::state::form::Storage;
use axe_layout::Iter;
use serde::{Deserialize, Serialize};

/// The part of a tile that one CTA of a cluster fetches for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Share {
    /// The dimension of the tile that falls into parts.
    #[serde(default, skip_serializing_if = "is_first")]
    pub dim: usize,
    /// The extent of a part along it.
    pub extent: i64,
    /// Elements between the parts in shared memory.
    pub step: i64,
    /// How many CTAs fetch parts for each other, and how far apart their ranks are, where not all of the cluster do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among: Option<[i64; 2]>,
}

impl Share {
    /// How many CTAs fetch parts for each other in a cluster of so many, and how far apart their ranks are.
    pub(super) fn ctas(self, cluster: i64) -> [i64; 2] {
        self.among.unwrap_or([cluster, 1])
    }
}

/// The first of the parts of a shared tile that so many CTAs fetch for each other, cut along its columns where those are panels of a swizzle's
/// width, so that a part has fewer boxes, and along its rows otherwise.
pub(super) fn share<'c>(
    shared: &Storage<'c>,
    among: Option<[i64; 2]>,
    cluster: i64,
) -> Result<(Storage<'c>, Share), Decline> {
    let parts = among.map_or(cluster, |[ctas, _]| ctas);
    by_panels(shared, parts, among)
        .map_or_else(|| by_rows(shared, parts, among), Ok)
        .map(|(iters, share)| {
            let mut part = shared.clone();
            if let Some(extent) = part.shape.get_mut(share.dim) {
                *extent = share.extent;
            }
            if let Some(own) = part.dims.get_mut(share.dim) {
                *own = iters;
            }
            (part, share)
        })
}

/// Whole panels, and the iterators of the columns of so many.
fn by_panels(
    shared: &Storage<'_>,
    parts: i64,
    among: Option<[i64; 2]>,
) -> Option<(Vec<Iter>, Share)> {
    let [_, columns] = shared.shape.as_slice() else {
        return None;
    };
    let [_, iters] = shared.dims.as_slice() else {
        return None;
    };
    let [panels, column] = iters.as_slice() else {
        return None;
    };
    let own = panels.extent / parts;
    let share = Share {
        dim: 1,
        extent: columns / parts,
        step: own * panels.stride,
        among,
    };
    let falls = panels.extent % parts == 0 && begins_period(shared, share.step);
    let first = Iter::new(own, panels.stride, panels.axis);
    falls.then(|| (vec![first, *column], share))
}

/// Rows, and their iterators.
fn by_rows(
    shared: &Storage<'_>,
    parts: i64,
    among: Option<[i64; 2]>,
) -> Result<(Vec<Iter>, Share), Decline> {
    let (Some(&rows), Some(iters)) = (shared.shape.first(), shared.dims.first()) else {
        return Err(Decline::new("expected a tile of at least one dimension"));
    };
    let [iter] = iters.as_slice() else {
        return Err(Decline::new("the rows of the tile are not evenly apart"));
    };
    let share = Share {
        dim: 0,
        extent: rows / parts,
        step: rows / parts * iter.stride,
        among,
    };
    if rows % parts != 0 || !begins_period(shared, share.step) {
        return Err(Decline::new(format!(
            "{rows} rows do not fall into {parts} parts that begin with the swizzle's period"
        )));
    }
    let own = Iter::new(share.extent, iter.stride, iter.axis);
    Ok((vec![own], share))
}

/// Whether a swizzle starts anew so many elements behind where it does.
fn begins_period(shared: &Storage<'_>, step: i64) -> bool {
    step % shared.swizzle.map_or(1, |swizzle| swizzle.period()) == 0
}

/// Whether a dimension is the first.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_first(dim: &usize) -> bool {
    *dim == 0
}
