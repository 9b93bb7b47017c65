// Maps of what a broadcast repeats between rows and columns are computed of what the kernel of the rows loads: one kernel.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// A modulated normalisation: one more than the scale, of a batch and a column.
// CHECK-LABEL: func.func @modulated
// CHECK: axe.launch @modulated_0_rows {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x64xf16>, tensor<128x64xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @modulated_0_rows(%[[T:.*]]: memref<4x64xf16>
// Rows of a tile have the scale of one batch: it is loaded once a column.
// CHECK: memref.reinterpret_cast %[[T]]
// CHECK-NOT: memref.load
// CHECK: arith.addf
func.func @modulated(%x: tensor<4x32x64xf16>, %g: tensor<4x64xf16>) -> tensor<4x32x64xf16> {
  %m = axe.reduce <max> %x dims [2] : tensor<4x32x64xf16> -> tensor<4x32xf16>
  %mb = axe.broadcast %m dims [2] : tensor<4x32xf16> -> tensor<4x32x64xf16>
  %e = tensor.expand_shape %g [[0], [1, 2]] output_shape [4, 1, 64] : tensor<4x64xf16> into tensor<4x1x64xf16>
  %one = axe.map ins(%e : tensor<4x1x64xf16>) -> tensor<4x1x64xf16> {
  ^bb0(%u: f16):
    %c = arith.constant 1.0 : f16
    %0 = arith.addf %u, %c : f16
    axe.yield %0 : f16
  }
  %two = axe.map ins(%one : tensor<4x1x64xf16>) -> tensor<4x1x64xf16> {
  ^bb0(%u: f16):
    %c = arith.constant 2.0 : f16
    %0 = arith.mulf %u, %c : f16
    axe.yield %0 : f16
  }
  %s = tensor.collapse_shape %two [[0, 1], [2]] : tensor<4x1x64xf16> into tensor<4x64xf16>
  %sb = axe.broadcast %s dims [1] : tensor<4x64xf16> -> tensor<4x32x64xf16>
  %y = axe.map ins(%x, %mb, %sb : tensor<4x32x64xf16>, tensor<4x32x64xf16>, tensor<4x32x64xf16>) -> tensor<4x32x64xf16> {
  ^bb0(%u: f16, %v: f16, %w: f16):
    %0 = arith.subf %u, %v : f16
    %1 = arith.mulf %0, %w : f16
    axe.yield %1 : f16
  }
  return %y : tensor<4x32x64xf16>
}

// -----

// What others read, too, is stored, and read.
// CHECK-LABEL: func.func @read
// CHECK: axe.launch @read_0_map
// CHECK: axe.launch @read_1_rows
func.func @read(%x: tensor<4x32x64xf16>, %g: tensor<4x64xf16>) -> (tensor<4x32x64xf16>, tensor<4x64xf16>) {
  %m = axe.reduce <max> %x dims [2] : tensor<4x32x64xf16> -> tensor<4x32xf16>
  %mb = axe.broadcast %m dims [2] : tensor<4x32xf16> -> tensor<4x32x64xf16>
  %s = axe.map ins(%g : tensor<4x64xf16>) -> tensor<4x64xf16> {
  ^bb0(%u: f16):
    %c = arith.constant 1.0 : f16
    %0 = arith.addf %u, %c : f16
    axe.yield %0 : f16
  }
  %sb = axe.broadcast %s dims [1] : tensor<4x64xf16> -> tensor<4x32x64xf16>
  %y = axe.map ins(%x, %mb, %sb : tensor<4x32x64xf16>, tensor<4x32x64xf16>, tensor<4x32x64xf16>) -> tensor<4x32x64xf16> {
  ^bb0(%u: f16, %v: f16, %w: f16):
    %0 = arith.subf %u, %v : f16
    %1 = arith.mulf %0, %w : f16
    axe.yield %1 : f16
  }
  return %y, %s : tensor<4x32x64xf16>, tensor<4x64xf16>
}
