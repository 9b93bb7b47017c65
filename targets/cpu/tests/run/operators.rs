//! Operators on tensors, one function each, against plain Rust on the same numbers.

use axe_cpu::run;
use axe_package::{DType, Random, Tensor};

fn tensor(dtype: DType, shape: &[u64], values: &[f64]) -> Tensor {
    Tensor::from_f64(dtype, shape.to_vec(), values.iter().copied()).unwrap()
}

fn random(dtype: DType, shape: &[u64], seed: u64) -> Tensor {
    Tensor::random(dtype, shape.to_vec(), Random::for_dtype(dtype, seed)).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.iter_f64().collect()
}

/// The name of an element type in IR.
fn ir(dtype: DType) -> &'static str {
    match dtype {
        DType::F8E4M3 => "f8E4M3FN",
        DType::F8E5M2 => "f8E5M2",
        DType::I8 => "i8",
        DType::I32 => "i32",
        other => other.name(),
    }
}

/// `axe.cast` of a tensor.
fn cast(source: &Tensor, to: DType) -> Tensor {
    let n = source.len();
    let (from, into) = (ir(source.dtype()), ir(to));
    let text = format!(
        "func.func @f(%x: tensor<{n}x{from}>) -> tensor<{n}x{into}> {{
           %y = axe.cast %x : tensor<{n}x{from}> -> tensor<{n}x{into}>
           return %y : tensor<{n}x{into}>
         }}"
    );
    run(&text, "f", std::slice::from_ref(source))
        .unwrap()
        .remove(0)
}

#[test]
fn floats_round_to_nearest_even() {
    // Ties of each format, numbers around the smallest normal and subnormal ones, and zeros.
    let mut numbers: Vec<f64> = [
        1.0, 1.0625, 1.1875, 1.125, 2049.0, 2051.0, 0.3, 65504.0, 300.0, 17.0, 19.0,
    ]
    .into_iter()
    .chain((-26..16).map(|e| 1.3 * 2f64.powi(e)))
    .chain((-20..6).map(|e| 1.5 * 2f64.powi(e)))
    .collect();
    numbers.extend(numbers.clone().iter().map(|x| -x));
    numbers.extend([0.0, -0.0]);
    let n = numbers.len() as u64;
    let source = tensor(DType::F32, &[n], &numbers);
    for to in [
        DType::F16,
        DType::BF16,
        DType::F64,
        DType::F8E4M3,
        DType::F8E5M2,
    ] {
        assert_eq!(
            cast(&source, to),
            tensor(to, &[n], &values(&source)),
            "f32 to {to}"
        );
    }
    let source = tensor(DType::F64, &[n], &numbers);
    for to in [DType::F16, DType::F32] {
        assert_eq!(cast(&source, to), tensor(to, &[n], &numbers), "f64 to {to}");
    }
}

#[test]
fn eight_bit_floats_widen_exactly() {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let all = Tensor::new(dtype, vec![256], (0..=255).collect()).unwrap();
        for to in [DType::F16, DType::F32] {
            let (want, got) = (values(&all), values(&cast(&all, to)));
            let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
            let wrong: Vec<_> = (0..256)
                .filter(|at| !same((&want[*at], &got[*at])))
                .collect();
            assert!(wrong.is_empty(), "{dtype} to {to}: {wrong:?}");
        }
    }
    let edge = tensor(DType::F32, &[4], &[f64::INFINITY, -1e9, 460.0, f64::NAN]);
    assert_eq!(
        &values(&cast(&edge, DType::F8E4M3))[..3],
        [448.0, -448.0, 448.0]
    );
    assert!(values(&cast(&edge, DType::F8E5M2))[3].is_nan());
}

