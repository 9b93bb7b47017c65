// RUN: axe-opt %s --axe-plan-kernels=target=sm_80 | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_80 | axe-opt | FileCheck %s

// A product takes its bias, its activation and the conversion of its result; the bias' own conversion is done again.
// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%[[X:.*]]: tensor<128x256xf16>, %[[W:.*]]: tensor<192x256xf16>, %[[B:.*]]: tensor<192xf16>)
// CHECK-NOT: axe.gemm
// CHECK: %[[E:.*]] = tensor.empty() : tensor<128x192xf16>
// CHECK: %[[R:.*]] = axe.launch @linear_0_gemm grid(%{{.*}}, %{{.*}}, %{{.*}}) ins(%[[X]], %[[W]], %[[B]] : {{.*}}) outs(%[[E]] : tensor<128x192xf16>) -> tensor<128x192xf16>
// CHECK-NEXT: return %[[R]]
func.func @linear(%x: tensor<128x256xf16>, %w: tensor<192x256xf16>, %bias: tensor<192xf16>) -> tensor<128x192xf16> {
  %wide = axe.cast %bias : tensor<192xf16> -> tensor<192xf32>
  %p = axe.gemm %x, %w {trans_b, axe.plan = {tile = array<i64: 128, 64, 32>, warps = array<i64: 2, 2>, stages = 3 : i64}} : tensor<128x256xf16>, tensor<192x256xf16> -> tensor<128x192xf32>
  %b = axe.broadcast %wide dims [0] : tensor<192xf32> -> tensor<128x192xf32>
  %s = axe.map ins(%p, %b : tensor<128x192xf32>, tensor<128x192xf32>) -> tensor<128x192xf32> {
  ^bb0(%u: f32, %v: f32):
    %t = arith.addf %u, %v : f32
    axe.yield %t : f32
  }
  %h = axe.cast %s : tensor<128x192xf32> -> tensor<128x192xf16>
  return %h : tensor<128x192xf16>
}

// A dynamic number of rows makes the grid dynamic; the second product reads what the first one stored.
// CHECK-LABEL: func.func @two
// CHECK: %[[D:.*]] = tensor.dim %{{.*}}, %{{.*}} : tensor<?x512xbf16>
// CHECK: %[[E0:.*]] = tensor.empty(%[[D]]) : tensor<?x1024xbf16>
// CHECK: %[[T:.*]] = arith.ceildivui
// CHECK: %[[G:.*]] = arith.muli %[[T]]
// CHECK: %[[H:.*]] = axe.launch @two_0_gemm grid(%[[G]], {{.*}} -> tensor<?x1024xbf16>
// CHECK: axe.launch @two_1_gemm {{.*}} ins(%[[H]], %{{.*}}) outs(%{{.*}}) -> tensor<?x256xf32>
func.func @two(%x: tensor<?x512xbf16>, %w: tensor<512x1024xbf16>, %v: tensor<1024x256xbf16>) -> tensor<?x256xf32> {
  %p = axe.gemm %x, %w : tensor<?x512xbf16>, tensor<512x1024xbf16> -> tensor<?x1024xf32>
  %h = axe.cast %p : tensor<?x1024xf32> -> tensor<?x1024xbf16>
  %q = axe.gemm %h, %v : tensor<?x1024xbf16>, tensor<1024x256xbf16> -> tensor<?x256xf32>
  return %q : tensor<?x256xf32>
}

// A value that something else reads too is stored beside the result.
// CHECK-LABEL: func.func @kept
// CHECK: %[[R:.*]]:2 = axe.launch @kept_0_gemm {{.*}} -> tensor<4x64x80xf32>, tensor<4x64x80xf32>
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @kept(%x: tensor<4x64x96xf16>, %w: tensor<4x96x80xf16>, %y: tensor<4x64x80xf32>) -> (tensor<4x64x80xf32>, tensor<4x64x80xf32>) {
  %p = axe.gemm %x, %w : tensor<4x64x96xf16>, tensor<4x96x80xf16> -> tensor<4x64x80xf32>
  %s = axe.map ins(%p, %y : tensor<4x64x80xf32>, tensor<4x64x80xf32>) -> tensor<4x64x80xf32> {
  ^bb0(%u: f32, %v: f32):
    %t = arith.mulf %u, %v : f32
    axe.yield %t : f32
  }
  return %p, %s : tensor<4x64x80xf32>, tensor<4x64x80xf32>
}

// A residual joins with its own conversion, which no other kernel forms.
// CHECK-LABEL: func.func @residual
// CHECK-COUNT-1: axe.launch @residual_0_gemm {{.*}} ins(%[[A:.*]], %[[A]], %[[A]] : {{.*}}) outs
// CHECK-NOT: axe.launch
// CHECK-LABEL: func.func @full
func.func @residual(%a: tensor<128x128xf16>) -> tensor<128x128xf32> {
  %p = axe.gemm %a, %a : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
  %c = axe.cast %a : tensor<128x128xf16> -> tensor<128x128xf32>
  %s = axe.map ins(%p, %c : tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %t = arith.addf %u, %v : f32
    axe.yield %t : f32
  }
  return %s : tensor<128x128xf32>
}

