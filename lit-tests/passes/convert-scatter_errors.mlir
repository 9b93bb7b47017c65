// The dialect is known to the drivers alone.
// REQUIRES: axe-driver
// RUN: axe-opt %s --convert-linalg-to-axe=for-kernels -split-input-file -verify-diagnostics

func.func @window(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x2x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected an update of one index along the dimensions of 'dimension_map', and of all of the others, for each row of indices}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x2x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @part(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x3xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected an update of one index along the dimensions of 'dimension_map', and of all of the others, for each row of indices}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x3xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @count(%x: tensor<9x6xf32>, %i: tensor<5x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected an update of one index along the dimensions of 'dimension_map', and of all of the others, for each row of indices}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<5x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @columns(%x: tensor<9x6xf32>, %i: tensor<4x2xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x2xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @twice(%x: tensor<9x6xf32>, %i: tensor<4x2xi64>, %u: tensor<4xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 0>} unique_indices(false) ins(%u, %i : tensor<4xf32>, tensor<4x2xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @nowhere(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 2>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @extra(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, -1>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @before(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: -1>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @vector(%x: tensor<9x6xf32>, %i: tensor<4xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected a column of indices for each dimension of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @bytes(%x: tensor<9x6xf32>, %i: tensor<4x1xi8>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected indices of 32 or 64 bits}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi8>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @floats(%x: tensor<9x6xf32>, %i: tensor<4x1xf32>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected indices of 32 or 64 bits}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xf32>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @halves(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf16>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected updates of the tensor's type, and one like it}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf16>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @none(%x: tensor<9x6xf32>, %i: tensor<0x1xi64>, %u: tensor<0x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected tensors with elements, and updates of static extents}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<0x6xf32>, tensor<0x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @wide(%x: tensor<9x?xf32>, %i: tensor<4x1xi64>, %u: tensor<4x?xf32>) -> tensor<9x?xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected tensors with elements, and updates of static extents}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x?xf32>, tensor<4x1xi64>) outs(%x : tensor<9x?xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<9x?xf32>
  return %0 : tensor<9x?xf32>
}

// -----

func.func @difference(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected the update itself, or a sum, a product or an extreme of it and the element}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    %d = arith.subf %old, %new : f32
    tm_tensor.yield %d : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @counted(%x: tensor<9x6xi64>, %i: tensor<4x1xi64>, %u: tensor<4x6xi64>) -> tensor<9x6xi64> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected the update itself, or a sum, a product or an extreme of it and the element}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xi64>, tensor<4x1xi64>) outs(%x : tensor<9x6xi64>) {
  ^bb0(%new: i64, %old: i64):
    %one = arith.constant 1 : i64
    %d = arith.addi %old, %one : i64
    tm_tensor.yield %d : i64
  } -> tensor<9x6xi64>
  return %0 : tensor<9x6xi64>
}

// -----

func.func @same(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected the update itself, or a sum, a product or an extreme of it and the element}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<4x6xf32>, tensor<4x1xi64>) outs(%x : tensor<9x6xf32>) {
  ^bb0(%new: f32, %old: f32):
    %d = arith.addf %new, %new : f32
    tm_tensor.yield %d : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @unsized(%x: tensor<?x2xf32>, %i: tensor<40x1xi64>, %u: tensor<40x2xf32>) -> tensor<?x2xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected fewer than 2^31 elements of static extents along the dimensions of 'dimension_map'}}
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%u, %i : tensor<40x2xf32>, tensor<40x1xi64>) outs(%x : tensor<?x2xf32>) {
  ^bb0(%new: f32, %old: f32):
    %d = arith.addf %old, %new : f32
    tm_tensor.yield %d : f32
  } -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

func.func @empty(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected updates, indices and a tensor}}
  %0 = "tm_tensor.scatter"(%x) <{dimension_map = array<i64: 0>, unique_indices = false, operandSegmentSizes = array<i32: 0, 1>}> ({
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @bodiless(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<9x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected the update itself, or a sum, a product or an extreme of it and the element}}
  %0 = "tm_tensor.scatter"(%u, %i, %x) <{dimension_map = array<i64: 0>, unique_indices = false, operandSegmentSizes = array<i32: 2, 1>}> ({
  }) : (tensor<4x6xf32>, tensor<4x1xi64>, tensor<9x6xf32>) -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

func.func @another(%x: tensor<9x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected updates of the tensor's type, and one like it}}
  %0 = "tm_tensor.scatter"(%u, %i, %x) <{dimension_map = array<i64: 0>, unique_indices = false, operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%new: f32, %old: f32):
    "tm_tensor.yield"(%new) : (f32) -> ()
  }) : (tensor<4x6xf32>, tensor<4x1xi64>, tensor<9x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

func.func @scalars(%x: f32, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> f32 {
  // expected-error @+1 {{'tm_tensor.scatter' is not supported: expected updates, indices and a tensor}}
  %0 = "tm_tensor.scatter"(%u, %i, %x) <{dimension_map = array<i64: 0>, unique_indices = false, operandSegmentSizes = array<i32: 2, 1>}> ({
  }) : (tensor<4x6xf32>, tensor<4x1xi64>, f32) -> f32
  return %0 : f32
}
