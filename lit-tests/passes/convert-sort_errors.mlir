// The dialect is known to the drivers alone.
// REQUIRES: axe-driver
// RUN: axe-opt %s --convert-linalg-to-axe=for-kernels -split-input-file -verify-diagnostics

func.func @unsigned(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected a comparison of two elements, greater or less}}
  %0 = tm_tensor.sort dimension(1) outs(%x : tensor<4x6xi32>) {
  ^bb0(%a: i32, %b: i32):
    %1 = arith.cmpi uge, %a, %b : i32
    tm_tensor.yield %1 : i1
  } -> tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}

// -----

func.func @reversed(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected a comparison of two elements, greater or less}}
  %0 = tm_tensor.sort dimension(1) outs(%x : tensor<4x6xi32>) {
  ^bb0(%a: i32, %b: i32):
    %1 = arith.cmpi sge, %b, %a : i32
    tm_tensor.yield %1 : i1
  } -> tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}

// -----

func.func @others(%x: tensor<4x6xf32>, %y: tensor<4x6xi64>) -> tensor<4x6xi64> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected the numbers of elements along the dimension beside them}}
  %0:2 = tm_tensor.sort dimension(1) outs(%x, %y : tensor<4x6xf32>, tensor<4x6xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %1 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %1 : i1
  } -> tensor<4x6xf32>, tensor<4x6xi64>
  return %0#1 : tensor<4x6xi64>
}

// -----

func.func @three(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected elements, or elements and their numbers}}
  %0:3 = tm_tensor.sort dimension(1) outs(%x, %x, %x : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32, %f: f32):
    %1 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %1 : i1
  } -> tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
  return %0#1 : tensor<4x6xf32>
}

// -----

func.func @nowhere(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected a dimension of a tensor}}
  %0 = tm_tensor.sort dimension(-1) outs(%x : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %1 : i1
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

func.func @counted(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected a dimension of static extent}}
  %0 = tm_tensor.sort dimension(1) outs(%x : tensor<4x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %1 : i1
  } -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

func.func @empty(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected a comparison of two elements, greater or less}}
  %0 = "tm_tensor.sort"(%x) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

func.func @nothing() {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected elements, or elements and their numbers}}
  "tm_tensor.sort"() <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 0>}> ({
  }) : () -> ()
  return
}

// -----

func.func @long(%x: tensor<2147483647xf32>) -> tensor<2147483647xf32> {
  // expected-error @+1 {{'tm_tensor.sort' is not supported: expected rows of fewer than 2^31 - 1 elements}}
  %0 = tm_tensor.sort dimension(0) outs(%x : tensor<2147483647xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %1 : i1
  } -> tensor<2147483647xf32>
  return %0 : tensor<2147483647xf32>
}
