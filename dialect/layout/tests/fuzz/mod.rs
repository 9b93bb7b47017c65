//! What the fuzz targets run, and `cargo test` on random bytes: nothing panics on any input, and what
//! succeeds is right. The crate in `fuzz/` includes this file.

mod bridges;

use std::collections::BTreeMap;

use axe_layout::cute::{ComposedLayout, CuteLayout, Nest};
use axe_layout::generate::Choices;
use axe_layout::sharding::{Mesh, Sharding, parse_placements};
use axe_layout::tools::answer;
use axe_layout::{Axis, Coord, Iter, Layout, LayoutParts, Swizzle, analysis, oracle};

/// The text form: what parses prints to what parses to it.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(layout) = text.parse::<Layout>() {
        let printed = layout.to_string();
        assert_eq!(printed.parse::<Layout>().as_ref(), Ok(&layout), "{printed}");
    }
    if let Ok((layout, end)) = Layout::parse_prefix(&text) {
        assert!(text.is_char_boundary(end), "{layout}");
    }
    if let Ok(swizzle) = text.parse::<Swizzle>() {
        assert_eq!(swizzle.to_string().parse::<Swizzle>(), Ok(swizzle));
    }
}

/// The JSON form, and one request of the evaluator.
pub fn json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(layout) = serde_json::from_str::<Layout>(&text) {
        let printed = serde_json::to_string(&layout).unwrap();
        let again: Layout = serde_json::from_str(&printed).unwrap();
        assert_eq!(again, layout, "{printed}");
    }
    let _ = serde_json::from_str::<LayoutParts>(&text);
    let _ = answer(&text);
}

/// CuTe's notation: nests, layouts, compositions with swizzles.
pub fn cute(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(nest) = text.parse::<Nest>() {
        assert_eq!(nest.to_string().parse::<Nest>().ok(), Some(nest));
    }
    if let Ok(layout) = text.parse::<CuteLayout>() {
        assert_eq!(layout.to_string().parse::<CuteLayout>().ok(), Some(layout));
    }
    if let Ok(layout) = text.parse::<ComposedLayout>() {
        let printed = layout.to_string();
        assert_eq!(printed.parse::<ComposedLayout>().ok(), Some(layout));
    }
}

/// The texts of the sharding bridge: a mesh, placements, and each notation of a sharding.
pub fn sharding(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_placements(&text);
    let _ = Mesh::parse("gpu", &text);
    let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
    let shape = vec![16, 8];
    if let Ok(sharding) = Sharding::from_partition_spec(mesh.clone(), shape.clone(), &text) {
        let _ = sharding.to_partition_spec();
    }
    if let Ok(sharding) = Sharding::from_alpa(mesh.clone(), shape.clone(), &text) {
        let _ = sharding.to_alpa();
    }
    if let Ok((sharding, _)) = Sharding::from_sdy(mesh.clone(), shape.clone(), &text) {
        let _ = sharding.to_sdy();
    }
    if let Ok(sharding) = Sharding::from_shard_dialect(mesh, shape, &text) {
        let _ = sharding.to_shard_dialect();
    }
}

/// Every operation of the algebra: on small layouts against brute force, and on numbers at the edge of
/// 64 bits for the absence of panics alone.
pub fn operations(bytes: &[u8]) {
    let c = &mut Choices::new(bytes);
    let extreme = c.below(2) == 1;
    let (a, b) = if extreme {
        (wild(c), wild(c))
    } else {
        (c.layout(), c.layout())
    };
    let (shape_a, shape_b) = (shape(c, &a, extreme), shape(c, &b, extreme));
    one_layout(c, &a, &shape_a, extreme);
    slices(c, &a, &shape_a, extreme);
    analyses(c, (&a, &b), &shape_a, extreme);
    two_layouts((&a, &shape_a), (&b, &shape_b), extreme);
}

/// The operations of the bridges, and of compiled addresses.
pub fn bridges(bytes: &[u8]) {
    bridges::run(bytes);
}

/// Numbers where arithmetic goes wrong.
fn number(c: &mut Choices<'_>) -> i64 {
    let edge = [
        1,
        2,
        3,
        -1,
        1 << 31,
        1 << 32,
        1 << 62,
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
        -(1 << 62),
        i64::MAX / 3,
    ];
    c.pick(0, &edge)
}

/// A valid layout whose numbers come from the edge of 64 bits; the empty one where they do not fit.
fn wild(c: &mut Choices<'_>) -> Layout {
    let list = |c: &mut Choices<'_>| -> Vec<Iter> {
        let some = |c: &mut Choices<'_>| {
            let axis = c.pick(Axis::M, &[Axis::new("lane").unwrap()]);
            Iter::new(
                c.pick(2, &[1, 3, 1 << 20, 1 << 31, i64::MAX, i64::MIN, 0]),
                number(c),
                axis,
            )
        };
        (0..c.below(4)).map(|_| some(c)).collect()
    };
    let (shard, replica) = (list(c), list(c));
    let offset = Coord::from_terms([(Axis::M, number(c))]).unwrap();
    let bits = u32::from(c.below(4));
    let swizzle = Swizzle::new(bits, u32::from(c.below(60)), bits + 1, true).ok();
    Layout::new(shard, replica, offset, swizzle.filter(|_| bits > 0)).unwrap_or_default()
}

