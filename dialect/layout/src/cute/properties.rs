//! CuTe operations against their definitions, on generated layouts.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::axis::Axis;
use crate::error::{Kind, Result};
use crate::layout::Layout;

/// Nests of up to `depth` levels; sizes stay below 4096.
fn shapes(depth: u32) -> impl Strategy<Value = Nest> {
    let leaf = prop::sample::select(vec![1_i64, 2, 2, 3, 4, 6, 8]).prop_map(Nest::Int);
    leaf.prop_recursive(depth, 4, 3, |inner| {
        prop::collection::vec(inner, 1..=3).prop_map(Nest::Tuple)
    })
}

fn with_strides(shape: Nest, strides: &[i64]) -> CuteLayout {
    fn fill(shape: &Nest, strides: &mut std::iter::Cycle<std::slice::Iter<'_, i64>>) -> Nest {
        match shape {
            Nest::Int(_) => Nest::Int(*strides.next().unwrap()),
            Nest::Tuple(modes) => Nest::Tuple(modes.iter().map(|m| fill(m, strides)).collect()),
        }
    }
    let stride = fill(&shape, &mut strides.iter().cycle());
    CuteLayout::new(shape, stride).unwrap()
}

/// Any strides, often colliding.
fn layouts() -> impl Strategy<Value = CuteLayout> {
    let strides = prop::collection::vec(
        prop::sample::select(vec![0_i64, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 5, -1, -4]),
        8,
    );
    (shapes(2), strides)
        .prop_filter("small", |(s, _)| s.leaves().iter().product::<i64>() <= 512)
        .prop_map(|(shape, strides)| with_strides(shape, &strides))
}

/// Compact layouts with the modes in any order.
fn compact_layouts() -> impl Strategy<Value = CuteLayout> {
    (shapes(2), any::<u64>(), 1_i64..3)
        .prop_filter("small", |(s, _, _)| {
            s.leaves().iter().product::<i64>() <= 512
        })
        .prop_map(|(shape, seed, scale)| {
            let extents = shape.leaves();
            let mut order: Vec<usize> = (0..extents.len()).collect();
            order.sort_by_key(|&k| seed.rotate_left(7 * k as u32) % 61);
            let mut strides = vec![0; extents.len()];
            let mut next = scale;
            for k in order {
                strides[k] = next;
                next *= extents[k];
            }
            with_strides(shape, &strides)
        })
}

fn values(layout: &CuteLayout) -> Vec<i64> {
    (0..layout.size())
        .map(|i| layout.apply(i).unwrap())
        .collect()
}

/// `a(b(i))` with `a` extended as an odd function, straight from the definition.
fn brute_composition(a: &CuteLayout, b: &CuteLayout) -> Vec<i64> {
    let a_of = |x: i64| a.apply(x.abs()).unwrap() * x.signum();
    values(b).into_iter().map(a_of).collect()
}

fn same_composition(a: &CuteLayout, b: &CuteLayout, r: &CuteLayout) -> Result<(), TestCaseError> {
    prop_assert_eq!(values(r), brute_composition(a, b), "{} o {} = {}", a, b, r);
    Ok(())
}

