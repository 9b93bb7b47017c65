// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules | FileCheck %s

// Roles: each is a range of warps under a condition that is the same in all lanes; their budgets move registers. A stage has a barrier
// that is full after the producer's arrivals and one that is empty after one arrival a warp of the consumers.
#stage = #axe.layout<S[(16, 64) : (64, 1)]>
#ring = #axe.layout<S[(3, 16, 64) : (1024, 64, 1)]>
#wide = #axe.layout<S[(4, 4, 32, 2) : (1@warp, 2@reg, 1@lane, 1@reg)]>
#tall = #axe.layout<S[(16, 8, 8) : (1@lane, 1@warp, 1@reg)] + R[2 : 16@lane]>

// CHECK-LABEL: gpu.func @stores
// ptxas takes budgets where it knows the registers at entry.
// CHECK-SAME: nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 384>
// The warp's number is read from one lane.
// CHECK: %[[OWN:.*]] = arith.divui
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[OWN]],
// CHECK: %[[ELECTED:.*]] = nvvm.elect.sync
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[WARP]], %{{.*}}
// CHECK: %[[LEADER:.*]] = arith.andi %[[FIRST]], %[[ELECTED]]
// Four warps fill a stage by stores of their own, eight empty it.
// CHECK: %[[RING:.*]] = llvm.getelementptr %{{.*}}[12288]
// CHECK: scf.if %[[LEADER]]
// CHECK: %[[FULL:.*]] = arith.constant 4 : i32
// CHECK: nvvm.mbarrier.init %[[RING]], %[[FULL]]
// CHECK: %[[EMPTY:.*]] = llvm.getelementptr %[[RING]][24]
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK: nvvm.mbarrier.init %[[EMPTY]], %[[EIGHT]]
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.barrier0
// The producer gives registers back.
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: %[[PRODUCES:.*]] = arith.cmpi slt, %[[WARP]], %[[FOUR]]
// CHECK: scf.if %[[PRODUCES]]
// CHECK: nvvm.setmaxregister decrease 40
// A producer waits for the phase before the one it is in; all lanes have stored when one arrives.
// CHECK: nvvm.bar.warp.sync
// CHECK: %[[PARITY:.*]] = arith.xori
// CHECK: llvm.inline_asm has_side_effects {{.*}}mbarrier.try_wait.parity{{.*}} %{{.*}}, %[[PARITY]] :
// CHECK-NOT: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.bar.warp.sync
// CHECK: %[[ARRIVES:.*]] = nvvm.elect.sync
// CHECK: llvm.inline_asm has_side_effects "@$1 mbarrier.arrive.shared::cta{{.*}} %{{.*}}, %[[ARRIVES]] :
// The consumers take them.
// CHECK: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK: %[[CONSUMES:.*]] = arith.cmpi slt, %[[THREE]], %[[WARP]]
// CHECK: scf.if %[[CONSUMES]]
// CHECK: nvvm.setmaxregister increase 232
// CHECK: mbarrier.try_wait.parity
// CHECK: nvvm.bar.warp.sync
// CHECK: @$1 mbarrier.arrive
axe.kernel @stores(%x: memref<?x64xf32>, %n: index) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %s = axe.alloc : memref<3x16x64xf32, #ring, #axe.space<shared>>
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) registers(40) {
    scf.for %i = %c0 to %n step %c1 {
      %m = arith.muli %i, %c16 : index
      %t = axe.slice %x[%m, %c0] : memref<?x64xf32> to memref<16x64xf32>
      %v = axe.copy %t : memref<16x64xf32> -> tensor<16x64xf32, #wide>
      %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
      %to = axe.slice %s[%stage, %c0, %c0] : memref<3x16x64xf32, #ring, #axe.space<shared>> to memref<16x64xf32, #stage, #axe.space<shared>>
      axe.copy %v to %to : tensor<16x64xf32, #wide> to memref<16x64xf32, #stage, #axe.space<shared>>
      axe.pipeline.commit %ring, %slot
    }
  }
  axe.scope warpgroup [1, 3) registers(232) {
    scf.for %i = %c0 to %n step %c1 {
      %slot, %stage = axe.pipeline.wait %ring : !axe.slot
      %from = axe.slice %s[%stage, %c0, %c0] : memref<3x16x64xf32, #ring, #axe.space<shared>> to memref<16x64xf32, #stage, #axe.space<shared>>
      %v = axe.copy %from : memref<16x64xf32, #stage, #axe.space<shared>> -> tensor<16x64xf32, #tall>
      axe.pipeline.release %ring, %slot
    }
  }
  axe.return
}

