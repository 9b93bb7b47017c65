//! Laws between operations: what one says, another confirms.

use std::collections::{BTreeMap, BTreeSet};

use super::{Choices, axis, check};
use crate::analysis::{alias, overlap};
use crate::{Axis, Coord, DYNAMIC, Iter, Kind, Layout, oracle};

#[test]
fn group_then_flatten_is_the_layout() {
    check(400, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let Ok(grouped) = layout.group(&shape) else {
            return;
        };
        assert_eq!(grouped.layout.canonicalize(), layout.canonicalize());
        let flat = grouped.layout.group(&[layout.size()]).unwrap();
        assert_eq!(flat.layout.canonicalize(), layout.canonicalize());
        // Grouping a grouped layout changes nothing, and neither does a refinement first.
        let again = grouped.layout.group(&shape).unwrap();
        assert_eq!(
            (&again.layout, &again.seps),
            (&grouped.layout, &grouped.seps)
        );
        let both = layout.group_many(&[&shape[..], &[layout.size()]]).unwrap();
        assert_eq!(both.layout.canonicalize(), layout.canonicalize());
        for (seps, shape) in both.seps.iter().zip([&shape[..], &[layout.size()]]) {
            let extents: Vec<i64> = seps
                .windows(2)
                .map(|ends| {
                    both.layout.shard()[ends[0]..ends[1]]
                        .iter()
                        .map(|i| i.extent)
                        .product()
                })
                .collect();
            assert_eq!(extents, shape);
        }
    });
}

#[test]
fn equality_is_an_equivalence_that_canonical_forms_represent() {
    check(400, |c| {
        let (a, b) = (c.plain_layout(), c.plain_layout());
        let equal = a.equivalent(&b).unwrap();
        assert_eq!(equal, b.equivalent(&a).unwrap());
        assert_eq!(equal, a.canonicalize() == b.canonicalize(), "{a} and {b}");
        assert!(a.equivalent(&a.canonicalize()).unwrap());
    });
}

#[test]
fn permutations_have_inverses() {
    check(300, |c| {
        let layout = c.layout();
        let shape = c.shape(layout.size());
        let mut order: Vec<usize> = (0..shape.len()).collect();
        let by = usize::from(c.below(8)) % order.len();
        order.rotate_left(by);
        let Ok(turned) = layout.permute_dims(&shape, &order) else {
            return;
        };
        let turned_shape: Vec<i64> = order.iter().map(|&k| shape[k]).collect();
        let mut back = vec![0; order.len()];
        for (k, &from) in order.iter().enumerate() {
            back[from] = k;
        }
        let again = turned.permute_dims(&turned_shape, &back).unwrap();
        assert!(
            again.equivalent(&layout).unwrap(),
            "{layout} {shape:?} {order:?}"
        );
    });
}

#[test]
fn packing_and_splitting_have_inverses() {
    check(400, |c| {
        let layout = c.layout();
        let num = i64::from(c.pick(2_u8, &[3, 4, 8]));
        if let Ok(unpacked) = layout.unpack(num, Axis::M) {
            let packed = unpacked.pack(num, Axis::M).unwrap();
            assert!(packed.equivalent(&layout).unwrap(), "{layout} by {num}");
        }
        if let Ok(packed) = layout.pack(num, Axis::M) {
            let unpacked = packed.unpack(num, Axis::M).unwrap();
            assert!(unpacked.equivalent(&layout).unwrap(), "{layout} by {num}");
        }
        let (lane, outer, inner) = (axis("lane"), axis("outer"), axis("inner"));
        let extent = i64::from(1 + c.below(12));
        if let Ok(split) = layout.split_axes(lane, outer, inner, extent) {
            let rules = BTreeMap::from([(outer, (lane, extent)), (inner, (lane, 1))]);
            let fused = split.fuse_axes(&rules).unwrap();
            assert!(fused.equivalent(&layout).unwrap(), "{layout} at {extent}");
        }
    });
}

/// An alias is a place with two indices; without one every place has a single index.
#[test]
fn aliasing_is_ambiguous_inversion() {
    check(300, |c| {
        let layout = c.layout();
        match alias(&layout).unwrap() {
            Some(found) => {
                let indices = layout.invert(&found.point).unwrap();
                assert!(indices.contains(&found.first) && indices.contains(&found.second));
            }
            None => {
                for x in 0..layout.size().min(64) {
                    for point in &layout.points(x).unwrap() {
                        assert_eq!(layout.invert(point).unwrap(), [x], "{layout}");
                    }
                }
            }
        }
    });
}

