// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<4x8xf16>, %b: tensor<4x8xf16>) {
  // expected-error @+1 {{(E1) expected [M, K] * [K, N] -> [M, N], got [4, 8] * [4, 8] -> [4, 8]}}
  %0 = axe.gemm %a, %b : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf16>, %b: tensor<8x4xbf16>) {
  // expected-error @+1 {{(E2) expected A and B of one element type, got 'f16' and 'bf16'}}
  %0 = axe.gemm %a, %b : tensor<4x8xf16>, tensor<8x4xbf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+1 {{(E2) expected an accumulator of the kind of 'f32' and at least its width, got 'f16'}}
  %0 = axe.gemm %a, %b : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf16>
  return
}

// -----

func.func @f(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf16>) {
  // expected-error @+1 {{(E3) expected an accumulator of type 'tensor<4x4xf32>', got 'tensor<4x4xf16>'}}
  %0 = axe.gemm %a, %b acc %c : tensor<4x4xf16> : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8xf16>, %b: tensor<8x4xf16>) {
  // expected-error @+1 {{(E1) expected operands and result of one rank of at least 2}}
  %0 = axe.gemm %a, %b : tensor<8xf16>, tensor<8x4xf16> -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: tensor<2x4x8xf16>, %b: tensor<3x8x4xf16>) {
  // expected-error @+1 {{(E1) expected the same batch dimensions}}
  %0 = axe.gemm %a, %b : tensor<2x4x8xf16>, tensor<3x8x4xf16> -> tensor<2x4x4xf32>
  return
}
