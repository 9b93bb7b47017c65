// RUN: axe-opt %s | FileCheck %s
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s

// CHECK-LABEL: axe.kernel @waits
axe.kernel @waits() threads(32) {
  // CHECK: axe.wait{{$}}
  axe.wait
  // CHECK: axe.wait {pending = 1 : i64}
  axe.wait {pending = 1 : i64}
  axe.return
}

// CHECK-LABEL: func.func @products
func.func @products(%d: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: axe.wait %{{.*}} {pending = 1 : i64} : tensor<8x8xf32>
  %e = axe.wait %d {pending = 1 : i64} : tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}