#[test]
fn integers_saturate_and_are_signed() {
    let source = tensor(
        DType::F32,
        &[7],
        &[1.9, -1.9, 127.5, 1e9, -1e9, f64::NAN, f64::NEG_INFINITY],
    );
    assert_eq!(
        values(&cast(&source, DType::I8)),
        [1.0, -1.0, 127.0, 127.0, -128.0, 0.0, -128.0]
    );
    let halves = tensor(DType::F16, &[3], &[-3.7, 60000.0, 5.5]);
    assert_eq!(values(&cast(&halves, DType::I8)), [-3.0, 127.0, 5.0]);
    let bytes = tensor(DType::I8, &[3], &[-128.0, 127.0, -1.0]);
    assert_eq!(values(&cast(&bytes, DType::I32)), [-128.0, 127.0, -1.0]);
    // 2^24 + 1 and a tie of f16 that a stop at f32 would miss.
    let words = tensor(DType::I32, &[2], &[2049.0, 2051.0]);
    assert_eq!(values(&cast(&words, DType::F16)), [2048.0, 2052.0]);
    assert_eq!(values(&cast(&words, DType::BF16)), [2048.0, 2048.0]);
}

#[test]
fn products_of_every_transposition_and_type() {
    let cases = [
        (DType::F16, DType::F32),
        (DType::BF16, DType::F32),
        (DType::F32, DType::F32),
        (DType::F8E4M3, DType::F32),
        (DType::F16, DType::F16),
        (DType::I8, DType::I32),
    ];
    let (n, m, k, l) = (2_usize, 5, 7, 3);
    for (number, (element, sum)) in cases.into_iter().enumerate() {
        let (ta, tb) = (number & 1 != 0, number & 2 != 0);
        let (sa, sb) = (
            if ta { [k, m] } else { [m, k] },
            if tb { [l, k] } else { [k, l] },
        );
        let shape = |[rows, columns]: [usize; 2]| [n as u64, rows as u64, columns as u64];
        let a = random(element, &shape(sa), 1);
        let b = random(element, &shape(sb), 2);
        let c = random(sum, &shape([m, l]), 3);
        let typed = |[rows, columns]: [usize; 2], dtype| {
            format!("tensor<{n}x{rows}x{columns}x{}>", ir(dtype))
        };
        let (at, bt, ct) = (typed(sa, element), typed(sb, element), typed([m, l], sum));
        let mut flags = Vec::new();
        flags.extend(ta.then_some("trans_a"));
        flags.extend(tb.then_some("trans_b"));
        let flags = flags.join(", ");
        let text = format!(
            "func.func @f(%a: {at}, %b: {bt}, %c: {ct}) -> {ct} {{
               %d = axe.gemm %a, %b acc %c : {ct} {{{flags}}} : {at}, {bt} -> {ct}
               return %d : {ct}
             }}"
        );
        let got = run(&text, "f", &[a.clone(), b.clone(), c.clone()])
            .unwrap()
            .remove(0);
        let (av, bv, cv) = (values(&a), values(&b), values(&c));
        let mut want = Vec::new();
        for batch in 0..n {
            for row in 0..m {
                for column in 0..l {
                    let at = |i: usize| batch * m * k + if ta { i * m + row } else { row * k + i };
                    let bt =
                        |i: usize| batch * k * l + if tb { column * k + i } else { i * l + column };
                    let start = cv[(batch * m + row) * l + column];
                    want.push((0..k).fold(start, |total, i| total + av[at(i)] * bv[bt(i)]));
                }
            }
        }
        assert_eq!(got, tensor(sum, c.shape(), &want), "{element} to {sum}");
    }
}

