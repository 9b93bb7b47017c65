// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules

// Copies of runs, copies that add, and hints to the L2 cache.
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#flat = #axe.layout<S[(64, 64) : (64, 1)]>

// CHECK-LABEL: kernel @runs
// A vector takes no tensor map.
// CHECK: axe.copy -> bulk.load
// CHECK-NEXT: | 512 bytes at global + 0 <-> shared + 0
// A tile does, unless the accelerator has no dimension left for it.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: | tensor map
// CHECK: axe.copy -> bulk.load
// CHECK-NEXT: not tma.load: the global memory has 6 dimensions
// CHECK-COUNT-4: | 32 bytes at global + {{[0-9]+}} <-> shared
// Part of the vector may be missing: a run is copied as a whole.
// CHECK: axe.copy -> tma.load
// CHECK-NEXT: not bulk.load: the box may reach outside its source, and a run is copied as a whole
// CHECK: axe.copy -> bulk.store
// CHECK-NEXT: | 512 bytes at global + 0 <-> shared + 0

// CHECK-LABEL: kernel @sums
// CHECK: axe.copy -> tma.store
// CHECK: axe.copy -> ld.red.scalar
// CHECK-NEXT: not tma.store: a stride of 136 bytes: expected a positive multiple of 16 below 2^40
// CHECK: axe.copy -> tma.store.staged
// CHECK: axe.copy -> red.scalar
// CHECK-NEXT: not tma.store.staged: sums of f64: expected f16, bf16, f32 or i32
// CHECK-NEXT: | 32 registers a thread, one by one

// CHECK: llvm.func @runs
// CHECK: %[[LAST:.*]] = arith.constant 1508705875169116160 : i64
// CHECK: nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} l2_cache_hint = %[[LAST]]
// CHECK: %[[FIRST:.*]] = arith.constant 1364590687093260288 : i64
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint = %[[FIRST]]
// CHECK: %[[NORMAL:.*]] = arith.constant 1152921504606846976 : i64
// CHECK: nvvm.cp.async.bulk.global.shared.cta %{{.*}}, %{{.*}}, %{{.*}} l2_cache_hint = %[[NORMAL]]
axe.kernel @runs(%v: memref<256xf16>, %x: memref<256x64xf16>, %d: memref<2x2x2x2x2x16xf16, strided<[4096, 1024, 512, 128, 32, 1]>>, %y: memref<256xf16>) threads(64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c2 = arith.constant 2 : index
  %block = gpu.block_id x
  %m = arith.muli %block, %c64 : index
  %b = arith.remui %block, %c2 : index
  %s = axe.alloc : memref<256xf16, #axe.space<shared>>
  %t = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %u = axe.alloc : memref<2x2x16xf16, #axe.space<shared>>
  %w = axe.alloc : memref<64xf16, #axe.space<shared>>
  %ring = axe.pipeline.create stages(1) : !axe.pipeline
  axe.scope warp [0, 1) {
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
    axe.copy async %v to %s signal %slot options = {l2 = "evict_last"} : memref<256xf16> to memref<256xf16, #axe.space<shared>>
    %tile = axe.slice %x[%m, %c0] : memref<256x64xf16> to memref<64x64xf16>
    axe.copy async %tile to %t signal %slot options = {l2 = "evict_first"} : memref<64x64xf16> to memref<64x64xf16, #tile, #axe.space<shared>>
    %box = axe.slice %d[%b, %b, %b, %c0, %c0, %c0] : memref<2x2x2x2x2x16xf16, strided<[4096, 1024, 512, 128, 32, 1]>> to memref<2x2x16xf16, strided<[128, 32, 1]>>
    axe.copy async %box to %u signal %slot : memref<2x2x16xf16, strided<[128, 32, 1]>> to memref<2x2x16xf16, #axe.space<shared>>
    %part = axe.slice %v[%m] : memref<256xf16> to memref<64xf16>
    axe.copy async %part to %w signal %slot : memref<64xf16> to memref<64xf16, #axe.space<shared>>
    axe.pipeline.commit %ring, %slot
  }
  axe.scope warp [1, 2) {
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot
    axe.copy async %s to %y options = {l2 = "evict_normal"} : memref<256xf16, #axe.space<shared>> to memref<256xf16>
    %group = axe.commit : !axe.token
    axe.wait
    axe.pipeline.release %ring, %slot
  }
  axe.return
}

#held = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>
// CHECK: llvm.func @sums
// CHECK: nvvm.cp.async.bulk.tensor.reduce {{.*}} {redKind = #nvvm.tma_redux_kind<add>}
// CHECK: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, f16
// CHECK: nvvm.cp.async.bulk.tensor.reduce
// CHECK: llvm.atomicrmw fadd {{.*}} : !llvm.ptr<1>, f64
axe.kernel @sums(%x: memref<64x64xf16>, %y: memref<64x64xf16, strided<[68, 1]>>, %z: memref<64x64xf64>) threads(128) {
  %s = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %f = axe.alloc : memref<64x64xf64, #flat, #axe.space<shared>>
  axe.copy async %s to %x accumulate : memref<64x64xf16, #tile, #axe.space<shared>> to memref<64x64xf16>
  axe.copy async %s to %y accumulate : memref<64x64xf16, #tile, #axe.space<shared>> to memref<64x64xf16, strided<[68, 1]>>
  %group = axe.commit : !axe.token
  axe.wait
  axe.scope warpgroup [0, 1) {
    %v = axe.copy %s : memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf16, #held>
    axe.copy %v to %x accumulate : tensor<64x64xf16, #held> to memref<64x64xf16>
    %w = axe.copy %f : memref<64x64xf64, #flat, #axe.space<shared>> -> tensor<64x64xf64, #held>
    axe.copy %w to %z accumulate : tensor<64x64xf64, #held> to memref<64x64xf64>
  }
  axe.return
}
