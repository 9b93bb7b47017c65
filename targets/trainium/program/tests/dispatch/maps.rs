//! Values element by element.

use crate::CASES;
use crate::random::{FLOATS, Tally, begin, count, coverable, digits, placed, shapes};
use crate::tiles::{self, Kernel, Random, Tensor, compare, each};
use axe_package::DType;
use axe_trn::dispatch::{self, Reason};
use axe_trn::facts::chip::CHIPS;
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::program::{Alu, Function, Space};
use std::collections::BTreeSet;

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
