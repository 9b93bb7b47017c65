//! Questions about tilings and sums, and what they are made of.

use std::collections::BTreeSet;

use axe_layout::generate::Choices;
use axe_layout::oracle::{self, Point};
use axe_layout::{Axis, Kind, Layout};

use crate::algebra::{plain, small};

/// Points of a product that are compared.
const MOST: i64 = 1500;

/// The sums of a point of each set, the left one times `factor`.
fn point_sums(
    left: &BTreeSet<Point>,
    right: &BTreeSet<Point>,
    factor: impl Fn(Axis) -> i128,
) -> BTreeSet<Point> {
    let mut all = BTreeSet::new();
    for l in left {
        for r in right {
            let mut sum = r.clone();
            for (&axis, &value) in l {
                *sum.entry(axis).or_insert(0) += value * factor(axis);
            }
            sum.retain(|_, value| *value != 0);
            all.insert(sum);
        }
    }
    all
}

fn count(layout: &Layout) -> i64 {
    layout.size()
        * layout
            .replica()
            .iter()
            .map(|iter| iter.extent)
            .product::<i64>()
}

/// Two layouts with shapes of one rank.
struct Pair {
    a: Layout,
    b: Layout,
    shape_a: Vec<i64>,
    shape_b: Vec<i64>,
}

impl Pair {
    fn new(c: &mut Choices<'_>, a: Layout, b: Layout) -> Option<Self> {
        let (mut shape_a, mut shape_b) = (c.shape(a.size()), c.shape(b.size()));
        let rank = shape_a.len().max(shape_b.len());
        shape_a.resize(rank, 1);
        shape_b.resize(rank, 1);
        (count(&a) * count(&b) <= MOST).then_some(Self {
            a,
            b,
            shape_a,
            shape_b,
        })
    }

    fn whole(&self) -> Vec<i64> {
        self.shape_a
            .iter()
            .zip(&self.shape_b)
            .map(|(x, y)| x * y)
            .collect()
    }

    fn interleaved(&self) -> Vec<i64> {
        self.shape_a
            .iter()
            .zip(&self.shape_b)
            .flat_map(|(x, y)| [*x, *y])
            .collect()
    }

    /// Compares `made` with the sums of the points of both.
    fn check(&self, made: &Layout, factor: impl Fn(Axis) -> i128) {
        let (left, right) = (oracle::map(&self.a), oracle::map(&self.b));
        for x in 0..self.a.size() {
            let outer = oracle::unflatten(&self.shape_a, x);
            for y in 0..self.b.size() {
                let inner = oracle::unflatten(&self.shape_b, y);
                let both: Vec<i64> = outer
                    .iter()
                    .zip(&inner)
                    .flat_map(|(x, y)| [*x, *y])
                    .collect();
                let at = oracle::flatten(&self.interleaved(), &both);
                let want = point_sums(&left[x as usize], &right[y as usize], &factor);
                assert_eq!(
                    oracle::points(made, at),
                    want,
                    "{} and {}: {made}",
                    self.a,
                    self.b
                );
            }
        }
    }
}

pub(crate) fn tilings(c: &mut Choices<'_>) -> u64 {
    let (a, b) = (plain(c), plain(c));
    let Some(pair) = Pair::new(c, a, b) else {
        return 0;
    };
    let (sa, sb, whole) = (&pair.shape_a, &pair.shape_b, pair.whole());
    let Ok(tiled) = Layout::tile(&pair.a, sa, &pair.b, sb) else {
        return 0;
    };
    pair.check(&tiled, |axis| i128::from(pair.b.span(axis).unwrap()));
    let outer = tiled.tile_of(&whole, &pair.b, sb).unwrap();
    assert!(oracle::same(&outer, &pair.a), "{tiled} by {}", pair.b);
    let inner = tiled.tile_of_outer(&whole, &pair.a, sa).unwrap();
    assert!(oracle::same(&inner, &pair.b), "{tiled} by {}", pair.a);
    // Of another layout: what is found tiles to it.
    let other = plain(c);
    let shape = [other.size()];
    if other.size() % pair.b.size() == 0 {
        match other.tile_of(&shape, &pair.b, &[pair.b.size()]) {
            Ok(outer) => {
                let again =
                    Layout::tile(&outer, &[outer.size()], &pair.b, &[pair.b.size()]).unwrap();
                assert!(oracle::same(&again, &other), "{other} by {}", pair.b);
            }
            Err(error) => assert_eq!(error.kind(), Kind::None, "{other} by {}: {error}", pair.b),
        }
    }
    4
}

pub(crate) fn swizzled(c: &mut Choices<'_>) -> u64 {
    let (a, b) = (plain(c), small(c));
    let Some(pair) = Pair::new(c, a, b) else {
        return 0;
    };
    let (sa, sb) = (&pair.shape_a, &pair.shape_b);
    let bare = pair.b.clone().with_swizzle(None);
    let Ok(composed) = Layout::compose_tile(&pair.a, sa, &pair.b, sb) else {
        return 0;
    };
    let unswizzled = Layout::tile(&pair.a, sa, &bare, sb).unwrap();
    let through = |set: BTreeSet<Point>| -> BTreeSet<Point> {
        let Some(swizzle) = pair.b.swizzle() else {
            return set;
        };
        let moved = |mut point: Point| {
            let address = point.remove(&Axis::M).unwrap_or(0);
            let address = swizzle.apply(i64::try_from(address).unwrap());
            if address != 0 {
                point.insert(Axis::M, i128::from(address));
            }
            point
        };
        set.into_iter().map(moved).collect()
    };
    for (set, plain) in oracle::map(&composed)
        .into_iter()
        .zip(oracle::map(&unswizzled))
    {
        assert_eq!(set, through(plain), "{} and {}", pair.a, pair.b);
    }
    let Ok(tiled) = Layout::tile(&pair.a, sa, &pair.b, sb) else {
        return 1;
    };
    pair.check(&tiled, |axis| i128::from(bare.span(axis).unwrap()));
    if let Ok(outer) = tiled.tile_of(&pair.whole(), &pair.b, sb) {
        let again = Layout::tile(&outer, sa, &pair.b, sb).unwrap();
        assert!(oracle::same(&again, &tiled), "{tiled} by {}", pair.b);
    }
    3
}

pub(crate) fn sums(c: &mut Choices<'_>) -> u64 {
    let (a, b) = (plain(c), plain(c));
    let Some(pair) = Pair::new(c, a, b) else {
        return 0;
    };
    let Ok(sum) = Layout::direct_sum(&pair.a, &pair.shape_a, &pair.b, &pair.shape_b) else {
        return 0;
    };
    pair.check(&sum, |_| 1);
    let both = pair.interleaved();
    let left = sum
        .direct_sum_of_right(&both, &pair.b, &pair.shape_b)
        .unwrap();
    let again = Layout::direct_sum(&left, &pair.shape_a, &pair.b, &pair.shape_b).unwrap();
    assert!(oracle::same(&again, &sum), "{sum} less {}", pair.b);
    let right = sum
        .direct_sum_of_left(&both, &pair.a, &pair.shape_a)
        .unwrap();
    let again = Layout::direct_sum(&pair.a, &pair.shape_a, &right, &pair.shape_b).unwrap();
    assert!(oracle::same(&again, &sum), "{sum} less {}", pair.a);
    3
}
