// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @ring
axe.kernel @ring() threads(128) {
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  %slot, %stage = axe.pipeline.wait %ring : !axe.slot
  // CHECK: axe.pipeline.release %{{.*}}, %{{.*}} {note}
  axe.pipeline.release %ring, %slot {note}
  axe.return
}
