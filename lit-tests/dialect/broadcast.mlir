// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%v: tensor<8xf32>, %b: tensor<32xf32>, %n: index) {
  // CHECK: axe.broadcast %{{.*}} dims [0] : tensor<8xf32> -> tensor<4x8xf32>
  %0 = axe.broadcast %v dims [0] : tensor<8xf32> -> tensor<4x8xf32>
  // CHECK: axe.broadcast %{{.*}} dims [0] sizes(%{{.*}}) : tensor<32xf32> -> tensor<?x32xf32>
  %1 = axe.broadcast %b dims [0] sizes(%n) : tensor<32xf32> -> tensor<?x32xf32>
  return
}
