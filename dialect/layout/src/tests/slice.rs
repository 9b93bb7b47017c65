//! Slices: found exactly when an independent search finds an iter list.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{axis, check, parse};
use crate::{Axis, Iter, Kind, Layout, oracle};

fn ranges(region: &[(i64, i64)]) -> Vec<Range<i64>> {
    region.iter().map(|&(begin, end)| begin..end).collect()
}

/// Checks one box; true when it has a slice.
fn agrees(layout: &Layout, shape: &[i64], region: &[(i64, i64)]) -> bool {
    let expected = oracle::region(layout, shape, region);
    match layout.slice(shape, &ranges(region)) {
        Ok(slice) => {
            let extents: Vec<i64> = region.iter().map(|(b, e)| e - b).collect();
            assert!(slice.admits(&extents));
            assert_eq!(
                oracle::map(&slice),
                expected,
                "{layout} {shape:?} {region:?} -> {slice}"
            );
            true
        }
        Err(error) => {
            assert_eq!(
                error.kind(),
                Kind::None,
                "{layout} {shape:?} {region:?}: {error}"
            );
            // Without replicas: before the swizzle, and, unless copies lie on m, after it.
            let one = layout.clone().with_replica([]).unwrap();
            let plain = one.clone().with_swizzle(None);
            let copied = layout.replica().iter().any(|i| i.axis == Axis::M);
            for part in [Some(plain), Some(one).filter(|_| !copied)]
                .into_iter()
                .flatten()
            {
                let points = oracle::region(&part, shape, region).into_iter();
                let points: Vec<_> = points.filter_map(|s| s.into_iter().next()).collect();
                assert!(
                    !oracle::is_shard_map(&points),
                    "{layout} {shape:?} {region:?}: {error}"
                );
            }
            false
        }
    }
}

#[test]
fn slices_of_generated_layouts() {
    check(1500, |c| {
        let layout = c.layout();
        if layout.size() > 512 {
            return;
        }
        let shape = c.shape(layout.size());
        let region = c.region(&shape);
        agrees(&layout, &shape, &region);
    });
}

/// Every layout of up to three shard iters with these extents and strides, every shape of rank two or
/// less, every box (every layout with few, a spread of them with many iters).
#[test]
fn slices_of_all_small_layouts() {
    let mut iters = Vec::new();
    for extent in 2..=4 {
        for stride in [-1, 0, 1, 2, 3, 4] {
            iters.push(Iter::new(extent, stride, Axis::M));
        }
        iters.push(Iter::new(extent, 1, axis("lane")));
    }
    let mut seed = 0_usize;
    let (mut found, mut none) = (0, 0);
    for (i, a) in iters.iter().enumerate() {
        for b in &iters {
            for c in [None].into_iter().chain(iters.iter().map(Some)) {
                seed = seed.wrapping_mul(31).wrapping_add(i + 7);
                if c.is_some() && !seed.is_multiple_of(41) {
                    continue;
                }
                let layout = Layout::from_shard([*a, *b].into_iter().chain(c.copied())).unwrap();
                let n = layout.size();
                for outer in (1..=n).filter(|d| n % d == 0) {
                    if c.is_some() && outer * outer > 2 * n {
                        continue;
                    }
                    for region in boxes(outer, n / outer, seed) {
                        match agrees(&layout, &[outer, n / outer], &region) {
                            true => found += 1,
                            false => none += 1,
                        }
                    }
                }
            }
        }
    }
    assert!(found > 1000 && none > 1000, "{found} {none}");
}

/// All boxes of a small shape, a spread of those of a larger one.
fn boxes(rows: i64, columns: i64, seed: usize) -> Vec<Vec<(i64, i64)>> {
    let sides = |n: i64| (0..n).flat_map(move |b| (b + 1..=n).map(move |e| (b, e)));
    let all = sides(rows).flat_map(|r| sides(columns).map(move |c| vec![r, c]));
    let step = if rows * columns <= 8 {
        1
    } else {
        31 + seed % 7
    };
    all.step_by(step).collect()
}