// Copies that signal arrive by their bytes: one arrival, of the thread that asks for them.
// CHECK-LABEL: llvm.func @copies
// CHECK-NOT: nvvm.minctasm
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ONE]]
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[FOUR]]
// CHECK: %[[BYTES:.*]] = arith.constant 2048 : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT: mbarrier.arrive.shared::cta
// CHECK: scf.yield
// CHECK: @$1 mbarrier.arrive
axe.kernel @copies(%x: memref<16x32xf32>) threads(256) {
  %s = axe.alloc : memref<16x32xf32, #axe.layout<S[512 : 1]>, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.copy async %x to %s signal %slot : memref<16x32xf32> to memref<16x32xf32, #axe.layout<S[512 : 1]>, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warpgroup [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

// A barrier of the CTA, of a warp, and of others by numbers that are known: one for the same warps, and one for each of teams side by side.
// CHECK-LABEL: gpu.func @barriers
// CHECK: nvvm.barrier0
// CHECK: nvvm.barrier id = %c1_i32{{(_[0-9]+)?}} number_of_threads = %c256_i32
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.barrier id = %c1_i32{{(_[0-9]+)?}} number_of_threads = %c256_i32
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.barrier id = %c2_i32{{(_[0-9]+)?}} number_of_threads = %c96_i32
// CHECK: nvvm.barrier id = %c3_i32{{(_[0-9]+)?}} number_of_threads = %c96_i32
// CHECK: nvvm.barrier id = %c4_i32{{(_[0-9]+)?}} number_of_threads = %c96_i32
// CHECK-NOT: nvvm.barrier
// CHECK: gpu.return
axe.kernel @barriers() threads(384) {
  axe.barrier
  axe.scope warpgroup [1, 3) {
    axe.barrier
    axe.barrier async
    axe.scope warp {
      axe.barrier
    }
  }
  axe.scope warpgroup {
    axe.scope warp [1, 4) {
      axe.barrier
    }
  }
  axe.return
}

// Tiles: the block's number, the grid's size as the step, and the place by the order.
// CHECK-LABEL: gpu.func @rows
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[BLOCK]]
// CHECK: %[[GRID:.*]] = gpu.grid_dim x
// CHECK: %[[STEP:.*]] = arith.index_cast %[[GRID]]
// CHECK: scf.for %[[TILE:.*]] = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK-DAG: arith.divui %[[TILE]]
// CHECK-DAG: arith.remui %[[TILE]]
axe.kernel @rows(%n: index) threads(32) {
  %c8 = arith.constant 8 : index
  axe.for_tiles (%i, %j) in (%n, %c8) raster(rows) {
    axe.barrier
  }
  axe.return
}

// The last group has the rows that are left, and every other group goes back.
// CHECK-LABEL: gpu.func @snake
// CHECK: scf.for %[[TILE:.*]] =
// CHECK: %[[GROUP:.*]] = arith.divui %[[TILE]]
// CHECK: %[[ROWS:.*]] = arith.minsi
// CHECK: arith.remui %{{.*}}, %[[ROWS]]
// CHECK: arith.andi %[[GROUP]]
// CHECK: arith.select
axe.kernel @snake(%n: index) threads(32) {
  %c8 = arith.constant 8 : index
  axe.for_tiles (%i, %j) in (%n, %c8) raster(snake 4) {
    axe.barrier
  }
  axe.return
}

// Three levels of quadrants, each chosen among four without a branch.
// CHECK-LABEL: gpu.func @hilbert
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: arith.select
// CHECK: gpu.return
axe.kernel @hilbert() threads(32) {
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  axe.for_tiles (%i, %j) in (%c5, %c8) raster(hilbert) {
    axe.barrier
  }
  axe.return
}

