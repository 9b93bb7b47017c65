// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @peers
axe.kernel @peers(%rank: index) threads(128) cluster(2, 1, 1) {
  %s = axe.alloc : memref<8x64xf16, #axe.space<shared>>
  // CHECK: axe.peer %{{.*}} at %{{.*}} : memref<8x64xf16, #axe.space<shared>> to memref<8x64xf16, #axe.space<cluster_shared>>
  %0 = axe.peer %s at %rank : memref<8x64xf16, #axe.space<shared>> to memref<8x64xf16, #axe.space<cluster_shared>>
  axe.return
}
