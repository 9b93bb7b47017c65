// torch.topk as torch-mlir writes it: a sort of elements and their numbers, of which the first are taken.
// The dialect is known to the drivers alone: a host that has torch-mlir brings its own.
// REQUIRES: axe-driver
// RUN: axe-opt %s | FileCheck %s --check-prefix=READ
// RUN: axe-opt %s --mlir-print-op-generic | axe-opt | FileCheck %s --check-prefix=READ
// RUN: axe-opt %s --convert-linalg-to-axe | FileCheck %s

#at = affine_map<(d0, d1) -> (d0, d1)>

// READ: tm_tensor.sort dimension(1) outs(%{{.*}}, %{{.*}} : tensor<5x40xf32>, tensor<5x40xi64>) {
// READ: tm_tensor.yield %{{.*}} : i1
// READ: } -> tensor<5x40xf32>, tensor<5x40xi64>
// CHECK-LABEL: func.func @largest
// CHECK-NEXT: %[[K:.*]]:2 = axe.top_k %arg0 : tensor<5x40xf32> -> tensor<5x3xf32>, tensor<5x3xi64>
// CHECK-NEXT: return %[[K]]#0, %[[K]]#1
func.func @largest(%x: tensor<5x40xf32>) -> (tensor<5x3xf32>, tensor<5x3xi64>) {
  %0 = tensor.empty() : tensor<5x40xi64>
  %1 = linalg.generic {indexing_maps = [#at], iterator_types = ["parallel", "parallel"]} outs(%0 : tensor<5x40xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<5x40xi64>
  %2:2 = tm_tensor.sort dimension(1) outs(%x, %1 : tensor<5x40xf32>, tensor<5x40xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %3 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %3 : i1
  } -> tensor<5x40xf32>, tensor<5x40xi64>
  %v = tensor.extract_slice %2#0[0, 0] [5, 3] [1, 1] : tensor<5x40xf32> to tensor<5x3xf32>
  %n = tensor.extract_slice %2#1[0, 0] [5, 3] [1, 1] : tensor<5x40xi64> to tensor<5x3xi64>
  return %v, %n : tensor<5x3xf32>, tensor<5x3xi64>
}

// Values alone, the smallest, of rows that are counted at run time, and fewer of them, too.
// CHECK-LABEL: func.func @smallest
// CHECK: %[[K:.*]]:2 = axe.top_k %arg0 {smallest} : tensor<?x40xf16> -> tensor<?x4xf16>, tensor<?x4xi64>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[K]]#0[0, 0] [%{{.*}}, 2] [1, 1] : tensor<?x4xf16> to tensor<?x2xf16>
// CHECK: return %[[K]]#0, %[[S]]
func.func @smallest(%x: tensor<?x40xf16>) -> (tensor<?x4xf16>, tensor<?x2xf16>) {
  %c0 = arith.constant 0 : index
  %2 = tm_tensor.sort dimension(1) outs(%x : tensor<?x40xf16>) {
  ^bb0(%a: f16, %b: f16):
    %3 = arith.cmpf ult, %a, %b : f16
    tm_tensor.yield %3 : i1
  } -> tensor<?x40xf16>
  %rows = tensor.dim %2, %c0 : tensor<?x40xf16>
  %v = tensor.extract_slice %2[0, 0] [%rows, 4] [1, 1] : tensor<?x40xf16> to tensor<?x4xf16>
  %w = tensor.extract_slice %2[0, 0] [%rows, 2] [1, 1] : tensor<?x40xf16> to tensor<?x2xf16>
  return %v, %w : tensor<?x4xf16>, tensor<?x2xf16>
}

// Another dimension than the last, and all elements.
// CHECK-LABEL: func.func @columns
// CHECK: %[[T:.*]] = axe.transpose %arg0 [1, 0]
// CHECK: %[[K:.*]]:2 = axe.top_k %[[T]] : tensor<6x4xi32> -> tensor<6x4xi32>, tensor<6x4xi64>
// CHECK: axe.transpose %[[K]]#0 [1, 0]
func.func @columns(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %2 = tm_tensor.sort dimension(0) outs(%x : tensor<4x6xi32>) {
  ^bb0(%a: i32, %b: i32):
    %3 = arith.cmpi sge, %a, %b : i32
    tm_tensor.yield %3 : i1
  } -> tensor<4x6xi32>
  return %2 : tensor<4x6xi32>
}
