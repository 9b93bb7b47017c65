//! Planned attention: values against softmax in f64, and how much of its busiest engine it reaches.

use axe_package::dtype::DType;
use axe_trn::facts::chip::{CHIPS, chip};
use axe_trn::plan::{Attention, Order, attention_bound};
use axe_trn::program::Program;
use axe_trn::run::{execute, memory};
use axe_trn::{rules, sync, time};

const PLAIN: Attention = Attention {
    heads: 1,
    queries: 128,
    keys: 128,
    dim: 64,
    q: Order::KMinor,
    k: Order::KMinor,
    dtype: DType::BF16,
    scale: 0.125,
    causal: false,
};

/// Numbers in the operands' type, scores of which are far apart: `spread` times those between -2 and 2.
fn tensor(attention: &Attention, count: i64, seed: i64, spread: f32) -> Vec<f32> {
    let number = |i: i64| ((i * 37 + seed * 101 + i / 11 * 13) % 65 - 32) as f32 / 16.0 * spread;
    let numbers: Vec<f32> = (0..count).map(number).collect();
    memory::decode(attention.dtype, &memory::encode(attention.dtype, &numbers))
}

/// Elements of one head in the order `[row, dim]`, from a tensor that lies in either.
fn at(order: Order, tensor: &[f32], (rows, dim): (i64, i64), head: i64, row: i64, x: i64) -> f64 {
    let own = match order {
        Order::KMajor => x * rows + row,
        Order::KMinor => row * dim + x,
    };
    f64::from(tensor[(head * rows * dim + own) as usize])
}

/// Rows of the result, by softmax in f64.
fn expected(a: &Attention, [q, k, v]: [&[f32]; 3], head: i64, query: i64) -> Vec<f64> {
    let keys = if a.causal { query + 1 } else { a.keys };
    let score = |key: i64| {
        let of = |x| {
            at(a.q, q, (a.queries, a.dim), head, query, x)
                * at(a.k, k, (a.keys, a.dim), head, key, x)
        };
        a.scale * (0..a.dim).map(of).sum::<f64>()
    };
    let scores: Vec<f64> = (0..keys).map(score).collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let value = |x: i64| {
        let of =
            |key: i64| weights[key as usize] * at(Order::KMinor, v, (a.keys, a.dim), head, key, x);
        (0..keys).map(of).sum::<f64>() / sum
    };
    (0..a.dim).map(value).collect()
}

/// Executes the program with all rules, and compares rows of each tile.
fn check(a: &Attention, program: &Program, spread: f32) {
    assert_eq!(rules::check(program), [], "{a:?}");
    let [q, k, v] = [(a.queries, 1), (a.keys, 2), (a.keys, 3)].map(|(rows, seed)| {
        tensor(
            a,
            a.heads * rows * a.dim,
            seed,
            if seed < 3 { spread } else { 1.0 },
        )
    });
    let inputs = [&q, &k, &v].map(|values| memory::encode(a.dtype, values));
    let outcome = execute(program, &inputs).unwrap();
    assert!(
        outcome.findings.is_empty(),
        "{a:?}: {}",
        outcome.findings[0]
    );
    let got = memory::decode(a.dtype, &outcome.outputs[0]);
    for head in 0..a.heads {
        for query in (0..a.queries).filter(|query| query % 37 == 0 || query + 1 == a.queries) {
            let want = expected(a, [&q, &k, &v], head, query);
            for (x, want) in want.iter().enumerate() {
                let got = f64::from(got[((head * a.queries + query) * a.dim) as usize + x]);
                let error = (got - want).abs();
                assert!(
                    error <= 2e-2 * want.abs().max(1.0),
                    "{a:?} at {head}, {query}, {x}: {got}, not {want}"
                );
            }
        }
    }
    let trace = sync::trace(program).unwrap();
    assert!(
        sync::hazards(&trace, &sync::semaphores(&trace)).is_empty(),
        "{a:?}"
    );
}

