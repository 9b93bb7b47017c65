// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#eight = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>
#four = #axe.layout<S[4 : 1@lane] + R[8 : 4@lane]>

// In a cluster: a lane of each warp stores to each CTA, and all wait for the bytes.
// CHECK-LABEL: kernel @cluster
// CHECK: axe.all_gather -> st.async
// CHECK-NEXT: | st.async 2 words of each of 4 thread groups to each of 2 CTAs
// CHECK-NEXT: | mbarrier.try_wait
axe.kernel @cluster(%x: memref<1xf32>, %y: memref<8xf32>) threads(128) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<8x2xi32, #axe.space<shared>>
  axe.barrier cluster
  axe.scope warp {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
    %as, %bs = axe.all_gather %a, %a through %all : tensor<1xf32, #one>, tensor<1xf32, #one> through memref<8x2xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>, tensor<1x8xf32, #eight>
    %s = axe.reduce <add> %as dims [1] : tensor<1x8xf32, #eight> -> tensor<1xf32, #one>
  }
  axe.return
}

// In a CTA alone: through its own shared memory, with its barrier.
// CHECK-LABEL: kernel @cta
// CHECK: axe.all_gather -> st.shared
// CHECK-NEXT: not st.async: expected a cluster of 2 to 32 CTAs
// CHECK-NEXT: | st.shared 1 words of each of 4 thread groups
// CHECK-NEXT: | bar.sync
axe.kernel @cta(%x: memref<1xf16>) threads(128) {
  %all = axe.all_gather.create : memref<4x1xi32, #axe.space<shared>>
  axe.scope warp {
    %a = axe.copy %x : memref<1xf16> -> tensor<1xf16, #one>
    %as = axe.all_gather %a through %all : tensor<1xf16, #one> through memref<4x1xi32, #axe.space<shared>> -> tensor<1x4xf16, #four>
  }
  axe.return
}

// In a loop: turns take two slots, and the mbarriers count once more after each wait.
// CHECK-LABEL: kernel @turns
// CHECK: axe.all_gather -> st.async
// CHECK-NEXT: | 2 slots, one a turn
// CHECK-NEXT: | st.async 1 words of each of 4 thread groups to each of 2 CTAs
axe.kernel @turns(%x: memref<1xf32>, %n: index) threads(128) cluster(2, 1, 1) {
  %all = axe.all_gather.create : memref<2x8x1xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  axe.barrier cluster
  scf.for %i = %c0 to %n step %c1 {
    axe.scope warp {
      %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
      %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<2x8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #eight>
    }
  }
  axe.return
}

// CHECK-LABEL: kernel @turns_of_cta
// CHECK: axe.all_gather -> st.shared
// CHECK: | 2 slots, one a turn
axe.kernel @turns_of_cta(%x: memref<1xf16>, %n: index) threads(128) {
  %all = axe.all_gather.create : memref<2x4x1xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    axe.scope warp {
      %a = axe.copy %x : memref<1xf16> -> tensor<1xf16, #one>
      %as = axe.all_gather %a through %all : tensor<1xf16, #one> through memref<2x4x1xi32, #axe.space<shared>> -> tensor<1x4xf16, #four>
    }
  }
  axe.return
}

// CHECK-LABEL: gpu.func @cluster
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cluster.arrive
// CHECK: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32
// CHECK: mbarrier.try_wait.parity
// CHECK-NOT: nvvm.cluster.arrive
// CHECK-LABEL: gpu.func @cta
// CHECK-NOT: mbarrier
// CHECK: nvvm.barrier0
// CHECK-LABEL: gpu.func @turns
// CHECK-COUNT-2: nvvm.mbarrier.init
// CHECK-COUNT-2: nvvm.mbarrier.arrive.expect_tx
// CHECK: scf.for
// CHECK: nvvm.bar.warp.sync
// CHECK: st.async
// CHECK: mbarrier.try_wait.parity
// CHECK: mbarrier.arrive.expect_tx
