//! Products.

use crate::CASES;
use crate::random::{begin, coverable, partitions, total};
use crate::tiles::{self, Digit, Kernel, Random, Tensor, compare};
use axe_package::DType;
use axe_trn::dispatch::{self, Reason};
use axe_trn::facts::chip::CHIPS;
use axe_trn::facts::memory::may_start;
use axe_trn::program::{Accumulate, Space};
use std::collections::BTreeSet;

/// A dimension of digits of partitions, and of elements, in some order.
fn mixed(random: &mut Random, on: &[Digit], elements: &[i64]) -> Vec<Digit> {
    let mut digits: Vec<Digit> = elements.iter().map(|extent| (*extent, None)).collect();
    let at = random.below(digits.len() + 1);
    digits.splice(at..at, on.iter().copied());
    digits
}

/// Whether two orders of cuts have a common refinement.
fn refines(a: &[i64], b: &[i64]) -> bool {
    let cuts = |extents: &[i64]| -> Vec<i64> {
        let mut weight = 1;
        let each = extents.iter().rev().map(|extent| {
            weight *= extent;
            weight
        });
        each.collect()
    };
    let mut all: Vec<i64> = cuts(a).into_iter().chain(cuts(b)).collect();
    all.sort_unstable();
    all.windows(2).all(|pair| pair[1] % pair[0] == 0)
}

/// Whether elements in this order are an access pattern of so many dimensions: blocks that repeat by one step.
fn is_pattern(elements: &[i64], dimensions: usize) -> bool {
    let count = elements.len();
    if count == 1 {
        return true;
    }
    dimensions > 0
        && (1..count)
            .filter(|block| count.is_multiple_of(*block))
            .any(|block| {
                let step = elements[block] - elements[0];
                let repeats = (block..count).all(|at| elements[at] == elements[at - block] + step);
                repeats && is_pattern(&elements[..block], dimensions - 1)
            })
}

/// Whether partitions, each with the element that goes there, are pieces that begin where they may, each of which is an
/// access pattern.
fn has_pieces(columns: &[(i64, i64)]) -> bool {
    let mut reached = vec![false; columns.len() + 1];
    reached[0] = true;
    for at in 0..columns.len() {
        if !reached[at] {
            continue;
        }
        let apart = |end: usize| columns[end].0 != columns[at].0 + (end - at) as i64;
        for end in at + 1..=columns.len() {
            if apart(end - 1) {
                break;
            }
            let elements: Vec<i64> = columns[at..end]
                .iter()
                .map(|(_, element)| *element)
                .collect();
            let begins = may_start(columns[at].0, (end - at) as i64);
            reached[end] |= begins && is_pattern(&elements, 4);
        }
    }
    reached[columns.len()]
}

struct Product {
    tensors: [Tensor; 3],
    transposed: [bool; 2],
    /// The extents of K's digits in both operands.
    k: [Vec<i64>; 2],
}

fn product(random: &mut Random) -> Product {
    let kp = random.of(&[1, 8, 16, 32, 48, 64, 96, 100, 125, 128]);
    let kf: Vec<i64> = random.of(&[vec![], vec![], vec![2], vec![3], vec![2, 2]]);
    let mp = random.of(&[1, 4, 32, 33, 64, 100, 128]);
    let mf: Vec<i64> = random.of(&[vec![], vec![], vec![2], vec![3]]);
    let n: Vec<i64> = random.of(&[
        vec![1],
        vec![24],
        vec![100],
        vec![2, 64],
        vec![512],
        vec![640],
        vec![768],
        vec![2, 300],
        vec![4, 3, 5],
    ]);
    let on = partitions(random, kp);
    let k = mixed(random, &on, &kf);
    // The other operand: the same partitions, or sometimes others.
    let others = if random.once_in(6) {
        partitions(random, kp)
    } else {
        on.clone()
    };
    let mut own = k.clone();
    if others != on && others.len() == on.len() {
        let at = k.iter().position(|digit| on.contains(digit)).unwrap_or(0);
        own.splice(at..at + on.len(), others.iter().copied());
    }
    let inputs = random.of(&[DType::F32, DType::BF16]);
    let columns = partitions(random, mp);
    let m = mixed(random, &columns, &mf);
    let m_elements: Vec<Digit> = vec![(total(&m), None)];
    let n: Vec<Digit> = n.into_iter().map(|extent| (extent, None)).collect();
    let transposed = [random.once_in(2), random.once_in(2)];
    let swapped = random.once_in(4);
    let starts = [begin(random, mp), begin(random, kp), begin(random, kp)];
    let free = random.of(&[0, 0, 0, 64, 256, 512]);
    let pair =
        |turned: bool, a: Vec<Digit>, b: Vec<Digit>| if turned { vec![b, a] } else { vec![a, b] };
    let extents = |digits: &[Digit]| digits.iter().map(|digit| digit.0).collect();
    let ks = [extents(&k), extents(&own)];
    // Swapped: what is on the partitions of d is of the right operand.
    let d = pair(swapped, m, n.clone());
    let mut a = [m_elements, n];
    if swapped {
        a.reverse();
    }
    let [a, c] = a;
    let tensors = [
        Tensor::new(random, Space::Psum, DType::F32, &d, (starts[0], free)),
        Tensor::new(
            random,
            Space::Sbuf,
            inputs,
            &pair(transposed[0], a, k),
            (starts[1], 0),
        ),
        Tensor::new(
            random,
            Space::Sbuf,
            inputs,
            &pair(transposed[1], own, c),
            (starts[2], 5),
        ),
    ];
    Product {
        tensors,
        transposed,
        k: ks,
    }
}

