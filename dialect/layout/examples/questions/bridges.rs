//! Questions about what leads out of the algebra: linear maps, shuffles, CuTe, shardings, banks.

use std::collections::{BTreeMap, BTreeSet};

use axe_layout::analysis::WarpAccess;
use axe_layout::cute::{self, CuteLayout, Nest, Tiler};
use axe_layout::generate::Choices;
use axe_layout::linear::{
    Columns, Distribution, Table, check_shuffle, check_tables, relayout_tables, shared_tables,
    warp_shuffle,
};
use axe_layout::sharding::{AxisRef, Mesh, Reduction, Sharding, parse_placements, plan};
use axe_layout::{Axis, Coord, oracle};

fn columns(c: &mut Choices<'_>, most: u16, bits: u32) -> Vec<i64> {
    let mask = (1_i64 << bits) - 1;
    (0..c.below(most + 1))
        .map(|_| i64::from(c.below(256)) & mask)
        .collect()
}

/// The images of all inputs, by xor.
fn images(of: &Columns) -> Vec<u64> {
    let column = |x: u64, k: usize| if x >> k & 1 == 1 { of.as_slice()[k] } else { 0 };
    (0..1_u64 << of.len())
        .map(|x| (0..of.len()).fold(0, |sum, k| sum ^ column(x, k)))
        .collect()
}

pub(crate) fn linear(c: &mut Choices<'_>) -> u64 {
    let (a, b) = (
        Columns::try_from(columns(c, 6, 6)).unwrap(),
        Columns::try_from(columns(c, 6, 6)).unwrap(),
    );
    let (of_a, of_b) = (images(&a), images(&b));
    let distinct: BTreeSet<u64> = of_a.iter().copied().collect();
    assert_eq!(1 << a.rank(), distinct.len(), "{a}");
    match a.compose(&b) {
        Ok(both) => assert!(
            images(&both)
                .iter()
                .zip(&of_b)
                .all(|(&z, &y)| z == of_a[y as usize]),
            "{a} {b}"
        ),
        Err(_) => assert!(of_b.iter().any(|&y| y >= of_a.len() as u64), "{a} {b}"),
    }
    if let Ok(back) = a.inverse() {
        assert!((0..).zip(&of_a).all(|(x, &y)| back.apply(y) == x), "{a}");
    }
    match a.solve(&b) {
        Ok(way) => assert!(
            images(&way)
                .iter()
                .zip(&of_b)
                .all(|(&x, &y)| of_a[x as usize] == y),
            "{a} {b}"
        ),
        Err(_) => assert!(of_b.iter().any(|y| !distinct.contains(y)), "{a} {b}"),
    }
    4
}

fn table(c: &mut Choices<'_>, lanes: u16, registers: u16) -> Table {
    let element = |c: &mut Choices<'_>| (c.below(8) > 0).then(|| u64::from(c.below(12)));
    (0..lanes)
        .map(|_| (0..registers).map(|_| element(c)).collect())
        .collect()
}

pub(crate) fn relayouts(c: &mut Choices<'_>) -> u64 {
    let bits = c.pick(32, &[8, 16]);
    let (lanes, registers, wanted) = (1 + c.below(5), 1 + c.below(4), 1 + c.below(4));
    let (src, dst) = (table(c, lanes, registers), table(c, lanes, wanted));
    let held: BTreeSet<u64> = src.iter().flatten().flatten().copied().collect();
    let possible = dst
        .iter()
        .flatten()
        .flatten()
        .all(|element| held.contains(element));
    match relayout_tables(&src, &dst, bits) {
        Ok(plan) => assert_eq!(check_tables(&src, &dst, &plan), Ok(()), "{src:?} {dst:?}"),
        Err(error) => assert!(!possible, "{src:?} {dst:?}: {error}"),
    }
    let warps = (vec![src.clone(), dst.clone()], vec![dst, src]);
    if let Ok(plan) = shared_tables(&warps.0, &warps.1, bits) {
        assert_eq!(plan.check(&warps.0, &warps.1), Ok(()), "{warps:?}");
    }
    let side = |c: &mut Choices<'_>| {
        Distribution::new(columns(c, 3, 5), {
            let mut lane = columns(c, 2, 5);
            lane.resize(2, 0);
            lane
        })
        .unwrap()
    };
    let (src, dst) = (side(c), side(c));
    let all = |of: &Distribution| -> Vec<BTreeSet<u64>> {
        (0..4)
            .map(|l| (0..of.registers() as u64).map(|r| of.apply(l, r)).collect())
            .collect()
    };
    let (from, to) = (all(&src), all(&dst));
    let held: BTreeSet<u64> = from.iter().flatten().copied().collect();
    match warp_shuffle(&src, &dst, bits) {
        Ok(plan) => {
            assert_eq!(check_shuffle(&src, &dst, &plan), Ok(()), "{src:?} {dst:?}");
            let lacking = to
                .iter()
                .zip(&from)
                .map(|(to, from)| to.difference(from).count())
                .max()
                .unwrap_or(0);
            assert!(
                plan.shuffles() * (32 / bits as usize) >= lacking,
                "{src:?} {dst:?}"
            );
        }
        Err(error) => assert!(
            !to.iter().flatten().all(|e| held.contains(e)),
            "{src:?} {dst:?}: {error}"
        ),
    }
    3
}

