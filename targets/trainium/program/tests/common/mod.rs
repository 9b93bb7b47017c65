//! Correct programs with what they must give, computed in f64 without the simulator.

use axe_package::DType;
use axe_trn::facts::chip::Engine;
use axe_trn::program::{
    Alu, Axis, Builder, Expr, Function, Op, Program, Scalar, Space, Step, View,
};
use axe_trn::run::memory;

/// A program, its inputs, and what it must give.
pub struct Sample {
    pub program: Program,
    pub inputs: Vec<Vec<u8>>,
    pub expected: Vec<Vec<f64>>,
    /// The largest difference, relative to 1 or to the value.
    pub tolerance: f64,
}

/// Numbers between -2 and 2 without a pattern that a wrong index could repeat.
pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 22) as f32 - 2.0
        })
        .collect()
}

fn rows(values: &[f32], columns: usize) -> impl Iterator<Item = Vec<f64>> {
    values
        .chunks_exact(columns)
        .map(|row| row.iter().map(|value| f64::from(*value)).collect())
}

fn all(size: i64) -> (Expr, i64) {
    (0.into(), size)
}

fn tile(index: &Expr, size: i64) -> (Expr, i64) {
    (index.clone().times(size), size)
}

fn f32s(values: &[f32]) -> Vec<u8> {
    memory::encode(DType::F32, values)
}

const P: i64 = 128;

/// Rows of `[256, 512]` to their softmax: maxima, exp with sums, one over them.
pub fn softmax(chip: &str) -> Sample {
    let n = 512;
    let mut b = Builder::new("softmax", chip);
    let (x, y) = (
        b.input("x", &[2 * P, n], DType::F32),
        b.output("y", &[2 * P, n], DType::F32),
    );
    b.repeat("i", 0, 2, 1, |b, i| {
        let part =
            |name: &str, b: &mut Builder, n: i64| b.tile(name, Space::Sbuf, &[P, n], DType::F32, 2);
        let (t, e) = (part("t", b, n), part("e", b, n));
        let (m, s, r) = (part("m", b, 1), part("s", b, 1), part("r", b, 1));
        b.dma_copy(t.all(), x.part([tile(&i, P), all(n)]));
        b.reduce(m.all(), t.all(), Alu::Maximum, true);
        b.activation(
            e.all(),
            t.all(),
            Function::Exp,
            Some(m.all()),
            1.0,
            Some(s.all()),
        );
        b.op(Op::Reciprocal {
            dst: r.all(),
            data: s.all(),
        });
        let out = part("out", b, n);
        b.tensor_scalar(out.all(), e.all(), Alu::Multiply, r.all());
        b.dma_copy(y.part([tile(&i, P), all(n)]), out.all());
    });
    let values = numbers((2 * P * n) as usize, 3);
    let expected = rows(&values, n as usize)
        .flat_map(|row| {
            let most = row.iter().fold(f64::MIN, |a, b| a.max(*b));
            let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
            row.into_iter()
                .map(move |x| (x - most).exp() / sum)
                .collect::<Vec<_>>()
        })
        .collect();
    Sample {
        program: b.finish(),
        inputs: vec![f32s(&values)],
        expected: vec![expected],
        tolerance: 1e-5,
    }
}

