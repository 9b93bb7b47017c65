//! Kernels planned for a GPU against the operators that they are planned from, both run on the host.

use axe_context::transform;
use axe_cpu::run;
use axe_package::{DType, Random, Tensor};

/// Runs `@f` of a module as it is and as planned kernels, on random inputs, and compares.
fn check(body: &str, inputs: &[(DType, &[u64])], tolerance: f64) {
    let inputs: Vec<_> = (1..)
        .zip(inputs)
        .map(|(seed, (dtype, shape))| {
            Tensor::random(*dtype, shape.to_vec(), Random::for_dtype(*dtype, seed)).unwrap()
        })
        .collect();
    let kernels = transform(body, "axe-plan-kernels{target=sm_80}").unwrap();
    assert!(kernels.contains("axe.launch"), "{kernels}");
    let want = run(body, "f", &inputs).unwrap();
    let got = run(&kernels, "f", &inputs).unwrap();
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()));
        for (at, (got, want)) in got.iter_f64().zip(want.iter_f64()).enumerate() {
            let near = (got - want).abs() <= tolerance * (1.0 + want.abs());
            assert!(near, "element {at}: got {got}, want {want}\n{kernels}");
        }
    }
}

const ADD: &str = "{ ^bb0(%p: f32, %q: f32):
  %r = arith.addf %p, %q : f32
  axe.yield %r : f32 }";

#[test]
fn products_of_every_transposition() {
    for (a, b, flags) in [
        ("40x72", "72x56", ""),
        ("72x40", "72x56", "trans_a"),
        ("40x72", "56x72", "trans_b"),
        ("72x40", "56x72", "trans_a, trans_b"),
    ] {
        let extents = |text: &str| -> Vec<u64> {
            text.split('x')
                .map(|extent| extent.parse().unwrap())
                .collect()
        };
        let reduced = "axe.plan = {precision = \"tf32\"}";
        for (element, dtype, result, plan) in [
            ("f16", DType::F16, "f32", ""),
            ("f32", DType::F32, "f32", ""),
            ("f32", DType::F32, "f32", reduced),
            ("i8", DType::I8, "i32", ""),
        ] {
            let attributes: Vec<_> = [flags, plan]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            let attributes = attributes.join(", ");
            let body = format!(
                "func.func @f(%a: tensor<{a}x{element}>, %b: tensor<{b}x{element}>) -> tensor<40x56x{result}> {{
                   %y = axe.gemm %a, %b {{{attributes}}} : tensor<{a}x{element}>, tensor<{b}x{element}> -> tensor<40x56x{result}>
                   return %y : tensor<40x56x{result}>
                 }}"
            );
            check(&body, &[(dtype, &extents(a)), (dtype, &extents(b))], 1e-3);
        }
    }
}

#[test]
fn scaled_products_without_wgmma() {
    for (sa, attributes, sb) in [
        ("?x3", "block_n = 128 : i64", "1x3"),
        ("?x5", "block_n = 16 : i64, block_k = 64 : i64", "4x5"),
    ] {
        let body = format!(
            "func.func @f(%a: tensor<?x272xf8E4M3FN>, %sa: tensor<{sa}xf32>, %b: tensor<56x272xf8E5M2>, %sb: tensor<{sb}xf32>) -> tensor<?x56xf32> {{
               %y = axe.scaled_gemm %a, %b, %sa, %sb {{{attributes}}} : tensor<?x272xf8E4M3FN>, tensor<56x272xf8E5M2>, tensor<{sa}xf32>, tensor<{sb}xf32> -> tensor<?x56xf32>
               return %y : tensor<?x56xf32>
             }}"
        );
        let extents = |text: &str| -> Vec<u64> {
            let extents = text.split('x');
            extents.map(|extent| extent.parse().unwrap_or(70)).collect()
        };
        let inputs: [(DType, &[u64]); 4] = [
            (DType::F8E4M3, &[70, 272]),
            (DType::F32, &extents(sa)),
            (DType::F8E5M2, &[56, 272]),
            (DType::F32, &extents(sb)),
        ];
        check(&body, &inputs, 1e-3);
    }
}

