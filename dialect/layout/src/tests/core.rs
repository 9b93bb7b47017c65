//! Canonical form, equality, evaluation, sizes, grouping.

use std::collections::HashMap;

use super::{axis, check, coord, parse};
use crate::sumset::{self, Steps};
use crate::{Axis, Coord, DYNAMIC, Iter, Kind, Layout, oracle};

#[test]
fn canonicalize_keeps_the_map_and_is_idempotent() {
    check(800, |c| {
        let layout = c.layout();
        let canonical = layout.canonicalize();
        assert!(oracle::same(&layout, &canonical), "{layout} -> {canonical}");
        assert_eq!(canonical.canonicalize(), canonical, "{layout}");
        assert!(layout.equivalent(&canonical).unwrap());
    });
}

/// Every spelling of a map under any swizzle has the same form: pairs of layouts under each other's
/// swizzles, which agree now and then.
#[test]
fn swizzled_maps_have_one_form() {
    let forms = |layouts: &[Layout]| {
        for (k, a) in layouts.iter().enumerate() {
            for b in &layouts[..k] {
                let same = oracle::same(a, b);
                assert_eq!(a.canonicalize() == b.canonicalize(), same, "{a} and {b}");
                assert_eq!(a.equivalent(b).unwrap(), same, "{a} and {b}");
            }
        }
    };
    let texts = [
        "S[(2, 2) : (1, 2)] + 8",
        "S[(2, 2) : (2, -1)] + 10",
        "S[(2, 2, 3) : (2, 1@lane, 4)] + R[2 : 1]",
        "S[12 : 1] + 20",
        "S[(3, 4) : (8, -1)] + 3",
    ];
    for text in texts {
        let mut layouts = vec![parse(text)];
        for (bits, base, shift) in [
            (1, 0, 1),
            (1, 0, 2),
            (2, 0, 2),
            (1, 1, 1),
            (2, 1, 2),
            (1, 0, 3),
            (2, 0, 3),
            (1, 2, 1),
        ] {
            for inner in [true, false] {
                let swizzle = crate::Swizzle::new(bits, base, shift, inner).unwrap();
                layouts.push(parse(text).with_swizzle(Some(swizzle)));
            }
        }
        let all: Vec<Layout> = layouts
            .iter()
            .flat_map(|a| [a.clone(), a.canonicalize()])
            .collect();
        forms(&all);
    }
    check(200, |c| {
        let (a, b) = (c.layout(), c.layout());
        if a.size() * a.replica_count() > 1024 {
            return;
        }
        let (x, y) = (
            a.clone().with_swizzle(b.swizzle()),
            a.clone().with_swizzle(None),
        );
        forms(&[x.canonicalize(), a, x, y]);
    });
}

#[test]
fn equality_is_equality_of_maps() {
    check(800, |c| {
        let (a, b) = (c.layout(), c.layout());
        assert_eq!(a.equivalent(&b).unwrap(), oracle::same(&a, &b), "{a} {b}");
        // A near miss: one stride or the offset changed.
        let mut shard = a.shard().to_vec();
        if let Some(first) = shard.first_mut() {
            first.stride += i64::from(c.below(3)) - 1;
        }
        let near = Layout::new(
            shard,
            a.replica().iter().copied(),
            a.offset().clone(),
            b.swizzle(),
        );
        let near = near.unwrap();
        assert_eq!(
            a.equivalent(&near).unwrap(),
            oracle::same(&a, &near),
            "{a} {near}"
        );
    });
}

/// All replica lists of up to three steps with small extents and strides: canonical forms agree exactly
/// when the sets do.
#[test]
fn replica_sets_have_one_form() {
    let mut steps = Vec::new();
    for extent in 2..=5 {
        for stride in 1..=6 {
            steps.push(Iter::new(extent, stride, Axis::M));
        }
    }
    let mut lists: Vec<Vec<Iter>> = vec![Vec::new()];
    for i in 0..steps.len() {
        lists.push(vec![steps[i]]);
        for j in i..steps.len() {
            lists.push(vec![steps[i], steps[j]]);
            for k in (j..steps.len()).step_by(3) {
                lists.push(vec![steps[i], steps[j], steps[k]]);
            }
        }
    }
    let mut forms: HashMap<Vec<i128>, Layout> = HashMap::new();
    for list in lists {
        let layout = Layout::new([], list, Coord::new(), None).unwrap();
        let set = oracle::replica_points(layout.replica());
        let set = set.iter().map(|p| p.get(&Axis::M).copied().unwrap_or(0));
        let canonical = layout.canonicalize();
        let other = forms
            .entry(set.collect())
            .or_insert_with(|| canonical.clone());
        assert_eq!(*other, canonical, "{layout}");
    }
}

