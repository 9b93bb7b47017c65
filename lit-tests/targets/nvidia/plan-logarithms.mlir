// The exponentials whose sum a logarithm is of are as exact as what shows the logarithm.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=nvvm" --split-input-file | FileCheck %s

// What is left of a difference is rounded to f16; numbers below 2^-126 are nothing beside the largest, which is 1.
// CHECK-LABEL: llvm.func @probabilities_0_rows
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.return
func.func @probabilities(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %w = axe.cast %x : tensor<64x256xf16> -> tensor<64x256xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %b = axe.broadcast %m dims [1] : tensor<64xf32> -> tensor<64x256xf32>
  %d = axe.map ins(%w, %b : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.subf %u, %v : f32
    axe.yield %r : f32
  }
  %e = axe.map ins(%d : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %c = axe.broadcast %s dims [1] : tensor<64xf32> -> tensor<64x256xf32>
  %p = axe.map ins(%d, %c : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %v : f32
    %r = arith.subf %u, %l : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<64x256xf32> -> tensor<64x256xf16>
  return %y : tensor<64x256xf16>
}

// -----

// Nothing is known of the largest: sums below 2^-126 have a logarithm.
// CHECK-LABEL: llvm.func @sums_0_rows
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.nvvm.ex2.approx.f32
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.return
func.func @sums(%x: tensor<64x256xf32>, %z: tensor<64xf32>) -> tensor<64xf16> {
  %e = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %p = axe.map ins(%z, %s : tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %v : f32
    %r = arith.subf %u, %l : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<64xf32> -> tensor<64xf16>
  return %y : tensor<64xf16>
}

// -----

// A logarithm that is rounded itself has all digits of its operand, near 1; and so has one of f32.
// CHECK-LABEL: llvm.func @alone_0_rows
// CHECK: constant(-0.693147
// CHECK: llvm.return
func.func @alone(%x: tensor<64x256xf32>) -> tensor<64xf16> {
  %e = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %p = axe.map ins(%s : tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%v: f32):
    %l = math.log %v : f32
    axe.yield %l : f32
  }
  %y = axe.cast %p : tensor<64xf32> -> tensor<64xf16>
  return %y : tensor<64xf16>
}

// -----

// CHECK-LABEL: llvm.func @wide_0_rows
// CHECK: constant(-0.693147
// CHECK: llvm.return
func.func @wide(%x: tensor<64x256xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %e = axe.map ins(%x : tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32):
    %r = math.exp %u : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %p = axe.map ins(%z, %s : tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%u: f32, %v: f32):
    %l = math.log %v : f32
    %r = arith.subf %u, %l : f32
    axe.yield %r : f32
  }
  return %p : tensor<64xf32>
}

// -----

// States that the CTAs of a cluster exchange are shown as what comes of them is.
// CHECK-LABEL: llvm.func @cluster_0_rows
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK-NOT: constant(-0.693147
// CHECK: llvm.return
func.func @cluster(%x: tensor<8x131072xf16>) -> tensor<8x131072xf16> {
  %w = axe.cast %x : tensor<8x131072xf16> -> tensor<8x131072xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<8x131072xf32> -> tensor<8xf32>
  %b = axe.broadcast %m dims [1] : tensor<8xf32> -> tensor<8x131072xf32>
  %e = axe.map ins(%w, %b : tensor<8x131072xf32>, tensor<8x131072xf32>) -> tensor<8x131072xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<8x131072xf32> -> tensor<8xf32>
  %c = axe.broadcast %s dims [1] : tensor<8xf32> -> tensor<8x131072xf32>
  %p = axe.map ins(%e, %c : tensor<8x131072xf32>, tensor<8x131072xf32>) -> tensor<8x131072xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.divf %u, %v : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<8x131072xf32> -> tensor<8x131072xf16>
  return %y : tensor<8x131072xf16>
}
