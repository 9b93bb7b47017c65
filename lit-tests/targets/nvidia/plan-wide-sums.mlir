// Variances in f64 of 16-bit floats are formed of f32; others stay in f64.
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @variance
// CHECK: axe.kernel @variance_0_rows
// CHECK-NOT: x4096xf64
// CHECK: axe.reduce <add>
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK-DAG: axe.reduce <add>
// CHECK-DAG: axe.reduce <add>
// CHECK: arith.mulf {{.*}} : f64
// CHECK: arith.maximumf {{.*}} : f32
// CHECK-NOT: x4096xf64
// CHECK: axe.return
func.func @variance(%x: tensor<300x4096xf16>) -> tensor<300xf32> {
  %w = axe.cast %x : tensor<300x4096xf16> -> tensor<300x4096xf32>
  %d = axe.cast %w : tensor<300x4096xf32> -> tensor<300x4096xf64>
  %s = axe.reduce <add> %d dims [1] : tensor<300x4096xf64> -> tensor<300xf64>
  %m = axe.map ins(%s : tensor<300xf64>) -> tensor<300xf64> {
  ^bb0(%a: f64):
    %n = arith.constant 4096.0 : f64
    %b = arith.divf %a, %n : f64
    axe.yield %b : f64
  }
  %r = axe.broadcast %m dims [1] : tensor<300xf64> -> tensor<300x4096xf64>
  %e = axe.map ins(%d, %r : tensor<300x4096xf64>, tensor<300x4096xf64>) -> tensor<300x4096xf64> {
  ^bb0(%a: f64, %c: f64):
    %b = arith.subf %a, %c : f64
    axe.yield %b : f64
  }
  %q = axe.map ins(%e, %e : tensor<300x4096xf64>, tensor<300x4096xf64>) -> tensor<300x4096xf64> {
  ^bb0(%a: f64, %c: f64):
    %b = arith.mulf %a, %c : f64
    axe.yield %b : f64
  }
  %v = axe.reduce <add> %q dims [1] : tensor<300x4096xf64> -> tensor<300xf64>
  %y = axe.cast %v : tensor<300xf64> -> tensor<300xf32>
  return %y : tensor<300xf32>
}

// -----

// A sum that is given in f64 is one of f64; so is one of f32 elements.
// CHECK-LABEL: func.func @given
// CHECK: axe.reduce <add> {{.*}} -> tensor<{{[0-9]+}}xf64
// CHECK: axe.reduce <add> {{.*}} -> tensor<{{[0-9]+}}xf64
func.func @given(%x: tensor<300x512xf16>, %z: tensor<300x512xf32>) -> (tensor<300xf64>, tensor<300xf32>) {
  %w = axe.cast %x : tensor<300x512xf16> -> tensor<300x512xf32>
  %d = axe.cast %w : tensor<300x512xf32> -> tensor<300x512xf64>
  %s = axe.reduce <add> %d dims [1] : tensor<300x512xf64> -> tensor<300xf64>
  %e = axe.cast %z : tensor<300x512xf32> -> tensor<300x512xf64>
  %t = axe.reduce <add> %e dims [1] : tensor<300x512xf64> -> tensor<300xf64>
  %y = axe.cast %t : tensor<300xf64> -> tensor<300xf32>
  return %s, %y : tensor<300xf64>, tensor<300xf32>
}

// -----

// The square of what is not apart from a mean may be of terms that are not positive: a product of two tensors.
// CHECK-LABEL: func.func @products
// CHECK: axe.reduce <add> {{.*}} -> tensor<{{[0-9]+}}xf64
func.func @products(%x: tensor<300x512xf16>, %z: tensor<300x512xf16>) -> tensor<300xf32> {
  %w = axe.cast %x : tensor<300x512xf16> -> tensor<300x512xf32>
  %d = axe.cast %w : tensor<300x512xf32> -> tensor<300x512xf64>
  %u = axe.cast %z : tensor<300x512xf16> -> tensor<300x512xf32>
  %e = axe.cast %u : tensor<300x512xf32> -> tensor<300x512xf64>
  %q = axe.map ins(%d, %e : tensor<300x512xf64>, tensor<300x512xf64>) -> tensor<300x512xf64> {
  ^bb0(%a: f64, %c: f64):
    %b = arith.mulf %a, %c : f64
    axe.yield %b : f64
  }
  %s = axe.reduce <add> %q dims [1] : tensor<300x512xf64> -> tensor<300xf64>
  %y = axe.cast %s : tensor<300xf64> -> tensor<300xf32>
  return %y : tensor<300xf32>
}

