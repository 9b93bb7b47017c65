// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules

#all = #axe.layout<S[(8, 128) : (1@reg, 1@thread)]>
#part = #axe.layout<S[(4, 128) : (1@reg, 1@thread)]>
#wide = #axe.layout<S[(4, 16, 32) : (1@warp, 1@reg, 1@lane)]>
#narrow = #axe.layout<S[(4, 4, 32) : (1@warp, 1@reg, 1@lane)]>

// Each thread sends half of its registers to the other CTA. Once in a kernel, nobody waits for what was read before.
// CHECK-LABEL: kernel @once
// CHECK: axe.reduce_scatter -> st.async
// CHECK-NEXT: | st.async 4 elements of each of 128 threads to each of 1 other CTAs
// CHECK-NEXT: | mbarrier.try_wait
axe.kernel @once(%x: memref<8x128xf32>, %y: memref<4x128xf32>) threads(128) cluster(2, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<1x4x128xf32, #axe.space<shared>>
  %a = axe.copy %x : memref<8x128xf32> -> tensor<8x128xf32, #all>
  %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<8x128xf32, #all> through memref<1x4x128xf32, #axe.space<shared>> -> tensor<4x128xf32, #part>
  axe.copy %s to %y : tensor<4x128xf32, #part> to memref<4x128xf32>
  axe.return
}

// In a loop: but the first time, all CTAs have read what was sent before.
// CHECK-LABEL: kernel @again
// CHECK: axe.reduce_scatter -> st.async
// CHECK-NEXT: | st.async 4 elements of each of 128 threads to each of 3 other CTAs
axe.kernel @again(%x: memref<4x512xi32>, %y: memref<4x128xi32>, %n: index) threads(128) cluster(4, 1, 1) {
  %parts = axe.reduce_scatter.create : memref<3x4x128xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = axe.copy %x : memref<4x512xi32> -> tensor<4x512xi32, #wide>
    %s = axe.reduce_scatter <max> %a dim 1 through %parts : tensor<4x512xi32, #wide> through memref<3x4x128xi32, #axe.space<shared>> -> tensor<4x128xi32, #narrow>
    axe.copy %s to %y : tensor<4x128xi32, #narrow> to memref<4x128xi32>
  }
  axe.return
}

// CHECK-LABEL: gpu.func @once
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK: nvvm.cluster.wait
// CHECK-NOT: acquire.cluster
// CHECK: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32
// CHECK: mbarrier.try_wait.parity
// CHECK: arith.addf
// CHECK-NOT: nvvm.cluster.arrive
// CHECK-LABEL: func @again
// CHECK: scf.for
// CHECK: scf.if
// CHECK: mbarrier.arrive.release.cluster.shared::cluster
// CHECK: mbarrier.try_wait.parity.acquire.cluster
// CHECK: st.async
// CHECK: arith.maxsi
// CHECK-NOT: nvvm.cluster.arrive
