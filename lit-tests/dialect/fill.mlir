// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

#frag = #axe.layout<S[(8, 4, 2) : (4@lane, 1@lane, 1@reg)]>

// CHECK-LABEL: func.func @fills
func.func @fills(%x: memref<8x8xf16, #axe.space<shared>>, %z: f16, %n: index) {
  // CHECK: axe.fill %{{.*}} : f16 -> tensor<8x8xf16, #{{.*}}>
  %0 = axe.fill %z : f16 -> tensor<8x8xf16, #frag>
  // CHECK: axe.fill %{{.*}} sizes(%{{.*}}) : f16 -> tensor<?x8xf16>
  %1 = axe.fill %z sizes(%n) : f16 -> tensor<?x8xf16>
  // CHECK: axe.fill %{{.*}} to %{{.*}} schedule = "st" : f16 to memref<8x8xf16, #axe.space<shared>>
  axe.fill %z to %x schedule = "st" : f16 to memref<8x8xf16, #axe.space<shared>>
  return
}
