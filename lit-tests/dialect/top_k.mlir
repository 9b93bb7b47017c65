// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s
// RUN: axe-opt %s --canonicalize | FileCheck %s --check-prefix=DEAD

// CHECK-LABEL: @rows
func.func @rows(%x: tensor<?x128xbf16>, %y: tensor<2x3x1000xi32>) -> (tensor<?x8xbf16>, tensor<?x8xi32>, tensor<2x3x1xi32>, tensor<2x3x1xi64>) {
  // CHECK: axe.top_k %{{.*}} : tensor<?x128xbf16> -> tensor<?x8xbf16>, tensor<?x8xi32>
  %v, %i = axe.top_k %x : tensor<?x128xbf16> -> tensor<?x8xbf16>, tensor<?x8xi32>
  // CHECK: axe.top_k %{{.*}} {smallest} : tensor<2x3x1000xi32> -> tensor<2x3x1xi32>, tensor<2x3x1xi64>
  %w, %j = axe.top_k %y {smallest} : tensor<2x3x1000xi32> -> tensor<2x3x1xi32>, tensor<2x3x1xi64>
  return %v, %i, %w, %j : tensor<?x8xbf16>, tensor<?x8xi32>, tensor<2x3x1xi32>, tensor<2x3x1xi64>
}

// CHECK-LABEL: @kernel
axe.kernel @kernel(%x: memref<?x128xf32>, %v: memref<?x8xf32>, %i: memref<?x8xi64>) threads(256) {
  // CHECK: axe.top_k %{{.*}} to %{{.*}}, %{{.*}} schedule = "top_k.warp" : memref<?x128xf32> to memref<?x8xf32>, memref<?x8xi64>
  axe.top_k %x to %v, %i schedule = "top_k.warp" : memref<?x128xf32> to memref<?x8xf32>, memref<?x8xi64>
  axe.return
}

// Nothing reads it.
// DEAD-LABEL: @dead
// DEAD-NOT: axe.top_k
// DEAD: return
func.func @dead(%x: tensor<4x8xf32>) {
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}
