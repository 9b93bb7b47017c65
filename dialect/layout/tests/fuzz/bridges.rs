//! The operations of the bridges and of compiled addresses, on small inputs against their definitions
//! and on numbers at the edge of 64 bits for the absence of panics.

use axe_layout::address::AddressMap;
use axe_layout::cute::{self, CuteLayout, Tiler};
use axe_layout::generate::Choices;
use axe_layout::linear::{
    Columns, Distribution, Table, check_shuffle, check_tables, relayout_tables, warp_shuffle,
};
use axe_layout::sharding::{Mesh, Sharding, plan};
use axe_layout::{Axis, Layout};

use super::{number, wild};

pub fn run(bytes: &[u8]) {
    let c = &mut Choices::new(bytes);
    let extreme = c.below(2) == 1;
    cute_operations(c, extreme);
    linear_operations(c);
    tables(c);
    shardings(c);
    let layout = if extreme { wild(c) } else { c.layout() };
    addresses(c, &layout, extreme);
}

/// A layout of one to four leaves, the first two perhaps nested.
fn cute_layout(c: &mut Choices<'_>, extreme: bool) -> Option<CuteLayout> {
    let mut modes = Vec::new();
    for _ in 0..=c.below(4) {
        let (extent, stride) = if extreme {
            (c.pick(2, &[1, 3, 1 << 31, 1 << 62, i64::MAX]), number(c))
        } else {
            (
                c.pick(2, &[1, 2, 3, 4, 6, 8]),
                c.pick(1, &[0, 1, 2, 3, 4, 6, 8, 12, 16, 24, -1, 32]),
            )
        };
        modes.push(CuteLayout::new(extent, stride).ok()?);
    }
    if modes.len() > 1 && c.below(2) == 1 {
        let rest = modes.split_off(2);
        let nested = CuteLayout::concat(modes).ok()?;
        modes = vec![nested];
        modes.extend(rest);
    }
    CuteLayout::concat(modes).ok()
}

fn cute_operations(c: &mut Choices<'_>, extreme: bool) {
    let (Some(a), Some(b)) = (cute_layout(c, extreme), cute_layout(c, extreme)) else {
        return;
    };
    let small = !extreme && a.size() <= 512 && b.size() <= 512;
    let coalesced = cute::coalesce(&a);
    if small {
        for x in 0..a.size() {
            assert_eq!(coalesced.apply(x).ok(), a.apply(x).ok(), "{a} {coalesced}");
        }
    }
    if let Ok(composed) = cute::composition(&a, &b) {
        assert_eq!(composed.size(), b.size(), "{a} o {b} = {composed}");
        // Beyond its size a layout goes on in its last mode.
        for x in (0..b.size()).take_while(|_| small) {
            let inner = b.apply(x).unwrap();
            if (0..a.size()).contains(&inner) {
                assert_eq!(composed.apply(x).ok(), a.apply(inner).ok(), "{a} o {b}");
            }
        }
    }
    let cotarget = if extreme {
        number(c)
    } else {
        i64::from(c.below(200)) + 1
    };
    let _ = cute::complement(&a, cotarget);
    let _ = (
        cute::right_inverse(&a),
        cute::left_inverse(&a),
        cute::filter(&a),
    );
    let by_mode: Vec<Tiler> = b.modes().into_iter().map(Tiler::Layout).collect();
    for tiler in [
        Tiler::Layout(b.clone()),
        Tiler::Tuple(by_mode),
        Tiler::Extent(cotarget),
    ] {
        let _ = cute::composition_by_mode(&a, &tiler);
        let divide = [
            cute::logical_divide,
            cute::zipped_divide,
            cute::tiled_divide,
            cute::flat_divide,
        ];
        for divided in divide.into_iter().filter_map(|op| op(&a, &tiler).ok()) {
            assert!(divided.size() >= 1, "{a} {tiler:?}");
        }
        let product = [
            cute::logical_product,
            cute::zipped_product,
            cute::tiled_product,
            cute::flat_product,
        ];
        for whole in product.into_iter().filter_map(|op| op(&a, &tiler).ok()) {
            assert_eq!(whole.size() % a.size(), 0, "{a} {tiler:?}");
        }
    }
    for op in [cute::blocked_product, cute::raked_product] {
        if let Ok(whole) = op(&a, &b) {
            assert_eq!(whole.size(), a.size() * b.size(), "{a} {b}");
        }
    }
}