/// Rows of `[128, 1024]` to mean 0 and variance 1, by bn_stats of halves and bn_aggr.
pub fn layernorm(chip: &str) -> Sample {
    let n = 1024;
    let mut b = Builder::new("layernorm", chip);
    let (x, y) = (
        b.input("x", &[P, n], DType::F32),
        b.output("y", &[P, n], DType::F32),
    );
    let part =
        |b: &mut Builder, name: &str, n: i64| b.tile(name, Space::Sbuf, &[P, n], DType::F32, 1);
    let (t, stats, mean) = (
        part(&mut b, "t", n),
        part(&mut b, "stats", 12),
        part(&mut b, "mean", 2),
    );
    let (eps, rstd, out) = (
        part(&mut b, "eps", 1),
        part(&mut b, "rstd", 1),
        part(&mut b, "out", n),
    );
    b.memset(eps.all(), 1e-5);
    b.dma_copy(t.all(), x.all());
    b.repeat("h", 0, 2, 1, |b, h| {
        b.op(Op::BnStats {
            dst: stats.part([all(P), tile(&h, 6)]),
            data: t.part([all(P), tile(&h, 512)]),
        });
    });
    b.op(Op::BnAggr {
        dst: mean.all(),
        data: stats.all(),
    });
    b.activation(
        rstd.all(),
        mean.part([all(P), (1.into(), 1)]),
        Function::Rsqrt,
        Some(eps.all()),
        1.0,
        None,
    );
    let step = |op, view| Step {
        op,
        operand: Scalar::Tile(view),
        reverse: false,
    };
    b.op(Op::TensorScalar {
        dst: out.all(),
        data: t.all(),
        first: step(Alu::Subtract, mean.part([all(P), (0.into(), 1)])),
        second: Some(step(Alu::Multiply, rstd.all())),
    });
    b.dma_copy(y.all(), out.all());
    let values = numbers((P * n) as usize, 5);
    let expected = rows(&values, n as usize)
        .flat_map(|row| {
            let mean = row.iter().sum::<f64>() / n as f64;
            let spread = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
            row.into_iter()
                .map(move |x| (x - mean) / (spread + 1e-5).sqrt())
                .collect::<Vec<_>>()
        })
        .collect();
    Sample {
        program: b.finish(),
        inputs: vec![f32s(&values)],
        expected: vec![expected],
        tolerance: 1e-4,
    }
}