/// Every factorisation of `n` into ordered extents, with strides read off, by trial.
fn some_layout_takes(values: &[i64]) -> bool {
    fn go(values: &[i64], step: usize, left: usize, modes: &mut Vec<(usize, i64)>) -> bool {
        if left == 1 {
            return values.iter().enumerate().all(|(i, &v)| {
                let mut rest = i;
                let sum: i64 = modes
                    .iter()
                    .map(|&(e, s)| {
                        let digit = rest % e;
                        rest /= e;
                        digit as i64 * s
                    })
                    .sum();
                sum == v
            });
        }
        (2..=left)
            .filter(|e| left.is_multiple_of(*e))
            .any(|extent| {
                modes.push((extent, values[step]));
                let found = go(values, step * extent, left / extent, modes);
                modes.pop();
                found
            })
    }
    go(values, 1, values.len(), &mut Vec::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn apply_is_the_colexicographic_inner_product(a in layouts()) {
        for i in 0..a.size() {
            let (mut rest, mut sum) = (i, 0);
            for (extent, stride) in a.leaves() {
                sum += rest % extent * stride;
                rest /= extent;
            }
            prop_assert_eq!(a.apply(i).unwrap(), sum);
            prop_assert_eq!(a.apply_coord(&Nest::Int(i)).unwrap(), sum);
        }
        prop_assert!(a.apply(-1).is_err());
        let reach = values(&a);
        let least = reach.iter().min().unwrap().min(&0).abs();
        prop_assert!(a.cosize() > reach.iter().max().unwrap() - least);
        prop_assert_eq!(a.to_string().parse::<CuteLayout>().unwrap(), a.clone());
        let json = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(serde_json::from_str::<CuteLayout>(&json).unwrap(), a);
    }

    #[test]
    fn coalesce_keeps_the_function(a in layouts()) {
        let c = coalesce(&a);
        prop_assert_eq!(values(&c), values(&a));
        prop_assert_eq!(coalesce(&c), c);
        let per_mode = Nest::Tuple(vec![Nest::Int(1); a.rank()]);
        if a.depth() > 0 {
            let by_mode = coalesce_by_mode(&a, &per_mode).unwrap();
            prop_assert_eq!(values(&by_mode), values(&a));
            for (m, n) in by_mode.modes().iter().zip(a.modes()) {
                prop_assert_eq!(m.size(), n.size());
            }
        }
    }

    #[test]
    fn composition_is_exact_or_does_not_exist(a in layouts(), b in layouts()) {
        match composition(&a, &b) {
            Ok(r) => same_composition(&a, &b, &r)?,
            Err(e) => {
                prop_assert_eq!(e.kind(), Kind::None);
                let brute = brute_composition(&a, &b);
                prop_assert!(!some_layout_takes(&brute), "{a} o {b}: {e}");
            }
        }
    }

    #[test]
    fn composition_follows_the_shape_where_parts_add_up(a in layouts(), b in layouts()) {
        let Ok(r) = composition(&a, &b) else { return Ok(()) };
        let parts: Result<Vec<_>> = b.modes().iter().map(|m| composition(&a, m)).collect();
        let Ok(parts) = parts else { return Ok(()) };
        let parts = CuteLayout::concat(parts).unwrap();
        if b.depth() > 0 && values(&parts) == brute_composition(&a, &b) {
            prop_assert_eq!(r, parts);
        }
    }

    #[test]
    fn complement_covers_once(a in layouts(), cotarget in 1_i64..200) {
        let Ok(c) = complement(&a, cotarget) else { return Ok(()) };
        let mut sums: Vec<i64> = values(&filter(&a))
            .iter()
            .flat_map(|x| values(&c).into_iter().map(move |y| x + y))
            .collect();
        sums.sort_unstable();
        prop_assert!(sums.windows(2).all(|pair| pair[0] < pair[1]), "{a} and {c}");
        prop_assert!(sums.last().unwrap() + 1 >= cotarget.min(a.cosize()), "{a} and {c}");
        if let Ok(covering) = inverse::covering_complement(&a, cotarget) {
            prop_assert_eq!(&covering, &c);
            prop_assert!(sums.iter().copied().eq(0..sums.len() as i64), "{a} and {c}");
            prop_assert!(sums.len() as i64 >= cotarget);
        }
        prop_assert!(values(&c).is_sorted());
    }

    #[test]
    fn inverses_invert(a in compact_layouts(), b in layouts()) {
        for l in [&a, &b] {
            let right = right_inverse(l).unwrap();
            for i in 0..right.size() {
                prop_assert_eq!(l.apply(right.apply(i).unwrap()).unwrap(), i);
            }
            if let Ok(left) = left_inverse(l) {
                for x in values(l) {
                    prop_assert_eq!(l.apply(left.apply(x).unwrap()).unwrap(), x);
                }
                if !l.leaves().iter().any(|&(e, s)| e > 1 && s == 0) {
                    let found: Vec<i64> =
                        values(l).iter().map(|&x| left.apply(x).unwrap()).collect();
                    prop_assert!(found.iter().copied().eq(0..l.size()));
                }
            }
        }
        prop_assert!(left_inverse(&a).is_ok());
    }

    #[test]
    fn divisions_are_one_function(a in compact_layouts(), b in compact_layouts()) {
        let tiler = Tiler::Layout(b.clone());
        let Ok(l) = logical_divide(&a, &tiler) else { return Ok(()) };
        let tile = &l.modes()[0];
        prop_assert_eq!(values(tile), brute_composition(&a, &b));
        for other in [zipped_divide(&a, &tiler), tiled_divide(&a, &tiler), flat_divide(&a, &tiler)] {
            prop_assert_eq!(values(&other.unwrap()), values(&l));
        }
        if l.size() == a.size() {
            let (mut x, mut y) = (values(&l), values(&a));
            x.sort_unstable();
            y.sort_unstable();
            prop_assert_eq!(x, y);
        }
    }

    #[test]
    fn products_repeat_without_overlap(a in compact_layouts(), b in compact_layouts()) {
        let tiler = Tiler::Layout(b.clone());
        let Ok(l) = logical_product(&a, &tiler) else { return Ok(()) };
        let mut all = values(&l);
        all.sort_unstable();
        all.dedup();
        let distinct_b = { let mut v = values(&b); v.sort_unstable(); v.dedup(); v.len() };
        prop_assert_eq!(all.len(), a.size() as usize * distinct_b);
        prop_assert_eq!(&l.modes()[0], &a);
        for other in [zipped_product(&a, &tiler), tiled_product(&a, &tiler), flat_product(&a, &tiler)] {
            prop_assert_eq!(values(&other.unwrap()), values(&l));
        }
        if let (Ok(blocked), Ok(raked)) = (blocked_product(&a, &b), raked_product(&a, &b)) {
            for product in [blocked, raked] {
                let mut v = values(&product);
                v.sort_unstable();
                v.dedup();
                prop_assert_eq!(&v, &all);
            }
        }
    }

    /// Units, tiles that fill a shape, and thread-value layouts, by their definitions.
    #[test]
    fn units_tiles_and_threads(a in layouts(), b in compact_layouts(), n in 1_i64..5, more in prop::collection::vec(1_i64..4, 1..4)) {
        if let Ok(units) = upcast(&a, n) {
            // The units that hold the elements, each as often as it has elements that `a` reaches.
            let held = |v: i64| v.div_euclid(n);
            if a.leaves().iter().all(|&(_, s)| s >= 0) {
                let mut want: Vec<i64> = values(&a).into_iter().map(held).collect();
                let mut got = values(&units);
                want.sort_unstable();
                want.dedup();
                got.sort_unstable();
                got.dedup();
                prop_assert_eq!(got, want, "{} by {} is {}", a, n, units);
            }
        }
        let parts = downcast(&b, n).unwrap();
        let one_by_one = b.leaves().iter().filter(|&&(_, s)| s == 1).count() == 1;
        if one_by_one {
            let mut want: Vec<i64> = values(&b).into_iter().flat_map(|v| n * v..n * v + n).collect();
            let mut got = values(&parts);
            want.sort_unstable();
            got.sort_unstable();
            prop_assert_eq!(got, want, "{} in {} parts is {}", b, n, parts);
            prop_assert_eq!(values(&recast(&parts, 8, 8 * n).unwrap()), values(&b));
        }
        let modes = b.modes();
        let sizes = modes.iter().map(CuteLayout::size).chain(std::iter::repeat(1));
        let rank = modes.len().max(more.len());
        let shape: Vec<i64> = more.iter().copied().chain(std::iter::repeat(1)).zip(sizes).map(|(m, s)| m * s).take(rank).collect();
        let Ok(whole) = tile_to_shape(&b, &shape, None) else { return Ok(()) };
        prop_assert_eq!(whole.modes().iter().map(CuteLayout::size).collect::<Vec<_>>(), shape.clone());
        // Copies of the block, column-major, in steps of what the block covers.
        let step = b.cosize().max(complement(&b, b.cosize()).map_or(1, |c| c.size() * b.size()));
        let mut want: Vec<i64> = (0..whole.size() / b.size()).flat_map(|k| values(&b).into_iter().map(move |v| v + k * step)).collect();
        let mut got = values(&whole);
        want.sort_unstable();
        got.sort_unstable();
        if one_by_one {
            prop_assert_eq!(got, want, "{} to {:?} is {}", b, shape, whole);
        }
        if let Ok((tile, tv)) = make_layout_tv(&b, &CuteLayout::compact(Nest::from(more.clone())).unwrap()) {
            let vals = CuteLayout::compact(Nest::from(more)).unwrap();
            let numbered = raked_product(&b, &vals).unwrap();
            prop_assert_eq!(tile.iter().product::<i64>(), tv.size());
            for t in 0..b.size() {
                for v in 0..vals.size() {
                    let at = tv.apply(t + v * b.size()).unwrap();
                    prop_assert_eq!(numbered.apply(at).unwrap(), t + v * b.size());
                }
            }
            let rows = CuteLayout::compact(Nest::from(tile.iter().map(|e| e * 2).collect::<Vec<_>>())).unwrap();
            let parts = partition_tv(&rows, &tile, &tv).unwrap();
            let mut all = values(&parts);
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..rows.size()));
        }
    }

    #[test]
    fn axe_layouts_agree(a in layouts(), offset in -5_i64..5) {
        let cute = ComposedLayout { offset, ..ComposedLayout::plain(a.clone()).unwrap() };
        let linear = to_axe_linear(&cute, Axis::M).unwrap();
        let brute = |l: &Layout, x: i64| {
            let mut rest = x;
            let mut sum = l.offset().get(Axis::M);
            for iter in l.shard().iter().rev() {
                sum += rest % iter.extent * iter.stride;
                rest /= iter.extent;
            }
            sum
        };
        for x in 0..a.size() {
            prop_assert_eq!(brute(&linear, x), cute.apply(x).unwrap());
        }
        let back = from_axe_linear(&linear).unwrap();
        prop_assert_eq!(&back.layout, &coalesce(&a));
        let (layout, shape) = to_axe(&cute, Axis::M).unwrap();
        let back = from_axe(&layout, &shape).unwrap();
        prop_assert_eq!(values(&back.layout), values(&a));
        prop_assert_eq!(back.offset, offset);
        // Row-major over the shape is the coordinate (c0, c1, ..) of CuTe.
        for x in 0..a.size() {
            let mut rest = x;
            let mut coord: Vec<Nest> = shape.iter().rev().map(|s| { let c = rest % s; rest /= s; Nest::Int(c) }).collect();
            coord.reverse();
            let coord = if a.depth() == 0 { coord.remove(0) } else { Nest::Tuple(coord) };
            prop_assert_eq!(brute(&layout, x), a.apply_coord(&coord).unwrap() + offset);
        }
    }

    #[test]
    fn texts_never_panic(text in "[ ()0-9_:,oSw<>-]{0,40}") {
        let _ = text.parse::<CuteLayout>();
        let _ = text.parse::<ComposedLayout>();
    }

    /// Nothing panics, whatever the numbers.
    #[test]
    fn extreme_numbers_never_panic(
        shapes in prop::collection::vec(prop::sample::select(vec![1_i64, 2, 3, 1 << 31, 1 << 40, i64::MAX]), 1..4),
        strides in prop::collection::vec(prop::sample::select(vec![0, 1, -1, 3, 1 << 40, i64::MAX, i64::MIN]), 4),
        b in layouts(),
        cotarget in any::<i64>(),
    ) {
        let strides = strides[..shapes.len()].to_vec();
        let Ok(a) = CuteLayout::new(Nest::from(shapes), Nest::from(strides)) else { return Ok(()) };
        let _ = (a.apply(cotarget), a.cosize(), coalesce(&a), filter(&a), left_inverse(&a), right_inverse(&a));
        let _ = (complement(&a, cotarget), complement(&b, cotarget));
        for (x, y) in [(&a, &b), (&b, &a), (&a, &a)] {
            let tiler = Tiler::Layout(y.clone());
            let _ = (composition(x, y), flat_divide(x, &tiler), flat_product(x, &tiler));
            let _ = (blocked_product(x, y), raked_product(x, y));
            let _ = composition_by_mode(x, &Tiler::Tuple(vec![tiler, Tiler::Extent(cotarget)]));
        }
        let composed = ComposedLayout { offset: cotarget, ..ComposedLayout::plain(a.clone()).unwrap() };
        let _ = (composed.apply(cotarget), composed.right_inverse(), to_axe(&composed, Axis::M));
        let sw = crate::Swizzle::new(3, 4, 3, true).unwrap();
        let _ = ComposedLayout::from_inner_swizzle(&a, sw);
    }
}
