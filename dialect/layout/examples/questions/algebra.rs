//! Questions about one layout, and about what two share.

use std::collections::{BTreeMap, BTreeSet};

use axe_layout::generate::Choices;
use axe_layout::oracle::{self, Point};
use axe_layout::{Axis, Coord, Kind, Layout, analysis};

/// Points of a layout that are listed.
const MOST: i64 = 384;

pub(crate) fn axis(name: &str) -> Axis {
    Axis::new(name).unwrap()
}

fn replicas(layout: &Layout) -> i64 {
    layout.replica().iter().map(|iter| iter.extent).product()
}

/// A layout with few points.
pub(crate) fn small(c: &mut Choices<'_>) -> Layout {
    let layout = c.layout();
    if layout.size() * replicas(&layout) <= MOST {
        layout
    } else {
        Layout::empty()
    }
}

/// As [`small`], without a swizzle.
pub(crate) fn plain(c: &mut Choices<'_>) -> Layout {
    small(c).with_swizzle(None)
}

fn coord(point: &Point) -> Coord {
    Coord::from_terms(
        point
            .iter()
            .map(|(&axis, &value)| (axis, i64::try_from(value).unwrap())),
    )
    .unwrap()
}

fn all_places(layout: &Layout) -> BTreeSet<Point> {
    oracle::map(layout).into_iter().flatten().collect()
}

/// Another spelling of the map, or a near miss.
fn relative(c: &mut Choices<'_>, of: &Layout, other: &Layout) -> Layout {
    let shape = c.shape(of.size());
    match c.below(5) {
        0 => of
            .group(&shape)
            .map_or_else(|_| of.clone(), |grouped| grouped.layout),
        1 => of.canonicalize(),
        2 => of.clone().with_swizzle(other.swizzle()),
        3 => {
            let mut shard = of.shard().to_vec();
            if let Some(iter) = shard.first_mut() {
                iter.stride += i64::from(c.below(3)) - 1;
            }
            let moved = Layout::new(
                shard,
                of.replica().iter().copied(),
                of.offset().clone(),
                of.swizzle(),
            );
            moved.unwrap_or_else(|_| of.clone())
        }
        _ => other.clone(),
    }
}

pub(crate) fn canonical(c: &mut Choices<'_>) -> u64 {
    let (a, other) = (small(c), small(c));
    let form = a.canonicalize();
    assert!(oracle::same(&a, &form), "{a} became {form}");
    assert_eq!(form.canonicalize(), form, "{a}");
    let b = relative(c, &a, &other);
    let same = oracle::same(&a, &b);
    assert_eq!(a.equivalent(&b).unwrap(), same, "{a} and {b}");
    assert_eq!(form == b.canonicalize(), same, "{a} and {b}");
    3
}

pub(crate) fn places(c: &mut Choices<'_>) -> u64 {
    let layout = small(c);
    let map = oracle::map(&layout);
    let x = usize::from(c.below(256)) % map.len();
    let found: BTreeSet<Point> = layout
        .points(x as i64)
        .unwrap()
        .iter()
        .map(oracle::point_of)
        .collect();
    assert_eq!(found, map[x], "{layout} at {x}");
    let mut point = map[x].iter().next().unwrap().clone();
    if c.below(3) == 0 {
        let moved = c.pick(Axis::M, &[axis("lane")]);
        *point.entry(moved).or_insert(0) += i128::from(c.below(5)) - 2;
        point.retain(|_, value| *value != 0);
    }
    let want: Vec<i64> = (0..)
        .zip(&map)
        .filter(|(_, set)| set.contains(&point))
        .map(|(x, _)| x)
        .collect();
    assert_eq!(
        layout.invert(&coord(&point)).unwrap(),
        want,
        "{layout} at {point:?}"
    );
    2
}

pub(crate) fn group(c: &mut Choices<'_>) -> u64 {
    let layout = small(c);
    let shape = c.shape(layout.size());
    let weights = |extents: &mut dyn Iterator<Item = i64>| {
        let mut weights = vec![1];
        for extent in extents {
            weights.push(weights[weights.len() - 1] * extent);
        }
        weights
    };
    let fused = layout.clone().with_swizzle(None).canonicalize();
    let mut cuts = weights(&mut shape.iter().rev().copied());
    cuts.extend(weights(
        &mut fused.shard().iter().rev().map(|iter| iter.extent),
    ));
    cuts.sort_unstable();
    cuts.dedup();
    let possible = cuts.windows(2).all(|pair| pair[1] % pair[0] == 0);
    match layout.group(&shape) {
        Ok(grouped) => {
            assert!(
                possible && oracle::same(&layout, &grouped.layout),
                "{layout} {shape:?}"
            );
            let extents =
                |block: &[axe_layout::Iter]| block.iter().map(|iter| iter.extent).product::<i64>();
            assert!(
                grouped.blocks().map(extents).eq(shape.iter().copied()),
                "{layout} {shape:?}"
            );
        }
        Err(error) => assert!(
            !possible && error.kind() == Kind::None,
            "{layout} {shape:?}: {error}"
        ),
    }
    1
}

pub(crate) fn sizes(c: &mut Choices<'_>) -> u64 {
    let layout = small(c);
    for of in [Axis::M, axis("lane")] {
        let (low, high) = oracle::range(&layout, of);
        assert_eq!(
            i128::from(layout.span(of).unwrap()),
            high - low + 1,
            "{layout}"
        );
        if let Ok(cosize) = layout.cosize(of) {
            assert!(i128::from(cosize) > high, "{layout}");
        }
    }
    let shape = c.shape(layout.size());
    if let Ok(strides) = layout.strides(&shape) {
        let strided = Layout::strided(&shape, &strides)
            .unwrap()
            .with_offset(layout.offset().clone())
            .unwrap();
        assert!(
            oracle::same(&layout, &strided),
            "{layout} {shape:?} {strides:?}"
        );
    }
    3
}

