// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: func.func @maps
func.func @maps(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: axe.map ins(%{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  %0 = axe.map ins(%x, %y : tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%u: f32, %v: f32):
    %s = arith.addf %u, %v : f32
    axe.yield %s : f32
  }
  return %0 : tensor<?x32xf32>
}