/// One block of attention: scores of 128 queries and 512 keys of 64 dimensions, a causal mask, softmax, transposes by the
/// tensor engine, the product with the values, in bf16.
pub fn attention(chip: &str) -> Sample {
    let (d, keys, bf16) = (64, 512, DType::BF16);
    let mut b = Builder::new("attention", chip);
    let (q, k) = (b.input("q", &[d, P], bf16), b.input("k", &[d, keys], bf16));
    let (v, o) = (
        b.input("v", &[keys, d], bf16),
        b.output("o", &[P, d], DType::F32),
    );
    let sbuf = |b: &mut Builder, name: &str, shape: &[i64], dtype| {
        b.tile(name, Space::Sbuf, shape, dtype, 1)
    };
    let (qt, kt) = (
        sbuf(&mut b, "qt", &[d, P], bf16),
        sbuf(&mut b, "kt", &[d, keys], bf16),
    );
    let vt = sbuf(&mut b, "vt", &[P, keys / P, d], bf16);
    b.dma_copy(qt.all(), q.all());
    b.dma_copy(kt.all(), k.all());
    b.repeat("j", 0, keys / P, 1, |b, j| {
        b.dma_copy(
            vt.part([all(P), (j.clone(), 1), all(d)]),
            v.part([tile(&j, P), all(d)]),
        );
    });
    let scores = b.tile("scores", Space::Psum, &[P, keys], DType::F32, 1);
    b.matmul(scores.all(), qt.all(), kt.all());
    let (masked, probabilities) = (
        sbuf(&mut b, "masked", &[P, keys], DType::F32),
        sbuf(&mut b, "p", &[P, keys], bf16),
    );
    let (raw, m) = (
        sbuf(&mut b, "raw", &[P, keys], DType::F32),
        sbuf(&mut b, "m", &[P, 1], DType::F32),
    );
    let (s, r) = (
        sbuf(&mut b, "s", &[P, 1], DType::F32),
        sbuf(&mut b, "r", &[P, 1], DType::F32),
    );
    b.copy(raw.all(), scores.all());
    // Query p sees keys up to 3 p.
    b.op(Op::AffineSelect {
        dst: masked.all(),
        on_true: raw.all(),
        on_false: -1e30,
        pattern: vec![-1],
        offset: 0,
        channel_multiplier: 3,
        compare: Alu::GreaterEqual,
    });
    b.reduce(m.all(), masked.all(), Alu::Maximum, true);
    b.activation(
        probabilities.all(),
        masked.all(),
        Function::Exp,
        Some(m.all()),
        1.0,
        Some(s.all()),
    );
    b.op(Op::Reciprocal {
        dst: r.all(),
        data: s.all(),
    });
    // Products of trn1, and so its transposes, are f32.
    let turned_type = if chip == "trn1" { DType::F32 } else { bf16 };
    let context = b.tile("context", Space::Psum, &[P, d], DType::F32, 1);
    b.repeat("j", 0, keys / P, 1, |b, j| {
        let turned = b.tile("turned", Space::Psum, &[P, P], turned_type, 2);
        let pt = b.tile("pt", Space::Sbuf, &[P, P], bf16, 2);
        b.op(Op::NcTranspose {
            dst: turned.all(),
            data: probabilities.part([all(P), tile(&j, P)]),
        });
        b.copy(pt.all(), turned.all());
        b.matmul(context.all(), pt.all(), vt.part([all(P), (j, 1), all(d)]));
    });
    let out = sbuf(&mut b, "out", &[P, d], DType::F32);
    b.tensor_scalar(out.all(), context.all(), Alu::Multiply, r.all());
    b.dma_copy(o.all(), out.all());
    let inputs: Vec<Vec<u8>> = [(d * P, 1u64), (d * keys, 2), (keys * d, 4)]
        .map(|(count, seed)| memory::encode(bf16, &numbers(count as usize, seed)))
        .to_vec();
    let [q, k, v]: [Vec<f32>; 3] = [0, 1, 2].map(|index| memory::decode(bf16, &inputs[index]));
    let (d, keys) = (d as usize, keys as usize);
    let mut expected = Vec::new();
    for p in 0..P as usize {
        let scores: Vec<f64> = (0..keys.min(3 * p + 1))
            .map(|i| {
                (0..d)
                    .map(|x| f64::from(q[x * P as usize + p]) * f64::from(k[x * keys + i]))
                    .sum()
            })
            .collect();
        let most = scores.iter().fold(f64::MIN, |a, b| a.max(*b));
        let sum: f64 = scores.iter().map(|s| (s - most).exp()).sum();
        expected.extend((0..d).map(|x| {
            let weighted = scores
                .iter()
                .enumerate()
                .map(|(i, s)| (s - most).exp() * f64::from(v[i * d + x]));
            weighted.sum::<f64>() / sum
        }));
    }
    Sample {
        program: b.finish(),
        inputs,
        expected: vec![expected],
        tolerance: 2e-2,
    }
}

/// The eight largest of 64, where they are, and the rest without them.
pub fn top8(chip: &str) -> Sample {
    let n = 64;
    let mut b = Builder::new("top8", chip);
    let x = b.input("x", &[32, n], DType::F32);
    let (values, places) = (
        b.output("values", &[32, 8], DType::F32),
        b.output("places", &[32, 8], DType::U32),
    );
    let rest = b.output("rest", &[32, n], DType::F32);
    let t = b.tile("t", Space::Sbuf, &[32, n], DType::F32, 1);
    let (v, i) = (
        b.tile("v", Space::Sbuf, &[32, 8], DType::F32, 1),
        b.tile("i", Space::Sbuf, &[32, 8], DType::U32, 1),
    );
    let left = b.tile("left", Space::Sbuf, &[32, n], DType::F32, 1);
    b.dma_copy(t.all(), x.all());
    b.op(Op::Max8 {
        dst: v.all(),
        src: t.all(),
    });
    b.op(Op::NcFindIndex8 {
        dst: i.all(),
        data: t.all(),
        vals: v.all(),
    });
    b.op(Op::NcMatchReplace8 {
        dst: left.all(),
        data: t.all(),
        vals: v.all(),
        imm: -9.0,
    });
    b.dma_copy(values.all(), v.all());
    b.dma_copy(places.all(), i.all());
    b.dma_copy(rest.all(), left.all());
    // Few different values, so that some come twice.
    let numbers: Vec<f32> = numbers((32 * n) as usize, 8)
        .iter()
        .map(|x| (x * 4.0).round())
        .collect();
    let mut expected = [Vec::new(), Vec::new(), Vec::new()];
    for row in rows(&numbers, n as usize) {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        order.truncate(8);
        expected[0].extend(order.iter().map(|at| row[*at]));
        expected[1].extend(order.iter().map(|at| *at as f64));
        expected[2]
            .extend((0..row.len()).map(|at| if order.contains(&at) { -9.0 } else { row[at] }));
    }
    Sample {
        program: b.finish(),
        inputs: vec![f32s(&numbers)],
        expected: expected.to_vec(),
        tolerance: 0.0,
    }
}

