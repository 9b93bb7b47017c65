//! Tiles, sums and their factors against the definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::check;
use crate::oracle::Point;
use crate::{Axis, Kind, Layout, oracle};

/// The interleaved coordinate `x || y` and its index in the interleaved shape.
fn index(left: &[i64], right: &[i64], x: i64, y: i64) -> i64 {
    let (x, y) = (oracle::unflatten(left, x), oracle::unflatten(right, y));
    let pairs = left.iter().zip(right).zip(x.iter().zip(&y));
    pairs.fold(0, |at, ((l, r), (x, y))| (at * l + x) * r + y)
}

/// Every `left(x) * scale + right(y)`.
fn sums(
    left: &BTreeSet<Point>,
    right: &BTreeSet<Point>,
    scale: &BTreeMap<Axis, i128>,
) -> BTreeSet<Point> {
    let mut sums = BTreeSet::new();
    for p in left {
        for q in right {
            let mut sum = q.clone();
            for (&axis, &value) in p {
                let total = sum.remove(&axis).unwrap_or(0) + value * scale[&axis];
                if total != 0 {
                    sum.insert(axis, total);
                }
            }
            sums.insert(sum);
        }
    }
    sums
}

#[test]
fn tiles_and_sums_are_those_of_the_definition_and_factor_back() {
    check(200, |c| {
        let (a, b) = (c.plain_layout(), c.plain_layout());
        if a.size() * b.size() > 96 || a.replica_count() * b.replica_count() > 64 {
            return;
        }
        let (mut sa, mut sb) = (c.shape(a.size()), c.shape(b.size()));
        let rank = sa.len().max(sb.len());
        sa.resize(rank, 1);
        sb.resize(rank, 1);
        for spans in [true, false] {
            let made = if spans {
                Layout::tile(&a, &sa, &b, &sb)
            } else {
                Layout::direct_sum(&a, &sa, &b, &sb)
            };
            let made = match made {
                Ok(made) => made,
                Err(error) => {
                    assert_eq!(error.kind(), Kind::None, "{error}");
                    continue;
                }
            };
            let span = |axis| {
                let (low, high) = oracle::range(&b, axis);
                if spans { high - low + 1 } else { 1 }
            };
            let scale = a
                .axes()
                .into_iter()
                .map(|axis| (axis, span(axis)))
                .collect();
            let right = oracle::map(&b);
            for (x, at_x) in (0..).zip(oracle::map(&a)) {
                for (y, at_y) in (0..).zip(&right) {
                    let expected = sums(&at_x, at_y, &scale);
                    let got = oracle::points(&made, index(&sa, &sb, x, y));
                    assert_eq!(got, expected, "{a} {b}");
                }
            }
            let whole: Vec<i64> = sa.iter().zip(&sb).map(|(a, b)| a * b).collect();
            let both: Vec<i64> = sa.iter().zip(&sb).flat_map(|(a, b)| [*a, *b]).collect();
            if spans {
                let outer = made.tile_of(&whole, &b, &sb).unwrap();
                assert!(oracle::same(&outer, &a), "{a} (x) {b} gave {outer}");
                let inner = made.tile_of_outer(&whole, &a, &sa).unwrap();
                let again = Layout::tile(&a, &sa, &inner, &sb).unwrap();
                assert!(oracle::same(&again, &made), "{a} (x) {inner}");
            } else {
                let left = made.direct_sum_of_right(&both, &b, &sb).unwrap();
                let again = Layout::direct_sum(&left, &sa, &b, &sb).unwrap();
                assert!(oracle::same(&again, &made), "{left} + {b}");
                let right = made.direct_sum_of_left(&both, &a, &sa).unwrap();
                let again = Layout::direct_sum(&a, &sa, &right, &sb).unwrap();
                assert!(oracle::same(&again, &made), "{a} + {right}");
            }
        }
    });
}

