// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK1) expected values and indices, got 0 destinations and 1 results of 'tensor<4x8xf32>'}}
  %v = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %v: memref<4x2xf32>, %i: memref<4x2xi32>) {
  // expected-error @+1 {{(TK1) expected values and indices, got 2 destinations and 0 results of 'tensor<4x8xf32>'}}
  axe.top_k %x to %v, %i : tensor<4x8xf32> to memref<4x2xf32>, memref<4x2xi32>
  return
}

// -----

func.func @f(%x: memref<4x8xf32>) {
  // expected-error @+1 {{(TK1) expected values and indices, got 0 destinations and 2 results of 'memref<4x8xf32>'}}
  %v, %i = axe.top_k %x : memref<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK2) expected the shape of 'tensor<4x8xf32>' with a last extent of 1 to 8, got 'tensor<4x9xf32>'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x9xf32>, tensor<4x9xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK2) expected the shape of 'tensor<4x8xf32>' with a last extent of 1 to 8, got 'tensor<4x?xf32>'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x?xf32>, tensor<4x?xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK2) expected the shape of 'tensor<4x8xf32>' with a last extent of 1 to 8, got 'tensor<5x2xi32>'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<5x2xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK2) expected as many values as indices, got 'tensor<4x2xf32>' and 'tensor<4x3xi32>'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x3xi32>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{(TK2) expected a source with a static last extent, got 'tensor<4x?xf32>'}}
  %v, %i = axe.top_k %x : tensor<4x?xf32> -> tensor<4x2xf32>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{(TK2) expected a source with a static last extent, got 'tensor<f32>'}}
  %v, %i = axe.top_k %x : tensor<f32> -> tensor<f32>, tensor<i32>
  return
}

// -----

func.func @f(%x: tensor<4x8xindex>) {
  // expected-error @+1 {{(TK3) expected float or integer elements, got 'index'}}
  %v, %i = axe.top_k %x : tensor<4x8xindex> -> tensor<4x2xindex>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK3) expected values of type 'f32', got 'f16'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf16>, tensor<4x2xi32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(TK3) expected indices of 'i32' or 'i64', got 'f32'}}
  %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xf32>
  return
}
