// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @scale(%{{.*}}: memref<?x128xf32>, %{{.*}}: index) threads(128) cluster(2, 1) {
axe.kernel @scale(%x: memref<?x128xf32>, %row: index) threads(128) cluster(2, 1) {
  // CHECK: axe.return
  axe.return
}

// CHECK-LABEL: axe.kernel @noted(%{{.*}}: f32 {axe.name = "alpha"}) threads(32) attributes {note} {
axe.kernel @noted(%alpha: f32 {axe.name = "alpha"}) threads(32) attributes {note} {
  axe.return
}
