//! Copies and transposes.

use crate::CASES;
use crate::random::{
    FLOATS, Tally, begin, count, coverable, digits, partitions_of, placed, shapes,
};
use crate::tiles::{self, Kernel, Random, Tensor, compare};
use axe_package::DType;
use axe_trn::dispatch::{self, Reason};
use axe_trn::facts::chip::CHIPS;
use axe_trn::program::Space;

/// Whether the reasons against the schedules that need nothing but layouts hold: engines need the same partitions, DMA
/// needs memories that it reaches.
fn confirms_copy(d: &Tensor, s: &Tensor, why: &dispatch::Declined) -> bool {
    why.reasons
        .iter()
        .all(|(schedule, reason)| match (*schedule, reason) {
            ("engine copy", Reason::Memory { .. }) => {
                d.space == Space::Hbm || s.space == Space::Hbm
            }
            ("engine copy", _) => {
                !coverable(&partitions_of(&[d, s])) || d.valid.is_some() && staggered(&[d, s])
            }
            ("dma", Reason::Straddles { .. }) => d.valid.is_some(),
            ("dma", Reason::Memory { .. }) => d.space == Space::Psum || s.space == Space::Psum,
            ("dma", _) => false,
            _ => true,
        })
}

/// Whether what is in use ends inside several digits of partitions, or partitions are not the same in both.
fn staggered(tensors: &[&Tensor]) -> bool {
    let several = |tensor: &Tensor| {
        let iters = tensor.layout.shard().iter();
        iters
            .filter(|iter| iter.axis == tiles::p() && iter.stride != 0 && iter.extent > 1)
            .count()
            > 1
    };
    tensors.iter().any(|tensor| several(tensor))
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
        let mut d = d;
        use_less(&mut random, &mut d, &mut s, &order);
        copy_case(&mut random, seed, [d, s], &order, &mut tally);
    }
    tally
}

/// Sometimes, not all of the indices.
fn use_less(random: &mut Random, d: &mut Tensor, s: &mut Tensor, order: &[usize]) {
    if !random.once_in(4) {
        return;
    }
    let used: Vec<i64> = (d.shape.iter())
        .map(|extent| 1 + random.below(*extent as usize) as i64)
        .collect();
    let mut own = vec![0; used.len()];
    for (at, of) in order.iter().enumerate() {
        own[*of] = used[at];
    }
    (d.valid, s.valid) = (Some(used), Some(own));
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
            turned.valid.clone_from(&d.valid);
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
