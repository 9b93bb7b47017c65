// Sums are converted two at a time, before the branch in front of the stores that pair them: of single conversions ptxas thought that they read sums
// whose products were under way, and gave up (C7514).
// REQUIRES: axe-driver, ptxas
// RUN: axe compile %s --function gemm --target sm_90a -o %t.axe
// RUN: tar xf %t.axe -O kernels.ptx | FileCheck %s

// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-76: cvt.rn.f16x2.f32
// CHECK-NOT: cvt.rn.f16.f32
func.func @gemm(%a: tensor<1456x512xf16>, %w: tensor<4816x512xf16>) -> tensor<1456x4816xf16> {
  %sums = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 152, 128, 64>, consumers = 1 : i64, stages = 5 : i64,
    cluster = array<i64: 2, 1>, swap_ab = true}} : tensor<1456x512xf16>, tensor<4816x512xf16> -> tensor<1456x4816xf32>
  %c = axe.cast %sums : tensor<1456x4816xf32> -> tensor<1456x4816xf16>
  return %c : tensor<1456x4816xf16>
}

// What is converted back at once, too: LLVM takes apart pairs that it knows. Where a function's operands are converted, no branch stands between.
// RUN: axe compile %s --function silu --target sm_90a -o %t.silu.axe
// RUN: tar xf %t.silu.axe -O kernels.ptx | FileCheck %s --check-prefix=BACK
// BACK: wgmma.wait_group.sync.aligned 0;
// BACK: cvt.rn.f16x2.f32
// BACK-NOT: cvt.rn.f16.f32
func.func @silu(%a: tensor<333x704xf16>, %w: tensor<4104x704xf16>) -> tensor<333x4104xf16> {
  %sums = axe.gemm %a, %w {trans_b, axe.plan = {tile = array<i64: 128, 112, 64>, schedule = "pingpong"}} : tensor<333x704xf16>, tensor<4104x704xf16> -> tensor<333x4104xf32>
  %h = axe.cast %sums : tensor<333x4104xf32> -> tensor<333x4104xf16>
  %x = axe.cast %h : tensor<333x4104xf16> -> tensor<333x4104xf32>
  %s = axe.map ins(%x : tensor<333x4104xf32>) -> tensor<333x4104xf32> {
  ^bb0(%v: f32):
    %t = math.tanh %v : f32
    axe.yield %t : f32
  }
  %c = axe.cast %s : tensor<333x4104xf32> -> tensor<333x4104xf16>
  return %c : tensor<333x4104xf16>
}