/// Integers: iota, bitwise functions, shifts, a shuffle, a predicated copy, sums on gpsimd.
pub fn integers(chip: &str) -> Sample {
    let n = 48;
    let mut b = Builder::new("integers", chip);
    let x = b.input("x", &[32, n], DType::I32);
    let y = b.output("y", &[32, n], DType::I32);
    let part = |b: &mut Builder, name: &str| b.tile(name, Space::Sbuf, &[32, n], DType::I32, 1);
    let (t, index, sum, bits) = (
        part(&mut b, "t"),
        part(&mut b, "index"),
        part(&mut b, "sum"),
        part(&mut b, "bits"),
    );
    let (turned, out) = (part(&mut b, "turned"), part(&mut b, "out"));
    let mask = b.tile("mask", Space::Sbuf, &[32, n], DType::U32, 1);
    b.dma_copy(t.all(), x.all());
    // As 4 x 12 columns: 100 p + 12 i + j.
    let split = View {
        axes: vec![
            Axis {
                of: Some(0),
                size: 32,
                step: 1,
            },
            Axis {
                of: Some(1),
                size: 4,
                step: 12,
            },
            Axis {
                of: Some(1),
                size: 12,
                step: 1,
            },
        ],
        ..index.all()
    };
    b.op(Op::Iota {
        dst: split,
        pattern: vec![12, 1],
        offset: 0,
        channel_multiplier: 100,
    });
    b.tensor_tensor(sum.all(), t.all(), index.all(), Alu::Add);
    let number = |op, value: f64| Step {
        op,
        operand: value.into(),
        reverse: false,
    };
    b.op(Op::TensorScalar {
        dst: bits.all(),
        data: sum.all(),
        first: number(Alu::BitwiseAnd, 255.0),
        second: Some(number(Alu::LeftShift, 3.0)),
    });
    b.op(Op::NcStreamShuffle {
        dst: turned.all(),
        src: bits.all(),
        mask: (0..32).map(|i| 31 - i).collect(),
    });
    b.copy(out.all(), turned.all());
    b.op(Op::Iota {
        dst: mask.all(),
        pattern: vec![0],
        offset: 0,
        channel_multiplier: 1,
    });
    b.op(Op::TensorCopyPredicated {
        dst: out.all(),
        src: t.all(),
        predicate: mask.all(),
        reverse: true,
    });
    b.dma_copy(y.all(), out.all());
    let values: Vec<f32> = (0..32 * n).map(|i| (i * 37 % 1000 - 500) as f32).collect();
    let at = |p: i64, i: i64| i64::from(values[(p * n + i) as usize] as i32);
    let expected = (0..32 * n)
        .map(|flat| {
            let (p, i) = (flat / n, flat % n);
            match p {
                0 => at(0, i) as f64,
                _ => (((at(31 - p, i) + 100 * (31 - p) + i) & 255) << 3) as f64,
            }
        })
        .collect();
    Sample {
        program: b.finish(),
        inputs: vec![memory::encode(DType::I32, &values)],
        expected: vec![expected],
        tolerance: 0.0,
    }
}

