// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]>

// CHECK-LABEL: axe.kernel @copies
axe.kernel @copies(%x: memref<8x8xf16>, %z: f16) threads(32) cluster(2, 1, 1) {
  %s = axe.alloc : memref<8x8xf16, #axe.space<shared>>
  // CHECK: axe.copy async %{{.*}} to %{{.*}} : memref<8x8xf16> to memref<8x8xf16, #axe.space<shared>>
  axe.copy async %x to %s : memref<8x8xf16> to memref<8x8xf16, #axe.space<shared>>
  // CHECK: %[[F:.*]] = axe.copy %{{.*}} pad %{{.*}} : f16 : memref<8x8xf16, #axe.space<shared>> -> tensor<8x8xf16, #{{.*}}>
  %f = axe.copy %s pad %z : f16 : memref<8x8xf16, #axe.space<shared>> -> tensor<8x8xf16, #frag>
  // CHECK: axe.copy %[[F]] to %{{.*}} schedule = "ldst" options = {width = 4 : i64} : tensor<8x8xf16, #{{.*}}> to memref<8x8xf16, #axe.space<shared>>
  axe.copy %f to %s schedule = "ldst" options = {width = 4 : i64} : tensor<8x8xf16, #frag> to memref<8x8xf16, #axe.space<shared>>
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
  // CHECK: axe.copy async %{{.*}} to %{{.*}} signal %{{.*}} multicast : memref<8x8xf16>
  axe.copy async %x to %s signal %slot multicast : memref<8x8xf16> to memref<8x8xf16, #axe.space<shared>>
  // CHECK: axe.copy async %{{.*}} to %{{.*}} signal %{{.*}} multicast among [4, 2] : memref<8x8xf16>
  axe.copy async %x to %s signal %slot multicast among [4, 2] : memref<8x8xf16> to memref<8x8xf16, #axe.space<shared>>
  axe.pipeline.commit %ring, %slot
  // CHECK: axe.copy async %{{.*}} to %{{.*}} accumulate options = {l2 = "evict_first"} :
  axe.copy async %s to %x accumulate options = {l2 = "evict_first"} : memref<8x8xf16, #axe.space<shared>> to memref<8x8xf16>
  axe.return
}
