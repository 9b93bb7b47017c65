//! Small universes, complete: canonical forms are equal exactly when the maps are, and a slice is found
//! exactly when one exists.
//!
//! Equality: every layout of up to three iters, dealt to shard and replica in every way, on two axes, with
//! extents 1 to 6 and strides 0 to 6, and with strides of either sign for up to two iters.
//!
//! Slices: every interval of every layout of up to two shard iters, on two axes, with extents up to 6 and
//! strides 0 to 6, and of three with fewer numbers; whether a slice exists is decided by all ways to cut
//! an interval into digits. (A box of several dimensions is in the unit tests.)
//!
//! `AXE_EXHAUSTIVE=full cargo test --release -p axe-layout --test exhaustive` takes three iters of extents
//! up to 6 everywhere, and strides -6 to 6 for equality; that is half an hour.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use axe_layout::{Axis, Coord, Iter, Kind, Layout, oracle};

/// Fingerprints of 128 bits stand for maps and forms: a universe of 2^24 has a collision with
/// probability 2^-80, and a collision makes the test fail rather than pass.
type Fingerprint = u128;

fn fingerprint(words: impl IntoIterator<Item = i64>) -> Fingerprint {
    let mut state: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for word in words {
        state = (state ^ u128::from(word.cast_unsigned()))
            .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);
        state ^= state >> 61;
    }
    state
}

/// A step on one of two axes as one number: sums on the second stay below 512 in absolute value.
fn packed(iter: &Iter) -> i64 {
    if iter.axis == Axis::M {
        iter.stride * 1024
    } else {
        iter.stride
    }
}

/// The map `x -> { D(x) + r | r in R }` from the definition, by enumeration of its points.
fn map_of(shard: &[Iter], replica: &[Iter], points: &mut Vec<i64>) -> Fingerprint {
    let sums = |iters: &[Iter]| {
        let mut sums = vec![0];
        for iter in iters {
            let digits = 0..iter.extent;
            let add = |s: &i64| {
                let s = *s;
                digits.clone().map(move |d| s + d * packed(iter))
            };
            sums = sums.iter().flat_map(add).collect();
        }
        sums
    };
    let mut set = sums(replica);
    set.sort_unstable();
    set.dedup();
    points.clear();
    for x in sums(shard) {
        points.extend(set.iter().map(|r| x + r));
        points.push(i64::MAX);
    }
    fingerprint(points.iter().copied())
}

