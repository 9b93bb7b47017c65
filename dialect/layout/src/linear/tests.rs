//! Linear maps against brute force.

mod relayout;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::Kind;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::Swizzle;

fn cols(columns: &[i64]) -> Columns {
    columns.to_vec().try_into().unwrap()
}

fn axis(name: &str) -> Axis {
    Axis::new(name).unwrap()
}

fn dist(reg: &[i64], lane: &[i64]) -> Distribution {
    Distribution::new(reg.to_vec(), lane.to_vec()).unwrap()
}

fn columns(len: usize, bits: u32) -> impl Strategy<Value = Columns> {
    prop::collection::vec(0_i64..1 << bits, len).prop_map(|c| c.try_into().unwrap())
}

/// Bit permutations with columns added to others: every bijection is one.
fn bijection(bits: usize) -> impl Strategy<Value = Columns> {
    let order = Just((0..bits).collect::<Vec<_>>()).prop_shuffle();
    (order, prop::collection::vec((0..bits, 0..bits), 0..30)).prop_map(|(order, sums)| {
        let mut c: Vec<i64> = order.iter().map(|k| 1 << k).collect();
        for (i, j) in sums {
            if i != j {
                c[i] ^= c[j];
            }
        }
        c.try_into().unwrap()
    })
}

fn map_of(c: &Columns) -> Vec<u64> {
    let xor_of = |x: usize| {
        let set = (0..c.len()).filter(|k| x >> k & 1 == 1);
        set.fold(0, |sum, k| sum ^ c.as_slice()[k])
    };
    (0..1 << c.len()).map(xor_of).collect()
}

