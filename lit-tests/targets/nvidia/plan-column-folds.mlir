// Reductions of the same columns that read the same tensor are one kernel, and so are they and the maps that form what they reduce, which it stores.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// The gradients of a scale and of a shift: both tensors are read once, in as many parts for both. What the second sum reduces is computed behind the first.
// CHECK-LABEL: func.func @beside
// CHECK: %[[P:.*]]:2 = axe.launch @beside_0_columns {{.*}} ins(%arg0, %arg1 : {{.*}}) outs({{.*}} : tensor<[[PARTS:[0-9]+]]x512xf32>, tensor<[[PARTS]]x512xf32>)
// CHECK: axe.launch @beside_1_reduce {{.*}} ins(%[[P]]#
// CHECK: axe.launch @beside_2_reduce {{.*}} ins(%[[P]]#
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @beside_0_columns
// CHECK-COUNT-2: axe.reduce <add>
func.func @beside(%dy: tensor<4096x512xf16>, %x: tensor<4096x512xf16>) -> (tensor<512xf32>, tensor<512xf32>) {
  %d = axe.cast %dy : tensor<4096x512xf16> -> tensor<4096x512xf32>
  %shift = axe.reduce <add> %d dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  %h = axe.cast %x : tensor<4096x512xf16> -> tensor<4096x512xf32>
  %p = axe.map ins(%d, %h : tensor<4096x512xf32>, tensor<4096x512xf32>) -> tensor<4096x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %scale = axe.reduce <add> %p dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  return %scale, %shift : tensor<512xf32>, tensor<512xf32>
}

// -----

// A gradient that is a result, and its sum over 2000 rows, which no suitable number of parts divides.
// CHECK-LABEL: func.func @stored
// CHECK: axe.launch @stored_0_columns {{.*}} ins(%arg0, %arg1 : {{.*}}) outs({{.*}} : tensor<{{[0-9]+}}x1000xf32>, tensor<2000x1000xf16>)
// CHECK: axe.launch @stored_1_columns {{.*}} outs({{.*}} : tensor<1000xf32>)
// CHECK-NOT: axe.launch
func.func @stored(%dy: tensor<2000x1000xf16>, %y: tensor<2000x1000xf16>) -> (tensor<2000x1000xf16>, tensor<1000xf32>) {
  %g = axe.map ins(%dy, %y : tensor<2000x1000xf16>, tensor<2000x1000xf16>) -> tensor<2000x1000xf16> {
  ^bb0(%u: f16, %v: f16):
    %zero = arith.constant 0.0 : f16
    %p = arith.cmpf ogt, %v, %zero : f16
    %0 = arith.select %p, %u, %zero : f16
    axe.yield %0 : f16
  }
  %d = axe.cast %g : tensor<2000x1000xf16> -> tensor<2000x1000xf32>
  %s = axe.reduce <add> %d dims [0] : tensor<2000x1000xf32> -> tensor<1000xf32>
  return %g, %s : tensor<2000x1000xf16>, tensor<1000xf32>
}

// -----

// Rows that begin anywhere are read as one where nothing of them is stored: here the map has its own kernel.
// CHECK-LABEL: func.func @unaligned
// CHECK: axe.launch @unaligned_0_map {{.*}} outs({{.*}} : tensor<{{[0-9x]+}}xf16>)
// CHECK: axe.launch @unaligned_1_columns
func.func @unaligned(%y: tensor<2000x1001xf16>) -> (tensor<2000x1001xf16>, tensor<1001xf32>) {
  %g = axe.map ins(%y : tensor<2000x1001xf16>) -> tensor<2000x1001xf16> {
  ^bb0(%u: f16):
    %0 = arith.mulf %u, %u : f16
    axe.yield %0 : f16
  }
  %d = axe.cast %g : tensor<2000x1001xf16> -> tensor<2000x1001xf32>
  %s = axe.reduce <add> %d dims [0] : tensor<2000x1001xf32> -> tensor<1001xf32>
  return %g, %s : tensor<2000x1001xf16>, tensor<1001xf32>
}