// The place of one tile by its number, with the arithmetic of the loops but without one.
// CHECK-LABEL: gpu.func @place_by_rows
// CHECK: arith.index_cast %arg2 : i64 to index
// CHECK: %[[TILE:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[ROWS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[COLUMNS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-DAG: arith.divui %[[TILE]], %[[COLUMNS]] : i32
// CHECK-DAG: arith.remui %[[TILE]], %[[COLUMNS]] : i32
// CHECK-NOT: scf.for
axe.kernel @place_by_rows(%n: index, %rows: index, %columns: index) threads(32) {
  %i, %j = axe.tile_at %n in (%rows, %columns) raster(rows)
  axe.return
}

// CHECK-LABEL: gpu.func @place_by_columns
// CHECK: arith.index_cast %arg2 : i64 to index
// CHECK: %[[TILE:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[ROWS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[COLUMNS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-DAG: arith.divui %[[TILE]], %[[ROWS]] : i32
// CHECK-DAG: arith.remui %[[TILE]], %[[ROWS]] : i32
// CHECK-NOT: scf.for
axe.kernel @place_by_columns(%n: index, %rows: index, %columns: index) threads(32) {
  %i, %j = axe.tile_at %n in (%rows, %columns) raster(columns)
  axe.return
}

// CHECK-LABEL: gpu.func @place_by_groups
// CHECK: arith.index_cast %arg2 : i64 to index
// CHECK: %[[TILE:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[ROWS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[COLUMNS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[AREA:.*]] = arith.muli %[[COLUMNS]], %{{.*}} : i32
// CHECK: %[[GROUP:.*]] = arith.divui %[[TILE]], %[[AREA]] : i32
// CHECK: %[[HEIGHT:.*]] = arith.minsi
// CHECK: arith.remui %{{.*}}, %[[HEIGHT]]
// CHECK: arith.divui %{{.*}}, %[[HEIGHT]]
// CHECK-NOT: arith.select
// CHECK: gpu.return
axe.kernel @place_by_groups(%n: index, %rows: index, %columns: index) threads(32) {
  %i, %j = axe.tile_at %n in (%rows, %columns) raster(groups 4)
  axe.return
}

// CHECK-LABEL: gpu.func @place_by_snake
// CHECK: arith.index_cast %arg2 : i64 to index
// CHECK: %[[TILE:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[ROWS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[COLUMNS:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[AREA:.*]] = arith.muli %[[COLUMNS]], %{{.*}} : i32
// CHECK: %[[GROUP:.*]] = arith.divui %[[TILE]], %[[AREA]] : i32
// CHECK: %[[HEIGHT:.*]] = arith.minsi
// CHECK: arith.remui %{{.*}}, %[[HEIGHT]]
// CHECK: arith.divui %{{.*}}, %[[HEIGHT]]
// CHECK: arith.andi %[[GROUP]]
// CHECK: arith.select
// CHECK-NOT: scf.for
axe.kernel @place_by_snake(%n: index, %rows: index, %columns: index) threads(32) {
  %i, %j = axe.tile_at %n in (%rows, %columns) raster(snake 4)
  axe.return
}

// CHECK-LABEL: gpu.func @place_on_the_curve
// CHECK-NOT: scf.for
// CHECK-NOT: scf.if
// CHECK: arith.select
// CHECK: gpu.return
axe.kernel @place_on_the_curve(%n: index) threads(32) {
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %i, %j = axe.tile_at %n in (%c5, %c8) raster(hilbert)
  axe.return
}

// What another CTA stored, once all have.
// CHECK-LABEL: gpu.func @exchange
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
#four = #axe.layout<S[(32, 4) : (1@lane, 1@reg)]>
axe.kernel @exchange(%x: memref<128xf32>, %y: memref<128xf32>) threads(32) cluster(2, 1, 1) {
  %c1 = arith.constant 1 : index
  %s = axe.alloc : memref<128xf32, #axe.space<shared>>
  %v = axe.copy %x : memref<128xf32> -> tensor<128xf32, #four>
  axe.copy %v to %s : tensor<128xf32, #four> to memref<128xf32, #axe.space<shared>>
  axe.barrier cluster
  %rank = gpu.cluster_block_id x
  %other = arith.subi %c1, %rank : index
  %t = axe.peer %s at %other : memref<128xf32, #axe.space<shared>> to memref<128xf32, #axe.space<cluster_shared>>
  %w = axe.copy %t : memref<128xf32, #axe.space<cluster_shared>> -> tensor<128xf32, #four>
  axe.copy %w to %y : tensor<128xf32, #four> to memref<128xf32>
  axe.return
}