#[test]
fn swizzled_tiles_factor_from_both_sides() {
    let atom = super::parse("Sw<3,3,3> o S[(8, 64) : (64, 1)]");
    let outer = super::parse("S[(2, 2) : (2, 1)]");
    let tiled = Layout::tile(&outer, &[2, 2], &atom, &[8, 64]).unwrap();
    let inner = tiled.tile_of_outer(&[16, 128], &outer, &[2, 2]).unwrap();
    assert!(inner.equivalent(&atom).unwrap());
    let found = tiled.tile_of(&[16, 128], &atom, &[8, 64]).unwrap();
    assert!(found.equivalent(&outer).unwrap());
    // Copies of 4 rows are half a period apart: the swizzle is of the whole alone.
    let rows = super::parse("S[(4, 1) : (1, 1)]");
    let error = tiled.tile_of_outer(&[16, 128], &rows, &[4, 1]).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
}

/// A tiling of swizzled copies is the map that the definition says, the composition the swizzle over the
/// plain tiling, and tiles go through both ways.
#[test]
fn swizzles_are_tiled_as_defined_or_composed() {
    check(400, |c| {
        let (a, b) = (c.plain_layout(), c.layout());
        let (na, nb) = (a.size(), b.size());
        if na * nb * a.replica_count() * b.replica_count() > 4096 {
            return;
        }
        let plain = b.clone().with_swizzle(None);
        let whole = Layout::tile(&a, &[na], &plain, &[nb]).unwrap();
        let composed = Layout::compose_tile(&a, &[na], &b, &[nb]).unwrap();
        assert_eq!(composed, whole.with_swizzle(b.swizzle()));
        let Ok(tiled) = Layout::tile(&a, &[na], &b, &[nb]) else {
            return;
        };
        for z in 0..na * nb {
            let mut want = std::collections::BTreeSet::new();
            for outer in oracle::points(&a, z / nb) {
                for mut point in oracle::points(&b, z % nb) {
                    for (&axis, &value) in &outer {
                        let sum = point.remove(&axis).unwrap_or(0)
                            + value * i128::from(plain.span(axis).unwrap());
                        if sum != 0 {
                            point.insert(axis, sum);
                        }
                    }
                    want.insert(point);
                }
            }
            assert_eq!(
                oracle::points(&tiled, z),
                want,
                "{a} (x) {b} = {tiled} at {z}"
            );
        }
        if let Ok(outer) = tiled.tile_of(&[na * nb], &b, &[nb]) {
            let again = Layout::tile(&outer, &[na], &b, &[nb]).unwrap();
            assert!(oracle::same(&again, &tiled), "{outer} (x) {b} = {tiled}");
        }
    });
    let atom = super::parse("Sw<3,3,3> o S[(4, 64) : (64, 1)]");
    let tile = atom.tile_to(&[16, 64], &[4, 64]).unwrap();
    assert_eq!(tile.canonicalize().to_string(), "Sw<3,3,3> o S[1024 : 1]");
    let row = super::parse("Sw<3,3,3> o S[(1, 64) : (64, 1)]");
    let tile = row.tile_to(&[8, 64], &[1, 64]).unwrap();
    assert_eq!(tile.canonicalize().to_string(), "Sw<3,3,3> o S[512 : 1]");
}

/// What each operation says of shapes that no layout admits, whichever part is wrong.
#[test]
fn shapes_that_are_not_admitted_are_invalid() {
    let (a, b) = (
        super::parse("S[(2, 2) : (2, 1)]"),
        super::parse("S[(2, 4) : (4, 1)]"),
    );
    let tiled = Layout::tile(&a, &[2, 2], &b, &[2, 4]).unwrap();
    let invalid = |result: Result<Layout, crate::Error>| {
        assert_eq!(result.unwrap_err().kind(), Kind::Invalid);
    };
    invalid(Layout::tile(&a, &[2, 3], &b, &[2, 4]));
    invalid(Layout::tile(&a, &[2, 2], &b, &[2, 2]));
    invalid(Layout::tile(&a, &[4], &b, &[2, 4]));
    invalid(Layout::tile(&a, &[-2, -2], &b, &[2, 4]));
    invalid(tiled.tile_of(&[4, 4], &b, &[2, 4]));
    invalid(tiled.tile_of(&[4, 8], &b, &[2, 2]));
    invalid(tiled.tile_of(&[4, 8], &b, &[4, 3]));
    invalid(tiled.tile_of(&[4, 8], &b, &[8]));
    invalid(tiled.tile_of_outer(&[4, 8], &a, &[2, 4]));
    invalid(tiled.tile_of_outer(&[4, 4], &a, &[2, 2]));
    invalid(tiled.tile_of_outer(&[4, 8], &a, &[0, 2]));
}