/// Each element against the definition, in f64.
#[test]
fn scaled_products_of_every_block() {
    let (m, n, k) = (5_usize, 37_usize, 150_usize);
    for (block_n, block_k, transposed, of_a) in [
        (128, 128, false, DType::F8E4M3),
        (16, 32, true, DType::F8E5M2),
        (32, 96, false, DType::F8E4M3),
    ] {
        let (blocks, rows) = (k.div_ceil(block_k), n.div_ceil(block_n));
        let shape = |[rows, columns]: [usize; 2]| [rows as u64, columns as u64];
        let of_scales = if transposed { [blocks, m] } else { [m, blocks] };
        let a = random(of_a, &shape([m, k]), 1);
        let b = random(DType::F8E4M3, &shape([n, k]), 2);
        let sa = random(DType::F32, &shape(of_scales), 3);
        let sb = random(DType::F32, &shape([rows, blocks]), 4);
        let typed =
            |[rows, columns]: [usize; 2], dtype| format!("tensor<{rows}x{columns}x{}>", ir(dtype));
        let types = [
            typed([m, k], of_a),
            typed([n, k], DType::F8E4M3),
            typed(of_scales, DType::F32),
            typed([rows, blocks], DType::F32),
        ];
        let [at, bt, sat, sbt] = &types;
        let ct = typed([m, n], DType::F32);
        let flag = if transposed { "trans_scale_a, " } else { "" };
        let text = format!(
            "func.func @f(%a: {at}, %b: {bt}, %sa: {sat}, %sb: {sbt}) -> {ct} {{
               %d = axe.scaled_gemm %a, %b, %sa, %sb {{{flag}block_n = {block_n} : i64, block_k = {block_k} : i64}} : {at}, {bt}, {sat}, {sbt} -> {ct}
               return %d : {ct}
             }}"
        );
        let inputs = [a.clone(), b.clone(), sa.clone(), sb.clone()];
        let got = run(&text, "f", &inputs).unwrap().remove(0);
        let (av, bv, sav, sbv) = (values(&a), values(&b), values(&sa), values(&sb));
        let mut want = Vec::new();
        for row in 0..m {
            for column in 0..n {
                let mut sum = 0.0;
                for block in 0..blocks {
                    let ks = block * block_k..((block + 1) * block_k).min(k);
                    let part: f64 = ks.map(|i| av[row * k + i] * bv[column * k + i]).sum();
                    let of_row = if transposed {
                        block * m + row
                    } else {
                        row * blocks + block
                    };
                    sum += part * sav[of_row] * sbv[column / block_n * blocks + block];
                }
                want.push(sum);
            }
        }
        for (at, (got, want)) in values(&got).iter().zip(&want).enumerate() {
            assert!(
                (got - want).abs() <= 1e-6 * (1.0 + want.abs()),
                "element {at}: {got} {want}"
            );
        }
    }
}

/// Groups of rows, with offsets of every kind: ascending, of no rows, descending, and outside of the rows.
#[test]
fn grouped_products() {
    let (m, n, k) = (9_usize, 3_usize, 4_usize);
    let all: [&[i64]; 5] = [
        &[0, 4, 4, 9],
        &[2, 3, 7],
        &[0, 9],
        &[-3, 6, 2, 12],
        &[9, 1, 0],
    ];
    for (element, offsets, transposed) in all
        .iter()
        .flat_map(|offsets| [(DType::F16, offsets, false), (DType::I8, offsets, true)])
    {
        let groups = offsets.len() - 1;
        let sum = if element == DType::F16 {
            DType::F16
        } else {
            DType::I32
        };
        let of_b = if transposed { [n, k] } else { [k, n] };
        let shape_b = [groups as u64, of_b[0] as u64, of_b[1] as u64];
        let a = random(element, &[m as u64, k as u64], 1);
        let b = random(element, &shape_b, 2);
        let numbers: Vec<_> = offsets.iter().map(|offset| *offset as f64).collect();
        let o = tensor(DType::I32, &[offsets.len() as u64], &numbers);
        let (from, to) = (ir(element), ir(sum));
        let types = [
            format!("tensor<{m}x{k}x{from}>"),
            format!("tensor<{groups}x{}x{}x{from}>", of_b[0], of_b[1]),
            format!("tensor<{}xi32>", groups + 1),
            format!("tensor<{m}x{n}x{to}>"),
        ];
        let [at, bt, ot, ct] = &types;
        let flag = if transposed { " {trans_b}" } else { "" };
        let text = format!(
            "func.func @f(%a: {at}, %b: {bt}, %o: {ot}) -> {ct} {{
               %d = axe.grouped_gemm %a, %b, %o{flag} : {at}, {bt}, {ot} -> {ct}
               return %d : {ct}
             }}"
        );
        let got = run(&text, "f", &[a.clone(), b.clone(), o])
            .unwrap()
            .remove(0);
        let (av, bv) = (values(&a), values(&b));
        let mut want = vec![0.0; m * n];
        let mut begin = offsets[0].clamp(0, m as i64);
        for (group, end) in offsets[1..].iter().enumerate() {
            let end = (*end).clamp(begin, m as i64);
            for row in begin as usize..end as usize {
                for column in 0..n {
                    let at = |i: usize| {
                        let [row, column] = if transposed { [column, i] } else { [i, column] };
                        (group * of_b[0] + row) * of_b[1] + column
                    };
                    want[row * n + column] = (0..k).map(|i| av[row * k + i] * bv[at(i)]).sum();
                }
            }
            begin = end;
        }
        assert_eq!(
            got,
            tensor(sum, &[m as u64, n as u64], &want),
            "{offsets:?} {element}"
        );
    }
}