// -----

// torch converts 16-bit floats to f64 at once: f32 takes the place of that.
// CHECK-LABEL: func.func @direct
// CHECK: axe.kernel @direct_0_rows
// CHECK-NOT: x4096xf64
// CHECK: axe.reduce <add>
// CHECK: arith.divf {{.*}} : f32
// CHECK-NOT: x4096xf64
// CHECK: axe.return
func.func @direct(%x: tensor<300x4096xf16>) -> tensor<300xf16> {
  %d = axe.cast %x : tensor<300x4096xf16> -> tensor<300x4096xf64>
  %s = axe.reduce <add> %d dims [1] : tensor<300x4096xf64> -> tensor<300xf64>
  %y = axe.cast %s : tensor<300xf64> -> tensor<300xf16>
  return %y : tensor<300xf16>
}

// -----

// So are those of a reshape of f32.
// CHECK-LABEL: func.func @reshaped
// CHECK: axe.kernel @reshaped_0_rows
// CHECK-NOT: x4096xf64
// CHECK: axe.return
func.func @reshaped(%x: tensor<300x64x64xf16>) -> tensor<300xf16> {
  %w = axe.cast %x : tensor<300x64x64xf16> -> tensor<300x64x64xf32>
  %f = tensor.collapse_shape %w [[0], [1, 2]] : tensor<300x64x64xf32> into tensor<300x4096xf32>
  %d = axe.cast %f : tensor<300x4096xf32> -> tensor<300x4096xf64>
  %s = axe.reduce <add> %d dims [1] : tensor<300x4096xf64> -> tensor<300xf64>
  %y = axe.cast %s : tensor<300xf64> -> tensor<300xf16>
  return %y : tensor<300xf16>
}

// -----

// A sum in f32 of f32 elements that are summed up in f64, too, is that sum, rounded; one that stands in front of it is not.
// CHECK-LABEL: func.func @rounded
// CHECK: axe.kernel @rounded_0_rows
// CHECK: axe.reduce <add> {{.*}} -> tensor<{{[0-9]+}}xf32
// CHECK: %[[SUM:.*]] = axe.reduce <add> {{.*}} -> tensor<{{[0-9]+}}xf64
// CHECK-NOT: axe.reduce
// CHECK: axe.cast %[[SUM]] : {{.*}} -> tensor<{{[0-9]+}}xf32
// CHECK-NOT: axe.reduce
// CHECK: axe.return
func.func @rounded(%x: tensor<300x512xf32>) -> (tensor<300xf32>, tensor<300xf32>, tensor<300xf32>) {
  %before = axe.reduce <add> %x dims [1] : tensor<300x512xf32> -> tensor<300xf32>
  %d = axe.cast %x : tensor<300x512xf32> -> tensor<300x512xf64>
  %s = axe.reduce <add> %d dims [1] : tensor<300x512xf64> -> tensor<300xf64>
  %y = axe.map ins(%s : tensor<300xf64>) -> tensor<300xf32> {
  ^bb0(%a: f64):
    %b = arith.mulf %a, %a : f64
    %c = arith.truncf %b : f64 to f32
    axe.yield %c : f32
  }
  %behind = axe.reduce <add> %x dims [1] : tensor<300x512xf32> -> tensor<300xf32>
  return %before, %y, %behind : tensor<300xf32>, tensor<300xf32>, tensor<300xf32>
}
