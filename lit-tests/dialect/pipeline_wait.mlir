// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @ring
axe.kernel @ring(%a: index, %b: index) threads(128) {
  %ring = axe.pipeline.create stages(4) : !axe.pipeline
  // CHECK: %[[SLOT:.*]], %{{.*}} = axe.pipeline.wait %{{.*}} : !axe.slot
  %slot, %stage = axe.pipeline.wait %ring : !axe.slot
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[SLOT]]) -> (!axe.slot)
  %last = scf.for %i = %a to %b step %a iter_args(%before = %slot) -> (!axe.slot) {
    %next, %at = axe.pipeline.wait %ring : !axe.slot
    axe.pipeline.release %ring, %before
    scf.yield %next : !axe.slot
  }
  // CHECK: axe.pipeline.release %{{.*}}, %{{.*}}
  axe.pipeline.release %ring, %last
  axe.return
}
