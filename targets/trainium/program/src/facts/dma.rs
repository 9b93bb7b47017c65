//! How fast data moves between HBM and SBUF.

use super::chip::{Chip, Generation};

/// DMA engines of a core (DMA).
pub const ENGINES: i64 = 16;
/// Partitions that one DMA engine serves (DMA: one engine for every 8 partitions).
pub const PARTITIONS_PER_ENGINE: i64 = 8;
/// From the issue of a transfer to its first byte, in seconds (DMA).
pub const START_LATENCY: f64 = 1.3e-6;
/// What generating descriptors in hardware costs an instruction, in seconds, on trn2 (DGE).
pub const DESCRIPTOR_SECONDS: f64 = 0.6e-6;

/// Bytes contiguous in a partition, and the part of the peak rate that they reach on trn1: fitted to the times that the
/// tutorial publishes for its three products that wait for DMA (MM: about 103 GB/s with rows of 256 to 1024 bytes,
/// 128 GB/s at 2 KiB).
const TRN1_EFFICIENCY: [(f64, f64); 4] =
    [(256.0, 0.38), (1024.0, 0.38), (2048.0, 0.47), (4096.0, 1.0)];
/// Bytes contiguous in a partition that reach the peak on trn2 (DMA: 2 KiB is near the peak). The square root below it
/// is an assumption.
const TRN2_FULL_BYTES: f64 = 2048.0;

/// The part of the peak rate that transfers reach with `chunk` contiguous bytes a partition.
#[must_use]
pub fn efficiency(chip: &Chip, chunk: i64) -> f64 {
    let chunk = chunk.max(1) as f64;
    match chip.generation {
        Generation::Gen2 => interpolate(chunk),
        Generation::Gen3 => (chunk / TRN2_FULL_BYTES).min(1.0).sqrt(),
    }
}

/// Linear between the fitted points; proportional to the chunk below the first.
fn interpolate(chunk: f64) -> f64 {
    let [first, .., last] = TRN1_EFFICIENCY;
    if chunk <= first.0 {
        return first.1 * chunk / first.0;
    }
    TRN1_EFFICIENCY
        .windows(2)
        .find(|pair| chunk <= pair[1].0)
        .map_or(last.1, |pair| {
            let (low, high) = (pair[0], pair[1]);
            low.1 + (high.1 - low.1) * (chunk - low.0) / (high.0 - low.0)
        })
}

#[cfg(test)]
mod tests {
    use super::super::chip::{TRN1, TRN2};
    use super::*;

    #[test]
    fn efficiency_is_the_fitted_one_and_grows() {
        for (chunk, expected) in [
            (256, 0.38),
            (1024, 0.38),
            (2048, 0.47),
            (4096, 1.0),
            (1 << 20, 1.0),
        ] {
            assert!(
                (efficiency(&TRN1, chunk) - expected).abs() < 1e-12,
                "{chunk}"
            );
        }
        for chip in [&TRN1, &TRN2] {
            let rates: Vec<f64> = (0..16).map(|bits| efficiency(chip, 1 << bits)).collect();
            assert!(rates.is_sorted() && rates[0] > 0.0 && rates[15] <= 1.0);
        }
    }
}
