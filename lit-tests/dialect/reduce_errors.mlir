// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(R1) expected ascending dims below 2, got 2}}
  %0 = axe.reduce <add> %x dims [2] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(R2) expected 'tensor<4x8xf32>' without the dims, of the same element type, got 'tensor<8xf32>'}}
  %0 = axe.reduce <add> %x dims [1] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(R3) expected integer elements for 'and', got 'f32'}}
  %0 = axe.reduce <and> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{(R1) expected ascending dims below 2, got 0}}
  %0 = axe.reduce <add> %x dims [1, 0] : tensor<4x8xf32> -> tensor<f32>
  return
}