/// What the others leave: scans, fused pairs, reductions with a first function, over partitions and of several
/// dimensions, transposes of the vector engine, views that exchange dimensions and repeat elements.
pub fn rest(chip: &str) -> Sample {
    let n = 32;
    let mut b = Builder::new("rest", chip);
    let x = b.input("x", &[32, n], DType::F32);
    let outputs: Vec<_> = ["scan", "fused", "pair", "turned", "exchanged"]
        .iter()
        .map(|name| b.output(name, &[32, n], DType::F32))
        .collect();
    let sums = b.output("sums", &[32, 2], DType::F32);
    let across = b.output("across", &[1, n], DType::F32);
    let part =
        |b: &mut Builder, name: &str, n: i64| b.tile(name, Space::Sbuf, &[32, n], DType::F32, 1);
    let (t, s) = (part(&mut b, "t", n), part(&mut b, "s", 2));
    b.dma_copy(t.all(), x.all());
    let column = |index: i64| s.part([all(32), (index.into(), 1)]);
    let tiles: Vec<_> = ["a", "c", "e", "g", "h"]
        .iter()
        .map(|name| part(&mut b, name, n))
        .collect();
    b.op(Op::TensorTensorScan {
        dst: tiles[0].all(),
        data0: t.all(),
        data1: t.all(),
        initial: Scalar::Number(0.5),
        op0: Alu::Multiply,
        op1: Alu::Subtract,
    });
    let two_by_sixteen = View {
        axes: vec![
            Axis {
                of: Some(0),
                size: 32,
                step: 1,
            },
            Axis {
                of: Some(1),
                size: 2,
                step: 16,
            },
            Axis {
                of: Some(1),
                size: 16,
                step: 1,
            },
        ],
        ..t.all()
    };
    b.op(Op::TensorReduce {
        dst: column(0),
        data: two_by_sixteen.clone(),
        op: Alu::Add,
        axes: 2,
        negate: true,
    });
    b.op(Op::TensorScalarReduce {
        dst: tiles[1].all(),
        data: t.all(),
        first: Step {
            op: Alu::Subtract,
            operand: Scalar::Number(1.0),
            reverse: true,
        },
        reduce_op: Alu::Minimum,
        reduce: column(1),
    });
    b.op(Op::ScalarTensorTensor {
        dst: tiles[2].all(),
        data: t.all(),
        first: Step {
            op: Alu::Multiply,
            operand: column(1).into(),
            reverse: false,
        },
        op1: Alu::Maximum,
        operand1: tiles[1].all(),
        reverse1: false,
    });
    b.op_on(
        Engine::Vector,
        Op::NcTranspose {
            dst: tiles[3].all(),
            data: t.all(),
        },
    );
    // Column 16 a + c goes to column 2 c + a.
    let exchanged = View {
        axes: vec![
            Axis {
                of: Some(0),
                size: 32,
                step: 1,
            },
            Axis {
                of: Some(1),
                size: 2,
                step: 1,
            },
            Axis {
                of: Some(1),
                size: 16,
                step: 2,
            },
        ],
        ..tiles[4].all()
    };
    b.copy(exchanged, two_by_sixteen);
    let total = b.tile("total", Space::Sbuf, &[1, n], DType::F32, 1);
    b.op(Op::TensorPartitionReduce {
        dst: total.all(),
        data: t.all(),
        op: Alu::Maximum,
    });
    for (output, tile) in outputs.iter().zip(&tiles) {
        b.dma_copy(output.all(), tile.all());
    }
    b.dma_copy(sums.all(), s.all());
    b.dma_copy(across.all(), total.all());
    let values = numbers(32 * n as usize, 9);
    let table: Vec<Vec<f64>> = rows(&values, n as usize).collect();
    Sample {
        program: b.finish(),
        inputs: vec![f32s(&values)],
        expected: rest_expected(&table),
        tolerance: 1e-4,
    }
}

