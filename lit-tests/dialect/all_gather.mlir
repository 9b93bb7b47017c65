// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#one = #axe.layout<S[() : ()] + R[32 : 1@lane]>
#lanes = #axe.layout<S[8 : 1@lane] + R[4 : 8@lane]>

// CHECK-LABEL: axe.kernel @states
axe.kernel @states(%x: memref<1xf32>, %y: memref<1xf64>) threads(128) cluster(2, 1, 1) {
  // CHECK: %[[ALL:.*]] = axe.all_gather.create : memref<8x4xi32, #axe.space<shared>>
  %all = axe.all_gather.create : memref<8x4xi32, #axe.space<shared>>
  axe.barrier cluster
  axe.scope warp {
    %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
    %b = axe.copy %y : memref<1xf64> -> tensor<1xf64, #one>
    // CHECK: %{{.*}}:2 = axe.all_gather %{{.*}}, %{{.*}} through %[[ALL]] : tensor<1xf32, {{.*}}>, tensor<1xf64, {{.*}}> through memref<8x4xi32, #axe.space<shared>> -> tensor<1x8xf32, {{.*}}>, tensor<1x8xf64, {{.*}}>
    %as, %bs = axe.all_gather %a, %b through %all : tensor<1xf32, #one>, tensor<1xf64, #one> through memref<8x4xi32, #axe.space<shared>> -> tensor<1x8xf32, #lanes>, tensor<1x8xf64, #lanes>
  }
  axe.return
}

// Of two slots, once a turn of a loop.
// CHECK-LABEL: axe.kernel @turns
axe.kernel @turns(%x: memref<1xf32>, %n: index) threads(128) cluster(2, 1, 1) {
  // CHECK: %[[ALL:.*]] = axe.all_gather.create : memref<2x8x1xi32, #axe.space<shared>>
  %all = axe.all_gather.create : memref<2x8x1xi32, #axe.space<shared>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  axe.barrier cluster
  scf.for %i = %c0 to %n step %c1 {
    axe.scope warp {
      %a = axe.copy %x : memref<1xf32> -> tensor<1xf32, #one>
      // CHECK: axe.all_gather %{{.*}} through %[[ALL]] : tensor<1xf32, {{.*}}> through memref<2x8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, {{.*}}>
      %as = axe.all_gather %a through %all : tensor<1xf32, #one> through memref<2x8x1xi32, #axe.space<shared>> -> tensor<1x8xf32, #lanes>
    }
  }
  axe.return
}