/// Addresses 0, 1, 3 are no layout's; under the swizzle they are 0, 1, 2.
#[test]
fn swizzled_addresses_may_be_a_plain_layout() {
    let l = parse("Sw<1,0,1> o S[(2, 2) : (3, 1)]");
    let (mut with, mut without) = (0, 0);
    for begin in 0..4 {
        for end in begin + 1..=4 {
            if agrees(&l, &[4], &[(begin, end)]) {
                let slice = l.slice(&[4], &ranges(&[(begin, end)])).unwrap();
                match slice.swizzle() {
                    Some(_) => with += 1,
                    None => without += 1,
                }
            }
        }
    }
    assert_eq!((with, without), (8, 1));
}

#[test]
fn slice_of_slice_is_slice() {
    check(400, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let outer = c.region(&shape);
        let extents: Vec<i64> = outer.iter().map(|(b, e)| e - b).collect();
        let inner = c.region(&extents);
        let both: Vec<_> = outer
            .iter()
            .zip(&inner)
            .map(|(o, i)| (o.0 + i.0, o.0 + i.1))
            .collect();
        if let Ok(first) = layout.slice(&shape, &ranges(&outer)) {
            let (twice, once) = (
                first.slice(&extents, &ranges(&inner)),
                layout.slice(&shape, &ranges(&both)),
            );
            assert_eq!(twice.is_ok(), once.is_ok());
            if let (Ok(twice), Ok(once)) = (twice, once) {
                assert!(twice.equivalent(&once).unwrap());
            }
        }
    });
}

#[test]
fn covers_are_partitions_into_slices() {
    check(300, |c| {
        let layout = c.plain_layout();
        if layout.size() > 128 {
            return;
        }
        let shape = c.shape(layout.size());
        let region = c.region(&shape);
        let Ok(boxes) = layout.slice_cover(&shape, &ranges(&region)) else {
            return;
        };
        let mut seen = BTreeSet::new();
        for (part, slice) in &boxes {
            let part: Vec<(i64, i64)> = part.iter().map(|r| (r.start, r.end)).collect();
            assert_eq!(oracle::map(slice), oracle::region(&layout, &shape, &part));
            let extents: Vec<i64> = part.iter().map(|(b, e)| e - b).collect();
            for x in 0..slice.size() {
                let inside = oracle::unflatten(&extents, x);
                let at: Vec<i64> = inside.iter().zip(&part).map(|(u, (b, _))| u + b).collect();
                assert!(at.iter().zip(&region).all(|(c, (b, e))| b <= c && c < e));
                assert!(
                    seen.insert(at),
                    "{layout} {shape:?} {region:?}: covered twice"
                );
            }
        }
        let volume: i64 = region.iter().map(|(b, e)| e - b).product();
        assert_eq!(seen.len() as i64, volume, "{layout} {shape:?} {region:?}");
        let one = layout.slice(&shape, &ranges(&region)).is_ok();
        assert_eq!(boxes.len() == 1, one);
    });
}

#[test]
fn known_traps() {
    // A carry that ripples through a full digit, a broadcast digit, a shape that is not groupable.
    let cases = [
        (
            "S[(2, 2, 4) : (100, 10, 1)]",
            &[16][..],
            &[(6, 10)][..],
            Some("S[(2, 2) : (88, 1)] + 12"),
        ),
        (
            "S[(3, 4) : (0, 1)]",
            &[12],
            &[(2, 6)],
            Some("S[(2, 2) : (-2, 1)] + 2"),
        ),
        ("S[(2, 3) : (10, 1)]", &[3, 2], &[(0, 3), (0, 1)], None),
        (
            "S[(4, 6) : (6, 1)]",
            &[6, 4],
            &[(1, 3), (0, 4)],
            Some("S[8 : 1] + 4"),
        ),
        (
            "S[(4, 8) : (1@warp, 1)]",
            &[4, 8],
            &[(1, 3), (2, 6)],
            Some("S[(2, 4) : (1@warp, 1)] + 2 + 1@warp"),
        ),
    ];
    for (text, shape, region, expected) in cases {
        let slice = parse(text).slice(shape, &ranges(region)).ok();
        let form = slice.map(|l| l.canonicalize().to_string());
        assert_eq!(form.as_deref(), expected, "{text}");
    }
    let l = parse("S[(4, 8) : (64, 1)]");
    for bad in [
        &[(0, 4)][..],
        &[(0, 5), (0, 8)],
        &[(-1, 2), (0, 8)],
        &[(2, 2), (0, 8)],
    ] {
        assert_eq!(
            l.slice(&[4, 8], &ranges(bad)).unwrap_err().kind(),
            Kind::Invalid
        );
    }
}