#[test]
fn tiles_of_any_size_in_groups_of_rows() {
    for plan in [
        "tile = array<i64: 16, 16, 16>, warps = array<i64: 1, 2>, stages = 2 : i64",
        "tile = array<i64: 32, 64, 32>, warps = array<i64: 2, 2>, stages = 5 : i64",
    ] {
        let body = format!(
            "func.func @f(%a: tensor<?x70xf16>, %b: tensor<70x50xf16>, %w: tensor<?xf32>) -> tensor<?x50xf32> {{
               %c0 = arith.constant 0 : index
               %y = axe.gemm %a, %b {{axe.plan = {{{plan}}}}} : tensor<?x70xf16>, tensor<70x50xf16> -> tensor<?x50xf32>
               %rb = axe.broadcast %w dims [1] : tensor<?xf32> -> tensor<?x50xf32>
               %z = axe.map ins(%y, %rb : tensor<?x50xf32>, tensor<?x50xf32>) -> tensor<?x50xf32> {ADD}
               return %z : tensor<?x50xf32>
             }}"
        );
        let inputs: [(DType, &[u64]); 3] = [
            (DType::F16, &[150, 70]),
            (DType::F16, &[70, 50]),
            (DType::F32, &[150]),
        ];
        check(&body, &inputs, 1e-3);
    }
}

#[test]
fn batches_accumulators_and_several_results() {
    let body = format!(
        "func.func @f(%a: tensor<?x3x20x24xf16>, %b: tensor<?x3x24x28xf16>, %c: tensor<?x3x20x28xf32>, %n: tensor<28xf32>)
             -> (tensor<?x3x20x28xf32>, tensor<?x3x20x28xf32>) {{
           %c0 = arith.constant 0 : index
           %y = axe.gemm %a, %b acc %c : tensor<?x3x20x28xf32> : tensor<?x3x20x24xf16>, tensor<?x3x24x28xf16> -> tensor<?x3x20x28xf32>
           %d = tensor.dim %y, %c0 : tensor<?x3x20x28xf32>
           %nb = axe.broadcast %n dims [0, 1, 2] sizes(%d) : tensor<28xf32> -> tensor<?x3x20x28xf32>
           %z = axe.map ins(%y, %nb : tensor<?x3x20x28xf32>, tensor<?x3x20x28xf32>) -> tensor<?x3x20x28xf32> {ADD}
           return %y, %z : tensor<?x3x20x28xf32>, tensor<?x3x20x28xf32>
         }}"
    );
    let inputs: [(DType, &[u64]); 4] = [
        (DType::F16, &[2, 3, 20, 24]),
        (DType::F16, &[2, 3, 24, 28]),
        (DType::F32, &[2, 3, 20, 28]),
        (DType::F32, &[28]),
    ];
    check(&body, &inputs, 1e-3);
}

#[test]
fn transposes_of_every_rank() {
    for (from, to, permutation, shape) in [
        ("70x130", "130x70", "[1, 0]", vec![70, 130]),
        ("3x70x66", "66x3x70", "[2, 0, 1]", vec![3, 70, 66]),
        ("2x5x4x24", "2x4x5x24", "[0, 2, 1, 3]", vec![2, 5, 4, 24]),
        ("?x5x66", "?x66x5", "[0, 2, 1]", vec![3, 5, 66]),
    ] {
        let body = format!(
            "func.func @f(%x: tensor<{from}xf16>) -> tensor<{to}xf16> {{
               %y = axe.transpose %x {permutation} : tensor<{from}xf16> -> tensor<{to}xf16>
               return %y : tensor<{to}xf16>
             }}"
        );
        check(&body, &[(DType::F16, &shape)], 0.0);
    }
}

