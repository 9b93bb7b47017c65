//! Tests of [`super`].

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::tests::{axis, check, parse};
use crate::{Kind, oracle};

fn values(iter: &Iter) -> BTreeSet<oracle::Point> {
    (0..iter.extent)
        .map(|x| oracle::shard_point(&[*iter], x * (iter.extent > 1) as i64))
        .collect()
}

proptest! {
    #[test]
    fn iters_meet_in_what_both_produce(
        e in 1_i64..20, s in -12_i64..12, f in 1_i64..20, t in -12_i64..12, apart: bool,
    ) {
        let (p, other) = (axis("P"), axis(if apart { "F" } else { "P" }));
        let (a, b) = (Iter::new(e, s, p), Iter::new(f, t, other));
        let both = a.intersect(&b).unwrap();
        let want: BTreeSet<_> = values(&a).intersection(&values(&b)).cloned().collect();
        prop_assert_eq!(values(&both), want);
    }

    #[test]
    fn runs_are_the_largest_there_are(
        iters in prop::collection::vec((1_i64..6, -9_i64..9), 0..6),
    ) {
        let f = axis("F");
        let iters: Vec<Iter> = iters.iter().map(|&(e, s)| Iter::new(e, s, f)).collect();
        let moving: Vec<usize> =
            (0..iters.len()).filter(|&k| iters[k].extent > 1 && iters[k].stride != 0).collect();
        let smallest = moving.iter().map(|&k| iters[k].stride.abs()).min();
        // The extent of a selection that is one progression with the smallest stride.
        let run = |chosen: &[usize]| -> Option<i64> {
            let mut set = BTreeSet::from([0]);
            for &k in chosen {
                let step = iters[k].stride.abs();
                set = set.iter().flat_map(|x| (0..iters[k].extent).map(move |i| x + i * step)).collect();
            }
            let list: Vec<i64> = set.into_iter().collect();
            let even = list.windows(2).all(|w| Some(w[1] - w[0]) == smallest);
            even.then_some(list.len() as i64)
        };
        let best = (1_usize..1 << moving.len())
            .filter_map(|mask| {
                let chosen: Vec<usize> =
                    moving.iter().enumerate().filter(|(b, _)| mask >> b & 1 == 1).map(|(_, &k)| k).collect();
                let has = chosen.iter().any(|&k| Some(iters[k].stride.abs()) == smallest);
                run(&chosen).filter(|_| has)
            })
            .max();
        let found = Iter::largest_run(&iters, f).unwrap();
        prop_assert_eq!(found.as_ref().map(|(_, run)| run.extent), best);
        if let Some((chosen, single)) = found {
            prop_assert_eq!(run(&chosen), Some(single.extent));
            prop_assert_eq!(Some(single.stride), smallest);
        }
    }
}

/// Whether a set from 0 is the sum of some steps: all multisets of its elements that add up to its
/// largest, a definition away from the searches of the crate.
fn is_sum(points: &BTreeSet<i64>, sums: &BTreeSet<i64>, from: i64) -> bool {
    if sums == points {
        return true;
    }
    points.iter().filter(|&&p| p >= from.max(1)).any(|&p| {
        let more: BTreeSet<i64> = sums.iter().flat_map(|s| [*s, s + p]).collect();
        more.is_subset(points) && is_sum(points, &more, p)
    })
}

fn image(layout: &Layout) -> BTreeSet<oracle::Point> {
    oracle::map(layout).into_iter().flatten().collect()
}

/// How often there was an answer, and how often a proof that there is none but something shared.
fn agrees(a: &Layout, b: &Layout) -> (u32, u32) {
    let shared: BTreeSet<_> = image(a).intersection(&image(b)).cloned().collect();
    match a.intersect(b) {
        Ok(both) => {
            assert_eq!(image(&both), shared, "{a} and {b}: {both}");
            (1, 0)
        }
        Err(error) if error.kind() == Kind::None => {
            if shared.is_empty() {
                return (0, 0);
            }
            let axes: BTreeSet<Axis> = shared.iter().flat_map(|p| p.keys().copied()).collect();
            let sum_on = |axis: &Axis| {
                let on = |p: &oracle::Point| p.get(axis).copied().unwrap_or(0) as i64;
                let values: BTreeSet<i64> = shared.iter().map(on).collect();
                let first = *values.first().unwrap();
                let points = values.iter().map(|v| v - first).collect();
                is_sum(&points, &BTreeSet::from([0]), 1)
            };
            let same_swizzle = a.swizzle() == b.swizzle();
            assert!(
                !same_swizzle || !axes.iter().all(sum_on),
                "{a} and {b}: {error}, but {shared:?}"
            );
            (0, 1)
        }
        Err(error) => panic!("{a} and {b}: {error}"),
    }
}

#[test]
fn layouts_meet_in_what_both_reach() {
    check(300, |choices| {
        let (a, b) = (choices.layout(), choices.layout());
        if a.size() <= 256 && b.size() <= 256 {
            agrees(&a, &b);
            assert_eq!(agrees(&a, &a), (1, 0));
        }
    });
}

