// RUN: axe-opt %s --axe-simplify-powers --split-input-file | FileCheck %s

// Whole exponents are products and quotients; what has several roundings is computed in f32.
// CHECK-LABEL: @whole
// CHECK-SAME: (%[[X:.*]]: f16)
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f16
// CHECK-DAG: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]] fastmath<contract> : f16
// CHECK-DAG: %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[X]] : f16
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK: %[[CUBE:.*]] = math.fpowi %[[WIDE]], %{{.*}} : f32, i32
// CHECK: %[[NARROW:.*]] = arith.truncf %[[CUBE]] : f32 to f16
// CHECK: return %{{.*}}, %[[X]], %[[SQUARE]], %[[INVERSE]], %[[NARROW]]
func.func @whole(%x: f16) -> (f16, f16, f16, f16, f16) {
  %c0 = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2.0 : f64
  %t2 = arith.truncf %c2 : f64 to f16
  %m1 = arith.constant -1.0 : f16
  %c3 = arith.constant 3.0 : f16
  %a = math.powf %x, %c0 : f16
  %b = math.fpowi %x, %c1 : f16, i32
  %c = math.powf %x, %t2 fastmath<contract> : f16
  %d = math.powf %x, %m1 : f16
  %e = math.powf %x, %c3 : f16
  return %a, %b, %c, %d, %e : f16, f16, f16, f16, f16
}

// -----

// x^-2 is the square of 1 / x: 1 / x^2 would be 0 of what x^2 is infinite of.
// CHECK-LABEL: @inverse_square
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %arg0 : f32
// CHECK: arith.mulf %[[R]], %[[R]] : f32
func.func @inverse_square(%x: f32) -> f32 {
  %c = arith.constant -2.0 : f32
  %a = math.powf %x, %c : f32
  return %a : f32
}

// -----

// The power of -0.0 is that of 0.0, and that of minus infinity is no NaN.
// CHECK-LABEL: @root
// CHECK: %[[S:.*]] = arith.addf %arg0, %{{.*}} : f32
// CHECK: %[[R:.*]] = math.rsqrt %[[S]] : f32
// CHECK: %[[C:.*]] = arith.cmpf oeq, %[[S]], %{{.*}} : f32
// CHECK: arith.select %[[C]], %{{.*}}, %[[R]] : f32
func.func @root(%x: f32) -> f32 {
  %c = arith.constant -0.5 : f32
  %a = math.powf %x, %c : f32
  return %a : f32
}

// -----

// A sum of squares is not negative, through the bodies of operators.
// CHECK-LABEL: @norm
// CHECK: arith.mulf
// CHECK: axe.reduce
// CHECK: math.sqrt
// CHECK-NOT: arith.cmpf
// CHECK-NOT: math.powf
func.func @norm(%x: tensor<8x32xf32>) -> tensor<8xf32> {
  %two = arith.constant 2.0 : f32
  %half = arith.constant 0.5 : f32
  %s = axe.map ins(%x : tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%i: f32):
    %p = math.powf %i, %two : f32
    axe.yield %p : f32
  }
  %r = axe.reduce <add> %s dims [1] : tensor<8x32xf32> -> tensor<8xf32>
  %n = axe.map ins(%r : tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: f32):
    %p = math.powf %i, %half : f32
    axe.yield %p : f32
  }
  return %n : tensor<8xf32>
}

// -----

// What is no such number stays, and so does what is no constant.
// CHECK-LABEL: @others
// CHECK-COUNT-2: math.powf
// CHECK: math.fpowi
func.func @others(%x: f32, %y: f32) -> (f32, f32, f32) {
  %c = arith.constant 2.25 : f32
  %n = arith.constant 7 : i32
  %a = math.powf %x, %c : f32
  %b = math.powf %x, %y : f32
  %d = math.fpowi %x, %n : f32, i32
  return %a, %b, %d : f32, f32, f32
}
