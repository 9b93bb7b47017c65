// RMSNorm behind a linear layer: rows that no tile holds are reduced by a kernel of their own, which forms their squares too. The product
// stores no squares for it.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @normalised
// CHECK: axe.launch @normalised_0_gemm {{.*}} outs(%{{[0-9]+}} : tensor<2048x1024xf16>)
// CHECK: axe.launch @normalised_1_rows {{.*}} ins(%{{[0-9]+}} : tensor<2048x1024xf16>)
// CHECK-NOT: axe.launch
func.func @normalised(%x: tensor<2048x256xf16>, %w: tensor<1024x256xf16>) -> tensor<2048x1024xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<2048x256xf16>, tensor<1024x256xf16> -> tensor<2048x1024xf32>
  %h = axe.cast %p : tensor<2048x1024xf32> -> tensor<2048x1024xf16>
  %f = axe.cast %h : tensor<2048x1024xf16> -> tensor<2048x1024xf32>
  %q = axe.map ins(%f : tensor<2048x1024xf32>) -> tensor<2048x1024xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %u : f32
    axe.yield %0 : f32
  }
  %sum = axe.reduce <add> %q dims [1] : tensor<2048x1024xf32> -> tensor<2048xf32>
  %r = axe.map ins(%sum : tensor<2048xf32>) -> tensor<2048xf32> {
  ^bb0(%u: f32):
    %0 = math.rsqrt %u : f32
    axe.yield %0 : f32
  }
  %rb = axe.broadcast %r dims [1] : tensor<2048xf32> -> tensor<2048x1024xf32>
  %m = axe.map ins(%f, %rb : tensor<2048x1024xf32>, tensor<2048x1024xf32>) -> tensor<2048x1024xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %m : tensor<2048x1024xf32> -> tensor<2048x1024xf16>
  return %n : tensor<2048x1024xf16>
}

// -----

// What is narrower than the product's sums is stored in their place.
// CHECK-LABEL: func.func @rounded
// CHECK: axe.launch @rounded_0_gemm {{.*}} outs(%{{[0-9]+}} : tensor<2048x1024xf16>)
// CHECK: axe.launch @rounded_1_
func.func @rounded(%x: tensor<2048x256xf16>, %w: tensor<1024x256xf16>) -> tensor<1024xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<2048x256xf16>, tensor<1024x256xf16> -> tensor<2048x1024xf32>
  %h = axe.cast %p : tensor<2048x1024xf32> -> tensor<2048x1024xf16>
  %s = axe.reduce <max> %h dims [0] : tensor<2048x1024xf16> -> tensor<1024xf16>
  return %s : tensor<1024xf16>
}

// -----

// Logarithms of sums of exponentials of rows: no block of a product's columns is formed of what its rows are reduced to, so that
// the kernel of rows reduces them as a whole, and stores no exponentials.
// CHECK-LABEL: func.func @logarithms
// CHECK: axe.launch @logarithms_0_gemm
// CHECK: axe.launch @logarithms_1_rows {{.*}} outs(%{{[0-9]+}} : tensor<2048xf32>)
// CHECK-NOT: axe.launch
func.func @logarithms(%x: tensor<2048x256xf16>, %w: tensor<1024x256xf16>) -> tensor<2048xf32> {
  %p = axe.gemm %x, %w {trans_b} : tensor<2048x256xf16>, tensor<1024x256xf16> -> tensor<2048x1024xf32>
  %h = axe.cast %p : tensor<2048x1024xf32> -> tensor<2048x1024xf16>
  %f = axe.cast %h : tensor<2048x1024xf16> -> tensor<2048x1024xf32>
  %m = axe.reduce <max> %f dims [1] : tensor<2048x1024xf32> -> tensor<2048xf32>
  %mb = axe.broadcast %m dims [1] : tensor<2048xf32> -> tensor<2048x1024xf32>
  %e = axe.map ins(%f, %mb : tensor<2048x1024xf32>, tensor<2048x1024xf32>) -> tensor<2048x1024xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<2048x1024xf32> -> tensor<2048xf32>
  %l = axe.map ins(%s, %m : tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = math.log %u : f32
    %r = arith.addf %d, %v : f32
    axe.yield %r : f32
  }
  return %l : tensor<2048xf32>
}
