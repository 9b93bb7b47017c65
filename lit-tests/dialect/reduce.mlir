// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<32x?xf32>, %i: tensor<4x8xi32>) -> tensor<?xf32> {
  // CHECK: axe.reduce <add> %{{.*}} dims [0] : tensor<32x?xf32> -> tensor<?xf32>
  %0 = axe.reduce <add> %x dims [0] : tensor<32x?xf32> -> tensor<?xf32>
  // CHECK: axe.reduce <and> %{{.*}} dims [0, 1] schedule = "shuffle" : tensor<4x8xi32> -> tensor<i32>
  %1 = axe.reduce <and> %i dims [0, 1] schedule = "shuffle" : tensor<4x8xi32> -> tensor<i32>
  return %0 : tensor<?xf32>
}
