// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @boxes
axe.kernel @boxes(%x: memref<?x128xf32>, %row: index, %c0: index) threads(32) {
  // CHECK: axe.slice %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x128xf32> to memref<16x128xf32>
  %0 = axe.slice %x[%row, %c0] : memref<?x128xf32> to memref<16x128xf32>
  // A unit dimension is dropped.
  // CHECK: axe.slice %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x128xf32> to memref<128xf32>
  %1 = axe.slice %x[%row, %c0] : memref<?x128xf32> to memref<128xf32>
  axe.return
}
