// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%t: memref<9x8xf16>, %r: memref<4xf32>) {
  // expected-error @+1 {{(GA1) expected numbers of rows in one dimension of 'i32' or 'i64', got 'memref<4xf32>'}}
  %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xf32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: memref<4x1xi32>) {
  // expected-error @+1 {{(GA1) expected numbers of rows in one dimension of 'i32' or 'i64', got 'memref<4x1xi32>'}}
  %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4x1xi32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: memref<4xi32>) {
  // expected-error @+1 {{(GA2) expected a result of 4 rows of 'memref<9x8xf16>', got 'tensor<9x8xf16>'}}
  %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xi32> -> tensor<9x8xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: memref<4xi32>) {
  // expected-error @+1 {{(GA2) expected a result of 4 rows of 'memref<9x8xf16>', got 'tensor<4x8xf32>'}}
  %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%t: memref<f16>, %r: memref<?xi32>) {
  // expected-error @+1 {{(GA2) expected a result of ? rows of 'memref<f16>', got 'tensor<?xf16>'}}
  %0 = axe.gather %t at %r : memref<f16>, memref<?xi32> -> tensor<?xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: memref<4xi32>, %z: f32) {
  // expected-error @+1 {{(GA3) expected padding of type 'f16', got 'f32'}}
  %0 = axe.gather %t at %r pad %z : f32 : memref<9x8xf16>, memref<4xi32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<?x8xf16>, %r: memref<4xi32>) {
  // expected-error @+1 {{(GA4) expected no padding, and a table with rows, got 'memref<?x8xf16>'}}
  %0 = axe.gather %t at %r clamp : memref<?x8xf16>, memref<4xi32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<0x8xf16>, %r: memref<4xi32>) {
  // expected-error @+1 {{(GA4) expected no padding, and a table with rows, got 'memref<0x8xf16>'}}
  %0 = axe.gather %t at %r clamp : memref<0x8xf16>, memref<4xi32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: memref<4xi32>, %z: f16) {
  // expected-error @+1 {{(GA4) expected no padding, and a table with rows, got 'memref<9x8xf16>'}}
  %0 = axe.gather %t at %r pad %z : f16 clamp : memref<9x8xf16>, memref<4xi32> -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%t: memref<9x8xf16>, %r: tensor<4xf32>) {
  // expected-error @+1 {{(GA1) expected numbers of rows in one dimension of 'i32' or 'i64', got 'tensor<4xf32>'}}
  %0 = axe.gather %t at %r : memref<9x8xf16>, tensor<4xf32> -> tensor<4x8xf16>
  return
}