/// What intersects overlaps, and the other way round; intersection commutes and is idempotent.
#[test]
fn intersection_and_overlap_agree() {
    check(300, |c| {
        let (a, b) = (c.layout(), c.layout());
        let places = |l: &Layout| -> Vec<oracle::Point> {
            let mut all: Vec<_> = oracle::map(l).into_iter().flatten().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (ab, ba) = (a.intersect(&b), b.intersect(&a));
        match (&ab, &ba) {
            (Ok(ab), Ok(ba)) => {
                assert_eq!(places(ab), places(ba));
                assert_eq!(places(&ab.intersect(&a).unwrap()), places(ab));
                let met = overlap(&a, &b).unwrap().expect("they intersect");
                assert!(places(ab).contains(&oracle::point_of(&met.point)));
            }
            (Err(x), Err(y)) => assert_eq!((x.kind(), y.kind()), (Kind::None, Kind::None)),
            _ => panic!("{a} and {b} do not commute: {ab:?} {ba:?}"),
        }
        if overlap(&a, &b).unwrap().is_none() {
            assert!(ab.is_err());
        }
    });
}

/// A layout moved by an offset is a slice of a larger one: slices, offsets and application agree.
#[test]
fn slices_of_tiles_are_moved_tiles() {
    check(300, |c| {
        let (a, b) = (c.plain_layout(), c.plain_layout());
        if a.size() * b.size() > 512 {
            return;
        }
        let Ok(tiled) = Layout::tile(&a, &[a.size()], &b, &[b.size()]) else {
            return;
        };
        let at = i64::from(c.below(512)) % a.size();
        let begin = at * b.size();
        let piece = tiled.slice(
            &[tiled.size()],
            std::slice::from_ref(&(begin..begin + b.size())),
        );
        let piece = piece.unwrap();
        let mut origin = Coord::new();
        for (axis, value) in a.origin(at).unwrap().iter() {
            origin.set(axis, value * b.span(axis).unwrap());
        }
        for y in 0..b.size() {
            let mut want = b.origin(y).unwrap();
            for (axis, value) in origin.iter() {
                want.add(axis, value).unwrap();
            }
            assert_eq!(piece.origin(y).unwrap(), want, "{a} (x) {b} at {at}");
        }
    });
}

/// A small layout with a dynamic outermost extent, a second layout whose swizzle it has, and the size of all but the
/// outermost.
fn dynamic_layout(c: &mut Choices<'_>) -> Option<(Layout, Layout, i64)> {
    let (inner, other) = (c.plain_layout(), c.layout());
    let copies = inner.replica_count() * other.replica_count();
    if inner.size() > 64 || other.size() > 256 || copies > 64 {
        return None;
    }
    let stride = i64::from(c.below(40)) - 20;
    let first = Iter::new(DYNAMIC, stride, c.pick(Axis::M, &[axis("lane")]));
    let shard = std::iter::once(first).chain(inner.shard().iter().copied());
    let replica = inner.replica().iter().copied();
    let any = Layout::new(shard, replica, inner.offset().clone(), other.swizzle());
    Some((any.unwrap(), other, inner.size()))
}

fn places(layout: &Layout) -> BTreeSet<oracle::Point> {
    oracle::map(layout).into_iter().flatten().collect()
}

/// The inverse under a dynamic extent has all indices of every extent.
#[test]
fn inverses_of_dynamic_extents() {
    check(400, |c| {
        let Some((any, ..)) = dynamic_layout(c) else {
            return;
        };
        if any.shard()[0].stride == 0 {
            return;
        }
        let sized = any.with_outermost(40).unwrap();
        let index = i64::from(c.below(128)) % sized.size();
        let point = sized.points(index).unwrap()[0].clone();
        let all = any.invert(&point).unwrap();
        let inside: Vec<i64> = all.into_iter().filter(|&x| x < sized.size()).collect();
        assert_eq!(inside, sized.invert(&point).unwrap(), "{any} at {point}");
    });
}

/// Overlaps and intersections with a dynamic extent are those with an extent that reaches far enough.
#[test]
fn intersections_of_dynamic_extents() {
    check(400, |c| {
        let Some((any, other, inner)) = dynamic_layout(c) else {
            return;
        };
        let sized = any.with_outermost(40).unwrap();
        match overlap(&any, &other).unwrap() {
            Some(met) => {
                let reached = any.with_outermost(met.first / inner + 1).unwrap();
                assert!(reached.points(met.first).unwrap().contains(&met.point));
                assert!(other.points(met.second).unwrap().contains(&met.point));
            }
            None => assert!(
                places(&other).is_disjoint(&places(&sized)),
                "{any} and {other}"
            ),
        }
        let Ok(shared) = any.intersect(&other) else {
            return;
        };
        // As many steps leave the other layout behind.
        let long = any.with_outermost(3000).unwrap();
        let holds = |p: &oracle::Point| !long.invert(&super::coord(p)).unwrap().is_empty();
        let here: BTreeSet<_> = places(&other).into_iter().filter(holds).collect();
        assert_eq!(places(&shared), here, "{any} and {other}");
    });
}

/// A tiling with a dynamic extent has the factor that it was made of.
#[test]
fn factors_of_dynamic_extents() {
    check(400, |c| {
        let inner = c.plain_layout();
        if inner.size() > 64 {
            return;
        }
        let stride = i64::from(c.below(40)) - 20;
        let first = Iter::new(DYNAMIC, stride, c.pick(Axis::M, &[axis("lane")]));
        let outer = Layout::from_shard([first, Iter::new(3, 1, axis("warp"))]).unwrap();
        let (many, one) = (&[DYNAMIC, 3], &[inner.size(), 1]);
        let tiled = Layout::tile(&outer, many, &inner, one).unwrap();
        let found = tiled.tile_of(many, &inner, one).unwrap();
        let again = Layout::tile(&found, many, &inner, one).unwrap();
        assert!(again.equivalent(&tiled).unwrap(), "{outer} (x) {inner}");
    });
}

/// The reason that is given is the reason: a shape that does not group may have slices all the same.
#[test]
fn slices_say_why_there_is_none() {
    let layout = super::parse("S[(4, 6) : (7, 1)]");
    let error = layout
        .slice(&[6, 4], &[1..4, 0..3])
        .unwrap_err()
        .to_string();
    assert!(!error.contains("no grouping"), "{error}");
    assert!(layout.slice(&[6, 4], &[0..3, 0..4]).is_ok());
    let swizzled = super::parse("Sw<1,0,2> o S[(4, 6) : (7, 1)]");
    let error = swizzled
        .slice(&[6, 4], &[1..4, 0..3])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("under Sw<1,0,2>, ") && error.contains("; without it, "),
        "{error}"
    );
}
