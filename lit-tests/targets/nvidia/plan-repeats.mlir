// Broadcasts that repeat each element a few times are loops, whose threads have neighbours of the whole result.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules --split-input-file | FileCheck %s --check-prefix=PLAN

// Nearest upsampling as an expansion: of neighbouring elements of the image.
// CHECK-LABEL: func.func @upsampled
// CHECK: axe.launch @upsampled_0_loops
// CHECK-NOT: axe.launch
// CHECK: outs(%{{.*}} : memref<6x64x64xf16>)
// PLAN-LABEL: func.func @upsampled
// PLAN: vector = 8 : i64
func.func @upsampled(%x: tensor<6x32x32xf16>) -> tensor<6x64x64xf16> {
  %r = axe.broadcast %x dims [2, 4] : tensor<6x32x32xf16> -> tensor<6x32x2x32x2xf16>
  %y = tensor.collapse_shape %r [[0], [1, 2], [3, 4]] : tensor<6x32x2x32x2xf16> into tensor<6x64x64xf16>
  return %y : tensor<6x64x64xf16>
}

// -----

// What is made of it, with another tensor, is in the same kernel.
// CHECK-LABEL: func.func @added
// CHECK: axe.launch @added_0_loops
// CHECK-NOT: axe.launch
func.func @added(%x: tensor<32x64xf32>, %z: tensor<32x192xf32>) -> tensor<32x192xf32> {
  %r = axe.broadcast %x dims [2] : tensor<32x64xf32> -> tensor<32x64x3xf32>
  %t = tensor.collapse_shape %r [[0], [1, 2]] : tensor<32x64x3xf32> into tensor<32x192xf32>
  %y = axe.map ins(%t, %z : tensor<32x192xf32>, tensor<32x192xf32>) -> tensor<32x192xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    axe.yield %s : f32
  }
  return %y : tensor<32x192xf32>
}

// -----

// Rows that are reduced form it themselves, and rows of many columns are stored as before.
// CHECK-LABEL: func.func @rows
// CHECK: axe.launch @rows_0_rows
// CHECK-NOT: _loops
func.func @rows(%x: tensor<32x64xf32>, %z: tensor<32x192xf32>) -> (tensor<32xf32>, tensor<32x64x32xf32>) {
  %r = axe.broadcast %x dims [2] : tensor<32x64xf32> -> tensor<32x64x3xf32>
  %t = tensor.collapse_shape %r [[0], [1, 2]] : tensor<32x64x3xf32> into tensor<32x192xf32>
  %m = axe.map ins(%t, %z : tensor<32x192xf32>, tensor<32x192xf32>) -> tensor<32x192xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    axe.yield %s : f32
  }
  %y = axe.reduce <max> %m dims [1] : tensor<32x192xf32> -> tensor<32xf32>
  %w = axe.broadcast %x dims [2] : tensor<32x64xf32> -> tensor<32x64x32xf32>
  return %y, %w : tensor<32xf32>, tensor<32x64x32xf32>
}
