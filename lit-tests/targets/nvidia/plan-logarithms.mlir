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

// The same where what is left is rounded to bf16, which has numbers below 2^-126.
// CHECK-LABEL: llvm.func @of_bf16_0_rows
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: llvm.return
func.func @of_bf16(%x: tensor<64x256xbf16>) -> tensor<64x256xbf16> {
  %w = axe.cast %x : tensor<64x256xbf16> -> tensor<64x256xf32>
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
  %y = axe.cast %p : tensor<64x256xf32> -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
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

// -----

// A number that is at most zero less one that is not negative, as the logarithm of a sigmoid is, has no larger relative error than both:
// the logarithm is as exact as f16.
// CHECK-LABEL: llvm.func @log_sigmoid_0_map
// CHECK-NOT: constant(-0.250002
// CHECK: llvm.nvvm.lg2.approx.ftz.f
// CHECK: llvm.return
func.func @log_sigmoid(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %zero = arith.constant 0.0 : f32
  %w = axe.cast %x : tensor<64x256xf16> -> tensor<64x256xf32>
  %z = axe.fill %zero : f32 -> tensor<64x256xf32>
  %p = axe.map ins(%w, %z : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %o: f32):
    %c = arith.cmpf olt, %o, %u : f32
    %m = arith.select %c, %o, %u : f32
    %a = math.absf %u : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %l = math.log1p %e : f32
    %r = arith.subf %m, %l : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<64x256xf32> -> tensor<64x256xf16>
  return %y : tensor<64x256xf16>
}

// -----

// Where the larger of both is taken, little may be left of the difference.
// CHECK-LABEL: llvm.func @apart_0_map
// CHECK: constant(-0.250002
// CHECK: llvm.return
func.func @apart(%x: tensor<64x256xf16>) -> tensor<64x256xf16> {
  %zero = arith.constant 0.0 : f32
  %w = axe.cast %x : tensor<64x256xf16> -> tensor<64x256xf32>
  %z = axe.fill %zero : f32 -> tensor<64x256xf32>
  %p = axe.map ins(%w, %z : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %o: f32):
    %c = arith.cmpf olt, %o, %u : f32
    %m = arith.select %c, %u, %o : f32
    %a = math.absf %u : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %l = math.log1p %e : f32
    %r = arith.subf %m, %l : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<64x256xf32> -> tensor<64x256xf16>
  return %y : tensor<64x256xf16>
}

// -----

// Exponentials below a maximum are at most one. What is rounded to bf16 has numbers below 2^-126: they are formed 2^32 times as large.
// CHECK-LABEL: llvm.func @small_0_rows
// CHECK-DAG: constant(3.200000e+01 : f32)
// CHECK-DAG: constant(2.32830644E-10 : f32)
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK-NOT: llvm.nvvm.ex2.approx.f32
// CHECK: llvm.return
func.func @small(%x: tensor<64x256xbf16>) -> tensor<64x256xbf16> {
  %w = axe.cast %x : tensor<64x256xbf16> -> tensor<64x256xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %b = axe.broadcast %m dims [1] : tensor<64xf32> -> tensor<64x256xf32>
  %e = axe.map ins(%w, %b : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %s = axe.reduce <add> %e dims [1] : tensor<64x256xf32> -> tensor<64xf32>
  %c = axe.broadcast %s dims [1] : tensor<64xf32> -> tensor<64x256xf32>
  %p = axe.map ins(%e, %c : tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32> {
  ^bb0(%u: f32, %v: f32):
    %r = arith.divf %u, %v : f32
    axe.yield %r : f32
  }
  %y = axe.cast %p : tensor<64x256xf32> -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}

// -----

// Of a maximum that another row's elements are below nothing is known: these may be larger.
// CHECK-LABEL: llvm.func @others_
// CHECK-NOT: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: llvm.nvvm.ex2.approx.f32
func.func @others(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %w = axe.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %m = axe.reduce <max> %w dims [1] : tensor<64x64xf32> -> tensor<64xf32>
  %b = axe.broadcast %m dims [0] : tensor<64xf32> -> tensor<64x64xf32>
  %e = axe.map ins(%w, %b : tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%u: f32, %v: f32):
    %d = arith.subf %u, %v : f32
    %r = math.exp %d : f32
    axe.yield %r : f32
  }
  %y = axe.cast %e : tensor<64x64xf32> -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}