/// Index `[a, b]`, turned round where asked.
const fn turned(turn: bool, a: i64, b: i64) -> [i64; 2] {
    if turn { [b, a] } else { [a, b] }
}

impl Product {
    fn sizes(&self) -> [i64; 3] {
        let [d, lhs, _] = &self.tensors;
        let k = lhs.shape[usize::from(!self.transposed[0])];
        [d.shape[0], d.shape[1], k]
    }

    fn expected(&self, lhs: &[f32], rhs: &[f32]) -> Vec<f32> {
        let [m, n, k] = self.sizes();
        let mut sums = vec![0f32; (m * n) as usize];
        for i in 0..m {
            for x in 0..k {
                let a = lhs[self.tensors[1].flat(&turned(self.transposed[0], i, x))];
                for j in 0..n {
                    let b = rhs[self.tensors[2].flat(&turned(self.transposed[1], x, j))];
                    sums[(i * n + j) as usize] += a * b;
                }
            }
        }
        sums
    }

    /// The partitions of the operands of K, and of d with its own digits, where the others are first.
    fn confirms(&self, schedule: &str, reason: &Reason) -> bool {
        let [m, n, k] = self.sizes();
        let place = |at: usize, index: [i64; 2]| self.tensors[at].places(&index)[0].0;
        let of_k: BTreeSet<Vec<i64>> = (0..k)
            .map(|x| {
                vec![
                    place(1, turned(self.transposed[0], 0, x)),
                    place(2, turned(self.transposed[1], x, 0)),
                ]
            })
            .collect();
        let by_lhs = schedule == "lhs stationary";
        // The columns of the stationary operand that go to the first row of d, by partition.
        let own = |i: i64| match by_lhs {
            true => ([i, 0], 1, turned(self.transposed[0], i, 0)),
            false => ([0, i], 2, turned(self.transposed[1], 0, i)),
        };
        let first = self.tensors[0].places(&[0, 0])[0].1;
        let mut columns: Vec<(i64, i64)> = (0..if by_lhs { m } else { n })
            .map(own)
            .filter(|(index, ..)| self.tensors[0].places(index)[0].1 == first)
            .map(|(index, at, from)| (place(0, index), self.tensors[at].places(&from)[0].1))
            .collect();
        columns.sort_unstable();
        // The moving dimension begins anew at each index.
        let of_other: BTreeSet<Vec<i64>> = match by_lhs {
            true => (0..n).map(|j| vec![place(0, [0, j])]).collect(),
            false => (0..m).map(|i| vec![place(0, [i, 0])]).collect(),
        };
        let apart = of_other
            .iter()
            .any(|place| (place[0] - of_other.first().unwrap()[0]) % 32 != 0);
        match reason {
            Reason::PartitionOrder { .. }
            | Reason::OnePartitioned { .. }
            | Reason::Start { .. } => !coverable(&of_k) || !has_pieces(&columns) || apart,
            Reason::Straddles { .. } => !refines(&self.k[0], &self.k[1]),
            _ => false,
        }
    }
}

#[test]
fn products_are_right_or_declined() {
    let (mut taken, mut declined, mut seed) = (0, 0, 0);
    while taken + declined < CASES {
        seed += 1;
        let mut random = Random(seed);
        let case = product(&mut random);
        let [m, n, k] = case.sizes();
        if !case.tensors.iter().all(Tensor::fits) || m * n * k > 1_000_000 {
            continue;
        }
        let chip = random.of(&CHIPS).name;
        let [lhs, rhs] = [1, 2].map(|at: usize| case.tensors[at].random(&mut random));
        let mut kernel = Kernel::new(chip, &case.tensors);
        let [d, a, b] = [0, 1, 2].map(|at| kernel.regions[at].clone());
        let twice = random.once_in(3);
        let first = random.of(&[Accumulate::Auto, Accumulate::Never]);
        let what = || format!("{seed}: {:?} {:?}", case.tensors, case.transposed);
        let bound = match dispatch::gemm(&mut kernel.b, &d, &a, &b, case.transposed, first) {
            Ok(bound) => bound,
            Err(why) => {
                let all = why.reasons.iter();
                for (schedule, reason) in all {
                    assert!(case.confirms(schedule, reason), "{}: {why}", what());
                }
                declined += 1;
                continue;
            }
        };
        taken += 1;
        if twice {
            let again = random.of(&[Accumulate::Auto, Accumulate::Always]);
            dispatch::gemm(&mut kernel.b, &d, &a, &b, case.transposed, again).unwrap();
        }
        let program = kernel.finish(&case.tensors);
        let sums = case.expected(&lhs, &rhs);
        let factor = if twice { 2.0 } else { 1.0 };
        let expected = case.tensors[0].image(&|index| sums[case.tensors[0].flat(index)] * factor);
        let images = [
            case.tensors[0].image(&|_| tiles::POISON),
            case.tensors[1].image(&|index| lhs[case.tensors[1].flat(index)]),
            case.tensors[2].image(&|index| rhs[case.tensors[2].flat(index)]),
        ];
        compare(&program, &case.tensors, &images, &expected, 0.0, &|| {
            format!("{}: {bound}", what())
        });
    }
    println!("{taken} products, {declined} declined");
    assert!(declined * 3 <= CASES, "{declined} declined");
}
