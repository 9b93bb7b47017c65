//! The order of tiles where an epilogue reads a tensor of the result's size, a residual for example.
//!
//! All CTAs read their tiles of it at about the same time, and operands that come from memory then wait. Probably CTAs that are
//! late find lines evicted that the others of their group have left behind, and become later: with groups of 8 rows and tiles of
//! 128 x 112, 8192 x 28672 x 4096 with a residual takes 6 to 15% more time than the product alone, and in 9 of 10 runs 2.9 to
//! 4.4 GB from memory where 2.5 are wanted. In groups of 4 rows, which want more from the start (4.5), it takes no more time.

use crate::planner::config::{Raster, Wgmma};
use axe_dialect::RasterOrder;

/// Rows of tiles in a group.
const ROWS: i64 = 4;
/// The longest sum for which this is done: of longer ones such reads are a small part, and groups of 8 rows as fast or up to 1%
/// faster.
const SHORT: i64 = 8192;

/// A configuration of the plain product of so long sums, for an epilogue that reads as much as it writes.
pub(super) fn among_reads(config: Wgmma, depth: i64) -> Wgmma {
    let raster = config.raster();
    let is_grouped = matches!(raster.order, RasterOrder::Groups | RasterOrder::Snake);
    if !is_grouped || config.swaps_ab() || depth > SHORT {
        return config;
    }
    config.with_raster(Raster {
        swizzle: raster.swizzle.min(ROWS),
        ..raster
    })
}
