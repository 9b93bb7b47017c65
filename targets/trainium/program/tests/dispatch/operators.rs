//! Operators other than products with what they become, and why not.

use crate::given::{check, layout, psum, tensor};
use crate::tiles::Random;
use axe_layout::Layout;
use axe_package::DType;
use axe_trn::dispatch::{self, Bound, Declined, Region};
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::program::{Accumulate, Alu, Builder, Expr, Function, Space};
use axe_trn::rules;
use axe_trn::run::{execute, memory};

/// Regions begin where loops around stand.
#[test]
fn regions_begin_at_indices_of_loops() {
    let mut b = Builder::new("kernel", "trn1");
    let x = b.input("x", &[512, 512], DType::F32);
    let y = b.output("y", &[512, 512], DType::F32);
    b.repeat("i", 0, 4, 1, |b, i| {
        let tile = b.tile("tile", Space::Sbuf, &[128, 512], DType::F32, 2);
        let part = |buffer: usize| Region {
            free: i.clone().times(128 * 512),
            ..Region::new(buffer, &[128, 512], layout("S[(128, 512) : (512, 1)]"))
        };
        let inside = Region::new(
            tile.buffer(),
            &[128, 512],
            layout("S[(128, 512) : (1@P, 1@F)]"),
        );
        let first = dispatch::copy(b, &inside, &part(x.buffer())).unwrap();
        assert_eq!(first.to_string(), "dma: 1 dma_copy 128x512 on dma");
        b.repeat("j", 0, 4, 1, |b, j| {
            let quarter = |region: Region| Region {
                partition: j.clone().times(32),
                shape: vec![32, 512],
                layout: layout("S[(32, 512) : (1@P, 1@F)]"),
                ..region
            };
            let turned = b.tile("turned", Space::Sbuf, &[32, 512], DType::F32, 2);
            let to = Region::new(
                turned.buffer(),
                &[32, 512],
                layout("S[(32, 512) : (1@P, 1@F)]"),
            );
            dispatch::copy(b, &to, &quarter(inside.clone())).unwrap();
            dispatch::copy(b, &quarter(inside.clone()), &to).unwrap();
        });
        dispatch::copy(b, &part(y.buffer()), &inside).unwrap();
    });
    let program = b.finish();
    let given = memory::encode(DType::F32, &Random(3).values(512 * 512));
    let outcome = execute(&program, std::slice::from_ref(&given)).unwrap();
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    assert!(outcome.outputs[0] == given);
}

