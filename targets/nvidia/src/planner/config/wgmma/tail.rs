//! The last step along k, where the depth is no multiple of a stage's: only what is there of it, in whole steps of the instruction, is
//! fetched and multiplied. The accelerator takes longer for elements that it fills with zeros than for those that it reads, and a
//! product of them takes as long as any.

use super::Wgmma;
use crate::facts::wgmma::K_BYTES;
use crate::planner::config::work::Decomposition;
use crate::planner::layouts::ROW_BYTES;
use crate::planner::problem::{KFirst, count};

impl Wgmma {
    /// Elements of k in the last step of so many, each of so many bytes; a stage's where the last step is as any other. With k first the
    /// rows of a box are along k: each CTA that shares one fetches whole periods of the swizzle, of eight.
    #[must_use]
    pub(in crate::planner) fn last_depth(self, k: i64, bytes: i64, k_first: KFirst) -> i64 {
        let [_, _, depth] = self.tile;
        let rest = k % depth.max(1);
        let whole = matches!(self.decomposition, Decomposition::DataParallel(_));
        if rest <= 0 || !whole {
            return depth;
        }
        let [of_b, of_a] = self.cluster().shape();
        let shared = |first: bool, ctas: i64| if first { 8 * ctas } else { 1 };
        let step = [
            K_BYTES / bytes,
            shared(k_first.a, of_a),
            shared(k_first.b, of_b),
        ];
        // Each is a power of two that divides a row of 16 bits, or less: the largest is a multiple of all.
        let step = step.into_iter().max().unwrap_or(depth);
        let (row, rounded) = (ROW_BYTES / bytes, count(rest, step) * step);
        match rounded {
            rounded if rounded > row => count(rest, row) * row,
            // A part of one of several rows is a digit of it.
            rounded if depth > row => (step..row)
                .find(|part| *part >= rounded && row % part == 0)
                .unwrap_or(row),
            rounded => rounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::config::Cluster;

    const BY_ROWS: KFirst = KFirst { a: false, b: false };
    const OF_B: KFirst = KFirst { a: false, b: true };

    fn tile(depth: i64, bytes: i64) -> Wgmma {
        let chip = chip("sm_90a").unwrap();
        Wgmma::with_depth((64, 64, 1), depth, false, bytes, chip).unwrap()
    }

    #[test]
    fn the_last_step_has_what_is_left_in_steps_of_the_instruction() {
        let of = |k: i64| tile(64, 2).last_depth(k, 2, BY_ROWS);
        assert_eq!(
            [24, 72, 360, 352, 56, 4096].map(of),
            [32, 16, 48, 32, 64, 64]
        );
        assert_eq!(tile(128, 1).last_depth(200, 1, BY_ROWS), 96);
    }

    #[test]
    fn deep_stages_end_with_whole_rows_or_what_divides_one() {
        let of = |k: i64| tile(256, 2).last_depth(k, 2, BY_ROWS);
        assert_eq!([264, 300, 350, 410, 512].map(of), [16, 64, 128, 192, 256]);
    }

    #[test]
    fn ctas_that_share_lines_of_k_have_eight_each() {
        let of = |cluster, k_first| {
            let tile = tile(64, 2).in_clusters(cluster, k_first).unwrap();
            tile.last_depth(72, 2, k_first)
        };
        assert_eq!(of(Cluster::Rows(4), OF_B), 32);
        assert_eq!(of(Cluster::Columns(4), OF_B), 16);
        assert_eq!(of(Cluster::Rows(4), BY_ROWS), 16);
    }

    #[test]
    fn who_shares_depth_has_equal_steps() {
        let chip = chip("sm_90a").unwrap();
        let split = tile(64, 2).split_k(2, 200).unwrap();
        assert_eq!(split.last_depth(200, 2, BY_ROWS), 64);
        let split = tile(64, 2).cluster_split_k(2, 2, chip).unwrap();
        assert_eq!(split.last_depth(200, 2, BY_ROWS), 64);
    }
}
