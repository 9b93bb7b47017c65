//! Linear maps and relayouts against brute force.

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

#[test]
fn example_of_the_notes_takes_two_shuffles() {
    // n = (n1, n2, n4) from (r, t1, t2): the fp16 and the fp8 operand.
    let (src, dst) = (dist(&[1], &[2, 4]), dist(&[4], &[1, 2]));
    let way = Columns::solve(&cols(&[4, 1, 2]), &cols(&[1, 2, 4])).unwrap();
    assert_eq!(way.as_slice(), [2, 4, 1]);
    let plan = warp_shuffle(&src, &dst, 32).unwrap();
    assert_eq!((plan.shuffles(), plan.steps.len()), (2, 4));
    check_shuffle(&src, &dst, &plan).unwrap();
    // Two such halves in a 32-bit word travel together when a second register bit goes along.
    let (src, dst) = (dist(&[1, 8], &[2, 4]), dist(&[4, 8], &[1, 2]));
    assert_eq!(warp_shuffle(&src, &dst, 16).unwrap().shuffles(), 2);
    assert_eq!(warp_shuffle(&src, &dst, 32).unwrap().shuffles(), 4);
}

#[test]
fn steps_have_the_form_of_the_exchange_format() {
    let (src, dst) = (dist(&[1], &[2, 4]), dist(&[2], &[1, 4]));
    let plan = warp_shuffle(&src, &dst, 32).unwrap();
    let json = serde_json::to_value(&plan.steps).unwrap();
    let expected = serde_json::json!([
        {"op": "select_linear", "regs": 2, "from_reg": [1], "from_lane": [1, 0], "const": 0},
        {"op": "shfl", "src": 1, "dst": 1, "lane_linear": [1, 2], "const": 1},
        {"op": "select_linear", "regs": 2, "from_reg": [1], "from_lane": [1, 0], "const": 0},
    ]);
    assert_eq!(json, expected);
    let source: Distribution = serde_json::from_str(r#"{"reg": [1], "lane": [2, 4]}"#).unwrap();
    assert_eq!(source, src);
}

#[test]
fn a_selection_alone_is_one_step() {
    // Lanes keep their elements; registers change places depending on the lane.
    let (src, dst) = (dist(&[1, 2], &[4, 8]), dist(&[2, 1], &[5, 11]));
    let plan = warp_shuffle(&src, &dst, 32).unwrap();
    assert_eq!((plan.shuffles(), plan.steps.len()), (0, 1));
    check_shuffle(&src, &dst, &plan).unwrap();
    assert_eq!(src.values(&[(3, 1), (0, 2)]).unwrap(), [13, 2]);
    assert!(src.values(&[(4, 0)]).is_err() && src.values(&[(0, -1)]).is_err());
    assert_eq!(cols(&[1, 3, 0]).to_string(), "1 1 .\n. 1 .");
}

#[test]
fn refuses_what_cannot_be_done() {
    let one = dist(&[1], &[2, 4]);
    for (src, dst, bits, kind) in [
        (&one, dist(&[8], &[1, 2]), 32, Kind::None),
        (&one, dist(&[1], &[2]), 32, Kind::Invalid),
        (&one, one.clone(), 24, Kind::Invalid),
        (&one, one.clone(), 0, Kind::Invalid),
        (&one, dist(&[0; 40], &[2, 4]), 32, Kind::Unsupported),
    ] {
        assert_eq!(warp_shuffle(src, &dst, bits).unwrap_err().kind(), kind);
    }
    assert!(warp_shuffle(&one, &one, 32).unwrap().steps.is_empty());
    // A checker that can fail.
    let plan = warp_shuffle(&one, &dist(&[4], &[2, 1]), 32).unwrap();
    assert!(check_shuffle(&one, &one, &plan).is_err());
}

/// The most elements that any lane of `dst` needs from other lanes, which no plan can beat with one
/// element a shuffle.
fn needed_elsewhere(src: &Distribution, dst: &Distribution) -> usize {
    let held = |d: &Distribution, l: usize| -> BTreeSet<u64> {
        (0..d.registers())
            .map(|r| d.apply(l as u64, r as u64))
            .collect()
    };
    let lanes = 0..dst.lanes();
    lanes
        .map(|l| held(dst, l).difference(&held(src, l)).count())
        .max()
        .unwrap_or(0)
}

fn check_all_widths(src: &Distribution, dst: &Distribution) {
    let fewest = needed_elsewhere(src, dst);
    let rank = |d: &Distribution| {
        let all: Vec<i64> = [Vec::from(d.reg.clone()), d.lane.clone().into()].concat();
        cols(&all).rank()
    };
    let whole = rank(src) == rank(dst);
    for bits in [8, 16, 32, 64] {
        let plan = warp_shuffle(src, dst, bits).unwrap();
        check_shuffle(src, dst, &plan).unwrap();
        let per_word = (32 / bits.min(32)) as usize;
        assert!(plan.shuffles() * per_word >= fewest);
        assert!(!whole || plan.shuffles() <= fewest, "{src:?} {dst:?}");
        if bits >= 32 && whole {
            assert_eq!(plan.shuffles(), fewest, "{src:?} {dst:?}");
        }
    }
}

/// Every invertible conversion of 4 registers in 4 lanes: all 20160 of them take the fewest shuffles.
#[test]
fn all_small_conversions_are_optimal() {
    let src = dist(&[1, 2], &[4, 8]);
    let mut seen = 0;
    for code in 0..1_i64 << 16 {
        let c: Vec<i64> = (0..4).map(|k| code >> (4 * k) & 15).collect();
        if cols(&c).rank() == 4 {
            let dst = dist(&c[..2], &c[2..]);
            let plan = warp_shuffle(&src, &dst, 32).unwrap();
            check_shuffle(&src, &dst, &plan).unwrap();
            assert_eq!(plan.shuffles(), needed_elsewhere(&src, &dst));
            seen += 1;
        }
    }
    assert_eq!(seen, 20160);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any source, broadcast or not; any destination whose elements the source has.
    #[test]
    fn conversions_with_broadcasts_are_optimal(
        reg in columns(3, 5),
        lane in columns(3, 5),
        pick in prop::collection::vec(any::<u64>(), 6),
        dst_regs in 0_usize..4,
    ) {
        let src = Distribution { reg, lane };
        let element = |mask: &u64| src.apply(mask & 7, mask >> 3 & 7) as i64;
        let wanted: Vec<i64> = pick.iter().map(element).collect();
        let dst = dist(&wanted[..dst_regs], &wanted[3..]);
        check_all_widths(&src, &dst);
    }

    #[test]
    fn bijections_are_optimal(a in bijection(9), b in bijection(9)) {
        let of = |c: &Columns| {
            let c: Vec<i64> = c.clone().into();
            dist(&c[..4], &c[4..])
        };
        check_all_widths(&of(&a), &of(&b));
    }

    /// Register and lane bits permuted, as between real fragments.
    #[test]
    fn permuted_bits_are_optimal(order in Just((0..10_i64).collect::<Vec<_>>()).prop_shuffle()) {
        let bits: Vec<i64> = order.iter().map(|k| 1 << k).collect();
        check_all_widths(&dist(&[1, 2, 4, 8, 16], &[32, 64, 128, 256, 512]), &dist(&bits[..5], &bits[5..]));
    }

    #[test]
    fn tables_of_any_size(
        lanes in 1_usize..7,
        regs in 1_usize..6,
        order in any::<u64>(),
        replicas in any::<bool>(),
        bits in prop::sample::select(vec![8_u32, 16, 32]),
    ) {
        let total = (lanes * regs) as u64;
        let hash = |x: u64| (x + 1).wrapping_mul(order | 1).rotate_left(17) ^ order;
        let mut shuffled: Vec<u64> = (0..total).collect();
        shuffled.sort_by_key(|&x| hash(x));
        let source = |x: u64| if replicas { x % total.div_ceil(2) } else { x };
        let src: Table = (0..lanes)
            .map(|l| (0..regs).map(|r| Some(source((l * regs + r) as u64))).collect())
            .collect();
        let wanted = |x: u64| (hash(x) % 7 != 0).then(|| source(shuffled[x as usize]));
        let dst: Table = (0..lanes)
            .map(|l| (0..regs).map(|r| wanted((l * regs + r) as u64)).collect())
            .collect();
        let plan = relayout_tables(&src, &dst, bits).unwrap();
        check_tables(&src, &dst, &plan).unwrap();
        if bits == 32 && !replicas {
            // No plan of single hops beats the busiest lane.
            let moves: Vec<(usize, usize)> = (0..lanes).flat_map(|to| {
                let (src, dst) = (&src, &dst);
                dst[to].iter().flatten().filter_map(move |e| {
                    let from = src.iter().position(|regs| regs.contains(&Some(*e))).unwrap();
                    (from != to).then_some((from, to))
                })
            }).collect();
            let busiest = (0..lanes).flat_map(|l| [
                moves.iter().filter(|m| m.0 == l).count(),
                moves.iter().filter(|m| m.1 == l).count(),
            ]).max().unwrap();
            prop_assert_eq!(plan.shuffles(), busiest);
        }
    }

    #[test]
    fn shared_memory_without_conflicts(
        a in columns(12, 12),
        b in columns(12, 12),
        merge in any::<u64>(),
        bits in prop::sample::select(vec![8_u32, 16, 32, 64]),
        regs in 0_usize..6,
    ) {
        let random = |c: &Columns| {
            let c: Vec<i64> = c.clone().into();
            Distribution3 { reg: cols(&c[..regs]), lane: cols(&c[regs..regs + 5]), warp: cols(&c[regs + 5..(regs + 7).min(12)]) }
        };
        let src = random(&a);
        // The destination takes each of its bits from the span of the source, often one bit as it is.
        let span: Vec<u64> = src.reg.as_slice().iter().chain(src.lane.as_slice()).chain(src.warp.as_slice()).copied().collect();
        let from = |k: usize, c: u64| -> i64 {
            let mixed = (0..span.len()).filter(|i| c >> i & 1 == 1).fold(0, |sum, i| sum ^ span[i]);
            let plain = span[(k * 5 + merge as usize % 7) % span.len()];
            if merge >> (k + 8) & 1 == 1 { mixed as i64 } else { plain as i64 }
        };
        let c: Vec<i64> = b.as_slice().iter().enumerate().map(|(k, &c)| from(k, c)).collect();
        let dst = random(&cols(&c));
        let plan = shared_plan(&src, &dst, bits).unwrap();
        plan.check(&src, &dst).unwrap();
    }
}

#[test]
fn shared_transpose_is_vectorised_and_free_of_conflicts() {
    // 64x64 of 16-bit elements, 8 registers, 32 lanes, 16 warps: rows to columns.
    let side = |swap: bool| {
        let bit = |k: u32| 1_i64 << if swap { (k + 6) % 12 } else { k };
        let bits = |range: std::ops::Range<u32>| cols(&range.map(bit).collect::<Vec<_>>());
        Distribution3 {
            reg: bits(0..3),
            lane: bits(3..8),
            warp: bits(8..12),
        }
    };
    let (rows, columns) = (side(false), side(true));
    for (src, dst, vectors) in [(&rows, &rows, (8, 8)), (&rows, &columns, (1, 8))] {
        let plan = shared_plan(src, dst, 16).unwrap();
        plan.check(src, dst).unwrap();
        assert_eq!((plan.store.vector, plan.load.vector), vectors);
        assert_eq!(plan.bytes, 8192);
    }
    // A checker that can fail: the plain row-major memory layout has conflicts.
    let mut plan = shared_plan(&rows, &columns, 16).unwrap();
    plan.load.lane = cols(&[64, 128, 256, 512, 1024]);
    assert!(plan.check(&rows, &columns).is_err());
    let lacking = Distribution3 {
        reg: cols(&[4096]),
        ..rows.clone()
    };
    assert_eq!(
        shared_plan(&rows, &lacking, 16).unwrap_err().kind(),
        Kind::None
    );
    assert_eq!(
        shared_plan(&rows, &rows, 4).unwrap_err().kind(),
        Kind::Unsupported
    );
    assert_eq!(
        shared_plan(&rows, &Distribution3::default(), 16)
            .unwrap_err()
            .kind(),
        Kind::Invalid
    );
}

/// The destination holds a part of the tile, some of it several times: no lane receives, and none sends,
/// more words than it must.
#[test]
fn parts_of_a_tile_take_the_fewest_shuffles() {
    let sends = |src: &Distribution, dst: &Distribution| {
        let lanes = 0..src.lanes() as u64;
        let holds = |l: u64| {
            (0..src.registers() as u64)
                .map(move |r| src.apply(l, r))
                .collect::<BTreeSet<_>>()
        };
        let mut asked: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for to in lanes.clone() {
            for element in (0..dst.registers() as u64).map(|r| dst.apply(to, r)) {
                let from = lanes
                    .clone()
                    .find(|&l| holds(l).contains(&element))
                    .unwrap();
                if from != to {
                    asked.entry(from).or_default().insert(element);
                }
            }
        }
        asked.values().map(BTreeSet::len).max().unwrap_or(0)
    };
    let found = dist(&[2], &[4, 1]);
    let plan = warp_shuffle(&found, &dist(&[4], &[0, 2]), 32).unwrap();
    assert_eq!(plan.shuffles(), 2);
    for src in [
        found,
        dist(&[1], &[2, 4]),
        dist(&[4], &[1, 6]),
        dist(&[3], &[5, 7]),
    ] {
        for index in 0..512_i64 {
            let dst = dist(&[index & 7], &[index >> 3 & 7, index >> 6]);
            let plan = warp_shuffle(&src, &dst, 32).unwrap();
            check_shuffle(&src, &dst, &plan).unwrap();
            let fewest = needed_elsewhere(&src, &dst).max(sends(&src, &dst));
            assert_eq!(plan.shuffles(), fewest, "{src:?} {dst:?}");
        }
    }
}

#[test]
fn tables_of_layouts() {
    let (reg, lane) = (axis("reg"), axis("lane"));
    // 12 elements over 3 lanes, 4 registers each; then over 4 lanes of 3, with an idle lane and copies.
    let src = table_of_layout(
        &shard(&[(3, 1, "lane"), (4, 1, "reg")]),
        (reg, 4),
        (lane, 4),
    )
    .unwrap();
    let dst = shard(&[(3, 1, "reg"), (2, 1, "lane"), (2, 3, "reg")]);
    let dst = dst.with_replica([Iter::new(2, 2, lane)]).unwrap();
    let dst = table_of_layout(&dst, (reg, 6), (lane, 4)).unwrap();
    let plan = relayout_tables(&src, &dst, 32).unwrap();
    check_tables(&src, &dst, &plan).unwrap();
    assert!(src[3].iter().all(Option::is_none) && dst[3][0].is_some());
    let clash = table_of_layout(&shard(&[(4, 0, "reg")]), (reg, 4), (lane, 1));
    assert_eq!(clash.unwrap_err().kind(), Kind::Invalid);
    let outside = table_of_layout(&shard(&[(4, 1, "reg")]), (reg, 3), (lane, 1));
    assert_eq!(outside.unwrap_err().kind(), Kind::Invalid);
    assert_eq!(
        relayout_tables(&src, &vec![vec![Some(99)]; 4], 32)
            .unwrap_err()
            .kind(),
        Kind::None
    );
    assert!(relayout_tables(&src, &vec![], 32).is_err());
    assert!(relayout_tables(&vec![vec![]; 4], &vec![vec![]; 4], 32).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Nothing panics, whatever the columns and sizes.
    #[test]
    fn extreme_columns_never_panic(
        a in prop::collection::vec(0..=i64::MAX, 0..64),
        b in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 4, 8, i64::MAX, 1 << 62]), 0..64),
        bits in any::<usize>(),
        elem in any::<u32>(),
        cut in 0_usize..10,
    ) {
        let split = |c: &[i64]| {
            let (reg, rest) = c.split_at(cut.min(c.len()));
            let (lane, warp) = rest.split_at(rest.len().min(4));
            (cols(reg), cols(lane), cols(warp))
        };
        let (a_cols, b_cols) = (cols(&a), cols(&b));
        for (f, g) in [(&a_cols, &b_cols), (&b_cols, &a_cols), (&b_cols, &b_cols)] {
            let _ = (f.compose(g), f.inverse(), f.solve(g), f.pseudo_inverse(bits), f.product(bits % 70, g));
            let _ = (f.kernel(), f.rank(), f.apply(u64::MAX), f.to_string());
            let map = BTreeMap::from([(Axis::M, f.clone()), (axis("lane"), g.clone())]);
            let _ = layout_of_columns(&map);
            let _ = layout_of_columns(&BTreeMap::from([(Axis::M, f.clone())]));
            let named = LinearLayout::from_columns(axis("i"), axis("x"), bits % 70, f);
            if let Ok(named) = named {
                let _ = (named.product(&named), named.inverse(), named.divide_left(&named));
            }
            let ((reg, lane, warp), (reg2, lane2, warp2)) = (split(&a), split(&b));
            let src = Distribution { reg: reg.clone(), lane: lane.clone() };
            let dst = Distribution { reg: reg2.clone(), lane: lane2.clone() };
            let _ = (warp_shuffle(&src, &dst, elem), warp_shuffle(&src, &src, 8));
            let src = Distribution3 { reg, lane, warp };
            let dst = Distribution3 { reg: reg2, lane: lane2, warp: warp2 };
            let _ = (shared_plan(&src, &dst, 32), shared_plan(&src, &src, 16));
        }
        let _ = LinearLayout::new(vec![(axis("i"), vec![vec![1, 1]])], vec![(axis("x"), bits), (axis("y"), bits)]);
        let one = LinearLayout::identity(axis("i"), axis("x"), 2).unwrap();
        let _ = one.reordered(&[(axis("i"), bits), (axis("j"), bits)], &[(axis("x"), bits)]);
    }
}