fn rest_expected(table: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = table[0].len();
    let mut expected = vec![Vec::new(); 7];
    for (p, row) in table.iter().enumerate() {
        let mut state = 0.5;
        let least = row.iter().map(|x| 1.0 - x).fold(f64::MAX, f64::min);
        for (i, x) in row.iter().enumerate() {
            state = state * x - x;
            expected[0].push(state);
            expected[1].push(1.0 - x);
            expected[2].push((x * least).max(1.0 - x));
            expected[3].push(table[i][p]);
            expected[4].push(row[16 * (i % 2) + i / 2]);
        }
        expected[5].extend([-row.iter().sum::<f64>(), least]);
    }
    expected[6] = (0..n)
        .map(|i| table.iter().map(|row| row[i]).fold(f64::MIN, f64::max))
        .collect();
    expected
}

/// A product whose sums go on over two loops, in f32, with explicit accumulation.
pub fn product(chip: &str) -> Sample {
    let (m, k, n) = (64, 256, 96);
    let mut b = Builder::new("product", chip);
    let (a, w) = (
        b.input("a", &[k, m], DType::F32),
        b.input("w", &[k, n], DType::F32),
    );
    let c = b.output("c", &[m, n], DType::F32);
    let sums = b.tile("sums", Space::Psum, &[m, n], DType::F32, 1);
    b.repeat("k", 0, k / P, 1, |b, k| {
        let (at, wt) = (
            b.tile("at", Space::Sbuf, &[P, m], DType::F32, 2),
            b.tile("wt", Space::Sbuf, &[P, n], DType::F32, 2),
        );
        b.dma_copy(at.all(), a.part([tile(&k, P), all(m)]));
        b.dma_copy(wt.all(), w.part([tile(&k, P), all(n)]));
        b.matmul(sums.all(), at.all(), wt.all());
    });
    let out = b.tile("out", Space::Sbuf, &[m, n], DType::F32, 1);
    b.activation(out.all(), sums.all(), Function::Copy, None, 0.5, None);
    b.dma_copy(c.all(), out.all());
    let (x, y) = (numbers((k * m) as usize, 11), numbers((k * n) as usize, 12));
    let expected = (0..m * n)
        .map(|flat| {
            let (i, j) = (flat / n, flat % n);
            (0..k)
                .map(|x_| f64::from(x[(x_ * m + i) as usize]) * f64::from(y[(x_ * n + j) as usize]))
                .sum::<f64>()
                * 0.5
        })
        .collect();
    Sample {
        program: b.finish(),
        inputs: vec![f32s(&x), f32s(&y)],
        expected: vec![expected],
        tolerance: 1e-4,
    }
}

/// Every sample on a chip.
pub fn samples(chip: &str) -> Vec<Sample> {
    vec![
        softmax(chip),
        layernorm(chip),
        attention(chip),
        top8(chip),
        integers(chip),
        rest(chip),
        product(chip),
    ]
}

/// The largest difference between outputs and what is expected, relative to 1 or to the value.
pub fn difference(sample: &Sample, outputs: &[Vec<u8>]) -> f64 {
    let buffers: Vec<_> = sample
        .program
        .with_role(axe_trn::program::Role::Output)
        .collect();
    let mut worst = 0f64;
    for (((_, buffer), bytes), expected) in buffers.iter().zip(outputs).zip(&sample.expected) {
        let got = memory::decode(buffer.dtype, bytes);
        assert_eq!(got.len(), expected.len(), "{}", buffer.name);
        for (got, expected) in got.iter().zip(expected) {
            let difference = (f64::from(*got) - expected).abs() / expected.abs().max(1.0);
            worst = worst.max(if difference.is_nan() {
                f64::INFINITY
            } else {
                difference
            });
        }
    }
    worst
}