/// Equal elements in the order of their indices; NaN is larger than all numbers; -0.0 and 0.0 are equal.
#[test]
fn the_largest_and_the_smallest() {
    let nan = f64::NAN;
    let row = [3.0, nan, -0.0, 7.0, 0.0, -nan, f64::NEG_INFINITY, 7.0];
    for (element, flag, want, columns) in [
        (
            "f64",
            "",
            [nan, nan, 7.0, 7.0, 3.0, -0.0],
            [1, 5, 3, 7, 0, 2],
        ),
        (
            "f16",
            "",
            [nan, nan, 7.0, 7.0, 3.0, -0.0],
            [1, 5, 3, 7, 0, 2],
        ),
        (
            "f32",
            " {smallest}",
            [f64::NEG_INFINITY, -0.0, 0.0, 3.0, 7.0, 7.0],
            [6, 2, 4, 0, 3, 7],
        ),
    ] {
        let dtype = match element {
            "f64" => DType::F64,
            "f16" => DType::F16,
            _ => DType::F32,
        };
        let text = format!(
            "func.func @f(%x: tensor<?x1x8x{element}>) -> (tensor<?x1x6x{element}>, tensor<?x1x6xi64>) {{
               %v, %i = axe.top_k %x{flag} : tensor<?x1x8x{element}> -> tensor<?x1x6x{element}>, tensor<?x1x6xi64>
               return %v, %i : tensor<?x1x6x{element}>, tensor<?x1x6xi64>
             }}"
        );
        let x = tensor(dtype, &[2, 1, 8], &[row, row].concat());
        let got = run(&text, "f", std::slice::from_ref(&x)).unwrap();
        let bits = |values: Vec<f64>| -> Vec<_> {
            let same = |value: f64| if value.is_nan() { nan } else { value };
            values
                .into_iter()
                .map(|value| same(value).to_bits())
                .collect()
        };
        assert_eq!(
            bits(values(&got[0])),
            bits([want, want].concat()),
            "{element}"
        );
        let columns = [columns, columns].concat().into_iter().map(f64::from);
        assert_eq!(values(&got[1]), columns.collect::<Vec<_>>(), "{element}");
    }
}

