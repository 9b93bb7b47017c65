// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @ring
axe.kernel @ring() threads(128) {
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  // CHECK: %[[SLOT:.*]], %{{.*}} = axe.pipeline.acquire %{{.*}} : !axe.slot
  %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
  // CHECK: axe.pipeline.commit %{{.*}}, %[[SLOT]]
  axe.pipeline.commit %ring, %slot
  axe.return
}
