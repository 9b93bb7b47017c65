//! Operators with what they become, and why not.

use crate::tiles::{Kernel, POISON, Random, Tensor, compare};
use axe_layout::Layout;
use axe_package::DType;
use axe_trn::dispatch::{self, Bound, Declined, Reason, Region};
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::program::{Accumulate, Alu, Builder, Function, Space};
use axe_trn::rules;
use axe_trn::run::{execute, memory};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// A tensor in a buffer of these extents.
fn tensor(space: Space, dtype: DType, shape: &[i64], text: &str, buffer: &[i64]) -> Tensor {
    Tensor {
        space,
        dtype,
        shape: shape.to_vec(),
        layout: layout(text),
        start: (0, 0),
        buffer: buffer.to_vec(),
        valid: None,
    }
}

/// An operator on regions.
type Operator<'a> = dyn Fn(&mut Builder, &[Region]) -> Result<Bound, Declined> + 'a;
/// An element of the result, of the values of tensors by number and index.
type Expected<'a> = dyn Fn(&[i64], &dyn Fn(usize, &[i64]) -> f32) -> f32 + 'a;

/// Runs an operator on the first tensor, and compares it with a function of the others' values.
fn check(
    chip: &str,
    tensors: &[Tensor],
    operator: &Operator<'_>,
    expected: &Expected<'_>,
) -> String {
    let mut random = Random(7);
    let values: Vec<Vec<f32>> = tensors
        .iter()
        .map(|tensor| tensor.random(&mut random))
        .collect();
    let mut kernel = Kernel::new(chip, tensors);
    let regions = kernel.regions.clone();
    let bound = operator(&mut kernel.b, &regions)
        .unwrap_or_else(|why| panic!("{why}"))
        .to_string();
    let of = |at: usize, index: &[i64]| values[at][tensors[at].flat(index)];
    let images: Vec<Vec<f32>> = (0..tensors.len())
        .map(|at| match at {
            0 => tensors[0].image(&|_| POISON),
            _ => tensors[at].image(&|index| of(at, index)),
        })
        .collect();
    let expected = tensors[0].image(&|index| expected(index, &of));
    compare(
        &kernel.finish(tensors),
        tensors,
        &images,
        &expected,
        0.0,
        &|| bound.clone(),
    );
    bound
}

/// `[m, k]` transposed by `[k, n]`.
fn gemm(chip: &str, tensors: &[Tensor; 3]) -> String {
    let k = tensors[1].valid.as_ref().unwrap_or(&tensors[1].shape)[0];
    check(
        chip,
        tensors,
        &|b, r| dispatch::gemm(b, &r[0], &r[1], &r[2], [true, false], Accumulate::Auto),
        &|at, of| {
            (0..k)
                .map(|k| of(1, &[k, at[0]]) * of(2, &[k, at[1]]))
                .sum()
        },
    )
}

fn declined(tensors: &[Tensor; 3]) -> Declined {
    let mut kernel = Kernel::new("trn1", tensors);
    let r = kernel.regions.clone();
    let before = kernel.b;
    let mut b = before;
    let why = dispatch::gemm(&mut b, &r[0], &r[1], &r[2], [true, false], Accumulate::Auto);
    kernel.b = b;
    // Nothing is left behind.
    let program = kernel.finish(tensors);
    let mut products = 0;
    program.instructions(&mut |instruction, _| {
        products += usize::from(instruction.op.name() == "nc_matmul");
    });
    assert_eq!((rules::check(&program), products), (vec![], 0));
    why.unwrap_err()
}

fn sbuf(shape: &[i64], text: &str, buffer: [i64; 2]) -> Tensor {
    tensor(Space::Sbuf, DType::BF16, shape, text, &buffer)
}

fn psum(shape: &[i64], text: &str, buffer: [i64; 2]) -> Tensor {
    tensor(Space::Psum, DType::F32, shape, text, &buffer)
}

