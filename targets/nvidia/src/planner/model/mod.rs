//! How long kernels take: a model for each mainloop, whose rates are the chip's.

mod copies;
pub mod mma;
pub mod wgmma;

use super::config::Config;
use super::problem::Query;
use crate::facts::chip::Chip;

/// How sharply the longest of what goes on at once decides: within a tile and between tiles, and between all tiles and memory.
const SHARPNESS: f64 = 10.0;
/// See [`SHARPNESS`].
const MEMORY_SHARPNESS: f64 = 2.5;

/// A little more than the largest.
fn together<const N: usize>(clocks: [f64; N], sharpness: f64) -> f64 {
    let most = clocks.into_iter().fold(f64::MIN_POSITIVE, f64::max);
    let sum: f64 = clocks
        .iter()
        .map(|clocks| (clocks / most).powf(sharpness))
        .sum();
    most * sum.powf(1.0 / sharpness)
}

/// Clocks that a product is predicted to take, with the copies that `wgmma` takes of operands whose rows no tensor map does.
#[must_use]
pub fn clocks(query: Query, config: Config, chip: &Chip) -> f64 {
    match config {
        Config::Wgmma(config) => {
            let adding = query.blocks.map_or(1.0, |_| wgmma::adding(config, chip));
            wgmma::cost(config, query.problem, query.k_first, chip) * adding + copies(query, chip)
        }
        Config::Mma(config) => mma::cost(query.problem, query.k_first, config, chip),
    }
}

/// Clocks of the copies of operands whose rows no tensor map takes, before a product by `wgmma`.
#[must_use]
pub fn copies(query: Query, chip: &Chip) -> f64 {
    copies::cost(query.problem, query.k_first, chip)
}

/// Clocks of a kernel whose work is to move so many bytes, by all multiprocessors.
#[must_use]
pub fn moving(bytes: i64, chip: &Chip) -> f64 {
    bytes as f64 / chip.multiprocessors as f64 / chip.mma.l2_bytes + chip.mma.overhead
}