#[test]
fn large_replica_sets_compare() {
    let equal = |a: &str, b: &str| parse(a).equivalent(&parse(b));
    // Beyond enumeration, under the gap condition and by halves.
    assert!(
        equal(
            "S[] + R[(1048576, 16) : (1, 1048576)]",
            "S[] + R[16777216 : 1]"
        )
        .unwrap()
    );
    let a = "S[] + R[(3, 2, 2, 4194304) : (2, 3, 6, 1000)]";
    let b = "S[] + R[(6, 2, 2048, 2048) : (2, 3, 1000, 2048000)]";
    let c = "S[] + R[(6, 2, 2048, 2048) : (2, 5, 1000, 2048000)]";
    assert!(equal(a, b).unwrap());
    assert!(!equal(a, c).unwrap());
    // Millions of sums that mostly coincide: all numbers but those next to the ends.
    let twos = "S[] + R[(1501, 1001) : (2, 3)]";
    assert!(equal(twos, "S[] + R[(1504, 999) : (2, 3)]").unwrap());
    assert!(
        !equal(
            "S[] + R[(3001, 2001) : (2, 3)]",
            "S[] + R[(3001, 1201) : (2, 5)]"
        )
        .unwrap()
    );
    let far = equal(
        "S[] + R[(40000001, 3) : (2, 3)]",
        "S[] + R[(39999998, 5) : (2, 3)]",
    );
    assert_eq!(far.unwrap_err().kind(), Kind::Unsupported);
}

/// Sets as bits are the sets of points.
#[test]
fn dense_sets_are_the_points() {
    check(300, |c| {
        let step = |c: &mut crate::generate::Choices<'_>| {
            (2 + i64::from(c.below(40)), 6 * (1 + i64::from(c.below(30))))
        };
        let steps: Steps = (0..c.below(4)).map(|_| step(c)).collect();
        let points = sumset::points(&steps, i64::MAX).unwrap();
        assert_eq!(sumset::listed_by_bits(&steps), Some(points), "{steps:?}");
    });
}

#[test]
fn apply_and_invert_are_converses() {
    check(300, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let mut inverse: HashMap<Coord, Vec<i64>> = HashMap::new();
        for x in 0..layout.size() {
            let expected = oracle::points(&layout, x);
            let at = oracle::unflatten(&shape, x);
            let got = layout.apply(&shape, &at).unwrap();
            let mut expected: Vec<Coord> = expected.iter().map(coord).collect();
            expected.sort_unstable();
            assert_eq!(got.as_slice(), expected, "{layout} at {x}");
            for point in expected {
                inverse.entry(point).or_default().push(x);
            }
        }
        for (point, indices) in inverse.iter().take(200) {
            assert_eq!(
                &layout.invert(point).unwrap(),
                indices,
                "{layout} at {point}"
            );
            let mut off = point.clone();
            off.add(axis("lane"), 1).unwrap();
            let expected = inverse.get(&off).cloned().unwrap_or_default();
            assert_eq!(layout.invert(&off).unwrap(), expected, "{layout} at {off}");
        }
    });
}

#[test]
fn coordinates_outside_are_errors() {
    let l = parse("S[(2, 3) : (3, 1)]");
    for (shape, at) in [
        (&[6][..], &[6][..]),
        (&[6], &[-1]),
        (&[2, 3], &[1]),
        (&[7], &[0]),
        (&[0, 6], &[0, 0]),
        (&[-2, -3], &[0, 0]),
    ] {
        assert_eq!(l.apply(shape, at).unwrap_err().kind(), Kind::Invalid);
    }
    assert!(l.points(6).is_err());
    assert!(l.points(-1).is_err());
}

#[test]
fn span_and_cosize_are_those_of_the_points() {
    check(400, |c| {
        let layout = c.layout();
        for name in ["m", "lane", "warp", "nowhere"] {
            let (low, high) = oracle::range(&layout, axis(name));
            assert_eq!(
                i128::from(layout.span(axis(name)).unwrap()),
                high - low + 1,
                "{layout}"
            );
            match layout.cosize(axis(name)) {
                Ok(cosize) if layout.swizzle().is_none() => {
                    assert_eq!(i128::from(cosize), high + 1, "{layout}");
                }
                Ok(cosize) => assert!(i128::from(cosize) > high, "{layout}"),
                Err(_) => assert!(layout.raw_range(axis(name)).0 < 0),
            }
        }
    });
}

#[test]
fn dynamic_layouts() {
    let l = parse("S[(?, 64) : (64, 1)]");
    assert!(l.admits(&[DYNAMIC, 64]) && l.admits(&[DYNAMIC, 8, 8]) && l.admits(&[DYNAMIC, 32]));
    assert!(!l.admits(&[DYNAMIC, 48]) && !l.admits(&[64]) && !l.admits(&[64, DYNAMIC]));
    assert!(!parse("S[64 : 1]").admits(&[DYNAMIC, 64]));
    assert_eq!(l.strides(&[DYNAMIC, 64]).unwrap(), [64, 1]);
    let grouped = l.group(&[DYNAMIC, 8, 8]).unwrap();
    assert_eq!(grouped.layout.to_string(), "S[(?, 8, 8) : (64, 8, 1)]");
    assert_eq!(grouped.seps[..], [0, 1, 2, 3]);
    assert!(l.equivalent(&parse("S[(?, 2, 32) : (64, 32, 1)]")).unwrap());
    assert!(!l.equivalent(&parse("S[(?, 64) : (65, 1)]")).unwrap());
    assert!(l.span(Axis::M).is_err() && l.cosize(Axis::M).is_err());
    let at = Coord::from_terms([(Axis::M, 6415)]).unwrap();
    assert_eq!(l.invert(&at).unwrap(), [6415]);
    assert_eq!(l.canonicalize(), l);
    assert_eq!(l.origin(130).unwrap().get(Axis::M), 130);
}