/// A permutation of 128 registers in 32 lanes that is not linear.
fn scattered(seed: u64) -> (Table, Table) {
    let hash = |x: u64| (x + 1).wrapping_mul(seed | 1).rotate_left(17) ^ seed;
    let mut shuffled: Vec<u64> = (0..4096).collect();
    shuffled.sort_by_key(|&x| hash(hash(x)));
    let table = |element: &dyn Fn(u64) -> u64| -> Table {
        (0..32)
            .map(|l| (0..128).map(|r| Some(element(l * 128 + r))).collect())
            .collect()
    };
    (table(&|x| x), table(&|x| shuffled[x as usize]))
}

#[test]
fn a_scattered_warp_is_planned_in_as_many_rounds_as_its_busiest_lane() {
    for seed in [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03] {
        let (src, dst) = scattered(seed);
        for bits in [8, 16, 32] {
            let plan = relayout_tables(&src, &dst, bits).unwrap();
            check_tables(&src, &dst, &plan).unwrap();
        }
        let plan = relayout_tables(&src, &dst, 32).unwrap();
        let sent = |from: u64| {
            (0..32)
                .filter(|&to| to != from)
                .flat_map(|to| &dst[to as usize])
                .filter(|e| e.is_some_and(|e| e / 128 == from))
                .count()
        };
        let received = |to: u64| {
            dst[to as usize]
                .iter()
                .filter(|e| e.is_some_and(|e| e / 128 != to))
                .count()
        };
        let busiest = (0..32).flat_map(|l| [sent(l), received(l)]).max();
        assert_eq!(Some(plan.shuffles()), busiest);
    }
}

