// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#all = #axe.layout<S[(8, 128) : (16@reg, 1@thread)]>
#part = #axe.layout<S[(4, 128) : (16@reg, 1@thread)]>

// CHECK-LABEL: axe.kernel @sums
axe.kernel @sums(%x: memref<8x128xf32>, %y: memref<8x128xi32>) threads(128) cluster(2, 1, 1) {
  // CHECK: %[[PARTS:.*]] = axe.reduce_scatter.create : memref<1x4x128xf32, #axe.space<shared>>
  %parts = axe.reduce_scatter.create : memref<1x4x128xf32, #axe.space<shared>>
  %more = axe.reduce_scatter.create : memref<1x4x128xi32, #axe.space<shared>>
  %a = axe.copy %x : memref<8x128xf32> -> tensor<8x128xf32, #all>
  // CHECK: axe.reduce_scatter <add> %{{.*}} dim 0 through %[[PARTS]] : tensor<8x128xf32, {{.*}}> through memref<1x4x128xf32, #axe.space<shared>> -> tensor<4x128xf32, {{.*}}>
  %s = axe.reduce_scatter <add> %a dim 0 through %parts : tensor<8x128xf32, #all> through memref<1x4x128xf32, #axe.space<shared>> -> tensor<4x128xf32, #part>
  %b = axe.copy %y : memref<8x128xi32> -> tensor<8x128xi32, #all>
  // CHECK: axe.reduce_scatter <xor>
  %t = axe.reduce_scatter <xor> %b dim 0 through %more : tensor<8x128xi32, #all> through memref<1x4x128xi32, #axe.space<shared>> -> tensor<4x128xi32, #part>
  axe.return
}
