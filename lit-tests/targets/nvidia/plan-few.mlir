// Maps of a number for each row or column, of arguments, are formed by the kernels that read them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// One more than a weight, of each column.
// CHECK-LABEL: func.func @weight
// CHECK: axe.launch @weight_0_rows {{.*}} ins(%arg0, %arg1 : tensor<64x128xf16>, tensor<128xf16>)
// CHECK-NOT: axe.launch
func.func @weight(%x: tensor<64x128xf16>, %w: tensor<128xf16>) -> tensor<64x128xf16> {
  %m = axe.reduce <max> %x dims [1] : tensor<64x128xf16> -> tensor<64xf16>
  %mb = axe.broadcast %m dims [1] : tensor<64xf16> -> tensor<64x128xf16>
  %one = axe.map ins(%w : tensor<128xf16>) -> tensor<128xf16> {
  ^bb0(%u: f16):
    %c = arith.constant 1.0 : f16
    %0 = arith.addf %u, %c : f16
    axe.yield %0 : f16
  }
  %wb = axe.broadcast %one dims [0] : tensor<128xf16> -> tensor<64x128xf16>
  %y = axe.map ins(%x, %mb, %wb : tensor<64x128xf16>, tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16> {
  ^bb0(%u: f16, %v: f16, %w0: f16):
    %0 = arith.subf %u, %v : f16
    %1 = arith.mulf %0, %w0 : f16
    axe.yield %1 : f16
  }
  return %y : tensor<64x128xf16>
}

// -----

// What takes long is formed of rows, of which tiles have few, and stored for columns.
// CHECK-LABEL: func.func @rows
// CHECK: axe.launch @rows_0_map {{.*}} ins(%arg0, %arg1 : tensor<64x128xf32>, tensor<64xf32>)
// CHECK-NOT: axe.launch
// CHECK-LABEL: func.func @columns
// CHECK: axe.launch @columns_0_map {{.*}} -> tensor<{{.*}}128xf32>
// CHECK: axe.launch @columns_1_map
func.func @rows(%x: tensor<64x128xf32>, %w: tensor<64xf32>) -> tensor<64x128xf32> {
  %t = axe.map ins(%w : tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32):
    %0 = math.tanh %u : f32
    axe.yield %0 : f32
  }
  %wb = axe.broadcast %t dims [1] : tensor<64xf32> -> tensor<64x128xf32>
  %y = axe.map ins(%x, %wb : tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  return %y : tensor<64x128xf32>
}
func.func @columns(%x: tensor<64x128xf32>, %w: tensor<128xf32>) -> tensor<64x128xf32> {
  %t = axe.map ins(%w : tensor<128xf32>) -> tensor<128xf32> {
  ^bb0(%u: f32):
    %0 = math.tanh %u : f32
    axe.yield %0 : f32
  }
  %wb = axe.broadcast %t dims [0] : tensor<128xf32> -> tensor<64x128xf32>
  %y = axe.map ins(%x, %wb : tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.mulf %u, %v : f32
    axe.yield %0 : f32
  }
  return %y : tensor<64x128xf32>
}

// -----

// A map of numbers of channels, at all places of all images: what a variance is divided by is computed once a row.
// CHECK-LABEL: func.func @channels
// CHECK: axe.launch @channels_0_map
// CHECK-NOT: axe.launch
// CHECK: math.rsqrt
func.func @channels(%x: tensor<4x32x16x16xf32>, %v: tensor<32xf32>) -> tensor<4x32x16x16xf32> {
  %r = axe.map ins(%v : tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%u: f32):
    %0 = math.rsqrt %u : f32
    axe.yield %0 : f32
  }
  %rb = axe.broadcast %r dims [0, 2, 3] : tensor<32xf32> -> tensor<4x32x16x16xf32>
  %y = axe.map ins(%x, %rb : tensor<4x32x16x16xf32>, tensor<4x32x16x16xf32>) -> tensor<4x32x16x16xf32> {
  ^bb0(%u: f32, %w: f32):
    %0 = arith.mulf %u, %w : f32
    axe.yield %0 : f32
  }
  return %y : tensor<4x32x16x16xf32>
}

// -----

// Experts' results, weighted and added up, of which a thread has all: in f16, by one kernel.
// CHECK-LABEL: func.func @experts
// CHECK: axe.launch @experts_0_strided_rows {{.*}} -> tensor<{{.*}}xf16>
// CHECK-NOT: axe.launch
func.func @experts(%x: tensor<64x8x512xf16>, %w: tensor<64x8xf16>) -> tensor<64x512xf16> {
  %wb = axe.broadcast %w dims [2] : tensor<64x8xf16> -> tensor<64x8x512xf16>
  %p = axe.map ins(%x, %wb : tensor<64x8x512xf16>, tensor<64x8x512xf16>) -> tensor<64x8x512xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.mulf %u, %v : f16
    axe.yield %0 : f16
  }
  %f = axe.cast %p : tensor<64x8x512xf16> -> tensor<64x8x512xf32>
  %s = axe.reduce <add> %f dims [1] : tensor<64x8x512xf32> -> tensor<64x512xf32>
  %y = axe.cast %s : tensor<64x512xf32> -> tensor<64x512xf16>
  return %y : tensor<64x512xf16>
}