fn cute_layout(c: &mut Choices<'_>) -> Option<CuteLayout> {
    let mode = |c: &mut Choices<'_>| {
        let extent = c.pick(2, &[1, 2, 3, 4, 6, 8]);
        CuteLayout::new(
            Nest::Int(extent),
            Nest::Int(c.pick(1, &[0, 1, 2, 3, 4, 6, 8, 12, 16, 33])),
        )
        .ok()
    };
    let modes: Option<Vec<CuteLayout>> = (0..=c.below(3)).map(|_| mode(c)).collect();
    CuteLayout::concat(modes?)
        .ok()
        .filter(|layout| layout.size() <= 256)
}

fn values(layout: &CuteLayout) -> Vec<i64> {
    (0..layout.size())
        .map(|index| layout.apply(index).unwrap())
        .collect()
}

fn sorted(layout: &CuteLayout) -> Vec<i64> {
    let mut all = values(layout);
    all.sort_unstable();
    all
}

pub(crate) fn cute(c: &mut Choices<'_>) -> u64 {
    let (Some(a), Some(b)) = (cute_layout(c), cute_layout(c)) else {
        return 0;
    };
    assert_eq!(values(&cute::coalesce(&a)), values(&a));
    if let Ok(both) = cute::composition(&a, &b) {
        let want: Vec<i64> = values(&b)
            .into_iter()
            .map(|y| a.apply(y).unwrap())
            .collect();
        assert_eq!(values(&both), want, "{a} o {b}");
    }
    let cotarget = i64::from(c.below(200)) + 1;
    if let Ok(rest) = cute::complement(&a, cotarget) {
        let own = values(&cute::filter(&a));
        let mut sums: Vec<i64> = own
            .iter()
            .flat_map(|x| values(&rest).into_iter().map(move |y| x + y))
            .collect();
        sums.sort_unstable();
        assert!(
            sums.windows(2).all(|pair| pair[0] < pair[1]),
            "{a} in {cotarget}: {rest}"
        );
    }
    let right = cute::right_inverse(&a).unwrap();
    assert!(
        (0..right.size()).all(|i| a.apply(right.apply(i).unwrap()).unwrap() == i),
        "{a}: {right}"
    );
    let tiler = Tiler::Layout(b.clone());
    if let Ok(tiles) = cute::zipped_divide(&a, &tiler) {
        assert_eq!(sorted(&tiles)[0], sorted(&a)[0], "{a} by {b}");
        if tiles.size() == a.size() {
            assert_eq!(sorted(&tiles), sorted(&a), "{a} by {b}: {tiles}");
        }
    }
    for product in [cute::blocked_product, cute::raked_product] {
        let Ok(whole) = product(&a, &b) else { continue };
        // Copies of `a`, one for each index of `b`, at the same places in both.
        let copies = cute::logical_product(&a, &tiler).unwrap();
        assert_eq!(sorted(&whole), sorted(&copies), "{a} {b}");
        let (own, other) = (values(&a), cute::filter(&b).size() == b.size());
        let distinct: BTreeSet<i64> = own.iter().copied().collect();
        if other
            && distinct.len() == own.len()
            && values(&b).iter().collect::<BTreeSet<_>>().len() as i64 == b.size()
        {
            let all: BTreeSet<i64> = values(&whole).into_iter().collect();
            assert_eq!(all.len() as i64, whole.size(), "{a} {b}: {whole}");
        }
    }
    6
}