#[test]
fn reductions_of_every_combiner() {
    let x = tensor(DType::F32, &[2, 3], &[1.5, -2.0, 4.0, 0.5, 8.0, -0.25]);
    for (combiner, want) in [
        ("add", [3.5, 8.25]),
        ("mul", [-12.0, -1.0]),
        ("max", [4.0, 8.0]),
        ("min", [-2.0, -0.25]),
    ] {
        let text = format!(
            "func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {{
               %y = axe.reduce <{combiner}> %x dims [1] : tensor<2x3xf32> -> tensor<2xf32>
               return %y : tensor<2xf32>
             }}"
        );
        let got = run(&text, "f", std::slice::from_ref(&x)).unwrap();
        assert_eq!(values(&got[0]), want, "{combiner}");
    }
    let bits = tensor(DType::I32, &[2, 2], &[12.0, 10.0, 12.0, 3.0]);
    for (combiner, want) in [("and", 0.0), ("or", 15.0), ("max", 12.0), ("min", 3.0)] {
        let text = format!(
            "func.func @f(%x: tensor<2x2xi32>) -> tensor<i32> {{
               %y = axe.reduce <{combiner}> %x dims [0, 1] : tensor<2x2xi32> -> tensor<i32>
               return %y : tensor<i32>
             }}"
        );
        let got = run(&text, "f", std::slice::from_ref(&bits)).unwrap();
        assert_eq!(
            (got[0].shape(), values(&got[0])),
            (&[][..], vec![want]),
            "{combiner}"
        );
    }
}

#[test]
fn a_maximum_of_a_nan_is_one() {
    let text = "func.func @f(%x: tensor<?xf16>) -> tensor<f16> {
        %y = axe.reduce <max> %x dims [0] : tensor<?xf16> -> tensor<f16>
        return %y : tensor<f16>
    }";
    let some = run(
        text,
        "f",
        &[tensor(DType::F16, &[3], &[1.0, f64::NAN, 2.0])],
    )
    .unwrap();
    assert!(values(&some[0])[0].is_nan());
    let none = run(text, "f", &[tensor(DType::F16, &[0], &[])]).unwrap();
    assert_eq!(values(&none[0]), [f64::NEG_INFINITY]);
}

#[test]
fn shapes_masks_and_several_results() {
    let text = "func.func @f(%x: tensor<?x3xf32>, %n: index, %v: f32)
            -> (tensor<2x?x3xf32>, f32, tensor<3x?xf32>, tensor<?x3xf32>, i8) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %b8 = arith.constant -7 : i8
        %a = axe.broadcast %x dims [0] : tensor<?x3xf32> -> tensor<2x?x3xf32>
        %b = axe.transpose %x [1, 0] : tensor<?x3xf32> -> tensor<3x?xf32>
        %c = axe.mask %x at (%c0, %c1) in (%n, %c2) else %v : f32, tensor<?x3xf32> -> tensor<?x3xf32>
        return %a, %v, %b, %c, %b8 : tensor<2x?x3xf32>, f32, tensor<3x?xf32>, tensor<?x3xf32>, i8
    }";
    let x = tensor(DType::F32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let scalars = [
        tensor(DType::I64, &[], &[1.0]),
        tensor(DType::F32, &[], &[-9.0]),
    ];
    let got = run(
        text,
        "f",
        &[x.clone(), scalars[0].clone(), scalars[1].clone()],
    )
    .unwrap();
    assert_eq!(got[0].shape(), [2, 2, 3]);
    assert_eq!(values(&got[0])[6..], values(&x));
    assert_eq!(got[1], scalars[1]);
    assert_eq!(values(&got[2]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(values(&got[3]), [1.0, -9.0, -9.0, -9.0, -9.0, -9.0]);
    assert_eq!(got[4], tensor(DType::I8, &[], &[-7.0]));
}

#[test]
fn an_argument_and_a_constant_can_be_results() {
    let text = "func.func @f(%x: tensor<3xi1>) -> (tensor<3xi1>, tensor<3xi1>, tensor<2xbf16>) {
        %c = arith.constant dense<[1.5, -2.0]> : tensor<2xbf16>
        return %x, %x, %c : tensor<3xi1>, tensor<3xi1>, tensor<2xbf16>
    }";
    let x = tensor(DType::Bool, &[3], &[1.0, 0.0, 1.0]);
    let got = run(text, "f", std::slice::from_ref(&x)).unwrap();
    assert_eq!(got, [x.clone(), x, tensor(DType::BF16, &[2], &[1.5, -2.0])]);
}

#[test]
fn one_scalar_result() {
    let text = "func.func @f(%x: f64) -> f64 {
        %y = arith.addf %x, %x : f64
        return %y : f64
    }";
    let got = run(text, "f", &[tensor(DType::F64, &[], &[1.25])]).unwrap();
    assert_eq!(got, [tensor(DType::F64, &[], &[2.5])]);
}

