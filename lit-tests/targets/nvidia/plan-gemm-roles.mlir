// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s

// One warp copies, two warpgroups multiply and store; every CTA goes through its share of the tiles.
// CHECK-LABEL: func.func @large
// CHECK: %[[SMS:.*]] = arith.constant 132 : index
// CHECK: %[[G:.*]] = arith.minui %{{.*}}, %[[SMS]]
// CHECK: axe.launch @large_0_gemm grid(%[[G]],
// CHECK-LABEL: axe.kernel @large_0_gemm
// CHECK-SAME: threads(384)
// CHECK: %[[RING:.*]] = axe.pipeline.create stages(4)
// CHECK: axe.scope warpgroup [0, 1) registers(40)
// CHECK: axe.scope warp [0, 1)
// CHECK: axe.for_tiles {{.*}} raster(groups 8)
// CHECK: %[[SLOT:.*]], %{{.*}} = axe.pipeline.acquire %[[RING]]
// CHECK-COUNT-2: axe.copy async {{.*}} signal %[[SLOT]]
// CHECK: axe.pipeline.commit %[[RING]], %[[SLOT]]
// CHECK: axe.scope warpgroup [1, 3) registers(232)
// CHECK: axe.for_tiles {{.*}} raster(groups 8)
// The first step has no sums before it.
// CHECK: axe.gemm async %{{.*}}, %{{.*}} {trans_b}
// CHECK: scf.for
// CHECK: axe.gemm async {{.*}} acc
// CHECK: axe.wait {{.*}} {pending = 1 : i64}
// CHECK: axe.pipeline.release %[[RING]]
// CHECK: axe.wait
// CHECK: axe.pipeline.release %[[RING]]
// CHECK: axe.cast
// CHECK: axe.copy {{.*}} to
func.func @large(%a: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 256, 64>, cluster = array<i64: 1, 1>}} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xf32>
  %c = axe.cast %p : tensor<8192x4096xf32> -> tensor<8192x4096xbf16>
  return %c : tensor<8192x4096xbf16>
}

// Tiles that fill the chip evenly, at which the warpgroups take turns: while one stores the other multiplies.
// CHECK-LABEL: axe.kernel @turns_0_gemm
// CHECK-SAME: threads(384)
// CHECK: axe.scope warpgroup [0, 1) registers(40)
// CHECK: axe.for_tiles {{.*}} raster(groups 8) {
// CHECK: axe.scope warpgroup [1, 3) registers(232)
// CHECK-NEXT: axe.scope warpgroup {
// CHECK: axe.for_tiles {{.*}} raster(groups 8) pingpong {
// CHECK: axe.gemm async {{.*}} -> tensor<128x176xf32
func.func @turns(%a: tensor<8192x4096xbf16>, %w: tensor<24832x4096xbf16>) -> tensor<8192x24832xbf16> {
  %p = axe.gemm %a, %w {trans_b} : tensor<8192x4096xbf16>, tensor<24832x4096xbf16> -> tensor<8192x24832xf32>
  %c = axe.cast %p : tensor<8192x24832xf32> -> tensor<8192x24832xbf16>
  return %c : tensor<8192x24832xbf16>
}

// What axe.plan says overrides the model.
// CHECK-LABEL: axe.kernel @chosen_0_gemm
// CHECK-SAME: threads(256)
// CHECK: axe.pipeline.create stages(3)
// CHECK: raster(snake 16)
func.func @chosen(%a: tensor<512x512xf16>, %w: tensor<512x512xf16>) -> tensor<512x512xf32> {
  %p = axe.gemm %a, %w {axe.plan = {tile = array<i64: 64, 128, 64>, stages = 3 : i64, raster = "snake", swizzle = 16 : i64}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}

// Registers are moved from the warp that copies to those that multiply as a plan says.
// CHECK-LABEL: axe.kernel @registers_0_gemm
// CHECK: axe.scope warpgroup [0, 1) registers(24)
// CHECK: axe.scope warpgroup [1, 3) registers(240)
func.func @registers(%a: tensor<512x512xf16>, %w: tensor<512x512xf16>) -> tensor<512x512xf32> {
  %p = axe.gemm %a, %w {axe.plan = {tile = array<i64: 128, 128, 64>, registers = array<i64: 24, 240>}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}

// Rows that no descriptor takes go to mma.sync where products are small.
// CHECK-LABEL: axe.kernel @odd_0_gemm
// CHECK-NOT: axe.pipeline
func.func @odd(%a: tensor<64x255xf16>, %w: tensor<64x255xf16>) -> tensor<64x64xf32> {
  %p = axe.gemm %a, %w {trans_b} : tensor<64x255xf16>, tensor<64x255xf16> -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}

// Two CTAs beside each other fetch the rows of A half and half.
// CHECK-LABEL: axe.kernel @beside_0_gemm
// CHECK-SAME: threads(256) cluster(2, 1, 1)
// CHECK: gpu.cluster_block_id x
// CHECK: axe.copy async {{.*}} signal %{{[a-z]+}} multicast :
// CHECK: axe.copy async {{.*}} signal %{{[a-z]+}} :
func.func @beside(%a: tensor<64x4096xf16>, %w: tensor<126720x4096xf16>) -> tensor<64x126720xf32> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 64, 96, 128>, cluster = array<i64: 1, 2>}} : tensor<64x4096xf16>, tensor<126720x4096xf16> -> tensor<64x126720xf32>
  return %p : tensor<64x126720xf32>
}

