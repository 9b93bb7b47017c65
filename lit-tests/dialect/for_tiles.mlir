// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @loops
axe.kernel @loops(%n: index) threads(256) {
  // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) raster(groups 8) {
  axe.for_tiles (%i, %j) in (%n, %n) raster(groups 8) {
    // CHECK: axe.barrier
    axe.barrier
  }
  // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}, %{{.*}}) raster(hilbert) {
  axe.for_tiles (%b, %i, %j) in (%n, %n, %n) raster(hilbert) {
  }
  // CHECK: axe.scope warpgroup {
  axe.scope warpgroup {
    // CHECK: axe.for_tiles (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) raster(snake 4) pingpong attributes {note} {
    axe.for_tiles (%i, %j) in (%n, %n) raster(snake 4) pingpong attributes {note} {
    }
  }
  axe.return
}
