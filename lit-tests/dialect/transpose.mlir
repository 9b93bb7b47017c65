// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @transposes
func.func @transposes(%x: tensor<?x32xf32>) -> tensor<32x?xf32> {
  // CHECK: axe.transpose %{{.*}} [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  %0 = axe.transpose %x [1, 0] : tensor<?x32xf32> -> tensor<32x?xf32>
  return %0 : tensor<32x?xf32>
}