/// The fewest transfers, engines, and transposes only where partitions and elements are exchanged.
#[test]
fn copies_become_the_fewest_instructions() {
    let f32 = DType::F32;
    let hbm = tensor(
        Space::Hbm,
        f32,
        &[512, 256],
        "S[(512, 256) : (256, 1)]",
        &[512, 256],
    );
    let loaded = tensor(
        Space::Sbuf,
        f32,
        &[512, 256],
        "S[(4, 128, 256) : (256@F, 1@P, 1@F)]",
        &[128, 1024],
    );
    let banks = psum(&[128, 2048], "S[(128, 2048) : (1@P, 1@F)]", [128, 2048]);
    let evicted = tensor(
        Space::Sbuf,
        DType::BF16,
        &[128, 2048],
        "S[(128, 2048) : (1@P, 1@F)]",
        &[128, 2048],
    );
    let square = tensor(
        Space::Sbuf,
        f32,
        &[128, 128],
        "S[(128, 128) : (1@P, 1@F)]",
        &[128, 128],
    );
    let turned = tensor(
        Space::Sbuf,
        f32,
        &[128, 128],
        "S[(128, 128) : (1@F, 1@P)]",
        &[128, 128],
    );
    let one = tensor(
        Space::Sbuf,
        f32,
        &[128, 512],
        "S[(128, 512) : (0, 1@F)]",
        &[1, 512],
    );
    let many = tensor(
        Space::Sbuf,
        f32,
        &[128, 512],
        "S[(128, 512) : (1@P, 1@F)]",
        &[128, 512],
    );
    let small = tensor(
        Space::Sbuf,
        DType::I32,
        &[32, 32],
        "S[(32, 32) : (1@P, 1@F)]",
        &[32, 32],
    );
    let small_turned = tensor(
        Space::Sbuf,
        DType::I32,
        &[32, 32],
        "S[(32, 32) : (1@F, 1@P)]",
        &[32, 32],
    );
    for (d, s, expected) in [
        (&loaded, &hbm, "dma: 1 dma_copy 128x1024 on dma"),
        (&hbm, &loaded, "dma: 1 dma_copy 128x1024 on dma"),
        (
            &evicted,
            &banks,
            "engine copy: 1 activation 128x2048 on scalar",
        ),
        (
            &turned,
            &square,
            "tensor engine transpose: 1 nc_transpose 128x128 on tensor, 1 activation 128x128 on scalar",
        ),
        (
            &many,
            &one,
            "product with ones: 1 memset 1x128 on gpsimd, 1 nc_matmul 1x128x512 on tensor, \
             1 activation 128x512 on scalar",
        ),
        (
            &small_turned,
            &small,
            "vector engine transpose: 1 nc_transpose 32x32 on vector",
        ),
    ] {
        // Repeated values are the same everywhere.
        let repeated = s.layout.shard().iter().any(|iter| iter.stride == 0);
        let bound = check(
            "trn1",
            &[d.clone(), s.clone()],
            &|b, r| dispatch::copy(b, &r[0], &r[1]),
            &|at, of| {
                of(
                    1,
                    &if repeated {
                        vec![127, at[1]]
                    } else {
                        at.to_vec()
                    },
                )
            },
        );
        assert_eq!(bound, expected);
    }
}

/// exp of x less a number a row, and its sums: one activation.
#[test]
fn maps_fuse_a_function_and_its_sums() {
    let f32 = DType::F32;
    let mut b = Builder::new("kernel", "trn1");
    let shapes = [[128, 512], [128, 1], [128, 512], [128, 1]];
    let memories = [
        b.input("x", &shapes[0], f32),
        b.input("m", &shapes[1], f32),
        b.output("e", &shapes[2], f32),
        b.output("s", &shapes[3], f32),
    ];
    let memories: Vec<Region> = (memories.iter().zip(&shapes))
        .map(|(tile, shape)| Region::new(tile.buffer(), shape, Layout::row_major(shape).unwrap()))
        .collect();
    let tiles: Vec<Region> = (shapes.iter())
        .map(|shape| {
            let tile = b.tile("tile", Space::Sbuf, shape, f32, 1);
            let text = format!("S[(128, {}) : (1@P, 1@F)]", shape[1]);
            Region::new(tile.buffer(), shape, layout(&text))
        })
        .collect();
    let mut graph = Graph::new(1, 1);
    let [x, m] = ["x", "m"].map(|name| graph.input(name, Kind::Full, f32));
    let shifted = graph.binary(Alu::Subtract, x, m, f32);
    let weights = graph.apply(Function::Exp, shifted, f32);
    let sums = graph.reduce(Alu::Add, weights, f32);
    graph.output("e", Kind::Full, f32, weights);
    graph.output("s", Kind::Row, f32, sums);
    for at in 0..2 {
        dispatch::copy(&mut b, &tiles[at], &memories[at]).unwrap();
    }
    let bound = dispatch::map(&mut b, &tiles[2..], &graph, &tiles[..2]).unwrap();
    for at in 2..4 {
        dispatch::copy(&mut b, &memories[at], &tiles[at]).unwrap();
    }
    assert_eq!(
        bound.to_string(),
        "engines: 1 tensor_scalar 128x1 on vector, 1 activation 128x512 on scalar"
    );
    let mut random = Random(5);
    let [x, m] = [128 * 512, 128].map(|count| random.values(count));
    let inputs = [&x, &m].map(|values| memory::encode(f32, values));
    let outcome = execute(&b.finish(), &inputs).unwrap();
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    let [e, s] = [0, 1].map(|at: usize| memory::decode(f32, &outcome.outputs[at]));
    for (row, shift) in m.iter().enumerate() {
        let own = row * 512..(row + 1) * 512;
        let expected: Vec<f32> = x[own.clone()].iter().map(|x| (x - shift).exp()).collect();
        let near = |got: f32, wanted: f32| (got - wanted).abs() <= 1e-5 * wanted;
        assert!(
            e[own]
                .iter()
                .zip(&expected)
                .all(|(got, wanted)| near(*got, *wanted))
        );
        assert!(near(s[row], expected.iter().sum()));
    }
}

