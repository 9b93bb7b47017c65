// Products with factors that are nearly always 1: warps that have no other factor skip them.
// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s

#rows = #axe.layout<S[(4, 32, 4) : (1@warp, 1@lane, 1@reg)]>
#sums = #axe.layout<S[4 : 1@warp] + R[32 : 1@lane]>

// CHECK-LABEL: kernel @rescale
// CHECK: axe.map -> rescale
// CHECK: %[[CHANGES:.*]] = nvvm.vote.sync any
// CHECK: scf.if %[[CHANGES]]
// CHECK-COUNT-4: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: } else {
// CHECK-NOT: arith.mulf
axe.kernel @rescale(%x: memref<4x128xf32>, %z: f32) threads(128) {
  %v = axe.copy %x : memref<4x128xf32> -> tensor<4x128xf32, #rows>
  %f = axe.fill %z : f32 -> tensor<4xf32, #sums>
  %b = axe.broadcast %f dims [1] : tensor<4xf32, #sums> -> tensor<4x128xf32, #rows>
  %m = axe.map ins(%v, %b : tensor<4x128xf32, #rows>, tensor<4x128xf32, #rows>) -> tensor<4x128xf32, #rows> schedule = "rescale" {
  ^bb0(%u: f32, %w: f32):
    %p = arith.mulf %u, %w : f32
    axe.yield %p : f32
  }
  axe.copy %m to %x : tensor<4x128xf32, #rows> to memref<4x128xf32>
  axe.return
}
