//! The tiles of a product's last wave, which are too few for the chip's multiprocessors: their depth is shared through memory
//! (stream-K with a data-parallel wave for each that is full; Osama et al., "Stream-K", 2023).

use crate::facts::chip::Chip;
use crate::planner::config::{Decomposition, Wgmma};
use crate::planner::problem::{Problem, count};

/// CTAs of a tile that the cost model considers at most: their sums are written and read once each.
const MOST_OFFERED: i64 = 8;
/// Steps of a part at least, so that filling the ring is not most of it.
const LEAST_STEPS: i64 = 4;

/// The tiles of the last wave, counted in those of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::planner) struct LastWave {
    /// Tiles that fill waves.
    pub whole: i64,
    /// The others.
    pub rest: i64,
    /// CTAs that share each of these.
    pub splits: i64,
    /// Steps along k of a part.
    pub steps: i64,
}

impl LastWave {
    /// The last wave of a configuration that shares it; `None` where no tile fills a wave or all do, or where a part would
    /// have no steps.
    pub(in crate::planner) fn of(config: Wgmma, [m, n, k]: [i64; 3], chip: &Chip) -> Option<Self> {
        let Decomposition::StreamK(_, splits) = config.decomposition() else {
            return None;
        };
        let (whole, rest) = whole_and_rest(config, [m, n], chip);
        let all = count(k, config.tile()[2]);
        let steps = count(all, splits);
        let possible = whole > 0 && rest > 0 && (splits - 1).saturating_mul(steps) < all;
        possible.then_some(Self {
            whole,
            rest,
            splits,
            steps,
        })
    }
}

/// The configuration with as many CTAs to a tile as fill the last wave, where there are some worth trying.
pub(in crate::planner) fn offered(config: Wgmma, problem: Problem, chip: &Chip) -> Option<Wgmma> {
    let Problem { batch, m, n, k, .. } = problem;
    let Decomposition::DataParallel(_) = config.decomposition() else {
        return None;
    };
    let (_, rest) = whole_and_rest(config, [m, n], chip);
    let fill = chip.clusters(config.ctas()) / rest.max(1);
    let long = count(k, config.tile()[2]) / LEAST_STEPS;
    let shared = config.stream_k(fill.min(long).min(MOST_OFFERED))?;
    (batch == 1 && LastWave::of(shared, [m, n, k], chip).is_some()).then_some(shared)
}