/// A row that every partition has is read where the result is.
#[test]
fn maps_read_replicas() {
    let f32 = DType::F32;
    let full = |space| {
        tensor(
            space,
            f32,
            &[128, 512],
            "S[(128, 512) : (1@P, 1@F)]",
            &[128, 512],
        )
    };
    let row = tensor(
        Space::Sbuf,
        f32,
        &[1, 512],
        "S[(512) : (1@F)] + R[128 : 1@P]",
        &[128, 512],
    );
    let mut graph = Graph::new(1, 1);
    let [x, g] = ["x", "g"].map(|name| graph.input(name, Kind::Full, f32));
    let product = graph.binary(Alu::Multiply, x, g, f32);
    graph.output("d", Kind::Full, f32, product);
    let bound = check(
        "trn2",
        &[full(Space::Sbuf), full(Space::Psum), row],
        &|b, r| dispatch::map(b, &r[..1], &graph, &r[1..]),
        &|at, of| of(1, at) * of(2, &[0, at[1]]),
    );
    assert_eq!(bound, "engines: 1 tensor_tensor 128x512 on vector");
}

/// What is read in part after it is written is no operand of one operator.
#[test]
fn overlapping_operands_are_declined() {
    let mut b = Builder::new("kernel", "trn1");
    let tile = b
        .tile("t", Space::Sbuf, &[128, 512], DType::F32, 1)
        .buffer();
    let at = |free: i64| Region {
        free: free.into(),
        ..Region::new(tile, &[128, 256], layout("S[(128, 256) : (1@P, 1@F)]"))
    };
    dispatch::copy(&mut b, &at(256), &at(0)).unwrap();
    let why = dispatch::copy(&mut b, &at(128), &at(0)).unwrap_err();
    assert!(
        why.to_string().contains("d: it may overlap with s"),
        "{why}"
    );
}

