//! A sweep of random operators on tiles with random layouts. Each is right, breaks no rule and writes nothing else, or is
//! declined with a reason that the definitions of its layouts confirm.

mod tiles;

use axe_package::DType;
use axe_trn::dispatch::{self, Reason};
use axe_trn::facts::chip::CHIPS;
use axe_trn::facts::memory::may_start;
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::program::{Accumulate, Alu, Function, Space};
use std::collections::{BTreeMap, BTreeSet};
use tiles::{Digit, Kernel, Random, Tensor, compare, each};

const CASES: u64 = 400;

/// Partitions as digits that are some order of the consecutive ones.
fn partitions(random: &mut Random, count: i64) -> Vec<Digit> {
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
fn begin(random: &mut Random, count: i64) -> i64 {
    let room = 128 - count;
    match random.below(6) {
        0 => random.of(&[32, 64, 96]).min(room.max(0) / 32 * 32),
        1 if room >= 16 && random.once_in(4) => 16,
        _ => 0,
    }
}

fn total(digits: &[Digit]) -> i64 {
    digits.iter().map(|digit| digit.0).product()
}

/// A dimension of digits of partitions, and of elements, in some order.
fn mixed(random: &mut Random, on: &[Digit], elements: &[i64]) -> Vec<Digit> {
    let mut digits: Vec<Digit> = elements.iter().map(|extent| (*extent, None)).collect();
    let at = random.below(digits.len() + 1);
    digits.splice(at..at, on.iter().copied());
    digits
}

/// Whether every index can be in an instruction: for each, some legal starts such that the partitions from there on to it
/// are those of other indices, the same in all operands. This is necessary, whatever lies along elements.
fn coverable(partitions: &BTreeSet<Vec<i64>>) -> bool {
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

/// Digits of up to three dimensions.
fn shapes(random: &mut Random) -> Vec<Vec<i64>> {
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
fn placed(random: &mut Random, dims: &[Vec<i64>]) -> Vec<(usize, i64)> {
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
fn digits(dims: &[Vec<i64>], on: &[(usize, i64)], still: &[usize]) -> Vec<Vec<Digit>> {
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

fn count(dims: &[Vec<i64>], on: &[(usize, i64)]) -> i64 {
    let flat: Vec<i64> = dims.iter().flatten().copied().collect();
    on.iter().map(|(at, _)| flat[*at]).product()
}

const FLOATS: [DType; 2] = [DType::F32, DType::BF16];

/// The partitions of every index in some tensors.
fn partitions_of(tensors: &[&Tensor]) -> BTreeSet<Vec<i64>> {
    let mut found = BTreeSet::new();
    each(&tensors[0].shape, &mut |index| {
        found.insert(
            tensors
                .iter()
                .map(|tensor| tensor.places(index)[0].0)
                .collect(),
        );
    });
    found
}

/// Whether the reasons against the schedules that need nothing but layouts hold: engines need the same partitions, DMA
/// needs memories that it reaches.
fn confirms_copy(d: &Tensor, s: &Tensor, why: &dispatch::Declined) -> bool {
    why.reasons
        .iter()
        .all(|(schedule, reason)| match (*schedule, reason) {
            ("engine copy", Reason::Memory { .. }) => {
                d.space == Space::Hbm || s.space == Space::Hbm
            }
            ("engine copy", _) => !coverable(&partitions_of(&[d, s])),
            ("dma", Reason::Memory { .. }) => d.space == Space::Psum || s.space == Space::Psum,
            ("dma", _) => false,
            _ => true,
        })
}

/// What a sweep did.
#[derive(Default)]
struct Tally {
    taken: BTreeMap<&'static str, usize>,
    declined: usize,
}

impl Tally {
    fn all(&self) -> u64 {
        (self.taken.values().sum::<usize>() + self.declined) as u64
    }

    fn print(&self, what: &str) {
        println!("{what}: {:?}, {} declined", self.taken, self.declined);
    }
}

fn copies(seed_of: u64, permuted: bool) -> Tally {
    let (mut tally, mut seed) = (Tally::default(), seed_of);
    while tally.all() < CASES {
        seed += 1;
        let mut random = Random(seed);
        let dims = shapes(&mut random);
        let spaces = [Space::Sbuf, Space::Sbuf, Space::Psum, Space::Hbm];
        let [to, from] = [random.of(&spaces), random.of(&spaces)];
        let flat: usize = dims.iter().map(Vec::len).sum();
        let on = placed(&mut random, &dims);
        let other = if random.once_in(2) {
            placed(&mut random, &dims)
        } else {
            on.clone()
        };
        let still: Vec<usize> = (0..flat).filter(|_| random.once_in(8)).collect();
        let mut types = [random.of(&FLOATS), random.of(&FLOATS)];
        if random.once_in(8) {
            types = [DType::I32; 2];
        }
        let start = |random: &mut Random, on: &[(usize, i64)]| (begin(random, count(&dims, on)), 0);
        let [a, b] = [start(&mut random, &on), start(&mut random, &other)];
        let on = if to == Space::Hbm { Vec::new() } else { on };
        let other = if from == Space::Hbm {
            Vec::new()
        } else {
            other
        };
        let d = Tensor::new(&mut random, to, types[0], &digits(&dims, &on, &[]), a);
        let source = digits(&dims, &other, &still);
        let mut order: Vec<usize> = (0..dims.len()).collect();
        if permuted {
            random.shuffle(&mut order);
        }
        // Dimension i of d is dimension order[i] of s.
        let mut turned = vec![Vec::new(); dims.len()];
        for (at, of) in order.iter().enumerate() {
            turned[*of] = source[at].clone();
        }
        let mut s = Tensor::new(&mut random, from, types[1], &turned, b);
        repeat(&mut random, &mut s, &dims, &on, &still);
        if !d.fits() || !s.fits() {
            continue;
        }
        copy_case(&mut random, seed, [d, s], &order, &mut tally);
    }
    tally
}

/// Sometimes, replicas on the partitions of what is repeated on those of d.
fn repeat(
    random: &mut Random,
    s: &mut Tensor,
    dims: &[Vec<i64>],
    on: &[(usize, i64)],
    still: &[usize],
) {
    let flat: Vec<i64> = dims.iter().flatten().copied().collect();
    let repeated = on
        .iter()
        .find(|(at, step)| still.contains(at) && *step == 1);
    if let Some((at, _)) = repeated
        && s.space != Space::Hbm
        && s.buffer[0] == s.start.0 + 1
        && random.once_in(2)
    {
        let replica = axe_layout::Iter::new(flat[*at], 1, tiles::p());
        s.layout = s.layout.clone().with_replica([replica]).unwrap();
        s.buffer[0] += flat[*at] - 1;
    }
}

fn copy_case(
    random: &mut Random,
    seed: u64,
    tensors: [Tensor; 2],
    order: &[usize],
    tally: &mut Tally,
) {
    let chip = random.of(&CHIPS).name;
    let [d, s] = &tensors;
    let mut kernel = Kernel::new(chip, &tensors);
    let regions = kernel.regions.clone();
    let plain = order.is_sorted();
    let what = || format!("{seed}: {tensors:?} {order:?}");
    let bound = match plain {
        true => dispatch::copy(&mut kernel.b, &regions[0], &regions[1]),
        false => dispatch::transpose(&mut kernel.b, &regions[0], &regions[1], order),
    };
    let bound = match bound {
        Ok(bound) => bound,
        Err(why) => {
            let mut turned = s.clone();
            turned.layout = s.layout.permute_dims(&s.shape, order).unwrap();
            turned.shape.clone_from(&d.shape);
            assert!(confirms_copy(d, &turned, &why), "{}: {why}", what());
            tally.declined += 1;
            return;
        }
    };
    *tally.taken.entry(bound.schedule).or_default() += 1;
    // One value for all indices that are in one place.
    let values = random.values(s.buffer.iter().product::<i64>() as usize);
    let cell = |tensor: &Tensor, index: &[i64]| {
        let place = tensor.places(index)[0];
        let row = tensor.buffer.get(1).copied().unwrap_or(0);
        values[((place.0 * row + place.1) as usize) % values.len()]
    };
    let expected = d.image(&|index| {
        let mut own = vec![0; index.len()];
        for (at, of) in order.iter().enumerate() {
            own[*of] = index[at];
        }
        cell(s, &own)
    });
    let images = [
        d.image(&|_| tiles::POISON),
        s.image(&|index| cell(s, index)),
    ];
    let program = kernel.finish(&tensors);
    compare(&program, &tensors, &images, &expected, 0.0, &|| {
        format!("{}: {bound}", what())
    });
}

#[test]
fn copies_are_right_or_declined() {
    let tally = copies(10_000, false);
    tally.print("copies");
    assert!(
        tally.declined as u64 * 5 <= CASES,
        "{} declined",
        tally.declined
    );
    assert!(tally.taken.len() >= 5, "{:?}", tally.taken);
}

#[test]
fn transposes_are_right_or_declined() {
    let tally = copies(20_000, true);
    tally.print("transposes");
    assert!(
        tally.declined as u64 * 5 <= CASES,
        "{} declined",
        tally.declined
    );
    assert!(tally.taken.contains_key("tensor engine transpose"));
}

/// Values of two sources, as a graph and as a function.
fn graph(random: &mut Random, types: [DType; 3]) -> (Graph, fn(f32, f32) -> f32) {
    let mut graph = Graph::new(1, 1);
    let [d, a, b] = types;
    let (x, y) = (
        graph.input("x", Kind::Full, a),
        graph.input("y", Kind::Full, b),
    );
    let f32 = DType::F32;
    let two = graph.number(2.0);
    let (value, function): (_, fn(f32, f32) -> f32) = match random.below(4) {
        0 => (graph.binary(Alu::Add, x, y, f32), |x, y| x + y),
        1 => {
            let half = graph.number(0.5);
            let small = graph.binary(Alu::Multiply, y, half, f32);
            (graph.binary(Alu::Maximum, x, small, f32), |x, y| {
                x.max(y * 0.5)
            })
        }
        2 => {
            let large = graph.binary(Alu::Greater, x, y, DType::Bool);
            let other = graph.binary(Alu::Multiply, y, two, f32);
            (graph.select(large, x, other, f32), |x, y| {
                if x > y { x } else { 2.0 * y }
            })
        }
        _ => {
            let difference = graph.binary(Alu::Subtract, x, y, f32);
            (graph.apply(Function::Relu, difference, f32), |x, y| {
                (x - y).max(0.0)
            })
        }
    };
    let stored = graph.cast(value, d);
    graph.output("out", Kind::Full, d, stored);
    (graph, function)
}

#[test]
fn maps_are_right_or_declined() {
    let (mut tally, mut seed) = (Tally::default(), 30_000);
    while tally.all() < CASES {
        seed += 1;
        let mut random = Random(seed);
        let dims = shapes(&mut random);
        let chips = [Space::Sbuf, Space::Sbuf, Space::Psum];
        let on = placed(&mut random, &dims);
        let types = [0; 3].map(|_| random.of(&FLOATS));
        let mut tensors = Vec::new();
        for dtype in types {
            let written = tensors.is_empty();
            let moved = !written && random.once_in(4);
            let own = if moved {
                placed(&mut random, &dims)
            } else {
                on.clone()
            };
            let space = if !written && random.once_in(6) {
                Space::Hbm
            } else {
                random.of(&chips)
            };
            let own = if space == Space::Hbm { Vec::new() } else { own };
            let mut digits = digits(&dims, &own, &[]);
            for dim in &mut digits {
                if !written && random.once_in(5) {
                    *dim = vec![(1, None)];
                }
            }
            let start = (begin(&mut random, count(&dims, &own)), 0);
            tensors.push(Tensor::new(&mut random, space, dtype, &digits, start));
        }
        if !tensors.iter().all(Tensor::fits) {
            continue;
        }
        let (graph, function) = graph(&mut random, types);
        let mut kernel = Kernel::new(random.of(&CHIPS).name, &tensors);
        let regions = kernel.regions.clone();
        let what = || format!("{seed}: {tensors:?} {graph:?}");
        let bound = match dispatch::map(&mut kernel.b, &regions[..1], &graph, &regions[1..]) {
            Ok(bound) => bound,
            Err(why) => {
                let confirmed = why
                    .reasons
                    .iter()
                    .all(|(_, reason)| map_confirms(&tensors, reason));
                assert!(confirmed, "{}: {why}", what());
                tally.declined += 1;
                continue;
            }
        };
        *tally.taken.entry(bound.schedule).or_default() += 1;
        let values = [1, 2].map(|at: usize| tensors[at].random(&mut random));
        let of = |at: usize, index: &[i64]| {
            let shape = &tensors[at].shape;
            let own: Vec<i64> = index.iter().zip(shape).map(|(i, e)| i % e).collect();
            values[at - 1][tensors[at].flat(&own)]
        };
        let expected = tensors[0].image(&|index| function(of(1, index), of(2, index)));
        let images = [
            tensors[0].image(&|_| tiles::POISON),
            tensors[1].image(&|index| of(1, index)),
            tensors[2].image(&|index| of(2, index)),
        ];
        let program = kernel.finish(&tensors);
        compare(&program, &tensors, &images, &expected, 0.0, &|| {
            format!("{}: {bound}", what())
        });
    }
    tally.print("maps");
    assert!(
        tally.declined as u64 * 4 <= CASES,
        "{} declined",
        tally.declined
    );
}

/// Engines do not reach HBM, and need the same partitions; a source that is brought there is copied.
fn map_confirms(tensors: &[Tensor], reason: &Reason) -> bool {
    match reason {
        Reason::Memory { .. } => tensors.iter().any(|tensor| tensor.space == Space::Hbm),
        // A copy that is declined: its own sweep confirms those.
        Reason::Part(why) => !why.reasons.is_empty(),
        _ => {
            let all = &tensors[0].shape;
            let mut found = BTreeSet::new();
            each(all, &mut |index| {
                let own = |tensor: &Tensor| {
                    let own: Vec<i64> = index
                        .iter()
                        .zip(&tensor.shape)
                        .map(|(i, e)| i % e)
                        .collect();
                    tensor.places(&own)[0].0
                };
                found.insert(tensors.iter().map(own).collect());
            });
            !coverable(&found)
        }
    }
}

#[test]
fn reductions_are_right_or_declined() {
    let (mut tally, mut seed) = (Tally::default(), 40_000);
    while tally.all() < CASES {
        seed += 1;
        let mut random = Random(seed);
        let dims = shapes(&mut random);
        let mut reduced: Vec<usize> = (0..dims.len()).filter(|_| random.once_in(2)).collect();
        if reduced.is_empty() {
            reduced.push(random.below(dims.len()));
        }
        let op = random.of(&[Alu::Add, Alu::Add, Alu::Maximum]);
        let chips = [Space::Sbuf, Space::Sbuf, Space::Psum];
        let on = placed(&mut random, &dims);
        let start = begin(&mut random, count(&dims, &on));
        let digits_of_s = digits(&dims, &on, &[]);
        let dtype = random.of(&FLOATS);
        let space = random.of(&chips);
        let s = Tensor::new(&mut random, space, dtype, &digits_of_s, (start, 0));
        let other = if random.once_in(3) {
            placed(&mut random, &dims)
        } else {
            on.clone()
        };
        let mut kept = digits(&dims, &other, &[]);
        for at in &reduced {
            kept[*at] = vec![(1, None)];
        }
        let space = random.of(&chips);
        let mut d = Tensor::new(&mut random, space, DType::F32, &kept, (start, 0));
        // Partitions that are left may have gaps, or begin later.
        let reach = d.layout.span(tiles::p()).unwrap();
        d.buffer[0] = d.buffer[0].max(start + reach);
        if random.once_in(2) {
            d.shape = (0..dims.len())
                .filter(|at| !reduced.contains(at))
                .map(|at| d.shape[at])
                .collect();
        }
        if !d.fits() || !s.fits() {
            continue;
        }
        let tensors = [d, s];
        let [d, s] = &tensors;
        let mut kernel = Kernel::new(random.of(&CHIPS).name, &tensors);
        let regions = kernel.regions.clone();
        let what = || format!("{seed}: {tensors:?} {reduced:?} {op}");
        let bound = match dispatch::reduce(&mut kernel.b, &regions[0], &regions[1], &reduced, op) {
            Ok(bound) => bound,
            Err(why) => {
                assert!(reduce_confirms(d, s, &reduced, op), "{}: {why}", what());
                tally.declined += 1;
                continue;
            }
        };
        *tally.taken.entry(bound.schedule).or_default() += 1;
        let values = s.random(&mut random);
        let short = |index: &[i64]| -> Vec<i64> {
            let all = index.iter().enumerate();
            match d.shape.len() == s.shape.len() {
                true => all
                    .map(|(at, i)| if reduced.contains(&at) { 0 } else { *i })
                    .collect(),
                false => all
                    .filter(|(at, _)| !reduced.contains(at))
                    .map(|(_, i)| *i)
                    .collect(),
            }
        };
        let count: i64 = d.shape.iter().product();
        let mut results: Vec<Option<f32>> = vec![None; count as usize];
        each(&s.shape, &mut |index| {
            let value = values[s.flat(index)];
            let result = &mut results[d.flat(&short(index))];
            *result = Some(result.map_or(value, |known| op.apply(known, value)));
        });
        let expected = d.image(&|index| results[d.flat(index)].unwrap());
        let images = [
            d.image(&|_| tiles::POISON),
            s.image(&|index| values[s.flat(index)]),
        ];
        let program = kernel.finish(&tensors);
        compare(&program, &tensors, &images, &expected, 0.0, &|| {
            format!("{}: {bound}", what())
        });
    }
    tally.print("reductions");
    assert!(
        tally.declined as u64 * 3 <= CASES,
        "{} declined",
        tally.declined
    );
}

/// A reduction is declined where neither s nor d begins where partitions may, where maxima are along partitions and not
/// alone, or where d lies neither as s does nor as an engine's result.
fn reduce_confirms(d: &Tensor, s: &Tensor, reduced: &[usize], op: Alu) -> bool {
    let of_s = partitions_of(&[s]);
    let of_d = partitions_of(&[d]);
    let across = {
        let mut varies = false;
        each(&s.shape, &mut |index| {
            let mut first = index.to_vec();
            for at in reduced {
                first[*at] = 0;
            }
            varies |= s.places(index)[0].0 != s.places(&first)[0].0;
        });
        varies
    };
    // What is added to one index, where others are beside it on the partitions.
    let mut alone: BTreeMap<Vec<i64>, BTreeSet<Vec<i64>>> = BTreeMap::new();
    each(&s.shape, &mut |index| {
        let mut kept = index.to_vec();
        for at in reduced {
            kept[*at] = 0;
        }
        alone
            .entry(kept)
            .or_default()
            .insert(vec![s.places(index)[0].0]);
    });
    let beside = alone.values().any(|partitions| !coverable(partitions));
    across && (op != Alu::Add || beside) || !coverable(&of_s) || !coverable(&of_d)
}
