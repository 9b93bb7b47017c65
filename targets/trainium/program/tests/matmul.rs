//! Planned products: values of any size, order and type against sums in f64, and how much of the tensor engine they use.

use axe_package::DType;
use axe_trn::facts::chip::{CHIPS, chip};
use axe_trn::plan::{Blocks, Lead, Matmul, Order, bound};
use axe_trn::program::Program;
use axe_trn::run::{execute, memory};
use axe_trn::{rules, sync, time};

const PLAIN: (Order, Order) = (Order::KMinor, Order::KMajor);
const TURNED: (Order, Order) = (Order::KMajor, Order::KMinor);
const DIRECT: (Order, Order) = (Order::KMajor, Order::KMajor);

fn problem(sizes: [i64; 3], (lhs, rhs): (Order, Order), inputs: DType, output: DType) -> Matmul {
    Matmul {
        sizes,
        lhs,
        rhs,
        inputs,
        output,
    }
}

/// Small integers: products and sums are exact in f32.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7 + seed * 13 + i / 11 + i / 131) % 9 - 4) as f32)
        .collect()
}

/// Executes the program and compares every element.
fn check(matmul: &Matmul, program: &Program) {
    assert_eq!(rules::check(program), [], "{matmul:?}");
    let [m, k, n] = matmul.sizes;
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let at = |order: Order, k_at: i64, column: i64, columns: i64| match order {
        Order::KMajor => (k_at * columns + column) as usize,
        Order::KMinor => (column * k + k_at) as usize,
    };
    let inputs = [&a, &b].map(|values| memory::encode(matmul.inputs, values));
    let outcome = execute(program, &inputs).unwrap();
    assert!(
        outcome.findings.is_empty(),
        "{matmul:?}: {}",
        outcome.findings[0]
    );
    let got = memory::decode(matmul.output, &outcome.outputs[0]);
    for row in 0..m {
        for column in 0..n {
            let product =
                |x| f64::from(a[at(matmul.lhs, x, row, m)] * b[at(matmul.rhs, x, column, n)]);
            let sum: f64 = (0..k).map(product).sum();
            let want =
                memory::decode(matmul.output, &memory::encode(matmul.output, &[sum as f32]))[0];
            let found = got[(row * n + column) as usize];
            assert_eq!(found, want, "{matmul:?} at {row}, {column}");
        }
    }
    let trace = sync::trace(program).unwrap();
    assert!(
        sync::hazards(&trace, &sync::semaphores(&trace)).is_empty(),
        "{matmul:?}"
    );
}

#[test]
fn products_of_any_size_are_right() {
    let (bf16, f32) = (DType::BF16, DType::F32);
    for chip in CHIPS {
        for matmul in [
            problem([1, 1, 1], PLAIN, bf16, f32),
            problem([130, 200, 520], PLAIN, bf16, bf16),
            problem([64, 640, 100], DIRECT, DType::F16, DType::F16),
            problem([257, 129, 33], TURNED, f32, f32),
            problem([100, 77, 1000], (Order::KMinor, Order::KMinor), bf16, f32),
        ] {
            check(&matmul, &matmul.plan("matmul", chip.name).unwrap());
        }
    }
}

/// Several blocks in each dimension, with tails in all of them.
#[test]
fn blocks_and_their_tails_add_up() {
    let blocks = Blocks {
        m: 128,
        n: 512,
        k: 128,
        peeled: true,
        lead: None,
    };
    for (chip, orders) in [
        ("trn1", PLAIN),
        ("trn2", PLAIN),
        ("trn1", TURNED),
        ("trn2", DIRECT),
    ] {
        for depth in [128, 200, 300, 640, 650] {
            let matmul = problem([140, depth, 530], orders, DType::BF16, DType::F32);
            let lead = Some(Lead { m: 128, k: 256 });
            for (peeled, k, lead) in [(true, 128, None), (false, 128, None), (true, 768, lead)] {
                let blocks = Blocks {
                    peeled,
                    k,
                    lead,
                    ..blocks
                };
                check(
                    &matmul,
                    &matmul.with_blocks("matmul", chip, blocks).unwrap(),
                );
            }
        }
    }
    let deep = Blocks {
        m: 256,
        n: 1024,
        k: 768,
        peeled: true,
        lead: None,
    };
    let matmul = problem([300, 1600, 40], PLAIN, DType::F32, DType::BF16);
    check(
        &matmul,
        &matmul.with_blocks("matmul", "trn1", deep).unwrap(),
    );
}

