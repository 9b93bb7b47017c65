// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: tensor<4xf32>, %m: memref<8xf32>) {
  // expected-error @+1 {{(C1) expected source and destination of one shape and element type}}
  axe.copy %x to %m : tensor<4xf32> to memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>) {
  // expected-error @+1 {{(C2) expected a destination or a result, and not both}}
  axe.copy %m : memref<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>) {
  // expected-error @+1 {{(C3) expected memrefs on both sides of an asynchronous copy}}
  %0 = axe.copy async %m : memref<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%m: memref<8xf32>, %z: f16) {
  // expected-error @+1 {{(C4) expected padding of type 'f32' for a memref source, got 'f16'}}
  %0 = axe.copy %m pad %z : f16 : memref<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @f(%z: f16) {
  // expected-error @+1 {{(F1) expected element type 'f16', got 'f32'}}
  %0 = axe.fill %z : f16 -> tensor<8xf32>
  return
}

// -----

func.func @f(%z: f16) {
  // expected-error @+1 {{(F2) expected 1 sizes, got 0}}
  %0 = axe.fill %z : f16 -> tensor<?xf16>
  return
}

// -----

func.func @f(%x: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) {
  // expected-error @+1 {{(T1) expected equal layouts}}
  %0 = axe.cast %x : tensor<8xf32, #axe.layout<S[8 : 1@lane]>> -> tensor<8xf16, #axe.layout<S[8 : 1@reg]>>
  return
}

// -----

// Layouts that are written differently and induce the same map are equal.
func.func @f(%x: tensor<8xf32, #axe.layout<S[8 : 1@lane]>>) {
  %0 = axe.cast %x : tensor<8xf32, #axe.layout<S[8 : 1@lane]>> -> tensor<8xf16, #axe.layout<S[(2, 4) : (4@lane, 1@lane)]>>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{(P1) expected input 1 to have the shape of 'tensor<4xf32>', got 'tensor<8xf32>'}}
  %0 = axe.map ins(%x, %y : tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32, %v: f32):
    axe.yield %u : f32
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{(P2) expected the body to yield one 'f32'}}
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%u: f32):
    axe.yield
  }
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{(P2) expected body argument 0 of type 'f32', got 'f16'}}
  %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf16> {
  ^bb0(%u: f16):
    axe.yield %u : f16
  }
  return
}

// -----

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

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{(B3) expected 1 sizes, got 0}}
  %0 = axe.broadcast %x dims [0] : tensor<8xf32> -> tensor<?x8xf32>
  return
}

// -----

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

// -----

func.func @f(%x: tensor<4x8xf32>, %i: index, %z: f32) {
  // expected-error @+1 {{(Q1) expected 2 origins and limits, got 1 and 1}}
  %0 = axe.mask %x at(%i) in(%i) else %z : f32, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

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
