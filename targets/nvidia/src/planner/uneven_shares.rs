//! Rows of which CTAs have not as many columns each, as far as these are summed up in f64 or their moments are formed: what a warp does once a row is much there.

use super::problem::count;
use super::row::Row;
use super::row_shares::{PART_VECTORS, Share, Shares, UNALIGNED_MOMENT_BYTES, VECTORS, rounded_up};
use crate::facts::chip::{MOST_CLUSTER, NON_PORTABLE_CLUSTER};
use crate::vocabulary::WARP;

/// CTAs of rows that are summed up in f64 or whose moments are formed, where they have not as many columns each, and their warps.
const UNEVEN_CTAS: [i64; 5] = [1, 2, 4, MOST_CLUSTER, NON_PORTABLE_CLUSTER];
const UNEVEN_WARPS: i64 = 4;
/// Bytes of their parts, at least and at most: of rows that are summed up in f64. Where rows begin anywhere, threads have single elements. Measured, LayerNorm of f32:
/// 10,007 columns take 79.0 us, 83.7 in registers, 16,387 85.5 and 101.1, 33,333 86.9 and 100.9 by eight warps with a front that is peeled off, 50,257 87.6 and
/// 101.6, 100,001 96.6 and 109.3; 28,704 80.3 and 86.2 by eight warps, 60,008 84.3 and 93.4, 120,000 84.0 and 95.4.
const WIDENED: [i64; 2] = [0, 36 * 1024];
/// Those of rows whose moments are formed: parts of about ten tiles of two vectors. Measured, LayerNorm of f16: 36,008 columns take 79.3 us, 84.9 in shorter parts,
/// 70,000 81.6 and 85.1, 151,936 81.9 and 103.8; 60,008, in parts of 32 KiB, 99.7 and 91.5.
const UNEVEN_MOMENTS: [i64; 2] = [36 * 1024, 44 * 1024];
/// The same where rows begin anywhere. Measured: 50,257 columns of f16 take 109.4 us, 126 by eight warps of two CTAs, 65,537 116.6 and 120.0.
const UNALIGNED_MOMENTS: [i64; 2] = [0, 28 * 1024];

/// By few warps of CTAs that have not as many columns each, of rows that are summed up in f64 or whose moments are formed.
pub(super) fn uneven(shares: Shares) -> Option<Share> {
    let Row {
        columns,
        adds,
        has_moments,
        is_widened,
        ..
    } = shares.row;
    let vectors = match has_moments && !shares.is_aligned {
        true => PART_VECTORS,
        false => VECTORS,
    };
    let tile = shares.tile(WARP, vectors);
    let part = |ctas: &i64| Share {
        tile,
        warps: UNEVEN_WARPS,
        ctas: *ctas,
        columns: rounded_up(count(columns, *ctas), UNEVEN_WARPS * tile.columns),
        has_common: false,
    };
    let within = |range: [i64; 2]| {
        let bytes = move |share: &Share| share.columns.saturating_mul(shares.row.read);
        let fits = move |share: &Share| (range[0]..=range[1]).contains(&bytes(share));
        UNEVEN_CTAS.iter().map(part).find(fits)
    };
    match (has_moments, shares.is_aligned) {
        (true, true) => within(UNEVEN_MOMENTS).filter(|share| share.ctas > 1),
        (true, false) if columns.saturating_mul(shares.row.read) > UNALIGNED_MOMENT_BYTES => {
            // Measured: 25,003 columns take 132 us by two CTAs, 123.8 by eight warps of each.
            within(UNALIGNED_MOMENTS).filter(|share| share.ctas > 2)
        }
        _ if is_widened && adds => within(WIDENED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::row_shares::share;

    /// CTAs, their warps, elements of a lane and columns.
    fn check(row: Row, columns: i64, wanted: [i64; 4]) {
        let own = share(Row { columns, ..row }, chip("sm_90a").unwrap());
        let own = own.map(|own| [own.ctas, own.warps, own.tile.columns / WARP, own.columns]);
        assert_eq!(own, Some(wanted), "{columns}");
    }

    #[test]
    fn rows_whose_moments_are_formed_are_parts_of_few_warps() {
        let row = Row {
            repeated: 4,
            has_moments: true,
            adds: true,
            folds: 3,
            ..Row::plain(0, 2)
        };
        check(row, 16_387, [1, 8, 8, 18_432]);
        check(row, 28_704, [2, 4, 8, 15_360]);
        check(row, 36_008, [2, 4, 16, 18_432]);
        check(row, 50_257, [4, 4, 8, 13_312]);
        check(row, 65_537, [8, 4, 8, 9216]);
        check(row, 151_936, [8, 4, 16, 20_480]);
    }

    #[test]
    fn rows_that_are_summed_up_in_f64_are_short_parts_of_few_warps() {
        let row = Row {
            repeated: 8,
            is_widened: true,
            adds: true,
            folds: 2,
            ..Row::plain(0, 4)
        };
        check(row, 12_001, [2, 4, 8, 6144]);
        check(row, 16_387, [2, 4, 8, 9216]);
        check(row, 60_008, [8, 4, 8, 8192]);
        check(row, 65_537, [8, 4, 8, 9216]);
        check(row, 120_000, [16, 4, 8, 8192]);
        check(row, 32_768, [4, 8, 8, 8192]);
    }
}