fn form_of(layout: &Layout) -> Fingerprint {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        layout.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

#[derive(Default)]
struct Universe {
    form_of_map: HashMap<Fingerprint, Fingerprint>,
    map_of_form: HashMap<Fingerprint, Fingerprint>,
    points: Vec<i64>,
    layouts: u64,
}

impl Universe {
    fn add(&mut self, shard: &[Iter], replica: &[Iter]) {
        let layout = Layout::new(
            shard.iter().copied(),
            replica.iter().copied(),
            Coord::new(),
            None,
        )
        .unwrap();
        let map = map_of(shard, replica, &mut self.points);
        let canonical = layout.canonicalize();
        let form = form_of(&canonical);
        self.layouts += 1;
        match self.form_of_map.entry(map) {
            Entry::Vacant(free) => {
                free.insert(form);
                // The first of each class: the form has the map itself, and is its own form.
                assert_eq!(canonical.canonicalize(), canonical, "{layout}");
                if layout.size() <= 12 {
                    assert!(oracle::same(&layout, &canonical), "{layout} {canonical}");
                }
            }
            Entry::Occupied(known) => {
                assert_eq!(*known.get(), form, "{layout}: another form of an equal map");
            }
        }
        let known = *self.map_of_form.entry(form).or_insert(map);
        assert_eq!(known, map, "{layout}: the form of another map, {canonical}");
    }

    /// Every list of up to `most` of `iters`: shards in order, replicas as multisets.
    fn fill(&mut self, iters: &[Iter], most: usize) {
        for replicas in 0..=most {
            for shards in 0..=most - replicas {
                self.choose(iters, shards, replicas, &mut Vec::new(), &mut Vec::new(), 0);
            }
        }
    }

    fn choose(
        &mut self,
        iters: &[Iter],
        shards: usize,
        replicas: usize,
        shard: &mut Vec<Iter>,
        replica: &mut Vec<Iter>,
        from: usize,
    ) {
        if shard.len() < shards {
            for &iter in iters {
                shard.push(iter);
                self.choose(iters, shards, replicas, shard, replica, from);
                shard.pop();
            }
        } else if replica.len() < replicas {
            for (k, &iter) in iters.iter().enumerate().skip(from) {
                replica.push(iter);
                self.choose(iters, shards, replicas, shard, replica, k);
                replica.pop();
            }
        } else {
            self.add(shard, replica);
        }
    }
}

fn iters(extents: &[i64], strides: &[i64]) -> Vec<Iter> {
    let axes = [Axis::M, Axis::new("lane").unwrap()];
    let mut all = Vec::new();
    for &extent in extents {
        for &stride in strides {
            all.extend(axes.map(|axis| Iter::new(extent, stride, axis)));
        }
    }
    all
}

fn full() -> bool {
    std::env::var("AXE_EXHAUSTIVE").is_ok_and(|v| v == "full")
}

#[test]
fn canonical_forms_are_equal_exactly_when_the_maps_are() {
    let signed: Vec<i64> = (-6..=6).collect();
    let all = iters(&[1, 2, 3, 4, 5, 6], &signed);
    let mut universe = Universe::default();
    if full() {
        universe.fill(&all, 3);
    } else {
        universe.fill(&all, 2);
        universe.fill(&iters(&[1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6]), 3);
    }
    println!(
        "{} layouts, {} maps",
        universe.layouts,
        universe.form_of_map.len()
    );
    assert!(universe.form_of_map.len() > 10_000);
    assert_eq!(universe.form_of_map.len(), universe.map_of_form.len());
}

/// Whether a step, packed, moves along one axis at most.
fn is_on_one_axis(step: i64) -> bool {
    let second = (step + 512).rem_euclid(1024) - 512;
    second == 0 || step == second
}

/// Whether the first so many of these values, less the first, are those of a shard: for each number of
/// them. An outermost digit repeats a shorter such function with a step on one axis, and nothing else does.
fn prefixes_that_are_shards(values: &[i64]) -> Vec<bool> {
    let first = values.first().copied().unwrap_or(0);
    let at = |x: usize| values[x] - first;
    let mut is_shard = vec![true, true];
    for length in 2..=values.len() {
        let repeats = |turn: &usize| {
            let turn = *turn;
            is_shard[turn]
                && is_on_one_axis(at(turn))
                && (0..length).all(|x| at(x) == at(x % turn) + (x / turn) as i64 * at(turn))
        };
        let mut turns = (1..length).filter(|turn| length.is_multiple_of(*turn));
        let found = turns.any(|turn| repeats(&turn));
        is_shard.push(found);
    }
    is_shard
}

/// Every interval of a layout; how many have a slice, and how many have none.
fn check_intervals(shard: &[Iter]) -> [u64; 2] {
    let layout = Layout::from_shard(shard.iter().copied()).unwrap();
    let size = layout.size();
    let lane = Axis::new("lane").unwrap();
    let packed_at = |layout: &Layout, x: i64| {
        let point = layout.origin(x).unwrap();
        point.get(Axis::M) * 1024 + point.get(lane)
    };
    let values: Vec<i64> = (0..size).map(|x| packed_at(&layout, x)).collect();
    let mut counts = [0, 0];
    for begin in 0..size {
        let rest = &values[begin as usize..];
        let exists = prefixes_that_are_shards(rest);
        for length in 1..=size - begin {
            let region = begin..begin + length;
            match layout.slice(&[size], std::slice::from_ref(&region)) {
                Ok(slice) => {
                    counts[0] += 1;
                    assert_eq!(slice.size(), length);
                    let same = (0..length).all(|u| packed_at(&slice, u) == rest[u as usize]);
                    assert!(same, "{layout} {region:?}: {slice}");
                }
                Err(error) => {
                    counts[1] += 1;
                    assert_eq!(error.kind(), Kind::None, "{layout} {region:?}: {error}");
                    assert!(!exists[length as usize], "{layout} {region:?}: {error}");
                }
            }
        }
    }
    counts
}

#[test]
fn slices_are_found_exactly_when_they_exist() {
    let all = iters(&[2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6]);
    let few = iters(&[2, 3], &[0, 1, 2, 3, 4]);
    let third = if full() { &all } else { &few };
    let mut counts = [0, 0];
    let mut add = |shard: &[Iter]| {
        let [found, none] = check_intervals(shard);
        counts = [counts[0] + found, counts[1] + none];
    };
    for a in &all {
        add(&[*a]);
        all.iter().for_each(|b| add(&[*a, *b]));
    }
    for a in third {
        for b in third {
            third.iter().for_each(|c| add(&[*a, *b, *c]));
        }
    }
    println!("{} slices, {} intervals without one", counts[0], counts[1]);
    assert!(counts[0] > 100_000 && counts[1] > 100_000, "{counts:?}");
}
