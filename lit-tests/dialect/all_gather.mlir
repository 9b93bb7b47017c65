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
