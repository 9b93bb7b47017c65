// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// The tangent of a softplus with torch's threshold, as operators of their own, is a quotient of one exponential.
// CHECK-LABEL: axe.kernel @torch_0_map
// CHECK-NOT: math.log1p
// CHECK-NOT: math.tanh
// CHECK: math.exp
// CHECK: arith.minimumf
// CHECK: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.divf
// CHECK-NOT: math.
// CHECK: axe.return
func.func @torch(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %t = arith.constant 2.000000e+01 : f32
  %e = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %l = axe.map ins(%e : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.log1p %u : f32
    axe.yield %r : f32
  }
  %c = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xi1> {
  ^bb0(%u: f32):
    %r = arith.cmpf ogt, %u, %t : f32
    axe.yield %r : i1
  }
  %s = axe.map ins(%c, %x, %l : tensor<64x256xi1>, tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: i1, %v: f32, %w: f32):
    %r = arith.select %u, %v, %w : f32
    axe.yield %r : f32
  }
  %h = axe.map ins(%s : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.tanh %u : f32
    axe.yield %r : f32
  }
  %y = axe.map ins(%x, %h : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.mulf %u, %v : f32
    axe.yield %r : f32
  }
  return %y : tensor<64x256xf32>
}

// -----

// In one body, of f16: in f32.
// CHECK-LABEL: axe.kernel @narrow_0_map
// CHECK-NOT: math.log1p
// CHECK-NOT: math.tanh
// CHECK: arith.extf
// CHECK-NEXT: math.exp {{.*}} : f32
// CHECK: arith.divf {{.*}} : f32
// CHECK-NEXT: arith.truncf
func.func @narrow(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %y = axe.map ins(%x : tensor<64x256xf16>) -> tensor<64x256xf16> {
  ^bb0(%u: f16):
    %a = arith.addf %u, %u : f16
    %e = math.exp %a : f16
    %l = math.log1p %e : f16
    %h = math.tanh %l : f16
    %r = arith.mulf %a, %h : f16
    axe.yield %r : f16
  }
  return %y : tensor<64x256xf16>
}

// -----

// Of 5 the tangent is not 1.
// CHECK-LABEL: axe.kernel @near_0_map
// CHECK: math.log1p
// CHECK: math.tanh
func.func @near(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %t = arith.constant 5.0 : f32
  %y = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %e = math.exp %u : f32
    %l = math.log1p %e : f32
    %c = arith.cmpf ogt, %u, %t : f32
    %s = arith.select %c, %u, %l : f32
    %h = math.tanh %s : f32
    axe.yield %h : f32
  }
  return %y : tensor<64x256xf32>
}

// -----

// Below the threshold is not above it.
// CHECK-LABEL: axe.kernel @below_0_map
// CHECK: math.tanh
func.func @below(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %t = arith.constant 20.0 : f32
  %y = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %e = math.exp %u : f32
    %l = math.log1p %e : f32
    %c = arith.cmpf olt, %u, %t : f32
    %s = arith.select %c, %u, %l : f32
    %h = math.tanh %s : f32
    axe.yield %h : f32
  }
  return %y : tensor<64x256xf32>
}

// -----

// What is no exponential may be below -1.
// CHECK-LABEL: axe.kernel @plain_0_map
// CHECK: math.tanh
func.func @plain(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %y = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %l = math.log1p %u : f32
    %h = math.tanh %l : f32
    axe.yield %h : f32
  }
  return %y : tensor<64x256xf32>
}
