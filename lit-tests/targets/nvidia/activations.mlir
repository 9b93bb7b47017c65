// Instructions of an element between its conversions, where a result is rounded to f16: constants of products are gathered, and no division is
// left where the divisor is known to be no less than one.
// REQUIRES: axe-driver, ptxas
// RUN: axe compile %s --function gelu --target sm_90a -o %t.gelu.axe
// RUN: tar xf %t.gelu.axe -O kernels.ptx | grep -v '\.loc' | FileCheck %s --check-prefix=GELU
// RUN: axe compile %s --function erf --target sm_90a -o %t.erf.axe
// RUN: tar xf %t.erf.axe -O kernels.ptx | grep -v '\.loc' | FileCheck %s --check-prefix=ERF
// RUN: axe compile %s --function silu --target sm_90a -o %t.silu.axe
// RUN: tar xf %t.silu.axe -O kernels.ptx | grep -v '\.loc' | FileCheck %s --check-prefix=SILU
// RUN: axe compile %s --function exact --target sm_90a -o %t.exact.axe
// RUN: tar xf %t.exact.axe -O kernels.ptx | grep -v '\.loc' | FileCheck %s --check-prefix=EXACT
// RUN: axe compile %s --function divided --target sm_90a -o %t.divided.axe
// RUN: tar xf %t.divided.axe -O kernels.ptx | grep -v '\.loc' | FileCheck %s --check-prefix=DIVIDED

#id = affine_map<(d0) -> (d0)>