/// Questions that are malformed have reasons, and no panic.
#[test]
fn malformed_operators_are_declined() {
    let mut b = Builder::new("kernel", "trn1");
    let tile = b
        .tile("t", Space::Sbuf, &[128, 512], DType::F32, 1)
        .buffer();
    let region = |text: &str, shape: &[i64]| Region::new(tile, shape, layout(text));
    let sound = region("S[(128, 512) : (1@P, 1@F)]", &[128, 512]);
    let says = |bound: Result<Bound, Declined>, what: &str| {
        let why = bound.unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    };
    for (bad, what) in [
        (
            region("S[(128, 512) : (1@P, 1)]", &[128, 512]),
            "expected axes P and F in sbuf, got m",
        ),
        (
            region("S[(128, 512) : (2@P, 1@F)]", &[128, 512]),
            "expected partitions 0 to 127 of 't', got 0 to 254",
        ),
        (
            region("S[(128, 512) : (1@P, 0)]", &[128, 512]),
            "written to one element",
        ),
        (region("S[(128, 512) : (1@P, 1@F)]", &[128, 500]), "size"),
        (
            Region {
                buffer: 9,
                ..sound.clone()
            },
            "no buffer 9",
        ),
        (
            Region {
                free: 1.into(),
                ..sound.clone()
            },
            "expected elements 0 to 511 of 't', got 1 to 512",
        ),
        (
            Region {
                valid: Some(vec![200, 1]),
                ..sound.clone()
            },
            "indices in use",
        ),
        (
            region("S[(2, 4, 8, 32) : (1@P, 1@F, 3@F, 8@F)]", &[2, 32, 32]),
            "overlaps",
        ),
    ] {
        says(dispatch::fill(&mut b, &bad, 1.0), what);
    }
    let other = region("S[(128, 256) : (1@P, 1@F)]", &[128, 256]);
    says(
        dispatch::copy(&mut b, &sound, &other),
        "expected s of [128, 512], got [128, 256]",
    );
    says(
        dispatch::transpose(&mut b, &sound, &sound, &[0, 0]),
        "permutation",
    );
    says(
        dispatch::transpose(&mut b, &sound, &sound, &[0, 9]),
        "permutation",
    );
    says(
        dispatch::reduce(&mut b, &sound, &sound, &[5], Alu::Add),
        "dimensions below 2",
    );
    says(
        dispatch::reduce(&mut b, &sound, &sound, &[1], Alu::Add),
        "expected d of",
    );
    says(
        dispatch::gemm(&mut b, &sound, &sound, &sound, [false; 2], Accumulate::Auto),
        "indices of",
    );
    says(
        dispatch::map(&mut b, &[], &Graph::new(1, 1), &[]),
        "expected 0 outputs",
    );
    let nowhere = Region {
        buffer: 9,
        ..sound.clone()
    };
    let short = Region {
        valid: Some(vec![1]),
        ..sound.clone()
    };
    let mut graph = Graph::new(1, 1);
    let x = graph.input("x", Kind::Full, DType::F32);
    let y = graph.apply(Function::Exp, x, DType::F32);
    graph.output("y", Kind::Full, DType::F32, y);
    for bad in [&nowhere, &short] {
        let bad = std::slice::from_ref(bad);
        let good = std::slice::from_ref(&sound);
        assert!(dispatch::map(&mut b, bad, &graph, good).is_err());
        assert!(dispatch::map(&mut b, good, &graph, bad).is_err());
        assert!(dispatch::transpose(&mut b, &sound, &bad[0], &[1, 0]).is_err());
        assert!(dispatch::reduce(&mut b, &sound, &bad[0], &[1, 1], Alu::Add).is_err());
    }
    let scalar = Region::new(tile, &[], Layout::empty());
    let mut sums = Graph::new(1, 1);
    let x = sums.input("x", Kind::Full, DType::F32);
    let y = sums.reduce(Alu::Add, x, DType::F32);
    sums.output("y", Kind::Row, DType::F32, y);
    let _ = dispatch::map(
        &mut b,
        std::slice::from_ref(&scalar),
        &sums,
        std::slice::from_ref(&scalar),
    );
}

/// Accesses of buffers of several dimensions that are no view of them, and numbers that nearly leave 64 bits.
#[test]
fn accesses_that_are_no_view_are_declined() {
    let mut b = Builder::new("kernel", "trn1");
    let shape = [128, 4, 3, 40];
    let tile = b.tile("t", Space::Sbuf, &shape, DType::F32, 1).buffer();
    let mut taken = 0;
    for (extent, step) in [
        (12, 40),
        (40, 3),
        (7, 41),
        (3, 160),
        (480, 1),
        (96, 5),
        (2, 121),
        (4, 120),
    ] {
        let text = format!("S[(128, {extent}) : (1@P, {step}@F)]");
        let region = Region::new(tile, &[128, extent], layout(&text));
        taken += u32::from(dispatch::fill(&mut b, &region, 1.0).is_ok());
    }
    assert_eq!(
        taken, 4,
        "whole dimensions in order, and what stays inside of one"
    );
    let index = Expr::Index(0);
    let far = Region {
        free: index.times(i64::MAX),
        ..Region::new(
            tile,
            &[128, 2],
            layout("S[(128, 2) : (1@P, 4611686018427387903@F)]"),
        )
    };
    assert!(dispatch::fill(&mut b, &far, 1.0).is_err());
    assert_eq!(rules::check(&b.finish()), []);
}
