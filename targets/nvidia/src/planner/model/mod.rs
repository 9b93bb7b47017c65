//! How long kernels take: a model for each mainloop, whose rates are the chip's.

pub mod mma;
pub mod wgmma;

use super::config::Config;
use super::problem::Query;
use crate::facts::chip::Chip;

/// Clocks that a product is predicted to take.
#[must_use]
pub fn clocks(query: Query, config: Config, chip: &Chip) -> f64 {
    match config {
        Config::Wgmma(config) => {
            let adding = query.blocks.map_or(1.0, |_| wgmma::adding(config, chip));
            wgmma::cost(config, query.problem, query.k_first, chip) * adding
        }
        Config::Mma(config) => mma::cost(query.problem, config, chip),
    }
}