fn shape(c: &mut Choices<'_>, layout: &Layout, extreme: bool) -> Vec<i64> {
    match (extreme, c.below(3)) {
        (true, 0) => vec![number(c), number(c)],
        (true, 1) => layout.shard().iter().map(|i| i.extent).collect(),
        _ => c.shape(layout.size()),
    }
}

fn one_layout(c: &mut Choices<'_>, a: &Layout, shape: &[i64], extreme: bool) {
    let lane = Axis::new("lane").unwrap();
    let same = |b: &Layout| assert!(extreme || oracle::same(a, b), "{a} became {b}");
    same(&a.canonicalize());
    if let Ok(grouped) = a.group(shape) {
        same(&grouped.layout);
    }
    if let Ok(grouped) = a.group_many(&[shape, &[a.size()]]) {
        same(&grouped.layout);
    }
    let index = if extreme {
        number(c)
    } else {
        i64::from(c.below(256))
    };
    let (_, _) = (a.origin(index), a.admits(shape));
    if extreme && a.replica().iter().any(|i| i.extent > 64) {
        let _ = a.canonicalize().equivalent(a);
    } else if let Ok(points) = a.points(index) {
        for point in &points {
            let found = a.invert(point);
            assert!(
                found.is_err() || found.is_ok_and(|at| at.contains(&index)),
                "{a} at {index}"
            );
        }
    }
    for axis in [Axis::M, lane] {
        let (_, _) = (a.span(axis), a.cosize(axis));
        let num = number(c);
        let (_, _) = (a.pack(num, axis), a.unpack(num, axis));
        let (_, _) = (
            a.broadcast(num, usize::from(c.below(5)), axis),
            a.replicate(num, number(c), axis),
        );
        let (outer, inner) = (Axis::new("outer").unwrap(), Axis::new("inner").unwrap());
        let extent = if extreme {
            number(c)
        } else {
            i64::from(c.below(40))
        };
        if let Ok(split) = a.split_axes(axis, outer, inner, extent) {
            let rules = BTreeMap::from([(outer, (axis, extent)), (inner, (axis, 1))]);
            if let Ok(fused) = split.fuse_axes(&rules) {
                same(&fused);
            }
        }
        let _ = a.storage(&[axis]);
    }
    let _ = a.strides(shape);
    let reversed: Vec<usize> = (0..shape.len()).rev().collect();
    // A dynamic dimension that is not the first has no way back.
    if !a.is_dynamic()
        && let Ok(turned) = a.permute_dims(shape, &reversed)
    {
        let turned_shape: Vec<i64> = shape.iter().rev().copied().collect();
        let back = turned.permute_dims(&turned_shape, &reversed);
        same(&back.unwrap_or_else(|e| panic!("{a}: {e}")));
    }
}

/// Slices are the box's map, slices of slices the inner box's, and covers cover.
fn slices(c: &mut Choices<'_>, a: &Layout, shape: &[i64], extreme: bool) {
    let ranges = |region: &[(i64, i64)]| -> Vec<_> { region.iter().map(|&(b, e)| b..e).collect() };
    if extreme {
        let wild: Vec<_> = shape.iter().map(|_| (number(c), number(c))).collect();
        let _ = a.slice(shape, &ranges(&wild));
        return;
    }
    let region = c.region(shape);
    if let Ok(slice) = a.slice(shape, &ranges(&region)) {
        let want = oracle::region(a, shape, &region);
        assert_eq!(
            oracle::map(&slice),
            want,
            "{a} {shape:?} {region:?}: {slice}"
        );
        let extents: Vec<i64> = region.iter().map(|(b, e)| e - b).collect();
        let inner = c.region(&extents);
        let both = region.iter().zip(&inner);
        let both: Vec<_> = both.map(|(o, i)| (o.0 + i.0, o.0 + i.1)).collect();
        let (twice, once) = (
            slice.slice(&extents, &ranges(&inner)),
            a.slice(shape, &ranges(&both)),
        );
        assert_eq!(
            twice.is_ok(),
            once.is_ok(),
            "{a} {shape:?} {region:?} {inner:?}"
        );
        if let (Ok(twice), Ok(once)) = (twice, once) {
            assert!(
                oracle::same(&twice, &once),
                "{a} {shape:?} {region:?} {inner:?}"
            );
        }
    }
    if a.size() <= 64
        && let Ok(cover) = a.slice_cover(shape, &ranges(&region))
    {
        let volume: i64 = region.iter().map(|(b, e)| e - b).product();
        assert_eq!(
            cover.iter().map(|(_, slice)| slice.size()).sum::<i64>(),
            volume,
            "{a}"
        );
    }
}