#[test]
fn reductions_of_any_dimensions() {
    for (shape, dims, result) in [
        (vec![37u64, 50], "0", "50"),
        (vec![3, 40, 50], "1", "3x50"),
        (vec![3, 40, 50], "0, 2", "40"),
        (vec![3, 40, 50], "0, 1, 2", ""),
        (vec![2, 2000], "1", "2"),
    ] {
        let text: Vec<_> = shape.iter().map(u64::to_string).collect();
        let (from, to) = (
            text.join("x"),
            if result.is_empty() {
                "f32".to_owned()
            } else {
                format!("{result}xf32")
            },
        );
        for combiner in ["add", "max"] {
            let body = format!(
                "func.func @f(%x: tensor<{from}xf32>) -> tensor<{to}> {{
                   %y = axe.reduce <{combiner}> %x dims [{dims}] : tensor<{from}xf32> -> tensor<{to}>
                   return %y : tensor<{to}>
                 }}"
            );
            check(&body, &[(DType::F32, &shape)], 1e-3);
        }
    }
}

#[test]
fn rows_longer_than_registers() {
    let body = format!(
        "func.func @f(%x: tensor<3x20000xf32>) -> (tensor<3x20000xf32>, tensor<3xf32>) {{
           %m = axe.reduce <max> %x dims [1] : tensor<3x20000xf32> -> tensor<3xf32>
           %b = axe.broadcast %m dims [1] : tensor<3xf32> -> tensor<3x20000xf32>
           %u = axe.map ins(%x, %b : tensor<3x20000xf32>, tensor<3x20000xf32>) -> tensor<3x20000xf32> {ADD}
           %s = axe.reduce <add> %u dims [1] : tensor<3x20000xf32> -> tensor<3xf32>
           %t = axe.broadcast %s dims [1] : tensor<3xf32> -> tensor<3x20000xf32>
           %y = axe.map ins(%u, %t : tensor<3x20000xf32>, tensor<3x20000xf32>) -> tensor<3x20000xf32> {ADD}
           return %y, %s : tensor<3x20000xf32>, tensor<3xf32>
         }}"
    );
    check(&body, &[(DType::F32, &[3, 20000])], 1e-3);
}

#[test]
fn repeated_in_the_middle_and_everywhere() {
    let body = "func.func @f(%x: tensor<3x8xf32>, %s: tensor<f32>) -> (tensor<3x5x8xf32>, tensor<4x9xf32>) {
      %b = axe.broadcast %x dims [1] : tensor<3x8xf32> -> tensor<3x5x8xf32>
      %c = axe.broadcast %s dims [0, 1] : tensor<f32> -> tensor<4x9xf32>
      return %b, %c : tensor<3x5x8xf32>, tensor<4x9xf32>
    }";
    check(body, &[(DType::F32, &[3, 8]), (DType::F32, &[])], 0.0);
    let body = "func.func @f(%x: tensor<3x8xf32>) -> tensor<3x8x5x2xf32> {
      %b = axe.broadcast %x dims [2, 3] : tensor<3x8xf32> -> tensor<3x8x5x2xf32>
      return %b : tensor<3x8x5x2xf32>
    }";
    check(body, &[(DType::F32, &[3, 8])], 0.0);
    let body = "func.func @f(%x: tensor<4x6xf32>) -> tensor<4x3x6x70xf32> {
      %b = axe.broadcast %x dims [1, 3] : tensor<4x6xf32> -> tensor<4x3x6x70xf32>
      return %b : tensor<4x3x6x70xf32>
    }";
    check(body, &[(DType::F32, &[4, 6])], 0.0);
}

#[test]
fn divisions_on_tiles_with_padding() {
    let inputs: &[(DType, &[u64])] = &[(DType::I32, &[37, 100]), (DType::I32, &[37, 100])];
    for operator in [
        "divsi",
        "divui",
        "remsi",
        "remui",
        "floordivsi",
        "ceildivsi",
        "ceildivui",
    ] {
        let body = format!(
            "func.func @f(%x: tensor<?x100xi32>, %y: tensor<?x100xi32>) -> tensor<?x100xi32> {{
               %z = axe.map ins(%x, %y : tensor<?x100xi32>, tensor<?x100xi32>) -> tensor<?x100xi32> {{
               ^bb0(%p: i32, %q: i32):
                 %one = arith.constant 1 : i32
                 %r = arith.ori %q, %one : i32
                 %t = arith.{operator} %p, %r : i32
                 %s = arith.{operator} %t, %q : i32
                 axe.yield %s : i32
               }}
               return %z : tensor<?x100xi32>
             }}"
        );
        check(&body, inputs, 0.0);
    }
}
