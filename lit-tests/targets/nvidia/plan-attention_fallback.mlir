// What looks like attention and is not taken is planned operator by operator; an explanation says at which operator, and why.
// RUN: split-file %s %t
// RUN: axe-opt %t/f32.mlir --axe-plan-kernels="target=sm_90a explain" 2>&1 | FileCheck %s --check-prefix=F32
// RUN: axe-opt %t/half.mlir --axe-plan-kernels="target=sm_80 explain" 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: axe-opt %t/other.mlir --axe-plan-kernels="target=sm_90a explain" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: axe-opt %t/tanh.mlir --axe-plan-kernels="target=sm_90a explain" 2>&1 | FileCheck %s --check-prefix=TANH
// RUN: axe-opt %t/columns.mlir --axe-plan-kernels="target=sm_90a explain" 2>&1 | FileCheck %s --check-prefix=COLUMNS

// F32: f32.mlir":[[#]]:{{.*}} no attention in one kernel: an operand has no elements of f16, bf16 or f8E4M3FN in memory
// F32-COUNT-3: axe.kernel @
// SM80: no attention in one kernel: attention in one kernel is for chips with wgmma, and sm_80 has none
// SM80-COUNT-3: axe.kernel @
// OTHER: no attention in one kernel: a row is divided by the sum of other weights
// OTHER: axe.kernel @
// TANH: no attention in one kernel: 'math.tanh' of its weights is no factor of a row
// TANH: axe.kernel @
// COLUMNS: no attention in one kernel: expected the values' columns in multiples of 8 up to 256, got 264
// COLUMNS-COUNT-3: axe.kernel @

//--- f32.mlir
func.func @f32(%q: tensor<2x128x64xf32>, %k: tensor<2x256x64xf32>, %v: tensor<2x256x64xf32>) -> tensor<2x128x64xf32> {
  %s = axe.gemm %q, %k {trans_b} : tensor<2x128x64xf32>, tensor<2x256x64xf32> -> tensor<2x128x256xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %mb = axe.broadcast %m dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %e = axe.map ins(%s, %mb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %lb = axe.broadcast %l dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %p = axe.map ins(%e, %lb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %o = axe.gemm %p, %v : tensor<2x128x256xf32>, tensor<2x256x64xf32> -> tensor<2x128x64xf32>
  return %o : tensor<2x128x64xf32>
}

//--- half.mlir
func.func @half(%q: tensor<2x128x64xf16>, %k: tensor<2x256x64xf16>, %v: tensor<2x256x64xf16>) -> tensor<2x128x64xf16> {
  %w = axe.cast %v : tensor<2x256x64xf16> -> tensor<2x256x64xf32>
  %s = axe.gemm %q, %k {trans_b} : tensor<2x128x64xf16>, tensor<2x256x64xf16> -> tensor<2x128x256xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %mb = axe.broadcast %m dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %e = axe.map ins(%s, %mb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %lb = axe.broadcast %l dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %p = axe.map ins(%e, %lb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %o = axe.gemm %p, %w : tensor<2x128x256xf32>, tensor<2x256x64xf32> -> tensor<2x128x64xf32>
  %n = axe.cast %o : tensor<2x128x64xf32> -> tensor<2x128x64xf16>
  return %n : tensor<2x128x64xf16>
}

//--- other.mlir
func.func @other(%q: tensor<2x128x64xf16>, %k: tensor<2x256x64xf16>, %v: tensor<2x256x64xf16>) -> tensor<2x128x64xf16> {
  %w = axe.cast %v : tensor<2x256x64xf16> -> tensor<2x256x64xf32>
  %s = axe.gemm %q, %k {trans_b} : tensor<2x128x64xf16>, tensor<2x256x64xf16> -> tensor<2x128x256xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %mb = axe.broadcast %m dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %e = axe.map ins(%s, %mb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %f = axe.map ins(%s : tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32):
    %0 = arith.addf %a, %a : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %f dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %lb = axe.broadcast %l dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %p = axe.map ins(%e, %lb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %o = axe.gemm %p, %w : tensor<2x128x256xf32>, tensor<2x256x64xf32> -> tensor<2x128x64xf32>
  %n = axe.cast %o : tensor<2x128x64xf32> -> tensor<2x128x64xf16>
  return %n : tensor<2x128x64xf16>
}

//--- tanh.mlir
func.func @tanh(%q: tensor<2x128x64xf16>, %k: tensor<2x256x64xf16>, %v: tensor<2x256x64xf16>) -> tensor<2x128x64xf16> {
  %w = axe.cast %v : tensor<2x256x64xf16> -> tensor<2x256x64xf32>
  %s = axe.gemm %q, %k {trans_b} : tensor<2x128x64xf16>, tensor<2x256x64xf16> -> tensor<2x128x256xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %mb = axe.broadcast %m dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %e = axe.map ins(%s, %mb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %t = axe.map ins(%e : tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32):
    %0 = math.tanh %a : f32
    axe.yield %0 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %lb = axe.broadcast %l dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %p = axe.map ins(%t, %lb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %o = axe.gemm %p, %w : tensor<2x128x256xf32>, tensor<2x256x64xf32> -> tensor<2x128x64xf32>
  %n = axe.cast %o : tensor<2x128x64xf32> -> tensor<2x128x64xf16>
  return %n : tensor<2x128x64xf16>
}

//--- columns.mlir
func.func @columns(%q: tensor<2x128x64xf16>, %k: tensor<2x256x64xf16>, %v: tensor<2x256x264xf16>) -> tensor<2x128x264xf16> {
  %w = axe.cast %v : tensor<2x256x264xf16> -> tensor<2x256x264xf32>
  %s = axe.gemm %q, %k {trans_b} : tensor<2x128x64xf16>, tensor<2x256x64xf16> -> tensor<2x128x256xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %mb = axe.broadcast %m dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %e = axe.map ins(%s, %mb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<2x128x256xf32> -> tensor<2x128xf32>
  %lb = axe.broadcast %l dims [2] : tensor<2x128xf32> -> tensor<2x128x256xf32>
  %p = axe.map ins(%e, %lb : tensor<2x128x256xf32>, tensor<2x128x256xf32>) -> tensor<2x128x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %o = axe.gemm %p, %w : tensor<2x128x256xf32>, tensor<2x256x264xf32> -> tensor<2x128x264xf32>
  %n = axe.cast %o : tensor<2x128x264xf32> -> tensor<2x128x264xf16>
  return %n : tensor<2x128x264xf16>
}