/// The part of the tensor engine's bound that a product reaches in the model.
fn reached(matmul: &Matmul, name: &str) -> f64 {
    let program = matmul.plan("matmul", name).unwrap();
    let timing = time::simulate(&program).unwrap();
    let ratio = bound(matmul, chip(name).unwrap()) / timing.seconds;
    println!(
        "{name} {:?} {:?}: {:.1} us, {:.1} % of the bound",
        matmul.sizes,
        matmul.lhs,
        timing.seconds * 1e6,
        ratio * 100.0
    );
    assert!(ratio <= 1.0 + 1e-9, "faster than its bound");
    ratio
}

#[test]
fn products_reach_the_bound_of_the_tensor_engine() {
    let bf16 = |size: i64, orders| problem([size; 3], orders, DType::BF16, DType::BF16);
    for (chip, orders, size, least) in [
        ("trn2", DIRECT, 2048, 0.92),
        ("trn2", PLAIN, 2048, 0.92),
        ("trn2", DIRECT, 4096, 0.95),
        ("trn2", PLAIN, 4096, 0.95),
        ("trn1", DIRECT, 2048, 0.92),
        ("trn1", DIRECT, 4096, 0.95),
        ("trn1", PLAIN, 2048, 0.79),
        ("trn1", PLAIN, 4096, 0.86),
    ] {
        let ratio = reached(&bf16(size, orders), chip);
        assert!(
            ratio >= least,
            "{chip} {orders:?} {size}: {ratio:.3}, expected {least}"
        );
    }
}

#[test]
fn what_has_no_program_is_declined() {
    let plan = |matmul: Matmul, chip: &str| matmul.plan("matmul", chip).unwrap_err().to_string();
    let (bf16, f32) = (DType::BF16, DType::F32);
    assert_eq!(
        plan(problem([1, 1, 1], PLAIN, bf16, f32), "trn9"),
        "expected chip trn1 or trn2, got 'trn9'"
    );
    assert!(
        plan(problem([0, 1, 1], PLAIN, bf16, f32), "trn1")
            .starts_with("a product of M, K, N = [0, 1, 1]")
    );
    assert!(
        plan(problem([1, i64::MAX, 1], PLAIN, bf16, f32), "trn1")
            .contains("expected extents from 1")
    );
    assert_eq!(
        plan(problem([1, 1, 1], PLAIN, DType::I32, f32), "trn1"),
        "expected operands of f32, bf16 or f16, got i32"
    );
    assert_eq!(
        plan(problem([1, 1, 1], PLAIN, bf16, DType::I32), "trn1"),
        "expected a result of f32, bf16 or f16, got i32"
    );
    let huge = Blocks {
        m: 8192,
        n: 2048,
        k: 8192,
        peeled: true,
        lead: None,
    };
    let why = problem([8192; 3], DIRECT, bf16, f32)
        .with_blocks("matmul", "trn1", huge)
        .unwrap_err()
        .to_string();
    assert!(why.contains("'rhs_tile': (B2)"), "{why}");
    let odd = Blocks {
        m: 100,
        n: 512,
        k: 128,
        peeled: true,
        lead: None,
    };
    assert!(
        problem([256; 3], DIRECT, bf16, f32)
            .with_blocks("matmul", "trn1", odd)
            .is_err()
    );
}