/// Two layouts of up to two iters on one axis, with offsets: an answer exactly when there is one.
#[test]
fn a_small_universe_complete() {
    let mut sets = Vec::new();
    for (e, s) in [(1, 1), (2, 1), (3, 1), (4, 2), (2, 3), (3, -4), (2, 6)] {
        for (f, t) in [(1, 1), (2, 2), (3, 5), (2, 7), (4, 8), (3, 0)] {
            for offset in [0, 1, 5] {
                let on_m = |e, s| Iter::new(e, s, Axis::M);
                let layout = Layout::from_shard([on_m(e, s)]).unwrap();
                let offset = Coord::from_terms([(Axis::M, offset)]).unwrap();
                let layout = layout.with_replica([on_m(f, t)]).unwrap();
                sets.push(layout.with_offset(offset).unwrap());
            }
        }
    }
    let (mut found, mut none) = (0, 0);
    for a in &sets {
        for b in &sets {
            let (yes, no) = agrees(a, b);
            (found, none) = (found + yes, none + no);
        }
    }
    assert!(found > 5000 && none > 20, "{found} {none}");
}

/// The `K` iters of two matmul operands on the partitions of Trainium (appendix H).
#[test]
fn partitions_of_a_matmul() {
    let (p, f) = (axis("P"), axis("F"));
    let a = [
        Iter::new(4, 32, p),
        Iter::new(32, 1, p),
        Iter::new(2, 512, f),
    ];
    let b = [
        Iter::new(4, 32, p),
        Iter::new(32, 2, p),
        Iter::new(2, 64, p),
    ];
    let shared = Iter::intersect_each(&a, &b, p).unwrap();
    assert_eq!(shared, [(0, a[0]), (1, Iter::new(16, 2, p))]);
    assert!(Iter::intersect_each(&a, &b[..2], p).is_err());
    assert!(Iter::intersect_each(&a[..1], &[Iter::new(5, 1, p)], p).is_err());
    assert_eq!(
        Iter::largest_run(&a, p).unwrap(),
        Some((vec![0, 1], Iter::new(128, 1, p)))
    );
    assert_eq!(Iter::largest_run(&a[2..], p).unwrap(), None);
}

#[test]
fn large_structured_sets_are_not_enumerated() {
    for (a, b, want) in [
        (
            "S[1099511627776 : 3]",
            "S[1099511627776 : 5] + 1",
            "S[219902325555 : 15] + 6",
        ),
        (
            "S[(1048576, 1024) : (4096, 1)]",
            "S[(1048576, 64) : (8192, 2)] + 512",
            "S[(524288, 64) : (8192, 2)] + 512",
        ),
        (
            "S[1099511627776 : 1]",
            "S[(1000, 7) : (1000003, 11)] + 5",
            "S[(1000, 7) : (1000003, 11)] + 5",
        ),
    ] {
        let both = parse(a).intersect(&parse(b)).unwrap();
        assert!(
            both.equivalent(&parse(want)).unwrap(),
            "{a} and {b}: {both}"
        );
    }
    let none = |a, b| parse(a).intersect(&parse(b)).unwrap_err().kind();
    assert_eq!(
        none("S[1099511627776 : 2]", "S[1099511627776 : 4] + 1"),
        Kind::None
    );
    // A dynamic extent is as long as it takes; two are open.
    let both = parse("S[(?, 4)]").intersect(&parse("S[4 : 9]"));
    assert_eq!(both.unwrap(), parse("S[4 : 9]"));
    assert_eq!(none("S[(?, 4)]", "S[(?, 4)]"), Kind::Unsupported);
}

#[test]
fn swizzles_that_differ_meet_by_address() {
    for (a, b) in [
        ("Sw<2,2,2> o S[64 : 1]", "S[32 : 1]"),
        ("Sw<2,2,2> o S[4 : 1] + 16", "S[4 : 1] + 20"),
        ("Sw<1,0,1> o S[] + 2", "S[] + 3"),
        ("Sw<1,0,1> o S[] + 2", "S[]"),
    ] {
        agrees(&parse(a), &parse(b));
    }
    let both = parse("Sw<2,2,2> o S[(4, 4) : (16, 1)]").intersect(&parse("Sw<2,2,2> o S[32 : 1]"));
    assert_eq!(both.unwrap().to_string(), "Sw<2,2,2> o S[(2, 4) : (16, 1)]");
}

#[test]
fn iters_at_the_edge_of_64_bits() {
    let far = Iter::new(2, i64::MAX, Axis::M);
    assert_eq!(far.intersect(&far).unwrap(), far);
    let near = Iter::new(i64::MAX, 1, Axis::M);
    assert_eq!(near.intersect(&far).unwrap().extent, 1);
    assert_eq!(
        Iter::new(3, i64::MAX, Axis::M)
            .intersect(&far)
            .unwrap_err()
            .kind(),
        Kind::Overflow
    );
    assert_eq!(
        Iter::new(0, 1, Axis::M).intersect(&far).unwrap_err().kind(),
        Kind::Invalid
    );
    let open = Iter::new(DYNAMIC, 1, Axis::M);
    assert_eq!(open.intersect(&far).unwrap_err().kind(), Kind::Unsupported);
    assert!(Iter::largest_run(&[open], Axis::M).is_err());
}
