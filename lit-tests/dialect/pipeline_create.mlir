// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @ring
axe.kernel @ring() threads(128) {
  // CHECK: axe.pipeline.create stages(4) : !axe.pipeline
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  axe.return
}