/// Witnesses are what they claim, and what is said to be free of aliases inverts to one index.
fn analyses(c: &mut Choices<'_>, (a, b): (&Layout, &Layout), shape: &[i64], extreme: bool) {
    let lives =
        |l: &Layout, x: i64, point: &Coord| l.points(x).is_ok_and(|all| all.contains(point));
    let few = |l: &Layout| l.replica().iter().all(|i| i.extent <= 64);
    match analysis::alias(a) {
        Ok(Some(found)) => {
            assert_ne!(found.first, found.second, "{a}");
            if few(a) {
                assert!(lives(a, found.first, &found.point), "{a}");
                assert!(lives(a, found.second, &found.point), "{a}");
            }
        }
        Ok(None) if !extreme => {
            let x = i64::from(c.below(256)) % a.size();
            for point in &a.points(x).unwrap() {
                assert_eq!(a.invert(point).ok(), Some(vec![x]), "{a}");
            }
        }
        _ => {}
    }
    let _ = analysis::coinciding_copies(a);
    let met = analysis::overlap(a, b);
    if let Ok(Some(found)) = &met
        && few(a)
        && few(b)
    {
        assert!(lives(a, found.first, &found.point), "{a} and {b}");
        assert!(lives(b, found.second, &found.point), "{a} and {b}");
    }
    if let (Ok(None), Ok(both)) = (&met, a.intersect(b)) {
        panic!("{a} and {b} do not overlap, but {both} is in both");
    }
    let dim = usize::from(c.below(4));
    let width = analysis::vector_width(a, shape, dim, 8 << c.below(5), number(c));
    assert!(width.is_err() || width.is_ok_and(|w| w.bytes <= 16 && w.elements >= 1));
    let _ = a
        .shard()
        .first()
        .map(|i| i.intersect(b.shard().first().unwrap_or(i)));
    let _ = Iter::largest_run(a.shard(), Axis::M);
    let coords = vec![shape.iter().map(|_| i64::from(c.below(4))).collect()];
    let vector = i64::from(c.below(17));
    if let Ok(access) = analysis::TileAccess::at(a, shape, &coords, dim, vector, 2)
        && let Ok(choice) = analysis::choose_swizzle(a, std::slice::from_ref(&access))
    {
        let cost = access.warp(choice.swizzle).map(|w| w.banks());
        assert_eq!(cost.ok(), choice.costs.first().copied(), "{a}");
    }
    let lane = Axis::new("lane").unwrap();
    let _ = analysis::tile_accesses(a, (lane, Axis::M), b, None, 4);
}

fn two_layouts((a, shape_a): (&Layout, &[i64]), (b, shape_b): (&Layout, &[i64]), extreme: bool) {
    if let Ok(equal) = a.equivalent(b) {
        assert!(extreme || equal == oracle::same(a, b), "{a} {b}");
        assert!(!equal || a.size() == b.size());
    }
    let _ = a.intersect(b);
    let _ = a.tile_of(shape_a, b, shape_b);
    let _ = a.tile_of_outer(shape_a, b, shape_b);
    let _ = a.direct_sum_of_left(shape_a, b, shape_b);
    let _ = a.direct_sum_of_right(shape_a, b, shape_b);
    let _ = a.tile_to(shape_a, shape_b);
    let rank = shape_a.len().max(shape_b.len());
    let pad = |shape: &[i64]| -> Vec<i64> {
        let ones = std::iter::repeat_n(1, rank - shape.len());
        shape.iter().copied().chain(ones).collect()
    };
    let (pad_a, pad_b) = (pad(shape_a), pad(shape_b));
    let interleaved: Vec<i64> = pad_a
        .iter()
        .zip(&pad_b)
        .flat_map(|(x, y)| [*x, *y])
        .collect();
    if let Ok(sum) = Layout::direct_sum(a, &pad_a, b, &pad_b) {
        let _ = sum.direct_sum_of_right(&interleaved, b, &pad_b);
    }
    let Ok(tiled) = Layout::tile(a, &pad_a, b, &pad_b) else {
        return;
    };
    let Some(whole) = pad_a
        .iter()
        .zip(&pad_b)
        .map(|(x, y)| x.checked_mul(*y))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    if a.swizzle().is_none() && b.swizzle().is_none() {
        if let Ok(outer) = tiled.tile_of(&whole, b, &pad_b) {
            assert!(outer.equivalent(a).unwrap_or(true), "{a} {b}");
        }
        if let Ok(inner) = tiled.tile_of_outer(&whole, a, &pad_a) {
            assert!(inner.equivalent(b).unwrap_or(true), "{a} {b}");
        }
    }
}
