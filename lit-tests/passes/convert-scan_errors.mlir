// The dialect is known to the drivers alone.
// REQUIRES: axe-driver
// RUN: axe-opt %s --convert-linalg-to-axe -split-input-file -verify-diagnostics

func.func @exclusive(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected each element to be combined, too}}
  %0:2 = tm_tensor.scan dimension(1) inclusive(false) ins(%x : tensor<4x6xf32>) outs(%y, %z : tensor<4x6xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x6xf32>, tensor<4xf32>
  return %0#0 : tensor<4x6xf32>
}

// -----

func.func @all(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: what all elements are combined to is read}}
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<4x6xf32>) outs(%y, %z : tensor<4x6xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x6xf32>, tensor<4xf32>
  return %0#1 : tensor<4xf32>
}

// -----

func.func @difference(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected a sum, a product or an extreme of two elements}}
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<4x6xf32>) outs(%y, %z : tensor<4x6xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.subf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x6xf32>, tensor<4xf32>
  return %0#0 : tensor<4x6xf32>
}

// -----

func.func @dynamic(%x: tensor<4x?xf32>, %y: tensor<4x?xf32>, %z: tensor<4xf32>) -> tensor<4x?xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected static extents, or rows of a matrix that are counted at run time}}
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<4x?xf32>) outs(%y, %z : tensor<4x?xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x?xf32>, tensor<4xf32>
  return %0#0 : tensor<4x?xf32>
}

// -----

func.func @dimension(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected a dimension of the tensor}}
  %0:2 = tm_tensor.scan dimension(2) inclusive(true) ins(%x : tensor<4x6xf32>) outs(%y, %z : tensor<4x6xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x6xf32>, tensor<4xf32>
  return %0#0 : tensor<4x6xf32>
}

// -----

func.func @negative(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected a dimension of a tensor}}
  %0:2 = tm_tensor.scan dimension(-1) inclusive(true) ins(%x : tensor<4x6xf32>) outs(%y, %z : tensor<4x6xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tm_tensor.yield %1 : f32
  } -> tensor<4x6xf32>, tensor<4xf32>
  return %0#0 : tensor<4x6xf32>
}

// -----

func.func @nothing() {
  // expected-error @+1 {{'tm_tensor.scan' is not supported: expected a dimension of a tensor}}
  "tm_tensor.scan"() <{dimension = 0 : i64, inclusive = true, operandSegmentSizes = array<i32: 0, 0>}> ({
  }) : () -> ()
  return
}
