// Maps of the same tensors are one kernel, which reads those once.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @both
// CHECK: %[[R:.*]]:2 = axe.launch @both_0_map {{.*}} ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%{{.*}}, %{{.*}} : {{.*}})
// CHECK-NOT: axe.launch
func.func @both(%x: tensor<64x256xf32>, %y: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %a = axe.map ins(%x, %y : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.addf %u, %v : f32
    axe.yield %0 : f32
  }
  %b = axe.map ins(%x, %y : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %0 = arith.subf %u, %v : f32
    axe.yield %0 : f32
  }
  return %a, %b : tensor<64x256xf32>, tensor<64x256xf32>
}

// -----

// What reads a product's result waits for it: nothing of it goes to the kernel before.
// CHECK-LABEL: func.func @later
// CHECK: axe.launch @later_0_map
// CHECK: axe.launch @later_1_gemm
// CHECK: axe.launch @later_2_transpose
// CHECK: axe.launch @later_3_map
// CHECK-NOT: axe.launch
func.func @later(%x: tensor<128x128xf16>, %w: tensor<128x128xf16>) -> (tensor<128x128xf16>, tensor<128x128xf16>) {
  %a = axe.map ins(%x : tensor<128x128xf16>) -> tensor<128x128xf16> {
  ^bb0(%u: f16):
    %0 = arith.negf %u : f16
    axe.yield %0 : f16
  }
  %p = axe.gemm %a, %w : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf16>
  %q = axe.transpose %p [1, 0] : tensor<128x128xf16> -> tensor<128x128xf16>
  %b = axe.map ins(%x, %q : tensor<128x128xf16>, tensor<128x128xf16>) -> tensor<128x128xf16> {
  ^bb0(%u: f16, %v: f16):
    %0 = arith.addf %u, %v : f16
    axe.yield %0 : f16
  }
  return %p, %b : tensor<128x128xf16>, tensor<128x128xf16>
}

// -----

// Other tensors, other kernels.
// CHECK-LABEL: func.func @apart
// CHECK: axe.launch @apart_0_map
// CHECK: axe.launch @apart_1_map
func.func @apart(%x: tensor<64x256xf32>, %y: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %a = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %0 = arith.negf %u : f32
    axe.yield %0 : f32
  }
  %b = axe.map ins(%y : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %0 = arith.negf %u : f32
    axe.yield %0 : f32
  }
  return %a, %b : tensor<64x256xf32>, tensor<64x256xf32>
}