/// A sharding over a mesh of eight devices, each prime digit of which draws a role.
fn sharding(c: &mut Choices<'_>, mesh: &Mesh) -> Sharding {
    let digits =
        [(0, 1, 2), (1, 1, 2), (1, 2, 2)].map(|(axis, pre, size)| AxisRef { axis, pre, size });
    let (mut dims, mut partial, mut held) = (vec![Vec::new(); 2], Vec::new(), Vec::new());
    let mut order = [0, 1, 2];
    order.rotate_left(usize::from(c.below(3)));
    for at in order {
        let digit = digits[at];
        match c.below(8) {
            0 | 1 => dims[0].push(digit),
            2 | 3 => dims[1].push(digit),
            4 => partial.push((digit, Reduction::Sum)),
            5 => held.push((digit, i64::from(c.below(2)))),
            _ => {}
        }
    }
    Sharding::new(mesh.clone(), vec![16, 8], dims, partial, held).unwrap()
}

pub(crate) fn shardings(c: &mut Choices<'_>) -> u64 {
    let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
    let (from, to) = (sharding(c, &mesh), sharding(c, &mesh));
    let layout = from.to_layout().unwrap();
    let (gpu, local) = (Axis::new("gpu").unwrap(), from.local_shape());
    let mut want: BTreeMap<i64, BTreeSet<Coord>> = BTreeMap::new();
    for (device, at) in (0..).zip(mesh.coordinates()) {
        let Some(begin) = from.tile_begin(&at) else {
            continue;
        };
        for inside in 0..from.local_size() {
            let offset = oracle::unflatten(&local, inside);
            let coord: Vec<i64> = begin.iter().zip(&offset).map(|(b, o)| b + o).collect();
            let place = Coord::from_terms([(gpu, device), (Axis::M, inside)]).unwrap();
            want.entry(oracle::flatten(from.shape(), &coord))
                .or_default()
                .insert(place);
        }
    }
    for x in 0..layout.size() {
        let points: BTreeSet<Coord> = layout.points(x).unwrap().into_iter().collect();
        assert_eq!(Some(&points), want.get(&x), "{layout} at {x}");
    }
    let (again, shape) = (mesh.clone(), from.shape().to_vec());
    if let Ok(text) = from.to_hlo() {
        assert_eq!(
            Sharding::from_hlo(again.clone(), shape.clone(), &text).unwrap(),
            from,
            "{text}"
        );
    }
    if let Ok(text) = from.to_dtensor() {
        let placements = parse_placements(&text).unwrap();
        assert_eq!(
            Sharding::from_placements(again, shape, &placements).unwrap(),
            from,
            "{text}"
        );
    }
    let found = plan(&from, &to, 2).unwrap();
    assert_eq!(found.steps.is_empty(), from == to, "{from:?} {to:?}");
    assert!(
        found.minimal && found.bytes_per_device() >= found.lower_bound,
        "{from:?} {to:?}"
    );
    assert!(
        found.steps.last().is_none_or(|step| step.after == to),
        "{from:?} {to:?}"
    );
    4
}

pub(crate) fn accesses(c: &mut Choices<'_>) -> u64 {
    let bytes = c.pick(4, &[1, 2, 4, 8, 16]);
    let lanes = 1 + c.below(32);
    let address = |c: &mut Choices<'_>| (c.below(8) > 0).then(|| i64::from(c.below(128)) * bytes);
    let addresses: Vec<Option<i64>> = (0..lanes).map(|_| address(c)).collect();
    let access = WarpAccess::new(bytes, addresses.clone()).unwrap();
    let moved = |unit: i64, lanes: &[Option<i64>]| -> BTreeSet<i64> {
        lanes
            .iter()
            .flatten()
            .flat_map(|a| a / unit..=(a + bytes - 1) / unit)
            .collect()
    };
    assert_eq!(
        access.sectors().sectors,
        moved(32, &addresses).len() as u64,
        "{access:?}"
    );
    // Lanes that are served together: all up to 4 bytes, half at 8, a quarter at 16.
    let together = (32 / (bytes / 4).max(1)) as usize;
    let passes = addresses.chunks(together).map(|lanes| {
        let mut banks: BTreeMap<i64, u64> = BTreeMap::new();
        for word in moved(4, lanes) {
            *banks.entry(word % 32).or_insert(0) += 1;
        }
        banks.into_values().max().unwrap_or(0)
    });
    let want: u64 = passes.sum();
    assert_eq!(access.banks().passes, want, "{access:?}");
    2
}
