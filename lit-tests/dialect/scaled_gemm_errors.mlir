// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<256x128xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H1) expected [M, K], [N, K] -> [M, N], got 'tensor<8x256xf8E4M3FN>', 'tensor<256x128xf8E4M3FN>' -> 'tensor<8x128xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<256x128xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H1) expected matrices, got 'tensor<1x8x128xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<1x8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf16>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H2) expected 8-bit floats, got 'tensor<8x256xf16>' and 'tensor<128x256xf8E4M3FN>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf16>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xi8>, %b: tensor<128x256xi8>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H2) expected 8-bit floats, got 'tensor<8x256xi8>' and 'tensor<128x256xi8>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xi8>, tensor<128x256xi8>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf16>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H2) expected scales and sums in f32, got 'tensor<8x2xf16>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf16>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H2) expected scales and sums in f32, got 'tensor<8x128xbf16>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xbf16>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<2x8xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H3) expected scales of shape [8, 2], got 'tensor<2x8xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<2x8xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H3) expected scales of shape [2, 8], got 'tensor<8x2xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb {trans_scale_a} : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x1xf32>) {
  // expected-error @+1 {{(H3) expected scales of shape [1, 2], got 'tensor<1x1xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x1xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x129xf8E4M3FN>, %b: tensor<128x129xf8E4M3FN>, %sa: tensor<8x1xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H3) expected scales of shape [8, 2], got 'tensor<8x1xf32>'}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x129xf8E4M3FN>, tensor<128x129xf8E4M3FN>, tensor<8x1xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H4) expected block_n a positive multiple of 16 and block_k of 32, got 128 and 48}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb {block_k = 48 : i64} : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}

// -----

func.func @f(%a: tensor<8x256xf8E4M3FN>, %b: tensor<128x256xf8E4M3FN>, %sa: tensor<8x2xf32>, %sb: tensor<1x2xf32>) {
  // expected-error @+1 {{(H4) expected block_n a positive multiple of 16 and block_k of 32, got -16 and 128}}
  %0 = axe.scaled_gemm %a, %b, %sa, %sb {block_n = -16 : i64} : tensor<8x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<8x2xf32>, tensor<1x2xf32> -> tensor<8x128xf32>
  return
}