// A warp that releases what it fills cannot stay until others have: all threads of the cluster meet at the end.
// CHECK-LABEL: llvm.func @fills_and_releases
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK: multicast_mask
// CHECK: nvvm.cluster.arrive{{$}}
// CHECK: nvvm.cluster.wait
// CHECK: llvm.return
axe.kernel @fills_and_releases(%x: memref<16x32xf32>) threads(128) cluster(2, 1, 1) {
  %s = axe.alloc : memref<16x32xf32, #axe.layout<S[512 : 1]>, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.copy async %x to %s signal %slot multicast : memref<16x32xf32> to memref<16x32xf32, #axe.layout<S[512 : 1]>, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  %slot, %stage = axe.pipeline.wait %ring : !axe.slot
  axe.pipeline.release %ring, %slot
  axe.return
}

// Teams that take turns at tiles: the second begins a tile later, and both skip a tile at a time. A stage is given back by the warps of one
// team. A team takes its tile's stages between a barrier that the team before arrives at and one at which it lets the next go on; the last
// one begins, and whose turn it would be at the end waits.
// CHECK-LABEL: gpu.func @turns
// CHECK: %[[EMPTY:.*]] = arith.constant 4 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[EMPTY]]
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[TEAM:.*]] = arith.divui
// CHECK: %[[TILES:.*]] = arith.muli %[[TEAM]], %[[GRID:.*]] :
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[TILES]]
// CHECK: arith.cmpi eq, %[[TEAM]], %c1_i32
// CHECK: llvm.inline_asm has_side_effects "@$0 bar.arrive 1, 256;
// CHECK: %[[STEP:.*]] = arith.muli %[[GRID]], %c2_i32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK: llvm.inline_asm has_side_effects "@$0 bar.sync 1, 256;\0A@$1 bar.sync 2, 256;
// CHECK: mbarrier.try_wait
// CHECK: llvm.inline_asm has_side_effects "@$0 bar.arrive 2, 256;\0A@$1 bar.arrive 1, 256;
// CHECK: scf.yield
// CHECK: bar.sync 1, 256;\0A@$1 bar.sync 2, 256;
// CHECK: bar.arrive 2, 256;
axe.kernel @turns(%x: memref<?x64xf32>, %n: index) threads(384) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %s = axe.alloc : memref<3x16x64xf32, #ring, #axe.space<shared>>
  %ring = axe.pipeline.create stages(3) : !axe.pipeline
  axe.scope warpgroup [0, 1) registers(40) {
    axe.for_tiles (%i, %j) in (%n, %c1) raster(rows) {
      scf.for %k = %c0 to %c5 step %c1 {
        %t = axe.slice %x[%i, %c0] : memref<?x64xf32> to memref<16x64xf32>
        %v = axe.copy %t : memref<16x64xf32> -> tensor<16x64xf32, #wide>
        %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
        %to = axe.slice %s[%stage, %c0, %c0] : memref<3x16x64xf32, #ring, #axe.space<shared>> to memref<16x64xf32, #stage, #axe.space<shared>>
        axe.copy %v to %to : tensor<16x64xf32, #wide> to memref<16x64xf32, #stage, #axe.space<shared>>
        axe.pipeline.commit %ring, %slot
      }
    }
  }
  axe.scope warpgroup [1, 3) registers(232) {
    axe.scope warpgroup {
      axe.for_tiles (%i, %j) in (%n, %c1) raster(rows) pingpong {
        scf.for %k = %c0 to %c5 step %c1 {
          %slot, %stage = axe.pipeline.wait %ring : !axe.slot
          axe.pipeline.release %ring, %slot
        }
      }
    }
  }
  axe.return
}