#[test]
fn products_take_the_largest_instruction() {
    let d = psum(&[128, 512], "S[(128, 512) : (1@P, 1@F)]", [128, 512]);
    let lhs = sbuf(
        &[256, 128],
        "S[(2, 128, 128) : (128@F, 1@P, 1@F)]",
        [128, 256],
    );
    let rhs = sbuf(
        &[256, 512],
        "S[(2, 128, 512) : (512@F, 1@P, 1@F)]",
        [128, 1024],
    );
    let bound = gemm("trn2", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 2 nc_matmul 128x128x512 on tensor");
}

/// An order of partitions that is the same in both is as good as the consecutive one, whatever it is.
#[test]
fn products_take_any_order_of_k_that_both_have() {
    for order in [
        "(4, 32) : (1@P, 4@P)",
        "(2, 4, 16) : (16@P, 32@P, 1@P)",
        "(128) : (-1@P)",
    ] {
        let (extents, strides) = order.split_once(") : (").unwrap();
        let (extents, strides) = (
            extents.trim_start_matches('('),
            strides.trim_end_matches(')'),
        );
        let offset = if strides.starts_with('-') {
            " + 127@P"
        } else {
            ""
        };
        let of = |n: i64| format!("S[({extents}, {n}) : ({strides}, 1@F)]{offset}");
        let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
        let lhs = sbuf(&[128, 32], &of(32), [128, 32]);
        let rhs = sbuf(&[128, 64], &of(64), [128, 64]);
        let bound = gemm("trn1", &[d, lhs, rhs]);
        assert_eq!(
            bound, "lhs stationary: 1 nc_matmul 128x32x64 on tensor",
            "{order}"
        );
    }
}

/// The counts agree, 128 indices of K on 128 partitions: the indices do not.
#[test]
fn products_of_other_orders_are_declined() {
    for (of_lhs, of_rhs) in [
        (
            "(4, 32, N) : (32@P, 1@P, 1@F)",
            "(4, 32, N) : (1@P, 4@P, 1@F)",
        ),
        ("(128, N) : (1@P, 1@F)", "(2, 64, N) : (1@P, 2@P, 1@F)"),
        (
            "(8, 16, N) : (16@P, 1@P, 1@F)",
            "(8, 16, N) : (1@P, 8@P, 1@F)",
        ),
    ] {
        let of = |text: &str, n: &str| format!("S[{}]", text.replace('N', n));
        let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
        let lhs = sbuf(&[128, 32], &of(of_lhs, "32"), [128, 32]);
        let rhs = sbuf(&[128, 64], &of(of_rhs, "64"), [128, 64]);
        let why = declined(&[d, lhs, rhs]);
        let [(_, first), _] = why.reasons.as_slice() else {
            panic!("{why}")
        };
        assert!(matches!(first, Reason::PartitionOrder { .. }), "{why}");
    }
}

/// Quadrants in another order are products of 32, whose starts are legal.
#[test]
fn quadrants_in_other_orders_are_smaller_products() {
    let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
    let lhs = sbuf(&[128, 32], "S[(4, 32, 32) : (32@P, 1@P, 1@F)]", [128, 32]);
    let rhs = sbuf(
        &[128, 64],
        "S[(4, 32, 64) : (-32@P, 1@P, 1@F)] + 96@P",
        [128, 64],
    );
    let bound = gemm("trn1", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 4 nc_matmul 32x32x64 on tensor");
}

#[test]
fn products_stay_in_banks_and_take_tails() {
    for (n, start, expected) in [
        (
            640,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x128 on tensor",
        ),
        (
            768,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x256 on tensor",
        ),
        (
            1000,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x488 on tensor",
        ),
        (1024, 0, "2 nc_matmul 64x32x512 on tensor"),
        (
            1024,
            256,
            "2 nc_matmul 64x32x256 on tensor, 1 nc_matmul 64x32x512 on tensor",
        ),
    ] {
        let text = format!("S[(32, {n}) : (1@P, 1@F)]");
        let mut d = psum(&[32, n], &text, [32, 2048]);
        d.start.1 = start;
        let lhs = sbuf(&[64, 32], "S[(64, 32) : (1@P, 1@F)]", [64, 32]);
        let rhs = sbuf(&[64, n], &format!("S[(64, {n}) : (1@P, 1@F)]"), [64, n]);
        let bound = gemm("trn1", &[d, lhs, rhs]);
        assert_eq!(bound, format!("lhs stationary: {expected}"));
    }
}

/// 1000 rows of 8 x 128, 500 indices of K of 4 x 128.
#[test]
fn what_is_in_use_ends_inside_a_tile() {
    let mut d = psum(
        &[1024, 64],
        "S[(8, 128, 64) : (64@F, 1@P, 1@F)]",
        [128, 512],
    );
    let mut lhs = sbuf(
        &[512, 1024],
        "S[(4, 128, 1024) : (1024@F, 1@P, 1@F)]",
        [128, 4096],
    );
    let mut rhs = sbuf(&[512, 64], "S[(4, 128, 64) : (64@F, 1@P, 1@F)]", [128, 256]);
    d.valid = Some(vec![1000, 64]);
    lhs.valid = Some(vec![500, 1000]);
    rhs.valid = Some(vec![500, 64]);
    let bound = gemm("trn1", &[d, lhs, rhs]);
    assert_eq!(
        bound,
        "lhs stationary: 21 nc_matmul 128x128x64 on tensor, 7 nc_matmul 116x128x64 on tensor, \
         3 nc_matmul 128x104x64 on tensor, 1 nc_matmul 116x104x64 on tensor"
    );
}

/// A vector on one partition, and one across partitions.
#[test]
fn products_give_vectors() {
    let lhs = sbuf(&[128, 1], "S[(128) : (1@P)]", [128, 1]);
    let rhs = sbuf(&[128, 600], "S[(128, 600) : (1@P, 1@F)]", [128, 600]);
    let row = psum(&[1, 600], "S[(600) : (1@F)]", [1, 600]);
    let bound = gemm("trn1", &[row, lhs.clone(), rhs]);
    assert_eq!(
        bound,
        "lhs stationary: 1 nc_matmul 128x1x512 on tensor, 1 nc_matmul 128x1x88 on tensor"
    );
    let rhs = sbuf(&[128, 100], "S[(128, 100) : (1@P, 1@F)]", [128, 100]);
    let column = psum(&[1, 100], "S[(100) : (1@P)]", [100, 1]);
    let bound = gemm("trn1", &[column, lhs, rhs]);
    assert_eq!(bound, "rhs stationary: 1 nc_matmul 128x100x1 on tensor");
}

/// Replicas of the result are columns of the stationary operand that repeat.
#[test]
fn products_write_replicas() {
    let lhs = sbuf(&[64, 1], "S[(64) : (1@P)]", [64, 1]);
    let rhs = sbuf(&[64, 96], "S[(64, 96) : (1@P, 1@F)]", [64, 96]);
    let d = psum(&[1, 96], "S[(96) : (1@F)] + R[128 : 1@P]", [128, 96]);
    let bound = gemm("trn2", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 1 nc_matmul 64x128x96 on tensor");
}

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

/// exp of x less a row's largest, and its sums: one activation; and a row added to all partitions where it is replicated.
#[test]
fn maps_fuse_reductions_and_read_replicas() {
    let f32 = DType::F32;
    let mut b = Builder::new("kernel", "trn1");
    let tile = |b: &mut Builder, name: &str, free: i64| {
        b.tile(name, Space::Sbuf, &[128, free], DType::F32, 1)
            .buffer()
    };
    let full =
        |buffer: usize| Region::new(buffer, &[128, 512], layout("S[(128, 512) : (1@P, 1@F)]"));
    let row = |buffer: usize| Region::new(buffer, &[128, 1], layout("S[(128) : (1@P)]"));
    let (x, m) = (tile(&mut b, "x", 512), tile(&mut b, "m", 1));
    let (e, s) = (tile(&mut b, "e", 512), tile(&mut b, "s", 1));
    let mut graph = Graph::new(1, 1);
    let (from, most) = (
        graph.input("x", Kind::Full, f32),
        graph.input("m", Kind::Full, f32),
    );
    let shifted = graph.binary(Alu::Subtract, from, most, f32);
    let weights = graph.apply(Function::Exp, shifted, f32);
    let sums = graph.reduce(Alu::Add, weights, f32);
    graph.output("e", Kind::Full, f32, weights);
    graph.output("s", Kind::Row, f32, sums);
    let bound = dispatch::map(&mut b, &[full(e), row(s)], &graph, &[full(x), row(m)]).unwrap();
    assert!(
        bound.to_string().contains("1 activation 128x512 on scalar"),
        "{bound}"
    );
    assert!(!bound.to_string().contains("tensor_reduce"), "{bound}");
    assert_eq!(bound.counts.len(), 2, "{bound}");
    let g = tile(&mut b, "g", 512);
    let replicated = Region::new(g, &[1, 512], layout("S[(512) : (1@F)] + R[128 : 1@P]"));
    let mut graph = Graph::new(1, 1);
    let (x_value, g_value) = (
        graph.input("x", Kind::Full, f32),
        graph.input("g", Kind::Full, f32),
    );
    let product = graph.binary(Alu::Multiply, x_value, g_value, f32);
    graph.output("e", Kind::Full, f32, product);
    let bound = dispatch::map(&mut b, &[full(e)], &graph, &[full(x), replicated]).unwrap();
    assert_eq!(
        bound.to_string(),
        "engines: 1 tensor_tensor 128x512 on vector"
    );
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
}
