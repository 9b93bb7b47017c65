// Convolutions are products where that is less work: of their operands where windows have one element, else of a copy by windows.
//
// RUN: axe-opt %s --convert-linalg-to-axe="for-kernels explain" 2>%t.log | FileCheck %s
// RUN: FileCheck --check-prefix=SAID %s < %t.log

// SAID: convolution 1024 x 32 x 288: a product, of a copy by windows (294912 elements)
// SAID: convolution 2048 x 32 x 144, 2 times: a product, of a copy by windows (589824 elements)
// SAID: convolution ? x 32 x 288: a product, of a copy by windows
// SAID: convolution 128 x 16 x 32: a product
// SAID: convolution 64 x 16 x 72: loops, as they take less time than one more launch
// SAID: convolution 1024 x 1 x 9, 64 times: loops, as each of its elements meets one filter

// Both have depth where their own order has it, and what is filled with zeros is not added.
// CHECK-LABEL: func.func @nchw
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<1x32x34x34xf16>) outs({{.*}} : tensor<32x3x3x32x32xf16>)
// CHECK: %[[W:.*]] = tensor.collapse_shape %arg1 {{.*}} into tensor<32x288xf16>
// CHECK: %[[X:.*]] = tensor.collapse_shape {{.*}} into tensor<288x1024xf16>
// CHECK: axe.gemm %[[W]], %[[X]] : tensor<32x288xf16>, tensor<288x1024xf16> -> tensor<32x1024xf32>
// CHECK-NOT: linalg.conv
func.func @nchw(%x: tensor<1x32x34x34xf16>, %w: tensor<32x32x3x3xf16>) -> tensor<1x32x32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x32x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x32x34x34xf16>, tensor<32x32x3x3xf16>) outs(%start : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  return %y : tensor<1x32x32x32xf32>
}

// Groups are a batch, and so are images in front of them, for which filters are repeated.
// CHECK-LABEL: func.func @grouped
// CHECK: axe.broadcast %arg1 dims [0] : tensor<2x32x16x3x3xf16> -> tensor<2x2x32x16x3x3xf16>
// CHECK-NOT: linalg.conv
func.func @grouped(%x: tensor<2x2x16x34x34xf16>, %w: tensor<2x32x16x3x3xf16>, %start: tensor<2x2x32x32x32xf32>) -> tensor<2x2x32x32x32xf32> {
  %y = linalg.conv_2d_ngchw_gfchw ins(%x, %w : tensor<2x2x16x34x34xf16>, tensor<2x32x16x3x3xf16>) outs(%start : tensor<2x2x32x32x32xf32>) -> tensor<2x2x32x32x32xf32>
  return %y : tensor<2x2x32x32x32xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: axe.gemm {{.*}} : tensor<?x288xf16>, tensor<288x32xf16> -> tensor<?x32xf32>
func.func @dynamic(%x: tensor<?x18x18x32xf16>, %w: tensor<3x3x32x32xf16>, %start: tensor<?x16x16x32xf32>) -> tensor<?x16x16x32xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<?x18x18x32xf16>, tensor<3x3x32x32xf16>) outs(%start : tensor<?x16x16x32xf32>) -> tensor<?x16x16x32xf32>
  return %y : tensor<?x16x16x32xf32>
}

// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: linalg.generic
// CHECK: axe.gemm {{.*}} : tensor<128x32xf16>, tensor<32x16xf16> -> tensor<128x16xf32>
func.func @pointwise(%x: tensor<2x8x8x32xf16>, %w: tensor<1x1x32x16xf16>, %start: tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x8x8x32xf16>, tensor<1x1x32x16xf16>) outs(%start : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  return %y : tensor<2x8x8x16xf32>
}

// CHECK-LABEL: func.func @small
// CHECK: linalg.conv_2d_nchw_fchw
func.func @small(%x: tensor<1x8x10x10xf16>, %w: tensor<16x8x3x3xf16>, %start: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x10x10xf16>, tensor<16x8x3x3xf16>) outs(%start : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.depthwise_conv_2d_nchw_chw
func.func @depthwise(%x: tensor<1x64x34x34xf32>, %w: tensor<64x3x3xf32>, %start: tensor<1x64x32x32xf32>) -> tensor<1x64x32x32xf32> {
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x64x34x34xf32>, tensor<64x3x3xf32>) outs(%start : tensor<1x64x32x32xf32>) -> tensor<1x64x32x32xf32>
  return %y : tensor<1x64x32x32xf32>
}

// Windows without products: pooling.
// CHECK-LABEL: func.func @pooling
// CHECK: linalg.pooling_nhwc_max
func.func @pooling(%x: tensor<1x34x34x64xf32>, %w: tensor<3x3xf32>, %start: tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32> {
  %y = linalg.pooling_nhwc_max ins(%x, %w : tensor<1x34x34x64xf32>, tensor<3x3xf32>) outs(%start : tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32>
  return %y : tensor<1x32x32x64xf32>
}