// -----

// Sums of tensors that have nothing in common are kernels of their own, and so are a sum and what takes its result.
// CHECK-LABEL: func.func @apart
// CHECK: axe.launch @apart_0_
// CHECK-NOT: outs({{.*}}, {{.*}})
// CHECK: axe.launch @apart_1_
// CHECK: axe.launch @apart_2_
// CHECK: axe.launch @apart_3_
func.func @apart(%x: tensor<4096x512xf32>, %y: tensor<4096x512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %a = axe.reduce <add> %x dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  %ab = axe.broadcast %a dims [0] : tensor<512xf32> -> tensor<4096x512xf32>
  %p = axe.map ins(%x, %ab : tensor<4096x512xf32>, tensor<4096x512xf32>) -> tensor<4096x512xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  %b = axe.reduce <add> %p dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  %c = axe.reduce <add> %y dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  return %b, %c : tensor<512xf32>, tensor<512xf32>
}

// -----

// Keys of linear attention: their sum is in front of the product that reads them, and goes along queries, of which nothing is stored for it.
// CHECK-LABEL: func.func @keys
// CHECK: axe.launch @keys_0_columns {{.*}} ins(%{{.*}} : tensor<1024x64xf16>) outs(%{{.*}}, %{{.*}} : tensor<1024x64xf16>, tensor<8x64xf32>)
// CHECK: axe.launch @keys_1_gemm
// CHECK: axe.launch @keys_2_rows {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x64xf32>, tensor<1024x64xf16>) outs(%{{.*}} : tensor<1024xf32>)
// CHECK-NOT: axe.launch
func.func @keys(%q: tensor<8x128x64xf16>, %k: tensor<8x128x64xf16>, %v: tensor<8x128x64xf16>) -> (tensor<8x64x64xf32>, tensor<8x128xf32>) {
  %f = axe.cast %k : tensor<8x128x64xf16> -> tensor<8x128x64xf32>
  %e = axe.map ins(%f : tensor<8x128x64xf32>) -> tensor<8x128x64xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %u : f32
    axe.yield %0 : f32
  }
  %h = axe.cast %e : tensor<8x128x64xf32> -> tensor<8x128x64xf16>
  %kv = axe.gemm %h, %v {trans_a} : tensor<8x128x64xf16>, tensor<8x128x64xf16> -> tensor<8x64x64xf32>
  %s = axe.reduce <add> %e dims [1] : tensor<8x128x64xf32> -> tensor<8x64xf32>
  %sb = axe.broadcast %s dims [1] : tensor<8x64xf32> -> tensor<8x128x64xf32>
  %g = axe.cast %q : tensor<8x128x64xf16> -> tensor<8x128x64xf32>
  %p = axe.map ins(%g, %sb : tensor<8x128x64xf32>, tensor<8x128x64xf32>) -> tensor<8x128x64xf32> {
  ^bb0(%u: f32, %w: f32):
    %0 = arith.mulf %u, %w : f32
    axe.yield %0 : f32
  }
  %z = axe.reduce <add> %p dims [2] : tensor<8x128x64xf32> -> tensor<8x128xf32>
  return %kv, %z : tensor<8x64x64xf32>, tensor<8x128xf32>
}

// -----

// Scalars that bodies take are computed in front of them.
// CHECK-LABEL: func.func @captured
// CHECK: %[[C:.*]] = arith.mulf %arg1, %arg1 : f32
// CHECK: axe.launch @captured_0_columns {{.*}} ins(%arg0, %[[C]] : tensor<4096x512xf32>, f32)
func.func @captured(%x: tensor<4096x512xf32>, %s: f32) -> (tensor<512xf32>, tensor<512xf32>) {
  %a = axe.reduce <add> %x dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  %c = arith.mulf %s, %s : f32
  %p = axe.map ins(%x : tensor<4096x512xf32>) -> tensor<4096x512xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %c : f32
    axe.yield %0 : f32
  }
  %b = axe.reduce <add> %p dims [0] : tensor<4096x512xf32> -> tensor<512xf32>
  return %a, %b : tensor<512xf32>, tensor<512xf32>
}

