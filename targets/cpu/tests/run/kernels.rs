//! Kernels on a grid, against plain Rust.

use crate::root;
use axe_package::{DType, Random, Tensor};

/// A tensor of random values.
fn random(dtype: DType, shape: &[u64], seed: u64) -> Tensor {
    Tensor::random(dtype, shape.to_vec(), Random::for_dtype(dtype, seed)).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.iter_f64().collect()
}

#[test]
fn gemm_tile() {
    let text = std::fs::read_to_string(root().join("examples/kernels/gemm_tile.mlir")).unwrap();
    // 100 rows: the second block's tile reaches beyond the end.
    let a = random(DType::F16, &[100, 64], 1);
    let b = random(DType::F16, &[8, 16], 2);
    let c = Tensor::filled(DType::F32, vec![100, 8], 0).unwrap();
    let arguments = [a.clone(), b.clone(), c];
    let results = axe_cpu::launch(&text, "gemm_tile", [2, 1, 1], &arguments).unwrap();
    assert_eq!(results[0], a);
    let (a, b) = (values(&a), values(&b));
    // The kernel multiplies the first 16 columns of A.
    let expected = (0..800).map(|at| {
        let (row, column) = (at / 8, at % 8);
        (0..16)
            .map(|k| a[row * 64 + k] * b[column * 16 + k])
            .sum::<f64>() as f32
    });
    let got: Vec<f32> = values(&results[2])
        .into_iter()
        .map(|value| value as f32)
        .collect();
    assert_eq!(got, expected.collect::<Vec<_>>());
}

/// `(x + bias) * s` by tiles of 16 x 64 through swizzled storage.
const TILES: &str = "
#swizzled = #axe.layout<Sw<3, 3, 3> o S[(16, 64) : (64, 1)]>
#row = #axe.layout<S[(16, 64) : (1@warp, 1@reg)]>
#repeat = #axe.layout<S[(16, 64) : (0, 1)]>
#shared = #axe.space<shared>
axe.kernel @tile(%x: memref<?x100xf16>, %bias: memref<100xf16>, %y: memref<?x100xf16>, %s: f16) threads(512) {
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %i = gpu.block_id x
  %j = gpu.block_id y
  %m = arith.muli %i, %c16 : index
  %n = arith.muli %j, %c64 : index
  %st = axe.alloc : memref<16x64xf16, #swizzled, #shared>
  %t = axe.slice %x[%m, %n] : memref<?x100xf16> to memref<16x64xf16, strided<[100, 1]>>
  axe.copy async %t to %st : memref<16x64xf16, strided<[100, 1]>> to memref<16x64xf16, #swizzled, #shared>
  %token = axe.commit : !axe.token
  axe.wait {pending = 0 : i64}
  axe.barrier
  %r = axe.copy %st : memref<16x64xf16, #swizzled, #shared> -> tensor<16x64xf16, #row>
  %part = axe.slice %bias[%n] : memref<100xf16> to memref<64xf16>
  %rows = axe.view %part : memref<64xf16> to memref<16x64xf16, #repeat>
  %b = axe.copy %rows : memref<16x64xf16, #repeat> -> tensor<16x64xf16, #row>
  %q = axe.map ins(%r, %b : tensor<16x64xf16, #row>, tensor<16x64xf16, #row>) -> tensor<16x64xf16, #row> {
  ^bb0(%u: f16, %v: f16):
    %w = arith.addf %u, %v : f16
    %z = arith.mulf %w, %s : f16
    axe.yield %z : f16
  }
  %o = axe.slice %y[%m, %n] : memref<?x100xf16> to memref<16x64xf16, strided<[100, 1]>>
  axe.copy %q to %o : tensor<16x64xf16, #row> to memref<16x64xf16, strided<[100, 1]>>
  axe.return
}";

#[test]
fn ragged_tiles_through_swizzled_storage() {
    let arguments = [
        random(DType::F16, &[37, 100], 1),
        random(DType::F16, &[100], 2),
        Tensor::filled(DType::F16, vec![37, 100], axe_package::POISON).unwrap(),
        Tensor::from_f64(DType::F16, vec![], [0.75]).unwrap(),
    ];
    let got = axe_cpu::launch(TILES, "tile", [3, 2, 1], &arguments).unwrap();
    let (x, bias) = (values(&arguments[0]), values(&arguments[1]));
    // Each operation on f16 rounds.
    let half = |value: f64| values(&Tensor::from_f64(DType::F16, vec![1], [value]).unwrap())[0];
    let want: Vec<f64> = (0..3700)
        .map(|at| half(half(x[at] + bias[at % 100]) * 0.75))
        .collect();
    assert!(values(&got[2]) == want);
    // One block alone leaves the others' elements as they were.
    let one = axe_cpu::launch(TILES, "tile", [1, 1, 1], &arguments).unwrap();
    let written = values(&one[2])
        .iter()
        .filter(|value| !value.is_nan())
        .count();
    assert_eq!(written, 16 * 64);
}

