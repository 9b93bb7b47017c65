// RUN: axe-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: tensor<8x16xf16>, %b: tensor<2x8x4xf16>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP1) expected [M, K] * [G, K, N] -> [M, N], got [8, 16] * [2, 8, 4] -> [8, 4]}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x8x4xf16>, tensor<3xi32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf16>, %b: tensor<2x16x4xf16>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP1) expected [M, K] * [G, N, K] -> [M, N], got [8, 16] * [2, 16, 4] -> [8, 4]}}
  %0 = axe.grouped_gemm %a, %b, %o {trans_b} : tensor<8x16xf16>, tensor<2x16x4xf16>, tensor<3xi32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<?x16xf16>, %b: tensor<16x4xf16>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP1) expected [M, K] * [G, K, N] -> [M, N], got [?, 16] * [16, 4] -> [?, 4]}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<?x16xf16>, tensor<16x4xf16>, tensor<3xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf16>, %b: tensor<2x16x4xbf16>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP2) expected A and B of one element type, got 'f16' and 'bf16'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x16x4xbf16>, tensor<3xi32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf32>, %b: tensor<2x16x4xf32>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP2) expected an accumulator of the kind of 'f32' and at least its width, got 'f16'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf32>, tensor<2x16x4xf32>, tensor<3xi32> -> tensor<8x4xf16>
  return
}

// -----

func.func @f(%a: tensor<8x16xi8>, %b: tensor<2x16x4xi8>, %o: tensor<3xi32>) {
  // expected-error @+1 {{(GP2) expected an accumulator of the kind of 'i8' and at least its width, got 'f32'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xi8>, tensor<2x16x4xi8>, tensor<3xi32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf16>, %b: tensor<2x16x4xf16>, %o: tensor<2xi32>) {
  // expected-error @+1 {{(GP3) expected offsets of type 'tensor<3xi32>', got 'tensor<2xi32>'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x16x4xf16>, tensor<2xi32> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf16>, %b: tensor<2x16x4xf16>, %o: tensor<3xi64>) {
  // expected-error @+1 {{(GP3) expected offsets of type 'tensor<3xi32>', got 'tensor<3xi64>'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x16x4xf16>, tensor<3xi64> -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%a: tensor<8x16xf16>, %b: tensor<?x16x4xf16>, %o: tensor<3x1xi32>) {
  // expected-error @+1 {{(GP3) expected offsets of type 'tensor<?xi32>', got 'tensor<3x1xi32>'}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<?x16x4xf16>, tensor<3x1xi32> -> tensor<8x4xf32>
  return
}