/// Elements may be any numbers.
#[test]
fn far_elements_are_numbered_by_search() {
    let far = |x: u64| Some(x * (u64::MAX / 8));
    let src: Table = (0..4).map(|l| vec![far(l), far(l + 4)]).collect();
    let dst: Table = (0..4)
        .map(|l| vec![far((l + 1) % 4 + 4), None, far(l)])
        .collect();
    let plan = relayout_tables(&src, &dst, 32).unwrap();
    check_tables(&src, &dst, &plan).unwrap();
    assert_eq!(plan.shuffles(), 1);
    let missing: Table = (0..4).map(|_| vec![Some(12345)]).collect();
    assert!(relayout_tables(&src, &missing, 32).is_err());
    let gap: Table = vec![vec![Some(0), Some(5)]];
    assert!(relayout_tables(&gap, &vec![vec![Some(3)]], 32).is_err());
    let none: Table = vec![vec![None], vec![None]];
    assert_eq!(relayout_tables(&none, &none, 32).unwrap().shuffles(), 0);
    assert!(relayout_tables(&none, &gap, 32).is_err());
}

#[test]
#[ignore = "measures time: run it with --release --ignored --nocapture"]
fn time_of_a_scattered_warp() {
    for seed in [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03] {
        let (src, dst) = scattered(seed);
        for bits in [8, 16, 32] {
            let best = (0..50)
                .map(|_| {
                    let start = std::time::Instant::now();
                    let plan = relayout_tables(std::hint::black_box(&src), &dst, bits).unwrap();
                    let taken = start.elapsed();
                    drop(std::hint::black_box(plan));
                    taken
                })
                .collect::<Vec<_>>();
            let mut best = best;
            best.sort_unstable();
            println!("{bits} bits: median {:?}, least {:?}", best[25], best[0]);
        }
    }
}
