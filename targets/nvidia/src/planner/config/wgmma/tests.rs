use super::*;
use crate::facts::chip::chip;

#[test]
fn what_no_tile_has_is_refused() {
    let chip = chip("sm_90a").unwrap();
    let tile = |shape, depth| Wgmma::with_depth(shape, depth, false, 2, chip);
    let whole = tile((128, 64, 2), 64).unwrap();
    for far in [0, -64, 1 << 40, 1 << 62, i64::MAX - 63, i64::MIN] {
        assert_eq!(tile((far, 8, 1), 64), None);
        assert_eq!(tile((64, far, 1), 64), None);
        assert_eq!(tile((64, 8, far), 64), None);
        assert_eq!(tile((64, 8, 1), far), None);
        assert_eq!(whole.cluster_split_k(far, 2, chip), None);
        assert_eq!(whole.pingpong(far, 2, chip), None);
    }
}

#[test]
fn splits_have_steps_each() {
    let tile = Wgmma::new((128, 128, 2), 2, chip("sm_90a").unwrap()).unwrap();
    assert!(tile.split_k(3, 129).is_some() && tile.split_k(3, 128).is_none());
    assert!(tile.split_k(0, 4096).is_none() && tile.split_k(MOST_SPLITS + 1, 1 << 20).is_none());
    let pingpong = Wgmma::new((128, 128, 1), 2, chip("sm_90a").unwrap()).unwrap();
    let pingpong = pingpong.pingpong(2, 2, chip("sm_90a").unwrap()).unwrap();
    assert!(pingpong.split_k(2, 4096).is_none());
}

#[test]
fn clusters_fetch_whole_periods_of_the_swizzle() {
    let chip = chip("sm_90a").unwrap();
    let tile = |n| {
        let tile = Wgmma::new((128, n, 1), 2, chip).unwrap();
        tile.pingpong(2, 2, chip).unwrap()
    };
    let k_first = |b| KFirst { a: false, b };
    assert!(
        tile(144)
            .in_clusters(Cluster::Rows(2), k_first(false))
            .is_some()
    );
    assert!(
        tile(152)
            .in_clusters(Cluster::Rows(2), k_first(false))
            .is_none()
    );
    assert!(
        tile(152)
            .in_clusters(Cluster::Rows(2), k_first(true))
            .is_some()
    );
}

#[test]
fn a_fourth_stage_comes_before_a_second_subtile() {
    let chip = chip("sm_90a").unwrap();
    let stages = |shape| Wgmma::new(shape, 2, chip).unwrap().stages();
    assert_eq!(stages((256, 160, 2)), 4);
    assert_eq!(stages((256, 192, 2)), 3);
    assert_eq!(stages((128, 256, 2)), 4);
}

#[test]
fn results_leave_through_what_is_beside_the_stages() {
    let chip = chip("sm_90a").unwrap();
    let pingpong = |n| {
        let tile = Wgmma::new((128, n, 1), 2, chip).unwrap();
        tile.pingpong(2, 2, chip).unwrap()
    };
    let store = |tile: Wgmma| {
        let Store {
            row_bytes,
            subtiles,
            slots,
        } = tile.store(2, chip);
        (tile.stages(), row_bytes, subtiles, slots)
    };
    // 128 rows of a warpgroup: one slot of 128 bytes a row where rows are made of these, else two of 64.
    let double = |tile: Wgmma| tile.double_buffered(2, chip);
    assert_eq!(store(pingpong(128)), (6, 128, 2, 1));
    assert_eq!(double(pingpong(128)).map(store), Some((5, 128, 2, 2)));
    assert_eq!(store(pingpong(176)), (5, 64, 6, 2));
    assert_eq!(double(pingpong(176)).map(store), Some((4, 128, 3, 2)));
    // 64 rows have two slots beside all stages.
    let cooperative = Wgmma::new((128, 256, 2), 2, chip).unwrap();
    assert_eq!(store(cooperative), (4, 128, 4, 2));
    assert_eq!(double(cooperative), None);
    // Those of a swapped tile have all of its rows.
    let swapped = Wgmma::swapped((256, 128, 2), 2, chip).unwrap();
    assert_eq!(store(swapped).3, 1);
    for config in [pingpong(64), swapped] {
        let two = double(config).unwrap();
        assert!(
            two.stages() < config.stages() && two.store(2, chip).slots >= 2,
            "{two}"
        );
    }
}

#[test]
fn accumulators_fit_in_registers() {
    let tile = |shape| Wgmma::new(shape, 2, chip("sm_90a").unwrap());
    // ptxas takes 192 accumulators of 384 threads where others give registers up, and refuses an instruction of
    // 128 with 512.
    assert!(tile((128, 256, 2)).is_some() && tile((256, 192, 2)).is_some());
    assert!(tile((256, 208, 2)).is_none());
    assert!(tile((192, 192, 3)).is_some() && tile((192, 256, 3)).is_none());
    assert!(tile((64, 256, 1)).is_some() && tile((128, 200, 1)).is_none());
}

#[test]
fn groups_have_cooperative_tiles_of_ctas_alone() {
    let chip = chip("sm_90a").unwrap();
    let k_first = KFirst { a: false, b: false };
    let tile = Wgmma::new((128, 128, 2), 2, chip).unwrap();
    let grouped = tile.grouped().unwrap();
    assert!(grouped.is_grouped() && !tile.is_grouped());
    assert_eq!(grouped.in_clusters(Cluster::Rows(2), k_first), None);
    assert_eq!(grouped.in_clusters(Cluster::Alone, k_first), Some(grouped));
    let clustered = tile.in_clusters(Cluster::Rows(2), k_first).unwrap();
    assert_eq!(clustered.grouped(), None);
    let one = Wgmma::new((128, 128, 1), 2, chip).unwrap();
    assert_eq!(one.grouped().unwrap().pingpong(2, 2, chip), None);
    assert_eq!(one.pingpong(2, 2, chip).unwrap().grouped(), None);
    let swapped = Wgmma::with_depth((16, 64, 1), 64, true, 2, chip).unwrap();
    assert_eq!(swapped.grouped(), None);
    assert_eq!(tile.split_k(2, 4096).unwrap().grouped(), None);
}