pub(crate) fn slices(c: &mut Choices<'_>) -> u64 {
    let layout = small(c);
    let shape = c.shape(layout.size());
    let region = c.region(&shape);
    let ranges: Vec<_> = region.iter().map(|&(begin, end)| begin..end).collect();
    let want = oracle::region(&layout, &shape, &region);
    match layout.slice(&shape, &ranges) {
        Ok(slice) => assert_eq!(oracle::map(&slice), want, "{layout} {shape:?} {region:?}"),
        Err(error) => {
            assert_eq!(
                error.kind(),
                Kind::None,
                "{layout} {shape:?} {region:?}: {error}"
            );
            // The least point of each set: a slice's own map, up to a constant.
            if layout.swizzle().is_none() {
                let bare = layout.clone().with_replica([]).unwrap();
                let values: Vec<Point> = oracle::region(&bare, &shape, &region)
                    .into_iter()
                    .flatten()
                    .collect();
                assert!(
                    !oracle::is_shard_map(&values),
                    "{layout} {shape:?} {region:?}: {error}"
                );
            }
        }
    }
    let mut covered: BTreeMap<i64, BTreeSet<Point>> = BTreeMap::new();
    let cover = match layout.slice_cover(&shape, &ranges) {
        // A documented bound on the work.
        Err(error) if error.kind() == Kind::Unsupported => return 2,
        other => other.unwrap(),
    };
    for (part, slice) in cover {
        let extents: Vec<i64> = part.iter().map(|range| range.end - range.start).collect();
        for (at, set) in (0..).zip(oracle::map(&slice)) {
            let inside = oracle::unflatten(&extents, at);
            let coord: Vec<i64> = inside
                .iter()
                .zip(&part)
                .map(|(u, range)| u + range.start)
                .collect();
            assert!(
                covered
                    .insert(oracle::flatten(&shape, &coord), set)
                    .is_none(),
                "{layout}: a box twice"
            );
        }
    }
    let whole = oracle::map(&layout);
    assert_eq!(covered.len(), want.len(), "{layout} {shape:?} {region:?}");
    assert!(
        covered.iter().all(|(&x, set)| whole[x as usize] == *set),
        "{layout} {shape:?} {region:?}"
    );
    2
}

pub(crate) fn sharing(c: &mut Choices<'_>) -> u64 {
    let (a, b) = (small(c), small(c));
    let map = oracle::map(&a);
    let total: usize = map.iter().map(BTreeSet::len).sum();
    let here = all_places(&a);
    let found = analysis::alias(&a).unwrap();
    assert_eq!(found.is_none(), here.len() == total, "{a}: {found:?}");
    if let Some(found) = found {
        let point = oracle::point_of(&found.point);
        assert!(
            found.first != found.second && map[found.first as usize].contains(&point),
            "{a}"
        );
        assert!(map[found.second as usize].contains(&point), "{a}");
    }
    let there = all_places(&b);
    let shared: BTreeSet<&Point> = here.intersection(&there).collect();
    let met = analysis::overlap(&a, &b).unwrap();
    assert_eq!(met.is_none(), shared.is_empty(), "{a} and {b}");
    if let Some(met) = met {
        assert!(
            shared.contains(&oracle::point_of(&met.point)),
            "{a} and {b}"
        );
    }
    match a.intersect(&b) {
        Ok(both) => assert!(
            all_places(&both).iter().eq(shared.iter().copied()),
            "{a} and {b}: {both}"
        ),
        Err(error) => assert_eq!(error.kind(), Kind::None, "{a} and {b}"),
    }
    3
}

pub(crate) fn reshapes(c: &mut Choices<'_>) -> u64 {
    let layout = small(c);
    let shape = c.shape(layout.size());
    let mut order: Vec<usize> = (0..shape.len()).collect();
    let by = usize::from(c.below(8)) % order.len();
    order.rotate_left(by);
    if let Ok(turned) = layout.permute_dims(&shape, &order) {
        let sizes: Vec<i64> = order.iter().map(|&dim| shape[dim]).collect();
        for x in 0..layout.size() {
            let coord = oracle::unflatten(&shape, x);
            let moved: Vec<i64> = order.iter().map(|&dim| coord[dim]).collect();
            let to = oracle::flatten(&sizes, &moved);
            assert_eq!(
                oracle::points(&layout, x),
                oracle::points(&turned, to),
                "{layout} {order:?}"
            );
        }
    }
    let (lane, outer, inner) = (axis("lane"), axis("outer"), axis("inner"));
    let extent = i64::from(1 + c.below(12));
    if let Ok(split) = layout.split_axes(lane, outer, inner, extent) {
        let rules = BTreeMap::from([(outer, (lane, extent)), (inner, (lane, 1))]);
        assert!(
            oracle::same(&split.fuse_axes(&rules).unwrap(), &layout),
            "{layout} at {extent}"
        );
        let inside = |set: &BTreeSet<Point>| {
            set.iter()
                .all(|p| (0..i128::from(extent)).contains(&p.get(&inner).copied().unwrap_or(0)))
        };
        assert!(
            oracle::map(&split).iter().all(inside),
            "{layout} at {extent}"
        );
    }
    let num = i64::from(c.pick(2_u8, &[3, 4, 8]));
    if let Ok(parts) = layout.unpack(num, Axis::M) {
        assert!(
            oracle::same(&parts.pack(num, Axis::M).unwrap(), &layout),
            "{layout} by {num}"
        );
    }
    3
}
