// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @scopes
axe.kernel @scopes() threads(384) {
  // CHECK: axe.scope warpgroup [0, 1) registers(40) {
  axe.scope warpgroup [0, 1) registers(40) {
    // CHECK: axe.scope warp {
    axe.scope warp {
      // CHECK-NEXT: axe.barrier
      axe.barrier
    }
  }
  // CHECK: axe.scope warpgroup [1, 3) registers(232) attributes {note} {
  axe.scope warpgroup [1, 3) registers(232) attributes {note} {
  }
  axe.return
}
