// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{(B1) expected ascending dims below 2, got 2}}
  %0 = axe.broadcast %x dims [2] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{(B2) expected 'tensor<4x8xf32>' without the dims, of the same element type, got 'tensor<8xf32>'}}
  %0 = axe.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{(B3) expected 1 sizes, got 0}}
  %0 = axe.broadcast %x dims [0] : tensor<8xf32> -> tensor<?x8xf32>
  return
}