// -----

// A sum whose elements take a scalar that is computed behind a product stays behind it.
// CHECK-LABEL: func.func @behind
// CHECK: axe.launch @behind_0_map
// CHECK: axe.launch @behind_1_gemm
// CHECK: axe.launch @behind_2_columns
func.func @behind(%s: f16, %x: tensor<256x64xf16>, %w: tensor<64x64xf16>) -> (tensor<256x64xf32>, tensor<64xf32>) {
  %e = axe.map ins(%x : tensor<256x64xf16>) -> tensor<256x64xf16> {
  ^bb0(%u: f16):
    %0 = arith.mulf %u, %u : f16
    axe.yield %0 : f16
  }
  %g = axe.gemm %e, %w : tensor<256x64xf16>, tensor<64x64xf16> -> tensor<256x64xf32>
  %c = arith.mulf %s, %s : f16
  %p = axe.map ins(%e : tensor<256x64xf16>) -> tensor<256x64xf16> {
  ^bb0(%u: f16):
    %0 = arith.mulf %u, %c : f16
    axe.yield %0 : f16
  }
  %f = axe.cast %p : tensor<256x64xf16> -> tensor<256x64xf32>
  %b = axe.reduce <add> %f dims [0] : tensor<256x64xf32> -> tensor<64xf32>
  return %g, %b : tensor<256x64xf32>, tensor<64xf32>
}

// -----

// What is read behind a sum of columns may be formed of it: the sum stays where it is.
// CHECK-LABEL: func.func @normalised
// CHECK: axe.launch @normalised_{{[0-9]}}_gemm
func.func @normalised(%q: tensor<32x8x1024x64xf16>, %k: tensor<32x8x1024x64xf16>) -> tensor<32x8x64x64xf32> {
  %f = axe.cast %q : tensor<32x8x1024x64xf16> -> tensor<32x8x1024x64xf32>
  %e = axe.map ins(%f : tensor<32x8x1024x64xf32>) -> tensor<32x8x1024x64xf32> {
  ^bb0(%u: f32):
    %0 = arith.mulf %u, %u : f32
    axe.yield %0 : f32
  }
  %s = axe.reduce <add> %e dims [2] : tensor<32x8x1024x64xf32> -> tensor<32x8x64xf32>
  %s1 = tensor.expand_shape %s [[0], [1, 2], [3]] output_shape [32, 8, 1, 64] : tensor<32x8x64xf32> into tensor<32x8x1x64xf32>
  %r1 = axe.map ins(%s1 : tensor<32x8x1x64xf32>) -> tensor<32x8x1x64xf32> {
  ^bb0(%u: f32):
    %0 = math.sqrt %u : f32
    axe.yield %0 : f32
  }
  %r = tensor.collapse_shape %r1 [[0], [1, 2], [3]] : tensor<32x8x1x64xf32> into tensor<32x8x64xf32>
  %rb = axe.broadcast %r dims [2] : tensor<32x8x64xf32> -> tensor<32x8x1024x64xf32>
  %n = axe.map ins(%f, %rb : tensor<32x8x1024x64xf32>, tensor<32x8x1024x64xf32>) -> tensor<32x8x1024x64xf32> {
  ^bb0(%u: f32, %w: f32):
    %0 = arith.divf %u, %w : f32
    axe.yield %0 : f32
  }
  %h = axe.cast %n : tensor<32x8x1024x64xf32> -> tensor<32x8x1024x64xf16>
  %kv = axe.gemm %h, %k {trans_a} : tensor<32x8x1024x64xf16>, tensor<32x8x1024x64xf16> -> tensor<32x8x64x64xf32>
  return %kv : tensor<32x8x64x64xf32>
}
