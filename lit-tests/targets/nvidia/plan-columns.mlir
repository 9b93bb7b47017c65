// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s

// A reduction of dimensions that others follow forms what it reduces again: three kernels read x, and nothing of its size is stored
// between them. Rows that no number of parts divides are shared out, the last part with fewer, and what comes of 53 parts of each of three
// matrices is reduced by a kernel more. Broadcasts between dimensions are taken from memory.
// CHECK-LABEL: func.func @softmax
// CHECK: axe.launch @softmax_0_columns {{.*}} -> tensor<159x40xf32>
// CHECK: axe.launch @softmax_1_columns {{.*}} -> tensor<3x40xf32>
// CHECK: axe.launch @softmax_2_columns {{.*}} -> tensor<159x40xf32>
// CHECK: axe.launch @softmax_3_columns {{.*}} -> tensor<3x40xf32>
// CHECK: axe.launch @softmax_4_map {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-NOT: axe.launch
// CHECK: return
// CHECK-LABEL: axe.kernel @softmax_4_map
// CHECK: memref.load
// CHECK: memref.load
func.func @softmax(%x: tensor<3x20011x40xf32>) -> tensor<3x20011x40xf32> {
  %peak = axe.reduce <max> %x dims [1] : tensor<3x20011x40xf32> -> tensor<3x40xf32>
  %peaks = axe.broadcast %peak dims [1] : tensor<3x40xf32> -> tensor<3x20011x40xf32>
  %e = axe.map ins(%x, %peaks : tensor<3x20011x40xf32>, tensor<3x20011x40xf32>) -> tensor<3x20011x40xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %q = math.exp %d : f32
    axe.yield %q : f32
  }
  %sum = axe.reduce <add> %e dims [1] : tensor<3x20011x40xf32> -> tensor<3x40xf32>
  %sums = axe.broadcast %sum dims [1] : tensor<3x40xf32> -> tensor<3x20011x40xf32>
  %y = axe.map ins(%e, %sums : tensor<3x20011x40xf32>, tensor<3x20011x40xf32>) -> tensor<3x20011x40xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.divf %u, %v : f32
    axe.yield %q : f32
  }
  return %y : tensor<3x20011x40xf32>
}

// -----

// What a value a column is formed of joins the kernel of the column's sum.
// CHECK-LABEL: func.func @mean
// CHECK: axe.launch @mean_0_columns {{.*}} -> tensor<64xf16>
// CHECK-NOT: axe.launch
// CHECK: return
func.func @mean(%x: tensor<100x64xf16>) -> tensor<64xf16> {
  %w = axe.cast %x : tensor<100x64xf16> -> tensor<100x64xf32>
  %s = axe.reduce <add> %w dims [0] : tensor<100x64xf32> -> tensor<64xf32>
  %m = axe.map ins(%s : tensor<64xf32>) -> tensor<64xf16> {
  ^bb0(%u: f32):
    %n = arith.constant 0.01 : f32
    %q = arith.mulf %u, %n : f32
    %t = arith.truncf %q : f32 to f16
    axe.yield %t : f16
  }
  return %m : tensor<64xf16>
}

// -----

// A map that reads more than it gives, and that something else reads too, is stored and not formed again.
// CHECK-LABEL: func.func @stored
// CHECK: axe.launch @stored_{{.}}_map
// CHECK: axe.launch @stored_{{.}}_reduce
// CHECK: return
func.func @stored(%x: tensor<100x64xf32>, %y: tensor<100x64xf32>) -> (tensor<100x64xf32>, tensor<64xf32>) {
  %z = axe.map ins(%x, %y : tensor<100x64xf32>, tensor<100x64xf32>) -> tensor<100x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %q = arith.mulf %u, %v : f32
    axe.yield %q : f32
  }
  %s = axe.reduce <add> %z dims [0] : tensor<100x64xf32> -> tensor<64xf32>
  return %z, %s : tensor<100x64xf32>, tensor<64xf32>
}

// -----

// A broadcast along all but the channels is a load a row, and one along leading dimensions does not say what rows are where a
// reduction says it.
// CHECK-LABEL: func.func @channels
// CHECK: axe.launch @channels_0_rows {{.*}} -> tensor<6xf32>
// CHECK-NOT: axe.launch
// CHECK: return
// CHECK-LABEL: axe.kernel @channels_0_rows
// CHECK: memref.load
// CHECK: axe.broadcast {{.*}} dims [1]
// CHECK: memref.load
func.func @channels(%x: tensor<2x3x64xf32>, %c: tensor<3xf32>, %m: tensor<3x64xf32>) -> tensor<6xf32> {
  %cs = axe.broadcast %c dims [0, 2] : tensor<3xf32> -> tensor<2x3x64xf32>
  %ms = axe.broadcast %m dims [0] : tensor<3x64xf32> -> tensor<2x3x64xf32>
  %z = axe.map ins(%x, %cs, %ms : tensor<2x3x64xf32>, tensor<2x3x64xf32>, tensor<2x3x64xf32>) -> tensor<2x3x64xf32> {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %p, %w : f32
    axe.yield %q : f32
  }
  %s = axe.reduce <add> %z dims [2] : tensor<2x3x64xf32> -> tensor<2x3xf32>
  %f = tensor.collapse_shape %s [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  return %f : tensor<6xf32>
}
