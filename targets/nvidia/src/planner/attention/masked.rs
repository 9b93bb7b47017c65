//! Which blocks of keys of a tile a mask cuts, as far as it is known when the kernel is planned.

use super::config::Config;
use crate::planner::problem::count;
use axe_passes::fuse::attention::visible::Visible;

/// Tiles for which the blocks of a mask are counted when the kernel is planned.
const MOST_COUNTED: i64 = 1 << 16;

/// What is known of the masked blocks of all tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Blocks of all tiles; none where they are too many to be counted.
    pub blocks: Option<i64>,
    /// Each tile has so many blocks beside its last one, and no tile has more masked ones there: 0 where some tile has fewer blocks.
    pub peeled: i64,
    /// Whether some tile may have masked blocks beside its last one and those.
    pub above: bool,
    /// Whether some tile may have masked blocks before its first whole one.
    pub below: bool,
}

/// Masked blocks at most that are no loop.
const MOST_PEELED: i64 = 1;

/// Looks at each tile, where they are not too many.
#[must_use]
pub fn known(visible: &Visible, config: Config, rows: i64, keys: i64) -> Known {
    let below = !visible.from.is_empty();
    if visible.is_data() {
        let along = visible.to.iter().any(|edge| edge.per_row != 0);
        let by_label = !visible.segments.is_empty();
        return Known {
            blocks: None,
            peeled: 0,
            above: along || !visible.rows.is_empty() || visible.all_where_none || by_label,
            below: below || visible.all_where_none || by_label,
        };
    }
    let tiles = count(rows, config.rows());
    // A part of a tile's blocks may end anywhere.
    if tiles > MOST_COUNTED || config.splits > 1 {
        return Known {
            blocks: None,
            peeled: 0,
            above: true,
            below,
        };
    }
    let (mut most, mut least, mut blocks) = (0, i64::MAX, 0);
    for tile in 0..tiles {
        let row = tile * config.rows();
        let [first, end] = visible.some(row, config.rows(), keys);
        let top = count(end.max(0), config.keys).max(1) - 1;
        let first = (first.max(0) / config.keys).min(top);
        let [_, whole_end] = visible.all(row, config.rows(), keys);
        most = most.max(top - (whole_end.max(0) / config.keys).clamp(first, top));
        least = least.min(top - first);
        blocks += top - first + 1;
    }
    let peeled = if most <= MOST_PEELED.min(least) {
        most
    } else {
        0
    };
    Known {
        blocks: Some(blocks),
        peeled,
        above: most > peeled,
        below,
    }
}

/// What is known of all tiles, however many rows and keys there are.
#[must_use]
pub fn known_of_any(visible: &Visible, config: Config) -> Known {
    let below = !visible.from.is_empty();
    let unknown = Known {
        blocks: None,
        peeled: 0,
        above: true,
        below,
    };
    let diagonal = visible.from.is_empty() && matches!(visible.to.as_slice(), [_]);
    if !diagonal || visible.has_lengths() || config.splits > 1 || !visible.rows.is_empty() {
        return unknown;
    }
    // Where an edge is one line, tiles repeat: each of so many rows has it at the same place of a block. Fewer keys leave no more
    // masked blocks beside the last one.
    let most = (0..config.keys).map(|tile| {
        let row = (tile + config.keys) * config.rows();
        let [_, end] = visible.some(row, config.rows(), i64::MAX / 2);
        let [_, whole] = visible.all(row, config.rows(), i64::MAX / 2);
        count(end.max(0), config.keys).max(1) - 1 - whole.max(0) / config.keys
    });
    Known {
        above: most.max() > Some(0),
        ..unknown
    }
}

#[cfg(test)]
mod tests;
