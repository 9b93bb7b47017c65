//! Reductions.

use crate::CASES;
use crate::random::{
    FLOATS, Tally, begin, count, coverable, digits, partitions_of, placed, shapes,
};
use crate::tiles::{self, Kernel, Random, Tensor, compare, each};
use axe_package::DType;
use axe_trn::dispatch;
use axe_trn::facts::chip::CHIPS;
use axe_trn::program::{Alu, Space};
use std::collections::{BTreeMap, BTreeSet};

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
