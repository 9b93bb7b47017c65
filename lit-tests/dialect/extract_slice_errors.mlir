// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(J1) expected 2 origins of at least 0, got [0]}}
  %0 = axe.extract_slice %x [0] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(J1) expected 2 origins of at least 0, got [0, -4]}}
  %0 = axe.extract_slice %x [0, -4] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(J2) expected a static result of the source's rank and element type, got 'tensor<4x4xf16>'}}
  %0 = axe.extract_slice %x [0, 4] : tensor<4x8xf32> -> tensor<4x4xf16>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{(J2) expected a static result of the source's rank}}
  %0 = axe.extract_slice %x [0, 4] : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(J3) expected dimension 1 of the box to lie in the source's 'tensor<4x8xf32>', got 4 elements from 5 on}}
  %0 = axe.extract_slice %x [0, 5] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(J3) expected dimension 0 of the box to lie in}}
  %0 = axe.extract_slice %x [9223372036854775807, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
