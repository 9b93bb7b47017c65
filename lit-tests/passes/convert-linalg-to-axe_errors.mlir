// RUN: axe-opt --convert-linalg-to-axe --split-input-file --verify-diagnostics %s

func.func @conv(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x8xf32>, %o: tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32> {
  // expected-error @+1 {{'linalg.conv_2d_nhwc_hwcf' is not supported: axe has no operator for it}}
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) outs(%o : tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
  return %0 : tensor<1x6x6x8xf32>
}

// -----

func.func @memref(%o: memref<8xf32>, %x: f32) {
  // expected-error @+1 {{'linalg.fill' is not supported: it is not on tensors}}
  linalg.fill ins(%x : f32) outs(%o : memref<8xf32>)
  return
}

// -----

#i = affine_map<(i) -> (i)>
func.func @index(%o: tensor<8xindex>) -> tensor<8xindex> {
  // expected-error @+1 {{'linalg.index' in its body is not a scalar operation of arith or math}}
  %0 = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%o : tensor<8xindex>) {
  ^bb0(%d: index):
    %a = linalg.index 0 : index
    linalg.yield %a : index
  } -> tensor<8xindex>
  return %0 : tensor<8xindex>
}

// -----

func.func @not_a_product(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>, %o: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // expected-error @+1 {{it combines over 3 loops, and none of the 2 tensors that its body reads has all of them}}
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<16x64xf32>, tensor<64x32xf32>) outs(%o : tensor<16x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.maximumf %a, %b : f32
    %t = arith.addf %c, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

#i = affine_map<(i, j) -> (i, j)>
#d = affine_map<(i, j) -> (i)>
func.func @combiner(%x: tensor<4x8xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{got 'arith.subf'}}
  %0 = linalg.generic {indexing_maps = [#i, #d], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