// f32 is multiplied in f32, unless the product allows tf32.
func.func @full(%x: tensor<128x256xf32>, %w: tensor<256x192xf32>, %c: tensor<128x192xf32>) -> tensor<128x192xf32> {
  %p = axe.gemm %x, %w acc %c : tensor<128x192xf32> : tensor<128x256xf32>, tensor<256x192xf32> -> tensor<128x192xf32>
  return %p : tensor<128x192xf32>
}
func.func @reduced(%x: tensor<128x256xf32>, %w: tensor<256x192xf32>) -> tensor<128x192xf32> {
  %p = axe.gemm %x, %w {axe.plan = {precision = "tf32"}} : tensor<128x256xf32>, tensor<256x192xf32> -> tensor<128x192xf32>
  return %p : tensor<128x192xf32>
}

// A tile of one step: its copies come first, for what they overwrite is in registers since the round before.
func.func @shallow(%x: tensor<128x256xf16>, %w: tensor<256x192xf16>) -> tensor<128x192xf32> {
  %p = axe.gemm %x, %w {axe.plan = {tile = array<i64: 64, 64, 16>, warps = array<i64: 2, 2>, stages = 2 : i64}} : tensor<128x256xf16>, tensor<256x192xf16> -> tensor<128x192xf32>
  return %p : tensor<128x192xf32>
}

// The ring, the accumulators of mma.sync, three stages with two on their way, fragments a step ahead of the
// products (those of the next tile behind the barrier), and the epilogue on the accumulators.
// CHECK-LABEL: axe.kernel @linear_0_gemm
// CHECK-SAME: threads(128)
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[SA:.*]] = axe.alloc : memref<3x128x32xf16, #axe.layout<Sw<2, 3, 3> o S[(3, 128, 32) : (4096, 32, 1)]>, #axe.space<shared>>
// CHECK: %[[SB:.*]] = axe.alloc : memref<3x64x32xf16, #axe.layout<Sw<2, 3, 3> o S[(3, 64, 32) : (2048, 32, 1)]>, #axe.space<shared>>
// CHECK: axe.fill %{{.*}} -> tensor<128x64xf32, #axe.layout<[[ACC:.*\]]]>>
// CHECK-COUNT-2: axe.commit
// CHECK: axe.wait {pending = 1 : i64}
// CHECK-NEXT: axe.barrier
// CHECK: %[[A0:.*]] = axe.copy %{{.*}} -> tensor<128x16xf16
// CHECK: %[[B0:.*]] = axe.copy %{{.*}} -> tensor<64x16xf16
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[FA:.*]] = %[[A0]], %[[FB:.*]] = %[[B0]])
// CHECK-NOT: axe.wait
// CHECK: %[[A1:.*]] = axe.copy %{{.*}} -> tensor<128x16xf16
// CHECK: %[[B1:.*]] = axe.copy %{{.*}} -> tensor<64x16xf16
// CHECK: axe.copy async
// CHECK: axe.copy async
// CHECK-NEXT: axe.commit
// CHECK-NEXT: %[[SUM0:.*]] = axe.gemm %[[FA]], %[[FB]] acc %[[SUM]] {{.*}} {trans_b}
// CHECK-NEXT: axe.wait {pending = 1 : i64}
// CHECK-NEXT: axe.barrier
// CHECK: %[[A2:.*]] = axe.copy %{{.*}} -> tensor<128x16xf16
// CHECK: %[[B2:.*]] = axe.copy %{{.*}} -> tensor<64x16xf16
// CHECK-NEXT: %[[SUM1:.*]] = axe.gemm %[[A1]], %[[B1]] acc %[[SUM0]] {{.*}} {trans_b}
// CHECK-NEXT: scf.yield %[[SUM1]], %[[A2]], %[[B2]]
// CHECK: axe.wait
// CHECK-NEXT: axe.barrier
// CHECK: axe.broadcast %{{.*}} dims [0]
// CHECK: axe.map
// CHECK: %[[OUT:.*]] = axe.cast %{{.*}} -> tensor<128x64xf16
// CHECK: axe.copy %[[OUT]] to %{{.*}} : tensor<128x64xf16

// Groups of 8 rows of tiles.
// CHECK-LABEL: axe.kernel @two_0_gemm
// CHECK: memref.dim
// CHECK: arith.minui

// CHECK-LABEL: axe.kernel @kept_0_gemm
// CHECK: gpu.block_id z

// CHECK-LABEL: axe.kernel @full_0_gemm
// CHECK: tensor<{{.*}}xf32, #axe.layout<S[{{.*}}@thread
// CHECK-LABEL: axe.kernel @reduced_0_gemm
// CHECK: axe.gemm {{.*}}@lane
// CHECK-LABEL: axe.kernel @shallow_0_gemm
// CHECK: scf.for
// CHECK: axe.copy async
// CHECK: axe.commit
// CHECK-NEXT: axe.wait
// CHECK-NEXT: axe.barrier
// CHECK: axe.copy %{{.*}} -> tensor<64x16xf16
// CHECK: axe.copy %{{.*}} -> tensor<16x64xf16
// CHECK-NEXT: axe.gemm
// CHECK-NEXT: scf.yield
