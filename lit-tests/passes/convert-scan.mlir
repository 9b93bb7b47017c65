// torch.cumsum as torch-mlir writes it: each element's sum with those before it in its block, sums of blocks, and sums of those before each.
// REQUIRES: axe-driver
// RUN: axe-opt %s | FileCheck %s --check-prefix=READ
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s --check-prefix=READ
// RUN: axe-opt %s --convert-linalg-to-axe=allow-unsupported | FileCheck %s

// READ: tm_tensor.scan dimension(1) inclusive(true) ins(%{{.*}} : tensor<5x40xf32>) outs(%{{.*}}, %{{.*}} : tensor<5x40xf32>, tensor<5xf32>) {
// CHECK-LABEL: func.func @block
// CHECK-NOT: tm_tensor
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<5x40xf32>)
// CHECK: %[[I:.*]] = linalg.index 1
// CHECK: %[[J:.*]] = linalg.index 2
// CHECK: arith.cmpi sge, %[[I]], %[[J]]
// CHECK: arith.select
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
func.func @block(%x: tensor<5x40xf32>, %y: tensor<5x40xf32>, %z: tensor<5xf32>) -> tensor<5x40xf32> {
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<5x40xf32>) outs(%y, %z : tensor<5x40xf32>, tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<5x40xf32>, tensor<5xf32>
  return %0#0 : tensor<5x40xf32>
}

// CHECK-LABEL: func.func @blocks
// CHECK: axe.transpose %arg0 [1, 0] : tensor<100x5xi64> -> tensor<5x100xi64>
// CHECK: tensor.expand_shape {{.*}} : tensor<5x100xi64> into tensor<5x2x50xi64>
// CHECK: linalg.generic {{.*}}ins(%{{.*}} : tensor<5x2x50xi64>)
// CHECK: axe.reduce <add> %{{.*}} dims [2] : tensor<5x2x50xi64> -> tensor<5x2xi64>
// CHECK: linalg.generic {{.*}}ins(%{{.*}} : tensor<5x2xi64>)
// CHECK: %[[I:.*]] = linalg.index 1
// CHECK: %[[J:.*]] = linalg.index 2
// CHECK: arith.cmpi slt, %[[J]], %[[I]]
// CHECK: axe.transpose
func.func @blocks(%x: tensor<100x5xi64>, %y: tensor<100x5xi64>, %z: tensor<5xi64>) -> tensor<100x5xi64> {
  %0:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<100x5xi64>) outs(%y, %z : tensor<100x5xi64>, tensor<5xi64>) {
  ^bb0(%a: i64, %b: i64):
    %1 = arith.addi %a, %b : i64
    tm_tensor.yield %1 : i64
  } -> tensor<100x5xi64>, tensor<5xi64>
  return %0#0 : tensor<100x5xi64>
}
