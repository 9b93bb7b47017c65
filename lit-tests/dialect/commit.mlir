// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @groups
axe.kernel @groups() threads(32) {
  // CHECK: axe.commit : !axe.token
  %token = axe.commit : !axe.token
  axe.return
}
