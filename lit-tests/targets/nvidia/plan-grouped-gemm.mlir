// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a | axe-opt | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: axe-opt %s --axe-nvidia="chip=sm_90a until=dispatched" -o %t.mlir
// RUN: FileCheck %s --check-prefix=BOUND < %t.mlir
// RUN: axe-opt %t.mlir --axe-verify-schedules -o /dev/null
// RUN: axe-opt %s --axe-nvidia="chip=sm_90a until=ptx" -o %t.all

// EXPLAIN: 8192 x 768 x 2048 of bf16 in 64 groups
// EXPLAIN: decomposition = "grouped"

// As many CTAs as run at once, whatever the groups are.
// CHECK-LABEL: func.func @experts
// CHECK: arith.minui %{{.*}}, %c132
// CHECK: axe.launch @experts_0_grouped_gemm
// CHECK-LABEL: axe.kernel @experts_0_grouped_gemm
// The warp that copies walks the groups: the end of one, then its tiles, of which this CTA has each so manieth.
// CHECK: axe.scope warp [0, 1)
// CHECK: scf.for {{.*}} iter_args(%[[BEGIN:.*]] = %{{.*}}, %[[NEXT:.*]] = %{{.*}}) -> (index, index)
// CHECK: %[[OFFSET:.*]] = memref.load %arg2
// CHECK: arith.minsi
// CHECK: %[[END:.*]] = arith.maxsi %{{.*}}, %[[BEGIN]]
// CHECK: scf.for %{{.*}} = %[[NEXT]] to %[[COUNT:.*]] step %grid_dim_x
// CHECK: axe.tile_at
// CHECK: scf.for
// CHECK: axe.slice %arg1[%{{.*}}, %{{.*}}, %{{.*}}] : memref<64x768x2048xbf16>
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[COUNT]]
// CHECK: scf.yield %[[END]], %[[LEFT]]
// Those that multiply do it for groups that have a matrix, and store no row behind the group's end.
// CHECK: axe.scope warpgroup [1,
// CHECK: memref.load %arg2
// CHECK: scf.if
// CHECK: axe.gemm async
// CHECK: } else {
// CHECK: axe.fill
// CHECK: scf.if
// CHECK: axe.slice %arg3
// CHECK: } else {
// CHECK: %[[ROWS:.*]] = memref.subview %arg3[0, 0] [%{{.*}}, 768] [1, 1] : memref<8192x768xbf16> to memref<?x768xbf16, strided<[768, 1]>>
// CHECK: axe.slice %[[ROWS]]

// What lies in the group leaves by a tensor map, the rest by its threads.
// BOUND: axe.copy {{.*}} schedule = "tma.store.staged"
// BOUND: axe.copy {{.*}} schedule = "st.staged"
func.func @experts(%x: tensor<8192x2048xbf16>, %w: tensor<64x768x2048xbf16>, %o: tensor<65xi32>) -> tensor<8192x768xbf16> {
  %y = axe.grouped_gemm %x, %w, %o {trans_b} : tensor<8192x2048xbf16>, tensor<64x768x2048xbf16>, tensor<65xi32> -> tensor<8192x768xbf16>
  return %y : tensor<8192x768xbf16>
}

// Rows and groups that are counted at run time.
// CHECK-LABEL: axe.kernel @counted_0_grouped_gemm
// CHECK: memref.dim
// CHECK: memref.load %arg2{{.*}} : memref<?xi32>
// CHECK: memref.subview %arg3{{.*}} : memref<?x96xf16> to memref<?x96xf16, strided<[96, 1]>>
func.func @counted(%x: tensor<?x128xf16>, %w: tensor<?x128x96xf16>, %o: tensor<?xi32>) -> tensor<?x96xf16> {
  %y = axe.grouped_gemm %x, %w, %o : tensor<?x128xf16>, tensor<?x128x96xf16>, tensor<?xi32> -> tensor<?x96xf16>
  return %y : tensor<?x96xf16>
}

// CHECK-LABEL: axe.kernel @planned_0_grouped_gemm
// CHECK-SAME: threads(384)
// CHECK: axe.pipeline.create stages(3)
func.func @planned(%x: tensor<300x128xf16>, %w: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf32> {
  %y = axe.grouped_gemm %x, %w, %o {axe.plan = {tile = array<i64: 128, 64, 64>, stages = 3 : i64, decomposition = "grouped"}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf32>
  return %y : tensor<300x96xf32>
}
