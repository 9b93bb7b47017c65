// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @empty
axe.kernel @empty() threads(32) {
  // CHECK: axe.return {note}
  axe.return {note}
}
