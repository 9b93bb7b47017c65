use super::*;
use axe_passes::fuse::attention::visible::Edge;

fn config(consumers: i64, keys: i64) -> Config {
    Config {
        consumers,
        keys,
        stages: 2,
        query_stages: 1,
        columns: 64,
        splits: 1,
        cluster: 1,
    }
}

fn causal(consumers: i64, keys: i64) -> Known {
    let visible = Visible {
        to: vec![Edge::of(1, 1)],
        ..Visible::default()
    };
    known(&visible, config(consumers, keys), 2048, 2048)
}

#[test]
fn masked_blocks_of_a_diagonal_are_peeled_where_each_tile_has_them() {
    for (consumers, keys, peeled, above) in [
        (2, 128, 0, false),
        (2, 64, 1, false),
        (3, 128, 1, false),
        // The first tile has two blocks, and others have three masked ones.
        (2, 80, 0, true),
    ] {
        let known = causal(consumers, keys);
        assert_eq!((known.peeled, known.above), (peeled, above), "{keys}");
        assert!(!known.below);
    }
    // 1 to 16 blocks of the 16 tiles.
    assert_eq!(causal(2, 128).blocks, Some(136));
}

#[test]
fn what_is_known_of_any_lengths_holds_of_all() {
    for (consumers, keys) in [(1, 80), (2, 64), (2, 96), (2, 128), (3, 128), (2, 176)] {
        let config = config(consumers, keys);
        for start in [-70, 0, 1, 2, 33, 128, 500] {
            let visible = Visible {
                to: vec![Edge::of(1, start)],
                ..Visible::default()
            };
            let any = known_of_any(&visible, config);
            let lengths = [1, 63, 64, 65, 129, 300, 1000, 2048];
            for (rows, keys) in lengths.into_iter().flat_map(|a| lengths.map(|b| (a, b))) {
                let own = known(&visible, config, rows, keys);
                let above = own.above || own.peeled > 0;
                assert!(any.above || !above, "{config} {start} {rows} {keys}");
            }
        }
    }
    assert!(!known_of_any(&diagonal(), config(2, 128)).above);
    assert!(known_of_any(&diagonal(), config(2, 96)).above);
}

fn diagonal() -> Visible {
    Visible {
        to: vec![Edge::of(1, 1)],
        ..Visible::default()
    }
}

#[test]
fn a_window_has_masked_blocks_at_both_ends() {
    let edge = |start| vec![Edge::of(1, start)];
    let window = Visible {
        from: edge(-99),
        to: edge(1),
        ..Visible::default()
    };
    assert!(known(&window, config(2, 128), 2048, 2048).below);
}