#[test]
fn group_keeps_the_map_in_the_fewest_iters() {
    check(800, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let other = c.shape(layout.size());
        // By definition: every boundary and every canonical boundary on one chain of divisors.
        let mut cuts: Vec<i64> = crate::tests::core::weights(&shape);
        // The swizzle apart: under another one the map may have other iters.
        let fused = layout.clone().with_swizzle(None).canonicalize();
        let extents: Vec<i64> = fused.shard().iter().map(|i| i.extent).collect();
        cuts.extend(weights(&extents));
        cuts.sort_unstable();
        cuts.dedup();
        let possible = cuts.windows(2).all(|w| w[1] % w[0] == 0);
        match layout.group(&shape) {
            Ok(grouped) => {
                assert!(possible);
                assert!(oracle::same(&layout, &grouped.layout), "{layout} {shape:?}");
                assert_eq!(grouped.seps.len(), shape.len() + 1);
                assert_eq!(grouped.seps.last(), Some(&grouped.layout.shard().len()));
                for (block, extent) in grouped.blocks().zip(&shape) {
                    assert_eq!(block.iter().map(|i| i.extent).product::<i64>(), *extent);
                }
                assert_eq!(
                    grouped.layout.shard().len() + 1,
                    cuts.len(),
                    "{layout} {shape:?}"
                );
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::None);
                assert!(!possible, "{layout} {shape:?}: {error}");
            }
        }
        if let Ok(many) = layout.group_many(&[&shape[..], &other[..]]) {
            assert!(oracle::same(&layout, &many.layout));
            for (seps, shape) in many.seps.iter().zip([&shape, &other]) {
                for (ends, extent) in seps.windows(2).zip(shape) {
                    let block = &many.layout.shard()[ends[0]..ends[1]];
                    assert_eq!(block.iter().map(|i| i.extent).product::<i64>(), *extent);
                }
            }
        }
    });
}

pub(super) fn weights(shape: &[i64]) -> Vec<i64> {
    let mut weights = vec![1];
    for extent in shape.iter().rev() {
        weights.push(weights[weights.len() - 1] * extent);
    }
    weights
}

#[test]
fn group_errors_name_iter_and_dimension() {
    let error = parse("S[(4, 6) : (1@warp, 1)]").group(&[6, 4]).unwrap_err();
    let message = "no grouping: iter 6:1 straddles the boundary before dimension 1 of [6, 4]";
    assert_eq!(error.to_string(), message);
    assert_eq!(
        parse("S[4 : 1]").group(&[3]).unwrap_err().kind(),
        Kind::Invalid
    );
}

#[test]
fn permutation_transposes() {
    check(200, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let mut perm: Vec<usize> = (0..shape.len()).collect();
        perm.rotate_left(usize::from(c.below(4)) % shape.len());
        let Ok(moved) = layout.permute_dims(&shape, &perm) else {
            return;
        };
        let to: Vec<i64> = perm.iter().map(|&k| shape[k]).collect();
        for x in 0..layout.size() {
            let at = oracle::unflatten(&to, x);
            let mut from = vec![0; shape.len()];
            for (k, &p) in perm.iter().enumerate() {
                from[p] = at[k];
            }
            let there = oracle::points(&layout, oracle::flatten(&shape, &from));
            assert_eq!(oracle::points(&moved, x), there);
        }
    });
    assert!(parse("S[4 : 1]").permute_groups(&[0, 1], &[1]).is_err());
    assert!(parse("S[4 : 1]").permute_groups(&[0, 2], &[0]).is_err());
    assert!(parse("S[4 : 1]").permute_groups(&[], &[]).is_err());
}

#[test]
fn strides_of_strided_storage() {
    check(400, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        if let Ok(strides) = layout.strides(&shape) {
            let strided = Layout::strided(&shape, &strides).unwrap();
            let strided = strided.with_offset(layout.offset().clone()).unwrap();
            assert!(oracle::same(&layout, &strided), "{layout} {strided}");
        }
    });
    assert_eq!(
        parse("S[(4, 1, 3) : (3, 9, 1)]")
            .strides(&[4, 1, 3])
            .unwrap(),
        [3, 3, 1]
    );
    assert_eq!(
        parse("S[(4, 3) : (1, 4)]").strides(&[2, 2, 3]).unwrap(),
        [2, 1, 4]
    );
    assert!(parse("S[(4, 3) : (1, 4)]").strides(&[12]).is_err());
    assert!(parse("S[4 : 1@lane]").strides(&[4]).is_err());
}