#[test]
fn linalg_without_a_form_in_axe_runs_as_it_is() {
    let text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
        %e = tensor.empty() : tensor<4xf32>
        %y = linalg.generic {
            indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}
            ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%u: f32, %o: f32):
            %i = linalg.index 0 : index
            %j = arith.index_cast %i : index to i32
            %k = arith.sitofp %j : i32 to f32
            %w = arith.mulf %u, %k : f32
            linalg.yield %w : f32
        } -> tensor<4xf32>
        return %y : tensor<4xf32>
    }";
    let x = tensor(DType::F32, &[4], &[5.0, 6.0, 7.0, 8.0]);
    let got = run(text, "f", &[x]).unwrap();
    assert_eq!(values(&got[0]), [0.0, 6.0, 14.0, 24.0]);
}

#[test]
fn strided_results_are_copied() {
    let text = "func.func @f(%x: tensor<4x6xf16>, %i: index) -> (tensor<2x3xf16>, tensor<4x6xf16>) {
        %a = tensor.extract_slice %x[%i, 1] [2, 3] [1, 2] : tensor<4x6xf16> to tensor<2x3xf16>
        %b = tensor.insert_slice %a into %x[0, 0] [2, 3] [2, 1] : tensor<2x3xf16> into tensor<4x6xf16>
        return %a, %b : tensor<2x3xf16>, tensor<4x6xf16>
    }";
    let numbers: Vec<f64> = (0..24).map(f64::from).collect();
    let x = tensor(DType::F16, &[4, 6], &numbers);
    let got = run(text, "f", &[x.clone(), tensor(DType::I64, &[], &[2.0])]).unwrap();
    assert_eq!(values(&got[0]), [13.0, 15.0, 17.0, 19.0, 21.0, 23.0]);
    let mut want = numbers;
    want[..3].copy_from_slice(&[13.0, 15.0, 17.0]);
    want[12..15].copy_from_slice(&[19.0, 21.0, 23.0]);
    assert_eq!(values(&got[1]), want);
}

#[test]
fn half_precision_rounds_after_each_operation() {
    let text =
        "func.func @f(%x: tensor<2xf16>, %y: tensor<2xbf16>) -> (tensor<2xf16>, tensor<2xbf16>) {
        %a = axe.map ins(%x : tensor<2xf16>) -> tensor<2xf16> {
        ^bb0(%u: f16):
            %s = arith.addf %u, %u : f16
            %d = arith.subf %s, %u : f16
            axe.yield %d : f16
        }
        %b = axe.map ins(%y : tensor<2xbf16>) -> tensor<2xbf16> {
        ^bb0(%u: bf16):
            %c = arith.constant 256.0 : bf16
            %s = arith.addf %u, %c : bf16
            %d = arith.subf %s, %c : bf16
            %r = math.sqrt %d : bf16
            axe.yield %r : bf16
        }
        return %a, %b : tensor<2xf16>, tensor<2xbf16>
    }";
    let x = tensor(DType::F16, &[2], &[40000.0, 1.0]);
    let y = tensor(DType::BF16, &[2], &[1.0, 2.0]);
    let got = run(text, "f", &[x, y]).unwrap();
    assert_eq!(values(&got[0]), [f64::INFINITY, 1.0]);
    assert_eq!(got[1], tensor(DType::BF16, &[2], &[0.0, 2f64.sqrt()]));
}
