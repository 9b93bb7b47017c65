// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @parts
axe.kernel @parts() threads(128) cluster(4, 1, 1) {
  // CHECK: axe.reduce_scatter.create : memref<3x64x16xf32, #axe.space<shared>>
  %parts = axe.reduce_scatter.create : memref<3x64x16xf32, #axe.space<shared>>
  axe.return
}
