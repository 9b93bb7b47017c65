//! Clusters of CTAs that bring keys and values for each other.

use super::config::{BYTES, Config, Problem};
use crate::facts::chip::Chip;
use crate::planner::knobs::Plan;

impl Config {
    /// The same in clusters of two, where their CTAs can bring keys and values for each other: blocks of 16-bit elements, which come in 16
    /// keys, fall into halves of whole periods of the swizzle. Those of 8 bits take 1.02 to 1.11 times as long so; and beside masks ptxas
    /// has no registers for a tile's place in its cluster: 140 bytes that it spilled between products made those of SAM's attention 3.4
    /// times as long.
    pub(super) fn in_pairs(self, problem: &Problem) -> Option<Self> {
        let can = self.splits == 1 && problem.same_blocks && problem.bytes == BYTES;
        (can && problem.masks == 0).then_some(Self { cluster: 2, ..self })
    }

    /// The same in the cluster that a plan asks for; the cost model's, where it does not say.
    pub(super) fn clustered(
        self,
        problem: &Problem,
        plan: &Plan,
        chip: &Chip,
    ) -> Result<Self, String> {
        let pairs = self.in_pairs(problem);
        match plan.cluster {
            Some([1, 1]) => Ok(self),
            Some([2, 1]) => pairs.ok_or_else(|| {
                "expected cluster = array<i64: 2, 1> in axe.plan of attention where all tiles of 16-bit elements go through the same keys, in one part, without pages and masks".to_owned()
            }),
            Some(shape) => Err(format!(
                "expected cluster = array<i64: 1, 1> or array<i64: 2, 1> in axe.plan of attention, got {shape:?}"
            )),
            None => Ok(pairs
                .filter(|pairs| pairs.clocks(problem, chip) < self.clocks(problem, chip))
                .unwrap_or(self)),
        }
    }

    /// CTAs of a chip that has so many multiprocessors at most: whole clusters.
    #[must_use]
    pub const fn ctas(self, problem: &Problem, multiprocessors: i64) -> i64 {
        let clusters = self.tiles(problem) / self.cluster;
        let most = multiprocessors / self.cluster;
        (if clusters < most { clusters } else { most }) * self.cluster
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::attention::config::configure;
    use crate::planner::attention::config::tests::problem;

    #[test]
    fn long_problems_of_two_warpgroups_are_in_clusters() {
        let chip = chip("sm_90a").expect("a chip");
        let cluster = |problem: &Problem| {
            let own = configure(problem, &Plan::default(), chip).expect("fits");
            (own.consumers, own.cluster)
        };
        let long = problem(8192, 128);
        assert_eq!(cluster(&long), (2, 2));
        assert_eq!(cluster(&problem(8192, 64)), (3, 1));
        // 61 us for 57.
        assert_eq!(
            cluster(&Problem {
                batch: 16,
                ..problem(2048, 128)
            }),
            (2, 1)
        );
        for alone in [
            Problem {
                same_blocks: false,
                ..long
            },
            Problem { bytes: 1, ..long },
            Problem { masks: 1, ..long },
            // The second CTA of each cluster would have nothing to do.
            Problem {
                rows: 128,
                batch: 8192,
                ..long
            },
        ] {
            assert_eq!(cluster(&alone).1, 1, "{alone:?}");
        }
    }

    #[test]
    fn rows_inside_of_sectors_are_read_by_clusters_and_tall_tiles() {
        let chip = chip("sm_90a").expect("a chip");
        let aligned = problem(4096, 80);
        let straddles = Problem {
            straddles: true,
            ..aligned
        };
        let of = |problem: &Problem| configure(problem, &Plan::default(), chip).expect("fits");
        assert_eq!(of(&aligned).cluster, 1);
        // 813 us before, 590 so.
        assert_eq!((of(&straddles).consumers, of(&straddles).cluster), (3, 2));
        let causal = Problem {
            causal: Some(1),
            seen: 0.5,
            same_blocks: false,
            ..straddles
        };
        assert_eq!((of(&causal).consumers, of(&causal).cluster), (3, 1));
    }

    #[test]
    fn ctas_are_whole_clusters() {
        let chip = chip("sm_90a").expect("a chip");
        let asked = Plan::of_text("{tile = array<i64: 128, 96, 128>, cluster = array<i64: 2, 1>}")
            .expect("a dictionary");
        let odd = Problem {
            batch: 3,
            ..problem(300, 128)
        };
        let own = configure(&odd, &asked.expect("a plan"), chip).expect("fits");
        assert_eq!(
            (own.splits, own.tiles(&odd), own.ctas(&odd, 132)),
            (1, 12, 12)
        );
        assert_eq!(own.ctas(&odd, 7), 6);
    }
}