/// A matrix product by tiles, with a ring of three stages that is filled two tiles ahead, as the planner writes it.
const RING: &str = "
#stages = #axe.layout<Sw<2, 3, 3> o S[(3, 32, 32) : (1024, 32, 1)]>
#stage = #axe.layout<Sw<2, 3, 3> o S[(32, 32) : (32, 1)]>
#frag = #axe.layout<S[(32, 32) : (1@lane, 1@reg)]>
#shared = #axe.space<shared>
axe.kernel @gemm(%A: memref<?x70xf16>, %B: memref<50x70xf16>, %C: memref<?x50xf32>) threads(32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %i = gpu.block_id x
  %j = gpu.block_id y
  %m = arith.muli %i, %c32 : index
  %n = arith.muli %j, %c32 : index
  %sa = axe.alloc : memref<3x32x32xf16, #stages, #shared>
  %sb = axe.alloc : memref<3x32x32xf16, #stages, #shared>
  scf.for %p = %c0 to %c2 step %c1 {
    %k = arith.muli %p, %c32 : index
    %ga = axe.slice %A[%m, %k] : memref<?x70xf16> to memref<32x32xf16, strided<[70, 1]>>
    %gb = axe.slice %B[%n, %k] : memref<50x70xf16> to memref<32x32xf16, strided<[70, 1]>>
    %ta = axe.slice %sa[%p, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    %tb = axe.slice %sb[%p, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    axe.copy async %ga to %ta : memref<32x32xf16, strided<[70, 1]>> to memref<32x32xf16, #stage, #shared>
    axe.copy async %gb to %tb : memref<32x32xf16, strided<[70, 1]>> to memref<32x32xf16, #stage, #shared>
    %token = axe.commit : !axe.token
  }
  %start = axe.fill %zero : f32 -> tensor<32x32xf32, #frag>
  %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%acc = %start) -> tensor<32x32xf32, #frag> {
    axe.wait {pending = 1 : i64}
    axe.barrier
    %ahead = arith.addi %p, %c2 : index
    %into = arith.remui %ahead, %c3 : index
    %from = arith.remui %p, %c3 : index
    %k = arith.muli %ahead, %c32 : index
    %ga = axe.slice %A[%m, %k] : memref<?x70xf16> to memref<32x32xf16, strided<[70, 1]>>
    %gb = axe.slice %B[%n, %k] : memref<50x70xf16> to memref<32x32xf16, strided<[70, 1]>>
    %ta = axe.slice %sa[%into, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    %tb = axe.slice %sb[%into, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    axe.copy async %ga to %ta : memref<32x32xf16, strided<[70, 1]>> to memref<32x32xf16, #stage, #shared>
    axe.copy async %gb to %tb : memref<32x32xf16, strided<[70, 1]>> to memref<32x32xf16, #stage, #shared>
    %token = axe.commit : !axe.token
    %ra = axe.slice %sa[%from, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    %rb = axe.slice %sb[%from, %c0, %c0] : memref<3x32x32xf16, #stages, #shared> to memref<32x32xf16, #stage, #shared>
    // The second operand as [K, N], by a transposed view of the stage.
    %rt = axe.view %rb : memref<32x32xf16, #stage, #shared>
        to memref<32x32xf16, #axe.layout<Sw<2, 3, 3> o S[(32, 32) : (1, 32)]>, #shared>
    %a = axe.copy %ra : memref<32x32xf16, #stage, #shared> -> tensor<32x32xf16, #frag>
    %next = axe.gemm %a, %rt acc %acc : tensor<32x32xf32, #frag>
        : tensor<32x32xf16, #frag>, memref<32x32xf16, #axe.layout<Sw<2, 3, 3> o S[(32, 32) : (1, 32)]>, #shared> -> tensor<32x32xf32, #frag>
    scf.yield %next : tensor<32x32xf32, #frag>
  }
  %out = axe.slice %C[%m, %n] : memref<?x50xf32> to memref<32x32xf32, strided<[50, 1]>>
  axe.copy %sum to %out : tensor<32x32xf32, #frag> to memref<32x32xf32, strided<[50, 1]>>
  axe.return
}";

#[test]
fn a_ring_of_stages_with_ragged_sizes() {
    let a = random(DType::F16, &[45, 70], 3);
    let b = random(DType::F16, &[50, 70], 4);
    let c = Tensor::filled(DType::F32, vec![45, 50], axe_package::POISON).unwrap();
    let got = axe_cpu::launch(RING, "gemm", [2, 2, 1], &[a.clone(), b.clone(), c]).unwrap();
    let (a, b) = (values(&a), values(&b));
    let want = (0..45 * 50).map(|at| {
        let (row, column) = (at / 50, at % 50);
        (0..70)
            .map(|k| a[row * 70 + k] * b[column * 70 + k])
            .sum::<f64>()
    });
    let want = Tensor::from_f64(DType::F32, vec![45, 50], want).unwrap();
    let report =
        axe_package::compare(&got[2], &want, axe_package::Tolerance::new(1e-6, 1e-5)).unwrap();
    assert!(report.passed(), "{report}");
}

#[test]
fn memory_that_nothing_wrote_shows() {
    let text = "
        #shared = #axe.space<shared>
        #frag = #axe.layout<S[8 : 1@lane]>
        axe.kernel @k(%y: memref<8xf32>) threads(32) {
          %one = arith.constant 1.0 : f32
          %c0 = arith.constant 0 : index
          %s = axe.alloc : memref<8xf32, #shared>
          %half = axe.slice %s[%c0] : memref<8xf32, #shared> to memref<4xf32, #shared>
          axe.fill %one to %half : f32 to memref<4xf32, #shared>
          %t = axe.copy %s : memref<8xf32, #shared> -> tensor<8xf32, #frag>
          axe.copy %t to %y : tensor<8xf32, #frag> to memref<8xf32>
          axe.return
        }";
    let y = Tensor::filled(DType::F32, vec![8], 0).unwrap();
    let got = values(&axe_cpu::launch(text, "k", [1, 1, 1], &[y]).unwrap()[0]);
    assert_eq!(got[..4], [1.0; 4]);
    assert!(got[4..].iter().all(|value| value.is_nan()));
}
