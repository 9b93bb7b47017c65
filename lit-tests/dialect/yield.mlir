// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @yields
func.func @yields(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: axe.map
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    // CHECK: axe.yield %{{.*}} : f32
    axe.yield %u : f32
  }
  return %0 : tensor<4xf32>
}
