// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @rows
axe.kernel @rows() threads(128) {
  // CHECK: axe.all_gather.create : memref<4x2xi32, #axe.space<shared>>
  %all = axe.all_gather.create : memref<4x2xi32, #axe.space<shared>>
  axe.return
}

// CHECK-LABEL: axe.kernel @slots
axe.kernel @slots() threads(128) {
  // CHECK: axe.all_gather.create : memref<2x4x2xi32, #axe.space<shared>>
  %all = axe.all_gather.create : memref<2x4x2xi32, #axe.space<shared>>
  axe.return
}