#[test]
fn attention_of_any_size_is_right() {
    let major = Attention {
        q: Order::KMajor,
        k: Order::KMajor,
        ..PLAIN
    };
    for chip in CHIPS {
        for (attention, spread) in [
            (
                Attention {
                    queries: 1,
                    keys: 1,
                    dim: 1,
                    ..PLAIN
                },
                1.0,
            ),
            (
                Attention {
                    queries: 640,
                    keys: 1100,
                    dim: 40,
                    ..PLAIN
                },
                1.0,
            ),
            (
                Attention {
                    heads: 3,
                    queries: 1030,
                    keys: 130,
                    ..major
                },
                1.0,
            ),
            (
                Attention {
                    heads: 2,
                    queries: 1000,
                    keys: 1000,
                    causal: true,
                    ..PLAIN
                },
                1.0,
            ),
            (
                Attention {
                    queries: 1200,
                    keys: 600,
                    dim: 128,
                    ..PLAIN
                },
                1.0,
            ),
            (
                Attention {
                    heads: 3,
                    queries: 130,
                    keys: 130,
                    dim: 128,
                    causal: true,
                    ..major
                },
                1.0,
            ),
            (
                Attention {
                    queries: 700,
                    keys: 700,
                    dtype: DType::F16,
                    causal: true,
                    ..PLAIN
                },
                1.0,
            ),
            // Scores of several hundreds, which overflow without the largest one taken off.
            (
                Attention {
                    queries: 256,
                    keys: 300,
                    scale: 1.0,
                    ..PLAIN
                },
                4.0,
            ),
        ] {
            let program = attention.plan("attention", chip.name).unwrap();
            check(&attention, &program, spread);
        }
    }
}

/// Steps in a loop, heads in a loop.
#[test]
fn loops_over_steps_and_heads_are_right() {
    let attention = Attention {
        heads: 3,
        queries: 2050,
        keys: 520,
        dim: 8,
        ..PLAIN
    };
    let program = attention.plan("attention", "trn1").unwrap();
    check(&attention, &program, 1.0);
}

#[test]
fn attention_reaches_the_bound_of_its_busiest_engine() {
    for (dim, length, heads) in [
        (64, 1024, 16),
        (128, 1024, 16),
        (64, 4096, 2),
        (128, 4096, 2),
    ] {
        for causal in [false, true] {
            for chip_name in ["trn1", "trn2"] {
                let attention = Attention {
                    heads,
                    queries: length,
                    keys: length,
                    dim,
                    causal,
                    q: Order::KMajor,
                    k: Order::KMajor,
                    ..PLAIN
                };
                let program = attention.plan("attention", chip_name).unwrap();
                let seconds = time::simulate(&program).unwrap().seconds;
                let ratio = attention_bound(&attention, chip(chip_name).unwrap()) / seconds;
                println!(
                    "{chip_name} {heads} heads of {length} x {dim}, causal {causal}: {:.1} us, {:.1} % of the bound",
                    seconds * 1e6,
                    ratio * 100.0
                );
                assert!(ratio <= 1.0, "faster than its bound");
            }
        }
    }
}

#[test]
fn what_has_no_kernel_is_declined() {
    let why = |attention: Attention| attention.plan("attention", "trn1").unwrap_err().to_string();
    assert!(why(Attention { dim: 129, ..PLAIN }).contains("at most 128"));
    assert!(why(Attention { heads: 0, ..PLAIN }).contains("expected extents from 1"));
    assert!(
        why(Attention {
            dtype: DType::F32,
            ..PLAIN
        })
        .contains("expected bf16 or f16")
    );
    assert!(
        why(Attention {
            scale: f64::NAN,
            ..PLAIN
        })
        .contains("a positive one")
    );
    assert!(
        why(Attention {
            causal: true,
            keys: 256,
            ..PLAIN
        })
        .contains("as many keys as queries")
    );
    let long = Attention {
        keys: 1 << 17,
        ..PLAIN
    };
    assert!(why(long).contains("'kt'"));
}
