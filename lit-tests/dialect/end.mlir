// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// It is there in the generic form, and not written in the custom one.
// CHECK-LABEL: axe.kernel @ends
axe.kernel @ends(%n: index) threads(32) {
  // CHECK: axe.scope warp {
  // CHECK-NEXT: }
  "axe.scope"() <{level = #axe<level warp>}> ({
    "axe.end"() : () -> ()
  }) : () -> ()
  // CHECK: axe.for_tiles {{.*}} {
  // CHECK-NEXT: }
  axe.for_tiles (%i, %j) in (%n, %n) raster(rows) {
    axe.end
  }
  axe.return
}
