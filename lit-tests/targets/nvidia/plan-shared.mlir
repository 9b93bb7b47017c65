// What the products of a batch, or rows of a product, share is read where it is: no broadcast of it is stored.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" --split-input-file | FileCheck %s

// A convolution of one place and a normalisation by given statistics: filters of all images, numbers of channels.
// CHECK-LABEL: func.func @channels
// CHECK: axe.launch @channels_0_gemm {{.*}} ins(%{{.*}} : tensor<64xf16>, tensor<64xf16>, tensor<64x32xf16>, tensor<3x32x784xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @channels_0_gemm(%[[VARIANCE:.*]]: memref<64xf16>, %[[SHIFT:.*]]: memref<64xf16>, %[[W:.*]]: memref<64x32xf16>, %[[X:.*]]: memref<3x32x784xf16>
// CHECK: axe.slice %[[W]][%{{[^,]*}}, %{{[^,]*}}] : memref<64x32xf16>
// CHECK: axe.slice %[[X]][%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}] : memref<3x32x784xf16>
// A number for each row is loaded once, and what comes of it computed there.
// CHECK-COUNT-1: memref.load %[[VARIANCE]]
// CHECK-NOT: memref.load %[[VARIANCE]]
// CHECK: math.rsqrt
func.func @channels(%x: tensor<3x32x28x28xf16>, %w: tensor<64x32x1x1xf16>, %v: tensor<64xf16>, %b: tensor<64xf16>) -> tensor<3x64x28x28xf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x64x28x28xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<3x64x28x28xf32>) -> tensor<3x64x28x28xf32>
  %p = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<3x32x28x28xf16>, tensor<64x32x1x1xf16>) outs(%i : tensor<3x64x28x28xf32>) -> tensor<3x64x28x28xf32>
  %f = axe.cast %v : tensor<64xf16> -> tensor<64xf32>
  %r = axe.map ins(%f : tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32):
    %0 = math.rsqrt %u : f32
    axe.yield %0 : f32
  }
  %rb = axe.broadcast %r dims [0, 2, 3] : tensor<64xf32> -> tensor<3x64x28x28xf32>
  %bb = axe.broadcast %b dims [0, 2, 3] : tensor<64xf16> -> tensor<3x64x28x28xf16>
  %y = axe.map ins(%p, %rb, %bb : tensor<3x64x28x28xf32>, tensor<3x64x28x28xf32>, tensor<3x64x28x28xf16>) -> tensor<3x64x28x28xf16> {
  ^bb0(%s: f32, %t: f32, %u: f16):
    %0 = arith.mulf %s, %t : f32
    %1 = arith.extf %u : f16 to f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    axe.yield %3 : f16
  }
  return %y : tensor<3x64x28x28xf16>
}

// -----

// A bias of a channel, as what the sums start from, is added behind them: `ptxas` would wait for each wgmma otherwise.
// CHECK-LABEL: func.func @starts
// CHECK: axe.launch @starts_0_gemm
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @starts_0_gemm(%[[BIAS:.*]]: memref<64xf16>
// CHECK: axe.gemm async
// CHECK-NOT: acc
// CHECK-SAME: -> tensor
// CHECK: memref.load %[[BIAS]]
// CHECK: arith.addf
func.func @starts(%x: tensor<3x32x28x28xf16>, %w: tensor<64x32x1x1xf16>, %b: tensor<64xf16>) -> tensor<3x64x28x28xf16> {
  %e = tensor.empty() : tensor<3x64x28x28xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%b : tensor<64xf16>) outs(%e : tensor<3x64x28x28xf32>) {
  ^bb0(%u: f16, %o: f32):
    %0 = arith.extf %u : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<3x64x28x28xf32>
  %p = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<3x32x28x28xf16>, tensor<64x32x1x1xf16>) outs(%i : tensor<3x64x28x28xf32>) -> tensor<3x64x28x28xf32>
  %y = axe.cast %p : tensor<3x64x28x28xf32> -> tensor<3x64x28x28xf16>
  return %y : tensor<3x64x28x28xf16>
}

// -----

// One more than the gates of a batch, which 256 rows share: a tile has those of one, or of two.
// CHECK-LABEL: func.func @gates
// CHECK: axe.launch @gates_0_gemm {{.*}} ins(%{{.*}} : tensor<4x128xf16>, tensor<1024x64xf16>, tensor<128x64xf16>)
// CHECK-NOT: axe.launch
// CHECK: axe.kernel @gates_0_gemm(%[[G:.*]]: memref<4x128xf16>
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[G]] to offset: [0], sizes: [4, 128], strides: [128, 1]
// CHECK: axe.slice %[[ROWS]]
// CHECK: arith.addf
func.func @gates(%x: tensor<1024x64xf16>, %w: tensor<128x64xf16>, %g: tensor<4x128xf16>) -> tensor<4x256x128xf16> {
  %p = axe.gemm %x, %w {trans_b} : tensor<1024x64xf16>, tensor<128x64xf16> -> tensor<1024x128xf32>
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [4, 256, 128] : tensor<1024x128xf32> into tensor<4x256x128xf32>
  %one = axe.map ins(%g : tensor<4x128xf16>) -> tensor<4x128xf16> {
  ^bb0(%u: f16):
    %c = arith.constant 1.0 : f16
    %0 = arith.addf %u, %c : f16
    axe.yield %0 : f16
  }
  %gb = axe.broadcast %one dims [1] : tensor<4x128xf16> -> tensor<4x256x128xf16>
  %y = axe.map ins(%q, %gb : tensor<4x256x128xf32>, tensor<4x256x128xf16>) -> tensor<4x256x128xf16> {
  ^bb0(%u: f32, %v: f16):
    %0 = arith.extf %v : f16 to f32
    %1 = arith.mulf %u, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    axe.yield %2 : f16
  }
  return %y : tensor<4x256x128xf16>
}

// -----

// What another product's rows share is of that product alone; a table that the kernel itself would form is stored.
// CHECK-LABEL: func.func @own
// CHECK: axe.launch @own_0_gemm
// CHECK: axe.launch @own_1_gemm
func.func @own(%x: tensor<64x32xf16>, %w: tensor<64x32xf16>, %a: tensor<4x64x64xf16>) -> (tensor<4x64x64xf32>, tensor<64x64xf16>) {
  %p = axe.gemm %x, %w {trans_b} : tensor<64x32xf16>, tensor<64x32xf16> -> tensor<64x64xf32>
  %h = axe.cast %p : tensor<64x64xf32> -> tensor<64x64xf16>
  %b = axe.broadcast %h dims [0] : tensor<64x64xf16> -> tensor<4x64x64xf16>
  %y = axe.gemm %a, %b : tensor<4x64x64xf16>, tensor<4x64x64xf16> -> tensor<4x64x64xf32>
  return %y, %h : tensor<4x64x64xf32>, tensor<64x64xf16>
}