fn columns(c: &mut Choices<'_>, most: u16, bits: u32) -> Vec<i64> {
    let mask = (1_i64 << bits) - 1;
    let count = c.below(most + 1);
    (0..count)
        .map(|_| (i64::from(c.below(256)) << 3 ^ i64::from(c.below(256))) & mask)
        .collect()
}

fn linear_operations(c: &mut Choices<'_>) {
    let (Ok(a), Ok(b)) = (
        Columns::try_from(columns(c, 6, 6)),
        Columns::try_from(columns(c, 6, 6)),
    ) else {
        return;
    };
    let inputs = |of: &Columns| 0..1_u64 << of.len();
    if let Ok(both) = a.compose(&b) {
        assert!(inputs(&b).all(|x| both.apply(x) == a.apply(b.apply(x))));
    }
    if let Ok(back) = a.inverse() {
        assert!(inputs(&a).all(|x| back.apply(a.apply(x)) == x), "{a}");
    }
    if let Ok(back) = a.pseudo_inverse(6) {
        assert!(
            inputs(&a).all(|x| a.apply(back.apply(a.apply(x))) == a.apply(x)),
            "{a}"
        );
    }
    if let Ok(way) = a.solve(&b) {
        assert!(
            inputs(&b).all(|x| a.apply(way.apply(x)) == b.apply(x)),
            "{a} {b}"
        );
    }
    assert!(a.kernel().iter().all(|&x| a.apply(x) == 0), "{a}");
    let _ = a.product(usize::from(c.below(70)), &b);
    let distribution =
        |c: &mut Choices<'_>| Distribution::new(columns(c, 3, 5), columns(c, 3, 5)).ok();
    let (Some(src), Some(dst)) = (distribution(c), distribution(c)) else {
        return;
    };
    let bits = c.pick(32, &[8, 16, 64, 24, 0]);
    if let Ok(plan) = warp_shuffle(&src, &dst, bits) {
        assert_eq!(check_shuffle(&src, &dst, &plan), Ok(()), "{src:?} {dst:?}");
    }
}

/// Any distribution of a few elements, and any other.
fn tables(c: &mut Choices<'_>) {
    let (lanes, registers) = (1 + c.below(5), 1 + c.below(4));
    let table = |c: &mut Choices<'_>, registers: u16| -> Table {
        let lane = |c: &mut Choices<'_>| {
            let element = |c: &mut Choices<'_>| (c.below(8) > 0).then(|| u64::from(c.below(12)));
            (0..registers).map(|_| element(c)).collect()
        };
        (0..lanes).map(|_| lane(c)).collect()
    };
    let src = table(c, registers);
    let wanted = 1 + c.below(4);
    let dst = table(c, wanted);
    let bits = c.pick(32, &[8, 16]);
    if let Ok(plan) = relayout_tables(&src, &dst, bits) {
        assert_eq!(check_tables(&src, &dst, &plan), Ok(()), "{src:?} {dst:?}");
    }
}

fn shardings(c: &mut Choices<'_>) {
    let Ok(mesh) = Mesh::linear("gpu", &[("x", 2), ("y", 4)]) else {
        return;
    };
    let texts = [
        "RR", "S0R", "RS0", "S1R", "S0S1", "S1S0", "S01R", "RS10", "S10R",
    ];
    let mut read = |mesh: Mesh| Sharding::from_alpa(mesh, vec![16, 8], c.pick("RS1", &texts));
    if let (Ok(from), Ok(to)) = (read(mesh.clone()), read(mesh)) {
        let found = plan(&from, &to, 2);
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.steps.is_empty(), from == to);
        let layout = from.to_layout().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(layout.size(), 128);
    }
}

fn addresses(c: &mut Choices<'_>, layout: &Layout, extreme: bool) {
    let Ok(map) = AddressMap::new(layout, Axis::M) else {
        return;
    };
    let from = if extreme {
        number(c)
    } else {
        i64::from(c.below(256))
    };
    let mut out = [0; 5];
    let filled = map.fill(from, &mut out).is_ok();
    if let Ok(skip) = usize::try_from(from) {
        let mut iter = map.iter();
        assert_eq!(iter.nth(skip), map.get(from).ok(), "{layout} at {from}");
        if filled {
            assert!(
                iter.take(4).eq(out[1..].iter().copied()),
                "{layout} at {from}"
            );
        }
    }
    if !extreme {
        let one_by_one = (0..map.size()).map(|x| map.get(x).unwrap());
        assert!(map.iter().eq(one_by_one), "{layout}");
    }
}
