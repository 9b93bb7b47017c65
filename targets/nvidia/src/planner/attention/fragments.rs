//! How warpgroups hold scores, weights and results in registers.

use axe_layout::{Axis, Iter, Layout};

/// Columns of an accumulator from one value of a lane to its next ones (PTX ISA 9.7.15.5.1.1).
pub(super) const LANE_COLUMNS: i64 = 8;

/// The accumulators of scores whose weights have 8 bits: registers that share a word of A's fragment follow each other. A thread has
/// four columns of 16 in a word, which are k of the second product in the order of [`super::by_column::DIGITS`].
pub(super) fn accumulators_of_bytes(consumers: i64, columns: i64) -> axe_layout::Result<Layout> {
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    Layout::from_shard([
        Iter::new(4 * consumers, 1, warp),
        Iter::new(2, 4, reg),
        Iter::new(8, 4, lane),
        Iter::new(columns / 16, 8, reg),
        Iter::new(2, 2, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}

/// The accumulators of `wgmma` over the consumers, 64 rows each (PTX ISA 9.7.15.5.1.1, "Register Fragments").
pub(super) fn accumulators(consumers: i64, columns: i64) -> axe_layout::Result<Layout> {
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    Layout::from_shard([
        Iter::new(4 * consumers, 1, warp),
        Iter::new(2, 2, reg),
        Iter::new(8, 4, lane),
        Iter::new(columns / 8, 4, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}