// Two CTAs below each other fetch the columns of B half and half.
// CHECK-LABEL: axe.kernel @clusters_0_gemm
// CHECK-SAME: threads(384) cluster(2, 1, 1)
// CHECK: gpu.cluster_block_id x
// CHECK: axe.copy async {{.*}} signal %{{[a-z]+}} :
// CHECK: axe.copy async {{.*}} signal %{{[a-z]+}} multicast :
func.func @clusters(%a: tensor<8192x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<8192x4096xf32> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 256, 64>, cluster = array<i64: 2, 1>}} : tensor<8192x4096xf16>, tensor<4096x4096xf16> -> tensor<8192x4096xf32>
  return %p : tensor<8192x4096xf32>
}

// What follows the product is formed and stored subtile by subtile, two of which fit in what a warpgroup stores through: the
// residual's part for the next subtile is loaded before one is formed, what belongs to rows once.
// CHECK-LABEL: axe.kernel @epilogue_0_gemm
// CHECK: axe.for_tiles {{.*}} pingpong {
// CHECK: axe.wait {{.*}} {pending = 1 : i64}
// CHECK: %[[SUM:.*]] = axe.wait
// CHECK: axe.copy {{.*}} -> tensor<128xf32
// CHECK-NOT: -> tensor<128xf32
// CHECK: axe.copy {{.*}} -> tensor<128x32xf16
// CHECK: axe.copy {{.*}} -> tensor<128x32xf16
// CHECK: axe.extract_slice %[[SUM]] [0, 0] : tensor<128x176xf32, {{.*}}> -> tensor<128x32xf32
// CHECK: axe.map
// CHECK: axe.copy {{.*}} to
// CHECK: axe.copy {{.*}} -> tensor<128x32xf16
// CHECK: axe.extract_slice %[[SUM]] [0, 32]
// CHECK: axe.map
// CHECK: axe.copy {{.*}} to
// CHECK: axe.copy {{.*}} -> tensor<128x16xf16
// CHECK: axe.extract_slice %[[SUM]] [0, 128]
// CHECK: axe.extract_slice %[[SUM]] [0, 160] : tensor<128x176xf32, {{.*}}> -> tensor<128x16xf32
// CHECK-NOT: axe.extract_slice
// CHECK-LABEL: axe.kernel @converted_0_gemm
// CHECK-NOT: axe.extract_slice
// CHECK: axe.cast {{.*}} -> tensor<128x192xf16
// CHECK: axe.kernel @rest_0_gemm
// CHECK: axe.extract_slice {{.*}} [0, 64] : tensor<128x72xf32, {{.*}}> -> tensor<128x8xf32
func.func @epilogue(%a: tensor<8192x4096xf16>, %w: tensor<24576x4096xf16>, %r: tensor<8192xf32>, %x: tensor<8192x24576xf16>) -> tensor<8192x24576xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 176, 64>, schedule = "pingpong"}} : tensor<8192x4096xf16>, tensor<24576x4096xf16> -> tensor<8192x24576xf32>
  %s = axe.broadcast %r dims [1] : tensor<8192xf32> -> tensor<8192x24576xf32>
  %c = axe.map ins(%p, %s, %x : tensor<8192x24576xf32>, tensor<8192x24576xf32>, tensor<8192x24576xf16>) -> tensor<8192x24576xf16> {
  ^bb0(%u: f32, %v: f32, %h: f16):
    %e = arith.extf %h : f16 to f32
    %t = arith.mulf %u, %v : f32
    %q = arith.addf %t, %e : f32
    %o = arith.truncf %q : f32 to f16
    axe.yield %o : f16
  }
  return %c : tensor<8192x24576xf16>
}

// Sums that are only converted take no registers beside them: whole subtiles are left to the store.
func.func @converted(%a: tensor<8192x4096xf16>, %w: tensor<24576x4096xf16>) -> tensor<8192x24576xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 192, 64>, schedule = "pingpong"}} : tensor<8192x4096xf16>, tensor<24576x4096xf16> -> tensor<8192x24576xf32>
  %c = axe.cast %p : tensor<8192x24576xf32> -> tensor<8192x24576xf16>
  return %c : tensor<8192x24576xf16>
}

// Eight columns are too narrow for a subtile: threads store these, and not the tile.
func.func @rest(%a: tensor<8192x4096xf16>, %w: tensor<24576x4096xf16>) -> tensor<8192x24576xf16> {
  %p = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 72, 64>, schedule = "pingpong"}} : tensor<8192x4096xf16>, tensor<24576x4096xf16> -> tensor<8192x24576xf32>
  %c = axe.cast %p : tensor<8192x24576xf32> -> tensor<8192x24576xf16>
  return %c : tensor<8192x24576xf16>
}