proptest! {
    #[test]
    fn columns_are_xors(a in columns(5, 6), b in columns(4, 5), c in columns(6, 6)) {
        let map = map_of(&a);
        for (x, &image) in map.iter().enumerate() {
            prop_assert_eq!(a.apply(x as u64), image);
        }
        let both = a.compose(&b).unwrap();
        for x in 0..16 {
            prop_assert_eq!(both.apply(x), a.apply(b.apply(x)));
        }
        let image: BTreeSet<u64> = map.iter().copied().collect();
        prop_assert_eq!(1 << a.rank(), image.len());
        let pseudo = a.pseudo_inverse(6).unwrap();
        for x in 0..32 {
            prop_assert_eq!(a.apply(pseudo.apply(a.apply(x))), a.apply(x));
        }
        for y in 0..64 {
            prop_assert_eq!(pseudo.apply(a.apply(pseudo.apply(y))), pseudo.apply(y));
        }
        let kernel = Columns::try_from(a.kernel().iter().map(|&k| k as i64).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(kernel.rank(), kernel.len());
        prop_assert_eq!(kernel.len() + a.rank(), 5);
        prop_assert!(map_of(&kernel).into_iter().all(|k| a.apply(k) == 0));
        match c.inverse() {
            Ok(inverse) => prop_assert_eq!(c.compose(&inverse).unwrap(), Columns::identity(6)),
            Err(e) => {
                prop_assert_eq!(e.kind(), Kind::None);
                prop_assert!(map_of(&c).iter().collect::<BTreeSet<_>>().len() < 64);
            }
        }
        match a.solve(&c) {
            Ok(x) => prop_assert_eq!(a.compose(&x).unwrap(), c),
            Err(_) => prop_assert!(map_of(&c).iter().any(|y| !image.contains(y))),
        }
    }

    #[test]
    fn products_divide(a in columns(2, 3), b in columns(3, 3)) {
        let (i, j, x) = (axis("i"), axis("j"), axis("x"));
        let inner = LinearLayout::from_columns(i, x, 3, &a).unwrap();
        let outer = LinearLayout::from_columns(i, x, 3, &b).unwrap();
        let other = LinearLayout::from_columns(j, x, 3, &b).unwrap();
        for (outer, name) in [(outer, i), (other, j)] {
            let product = inner.product(&outer).unwrap();
            for u in 0..4 {
                for v in 0..8 {
                    let coord = if name == i { vec![(i, u | v << 2)] } else { vec![(i, u), (j, v)] };
                    let image = product.apply(&coord).unwrap();
                    prop_assert_eq!(&image, &vec![(x, a.apply(u) | b.apply(v) << 3)]);
                }
            }
            let right = product.divide_left(&inner).unwrap();
            prop_assert!(right.reordered(outer.inputs(), outer.outputs()).unwrap() == outer);
            let left = product.divide_right(&outer).unwrap();
            prop_assert!(left.reordered(inner.inputs(), inner.outputs()).unwrap() == inner);
        }
    }

    #[test]
    fn named_layouts_compose_and_invert(a in columns(5, 5), b in columns(5, 5)) {
        let (i, j, x, y) = (axis("i"), axis("j"), axis("x"), axis("y"));
        let split = |c: &Columns, n: usize, ins: [Axis; 2], outs: [Axis; 2]| {
            let image = |v: &u64| vec![v & 3, v >> 2];
            let (low, high) = c.as_slice().split_at(n);
            LinearLayout::new(
                vec![(ins[0], low.iter().map(image).collect()), (ins[1], high.iter().map(image).collect())],
                vec![(outs[0], 2), (outs[1], 3)],
            ).unwrap()
        };
        let f = split(&a, 2, [i, j], [x, y]);
        let g = split(&b, 2, [x, y], [i, j]);
        let both = f.compose(&g).unwrap();
        for v in 0..32_u64 {
            let inner = g.apply(&[(x, v & 3), (y, v >> 2)]).unwrap();
            prop_assert_eq!(both.apply(&[(y, v >> 2), (x, v & 3)]).unwrap(), f.apply(&inner).unwrap());
            prop_assert_eq!(f.apply(&[(i, v & 3), (j, v >> 2)]).unwrap(), vec![(x, a.apply(v) & 3), (y, a.apply(v) >> 2)]);
        }
        prop_assert_eq!(f.bases(i, y).as_slice().to_vec(), vec![a.as_slice()[0] >> 2, a.as_slice()[1] >> 2]);
        prop_assert_eq!(f.is_injective(), a.rank() == 5);
        if f.is_surjective() {
            let inverse = f.inverse().unwrap();
            let one = f.compose(&inverse).unwrap();
            prop_assert_eq!(one.columns(), Columns::identity(5));
            let way = f.solve(&split(&b, 2, [i, j], [x, y])).unwrap();
            prop_assert_eq!(f.compose(&way).unwrap().columns(), b);
        } else {
            prop_assert_eq!(f.inverse().unwrap_err().kind(), Kind::None);
        }
    }
}

#[test]
fn named_layouts_refuse_what_does_not_fit() {
    let (i, x) = (axis("i"), axis("x"));
    let one = LinearLayout::identity(i, x, 3).unwrap();
    assert!(one.apply(&[(i, 8)]).is_err() && one.apply(&[(x, 0)]).is_err());
    assert!(one.compose(&one).is_err());
    assert!(LinearLayout::new(vec![(i, vec![vec![4]])], vec![(x, 2)]).is_err());
    assert!(LinearLayout::new(vec![(i, vec![vec![1, 1]])], vec![(x, 2)]).is_err());
    assert!(LinearLayout::new(vec![(i, vec![]), (i, vec![])], vec![(x, 2)]).is_err());
    assert!(LinearLayout::identity(i, x, 64).is_err());
    assert!(LinearLayout::zeros(i, x, 70).is_err());
    let broadcast = LinearLayout::zeros(i, x, 2).unwrap();
    assert_eq!(broadcast.apply(&[(i, 3)]).unwrap(), [(x, 0)]);
    assert!(
        one.divide_left(&LinearLayout::from_columns(i, x, 1, &cols(&[0])).unwrap())
            .is_err()
    );
    assert_eq!(one.divide_left(&one).unwrap().columns(), Columns::default());
    assert!(Columns::try_from(vec![-1]).is_err() && Columns::try_from(vec![0; 64]).is_err());
    assert!(cols(&[4]).compose(&cols(&[2])).is_err());
    assert_eq!(cols(&[1, 1]).inverse().unwrap_err().kind(), Kind::None);
    assert_eq!(cols(&[1, 4]).inverse().unwrap_err().kind(), Kind::None);
}

/// The matrices of the notes: Swizzle<2,3,3> on 256 elements, whose last element is at 231, and the
/// accesses of 8x8, 2x32 and 4x16.
#[test]
fn swizzle_of_the_notes() {
    let swizzle = columns_of_swizzle(Swizzle::new(2, 3, 3, true).unwrap(), 8).unwrap();
    assert_eq!(swizzle.as_slice(), [1, 2, 4, 8, 16, 32, 64 + 8, 128 + 16]);
    assert_eq!(swizzle.apply(255), 231);
    // j1 j2 j4 j8 j16 i1 i2 i4 are the address bits before the swizzle; two-byte elements, so that bits
    // 1 to 5 of the address choose the bank.
    let banks = |bits: &[i64]| {
        let picked = swizzle.compose(&cols(bits)).unwrap();
        let bank = |c: &u64| (c >> 1 & 31) as i64;
        cols(&picked.as_slice().iter().map(bank).collect::<Vec<_>>()).rank()
    };
    assert_eq!(banks(&[1, 2, 4, 32, 64, 128]), 5);
    assert_eq!(banks(&[1, 2, 4, 8, 16, 32]), 5);
    assert_eq!(banks(&[1, 2, 4, 8, 32, 64]), 4);
    assert!(columns_of_swizzle(Swizzle::new(2, 3, 3, true).unwrap(), 64).is_err());
    assert!(columns_of_swizzle(Swizzle::new(2, 3, 3, false).unwrap(), 6).is_err());
}

fn shard(iters: &[(i64, i64, &str)]) -> Layout {
    let iters = iters.iter().map(|&(e, s, a)| Iter::new(e, s, axis(a)));
    Layout::from_shard(iters).unwrap()
}

#[test]
fn layouts_to_columns_and_back() {
    // The A operand of hmma.16816 in the notes.
    let fragment = shard(&[
        (2, 2, "reg"),
        (8, 4, "lane"),
        (2, 4, "reg"),
        (4, 1, "lane"),
        (2, 1, "reg"),
    ]);
    let columns = columns_of_layout(&fragment).unwrap();
    assert_eq!(columns[&axis("reg")].as_slice(), [1, 0, 0, 4, 0, 0, 0, 2]);
    assert_eq!(columns[&axis("lane")].as_slice(), [0, 1, 2, 0, 4, 8, 16, 0]);
    assert_eq!(layout_of_columns(&columns).unwrap(), fragment);
    let held = distribution_of_layout(&fragment, axis("reg"), axis("lane")).unwrap();
    assert_eq!(held, dist(&[1, 128, 8], &[2, 4, 16, 32, 64]));
    let swizzled = shard(&[(8, 64, "m"), (64, 1, "m")])
        .with_swizzle(Some(Swizzle::new(3, 3, 3, true).unwrap()));
    let columns = columns_of_layout(&swizzled).unwrap();
    let back = layout_of_columns(&columns).unwrap();
    assert_eq!(columns_of_layout(&back).unwrap(), columns);
    assert!(back.swizzle().is_some());
    for (bad, kind) in [
        (shard(&[(3, 1, "m")]), Kind::None),
        (shard(&[(4, 3, "m")]), Kind::None),
        (shard(&[(4, -1, "m")]), Kind::None),
    ] {
        assert_eq!(columns_of_layout(&bad).unwrap_err().kind(), kind);
    }
    let offset = shard(&[(4, 1, "m")]).with_offset(Coord::from_terms([(Axis::M, 1)]).unwrap());
    assert!(columns_of_layout(&offset.unwrap()).is_err());
    let both = BTreeMap::from([(axis("a"), cols(&[1])), (axis("b"), cols(&[1]))]);
    assert_eq!(layout_of_columns(&both).unwrap_err().kind(), Kind::None);
    let broadcast = shard(&[(4, 1, "lane")])
        .with_replica([Iter::new(2, 4, axis("lane")), Iter::new(2, 1, axis("reg"))]);
    let held = distribution_of_layout(&broadcast.unwrap(), axis("reg"), axis("lane")).unwrap();
    assert_eq!(held, dist(&[0], &[1, 2, 0]));
    for partial in [&[(4, 2, "lane")][..], &[(4, 0, "lane")], &[(2, 3, "lane")]] {
        let held = distribution_of_layout(&shard(partial), axis("reg"), axis("lane"));
        assert_eq!(held.unwrap_err().kind(), Kind::None);
    }
}

proptest! {
    #[test]
    fn columns_agree_with_the_layout(
        extents in prop::collection::vec(0_u32..3, 1..5),
        order in any::<u64>(),
        swizzle in prop::option::of((1_u32..3, 0_u32..3, 2_u32..4, any::<bool>())),
    ) {
        // Strides that tile, in a random order, on two axes.
        let mut ranks: Vec<usize> = (0..extents.len()).collect();
        ranks.sort_by_key(|&k| order.rotate_left(9 * k as u32) % 97);
        let mut next = [1_i64, 1];
        let mut iters = vec![(1, 0, "m"); extents.len()];
        for k in ranks {
            let to = (order >> k & 1) as usize;
            iters[k] = (1 << extents[k], next[to], ["m", "lane"][to]);
            next[to] <<= extents[k];
        }
        let swizzle = swizzle.and_then(|(b, m, s, inner)| Swizzle::new(b, m, s, inner).ok());
        let layout = shard(&iters).with_swizzle(swizzle);
        let columns = columns_of_layout(&layout).unwrap();
        for x in 0..layout.size() {
            let (mut rest, mut at) = (x, BTreeMap::new());
            for &(extent, stride, a) in iters.iter().rev() {
                *at.entry(axis(a)).or_insert(0) += rest % extent * stride;
                rest /= extent;
            }
            for (a, c) in &columns {
                let plain = at[a];
                let moved = swizzle.filter(|_| *a == Axis::M).map_or(plain, |s| s.apply(plain));
                prop_assert_eq!(c.apply(x as u64), moved as u64);
            }
        }
        let back = layout_of_columns(&columns).unwrap();
        let moving = |mut all: BTreeMap<Axis, Columns>| {
            all.retain(|_, c| c.rank() > 0);
            all
        };
        prop_assert_eq!(moving(columns_of_layout(&back).unwrap()), moving(columns));
    }
}
