//! The order of tiles where an epilogue reads a tensor of the result's size, a residual for example.
//!
//! All CTAs read their tiles of it at about the same time, and operands that come from memory then wait. CTAs that are late
//! find lines evicted that the others of their group have left behind, and become later. In groups of fewer rows that costs
//! less. With 8 rows, tiles of 128 x 112 and 8192 x 28672 x 4096, a residual takes 3.4 to 4.4 GB from memory in the place of
//! 2.6, and 6 to 15% of the time; with 4 rows, none.

use crate::planner::config::{Raster, Wgmma};
use axe_dialect::RasterOrder;

/// Rows of tiles in a group.
const ROWS: i64 = 4;
/// The longest sum for which this is done: of longer ones such reads are too small a part, and groups of 8 rows are 1% faster.
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
