//! Relayouts against brute force.

use super::*;

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
