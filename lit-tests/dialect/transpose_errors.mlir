// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(N1) expected a permutation of 2 dimensions}}
  %0 = axe.transpose %x [0, 0] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(N2) expected the permuted shape and the source's element type}}
  %0 = axe.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(N1) expected a permutation of 2 dimensions}}
  %0 = axe.transpose %x [1] : tensor<4x8xf32> -> tensor<8xf32>
  return
}
