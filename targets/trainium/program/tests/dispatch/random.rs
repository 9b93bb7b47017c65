//! Random shapes and digits, and what of partitions is necessary for an instruction.

use crate::tiles::{Digit, Random, Tensor, each};
use axe_package::DType;
use std::collections::{BTreeMap, BTreeSet};

/// Partitions as digits that are some order of the consecutive ones.
pub fn partitions(random: &mut Random, count: i64) -> Vec<Digit> {
    let factors: Vec<i64> = (2..count).filter(|n| count % n == 0).collect();
    if factors.is_empty() || random.once_in(2) {
        let step = if random.once_in(8) { -1 } else { 1 };
        return vec![(count, Some(step))];
    }
    let inner = random.of(&factors);
    let outer = count / inner;
    match random.below(2) {
        0 => vec![(outer, Some(inner)), (inner, Some(1))],
        _ => vec![(outer, Some(1)), (inner, Some(outer))],
    }
}

/// Where a region of so many partitions begins: mostly where it may.
pub fn begin(random: &mut Random, count: i64) -> i64 {
    let room = 128 - count;
    match random.below(6) {
        0 => random.of(&[32, 64, 96]).min(room.max(0) / 32 * 32),
        1 if room >= 16 && random.once_in(4) => 16,
        _ => 0,
    }
}

pub fn total(digits: &[Digit]) -> i64 {
    digits.iter().map(|digit| digit.0).product()
}

/// Whether every index can be in an instruction: for each, some legal starts such that the partitions from there on to it
/// are those of other indices, the same in all operands. This is necessary, whatever lies along elements.
pub fn coverable(partitions: &BTreeSet<Vec<i64>>) -> bool {
    let starts = |place: &[i64]| -> Vec<Vec<i64>> {
        // The same distance from a legal start, in all operands.
        let reach = place.iter().min().copied().unwrap_or(0);
        (0..=reach)
            .filter(|far| place.iter().all(|p| (p - far) % 32 == 0))
            .map(|far| place.iter().map(|p| p - far).collect())
            .collect()
    };
    partitions.iter().all(|place| {
        starts(place).iter().any(|start| {
            (0..place[0] - start[0]).all(|far| {
                let between: Vec<i64> = start.iter().map(|p| p + far).collect();
                partitions.contains(&between)
            })
        })
    })
}

/// Digits of up to three dimensions.
pub fn shapes(random: &mut Random) -> Vec<Vec<i64>> {
    let extents = [2, 3, 4, 8, 16, 32, 32, 33, 48, 64, 100, 128, 128];
    loop {
        let dims: Vec<Vec<i64>> = (0..1 + random.below(3))
            .map(|_| {
                (0..1 + random.below(2))
                    .map(|_| random.of(&extents))
                    .collect()
            })
            .collect();
        let size: i64 = dims.iter().flatten().product();
        if size <= 40_000 {
            return dims;
        }
    }
}

/// Which digits are on partitions, and by which steps: up to two of them.
pub fn placed(random: &mut Random, dims: &[Vec<i64>]) -> Vec<(usize, i64)> {
    let flat: Vec<i64> = dims.iter().flatten().copied().collect();
    let first = random.below(flat.len());
    if flat[first] > 128 || random.once_in(10) {
        return Vec::new();
    }
    let mut on = vec![(first, if random.once_in(8) { -1 } else { 1 })];
    let second = random.below(flat.len());
    if second != first && flat[first] * flat[second] <= 128 && random.once_in(2) {
        match random.once_in(2) {
            true => on.push((second, flat[first])),
            false => on = vec![(second, 1), (first, flat[second])],
        }
    }
    on
}

/// Dimensions of digits, some of them on partitions, some of them repeated.
pub fn digits(dims: &[Vec<i64>], on: &[(usize, i64)], still: &[usize]) -> Vec<Vec<Digit>> {
    let mut at = 0;
    let mut digit = |extent: &i64| {
        let step = on.iter().find(|(own, _)| *own == at).map(|(_, step)| *step);
        let step = if still.contains(&at) { Some(0) } else { step };
        at += 1;
        (*extent, step)
    };
    dims.iter()
        .map(|dim| dim.iter().map(&mut digit).collect())
        .collect()
}

pub fn count(dims: &[Vec<i64>], on: &[(usize, i64)]) -> i64 {
    let flat: Vec<i64> = dims.iter().flatten().copied().collect();
    on.iter().map(|(at, _)| flat[*at]).product()
}

pub const FLOATS: [DType; 2] = [DType::F32, DType::BF16];

/// The partitions of every index in some tensors.
pub fn partitions_of(tensors: &[&Tensor]) -> BTreeSet<Vec<i64>> {
    let mut found = BTreeSet::new();
    let used = tensors[0].valid.as_ref().unwrap_or(&tensors[0].shape);
    each(used, &mut |index| {
        found.insert(
            tensors
                .iter()
                .map(|tensor| tensor.places(index)[0].0)
                .collect(),
        );
    });
    found
}

/// What a sweep did.
#[derive(Default)]
pub struct Tally {
    pub taken: BTreeMap<&'static str, usize>,
    pub declined: usize,
}

impl Tally {
    pub fn all(&self) -> u64 {
        (self.taken.values().sum::<usize>() + self.declined) as u64
    }

    pub fn print(&self, what: &str) {
        println!("{what}: {:?}, {} declined", self.taken, self.declined);
    }
}
