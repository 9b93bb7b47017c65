// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s

// A chain is one kernel; a scalar of the function that a body reads is an argument of it.
func.func @chain(%x: tensor<128x1000xf16>, %b: tensor<1000xf16>, %s: f16) -> tensor<128x1000xf16> {
  %bb = axe.broadcast %b dims [0] : tensor<1000xf16> -> tensor<128x1000xf16>
  %u = axe.map ins(%x, %bb : tensor<128x1000xf16>, tensor<128x1000xf16>) -> tensor<128x1000xf16> {
  ^bb0(%p: f16, %q: f16):
    %r = arith.addf %p, %q : f16
    axe.yield %r : f16
  }
  %y = axe.map ins(%u : tensor<128x1000xf16>) -> tensor<128x1000xf16> {
  ^bb0(%p: f16):
    %r = arith.mulf %p, %s : f16
    axe.yield %r : f16
  }
  return %y : tensor<128x1000xf16>
}

// A value that another kernel reads is stored once.
func.func @shared(%x: tensor<4x64x32xf32>) -> (tensor<4x32x64xf32>, tensor<4x64x32xf32>) {
  %u = axe.map ins(%x : tensor<4x64x32xf32>) -> tensor<4x64x32xf32> {
  ^bb0(%p: f32):
    %r = math.tanh %p : f32
    axe.yield %r : f32
  }
  %t = axe.transpose %u [0, 2, 1] : tensor<4x64x32xf32> -> tensor<4x32x64xf32>
  return %t, %u : tensor<4x32x64xf32>, tensor<4x64x32xf32>
}

// Heads change places with tokens; rows stay together.
func.func @heads(%x: tensor<?x4x64x32xf16>) -> tensor<?x64x4x32xf16> {
  %t = axe.transpose %x [0, 2, 1, 3] : tensor<?x4x64x32xf16> -> tensor<?x64x4x32xf16>
  return %t : tensor<?x64x4x32xf16>
}

// What repeats in the middle, and what fills a tensor that is read outside.
func.func @repeated(%x: tensor<3x8xf32>, %n: index, %z: f32) -> (tensor<3x5x8xf32>, tensor<?x16xf32>) {
  %b = axe.broadcast %x dims [1] : tensor<3x8xf32> -> tensor<3x5x8xf32>
  %f = axe.fill %z sizes(%n) : f32 -> tensor<?x16xf32>
  return %b, %f : tensor<3x5x8xf32>, tensor<?x16xf32>
}

// A result that is an argument needs no kernel.
func.func @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// CHECK-LABEL: func.func @chain
// CHECK: axe.launch @chain_0_map {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<128x1000xf16>, tensor<1000xf16>, f16)
// CHECK-NOT: axe.launch

// CHECK-LABEL: func.func @shared
// CHECK: %[[U:.*]] = axe.launch @shared_0_map
// CHECK: %[[T:.*]] = axe.launch @shared_1_transpose {{.*}} -> tensor<4x32x64xf32>
// CHECK: return %[[T]], %{{.*}}

// CHECK-LABEL: func.func @heads
// CHECK: axe.launch @heads_0_transpose
// CHECK-LABEL: func.func @repeated
// CHECK-DAG: axe.launch @repeated_{{.}}_broadcast
// CHECK-DAG: axe.launch @repeated_{{.}}_map
// CHECK-LABEL: func.func @same
// CHECK-NEXT: return

// CHECK-LABEL: axe.kernel @chain_0_map
// CHECK: axe.broadcast %{{.*}} dims [0]
// CHECK: axe.map
// CHECK: axe.map
// CHECK-COUNT-1: axe.copy %{{.*}} to

// CHECK-LABEL: axe.kernel @shared_1_transpose
// CHECK: axe.alloc
// CHECK: axe.barrier
// CHECK-LABEL: axe.kernel @heads_0_transpose
// CHECK-NOT: axe.alloc
// CHECK: axe.transpose %{{.*}} [0, 2, 1, 3]

// Tiles of a row are visited before the next rows, in the order of memory.
// CHECK-LABEL: axe.kernel @in_order_0_map
// CHECK: %[[BLOCK:.*]] = gpu.block_id  x
// CHECK: arith.remui %[[BLOCK]], %c4
// CHECK: arith.divui %[[BLOCK]], %c4
// CHECK-NOT: gpu.block_id  y
// CHECK: axe.return
func.func @in_order(%x: tensor<2048x8192xf16>, %b: tensor<8192xf16>) -> tensor<2048x8192xf16> {
  %w = axe.broadcast %b dims [0] : tensor<8192xf16> -> tensor<2048x8192xf16>
  %s = axe.map ins(%x, %w : tensor<2048x8192xf16>, tensor<2048x8192xf16>) -> tensor<2048x8192xf16> {
  ^bb0(%p: f16, %q: f16):
    %r = arith.addf %p, %q : f16
    axe.yield %r : f16
  }
  return %s : tensor<2048x8192xf16>
}
