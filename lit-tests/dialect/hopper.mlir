// Roles, pipelines, loops over tiles and asynchronous operators.
// RUN: axe-opt %s | axe-opt | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#acc = #axe.layout<S[(2, 4, 2, 8, 1, 4, 2) : (4@warp, 1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

// CHECK-LABEL: axe.kernel @roles
axe.kernel @roles(%a: memref<256x512xf16>) threads(384) cluster(2, 1, 1) {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %s = axe.alloc : memref<128x64xf16, #axe.space<shared>>
  %w = axe.alloc : memref<8x64xf16, #axe.space<shared>>
  // CHECK: %[[RING:.*]] = axe.pipeline.create stages(4) : !axe.pipeline
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  // CHECK: axe.scope warpgroup [0, 1) registers(40) {
  axe.scope warpgroup [0, 1) registers(40) {
    // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) raster(groups 8) {
    axe.for_tiles (%i, %j) in (%c2, %c2) raster(groups 8) {
      // CHECK: %[[SLOT:.*]], %{{.*}} = axe.pipeline.acquire %[[RING]] : !axe.slot
      %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
      %t = axe.slice %a[%c0, %c0] : memref<256x512xf16> to memref<128x64xf16, #axe.layout<S[(128, 64) : (512, 1)]>>
      // CHECK: axe.copy async %{{.*}} to %{{.*}} signal %[[SLOT]] multicast :
      axe.copy async %t to %s signal %slot multicast : memref<128x64xf16, #axe.layout<S[(128, 64) : (512, 1)]>> to memref<128x64xf16, #axe.space<shared>>
      // CHECK: axe.copy async %{{.*}} to %{{.*}} accumulate options = {l2 = "evict_first"} :
      axe.copy async %s to %t accumulate options = {l2 = "evict_first"} : memref<128x64xf16, #axe.space<shared>> to memref<128x64xf16, #axe.layout<S[(128, 64) : (512, 1)]>>
      // CHECK: axe.pipeline.commit %[[RING]], %[[SLOT]]
      axe.pipeline.commit %ring, %slot
    }
    // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}, %{{.*}}) raster(hilbert) {
    axe.for_tiles (%b, %i, %j) in (%c2, %c2, %c2) raster(hilbert) {
    }
  }
  // CHECK: axe.scope warpgroup [1, 3) registers(232) {
  axe.scope warpgroup [1, 3) registers(232) {
    // CHECK: %[[FULL:.*]], %{{.*}} = axe.pipeline.wait %[[RING]] : !axe.slot
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    // CHECK: %[[D:.*]] = axe.gemm async
    %d = axe.gemm async %s, %w {trans_b} : memref<128x64xf16, #axe.space<shared>>, memref<8x64xf16, #axe.space<shared>> -> tensor<128x8xf32, #acc>
    // CHECK: axe.wait %[[D]] {pending = 1 : i64} : tensor<128x8xf32,
    %e = axe.wait %d {pending = 1 : i64} : tensor<128x8xf32, #acc>
    // CHECK: axe.pipeline.release %[[RING]], %[[FULL]]
    axe.pipeline.release %ring, %slot
    // CHECK: axe.barrier async
    axe.barrier async
  }
  // CHECK: axe.scope warpgroup {
  axe.scope warpgroup {
    // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) raster(snake 4) pingpong attributes {note} {
    axe.for_tiles (%i, %j) in (%c2, %c2) raster(snake 4) pingpong attributes {note} {
    }
  }
  // CHECK: axe.barrier cluster
  axe.barrier cluster
  // CHECK: axe.peer %{{.*}} at %{{.*}} : memref<8x64xf16, #axe.space<shared>> to memref<8x64xf16, #axe.space<cluster_shared>>
  %there = axe.peer %w at %c0 : memref<8x64xf16, #axe.space<shared>> to memref<8x64xf16, #axe.space<cluster_shared>>
  // CHECK: axe.barrier async cluster
  axe.barrier async cluster
  axe.return
}

// The group is left out where it is 1, also where it is given.
// CHECK-LABEL: axe.kernel @places
axe.kernel @places(%n: index, %rows: index, %columns: index) threads(32) {
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS:.*]], %[[COLUMNS:.*]]) raster(rows){{$}}
  %i0, %j0 = axe.tile_at %n in (%rows, %columns) raster(rows)
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(columns){{$}}
  %i1, %j1 = axe.tile_at %n in (%rows, %columns) raster(columns 1)
  // CHECK: %[[I:.*]], %[[J:.*]] = axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(groups 8){{$}}
  %i2, %j2 = axe.tile_at %n in (%rows, %columns) raster(groups 8)
  // CHECK: axe.tile_at %[[I]] in (%[[J]], %[[COLUMNS]]) raster(snake) {note}{{$}}
  %i3, %j3 = axe.tile_at %i2 in (%j2, %columns) raster(snake) {note}
  // CHECK: axe.tile_at %{{.*}} in (%[[ROWS]], %[[COLUMNS]]) raster(hilbert){{$}}
  %i4, %j4 = "axe.tile_at"(%n, %rows, %columns) <{raster = #axe<raster_order hilbert>}> : (index, index, index) -> (index, index)
  axe.return
}
