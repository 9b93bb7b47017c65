// A product's result that is stored in another order and a narrower type is converted by the product's epilogue.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @turned
// CHECK: axe.launch @turned_0_gemm {{.*}} -> tensor<{{.*}}xf16>
// CHECK: axe.launch @turned_1_transpose {{.*}} -> tensor<{{.*}}xf16>
// CHECK-NOT: axe.launch
func.func @turned(%x: tensor<512x64xf16>, %w: tensor<32x64xf16>) -> tensor<2x32x256xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<512x64xf16>, tensor<32x64xf16> -> tensor<512x32xf32>
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 256, 32] : tensor<512x32xf32> into tensor<2x256x32xf32>
  %t = axe.transpose %e [0, 2, 1] : tensor<2x256x32xf32> -> tensor<2x32x256xf32>
  %y = axe.cast %t : tensor<2x32x256xf32> -> tensor<2x32x256xf16>
  return %y : tensor<2x32x256xf16>
}

// -----

// What others read in the wider type is stored in it.
// CHECK-LABEL: func.func @read
// CHECK: axe.launch @read_0_gemm {{.*}} -> tensor<{{.*}}xf32>
func.func @read(%x: tensor<512x64xf16>, %w: tensor<32x64xf16>) -> (tensor<2x32x256xf16>, tensor<2x32x256xf32>) {
  %p = axe.gemm %x, %w {trans_b} : tensor<512x64xf16>, tensor<32x64xf16> -> tensor<512x32xf32>
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 256, 32] : tensor<512x32xf32> into tensor<2x256x32xf32>
  %t = axe.transpose %e [0, 2, 1] : tensor<2x256x32xf32> -> tensor<2x32x256xf32>
  %y = axe.cast %t : tensor<2x32x256xf32> -> tensor<2x32x256xf16>
  return %y, %t : tensor<2x32x256xf16>, tensor<2x32x256xf32>
}
