//! Planned attention: values against softmax in f64, and how much of its busiest engine it reaches.

mod attended;

use attended::{PLAIN, expected, gathered, grouped, in_memory, operands};
use axe_package::DType;
use axe_trn::facts::chip::{CHIPS, chip};
use axe_trn::plan::{Attention, Digit, Order, Strided, Tensors, attention_bound};
use axe_trn::program::Program;
use axe_trn::run::{execute, memory};
use axe_trn::{rules, sync, time};

/// Executes the program with all rules; what it wrote.
fn outputs(a: &Attention, program: &Program, inputs: [&[f32]; 3]) -> Vec<f32> {
    assert_eq!(rules::check(program), [], "{a:?}");
    let inputs = inputs.map(|values| memory::encode(a.dtype, values));
    let outcome = execute(program, &inputs).unwrap();
    assert!(
        outcome.findings.is_empty(),
        "{a:?}: {}",
        outcome.findings[0]
    );
    let trace = sync::trace(program).unwrap();
    assert!(
        sync::hazards(&trace, &sync::semaphores(&trace)).is_empty(),
        "{a:?}"
    );
    memory::decode(a.dtype, &outcome.outputs[0])
}

/// Compares rows of each tile of `[heads, queries, dim]`.
fn compare(a: &Attention, operands: [&[f32]; 3], got: &[f32]) {
    for head in 0..a.heads {
        for query in (0..a.queries).filter(|query| query % 37 == 0 || query + 1 == a.queries) {
            let want = expected(a, operands, head, query);
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
}

fn check(a: &Attention, program: &Program, spread: f32) {
    let [q, k, v] = operands(a, spread);
    let got = outputs(a, program, [&q, &k, &v]);
    compare(a, [&q, &k, &v], &got);
}

#[test]
fn heads_lie_anyhow() {
    for (chip, causal) in [("trn1", true), ("trn2", false)] {
        let a = Attention {
            heads: 8,
            queries: 140,
            keys: 140,
            dim: 40,
            causal,
            ..PLAIN
        };
        let tensors = grouped(&a);
        let program = a.plan_of("attention", chip, &tensors).unwrap();
        let [q, k, v] = in_memory(&a, &tensors);
        let got = outputs(&a, &program, [&q, &k, &v]);
        let of = |strided, rows, memory: &[f32]| gathered(&a, strided, rows, memory);
        compare(
            &a,
            [
                &of(&tensors.q, a.queries, &q),
                &of(&tensors.k, a.keys, &k),
                &of(&tensors.v, a.keys, &v),
            ],
            &of(&tensors.result, a.queries, &got),
        );
    }
}

#[test]
fn tensors_that_no_transfer_reads_are_declined() {
    let a = Attention { heads: 2, ..PLAIN };
    let plain = || Tensors::below(&a);
    let why = |tensors: Tensors| {
        a.plan_of("attention", "trn1", &tensors)
            .unwrap_err()
            .to_string()
    };
    let wide = |strided: Strided| Strided {
        elements: 2 * strided.elements,
        column: 2,
        row: 2 * strided.row,
        heads: strided
            .heads
            .iter()
            .map(|digit| Digit {
                stride: 2 * digit.stride,
                ..*digit
            })
            .collect(),
    };
    let v = wide(plain().v);
    assert!(why(Tensors { v, ..plain() }).contains("each of the values do not follow"));
    let k = Strided {
        row: 65,
        ..plain().k
    };
    assert!(why(Tensors { k, ..plain() }).contains("the keys lie in no row-major tensor"));
    let result = Strided {
        heads: Vec::new(),
        ..plain().result
    };
    assert!(why(Tensors { result, ..plain() }).contains("the results of several heads are one"));
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

/// The part of the bound that heads of so many queries and keys, 32 K of them all together, reach in the model.
fn reached(chip_name: &str, dim: i64, length: i64, causal: bool) -> f64 {
    let attention = Attention {
        heads: 32768 / length,
        queries: length,
        keys: length,
        dim,
        causal,
        q: Order::KMajor,
        k: Order::KMajor,
        ..PLAIN
    };
    let program = attention.plan("attention", chip_name).unwrap();
    let timing = time::simulate(&program).unwrap();
    let ratio = attention_bound(&attention, chip(chip_name).unwrap()) / timing.seconds;
    println!(
        "{chip_name} {} heads of {length} x {dim}, causal {causal}: {:.1} us, {:.1} % of the bound; DMA busy {:.1} %",
        attention.heads,
        timing.seconds * 1e6,
        ratio * 100.0,
        timing.busy[4] / timing.seconds * 100.0
    );
    assert!(ratio <= 1.0, "faster than its bound");
    ratio
}

#[test]
fn attention_reaches_the_bound_of_its_busiest_engine() {
    for (chip, dim, length, causal, least) in [
        ("trn1", 64, 1024, false, 0.85),
        ("trn1", 128, 1024, false, 0.85),
        ("trn2", 64, 1024, false, 0.85),
        ("trn2", 128, 1024, false, 0.85),
        ("trn1", 64, 4096, true, 0.85),
        ("trn1", 128, 4096, true, 0.85),
        ("trn1", 64, 1024, true, 0.85),
        ("trn2", 64, 2048, true, 0.84),
        ("trn2", 128, 1024, true, 0.85),
        ("trn2", 64, 4096, true, 0.85),
        ("trn2", 128, 4096, true, 0.85),
    ] {
        let ratio = reached(chip, dim, length, causal);
        assert!(ratio >= least, "{ratio:.3}, expected {least}");
    }
}

/// What docs/performance.md says.
#[test]
#[ignore = "prints figures"]
fn figures() {
    for chip in ["trn1", "trn2"] {
        for dim in [64, 128] {
            for causal in [false, true] {
                for length in [1024, 2048, 4096, 8192, 16384] {
                    reached(chip, dim, length, causal);
                }
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