/// The tiles that fill waves, and the others.
fn whole_and_rest(config: Wgmma, [m, n]: [i64; 2], chip: &Chip) -> (i64, i64) {
    let [high, wide] = config.span();
    let tiles = count(m, high).saturating_mul(count(n, wide));
    let rest = tiles % chip.clusters(config.ctas()).max(1);
    (tiles - rest, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::config::{Cluster, MOST_SPLITS};
    use crate::planner::problem::{KFirst, Unit};
    use proptest::prelude::*;

    const K_FIRST: KFirst = KFirst { a: true, b: true };

    fn sm_90a() -> &'static Chip {
        chip("sm_90a").unwrap()
    }

    fn whole(shape: (i64, i64, i64)) -> Wgmma {
        Wgmma::with_depth(shape, 64, false, 2, sm_90a()).unwrap()
    }

    fn tile(splits: i64) -> Wgmma {
        whole((64, 64, 1)).stream_k(splits).unwrap()
    }

    fn problem(m: i64, n: i64, k: i64) -> Problem {
        Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        }
    }

    #[test]
    fn the_tiles_beyond_whole_waves_are_shared() {
        let of = |tile, extents| LastWave::of(tile, extents, sm_90a());
        let last = |whole, rest, steps| {
            Some(LastWave {
                whole,
                rest,
                splits: 3,
                steps,
            })
        };
        // 13 x 12 tiles on 132 multiprocessors; the last ones are ragged.
        assert_eq!(of(tile(3), [832, 768, 576]), last(132, 24, 3));
        assert_eq!(of(tile(3), [801, 705, 8 * 64 + 1]), last(132, 24, 3));
        // 25 x 13 of them are two waves and 61.
        assert_eq!(of(tile(3), [1600, 832, 640]), last(264, 61, 4));
        // Tiles of pairs are counted, of which 66 run at once.
        let pairs = |cluster| tile(3).in_clusters(cluster, K_FIRST).unwrap();
        assert_eq!(
            of(pairs(Cluster::Rows(2)), [832, 768, 576]),
            last(66, 18, 3)
        );
        assert_eq!(
            of(pairs(Cluster::Columns(2)), [832, 768, 576]),
            last(66, 12, 3)
        );
    }

    #[test]
    fn what_shares_no_last_wave_has_none() {
        let of = |tile, extents| LastWave::of(tile, extents, sm_90a());
        let some = [832, 768, 576];
        assert_eq!(of(tile(1), some), None);
        // All tiles fill a wave, or none does.
        assert_eq!(of(tile(3), [704, 768, 576]), None);
        assert_eq!(of(tile(3), [704, 704, 576]), None);
        // The third part of four steps would have none.
        assert_eq!(of(tile(3), [832, 768, 4 * 64]), None);
        assert_eq!(of(tile(3), [832, 768, 64]), None);
        for splits in [i64::MIN, -1, 0, MOST_SPLITS + 1, i64::MAX] {
            assert_eq!(whole((64, 64, 1)).stream_k(splits), None);
        }
        let swapped = Wgmma::with_depth((16, 64, 1), 64, true, 2, sm_90a()).unwrap();
        assert_eq!(swapped.stream_k(2), None);
    }

    #[test]
    fn long_sums_of_few_last_tiles_are_offered() {
        let offered = |problem| {
            let shared = offered(whole((64, 64, 1)), problem, sm_90a())?;
            Some(shared.decomposition().sharing().1)
        };
        // 24 tiles in five parts each are 120; 61 in two.
        assert_eq!(offered(problem(832, 768, 4096)), Some(5));
        assert_eq!(offered(problem(1600, 832, 4096)), Some(2));
        // Seven steps have no two parts of four; most of the chip is busy with 92 tiles.
        assert_eq!(offered(problem(832, 768, 7 * 64)), None);
        assert_eq!(offered(problem(64 * 14, 64 * 16, 4096)), None);
        let batch = Problem {
            batch: 2,
            ..problem(832, 768, 4096)
        };
        assert_eq!(offered(batch), None);
    }

    proptest! {
        /// Every tile is whole or in the last wave, and every step is in one part.
        #[test]
        fn nothing_is_left_out(
            [m, n, k] in [1..1_i64 << 20, 1..1_i64 << 20, 1..1_i64 << 20],
            splits in 1..=MOST_SPLITS,
            cluster in prop::sample::select(vec![
                Cluster::Alone, Cluster::Rows(2), Cluster::Rows(4), Cluster::Columns(2), Cluster::Columns(4)
            ]),
        ) {
            let tile = whole((128, 96, 2)).stream_k(splits).unwrap();
            let tile = tile.in_clusters(cluster, K_FIRST).unwrap();
            let Some(last) = LastWave::of(tile, [m, n, k], sm_90a()) else {
                return Ok(());
            };
            let [high, wide] = tile.span();
            prop_assert_eq!(last.whole + last.rest, count(m, high) * count(n, wide));
            let wave = sm_90a().clusters(cluster.ctas());
            prop_assert!(last.whole % wave == 0 && last.whole > 0 && (1..wave).contains(&last.rest));
            let all = count(k, 64);
            prop_assert!(splits * last.steps >= all && (splits - 1) * last.steps < all);
        }

        #[test]
        fn hostile_sizes_have_an_answer(
            [m, n, k] in prop::array::uniform3(prop_oneof![
                Just(i64::MIN), Just(-1), Just(0), Just(1), Just(i64::MAX), Just(1 << 62), any::<i64>()
            ]),
            splits in 1..=MOST_SPLITS,
            batch: i64,
        ) {
            LastWave::of(tile(splits), [m, n, k], sm_90a());
            let problem = Problem { batch, ..problem(m, n, k) };
            if let Some(tile) = offered(whole((64, 64, 1)), problem, sm_90a()) {
                prop_assert!((2..=MOST_OFFERED).contains(&tile.decomposition().sharing().1));
            }
        }
    }
}