// x / (1 + 2^(x (c x^2 + d))).
// GELU: mul.rn.f32 [[SQUARE:%r[0-9]+]], [[X:%r[0-9]+]], [[X]];
// GELU-NEXT: fma.rn.f32 [[SUM:%r[0-9]+]], [[SQUARE]], 0fBDD2D3E7, 0fC0135761;
// GELU-NEXT: mul.rn.f32 [[POWER:%r[0-9]+]], [[SUM]], [[X]];
// GELU-NEXT: ex2.approx.ftz.f32 [[E:%r[0-9]+]], [[POWER]];
// GELU-NEXT: add.rn.f32 [[BELOW:%r[0-9]+]], [[E]], 0f3F800000;
// GELU-NEXT: rcp.approx.ftz.f32 [[PART:%r[0-9]+]], [[BELOW]];
// GELU-NEXT: mul.rn.f32 {{%r[0-9]+}}, [[PART]], [[X]];
// GELU-NEXT: cvt.f32.f16 [[X:%r[0-9]+]],
// GELU-NEXT: mul.rn.f32 [[SQUARE:%r[0-9]+]], [[X]], [[X]];
func.func @gelu(%x: tensor<4096xf16>) -> tensor<4096xf16> {
  %e = tensor.empty() : tensor<4096xf16>
  %o = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4096xf16>) outs(%e : tensor<4096xf16>) {
  ^bb0(%a: f16, %c: f16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %cubic = arith.constant 0.044715 : f32
    %root = arith.constant 0.7978845608 : f32
    %u = arith.extf %a : f16 to f32
    %u2 = arith.mulf %u, %u : f32
    %u3 = arith.mulf %u2, %u : f32
    %u4 = arith.mulf %u3, %cubic : f32
    %u5 = arith.addf %u, %u4 : f32
    %u6 = arith.mulf %u5, %root : f32
    %tanh = math.tanh %u6 : f32
    %sum = arith.addf %tanh, %one : f32
    %scaled = arith.mulf %u, %half : f32
    %y = arith.mulf %scaled, %sum : f32
    %r = arith.truncf %y : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4096xf16>
  return %o : tensor<4096xf16>
}

// erfc(|x| / sqrt(2)) / 2, or one less that.
// ERF: abs.f32 [[X:%r[0-9]+]],
// ERF-NEXT: fma.rn.f32
// ERF-NEXT: fma.rn.f32
// ERF-NEXT: fma.rn.f32
// ERF-NEXT: fma.rn.f32
// ERF-NEXT: fma.rn.f32
// ERF-NEXT: fma.rn.f32 [[SLOPE:%r[0-9]+]], {{.*}}, [[X]],
// ERF-NEXT: fma.rn.f32 [[POWER:%r[0-9]+]], [[X]], [[SLOPE]], 0fBF800000;
// ERF-NEXT: ex2.approx.ftz.f32 [[REST:%r[0-9]+]], [[POWER]];
// ERF: sub.rn.f32 {{.*}}, [[REST]];
// ERF: selp.f32 [[SUM:%r[0-9]+]], [[REST]],
// ERF-NEXT: mul.rn.f32 {{%r[0-9]+}}, [[SUM]],
func.func @erf(%x: tensor<4096xf16>) -> tensor<4096xf16> {
  %e = tensor.empty() : tensor<4096xf16>
  %o = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4096xf16>) outs(%e : tensor<4096xf16>) {
  ^bb0(%a: f16, %c: f16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678118 : f32
    %u = arith.extf %a : f16 to f32
    %s = arith.mulf %u, %root : f32
    %erf = math.erf %s : f32
    %sum = arith.addf %erf, %one : f32
    %scaled = arith.mulf %u, %half : f32
    %y = arith.mulf %scaled, %sum : f32
    %r = arith.truncf %y : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4096xf16>
  return %o : tensor<4096xf16>
}

// SILU: mul{{.*}}.f32 [[POWER:%r[0-9]+]], [[X:%r[0-9]+]], 0fBFB8AA3B;
// SILU-NEXT: ex2.approx.ftz.f32 [[E:%r[0-9]+]], [[POWER]];
// SILU-NEXT: add{{.*}}.f32 [[BELOW:%r[0-9]+]], [[E]], 0f3F800000;
// SILU-NEXT: rcp.approx.ftz.f32 [[PART:%r[0-9]+]], [[BELOW]];
// SILU-NEXT: mul{{.*}}.f32 {{%r[0-9]+}}, [[PART]], [[X]];
func.func @silu(%x: tensor<4096xf16>) -> tensor<4096xf16> {
  %e = tensor.empty() : tensor<4096xf16>
  %o = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4096xf16>) outs(%e : tensor<4096xf16>) {
  ^bb0(%a: f16, %c: f16):
    %one = arith.constant 1.0 : f32
    %u = arith.extf %a : f16 to f32
    %n = arith.negf %u : f32
    %power = math.exp %n : f32
    %below = arith.addf %power, %one : f32
    %y = arith.divf %u, %below : f32
    %r = arith.truncf %y : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4096xf16>
  return %o : tensor<4096xf16>
}

// A result of f32 is what is written.
// EXACT: mul.rn.f32 [[HALF:%r[0-9]+]], {{%r[0-9]+}}, 0f3F000000;
// EXACT: add.rn.f32 [[TWICE:%r[0-9]+]], [[Y:%r[0-9]+]], [[Y]];
// EXACT: mul.rn.f32 {{%r[0-9]+}}, [[HALF]], [[TWICE]];
func.func @exact(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> tensor<4096xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %o = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<4096xf32>, tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %half = arith.constant 0.5 : f32
    %two = arith.constant 2.0 : f32
    %u = arith.mulf %a, %half : f32
    %v = arith.mulf %b, %two : f32
    %w = arith.mulf %u, %v : f32
    linalg.yield %w : f32
  } -> tensor<4096xf32>
  return %o : tensor<4096xf32>
}

// x / sqrt(2) in f32: rounded behind its remainder, and not by a division, which is a call for what is not normal.
// DIVIDED-NOT: div.
// DIVIDED: mul.rn.f32 [[FIRST:%r[0-9]+]], [[X:%r[0-9]+]], 0f3F3504F3;
// DIVIDED-NEXT: fma.rn.f32 [[REST:%r[0-9]+]], [[FIRST]], 0fBFB504F3, [[X]];
// DIVIDED-NEXT: fma.rn.f32 {{%r[0-9]+}}, [[REST]], 0f3F3504F3, [[FIRST]];
// DIVIDED-NOT: div.
func.func @divided(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %o = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%a: f32, %c: f32):
    %root = arith.constant 1.41421354 : f32
    %y = arith.divf %a, %root : f32
    linalg.yield %y : f32
  } -> tensor<4096xf32>
  return %o : tensor<4096xf32>
}
