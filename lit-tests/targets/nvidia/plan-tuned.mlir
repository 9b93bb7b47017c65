// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=%S/Inputs/plans.json' --mlir-print-local-scope | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=none' | FileCheck %s --check-prefix=MODEL
// RUN: axe-opt %s --axe-plan-kernels='target=sm_90a tuned=%S/Inputs/plans.json explain' -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: axe-opt %s --axe-nvidia='target=sm_90a tuned=%S/Inputs/plans.json until=scheduled' | FileCheck %s --check-prefix=PIPELINE

// The sizes of an entry take its plan.
// CHECK-LABEL: axe.kernel @exact_0_gemm
// CHECK-SAME: threads(256)
// CHECK: axe.pipeline.create stages(5)
// CHECK: raster(snake 16)
// MODEL-LABEL: axe.kernel @exact_0_gemm
// MODEL-SAME: threads(384)
// MODEL: raster(groups 8)
// PIPELINE-LABEL: axe.kernel @exact_0_gemm
// PIPELINE: raster(snake 16)
// EXPLAIN-LABEL: plan @exact_0_gemm: 8192 x 4096 x 4096 of bf16
// EXPLAIN-NEXT: from: tuned for 8192 x 4096 x 4096 on NVIDIA H200, 401.5 us, 1.03 times as fast as the library
// EXPLAIN-NEXT: clocks predicted {mainloop = "wgmma", tile = array<i64: 64, 128, 64>, consumers = 1 : i64, stages = 5 : i64, raster = "snake", swizzle = 16 : i64
// EXPLAIN-COUNT-5: clocks instead {mainloop
func.func @exact(%a: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<8192x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xf32>
  return %p : tensor<8192x4096xf32>
}

// An epilogue that reads a tensor of the result's size has groups of at most four rows of tiles, of the entry and of the model.
// CHECK-LABEL: axe.kernel @residual_0_gemm
// CHECK: raster(snake 4)
// MODEL-LABEL: axe.kernel @residual_0_gemm
// MODEL: raster(groups 4)
func.func @residual(%a: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>, %r: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xf32>
  %s = axe.map ins(%p, %r : tensor<8192x4096xf32>, tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
  ^bb0(%x: f32, %y: f32):
    %t = arith.addf %x, %y : f32
    axe.yield %t : f32
  }
  return %s : tensor<8192x4096xf32>
}

// One that reads a row of the result has not.
// CHECK-LABEL: axe.kernel @bias_0_gemm
// CHECK: raster(snake 16)
func.func @bias(%a: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>, %r: tensor<4096xf32>) -> tensor<8192x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xf32>
  %b = axe.broadcast %r dims [0] : tensor<4096xf32> -> tensor<8192x4096xf32>
  %s = axe.map ins(%p, %b : tensor<8192x4096xf32>, tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
  ^bb0(%x: f32, %y: f32):
    %t = arith.addf %x, %y : f32
    axe.yield %t : f32
  }
  return %s : tensor<8192x4096xf32>
}

// axe.plan overrides the entry.
// CHECK-LABEL: axe.kernel @named_0_gemm
// CHECK: axe.pipeline.create stages(3)
// CHECK: raster(groups 8)
// EXPLAIN-LABEL: plan @named_0_gemm
// EXPLAIN-NEXT: from: axe.plan
func.func @named(%a: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<8192x4096xf32> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {stages = 3 : i64}} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xf32>
  return %p : tensor<8192x4096xf32>
}

// Nearly as many rows take the entry of others, where the model agrees with it.
// CHECK-LABEL: axe.kernel @near_0_gemm
// CHECK: axe.pipeline.create stages(6)
// CHECK: raster(hilbert)
// EXPLAIN-LABEL: plan @near_0_gemm
// EXPLAIN-NEXT: from: tuned for 4096 x 4096 x 4096, 200.5 us
func.func @near(%a: tensor<4000x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4000x4096xf32> {
  %p = axe.gemm %a, %w : tensor<4000x4096xf16>, tensor<4096x4096xf16> -> tensor<4000x4096xf32>
  return %p : tensor<4000x4096xf32>
}

// Where it does not, the model chooses.
// CHECK-LABEL: axe.kernel @near_and_slow_0_gemm
// CHECK: raster(groups 8)
// EXPLAIN-LABEL: plan @near_and_slow_0_gemm
// EXPLAIN-NEXT: from: cost model
// EXPLAIN-NEXT: not: tuned for 8192 x 4096 x 4096 on NVIDIA H200, 401.5 us, 1.03 times as fast as the library: predicted to be {{[0-9]+}}% slower here
func.func @near_and_slow(%a: tensor<8000x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<8000x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<8000x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8000x4096xf32>
  return %p : tensor<8000x4096xf32>
}

// Half the rows are another product.
// CHECK-LABEL: axe.kernel @far_0_gemm
// CHECK: raster(groups 8)
// EXPLAIN-LABEL: plan @far_0_gemm
// EXPLAIN-NEXT: from: cost model
// EXPLAIN-NEXT: clocks predicted
func.func @far(%a: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xf32>
  return %p : tensor<4096x4096xf32>
}

// An entry can be for warps alone.
// CHECK-LABEL: axe.kernel @warps_0_gemm
// CHECK-SAME: threads(128)
// CHECK-NOT: axe.pipeline
// EXPLAIN-LABEL: plan @warps_0_gemm
// EXPLAIN-NEXT: from: tuned for 512 x 512 x 512, 5 us
// EXPLAIN-NEXT: {mainloop = "mma", tile = array<i64: 64, 64, 32>, warps = array<i64: 2, 2>, stages = 4 : i64}
func.func @warps(%a: tensor<512x512xf16>, %w: tensor<512x512xf16>) -> tensor<512x512xf32> {
  %p = axe.gemm %a, %w : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}

// A plan that the product cannot have is not taken.
// CHECK-LABEL: axe.kernel @unfit_0_gemm
// CHECK-NOT: axe.pipeline
// EXPLAIN-LABEL: plan @unfit_0_gemm
// EXPLAIN-NEXT: from: cost model
// EXPLAIN-NEXT: not: tuned for 64 x 64 x 255, 5 us: expected tile = [rows, columns, depth] in axe.plan with 64 rows or a multiple
func.func @unfit(%a: tensor<64x255xf16>, %w: tensor<64x255xf16>) -> tensor<64x64xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<64x255xf16>, tensor<64x255xf16> -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// Dynamic rows and batches are the model's.
// CHECK-LABEL: axe.kernel @dynamic_0_gemm
// CHECK: raster(groups 8)
// EXPLAIN-LABEL: plan @dynamic_0_gemm: ? x 4096 x 4096 of bf16
// EXPLAIN-NEXT: from: cost model
func.func @dynamic(%a: tensor<?x4096xbf16>, %w: tensor<4096x4096xbf16>, %d: index) -> tensor<?x4096xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<?x4096xbf16>, tensor<4096x4096xbf16> -> tensor<?x4096xf32>
  return %p : tensor<?x4096xf32>
}
